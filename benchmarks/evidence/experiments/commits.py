"""One-file commits, by number of columns: what V4 writes and reads beside v3, its footers, and fewer statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import cramjam

from .._experiment import Answer, Case, Experiment, Finding, Numbers, case, ratio, require
from .._tables import LAYOUTS, costs, footer, table

__all__ = ["COMMITS"]

_FEW = 5
_DRAFT = "V4 draft, Parquet"
_LAYOUTS = {**LAYOUTS, _DRAFT: {"format_version": 4, "dialect": "v4-draft"}}


def _measure(seed: int, *, commits: Mapping[int, int]) -> Iterator[tuple[Case, str, str, float]]:
    for columns, count in commits.items():
        for with_statistics in (None, _FEW) if columns == max(commits) else (None,):
            for layout, options in _LAYOUTS.items():
                s = table(seed, columns, with_statistics=with_statistics, **options)
                for _ in range(count):
                    s.append(files=1, rows=1000)
                at = case(columns=columns, commits=count, statistics=_statistics(with_statistics), layout=layout)
                for metric, unit, value in costs(s):
                    yield at, metric, unit, value
                if foot := footer(s):
                    yield at, "footer", "bytes", len(foot)
                    yield at, "footer, zstd", "bytes", len(bytes(cramjam.zstd.compress(foot[:-8], level=3))) + 8
                s.close()


def _statistics(columns: int | None) -> str:
    return "all columns" if columns is None else f"{columns} columns"


def _at(n: Numbers, metric: str, columns: str, layout: str, statistics: str = "all columns") -> float:
    commits = next(dict(c)["commits"] for c in n.cases() if dict(c)["columns"] == columns)
    return n.mean(metric, columns=columns, commits=commits, statistics=statistics, layout=layout)


def _ends(n: Numbers) -> tuple[str, str]:
    columns = n.choices("columns")
    return columns[0], columns[-1]


def _commits(n: Numbers, columns: str) -> str:
    return next(dict(c)["commits"] for c in n.cases() if dict(c)["columns"] == columns)


def _bytes(n: Numbers) -> Answer:
    few, many = _ends(n)
    times = {
        c: _at(n, "written by a commit", c, "V4, Parquet") / _at(n, "written by a commit", c, "v3") for c in (few, many)
    }
    require(times[few] > 1, "V4 writes more than v3 with few columns")
    require(times[many] > times[few], "the more columns, the more V4 writes beside v3")
    a, b = ratio(times[few], 1), ratio(times[many], 1)
    return Answer(
        f"{a} to {b} times",
        f"Commits of one file write {a} times v3's bytes with {few} columns ({_commits(n, few)} commits) and {b} times "
        f"with {many} columns ({_commits(n, many)} commits), if all columns have statistics and the root is Parquet.",
    )


def _footer(n: Numbers) -> Answer:
    _, many = _ends(n)
    foot, root = (_at(n, metric, many, "V4, Parquet") for metric in ("footer", "root or list"))
    require(foot > root / 2, "most of the root is footer")
    return Answer(
        f"{foot / root:.0%}",
        f"Of the last root with {many} columns, {root:,.0f} bytes, the Parquet footer takes {foot:,.0f} "
        f"({foot / root:.0%}).",
    )


def _requests(n: Numbers) -> Answer:
    few, _ = _ends(n)
    v3, v4 = (_at(n, "cold plan, GETs", few, layout) for layout in ("v3", "V4, Parquet"))
    a, b = (_at(n, "cold plan", few, layout) for layout in ("v3", "V4, Parquet"))
    p3, p4 = (_at(n, "PUTs of a commit", few, layout) for layout in ("v3", "V4, Parquet"))
    require(v4 < v3 and b < a and p4 < p3, "V4 saves requests, and bytes of cold plans")
    return Answer(
        f"{v4:.0f} instead of {v3:.0f}",
        f"After {_commits(n, few)} commits of one file with {few} columns, a cold plan makes {v4:.0f} requests "
        "instead of "
        f"{v3:.0f} and reads {ratio(b, a)} times the bytes; a commit makes {p4:.0f} PUTs instead of {p3:.0f}.",
    )


def _avro(n: Numbers) -> Answer:
    few, many = _ends(n)
    times = {
        c: _at(n, "written by a commit", c, "V4, Avro") / _at(n, "written by a commit", c, "V4, Parquet")
        for c in (few, many)
    }
    still = _at(n, "written by a commit", many, "V4, Avro") / _at(n, "written by a commit", many, "v3")
    require(max(times.values()) < 1, "Avro roots of these commits are smaller")
    require(still > 1, "Avro roots are still larger than what v3 writes")
    return Answer(
        f"{times[few]:.2f} to {times[many]:.2f} times",
        f"Roots in Avro make these commits write {times[few]:.2f} times the bytes of Parquet with {few} columns and "
        f"{times[many]:.2f} times with {many}; with {many} that is still {ratio(still, 1)} times v3's.",
    )


def _fewer(n: Numbers) -> Answer:
    _, many = _ends(n)
    few = f"{_FEW} columns"
    v4, v3 = (_at(n, "written by a commit", many, layout, few) for layout in ("V4, Parquet", "v3"))
    full = _at(n, "written by a commit", many, "V4, Parquet")
    require(v4 < v3, "with few statistics V4 writes less than v3")
    return Answer(
        f"{v4 / v3:.2f} times",
        f"If only {_FEW} of {many} columns have statistics, in both versions, a one-file commit of V4 writes "
        f"{v4 / v3:.2f} times v3's bytes ({v4:,.0f} instead of {v3:,.0f}; with all statistics {full:,.0f}).",
    )


def _draft(n: Numbers) -> Answer:
    few, many = _ends(n)
    times = {
        c: _at(n, "written by a commit", c, _DRAFT) / _at(n, "written by a commit", c, "V4, Parquet")
        for c in (few, many)
    }
    v3 = _at(n, "written by a commit", many, _DRAFT) / _at(n, "written by a commit", many, "v3")
    require(v3 > 1, "the draft writes more than v3 with many columns")
    return Answer(
        f"{times[few]:.2f} to {times[many]:.2f} times",
        f"Roots of the V4 draft make these commits write {times[few]:.2f} times the bytes of the proposal's with {few} "
        f"columns and {times[many]:.2f} times with {many}, where that is {ratio(v3, 1)} times v3's.",
    )


COMMITS = Experiment(
    name="commits",
    title="One-file commits, by number of columns",
    method=(
        "A new table gets commits of one data file each; the statistics are of all columns, or (table property "
        "`write.metadata.metrics.default=none`) of five. The root is never flushed. v3 writes a manifest and a "
        "manifest "
        "list for each commit, V4 a root. `footer, zstd` is the same Parquet footer compressed with zstd, which no "
        "reader accepts: it shows what a coded footer could save. (An audit of this library counted 2.1 and 8.9 "
        "times v3's "
        "bytes for 10 and 100 columns, while roots still held lengths of columns of fixed length, which the proposal "
        "does "
        "not have.)"
    ),
    measure=_measure,
    findings=(
        Finding("What does a one-file commit write?", _bytes),
        Finding("How much of a small root is Parquet footer?", _footer),
        Finding("What do plans save for it?", _requests),
        Finding("Do roots in Avro help?", _avro, first=False),
        Finding("Does the V4 draft write less than the proposal?", _draft),
        Finding("Do fewer statistics help?", _fewer, first=False),
    ),
    bars=("written by a commit", "cold plan", "cold plan, GETs"),
    quick={"commits": {10: 12, 50: 3}},
    full={"commits": {10: 60, 30: 20, 100: 20}},
    metrics=(
        "written by a commit",
        "PUTs of a commit",
        "cold plan",
        "cold plan, GETs",
        "warm plan",
        "root or list",
        "footer",
        "footer, zstd",
    ),
)
