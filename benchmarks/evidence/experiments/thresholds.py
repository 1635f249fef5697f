"""Flush thresholds: what they cost, how many files a root may hold by each criterion, and thresholds by bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, require
from .._tables import LAYOUTS, planned, sizes, table, written

__all__ = ["THRESHOLDS"]

_V3 = "v3"
#: CPU time of this library for a file in a Parquet root, and for a root of 100 leaves without files: results/flush.md.
_CPU_US_PER_FILE, _CPU_MS_OF_A_ROOT = 3.87, 20.5
_MEGABYTES_PER_SECOND, _ROUND_TRIP_MS = 100, 50


def _measure(
    seed: int,
    *,
    commits: int,
    thresholds: tuple[int, ...],
    counts: Mapping[int, tuple[int, ...]],
    wide: tuple[int, int, int],
) -> Iterator[tuple[Case, str, str, float]]:
    for files in (1, 20):
        for threshold in (_V3, *thresholds):
            options: dict[str, Any] = {"format_version": 3} if threshold == _V3 else {"flush_data_files": threshold}
            yield from _stream(seed, files, str(threshold), commits, options)
    for columns, sizes_of in counts.items():
        for layout in ("V4, Parquet", "V4, Avro"):
            for files in sizes_of:
                s = table(seed, columns, flush_data_files=1 << 30, **LAYOUTS[layout])
                s.append(files=files, rows=1000)
                yield (
                    case(columns=columns, layout=layout, files_in_the_root=files),
                    "root",
                    "bytes",
                    sizes(s)["manifest-list"],
                )
                s.close()
    columns, turns, files = wide
    base = counts[min(counts)]
    for name in ("4,000 files", "as many bytes as 4,000 files of 10 columns"):
        threshold = 4_000
        if name != "4,000 files":
            threshold = int(4_000 * _slope(seed, min(counts), base) / _slope(seed, columns, base))
        options = {"flush_data_files": threshold, "format_version": 4}
        s, cold = table(seed, columns, **options), []
        for _ in range(turns):
            s.append(files=files, rows=1000)
            cold.append(planned(s)["cold"])
        at = case(columns=columns, commits=turns, files_per_commit=files, flush_above=name)
        yield at, "threshold", "files", threshold
        yield at, "written by a commit", "bytes", written(s)[0]
        yield at, "cold plan, mean", "bytes", sum(c["bytes"] for c in cold) / turns
        yield at, "cold plan, GETs, mean", "requests", sum(c["requests"] for c in cold) / turns
        s.close()


def _slope(seed: int, columns: int, counts: tuple[int, ...]) -> float:
    """Return the bytes that a file adds to a Parquet root."""
    found = []
    for files in (counts[0], counts[-1]):
        s = table(seed, columns, flush_data_files=1 << 30, **LAYOUTS["V4, Parquet"])
        s.append(files=files, rows=1000)
        found.append(sizes(s)["manifest-list"])
        s.close()
    return (found[1] - found[0]) / (counts[-1] - counts[0])


def _stream(
    seed: int, files: int, name: str, commits: int, options: Mapping[str, Any]
) -> Iterator[tuple[Case, str, str, float]]:
    s, cold = table(seed, 10, **options), []
    for turn in range(commits):
        s.append(files=files, rows=1000)
        if turn % 4 == 3 or turn == commits - 1:
            cold.append(planned(s)["cold"])
    at = case(files_per_commit=files, commits=commits, flush_above=name)
    size, puts = written(s)
    yield at, "written by a commit", "bytes", size
    yield at, "PUTs of a commit", "requests", puts
    yield at, "cold plan, mean", "bytes", sum(c["bytes"] for c in cold) / len(cold)
    yield at, "last cold plan, GETs", "requests", cold[-1]["requests"]
    s.close()


def _at(n: Numbers, metric: str, files: str, threshold: str) -> float:
    commits = next(dict(c)["commits"] for c in n.cases() if "commits" in dict(c))
    return n.mean(metric, files_per_commit=files, commits=commits, flush_above=threshold)


def _cost(n: Numbers) -> Answer:
    commits = next(dict(c)["commits"] for c in n.cases() if "commits" in dict(c))
    none, some = "0", [t for t in n.choices("flush above") if t.isdigit()][1]
    a, b = (_at(n, "last cold plan, GETs", "1", t) for t in (none, some))
    c, d = (_at(n, "written by a commit", "1", t) for t in (none, some))
    v3 = _at(n, "written by a commit", "1", _V3)
    require(b < a and d < c and v3 < d, "a threshold saves both, and v3 writes fewer bytes")
    return Answer(
        f"{b:.0f} instead of {a:.0f}",
        f"After {commits} commits of one file with 10 columns, keeping up to {some} files in the root instead of none "
        f"leaves a cold plan {b:.0f} requests instead of {a:.0f}, and a commit writes {d:,.0f} bytes instead of "
        f"{c:,.0f} "
        f"(v3: {v3:,.0f}).",
    )


def _per_file(n: Numbers, columns: str, layout: str = "V4, Parquet") -> tuple[float, float]:
    """Return the bytes of a root without files, by a line through its smallest and largest size, and of each file."""
    counts = [
        dict(c)["files in the root"]
        for c in n.cases()
        if dict(c).get("columns") == columns and dict(c).get("layout") == layout
    ]
    low, high = (n.mean("root", columns=columns, layout=layout, files_in_the_root=f) for f in (counts[0], counts[-1]))
    first, last = (int(f.replace(",", "")) for f in (counts[0], counts[-1]))
    slope = (high - low) / (last - first)
    return low - slope * first, slope


def _criteria(n: Numbers) -> Answer:
    columns = n.choices("columns")[0]
    base, each = _per_file(n, columns)
    transfer_us = 2 * each / _MEGABYTES_PER_SECOND
    alone = (_ROUND_TRIP_MS * 1000 - 2 * base / _MEGABYTES_PER_SECOND) / transfer_us
    both = transfer_us + _CPU_US_PER_FILE
    whole = (_ROUND_TRIP_MS - _CPU_MS_OF_A_ROOT) * 1000 / both
    half = _ROUND_TRIP_MS / 2 * 1000 / both
    require(whole < alone and half < whole and 3_000 < half < 5_500, "the three criteria, the default's the strictest")
    return Answer(
        f"{alone:,.0f}, {whole:,.0f}, {half:,.0f}",
        f"With a round trip of {_ROUND_TRIP_MS} ms, {_MEGABYTES_PER_SECOND} MB/s and {columns} columns, a root has "
        "room for "
        f"{alone:,.0f} files if it may take one round trip by transfer alone, for {whole:,.0f} if this library's CPU "
        "time "
        f"({_CPU_US_PER_FILE} µs for a file, {_CPU_MS_OF_A_ROOT} ms for a root of 100 leaves; results/flush.md) "
        "counts as "
        f"well, and for {half:,.0f} if files may add half of it, DVs the other half, and what is paid anyway does not "
        "count: the default of 4,000 rounds the last one.",
    )


def _columns(n: Numbers) -> Answer:
    few, many = n.choices("columns")[0], n.choices("columns")[-1]
    a, b = _per_file(n, few)[1], _per_file(n, many)[1]
    require(b > 2 * a, "files of many columns take more bytes")
    return Answer(
        f"{a:.0f} to {b:,.0f} bytes",
        f"A file adds {a:.0f} bytes to a Parquet root with {few} columns and {b:,.0f} with {many}: the default of "
        "4,000 "
        f"files is {4_000 * a / 1e6:.1f} MB of root with the former and {4_000 * b / 1e6:.1f} MB with the latter.",
    )


def _by_bytes(n: Numbers) -> Answer:
    at = next(dict(c) for c in n.cases() if dict(c).get("flush above", "").endswith("columns"))
    names = {"columns": at["columns"], "commits": at["commits"], "files_per_commit": at["files per commit"]}

    def mean(metric: str, rule: str) -> float:
        return n.mean(metric, **names, flush_above=rule)

    rules = ("4,000 files", at["flush above"])
    size = [mean("written by a commit", r) for r in rules]
    gets = [mean("cold plan, GETs, mean", r) for r in rules]
    require(size[1] < size[0] and gets[1] >= gets[0], "fewer bytes, and no fewer requests")
    return Answer(
        f"{size[1] / size[0]:.2f} times",
        f"With {at['columns']} columns and {at['commits']} commits of {at['files per commit']} files, flushing at as "
        "many "
        f"bytes as 4,000 files of 10 columns have ({mean('threshold', rules[1]):,.0f} files) writes "
        f"{size[1] / size[0]:.2f} "
        f"times the bytes of flushing at 4,000 files, and a cold plan makes {gets[1]:.1f} GETs on average instead of "
        f"{gets[0]:.1f}.",
    )


def _avro(n: Numbers) -> Answer:
    texts, smaller = [], []
    for columns in n.choices("columns"):
        counts = list(
            dict.fromkeys(
                dict(c)["files in the root"]
                for c in n.cases()
                if dict(c).get("columns") == columns and "files in the root" in dict(c)
            )
        )
        times = {
            f: n.mean("root", columns=columns, layout="V4, Avro", files_in_the_root=f)
            / n.mean("root", columns=columns, layout="V4, Parquet", files_in_the_root=f)
            for f in counts
        }
        smaller.append(times[counts[0]] < 1 < times[counts[-1]])
        texts.append(
            f"with {columns} columns {times[counts[0]]:.2f} times with {counts[0]} file and {times[counts[-1]]:.2f} "
            f"times with {counts[-1]}"
        )
    require(all(smaller), "Avro is smaller for small roots and larger for large ones")
    return Answer("below some size", f"A root in Avro has, of Parquet's bytes, {'; '.join(texts)}.")


THRESHOLDS = Experiment(
    name="thresholds",
    title="When to flush the root",
    method=(
        "Data files stay in the root up to a threshold; then all of them move to a leaf. A low threshold writes a leaf "
        "in nearly every commit and leaves many small ones; a high one rewrites a large root. Leaves are not merged in "
        "V4; v3 merges manifests at 100, its default. Then roots of several sizes, and a wide table with the default "
        'threshold beside one that counts bytes. The proposal: "Ideally the time to do I/O on the root node should be '
        'close to the round trip latency of cloud storage systems."'
    ),
    measure=_measure,
    findings=(
        Finding("What does a flush threshold save?", _cost),
        Finding("How many files may a root hold (22,096, 5,041 or 4,000)?", _criteria),
        Finding("What does a file in the root take, by columns?", _columns, first=False),
        Finding("From which size is a Parquet root smaller than Avro?", _avro, first=False),
        Finding("Does a threshold by bytes help wide tables?", _by_bytes, first=False),
    ),
    bars=("written by a commit", "cold plan, mean", "last cold plan, GETs"),
    quick={"commits": 10, "thresholds": (0, 8), "counts": {10: (1, 300), 50: (1, 100)}, "wide": (50, 5, 300)},
    full={
        "commits": 32,
        "thresholds": (0, 8, 64),
        "counts": {10: (1, 10, 100, 1000, 4000), 100: (1, 10, 100, 1000)},
        "wide": (100, 6, 300),
    },
    seeds=2,
)
