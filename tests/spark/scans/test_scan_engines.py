"""What ``engine="auto"`` leaves to Iceberg's runtime: the rows are the same with its jar or without."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import UnsupportedError
from iceexplore.on_spark import register
from tests.helpers.sampling import one_of
from tests.spark.conftest import Warehouse
from tests.spark.scans.test_scan import own, plan_of, same
from tests.spark.session import Spark

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(warehouse: Warehouse) -> Spark:
    return Spark(warehouse.session)


ENGINES: tuple[Literal["spark", "auto"], ...] = ("spark", "auto")
ALL: tuple[Literal["spark", "auto", "iceberg"], ...] = (*ENGINES, "iceberg")


def left_to_iceberg(frame: Any) -> bool:
    return "BatchScan" in plan_of(frame)


def test_a_branch_has_the_current_schema(warehouse: Warehouse, spark: Spark) -> None:
    spark.create("branch_avro", "id int, x string", write__format__default="avro")
    spark.insert("branch_avro", "(1, 'a'), (2, 'b')")
    first = spark.snapshot("branch_avro")
    spark.alter("branch_avro", "CREATE BRANCH b", "DROP COLUMN x", "ADD COLUMN x string", "ALTER COLUMN id TYPE bigint")
    t = ix.open(warehouse.path("branch_avro"))
    for state, x in ((t.at(ref="b"), None), (t.at(snapshot=first), "a"), (t, None)):
        expected = own(state)
        assert expected["x"][0].as_py() == x
        for engine in ALL:
            frame = state.scan(spark.session, engine=engine)
            assert left_to_iceberg(frame) == (engine != "spark")
            same(frame, expected)
    # Iceberg 1.11 looks a filter's column up in the current schema.
    spark.alter("branch_avro", "RENAME COLUMN id TO number")
    renamed = ix.open(warehouse.path("branch_avro")).at(snapshot=first)
    for engine in ENGINES:
        same(renamed.scan(spark.session, "id = 1", engine=engine), own(renamed, "id = 1"))
    with pytest.raises(UnsupportedError, match="a column that was renamed"):
        renamed.scan(spark.session, "id = 1", engine="iceberg")


def test_filters_inside_structs(warehouse: Warehouse, spark: Spark) -> None:
    """Iceberg's writer counts no null of a float in a null struct, and its reader believes that."""
    spark.create("struct_counts", "id int, st struct<f: float>")
    spark.sql(
        "INSERT INTO cat.db.struct_counts SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(1, named_struct('f', float(1))), (2, null)"
    )
    spark.alter("struct_counts", "SET TBLPROPERTIES ('write.format.default' = 'avro')")
    spark.insert("struct_counts", "(3, null)")
    t = ix.open(warehouse.path("struct_counts"))
    expected = own(t, "st.f is null")
    assert sorted(build.to_pylist(expected["id"])) == [2, 3]
    for engine in ENGINES:
        same(t.scan(spark.session, "st.f is null", engine=engine), expected)
    with pytest.raises(UnsupportedError, match="inside a struct"):
        t.scan(spark.session, "st.f is null", engine="iceberg")


def test_files_without_ids(warehouse: Warehouse, spark: Spark, tmp_path: Path) -> None:
    """Iceberg takes their columns by their order: here it is asked only by name."""
    spark.create("no_ids", "a string, b bigint")
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"x": ["x", "y"], "b": [1, 2]}), path)
    java, jvm = spark.java("no_ids"), spark.session._jvm
    file = jvm.org.apache.iceberg.DataFiles.builder(java.spec()).withPath(str(path)).withFormat("parquet")
    file = file.withFileSizeInBytes(path.stat().st_size).withRecordCount(2).build()
    java.newAppend().appendFile(file).commit()
    t = ix.open(warehouse.path("no_ids"), allow=[str(tmp_path)])
    for engine in ENGINES:
        t = t.refresh()
        frame = t.scan(spark.session, engine=engine)
        assert [(p.code, p.where) for p in t.problems] == [("data-no-field-ids", str(path))], "reported before reading"
        same(frame, own(t))
    assert own(t).to_pylist() == [{"a": None, "b": 1}, {"a": None, "b": 2}]


