"""Make the sample table that ships in the package: ``iceexplore.sample("trips")``.

A real table, written by Spark with Iceberg's own runtime, whose history shows what the format can do:
partition and schema evolution, position deletes (v2), an upgrade to v3, deletion vectors, a branch,
a tag and a statistics file. The trips are invented and the same on every run; snapshot ids, uuids and
clocks are Iceberg's and differ.

The other sample, ``delta``, is made by ``make_delta_sample.py``.

Run it by ``make samples`` (needs Java 17 or later; Spark fetches the runtime on its first start).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
#: A neutral place: the table's metadata says it for ever.
WAREHOUSE = Path("/tmp/warehouse")
TARGET = Path(__file__).resolve().parent.parent / "iceexplore" / "data"
MAX_BYTES = 400_000
TABLE = "demo.bikes.trips"
STATIONS = ("Harbour", "Old Mill", "Museum", "Park Gate", "Søndre Torv", "Łazienki")


def session(warehouse: Path) -> Any:
    """A local Spark whose catalog ``demo`` is the folder ``warehouse``."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[1]")
        .appName("iceexplore samples")
        .config("spark.jars.packages", RUNTIME)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.demo", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.demo.type", "hadoop")
        .config("spark.sql.catalog.demo.warehouse", str(warehouse))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


class Trips:
    """Invented bike trips, numbered on from batch to batch."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._next = 1

    def batch(self, first_day: str, days: int, per_day: int, rider: bool) -> list[tuple[Any, ...]]:
        """Rows of ``days`` days from ``first_day``, ``per_day`` trips each."""
        rows: list[tuple[Any, ...]] = []
        for day in range(days):
            start = datetime.fromisoformat(first_day) + timedelta(days=day)
            for _ in range(per_day):
                at = start + timedelta(seconds=self._random.randrange(86_400))
                km = round(self._random.expovariate(1 / 3.2) + 0.4, 2)
                fare = Decimal(f"{1.5 + 0.8 * km:.2f}")
                row: tuple[Any, ...] = (self._next, at, self._random.choice(STATIONS), km, fare)
                if rider:
                    row += (self._random.choice(("member", "guest", None)),)
                rows.append(row)
                self._next += 1
        return rows


def write_trips(spark: Any) -> None:
    """The table's history, step by step."""
    trips = Trips()

    def append(first_day: str, days: int, per_day: int, *, rider: bool = True, branch: str = "") -> None:
        schema = spark.table(TABLE).schema
        frame = spark.createDataFrame(trips.batch(first_day, days, per_day, rider), schema)
        target = f"{TABLE}.branch_{branch}" if branch else TABLE
        frame.coalesce(1).writeTo(target).append()
        time.sleep(1)  # so that a time stamp tells the snapshots apart

    def sql(text: str) -> None:
        spark.sql(text.format(t=TABLE)).collect()

    sql(
        "create table {t} (trip_id int, started_at timestamp, station string, km float, fare decimal(8, 2)) "
        "using iceberg partitioned by (days(started_at)) tblproperties ("
        "'format-version' = '2', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
        "'write.merge.mode' = 'merge-on-read', 'write.delete.granularity' = 'file', "
        "'comment' = 'Invented bike trips: the sample table of iceexplore')"
    )
    append("2024-03-01", 3, 60, rider=False)
    append("2024-03-04", 2, 60, rider=False)

    # schema evolution: added, renamed, promoted
    sql("alter table {t} add column rider string comment 'member or guest'")
    sql("alter table {t} rename column station to start_station")
    sql("alter table {t} alter column km type double")
    sql("alter table {t} alter column trip_id type bigint")
    append("2024-03-06", 2, 60)
    sql("delete from {t} where fare > 12")  # position delete files

    # partition evolution: months and a bucket from here on
    sql("alter table {t} replace partition field days(started_at) with months(started_at)")
    sql("alter table {t} add partition field bucket(2, start_station)")
    append("2024-04-01", 30, 6)
    sql("update {t} set rider = 'guest' where rider is null and started_at >= timestamp '2024-04-20 00:00:00'")
    sql("alter table {t} create tag `2024-q1-audit` retain 3650 days")

    sql("alter table {t} create branch promotion")
    append("2024-04-30", 1, 20, branch="promotion")

    # v3: row lineage and deletion vectors; gzipped metadata from here on, as many catalogs write it
    sql("alter table {t} set tblproperties ('format-version' = '3', 'write.metadata.compression-codec' = 'gzip')")
    append("2024-05-01", 31, 5)
    sql("delete from {t} where trip_id % 9 = 0 and started_at >= timestamp '2024-05-01 00:00:00'")
    # meets files with v2 position deletes (merged into vectors) and with vectors (replaced)
    sql("delete from {t} where start_station = 'Old Mill' and km > 5")
    sql("call demo.system.rewrite_manifests(table => '{t}')")
    sql("delete from {t} where started_at < timestamp '2024-03-02 00:00:00'")  # whole files
    sql("call demo.system.compute_table_stats(table => '{t}', columns => array('trip_id', 'start_station'))")


def publish(source: Path, target: Path) -> int:
    """Copy the table without Hadoop's checksum files; return its bytes."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.crc"))
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the sample table that ships in the package.")
    parser.add_argument("--warehouse", type=Path, default=WAREHOUSE, help="where Spark writes (made anew)")
    parser.add_argument("--target", type=Path, default=TARGET, help="folder that gets trips/")
    options = parser.parse_args(arguments)

    if options.warehouse.exists():
        parser.error(f"{options.warehouse} exists: move it away, or pass another --warehouse")
    spark = session(options.warehouse)
    try:
        write_trips(spark)
        spark.sql(f"select snapshot_id, operation, summary from {TABLE}.snapshots").show(30, truncate=120)
        spark.sql(f"select * from {TABLE}.refs").show(truncate=False)
    finally:
        spark.stop()
    size = publish(options.warehouse / "bikes" / "trips", options.target / "trips")
    shutil.rmtree(options.warehouse)
    print(f"{options.target / 'trips'}: {size:,} bytes")
    if size > MAX_BYTES:
        print(f"too large: a sample may have {MAX_BYTES:,} bytes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
