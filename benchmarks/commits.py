"""Measure what a commit costs: V4 (one root manifest) compared with PyIceberg on the same table of v2, and with v3.

``python benchmarks/commits.py`` makes the tables (`generate.py`, and a V4 table of the same files), measures, prints
and writes ``results/commits.md``. Everything runs in one process, iceexplore and PyIceberg in turn, each commit on a
table that has just been opened. Only the commit itself is timed; for iceexplore that includes making the statistics of
the new files. "CPU" counts all threads of the process, and is more reliable than the clock while other programs run.
The best of several runs counts; PyIceberg's rewrite of every manifest (minutes) is timed once. Files are written to a
local disk, in a temporary folder.
"""

from __future__ import annotations

import argparse
import os
import platform
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _peer import Measured, Peer, clocked
from _tables import forget, locations, v2_table, v4_table

import iceexplore
from iceexplore.simulation import Simulation

HERE = Path(__file__).parent
KINDS = {"metadata": "json", "manifest-list": "root", "manifest": "manifest", "puffin": "dv"}
#: Tables of which one append is compared: files, leaves.
GROWTH = ((100_000, 10), (100_000, 100), (1_000_000, 100), (100_000, 1000))


@dataclass
class Case:
    """Runs of one commit by one writer."""

    name: str
    who: str
    runs: list[Measured] = field(default_factory=list)

    @property
    def best(self) -> Measured:
        """The quickest, by CPU and by the clock each on its own."""
        first = self.runs[0]
        return Measured(min(r.wall for r in self.runs), min(r.cpu for r in self.runs), first.files)


def opened(path: Path, format_version: int | None = None, **layout: Any) -> Simulation:
    """A simulation on a table just opened; nothing of it is in the cache."""
    forget()
    return iceexplore.open(path).simulate(format_version=format_version, **layout)


def commit(simulation: Simulation, act: Callable[[Simulation], Any]) -> Measured:
    """Time one commit."""
    before = len(simulation.writes)
    wall, cpu = clocked(lambda: act(simulation))
    written = list(simulation.writes)[before:]
    return Measured(wall, cpu, tuple(sorted((KINDS[w.kind], w.length) for w in written)))


def once(path: Path, act: Callable[[Simulation], Any], format_version: int | None = None) -> Measured:
    """Time one commit on a table just opened."""
    simulation = opened(path, format_version)
    try:
        return commit(simulation, act)
    finally:
        simulation.close()


def appends(v2: Path, v4: Path, peer: Peer, repeat: int) -> list[Case]:
    """One file, appended: on V4 leaves, on old leaves under a V4 root, and by PyIceberg on v2."""
    bounds = {i: (struct.pack("<q", 1), struct.pack("<q", 99)) for i in range(1, 11)}
    cases = [Case("append 1 file", w) for w in ("iceexplore, V4", "iceexplore, first V4 commit on v2", "PyIceberg, v2")]
    for number in range(repeat):
        cases[0].runs.append(once(v4, lambda s: s.append(1, rows=1000)))
        cases[1].runs.append(once(v2, lambda s: s.append(1, rows=1000), 4))
        cases[2].runs.append(peer.append([Peer.data_file(f"{v2.parent.parent}/data/new-{number}.parquet", bounds)]))
    return cases


def deletes(v2: Path, v4: Path, leaves: int, repeat: int) -> list[Case]:
    """One file of each leaf, deleted: nothing read before, and then others of the same leaves."""
    cases = []
    for who, path, to in (("iceexplore, V4", v4, None), ("iceexplore, first V4 commit on v2", v2, 4)):
        first, second = (locations(iceexplore.open(path), leaves, slice(i, i + 1)) for i in (17, 18))
        cold, warm = Case(f"delete {leaves} files, leaves not read yet", who), Case("the same, leaves cached", who)
        for _ in range(repeat):
            simulation = opened(path, to)
            cold.runs.append(commit(simulation, lambda s, f=first: s.delete_files(f)))  # type: ignore[misc]
            warm.runs.append(commit(simulation, lambda s, f=second: s.delete_files(f)))  # type: ignore[misc]
            simulation.close()
        cases += [cold, warm]
    return cases


