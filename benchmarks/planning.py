"""Measure scan planning, compared with PyIceberg's ``plan_files``: time, CPU and memory, for the same result.

``python benchmarks/planning.py`` makes the tables (`generate.py`), runs every case in a process of its own, both
planners in turn, prints a table and writes ``results/planning.md``. Caches are empty when the clock starts, but the
metadata file has been read and imports are done. Both must plan the same data files, each with the same deletes; that
is compared after the clock has stopped. Memory is the peak of the process while it planned (see `metadata.py`). The
last case is a table of the V4 proposal with a million data files, which PyIceberg does not read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from metadata import _memory

HERE = Path(__file__).parent
IMPORTS = {
    "iceexplore": ["iceexplore.table", "iceexplore.planning", "datafusion", "fastavro"],
    "pyiceberg": ["pyiceberg.table", "pyiceberg.io.pyarrow"],
}


@dataclass(frozen=True)
class Case:
    """One scan that is planned: of a table, with a filter; ``faster`` is how many times as fast it is to be."""

    name: str
    what: str
    table: str
    where: str
    faster: float | None


CASES = (
    Case("none", "every file, no filter", "plain", "", 10),
    Case("kept", "a filter that prunes nothing", "plain", "id >= 0", 10),
    Case("kept-partitioned", "the same, partitioned", "partitioned", "id >= 0", 10),
    Case("files", "a filter that prunes files, no manifest", "plain", "ts < '2024-01-10T00:00:00+00:00'", None),
    Case("manifests", "a filter that prunes manifests", "partitioned", "ts < '2024-01-10T00:00:00+00:00'", 4),
)


def _iceexplore(path: str, where: str) -> tuple[Callable[[], Any], Callable[[Any], Iterable[tuple[str, list[str]]]]]:
    import iceexplore

    table = iceexplore.open(path)

    def pairs(plan: Any) -> Iterable[tuple[str, list[str]]]:
        tasks = plan.tasks_arrow
        deletes = [tasks[n].to_pylist() for n in ("position_deletes", "equality_deletes")]
        return zip(tasks["file_path"].to_pylist(), (a + b for a, b in zip(*deletes, strict=True)), strict=True)

    return lambda: table.plan(where or None), pairs


def _pyiceberg(path: str, where: str) -> tuple[Callable[[], Any], Callable[[Any], Iterable[tuple[str, list[str]]]]]:
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(path)
    scan = table.scan(row_filter=where) if where else table.scan()

    def pairs(tasks: Any) -> Iterable[tuple[str, list[str]]]:
        return ((task.file.file_path, [d.file_path for d in task.delete_files]) for task in tasks)

    return lambda: list(scan.plan_files()), pairs


def _child(who: str, path: str, where: str) -> dict[str, Any]:
    for name in IMPORTS[who]:
        import_module(name)
    run, pairs = {"iceexplore": _iceexplore, "pyiceberg": _pyiceberg}[who](path, where)
    _memory(reset=True)
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    seconds, work, mb = time.perf_counter() - wall, time.process_time() - cpu, _memory()
    lines = sorted(f"{name}\t{sorted(deletes)}" for name, deletes in pairs(result))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return {"seconds": seconds, "cpu": work, "mb": mb, "files": len(lines), "digest": digest}


def _measure(who: str, path: str, where: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", who, path, where]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE.parent)})
    if done.returncode:
        raise SystemExit(f"{who}, {where!r} of {path}, failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _row(runs: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = [r["seconds"] for r in runs]
    return {
        "best": min(seconds),
        "median": statistics.median(seconds),
        "cpu": statistics.median(r["cpu"] for r in runs),
        "mb": statistics.median(r["mb"] for r in runs),
        "runs": len(runs),
        "files": runs[0]["files"],
    }


def run(paths: dict[str, Path], repeat: int, slow_repeat: int) -> dict[tuple[str, str], dict[str, Any]]:
    """Measure every case of both, in turn.

    Raises
    ------
    SystemExit
        The two do not plan the same files with the same deletes.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for case in CASES:
        runs: dict[str, list[dict[str, Any]]] = {who: [] for who in IMPORTS}
        for i in range(repeat):
            for who in IMPORTS:
                if who == "iceexplore" or i < slow_repeat:
                    runs[who].append(_measure(who, str(paths[case.table]), case.where))
        if len({r["digest"] for each in runs.values() for r in each}) != 1:
            counts = {who: each[0]["files"] for who, each in runs.items()}
            raise SystemExit(f"{case.name}: not the same files with the same deletes: {counts}")
        rows |= {(case.name, who): _row(each) for who, each in runs.items()}
    return rows


