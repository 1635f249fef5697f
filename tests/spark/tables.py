"""Tables that Spark writes with Iceberg's own runtime: the ground truth that the metadata tables are measured by.

Each table is one function under `table`, small, and about one thing. Run as a program to keep them:
``python tests/spark/tables.py FOLDER``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"

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
        "spark.jars.packages": RUNTIME,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.cat": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.cat.type": "hadoop",
        "spark.sql.catalog.cat.warehouse": str(warehouse),
        "spark.sql.catalog.cat.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "2",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.codegen.wholeStage": "false",  # hundreds of small, different plans: compiling each costs more
    }
    builder = SparkSession.builder.master("local[2]").appName("iceexplore")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


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


MERGE_ON_READ = {"write__delete__mode": "merge-on-read", "write__update__mode": "merge-on-read", "write__merge__mode": "merge-on-read"}


@table
def v1_plain(s: Spark) -> None:
    """Version 1, two appends and a copy-on-write delete."""
    s.create("v1_plain", "id bigint, name string, price double", version=1)
    s.insert("v1_plain", "(1, 'one', 1.5), (2, 'two', null)", "(3, 'three', double('NaN')), (4, null, -0.0)")
    s.sql("DELETE FROM cat.db.v1_plain WHERE id = 2")


@table
def v1_void(s: Spark) -> None:
    """Version 1 drops partition fields by the void transform."""
    s.create("v1_void", "id bigint, kind string, day date", "kind, bucket(4, id)", version=1)
    s.insert("v1_void", "(1, 'a', date '2024-01-01'), (2, 'b', date '2024-02-01'), (3, null, null)")
    s.alter("v1_void", "DROP PARTITION FIELD bucket(4, id)")
    s.insert("v1_void", "(4, 'a', date '2024-01-01')")
    s.alter("v1_void", "ADD PARTITION FIELD months(day)", "RENAME COLUMN kind TO sort_of")
    s.insert("v1_void", "(5, 'c', date '1969-12-31'), (6, 'a', date '2024-03-05')")


@table
def v2_pos_file(s: Spark) -> None:
    """Position deletes, one file for each data file."""
    s.create("v2_pos_file", "id bigint, kind string", "kind", **MERGE_ON_READ, write__delete__granularity="file")
    s.insert("v2_pos_file", "(1, 'a'), (2, 'a'), (3, 'b'), (4, 'b'), (5, 'b')", "(6, 'a'), (7, 'a'), (8, 'a'), (9, 'b')")
    s.sql("DELETE FROM cat.db.v2_pos_file WHERE id IN (1, 6, 7)", "DELETE FROM cat.db.v2_pos_file WHERE id IN (3, 9)")
    s.sql("UPDATE cat.db.v2_pos_file SET id = 40 WHERE id = 4")


@table
def v2_pos_partition(s: Spark) -> None:
    """Position deletes, one file for each partition."""
    s.create("v2_pos_partition", "id bigint, kind string", "kind", **MERGE_ON_READ, write__delete__granularity="partition")
    s.insert("v2_pos_partition", "(1, 'a'), (2, 'a'), (3, 'b'), (4, 'b')", "(6, 'a'), (7, 'a'), (8, 'a'), (9, 'b')")
    s.sql("DELETE FROM cat.db.v2_pos_partition WHERE id IN (1, 6, 7)")
    s.sql("DELETE FROM cat.db.v2_pos_partition WHERE id IN (3, 8)")


@table
def v2_pos_unpartitioned(s: Spark) -> None:
    """Position deletes without partitions; the last delete removes a whole file, its deletes stay behind."""
    s.create("v2_pos_unpartitioned", "id int, note string", **MERGE_ON_READ)
    s.insert("v2_pos_unpartitioned", "(1, 'x'), (2, 'y'), (3, 'z')", "(4, 'x'), (5, 'y'), (6, 'z')")
    s.sql("DELETE FROM cat.db.v2_pos_unpartitioned WHERE note = 'y'")
    s.sql("DELETE FROM cat.db.v2_pos_unpartitioned WHERE id >= 4")


@table
def v3_dv(s: Spark) -> None:
    """Deletion vectors: added, replaced, merged into a wider one."""
    s.create("v3_dv", "id bigint, kind string", "kind", version=3, **MERGE_ON_READ)
    s.insert("v3_dv", "(1, 'a'), (2, 'a'), (3, 'b'), (4, 'b'), (5, 'b')", "(6, 'a'), (7, 'a'), (8, 'a'), (9, 'b')")
    s.sql("DELETE FROM cat.db.v3_dv WHERE id IN (1, 6)", "DELETE FROM cat.db.v3_dv WHERE id IN (7, 9)")
    s.sql("UPDATE cat.db.v3_dv SET id = 40 WHERE id = 4")
    s.sql(
        "MERGE INTO cat.db.v3_dv t USING (SELECT * FROM VALUES (2L, 'a'), (100L, 'c') AS v(id, kind)) u ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET id = t.id + 1000 WHEN NOT MATCHED THEN INSERT *"
    )


@table
def v3_new_types(s: Spark) -> None:
    """What version 3 brings to columns: variant, and defaults of added columns."""
    s.create("v3_new_types", "id bigint, v variant", version=3)
    s.insert("v3_new_types", """(1, parse_json('{"a": 1}')), (2, parse_json('[1, 2]')), (3, null)""")
    s.java("v3_new_types").updateSchema().addColumn("added", s.session._jvm.org.apache.iceberg.types.Types.LongType.get()).commit()
    s.sql("INSERT INTO cat.db.v3_new_types VALUES (4, parse_json('\"x\"'), 7)")


@table
def upgraded(s: Spark) -> None:
    """Version 1, then 2 with position deletes, then 3 with deletion vectors."""
    s.create("upgraded", "id bigint, kind string", "kind", version=1)
    s.insert("upgraded", "(1, 'a'), (2, 'a'), (3, 'b'), (4, 'b')", "(5, 'a'), (6, 'a'), (7, 'b'), (8, 'b')")
    modes = "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.delete.granularity'='partition'"
    s.alter("upgraded", f"SET TBLPROPERTIES ('format-version'='2', {modes})")
    s.sql("DELETE FROM cat.db.upgraded WHERE id IN (1, 5, 7)")
    s.alter("upgraded", "SET TBLPROPERTIES ('format-version'='3')")
    s.insert("upgraded", "(9, 'a'), (10, 'b'), (11, 'b')")
    s.sql("DELETE FROM cat.db.upgraded WHERE id IN (2, 10)")


@table
def transforms(s: Spark) -> None:
    """Partition evolution through every transform, with a renamed partition field."""
    s.create("transforms", "id bigint, name string, at timestamp, local timestamp_ntz, day date", "bucket(8, id)")
    s.insert("transforms", "(1, 'alpha', timestamp '2024-01-31 23:59:59.999999', timestamp_ntz '1969-12-31 23:00:00', date '1969-12-31')")
    s.alter("transforms", "ADD PARTITION FIELD truncate(3, name)", "ADD PARTITION FIELD days(at)")
    s.insert("transforms", "(2, 'beta', timestamp '1969-12-31 23:59:59', timestamp_ntz '2024-01-01 00:00:00', null), (3, null, null, null, null)")
    s.alter("transforms", "REPLACE PARTITION FIELD days(at) WITH hours(at) AS an_hour", "ADD PARTITION FIELD months(local) AS m")
    s.insert("transforms", "(4, 'ga', timestamp '2024-06-01 12:30:00', timestamp_ntz '1970-02-01 00:00:00', date '2001-01-01')")
    s.alter("transforms", "DROP PARTITION FIELD bucket(8, id)", "ADD PARTITION FIELD years(day)", "RENAME COLUMN name TO title")
    s.insert("transforms", "(5, 'été', timestamp '2024-06-01 13:30:00', timestamp_ntz '2024-02-01 00:00:00', date '2001-01-01')")
    s.java("transforms").updateSpec().renameField("m", "local_month").commit()
    s.insert("transforms", "(6, 'zeta', timestamp '2024-06-01 13:30:00', timestamp_ntz '2024-02-01 00:00:00', date '2001-01-01')")


@table
def dropped_source(s: Spark) -> None:
    """A column that used to partition the table is gone from the schema."""
    s.create("dropped_source", "id bigint, kind string, region string", "kind")
    s.insert("dropped_source", "(1, 'a', 'eu'), (2, 'b', 'us')")
    s.alter("dropped_source", "DROP PARTITION FIELD kind", "ADD PARTITION FIELD region")
    s.insert("dropped_source", "(3, 'a', 'eu')")
    s.alter("dropped_source", "DROP COLUMN kind")
    s.insert("dropped_source", "(4, 'us')")


@table
def partition_types(s: Spark) -> None:
    """Identity partitions of every type Spark can partition by, with nulls and NaN."""
    columns = "b boolean, i int, l bigint, f float, d double, m decimal(9,2), day date, at timestamp, local timestamp_ntz, s string, bin binary"
    names = [c.split(" ")[0] for c in columns.split(", ")]
    s.create("partition_types", f"id bigint, {columns}", ", ".join(names))
    s.insert(
        "partition_types",
        "(1, true, 1, 2, float('1.5'), 2.5D, 12.34BD, date '2024-02-29', timestamp '2024-02-29 01:02:03.456789', "
        "timestamp_ntz '1969-12-31 23:59:59.000001', 'a b/c=d', X'00FF10')",
        "(2, false, -1, -2, float('NaN'), double('NaN'), -0.05BD, date '0001-01-01', timestamp '1900-01-01 00:00:00', "
        "timestamp_ntz '2024-01-01 00:00:00', '', X'')",
        "(3, null, null, null, null, null, null, null, null, null, null, null)",
        "(4, null, 2147483647, 9223372036854775807, float('-Infinity'), double('Infinity'), 9999999.99BD, date '9999-12-31', "
        "timestamp '9999-12-31 23:59:59.999999', timestamp_ntz '2024-01-01 00:00:00', '日本', X'61')",
    )


@table
def evolved(s: Spark) -> None:
    """Schema evolution: add, rename, drop, move, widen, at the top and inside structs, lists and maps."""
    s.create(
        "evolved",
        "id int, ratio float, price decimal(9,2), gone string, point struct<x: int, y: int>, tags array<string>, "
        "attrs map<string, int>, deep array<struct<k: string, v: map<string, struct<z: double>>>>",
    )
    s.insert(
        "evolved",
        "(1, 1.5, 1.25, 'g', named_struct('x', 1, 'y', 2), array('a', null), map('k', 1), "
        "array(named_struct('k', 'q', 'v', map('m', named_struct('z', double('NaN'))))))",
    )
    s.alter(
        "evolved",
        "ALTER COLUMN id TYPE bigint",
        "ALTER COLUMN ratio TYPE double",
        "ALTER COLUMN price TYPE decimal(18,2)",
        "RENAME COLUMN price TO cost",
        "DROP COLUMN gone",
        "ADD COLUMN point.z double",
        "ALTER COLUMN point.x TYPE bigint",
        "RENAME COLUMN point.y TO why",
        "ADD COLUMN gone string COMMENT 'the same name, another column'",
        "ALTER COLUMN cost AFTER id",
    )
    s.insert(
        "evolved",
        "(2147483648, 12345678901.25, 1e300, named_struct('x', 3000000000, 'why', null, 'z', 0.5), array(), map(), array(), 'again')",
        "(null, null, null, null, null, null, null, null)",
    )


@table
def types(s: Spark) -> None:
    """Every type Spark has, as columns, with nulls, NaN and extremes."""
    s.create(
        "types",
        "id bigint NOT NULL, b boolean, i int, l bigint, f float, d double, m9 decimal(9,2), m18 decimal(18,6), m38 decimal(38,10), "
        "s string, bin binary, day date, at timestamp, local timestamp_ntz, st struct<a: int, b: struct<c: string>>, li array<int>, "
        "ma map<int, string>, none string",
    )
    s.insert(
        "types",
        "(1, true, 1, 9007199254740993, float('1.1'), 1.1D, 1.25BD, 123456789012.123456BD, 1234567890123456789012345678.0123456789BD, "
        "'a much longer text than sixteen characters', X'000102030405060708090A0B0C0D0E0F1011', date '1969-12-31', "
        "timestamp '1969-12-31 23:59:59.999999', timestamp_ntz '2024-01-01 00:00:00.000001', named_struct('a', 1, 'b', named_struct('c', 'x')), "
        "array(1, null, 3), map(1, 'one', 2, null), null)",
        "(2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null), "
        "(3, false, -2147483648, -9223372036854775808, float('NaN'), double('NaN'), -9999999.99BD, -1BD, -1BD, '', X'', date '9999-12-31', "
        "timestamp '0001-01-01 00:00:00', timestamp_ntz '9999-12-31 23:59:59.999999', null, array(), map(), null)",
        "(4, false, 0, 0, float('-0.0'), double('-0.0'), 0BD, 0BD, 0BD, '\U0001f9ca\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff"
        "\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff', X'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF', "
        "date '1970-01-01', timestamp '1970-01-01 00:00:00', timestamp_ntz '1970-01-01 00:00:00', named_struct('a', null, 'b', null), null, null, null)",
    )


@table
def java_types(s: Spark) -> None:
    """Types that Spark reads but has no words for: uuid and fixed, created through the Java API."""
    jvm: Any = s.session._jvm
    t = jvm.org.apache.iceberg.types.Types
    s.create("java_types", "id bigint, u string")
    java = s.java("java_types")
    java.updateSchema().addColumn("uid", t.UUIDType.get()).addColumn("fix", t.FixedType.ofLength(4)).commit()
    s.insert(
        "java_types",
        "(1, 'x', '00000000-0000-0000-0000-0000000000ff', X'01020304'), (2, null, 'ffffffff-1111-2222-3333-444444444444', null), (3, null, null, null)",
    )


@table
def metrics_modes(s: Spark) -> None:
    """Statistics off, counts only, truncated and full; a nested column counts by its own path."""
    s.create(
        "metrics_modes",
        "none string, counts string, short string, whole string, st struct<a: string, b: string>",
        write__metadata__metrics__default="truncate(4)",
        write__metadata__metrics__column__none="none",
        write__metadata__metrics__column__counts="counts",
        write__metadata__metrics__column__whole="full",
    )
    long = "'abcdefghijklmnopqrstuvwxyz'"
    s.insert("metrics_modes", f"({long}, {long}, {long}, {long}, named_struct('a', {long}, 'b', null))")
    s.alter("metrics_modes", "SET TBLPROPERTIES ('write.metadata.metrics.column.st.a'='none')")
    s.insert("metrics_modes", f"({long}, {long}, {long}, {long}, named_struct('a', {long}, 'b', 'b'))")


@table
def refs(s: Spark) -> None:
    """Branches with their own commits, tags, write-audit-publish, a rollback and a cherry-pick."""
    s.create("refs", "id bigint", write__wap__enabled="true")
    s.insert("refs", "(1)")
    s.alter("refs", "CREATE BRANCH dev RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS", "CREATE TAG `the first` RETAIN 30 DAYS")
    s.sql("INSERT INTO cat.db.refs.branch_dev VALUES (100)", "INSERT INTO cat.db.refs.branch_dev VALUES (101)")
    s.insert("refs", "(2)")
    before = s.snapshot("refs")
    s.insert("refs", "(3)")
    s.call(f"rollback_to_snapshot('db.refs', {before})")
    s.session.conf.set("spark.wap.id", "audit-1")
    s.insert("refs", "(4)")
    s.session.conf.unset("spark.wap.id")
    s.insert("refs", "(5)")
    s.call("publish_changes('db.refs', 'audit-1')")
    s.session.conf.set("spark.wap.id", "audit-2")
    s.insert("refs", "(6)")
    s.session.conf.unset("spark.wap.id")
    s.alter("refs", "CREATE TAG last")
    s.alter("refs", "CREATE BRANCH `naïve/ü \"q\"`")


@table
def fast_forward(s: Spark) -> None:
    """A branch with another schema, and main moved forward to it."""
    s.create("fast_forward", "id bigint")
    s.insert("fast_forward", "(1)")
    s.alter("fast_forward", "CREATE BRANCH audit")
    s.sql("INSERT INTO cat.db.fast_forward.branch_audit VALUES (2)")
    s.alter("fast_forward", "ADD COLUMN more string")
    s.sql("INSERT INTO cat.db.fast_forward.branch_audit VALUES (3, 'x')")
    s.call("fast_forward('db.fast_forward', 'main', 'audit')")


@table
def expired(s: Spark) -> None:
    """Snapshots expired: entries and history name snapshots that are gone."""
    s.create("expired", "id bigint, kind string", "kind")
    s.insert("expired", "(1, 'a')", "(2, 'b')", "(3, 'a')")
    s.sql("DELETE FROM cat.db.expired WHERE id = 1")
    s.call("expire_snapshots(table => 'db.expired', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 2)")
    s.insert("expired", "(4, 'c')")


@table
def rewritten(s: Spark) -> None:
    """Manifests merged and rewritten, data files and position deletes compacted."""
    s.create("rewritten", "id bigint, kind string", "kind", **MERGE_ON_READ, commit__manifest__min_count_to_merge="2")
    s.insert("rewritten", "(1, 'a'), (2, 'b'), (20, 'b')", "(3, 'a')", "(4, 'b'), (40, 'b')")
    s.sql("DELETE FROM cat.db.rewritten WHERE id = 20")
    s.call("rewrite_manifests('db.rewritten')")
    s.insert("rewritten", "(5, 'c')")
    s.call("rewrite_data_files(table => 'db.rewritten', options => map('rewrite-all', 'true'))")
    s.sql("DELETE FROM cat.db.rewritten WHERE id = 40")
    s.call("rewrite_position_delete_files(table => 'db.rewritten', options => map('rewrite-all', 'true'))")


@table
def overwritten(s: Spark) -> None:
    """Overwrites: dynamic, whole, and replace by CREATE OR REPLACE, so the uuid stays and the schema does not."""
    s.create("overwritten", "id bigint, kind string", "kind", write__metadata__compression_codec="gzip")
    s.insert("overwritten", "(1, 'a'), (2, 'b')")
    s.sql("INSERT OVERWRITE cat.db.overwritten VALUES (3, 'a')")
    s.sql("DELETE FROM cat.db.overwritten WHERE kind = 'a'")
    s.sql("CREATE OR REPLACE TABLE cat.db.overwritten USING iceberg PARTITIONED BY (other) AS SELECT 9L AS id, 8 AS other")
    s.insert("overwritten", "(10, 8)")


@table
def statistics(s: Spark) -> None:
    """Puffin statistics of two snapshots and a partition statistics file."""
    s.create("statistics", "id bigint, kind string", "kind")
    s.insert("statistics", "(1, 'a'), (2, 'b'), (3, 'b')")
    s.call("compute_table_stats('db.statistics')")
    s.insert("statistics", "(4, 'a'), (5, 'c'), (6, null)")
    s.call("compute_table_stats(table => 'db.statistics', columns => array('kind'))")
    s.call("compute_partition_stats('db.statistics')")


def _formats(s: Spark, name: str, data: str) -> None:
    s.create(
        name,
        "id bigint, kind string, at timestamp, bin binary, d double, st struct<a: int, b: string>, li array<int>, ma map<string, int>",
        "kind",
        **MERGE_ON_READ,
        write__format__default=data,
        write__delete__format__default=data,
    )
    s.insert(
        name,
        "(1, 'a', timestamp '2024-01-01 00:00:00.123456', X'00', 1.5D, named_struct('a', 1, 'b', 'x'), array(1), map('k', 1)), "
        "(2, 'a', null, null, double('NaN'), null, null, null), (3, 'b', null, X'FF', null, null, array(), map())",
        "(4, 'b', timestamp '1969-01-01 00:00:00.000001', X'', 0D, null, null, null), (5, 'b', null, null, null, null, null, null)",
    )
    s.sql(f"DELETE FROM cat.db.{name} WHERE id IN (1, 5)")


@table
def orc_files(s: Spark) -> None:
    """ORC data files and ORC position deletes."""
    _formats(s, "orc_files", "orc")


@table
def avro_files(s: Spark) -> None:
    """Avro data files and Avro position deletes."""
    _formats(s, "avro_files", "avro")


@table
def hostile_names(s: Spark) -> None:
    """Names and partition values with quotes, dots, slashes, HTML, non-ASCII."""
    s.create(
        "hostile_names",
        "id bigint, `a.b` string, `it's \"quoted\"` string, `<b>bold</b>&amp;` string, `naïve 日本 \U0001f9ca` string, ` space ` int, `1st` int, "
        "`tick``s` string, `q.w` struct<`x.y`: int, `<i>`: string>",
        "`<b>bold</b>&amp;`, `naïve 日本 \U0001f9ca`, truncate(2, `a.b`)",
        **MERGE_ON_READ,
    )
    s.insert(
        "hostile_names",
        "(1, 'x.y', 'q', '<script>alert(\"1\")</script>', 'ü/ö=ä %20', 1, 1, 't', named_struct('x.y', 1, '<i>', 'z')), "
        "(2, null, null, '', '\U0001f9ca', null, null, null, null), (3, null, null, '', '\U0001f9ca', 3, 3, '`', null)",
        "(4, 'line\\nbreak', 'it''s', null, null, 1, 1, 't', null)",
    )
    s.sql("DELETE FROM cat.db.hostile_names WHERE id = 2")


@table
def empty(s: Spark) -> None:
    """Created, never written."""
    s.create("empty", "id bigint, kind string, st struct<a: int>", "kind")


@table
def empty_unpartitioned(s: Spark) -> None:
    """Created without partitions, never written; version 3."""
    s.create("empty_unpartitioned", "id bigint", version=3)


@table
def emptied(s: Spark) -> None:
    """Written, then emptied: a current snapshot without a live file."""
    s.create("emptied", "id bigint, kind string", "kind")
    s.insert("emptied", "(1, 'a'), (2, 'b')")
    s.sql("DELETE FROM cat.db.emptied")


@table
def equality_deletes(s: Spark) -> None:
    """Equality deletes, by one and by two columns, one of them in a partition, beside a position delete."""
    s.create("equality_deletes", "id bigint, kind string, note string", "kind", **MERGE_ON_READ)
    s.insert("equality_deletes", "(1, 'a', 'x'), (2, 'a', 'y'), (3, 'b', 'x'), (4, 'b', null)")
    _delete_equal(s, "equality_deletes", {"id": (1, [1])}, "kind=a", "1")
    s.insert("equality_deletes", "(1, 'a', 'z'), (5, 'b', null)")
    _delete_equal(s, "equality_deletes", {"id": (1, [4, 5]), "note": (3, [None, None])}, "kind=b", "2")
    s.sql("DELETE FROM cat.db.equality_deletes WHERE id = 2")


@table
def equality_deletes_global(s: Spark) -> None:
    """An unpartitioned equality delete."""
    s.create("equality_deletes_global", "id bigint, note string")
    s.insert("equality_deletes_global", "(1, 'x'), (2, 'y')", "(3, 'z')")
    _delete_equal(s, "equality_deletes_global", {"id": (1, [2, 3])}, None, "1")


def _delete_equal(s: Spark, name: str, columns: dict[str, tuple[int, list[Any]]], partition: str | None, tag: str) -> None:
    """Commit one equality delete file through the Java API: Spark reads them but writes none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    java = s.java(name)
    jvm: Any = s.session._jvm
    gateway: Any = s.session.sparkContext._gateway
    fields, arrays = [], []
    for column, (field_id, values) in columns.items():
        kind = pa.int64() if column == "id" else pa.string()
        fields.append(pa.field(column, kind, metadata={"PARQUET:field_id": str(field_id)}))
        arrays.append(pa.array(values, kind))
    path = Path(java.location()) / "data" / f"equality-{tag}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)
    ids = gateway.new_array(gateway.jvm.int, len(columns))
    for at, (field_id, _) in enumerate(columns.values()):
        ids[at] = field_id
    source = java.io().newInputFile(str(path))
    metrics = jvm.org.apache.iceberg.parquet.ParquetUtil.fileMetrics(source, jvm.org.apache.iceberg.MetricsConfig.forTable(java))
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(java.spec()).ofEqualityDeletes(ids)
    builder = builder.withPath(str(path)).withFormat("parquet").withFileSizeInBytes(path.stat().st_size).withMetrics(metrics)
    if partition is not None:
        builder = builder.withPartitionPath(partition)
    java.newRowDelta().addDeletes(builder.build()).commit()


@table
def v4_java(s: Spark) -> None:
    """Format version 4 as the released Java library writes it."""
    s.create("v4_java", "id bigint, kind string", "kind", version=4, **MERGE_ON_READ)
    s.insert("v4_java", "(1, 'a'), (2, 'a'), (3, 'b')", "(4, 'b'), (5, 'b')")
    s.sql("DELETE FROM cat.db.v4_java WHERE id IN (1, 5)")


def write(session: Any, names: list[str] | None = None, log: Callable[[str], None] | None = None) -> list[str]:
    """Write the tables into ``cat.db``; their names."""
    spark = Spark(session)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS cat.db")
    written = names or list(TABLES)
    for name in written:
        began = time.perf_counter()
        TABLES[name](spark)
        if log:
            log(f"{name:26} {time.perf_counter() - began:5.1f} s  {(TABLES[name].__doc__ or '').strip()}")
    return written


if __name__ == "__main__":
    folder = Path(sys.argv[1]).absolute()
    write(start(folder), sys.argv[2:] or None, print)
