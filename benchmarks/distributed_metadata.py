"""Measure metadata tables on Spark, for a table whose manifests do not fit the driver: time, and the driver's memory.

``python benchmarks/distributed_metadata.py`` makes tables of metadata alone (`generate.py`: one million data files with
statistics of ten columns, and ten million), asks each question in a process of its own with a local Spark (two
workers), and writes ``results/distributed_metadata.md``. Each question is asked three ways: with ``t.inspect`` and
``spark=``, with the metadata table of Iceberg's runtime in the same kind of Spark, and with ``t.inspect`` in one
process without Spark, limited to 12 GB of address space. The answers must be the same. Memory is the peak of a process
(``VmHWM``): of the Python process that asks, of Java, and of the largest worker. Each answer is computed once, with our
caches cold and the disk's warm (the table is read through first).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
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
#: The heading of what is written by hand.
TRIED = "## What was tried"
#: Seconds that a question may take.
PATIENCE = 3600
#: Bytes of addresses of a process without Spark: what does not fit fails, and does not take the machine with it.
MOST_HERE = 12_000_000_000

QUESTIONS = {
    "count": "`files`: how many",
    "regions": "`files`: files, rows and bytes by region",
    "bounds": "`files`: least and greatest bound of a column by region, from `readable_metrics`",
    "partitions": "`partitions`: rows, and the sum of their files",
}
WAYS = {"spark": "iceexplore on Spark", "iceberg": "Iceberg's runtime", "here": "iceexplore, one process"}


@dataclass(frozen=True)
class Asked:
    """A question that was asked one way: what was measured, or the error."""

    question: str
    way: str
    shape: Shape
    found: dict[str, Any]


def _ask(way: str, question: str, path: str) -> tuple[Callable[[], Any], Callable[[], None]]:
    """What is timed, and what ends it. The answer is JSON."""
    import iceexplore as ix

    table = ix.open(path)
    if way == "here":
        resource.setrlimit(resource.RLIMIT_AS, (MOST_HERE, MOST_HERE))
        return lambda: _here(table, question), lambda: None
    from pyspark.sql import functions as f

    spark = ix.spark(iceberg=way == "iceberg", config={"spark.master": "local[2]", "spark.driver.memory": "3g"})
    spark.range(2).count()

    def metadata(name: str, *columns: str) -> Any:
        if way == "iceberg":
            return spark.read.format("iceberg").load(f"{path}#{name}")
        return table.inspect[name](spark=spark, columns=columns)

    def ask() -> Any:
        if question == "count":
            return metadata("files", "content").count()
        if question == "partitions":
            frame = metadata("partitions", "file_count")
            return [int(n) for n in frame.agg(f.count("*"), f.sum("file_count")).collect()[0]]
        if question == "regions":
            frame = metadata("files", "partition", "record_count", "file_size_in_bytes")
            wanted = [f.count("*"), f.sum("record_count"), f.sum("file_size_in_bytes")]
        else:
            frame = metadata("files", "partition", "readable_metrics")
            wanted = [f.min("readable_metrics.id.lower_bound"), f.max("readable_metrics.id.upper_bound")]
        return sorted(list(row) for row in frame.groupBy("partition.region").agg(*wanted).collect())

    return ask, spark.stop


def _here(table: Any, question: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if question == "partitions":
        found = table.inspect.partitions.arrow()
        return [found.num_rows, pc.sum(found["file_count"]).as_py()]
    files = table.inspect.files.arrow()
    if question == "count":
        return files.num_rows
    flat = {"region": pc.struct_field(files["partition"], "region")}
    if question == "regions":
        flat |= {name: files[name] for name in ("record_count", "file_size_in_bytes")}
        wanted = [("region", "count"), ("record_count", "sum"), ("file_size_in_bytes", "sum")]
    else:
        flat |= {f"{side}_bound": pc.struct_field(files["readable_metrics"], ["id", f"{side}_bound"])
                 for side in ("lower", "upper")}  # fmt: skip
        wanted = [("lower_bound", "min"), ("upper_bound", "max")]
    found = pa.table(flat).group_by("region").aggregate(wanted)  # type: ignore[arg-type]
    names = [f"{name}_{what}" for name, what in wanted]
    return sorted(list(row.values()) for row in found.select(["region", *names]).to_pylist())


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


def _run(way: str, question: str, path: str) -> None:
    ask, stop = _ask(way, question, path)
    start, cpu = time.perf_counter(), time.process_time()
    answer = ask()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    java, workers = 0, [0]
    for pid in _children():
        if Path(f"/proc/{pid}/comm").read_text().startswith("java"):
            java = max(java, _peak(pid))
        else:
            workers.append(_peak(pid))
    print(json.dumps({"answer": answer, "s": seconds, "cpu": cpu, "memory": [_peak(), java, max(workers)]}))
    stop()


def _measure(way: str, question: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__)), "--run", way, question, "--path", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {PATIENCE} s"}
    if done.returncode:
        messages = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
        return {"error": messages[-1][:120] if messages else f"ended with {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _row(asked: Asked) -> str:
    found = asked.found
    first = f"| {asked.shape.files:,} | {QUESTIONS[asked.question]} | {WAYS[asked.way]}"
    if "error" in found:
        return f"{first} | {found['error']} | | | | |"
    mega = [f"{round(n / 1e6):,}" if n else "–" for n in found["memory"]]
    return f"{first} | {found['s']:.1f} | {found['cpu']:.1f} | {' | '.join(mega)} |"


def _agreement(asked: list[Asked]) -> list[str]:
    """A line per table and question: whether all ways that answered say the same."""
    lines = []
    for shape in dict.fromkeys(a.shape for a in asked):
        for question in dict.fromkeys(a.question for a in asked if a.shape == shape):
            mine = [a for a in asked if (a.shape, a.question) == (shape, question) and "answer" in a.found]
            answers = {json.dumps(a.found["answer"]) for a in mine}
            word = "the same answer" if len(answers) == 1 else "NOT the same answer" if answers else "no answer"
            lines.append(
                f"- {shape.files:,} files, {QUESTIONS[question]}: {word} ({', '.join(WAYS[a.way] for a in mine)})"
            )
    return lines


def _read_through(folder: Path) -> None:
    """Bring a table into the disk's cache, so that who asks first has no disadvantage."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(1 << 24):
                    pass