def _v4(path: Path, repeat: int) -> list[tuple[str, dict[str, Any]]]:
    cases = (("every file", ""), ("a filter that prunes all but a few manifests", "ts < '2024-01-10T00:00:00+00:00'"))
    return [(what, _row([_measure("iceexplore", str(path), where) for _ in range(repeat)])) for what, where in cases]


def _report(rows: dict[tuple[str, str], dict[str, Any]], big: list[tuple[str, dict[str, Any]]]) -> str:
    lines = [
        "# Planning scans",
        "",
        "Made by `python benchmarks/planning.py`; the top of that file describes how it measures.",
        "",
        "Tables of `generate.py`: version 2, 100,000 data files, 10,000 position delete files, 10 columns with "
        "statistics, 11 manifests; once unpartitioned, once by day and region. "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in ("pyiceberg", "pyarrow", "datafusion"))
        + ". Both planned the same files with the same deletes each time.",
        "",
        "| what | files | with | best, s | median, s | CPU, s | runs | memory, MB |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for case in CASES:
        title = case.what + (f" (`{case.where}`)" if case.where else "")
        for who in IMPORTS:
            r = rows[case.name, who]
            first = f"| {title} | {r['files']:,} " if who == "iceexplore" else "|  |  "
            lines.append(
                f"{first}| {who} | {r['best']:.2f} | {r['median']:.2f} | {r['cpu']:.2f} | {r['runs']} | {r['mb']:.0f} |"
            )
    lines.append("")
    for case in CASES:
        ours, theirs = rows[case.name, "iceexplore"], rows[case.name, "pyiceberg"]
        faster, memory = theirs["median"] / ours["median"], ours["mb"] / theirs["mb"]
        text = f"{case.what}: {faster:.1f} times as fast as PyIceberg, with {memory:.2f} times its memory"
        if case.faster is None:
            lines.append(f"- {text}")
        else:
            verdict = "met" if faster >= case.faster else "**missed**"
            lines.append(f"- {verdict}: {text} (wanted: {case.faster:g} times as fast)")
    lines += ["", "## A million data files in V4", ""]
    if big:
        lines += [
            "The proposal's layout, 100 leaf manifests; PyIceberg does not read it.",
            "",
            "| what | files | best, s | median, s | CPU, s | runs | memory, MB |",
            "|---|--:|--:|--:|--:|--:|--:|",
        ]
        lines += [
            f"| {what} | {r['files']:,} | {r['best']:.2f} | {r['median']:.2f} | {r['cpu']:.2f} | {r['runs']} "
            f"| {r['mb']:.0f} |"
            for what, r in big
        ]
    else:
        lines.append("Not measured in this run (`--v4-files 0`).")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description="Time and memory of planning scans, against PyIceberg.")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each case (%(default)s)")
    parser.add_argument("--slow-repeat", type=int, default=3, help="runs of PyIceberg's (%(default)s)")
    parser.add_argument("--files", type=int, default=100_000, help="data files of the tables (%(default)s)")
    parser.add_argument("--v4-files", type=int, default=1_000_000, help="data files of the V4 table (%(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "planning.md", help="report (%(default)s)")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(_child(*options.child)))
        return
    from _tables import v4_table
    from generate import Shape, generate

    paths = {
        "plain": generate(Shape(files=options.files)),
        "partitioned": generate(Shape(files=options.files, partitioned=True)),
    }
    big = _v4(v4_table(options.v4_files, 100)[0], 3) if options.v4_files else []
    report = _report(run(paths, options.repeat, options.slow_repeat), big)
    print(report)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report)


if __name__ == "__main__":
    main()