def test_a_hash_in_the_path(warehouse: Warehouse, spark: Spark, tmp_path: Path) -> None:
    """Iceberg takes what follows it for the name of a metadata table."""
    lab = ix.create(tmp_path / "a#b" / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1, 2, 3]})
    lab.set_properties({"write.delete.mode": "merge-on-read"})
    lab.delete("id = 2")
    t = ix.open(tmp_path / "a#b" / "t")
    columns = ["id", "_deleted"]
    for engine in ENGINES:
        same(t.scan(spark.session, columns=columns, engine=engine), own(t, columns=columns))
    with pytest.raises(UnsupportedError, match="#"):
        t.scan(spark.session, engine="iceberg")


@pytest.mark.parametrize("word", one_of(2, ["and", "or"]))
def test_filters_of_many_terms(warehouse: Warehouse, spark: Spark, word: str) -> None:
    t = ix.open(warehouse.path("evolved"))
    one = "id <> {}" if word == "and" else "(id = {} and id > 0)"
    where = f" {word} ".join(one.format(n) for n in range(400))
    for engine in ALL[::2]:
        same(t.scan(spark.session, where, engine=engine), own(t, where))


def test_columns_with_commas_and_blanks(spark: Spark, tmp_path: Path) -> None:
    register(spark.session)
    lab = ix.create(tmp_path / "t", {"a,b": "long", " c ": "long", "d`e": "long", "f": "long"})
    lab.append({"a,b": [1], " c ": [2], "d`e": [3], "f": [4]})
    reader = spark.session.read.format("iceexplore").option("columns", "`a,b`, f,` c ` ,`d``e`")
    frame = reader.load(str(tmp_path / "t"))
    assert frame.columns == ["a,b", "f", " c ", "d`e"]
    assert [tuple(row) for row in frame.collect()] == [(1, 4, 2, 3)]


def test_uuids_as_java_orders_them(spark: Spark, tmp_path: Path) -> None:
    """Java's least UUID is 80000000-...: bounds that it writes may have crossed for others."""
    ids = [f"{c * 8}-{c * 4}-{c * 4}-{c * 4}-{c * 12}" for c in "0f7"]
    lab = ix.create(tmp_path / "t", {"id": "long", "u": "uuid"}, partition_by="u", format_version=2)
    where = str(tmp_path / "t")
    lab.append({"id": [0, 1, 2], "u": ids})
    frame = spark.session.createDataFrame([(n, u) for n, u in enumerate(ids)], "id long, u string")
    frame.coalesce(1).write.format("iceberg").mode("append").save(where)
    t = ix.open(where)
    for n, u in enumerate(ids):
        assert t.to_arrow(f"u = '{u}'")["id"].to_pylist() == [n, n]
        same(t.scan(spark.session, f"u = '{u}'"), own(t, f"u = '{u}'"))


def test_both_zeros_are_zero(spark: Spark, tmp_path: Path) -> None:
    """Parquet, to which Spark pushes filters down, has -0.0 below 0.0; so has a set of many values."""
    lab = ix.create(tmp_path / "t", {"id": "long", "d": "double", "f": "float", "s": "struct<d: double>"})
    zeros = [-0.0, 0.0, 5.0, -1.0, float("nan"), None]
    for values in (zeros, [-0.0], [0.0]):
        lab.append({"id": range(len(values)), "d": values, "f": values, "s": [{"d": v} for v in values]})
    t = ix.open(tmp_path / "t")
    many = ", ".join(map(str, range(20)))
    compared = ["= 0.0", "= -0.0", ">= 0.0", "<= -0.0", "> -0.0", "< 0.0", "!= 0.0", "<=> 0.0"]
    listed = ["in (0.0, 5.0)", f"in ({many})", f"not in ({many})", "not in (-0.0, 5.0)"]
    asked = [*(f"{{}} {text}" for text in compared + listed), "not {} >= 0.0"]
    for name in ("d", "f", "s.d"):
        for text in asked if name == "d" else asked[2::3]:
            where = text.format(name)
            same(t.scan(spark.session, where, engine="spark"), own(t, where))
    for text in asked[::3]:
        same(t.scan(spark.session, text.format("d"), engine="iceberg"), own(t, text.format("d")))
