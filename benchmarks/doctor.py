"""Measure `t.check()` at level metadata on large tables, on a table of many snapshots, and on many small tables.

``python benchmarks/doctor.py`` makes the tables (`generate.py`), with an empty file in place of each data and delete
file, since the level looks whether they exist. Every case runs in a process of its own, imports included. Memory is the
peak of that process. There is no peer: no other tool checks tables. The limits are those that the doctor is to keep.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from generate import DATA, Shape, generate

HERE = Path(__file__).parent
#: The position of the first snapshot with the fault of the case ``since``.
FIRST_WRONG = 300


@dataclass(frozen=True)
class Case:
    """What is measured, and its limits.

    Attributes
    ----------
    make
        Makes the table or folder, unless it is there, and returns its path.
    seconds, megabytes
        The limits.
    """

    title: str
    make: Callable[[], Path]
    seconds: float
    megabytes: float


def _with_files(shape: Shape) -> Path:
    """Return a table's metadata file; its data and delete files exist, and are empty."""
    import iceexplore as ix

    path = generate(shape)
    done = path.parent / "files-made"
    if not done.exists():
        for location in ix.open(path).inspect.files.arrow()["file_path"].to_pylist():
            file = Path(str(location).removeprefix("file://"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        done.touch()
    return path


def _damaged_since() -> Path:
    """Return a table of 1,000 snapshots whose lists have a wrong count of one manifest from the 301st on."""
    import fastavro

    path = _with_files(Shape(files=10_001, deletes=0, manifests=1_000))
    done = path.parent / "counts-damaged"
    if not done.exists():
        snapshots = json.loads(path.read_bytes())["snapshots"]
        for snapshot in snapshots[FIRST_WRONG:]:
            file = Path(snapshot["manifest-list"].removeprefix("file://"))
            with file.open("rb") as source:
                reader = fastavro.reader(source)
                schema, rows = reader.writer_schema, list(reader)
            oldest = next(row for row in rows if row["added_snapshot_id"] == snapshots[0]["snapshot-id"])
            oldest["added_rows_count"] += 1
            with file.open("wb") as out:
                fastavro.writer(out, schema, rows)
        done.touch()
    return path


def _small_tables() -> Path:
    """Return a warehouse folder of 500 tables of three commits each."""
    import iceexplore as ix

    folder = DATA / "warehouse-500"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        for i in range(500):
            lab = ix.create(folder / f"db{i % 10}" / f"t{i}", {"id": "long", "k": "string"}, partition_by="k")
            for n in range(3):
                lab.append({"id": [n, n + 1], "k": ["a", "b"]})
        (folder / "made").touch()
    return folder


CASES = {
    "large": Case("100,000 data files, 10,000 delete files", lambda: _with_files(Shape(files=100_000)), 10, 1024),
    "snapshots": Case(
        "1,000 snapshots of 10 files each",
        lambda: _with_files(Shape(files=10_000, deletes=0, manifests=1_000)),
        30,
        1024,
    ),
    "since": Case("one of 1,000 snapshots, and the commit that a fault dates to", _damaged_since, 10, 1024),
    "million": Case(
        "1,000,000 data files, 100,000 delete files",
        lambda: _with_files(Shape(files=1_000_000, manifests=101)),
        60,
        3072,
    ),
    "catalog": Case("`ix.check_catalog`: 500 tables of three commits", _small_tables, 60, 1024),
}


def _child(case: str, path: str) -> dict[str, Any]:
    start = time.perf_counter()
    import iceexplore as ix

    if case == "catalog":
        found = sorted({str(one.severity or "ok") for one in ix.check_catalog(path).tables})
    else:
        every = "all" if case == "snapshots" else "current"
        table = ix.open(path)
        report = table.check(snapshots=every)
        found = sorted({f"{f.severity}: {f.code}" for f in report})
        if case == "since":
            dated = next(f for f in report if f.code == "totals-differ").since
            assert dated is not None
            assert dated.snapshot_id == table.snapshots[FIRST_WRONG].snapshot_id
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "mb": peak / (2**20 if sys.platform == "darwin" else 2**10), "found": found}


def _measure(case: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", case, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE.parent)})
    if done.returncode:
        raise SystemExit(f"{case} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _report(rows: list[tuple[Case, list[dict[str, Any]]]]) -> str:
    lines = [
        "# Checking tables",
        "",
        "Made by `python benchmarks/doctor.py`; the top of that file describes how it measures. "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"pyarrow {version('pyarrow')}.",
        "",
        "| what, level metadata | best, s | median, s | runs | memory, MB | limits | |",
        "|---|--:|--:|--:|--:|---|---|",
    ]
    for case, runs in rows:
        seconds, memory = [r["seconds"] for r in runs], max(r["mb"] for r in runs)
        met = statistics.median(seconds) <= case.seconds and memory <= case.megabytes
        lines.append(
            f"| {case.title} | {min(seconds):.1f} | {statistics.median(seconds):.1f} | {len(runs)} | {memory:.0f} "
            f"| {case.seconds:g} s, {case.megabytes:g} MB | {'met' if met else '**missed**'} |"
        )
    lines += ["", "Found, as these tables are made without maintenance:", ""]
    lines += [
        f"- {case.title}: {', '.join(f'`{one}`' for one in runs[0]['found']) or 'nothing'}" for case, runs in rows
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description="Time and memory of t.check() on large and on many tables.")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each case (%(default)s)")
    parser.add_argument("--only", choices=CASES, action="append", help="cases; by default all")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "doctor.md", help="report (%(default)s)")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(_child(*args.child)))
        return
    rows = []
    for name in args.only or CASES:
        path = CASES[name].make()
        rows.append((CASES[name], [_measure(name, path) for _ in range(args.repeat)]))
    text = _report(rows)
    print(text)
    args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
