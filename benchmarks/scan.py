"""Measure scans on Spark, compared with Iceberg's runtime: 20 million rows, whole, and with one row in 20 deleted.

``python benchmarks/scan.py`` has Spark and Iceberg's runtime write the tables, then reads each both ways in one
process, in turn, seven times after a first round that is not counted; both must give the same sums. ``sum`` reads one
column of four, ``all`` reads all. DataFrames are made once; making them (planning, footers, deletes) is a column of its
own. CPU is the median per run over all of Spark's processes; on a busy machine it is more reliable than time. Memory is
the peak that Spark's Java and Python processes held together (Linux: ``VmRSS``, sampled fifty times a second), in a
process that reads one way only and has ipykernel loaded, as a notebook has; the median of five. ``ix.spark`` starts
Spark for both. Results go to ``results/scan.md``, which has a section for each case.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = {
    "plain": "no deletes",
    "vectors": "deletion vectors (version 3)",
    "positions": "position deletes (version 2)",
    "equality": "equality deletes (version 2)",
    "many": "deletion vectors, 2,000 files (version 3)",
}
FILES = {"many": 2_000}
#: Runs at most: opening thousands of files takes a while.
MOST_RUNS = {"many": 3}
MEMORY_RUNS = 5
READS = ("sum", "all")
WANTED = {"plain": 0.95, "vectors": 0.8, "positions": 0.8, "equality": 1.0}
MODES = ", ".join(f"'write.{what}.mode'='merge-on-read'" for what in ("delete", "update", "merge"))


def session(folder: Path) -> Any:
    """As ``ix.spark`` makes it, with Iceberg's runtime."""
    import iceexplore as ix

    config = {
        "spark.master": "local[2]",
        "spark.driver.memory": "3g",
        "spark.sql.catalog.cat": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.cat.type": "hadoop",
        "spark.sql.catalog.cat.warehouse": str(folder),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    return ix.spark("benchmark", iceberg=True, config=config)


def make(folder: Path, rows: int) -> None:
    """Write the tables, of eight files each where `FILES` says nothing."""
    spark = session(folder)
    for case in CASES:
        name = f"cat.db.{case}"
        number = 3 if case in ("vectors", "many") else 2
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(
            f"CREATE TABLE {name} (id bigint, amount double, name string, at timestamp) USING iceberg "
            f"TBLPROPERTIES ('format-version'='{number}', 'write.distribution-mode'='none', {MODES})"
        )
        spark.range(0, rows, 1, FILES.get(case, 8)).selectExpr(
            "id", "rand(7) * 1000 AS amount", "concat('name-', id % 100000) AS name",
            "timestamp_micros(1700000000000000 + id * 1000) AS at",
        ).writeTo(name).append()  # fmt: skip
        if case in ("vectors", "positions", "many"):
            spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")
        if case == "equality":
            delete_equal(spark, name, rows)
    spark.stop()


def delete_equal(spark: Any, name: str, rows: int) -> None:
    """One equality delete file, by Java's library: Spark writes none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    jvm: Any = spark._jvm
    java = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    path = Path(java.location()) / "data" / "equality.parquet"
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([pa.array(range(3, rows, 20), pa.int64())], schema=pa.schema([field])), path)
    ids = spark.sparkContext._gateway.new_array(spark.sparkContext._gateway.jvm.int, 1)
    ids[0] = 1
    metrics = jvm.org.apache.iceberg.parquet.ParquetUtil.fileMetrics(
        java.io().newInputFile(str(path)), jvm.org.apache.iceberg.MetricsConfig.forTable(java)
    )
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(java.spec()).ofEqualityDeletes(ids)
    builder = builder.withPath(str(path)).withFormat("parquet").withFileSizeInBytes(path.stat().st_size)
    java.newRowDelta().addDeletes(builder.withMetrics(metrics).build()).commit()


def frame(spark: Any, folder: Path, case: str, way: str) -> Any:
    """A table, read one way."""
    import iceexplore as ix

    table = ix.open(folder / "db" / case)
    if way == "iceexplore":
        return table.scan(spark, engine="spark")
    return spark.read.format("iceberg").load(table.state.storage.resolve(table.state.metadata_location))


def answer(read: str, rows: Any) -> Callable[[], tuple[Any, ...]]:
    """What is asked of the rows."""
    from pyspark.sql import functions as f

    asked = [f.sum("id")]
    if read == "all":
        asked += [f.count("amount"), f.sum(f.length("name")), f.max("at")]
    # Another query each time: of the same one Spark would keep what its stages have made.
    return lambda: tuple(rows.select(*asked).collect()[0])


def timed(folder: Path, case: str, runs: int) -> dict[str, Any]:
    """Both ways, in turn, in this process."""
    import_module("iceexplore.on_spark.scans._scan")  # not in the time
    spark = session(folder)
    spark.range(10).count()
    out: dict[str, Any] = {}
    ask = {}
    for way in ("iceberg", "iceexplore"):
        began = time.perf_counter()
        rows = frame(spark, folder, case, way)
        out[f"{way} made"] = time.perf_counter() - began
        for read in READS:
            ask[way, read] = answer(read, rows)
    for read in READS:
        first = {way: ask[way, read]() for way in ("iceberg", "iceexplore")}
        assert first["iceberg"] == first["iceexplore"], first
        times: dict[str, list[float]] = {"iceberg": [], "iceexplore": []}
        work: dict[str, list[float]] = {"iceberg": [], "iceexplore": []}
        for turn in range(runs):
            for way in ("iceberg", "iceexplore") if turn % 2 else ("iceexplore", "iceberg"):
                began, used = time.perf_counter(), worked(os.getpid())
                ask[way, read]()
                times[way].append(time.perf_counter() - began)
                work[way].append(worked(os.getpid()) - used)
        for way in times:
            out[f"{way} {read}"], out[f"{way} {read} CPU"] = times[way], work[way]
    spark.stop()
    return out


def held(folder: Path, case: str, way: str) -> dict[str, Any]:
    """The memory of one way: this process, Java, and Python's workers."""
    import_module("ipykernel.kernelapp")
    spark = session(folder)
    done = threading.Event()
    most = 0

    def look() -> None:
        nonlocal most
        while not done.wait(0.02):
            most = max(most, holds(os.getpid()))

    looking = threading.Thread(target=look)
    looking.start()
    rows = frame(spark, folder, case, way)
    for read in READS:
        answer(read, rows)()
    done.set()
    looking.join()
    spark.stop()
    return {"memory": most // 1024}


def holds(process: int) -> int:
    """What a process and those that it started hold, in kB (proc(5))."""
    lines = proc_text(f"/proc/{process}/status").splitlines()
    own = next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)
    return own + sum(map(holds, children(process)))


def worked(process: int) -> float:
    """The seconds of CPU that a process and those that it started have taken (proc(5))."""
    numbers = proc_text(f"/proc/{process}/stat").rpartition(")")[2].split()
    own = sum(int(n) for n in numbers[11:15]) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(worked, children(process)))


