# ruff: noqa: E501 - the text of SQL
"""Tables that Spark writes with Iceberg's own runtime: the ground truth that the metadata tables are measured by.

Each table is one function under `table`, small, and about one thing; those about columns are in `shapes`. To keep them:
``python -m tests.spark.tables FOLDER``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.spark import shapes
from tests.spark.session import MERGE_ON_READ, Spark, start, table, write

__all__ = ["shapes"]


@table
def v1_plain(s: Spark) -> None:
    """Version 1, two appends and a copy-on-write delete."""
    s.create("v1_plain", "id bigint, name string, price double", version=1)
    s.insert("v1_plain", "(1, 'one', 1.5), (2, 'two', null)", "(3, 'three', double('NaN')), (4, null, -0.0)")
    s.sql("DELETE FROM cat.db.v1_plain WHERE id = 2")


@table
def v2_pos_file(s: Spark) -> None:
    """Position deletes, one file for each data file."""
    s.create("v2_pos_file", "id bigint, kind string", "kind", **MERGE_ON_READ, write__delete__granularity="file")
    s.insert(
        "v2_pos_file", "(1, 'a'), (2, 'a'), (3, 'b'), (4, 'b'), (5, 'b')", "(6, 'a'), (7, 'a'), (8, 'a'), (9, 'b')"
    )
    s.sql("DELETE FROM cat.db.v2_pos_file WHERE id IN (1, 6, 7)", "DELETE FROM cat.db.v2_pos_file WHERE id IN (3, 9)")
    s.sql("UPDATE cat.db.v2_pos_file SET id = 40 WHERE id = 4")


@table
def v2_pos_partition(s: Spark) -> None:
    """Position deletes, one file for each partition."""
    s.create(
        "v2_pos_partition", "id bigint, kind string", "kind", **MERGE_ON_READ, write__delete__granularity="partition"
    )
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
def refs(s: Spark) -> None:
    """Branches with their own commits, tags, write-audit-publish, a rollback and a cherry-pick."""
    s.create("refs", "id bigint", write__wap__enabled="true")
    s.insert("refs", "(1)")
    s.alter(
        "refs",
        "CREATE BRANCH dev RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS",
        "CREATE TAG `the first` RETAIN 30 DAYS",
    )
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
    s.alter("refs", 'CREATE BRANCH `naïve/ü "q"`')


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
    s.sql(
        "CREATE OR REPLACE TABLE cat.db.overwritten USING iceberg PARTITIONED BY (other) AS SELECT 9L AS id, 8 AS other"
    )
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


def _delete_equal(
    s: Spark, name: str, columns: dict[str, tuple[int, list[Any]]], partition: str | None, tag: str
) -> None:
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
    metrics = jvm.org.apache.iceberg.parquet.ParquetUtil.fileMetrics(
        source, jvm.org.apache.iceberg.MetricsConfig.forTable(java)
    )
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(java.spec()).ofEqualityDeletes(ids)
    builder = (
        builder.withPath(str(path)).withFormat("parquet").withFileSizeInBytes(path.stat().st_size).withMetrics(metrics)
    )
    if partition is not None:
        builder = builder.withPartitionPath(partition)
    java.newRowDelta().addDeletes(builder.build()).commit()


@table
def v4_java(s: Spark) -> None:
    """Format version 4 as the released Java library writes it."""
    s.create("v4_java", "id bigint, kind string", "kind", version=4, **MERGE_ON_READ)
    s.insert("v4_java", "(1, 'a'), (2, 'a'), (3, 'b')", "(4, 'b'), (5, 'b')")
    s.sql("DELETE FROM cat.db.v4_java WHERE id IN (1, 5)")


if __name__ == "__main__":
    write(start(Path(sys.argv[1]).absolute()), sys.argv[2:] or None, print)
