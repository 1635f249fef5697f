"""Write Delta tables with V4 trees, and Delta's own account of every version. Run as a program: it needs another Java.

Delta's feature is a preview: it takes a commit coordinator that only Delta's tests register, and a switch for tests.

``python -m tests.spark.delta_writer <folder> <table> ...``
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
PROPERTIES = {
    "delta.feature.adaptiveMetadata-preview": "supported",
    "delta.columnMapping.mode": "id",
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.checkpointInterval": "2",
}
#: Tables and the statements that make their versions; ``{t}`` is the table.
TABLES = {
    "plain": (
        "CREATE TABLE {t} (id INT, s STRING, x DOUBLE) USING delta {p}",
        "INSERT INTO {t} SELECT /*+ REPARTITION(4) */ id, concat('s', id % 5), id / 2 FROM range(0, 100)",
        "DELETE FROM {t} WHERE id % 10 = 3",
        "UPDATE {t} SET x = -1 WHERE id IN (7, 77)",
        "ALTER TABLE {t} ADD COLUMN y DATE",
        "INSERT INTO {t} VALUES (1001, 'with y', 1.5, DATE '2026-02-03')",
        "ALTER TABLE {t} RENAME COLUMN s TO name",
        "DELETE FROM {t} WHERE id < 20",
    ),
    "parted": (
        "CREATE TABLE {t} (id INT, day DATE, kind STRING) USING delta PARTITIONED BY (day, kind) {p}",
        "INSERT INTO {t} SELECT id, date_add(DATE '2026-01-01', CAST(id % 2 AS INT)), concat('k %/', id % 2) "
        "FROM range(40)",
        "INSERT INTO {t} VALUES (100, null, null), (101, DATE '2026-01-01', null)",
        "DELETE FROM {t} WHERE day = DATE '2026-01-02'",
        "ALTER TABLE {t} RENAME COLUMN id TO number",
        "DELETE FROM {t} WHERE number % 7 = 0",
        "INSERT OVERWRITE {t} PARTITION (day = '2026-01-01', kind = 'k %/0') SELECT 500",
    ),
}  # fmt: skip


def start(folder: Path, *, prefixes: bool = True) -> Any:
    """Start Spark with Delta Lake and a coordinator of commits.

    In tests Delta puts ``test%file%prefix-`` before the names of files, to find code that forgets to decode paths.
    """
    from pyspark.sql import SparkSession

    os.environ["DELTA_TESTING"] = "1"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("delta")
    options = {
        "spark.jars.packages": PACKAGE,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "2",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError",
        "spark.databricks.delta.properties.defaults.feature.catalogManaged": "supported",
        "spark.databricks.delta.amt.entriesPerLeaf": "3",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    if not prefixes:
        options |= {f"spark.databricks.delta.testOnly.{name}NamePrefix": "" for name in ("dataFile", "dvFile")}
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    java = session.sparkContext._jvm
    java.java.lang.System.setProperty("spark.testing", "true")
    coordinators = java.org.apache.spark.sql.delta.coordinatedcommits
    coordinators.CatalogOwnedCommitCoordinatorProvider.registerBuilder(
        "spark_catalog", coordinators.InMemoryCommitCoordinatorBuilder(1)
    )
    return session


def account(session: Any, folder: Path, version: int) -> dict[str, Any]:
    """Return what Delta says of a version: its rows as JSON, and each file with its records and deleted rows."""
    log = session.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, str(folder))
    snapshot = log.getSnapshotAt(version, *_defaults(log, "getSnapshotAt", 1))
    files = []
    for add in snapshot.allFiles().collectAsList():
        vector = add.deletionVector()
        files.append([add.path(), json.loads(add.stats())["numRecords"], vector.cardinality() if vector else 0])
    rows = session.read.format("delta").option("versionAsOf", version).load(str(folder)).collect()
    return {"files": sorted(files), "rows": sorted(as_json(row.asDict()) for row in rows)}


def as_json(row: dict[str, Any]) -> str:
    """Return a row as JSON, to be compared."""
    return json.dumps(row, default=str, sort_keys=True)


def _defaults(target: Any, name: str, given: int) -> list[Any]:
    """Return the default values of a Scala method's other arguments."""
    from py4j.protocol import Py4JError

    out: list[Any] = []
    while True:
        try:
            out.append(getattr(target, f"{name}$default${given + len(out) + 1}")())
        except Py4JError:  # there are no more
            return out


def main(folder: Path, names: list[str]) -> None:
    """Write tables and ``account.json``."""
    session = start(folder)
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    found: dict[str, Any] = {}
    for name in names:
        for statement in TABLES[name]:
            session.sql(statement.format(t=name, p=f"TBLPROPERTIES ({properties})"))
        commits = (folder / name / "_delta_log").glob("*.json")
        last = max(int(path.stem) for path in commits if path.stem.isdecimal())
        found[name] = {version: account(session, folder / name, version) for version in range(last + 1)}
    (folder / "account.json").write_text(json.dumps(found))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
