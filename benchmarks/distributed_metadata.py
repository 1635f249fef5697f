"""Metadata tables on Spark, of a table whose manifests do not fit the driver: time, and the driver's memory.

``python benchmarks/distributed_metadata.py`` makes tables of metadata alone (`generate.py`: ten million data files with
statistics of ten columns, and one million), runs each case in a process of its own with a local Spark (two workers),
and writes ``results/distributed_metadata.md``. Memory is the most that the driver's Python process held (``VmHWM``),
that of its children is Java's and the workers'. Beside it what the same statistics take in one process, without Spark,
of the smaller table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generate import Shape, generate

HERE = Path(__file__).parent
SMALL = Shape(files=1_000_000, deletes=0, columns=10, manifests=100, partitioned=True)
LARGE = Shape(files=10_000_000, deletes=0, columns=10, manifests=500, partitioned=True)


@dataclass(frozen=True)
class Case:
    """A question to a metadata table."""

    name: str
    what: str
    here: bool = False


CASES = (
    Case("count", "`files` counted: `columns=['content']`"),
    Case("regions", "files, rows and bytes by region: `columns=['partition', ...]`, grouped"),
    Case("partitions", "`partitions`, all rows counted"),
    Case("bounds", "the least and greatest bound of a column by region: `readable_metrics`"),
    Case("here", "`inspect.files.arrow()` in one process, without Spark", here=True),
    Case("here-regions", "files, rows and bytes by region in one process, without Spark", here=True),
)


def _ask(case: str, path: str) -> tuple[Callable[[], Any], Callable[[], None]]:
    """What is timed, and what ends it."""
    import iceexplore as ix

    table = ix.open(path)
    if case.startswith("here"):
        import pyarrow.compute as pc

        def here() -> Any:
            files = table.inspect.files.arrow()
            if case == "here":
                return files.num_rows
            flat = files.select(["record_count", "file_size_in_bytes"]).append_column(
                "region", pc.struct_field(files["partition"], "region")
            )
            wanted = [("record_count", "sum"), ("file_size_in_bytes", "sum"), ("region", "count")]
            return flat.group_by("region").aggregate(wanted).num_rows

        return here, lambda: None
    from pyspark.sql import functions as f

    spark = ix.spark(config={"spark.master": "local[2]", "spark.driver.memory": "3g"})
    spark.range(2).count()
    files = table.inspect.files

    def ask() -> Any:
        if case == "count":
            return files(spark=spark, columns=["content"]).count()
        if case == "partitions":
            return table.inspect.partitions(spark=spark).count()
        if case == "regions":
            frame = files(spark=spark, columns=["partition", "record_count", "file_size_in_bytes"])
            sums = [f.count("*"), f.sum("record_count"), f.sum("file_size_in_bytes")]
            return len(frame.groupBy("partition.region").agg(*sums).collect())
        frame = files(spark=spark, columns=["partition", "readable_metrics"])
        bounds = [f.min("readable_metrics.id.lower_bound"), f.max("readable_metrics.id.upper_bound")]
        return len(frame.groupBy("partition.region").agg(*bounds).collect())

    return ask, spark.stop


def _peak(pid: str = "self") -> int:
    """The most memory that a process held, in bytes."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmHWM")), 0)


def _children() -> list[str]:
    """Every process below this one."""
    parents: dict[str, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(stat.rpartition(")")[2].split()[1], []).append(entry.name)
    found, waiting = [], [str(os.getpid())]
    while waiting:
        mine = parents.get(waiting.pop(), [])
        found += mine
        waiting += mine
    return found


def _run(case: str, path: str) -> None:
    ask, stop = _ask(case, path)
    start, cpu = time.perf_counter(), time.process_time()
    answer = ask()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    children = sorted((_peak(pid) for pid in _children()), reverse=True)
    print(json.dumps({"answer": answer, "s": seconds, "cpu": cpu, "driver": _peak(), "children": children[:4]}))
    stop()


def _measure(case: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__)), "--run", case, "--path", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {
            "error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"ended with {done.returncode}"
        }
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _row(case: Case, shape: Shape, found: dict[str, Any]) -> str:
    if "error" in found:
        return f"| {shape.files:,} | {case.what} | {found['error'][:120]} | | | |"
    mega = [round(n / 1e6) for n in (found["driver"], *found["children"][:2])]
    others = " + ".join(str(n) for n in mega[1:]) or "—"
    return f"| {shape.files:,} | {case.what} | {found['s']:.1f} | {found['cpu']:.1f} | {mega[0]} | {others} |"


def _main() -> None:
    parser = argparse.ArgumentParser(description="Metadata tables on Spark: time and the driver's memory.")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--cases", nargs="*", help="only these")
    options = parser.parse_args()
    if options.run:
        _run(options.run, options.path)
        return
    lines = []
    for shape in (SMALL, LARGE):
        path = generate(shape)
        for case in CASES:
            if (case.here and shape is LARGE) or (options.cases and case.name not in options.cases):
                continue
            lines.append(_row(case, shape, _measure(case.name, path)))
            print(lines[-1], flush=True)
    import pyspark

    about = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    text = [
        "# Metadata tables on Spark",
        "",
        "Made by `python benchmarks/distributed_metadata.py`; how it measures stands at the top of that file.",
        "",
        f"{about}, PySpark {pyspark.__version__}, `local[2]`, one run each, no manifest in a cache of ours. Load of "
        f"the machine when it ended: {os.getloadavg()[1]:.1f}.",
        "",
        "| files | what | s | driver's CPU, s | driver's memory, MB | Java's and a worker's, MB |",
        "|--:|---|--:|--:|--:|--:|",
        *lines,
        "",
    ]
    (HERE / "results" / "distributed_metadata.md").write_text("\n".join(text))


if __name__ == "__main__":
    _main()