def children(process: int) -> list[int]:
    """The processes that a process started."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
    except FileNotFoundError:
        return []
    return [int(number) for task in tasks for number in proc_text(f"{task}/children").split()]


def proc_text(file: str) -> str:
    """Return the text of a file in ``/proc``, or nothing if its process or thread has ended."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def child(*args: str) -> dict[str, Any]:
    """A run in a process of its own."""
    done = subprocess.run([sys.executable, __file__, *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-4000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def held_in(way: str, case: str, folder: Path) -> int:
    """MB, the median of some processes: how far Java lets its heap grow differs by half from run to run."""
    return int(
        statistics.median(
            child("--memory", way, "--case", case, "--data", str(folder))["memory"]
            for _ in range(1 if case in MOST_RUNS else MEMORY_RUNS)
        )
    )


def section(folder: Path, case: str, rows: int, runs: int) -> str:
    """What was found of one case, as Markdown."""
    from iceexplore.on_spark._session import ICEBERG_VERSION

    load = os.getloadavg()[0]
    found = child("--case", case, "--data", str(folder), "--runs", str(runs))
    memory = {way: held_in(way, case, folder) for way in ("iceberg", "iceexplore")}
    wanted = WANTED.get(case)
    lines, verdicts = [], []
    for read in READS:
        theirs, ours = found[f"iceberg {read}"], found[f"iceexplore {read}"]
        ratios = min(theirs) / min(ours), statistics.median(theirs) / statistics.median(ours)
        for way, times in (("iceberg", theirs), ("iceexplore", ours)):
            ratio = f"{ratios[0]:.2f}, {ratios[1]:.2f}" if way == "iceexplore" else ""
            lines.append(
                f"| {read if way == 'iceberg' else ''} | {way} | {min(times):.2f} | {statistics.median(times):.2f} | "
                f"{ratio} | {statistics.median(found[f'{way} {read} CPU']):.2f} | {found[f'{way} made']:.2f} | "
                f"{memory[way]} |"
            )
        if wanted is not None:
            met = "met" if min(ratios) >= wanted else "**missed**"
            verdicts.append(f"- {met}: {read}, {min(ratios):.2f} times the runtime's speed (wanted: {wanted})")
    most = memory["iceexplore"] / memory["iceberg"]
    verdicts.append(f"- {'met' if most <= 1 else '**missed**'}: {most:.2f} times its memory (wanted: no more)")
    about = (
        f"{rows:,} rows in {FILES.get(case, 8):,} files. {runs} runs each; load of the machine before (this runs two "
        f"threads): {load:.1f}. {platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, PySpark {version('pyspark')}, Iceberg {ICEBERG_VERSION}."
    )
    head = [
        "| read | with | best, s | median, s | its speed (best, median) | CPU, s | made in, s | memory, MB |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    return "\n".join([f"### {CASES[case].capitalize()}", "", about, "", *head, *lines, "", *verdicts, ""])


def put(case: str, text: str) -> None:
    """Into the results, in place of what is there of the case."""
    target = HERE / "results" / "scan.md"
    begin, end = f"<!-- {case} -->\n", f"<!-- end of {case} -->\n"
    before, found, rest = target.read_text(encoding="utf-8").partition(begin)
    if not found:
        raise SystemExit(f"{target} has no {begin.strip()}, where the case's results go")
    target.write_text(before + begin + text + end + rest.partition(end)[2], encoding="utf-8")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=HERE / "data" / "scan")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--case", choices=list(CASES))
    parser.add_argument("--memory", choices=["iceberg", "iceexplore"])
    parser.add_argument("--make", action="store_true")
    given = parser.parse_args()
    folder = given.data.absolute()
    if given.make:
        make(folder, given.rows)
        print("{}")
        return
    if given.memory:
        print(json.dumps(held(folder, given.case, given.memory)))
        return
    if given.case:
        print(json.dumps(timed(folder, given.case, given.runs)))
        return
    marker = folder / f"rows-{given.rows}"
    if not marker.exists():
        folder.mkdir(parents=True, exist_ok=True)
        child("--make", "--data", str(folder), "--rows", str(given.rows))
        marker.touch()
    for case in given.only:  # each is kept as soon as it is known
        found = section(folder, case, given.rows, min(given.runs, MOST_RUNS.get(case, given.runs)))
        put(case, found)
        print(found, flush=True)


if __name__ == "__main__":
    main()
