"""What the numbers suggest for V4, each tried in the simulator; the numbers are those of the other experiments."""

from __future__ import annotations

from collections.abc import Iterator

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, require

__all__ = ["HELPS"]


def _measure(seed: int, *, numbers: Numbers) -> Iterator[tuple[Case, str, str, float]]:
    """Yield the bytes of a one-file commit of the widest table, as it is and with each change."""
    n = numbers.of("commits")
    columns = n.choices("columns")[-1]
    commits = next(dict(c)["commits"] for c in n.cases() if dict(c)["columns"] == columns)
    few = n.choices("statistics")[-1]

    def mean(metric: str, layout: str, statistics: str = "all columns") -> float:
        return n.mean(metric, columns=columns, commits=commits, statistics=statistics, layout=layout)

    size = mean("written by a commit", "V4, Parquet")
    coded = size - mean("footer", "V4, Parquet") + mean("footer, zstd", "V4, Parquet")
    both = mean("written by a commit", "V4, Parquet", few)
    for change, value in (
        ("v3", mean("written by a commit", "v3")),
        ("V4", size),
        ("V4, root in Avro", mean("written by a commit", "V4, Avro")),
        ("V4, footer in zstd", coded),
        (f"V4, statistics of {few}", both),
        (f"V4, statistics of {few}, root in Avro", mean("written by a commit", "V4, Avro", few)),
        (
            f"V4, statistics of {few}, footer in zstd",
            both - mean("footer", "V4, Parquet", few) + mean("footer, zstd", "V4, Parquet", few),
        ),
        (f"v3, statistics of {few}", mean("written by a commit", "v3", few)),
    ):
        yield case(columns=columns, writer=change), "written by a one-file commit", "bytes", value


def _size(n: Numbers, writer: str) -> float:
    mine = n.of("helps")
    few = n.of("commits").choices("statistics")[-1]
    return mine.mean(
        "written by a one-file commit", columns=mine.choices("columns")[0], writer=writer.replace("FEW", few)
    )


def _statistics(n: Numbers) -> Answer:
    few = n.of("commits").choices("statistics")[-1]
    a, b, v3 = _size(n, "V4, statistics of FEW"), _size(n, "V4"), _size(n, "v3")
    require(a < v3 < b, "fewer statistics bring V4 below v3 with all of them")
    return Answer(
        f"{a / b:.2f} times",
        f"Statistics of {few} instead of all {n.of('helps').choices('columns')[0]} make a one-file commit "
        f"{a / b:.2f} times as large "
        f"({a:,.0f} instead of {b:,.0f} bytes), below v3 with all statistics ({v3:,.0f}); what filters on the other "
        "columns would "
        "then read is not measured.",
    )


def _footer(n: Numbers) -> Answer:
    a, b, v3 = _size(n, "V4, footer in zstd"), _size(n, "V4"), _size(n, "v3")
    require(a < b, "a compressed footer is smaller")
    left = "still more than" if a > v3 else "less than"
    return Answer(
        f"{a / b:.2f} times",
        "If the footer were compressed with zstd, which Parquet does not allow, a one-file commit would be "
        f"{a / b:.2f} times as large "
        f"({a:,.0f} instead of {b:,.0f} bytes), {left} v3's {v3:,.0f}.",
    )


def _avro(n: Numbers) -> Answer:
    a, b = _size(n, "V4, root in Avro"), _size(n, "V4")
    require(a < b, "a small root is smaller in Avro")
    mine = n.of("thresholds")
    columns = mine.choices("columns")[0]
    counts = list(
        dict.fromkeys(
            dict(c)["files in the root"]
            for c in mine.cases()
            if dict(c).get("columns") == columns and "files in the root" in dict(c)
        )
    )
    better = [
        f
        for f in counts
        if mine.mean("root", columns=columns, layout="V4, Avro", files_in_the_root=f)
        < mine.mean("root", columns=columns, layout="V4, Parquet", files_in_the_root=f)
    ]
    require(0 < len(better) < len(counts), "Avro is smaller for small roots only")
    worse = counts[len(better)]
    return Answer(
        f"{a / b:.2f} times",
        f"Roots in Avro while they are small make a one-file commit {a / b:.2f} times as large; with {columns} "
        "columns Avro is smaller with "
        f"{better[-1]} file{'s' * (better[-1] != '1')} in the root, and larger with {worse}.",
    )


def _bytes(n: Numbers) -> Answer:
    mine = n.of("thresholds")
    at = next(dict(c) for c in mine.cases() if dict(c).get("flush above", "").endswith("columns"))
    names = {"columns": at["columns"], "commits": at["commits"], "files_per_commit": at["files per commit"]}
    size = [mine.mean("written by a commit", **names, flush_above=rule) for rule in ("4,000 files", at["flush above"])]
    require(size[1] < size[0], "a threshold by bytes writes less on wide tables")
    return Answer(
        f"{size[1] / size[0]:.2f} times",
        f"A flush threshold by bytes instead of by files writes {size[1] / size[0]:.2f} times the bytes in the "
        "history of "
        f"{at['columns']} columns above.",
    )


HELPS = Experiment(
    name="helps",
    title="What would help V4",
    method=(
        "What the numbers above suggest, each tried in the simulator on the widest table of [one-file commits]"
        "(#one-file-commits-by-number-of-columns); only the compressed footer is computed, because no reader accepts "
        "one."
    ),
    measure=_measure,
    findings=(
        Finding("Would fewer statistics help?", _statistics),
        Finding("Would dictionary-coded or compressed footers help?", _footer),
        Finding("Would Avro roots below a size help?", _avro),
        Finding("Would thresholds by bytes help?", _bytes),
    ),
    bars=("written by a one-file commit",),
    seeds=1,
    derived=True,
)