def further(v2: Path, v4: Path, files: int, leaves: int, repeat: int) -> list[Case]:
    """Other sizes of commits, v3 beside V4, each table read before: what a writer that goes on committing sees."""
    count = min(1000, files)
    targets = locations(iceexplore.open(v4), leaves, slice(0, -(-count // leaves)))[:count]
    acts: dict[str, Callable[[Simulation], Any]] = {
        "append 1 file": lambda s: s.append(1, rows=1000),
        "append 100 files": lambda s: s.append(100, rows=1000),
        "append 10,000 files": lambda s: s.append(10_000, rows=1000),
        "row delta on 1 file": lambda s: s.row_delta(deletes={targets[0]: [0]}),
        f"row delta on {count:,} files": lambda s: s.row_delta(deletes={target: [0] for target in targets}),
    }
    cases = []
    for name, act in acts.items():
        pair = [Case(name, "v3"), Case(name, "V4")]
        for _ in range(repeat):
            for case, path, to in zip(pair, (v2, v4), (3, None), strict=True):
                simulation = opened(path, to)
                simulation.set_properties({"benchmark": "upgraded"})
                locations(simulation.table, leaves, slice(0, 1))
                case.runs.append(commit(simulation, act))
                simulation.close()
        cases += pair
    return cases


def growth() -> list[tuple[int, int, Measured]]:
    """One append to tables of several sizes."""
    return [
        (files, leaves, once(v4_table(files, leaves)[0], lambda s: s.append(1, rows=1000))) for files, leaves in GROWTH
    ]


def _row(case: Case) -> str:
    m = case.best
    kinds = ", ".join(
        f"{m.count(kind):,} {name}"
        for kind, name in (("root", "root or list"), ("manifest", "manifests"), ("dv", "Puffin"))
        if m.count(kind)
    )
    return (
        f"| {case.name} | {case.who} | {m.wall:.3f} | {m.cpu:.3f} | {len(case.runs)} | {kinds} | {m.size():,} "
        f"| {m.size('json'):,} |"
    )


_HEAD = [
    "| commit | by | s | CPU, s | runs | files beside the JSON | their bytes | JSON, bytes |",
    "|---|---|--:|--:|--:|---|--:|--:|",
]


def _checks(appended: list[Case], deleted: list[Case], peer_delete: Measured | None, grown: Any) -> list[str]:
    ours, old, theirs = (case.best for case in appended)
    cold = deleted[0].best
    by = {(files, leaves): m.size("root") for files, leaves, m in grown}
    few, many, large, most = (by[shape] for shape in GROWTH)
    checks = [
        ("an append of one file writes one metadata file beside the JSON", ours.count() == 1 == old.count()),
        (f"fewer than PyIceberg's {theirs.count()}", ours.count() < theirs.count()),
        (
            f"and no slower: {ours.wall:.3f} s ({ours.cpu:.3f} s of CPU) against {theirs.wall:.3f} ({theirs.cpu:.3f})",
            ours.wall <= theirs.wall and ours.cpu <= theirs.cpu,
        ),
        (
            f"its bytes grow with the leaves ({few:,} with 10, {many:,} with 100, {most:,} with 1,000), not with the "
            f"files ({large:,} with ten times as many in 100 leaves)",
            few < many < most and abs(large - many) < 0.1 * many,
        ),
        (
            "deleting a file of each leaf writes no leaf, and one metadata file",
            all(c.best.count("manifest") == 0 and c.best.count() == 1 for c in deleted),
        ),
    ]
    if peer_delete is not None:
        times, cpu = peer_delete.wall / cold.wall, peer_delete.cpu / cold.cpu
        warm = peer_delete.wall / deleted[1].best.wall
        text = (
            f"{times:.0f} times as fast as PyIceberg's rewrite of {peer_delete.count('manifest') - 1} manifests, by "
            f"CPU {cpu:.0f} times (with the leaves cached {warm:.0f} times)"
        )
        checks.append((f"{text}; wanted: 100", min(times, cpu) >= 100))
    return [f"- {'met' if ok else '**missed**'}: {text}" for text, ok in checks]


def _growth_rows(grown: list[tuple[int, int, Measured]]) -> list[str]:
    return [
        "| data files | leaves | root, bytes | s | CPU, s |",
        "|--:|--:|--:|--:|--:|",
        *[f"| {f:,} | {n} | {m.size('root'):,} | {m.wall:.3f} | {m.cpu:.3f} |" for f, n, m in grown],
    ]


def report(options: argparse.Namespace) -> str:
    """Measure everything and give the report."""
    v2 = v2_table(options.files, options.leaves)
    v4, rewritten = v4_table(options.files, options.leaves)
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(v2, Path(folder) / "table")
        appended = appends(v2, v4, peer, options.repeat)
        print("\n".join(_row(c) for c in appended), flush=True)
        deleted = deletes(v2, v4, options.leaves, min(3, options.repeat))
        print("\n".join(_row(c) for c in deleted), flush=True)
        peer_delete = None
        if not options.no_rewrite:
            print(f"PyIceberg rewrites {options.leaves} manifests: minutes", flush=True)
            peer_delete = peer.delete(locations(iceexplore.open(v2), options.leaves, slice(17, 18)))
            deleted.append(Case(f"delete {options.leaves} files", "PyIceberg, v2", [peer_delete]))
            print(_row(deleted[-1]), flush=True)
    compared = further(v2, v4, options.files, options.leaves, min(3, options.repeat))
    print("\n".join(_row(c) for c in compared), flush=True)
    grown = growth()
    own = [c for c in deleted if c.who != "PyIceberg, v2"]
    lines = [
        "# What a commit costs",
        "",
        "Made by `python benchmarks/commits.py`; the top of that file describes how it measures.",
        "",
        f"Table: {options.files:,} data files in {options.leaves} manifests, 10 columns with statistics. "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in ("pyiceberg", "pyarrow", "datafusion"))
        + ".",
        "",
        *_HEAD,
        *[_row(c) for c in [*appended, *deleted]],
        "",
        *_checks(appended, own, peer_delete, grown),
        "",
        "Where the seconds are far above those of CPU, other programs ran on the machine: then CPU is what to compare.",
        "",
        "Old leaves are v2's Avro manifests under a V4 root, as they are right after an upgrade: to find the files in "
        "them, they are inflated and decoded.",
        "",
        "## One append to tables of other sizes",
        "",
        *_growth_rows(grown),
        "",
        "## v3 beside V4",
        "",
        "On the same files; the leaves were read before.",
        "",
        *_HEAD,
        *[_row(c) for c in compared],
        "",
    ]
    if rewritten is not None:
        lines += [
            f"Making the V4 table (`rewrite_manifests` of {options.leaves} v2 manifests) took {rewritten.wall:.0f} s "
            f"({rewritten.cpu:.0f} s of CPU).",
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description="Time, files and bytes of commits, against PyIceberg and v3.")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each append (%(default)s)")
    parser.add_argument("--files", type=int, default=1_000_000, help="data files of the table (%(default)s)")
    parser.add_argument("--leaves", type=int, default=100, help="its manifests (%(default)s)")
    parser.add_argument("--no-rewrite", action="store_true", help="leave PyIceberg's rewrite of all manifests out")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "commits.md", help="report (%(default)s)")
    options = parser.parse_args()
    text = report(options)
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
