# ruff: noqa: E501 - the text of SQL
"""Tables about columns and partitions: types, evolution, transforms, statistics, names."""

from __future__ import annotations

from typing import Any

from tests.spark.session import MERGE_ON_READ, Spark, table


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
def v3_new_types(s: Spark) -> None:
    """What version 3 brings to columns: variant, and defaults of added columns."""
    s.create("v3_new_types", "id bigint, v variant", version=3)
    s.insert("v3_new_types", """(1, parse_json('{"a": 1}')), (2, parse_json('[1, 2]')), (3, null)""")
    s.java("v3_new_types").updateSchema().addColumn(
        "added", s.session._jvm.org.apache.iceberg.types.Types.LongType.get()
    ).commit()
    s.sql("INSERT INTO cat.db.v3_new_types VALUES (4, parse_json('\"x\"'), 7)")


@table
def transforms(s: Spark) -> None:
    """Partition evolution through every transform, with a renamed partition field."""
    s.create("transforms", "id bigint, name string, at timestamp, local timestamp_ntz, day date", "bucket(8, id)")
    s.insert(
        "transforms",
        "(1, 'alpha', timestamp '2024-01-31 23:59:59.999999', timestamp_ntz '1969-12-31 23:00:00', date '1969-12-31')",
    )
    s.alter("transforms", "ADD PARTITION FIELD truncate(3, name)", "ADD PARTITION FIELD days(at)")
    s.insert(
        "transforms",
        "(2, 'beta', timestamp '1969-12-31 23:59:59', timestamp_ntz '2024-01-01 00:00:00', null), (3, null, null, null, null)",
    )
    s.alter(
        "transforms",
        "REPLACE PARTITION FIELD days(at) WITH hours(at) AS an_hour",
        "ADD PARTITION FIELD months(local) AS m",
    )
    s.insert(
        "transforms",
        "(4, 'ga', timestamp '2024-06-01 12:30:00', timestamp_ntz '1970-02-01 00:00:00', date '2001-01-01')",
    )
    s.alter(
        "transforms",
        "DROP PARTITION FIELD bucket(8, id)",
        "ADD PARTITION FIELD years(day)",
        "RENAME COLUMN name TO title",
    )
    s.insert(
        "transforms",
        "(5, 'été', timestamp '2024-06-01 13:30:00', timestamp_ntz '2024-02-01 00:00:00', date '2001-01-01')",
    )
    s.java("transforms").updateSpec().renameField("m", "local_month").commit()
    s.insert(
        "transforms",
        "(6, 'zeta', timestamp '2024-06-01 13:30:00', timestamp_ntz '2024-02-01 00:00:00', date '2001-01-01')",
    )


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
def hostile_names(s: Spark) -> None:
    """Names and partition values with quotes, dots, slashes, HTML, non-ASCII."""
    s.create(
        "hostile_names",
        'id bigint, `a.b` string, `it\'s "quoted"` string, `<b>bold</b>&amp;` string, `naïve 日本 \U0001f9ca` string, ` space ` int, `1st` int, '
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