def _main() -> None:
    parser = argparse.ArgumentParser(description="Metadata tables on Spark: time and the driver's memory.")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--questions", nargs="*", choices=QUESTIONS, default=list(QUESTIONS), help="only these")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS), help="only these")
    parser.add_argument(
        "--tables", nargs="*", choices=["small", "large"], default=["small", "large"], help="only these"
    )
    parser.add_argument("--print", action="store_true", help="leave the results as they are")
    options = parser.parse_args()
    if options.run:
        way, question = options.run
        _run(way, question, options.path)
        return
    asked = []
    for shape in [{"small": SMALL, "large": LARGE}[name] for name in options.tables]:
        path = generate(shape)
        _read_through(path.parent)
        for question in options.questions:
            for way in options.ways:
                asked.append(Asked(question, way, shape, _measure(way, question, path)))
                print(_row(asked[-1]), flush=True)
    agreement = _agreement(asked)
    print(*agreement, sep="\n")
    if not options.print:
        _write([_row(a) for a in asked], agreement)


def _write(rows: list[str], agreement: list[str]) -> None:
    import pyspark

    about = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    text = [
        "# Metadata tables on Spark",
        "",
        f"Made by `{' '.join(['python benchmarks/distributed_metadata.py', *sys.argv[1:]])}`; the top of that "
        "file describes how it measures.",
        "",
        f"{about}, PySpark {pyspark.__version__}, `local[2]`, Java's heap 3 GB, one run each. Load of the "
        f"machine when it ended: {os.getloadavg()[1]:.1f}.",
        "",
        "| files | question | by | s | asking process: CPU, s | its memory, MB | Java's, MB | a worker's, MB |",
        "|--:|---|---|--:|--:|--:|--:|--:|",
        *rows,
        "",
        "## Answers",
        "",
        *agreement,
        "",
    ]
    target = HERE / "results" / "distributed_metadata.md"
    _, tried, notes = target.read_text(encoding="utf-8").partition(TRIED)  # written by hand, and kept
    target.write_text("\n".join(text) + "\n" * bool(tried) + tried + notes, encoding="utf-8")


if __name__ == "__main__":
    _main()
