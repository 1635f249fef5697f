"""Spark for tests: a session with a catalog in a folder, and what the writers of tables do over and over."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
#: Of Iceberg's catalogs only some know views; of these the JDBC catalog shares a database with PyIceberg's.
SQLITE = "org.xerial:sqlite-jdbc:3.49.1.0"

Writer = Callable[["Spark"], None]
TABLES: dict[str, Writer] = {}


def table(writer: Writer) -> Writer:
    """Register a table: its name is the function's."""
    TABLES[writer.__name__] = writer
    return writer


def start(warehouse: Path) -> Any:
    """A local Spark session whose catalog ``cat`` is the folder ``warehouse``."""
    from pyspark.sql import SparkSession

    options = {
        "spark.jars.packages": f"{RUNTIME},{SQLITE}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.cat": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.cat.type": "hadoop",
        "spark.sql.catalog.cat.warehouse": str(warehouse),
        "spark.sql.catalog.cat.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # out of memory: an error at once, not a session that collects garbage until the test's time is up
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "2",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.ui.retainedJobs": "10",  # thousands of queries are run, and none is looked back at
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "10",
        # hundreds of small, different plans: compiling each, or planning it again while it runs, costs more
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.python.unix.domain.socket.enabled": "true",  # nobody else can take an answer, as one can at a port
    }
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # what the workers run
    builder = SparkSession.builder.master("local[2]").appName("iceexplore")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext._python_includes.clear()  # Iceberg's runtime: 26,000 names that workers look through
    session.sparkContext.setLogLevel("OFF")  # failures come as exceptions, which say it all
    return session


def arrow(frame: Any, seconds: float = 40.0) -> pa.Table:
    """The rows of a Spark DataFrame, asked for again where no answer comes.

    Of some ten thousand answers one was seen that Spark's socket never gave: the run ended in a timeout, with an idle
    Spark. Three times is a fault.
    """
    for _ in range(3):
        found: list[Any] = []

        def ask(found: list[Any] = found) -> None:
            try:
                found.append(frame.toArrow())
            except BaseException as e:
                found.append(e)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(seconds)
        if found and isinstance(found[0], BaseException):
            raise found[0]
        if found:
            return cast(pa.Table, found[0])
        warnings.warn(f"Spark gave no answer in {seconds} s", stacklevel=2)
    raise TimeoutError(f"Spark gave no answer in three times {seconds} s")


class Spark:
    """A session and the few things that the writers do over and over."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def sql(self, *statements: str) -> Any:
        """Run statements; the last one's data frame."""
        result = None
        for statement in statements:
            result = self.session.sql(statement)
        return result

    def create(self, name: str, columns: str, partition: str = "", version: int = 2, **properties: str) -> None:
        """Create ``cat.db.<name>``; underscores in property names are spelt ``__`` for a dot and ``_`` for a dash."""
        pairs = {"format-version": str(version)}
        pairs |= {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in pairs.items())
        by = f"PARTITIONED BY ({partition})" if partition else ""
        self.sql(f"CREATE TABLE cat.db.{name} ({columns}) USING iceberg {by} TBLPROPERTIES ({listed})")

    def insert(self, name: str, *values: str) -> None:
        """One commit per text of rows."""
        for rows in values:
            self.sql(f"INSERT INTO cat.db.{name} VALUES {rows}")

    def alter(self, name: str, *changes: str) -> None:
        """``ALTER TABLE`` for each change."""
        for change in changes:
            self.sql(f"ALTER TABLE cat.db.{name} {change}")

    def call(self, procedure: str) -> Any:
        """``CALL cat.system.<procedure>``."""
        return self.sql(f"CALL cat.system.{procedure}")

    def snapshot(self, name: str) -> int:
        """The current snapshot's id."""
        rows = self.sql(f"SELECT snapshot_id FROM cat.db.{name}.refs WHERE name = 'main'").collect()
        return int(rows[0][0])

    def java(self, name: str) -> Any:
        """The table as the Java API has it."""
        jvm: Any = self.session._jvm
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.session._jsparkSession, f"cat.db.{name}")


#: Deletes, updates and merges write delete files.
MERGE_ON_READ: dict[str, Any] = {f"write__{what}__mode": "merge-on-read" for what in ("delete", "update", "merge")}


def write(session: Any, names: list[str] | None = None, log: Callable[[str], None] | None = None) -> list[str]:
    """Write the tables into ``cat.db``; their names."""
    spark = Spark(session)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS cat.db")
    written = names or list(TABLES)

    def one(name: str) -> None:
        began = time.perf_counter()
        TABLES[name](spark)
        if log:
            log(f"{name:26} {time.perf_counter() - began:5.1f} s  {(TABLES[name].__doc__ or '').strip()}")

    with ThreadPoolExecutor(2, "writer") as pool:  # a statement has little to do, and waits much
        list(pool.map(one, written))
    return written
