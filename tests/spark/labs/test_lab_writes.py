"""Data files that Spark writes for labs: the rows, entries and order that the same rows get without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.errors import OptionError, OutsideRootsError, StorageError
from iceexplore.on_spark.transport._arrow_schema import for_spark, spark_schema
from tests.helpers.sampling import one_of
from tests.spark.conftest import Warehouse
from tests.spark.labs.test_labs import PARTITIONS, SCHEMA, rows_of, some
from tests.spark.session import arrow

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open


def frame_of(session: Any, table: pa.Table) -> Any:
    """A Spark data frame of a few rows, in two partitions."""
    return session.createDataFrame(for_spark(table), spark_schema(table.schema)).repartition(2, "id")


def files_of(lab: ix.Lab) -> list[str]:
    """Return the entry of each file, by partition, without its name and its place among the files."""
    table = lab.inspect.files.arrow().drop_columns(["file_path", "first_row_id"])
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("version", one_of(2, [1, 2, 3, 4], 1))
def test_rows_and_entries_are_those_of_rows_written_here(warehouse: Warehouse, tmp_path: Path, version: int) -> None:
    by = PARTITIONS[version % 3 :: 3] if version < 4 else ("void(s)", "bucket(2, id)", "truncate(2, at.name)")
    how: dict[str, Any] = {"partition_by": by, "sort_by": ["x desc", "id"], "format_version": version}
    lab, here = (ix.create(tmp_path / name, SCHEMA, **how) for name in ("spark", "here"))
    rows = some(0, 24)
    made = lab.append(frame_of(warehouse.session, rows))
    here.append(rows)
    assert made.operation == "append" and (made.summary or {})["added-records"] == "24"
    assert files_of(lab) == files_of(here)
    assert rows_of(lab.to_arrow()) == rows_of(here.to_arrow())
    assert not len(lab.verify(level="data")) and not len(lab.orphan_files(running=True))
    files = {w.location: w.length for w in lab.writes if w.kind == "data-file"}
    assert files == dict(zip(*(lab.inspect.files()[c] for c in ("file_path", "file_size_in_bytes")), strict=True))
    if version < 4:
        theirs = warehouse.session.read.format("iceberg").load(lab.metadata_location)
        assert rows_of(arrow(theirs)) == rows_of(here.to_arrow())


def test_overwrite_and_appends_to_what_is_there(warehouse: Warehouse, tmp_path: Path) -> None:
    session = warehouse.session
    lab = ix.create(tmp_path / "t", {"id": "long", "kind": "string"}, partition_by="kind", sort_by="id desc")
    lab.append({"id": [1, 2, 3], "kind": ["a", "b", "b"]})
    lab.append(session.createDataFrame([("a", 4), (None, 5)], "kind string, id int"))
    lab.overwrite(session.createDataFrame([(9, "b"), (10, "b")], "id long, kind string"), "kind = 'b'")
    lab.append(session.createDataFrame([(6,)], "id long"))
    found = sorted((r["id"], r["kind"]) for r in lab.to_arrow().to_pylist())
    assert found == [(1, "a"), (4, "a"), (5, None), (6, None), (9, "b"), (10, "b")]
    assert [s.operation for s in lab.snapshots] == ["append", "append", "overwrite", "append"]
    lab.merge(session.createDataFrame([(6, "m"), (7, "n")], "id long, kind string"), on="id")
    kinds = {r["id"]: r["kind"] for r in lab.to_arrow().to_pylist()}
    assert kinds == {1: "a", 4: "a", 5: None, 6: "m", 7: "n", 9: "b", 10: "b"}
    assert lab.merge(session.createDataFrame([], "id long, kind string"), on="id") is None
    assert not len(lab.orphan_files(running=True))


def test_floats_are_in_the_total_order(warehouse: Warehouse, tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"x": "double"}, sort_by="x nulls last")
    nan, inf = float("nan"), float("inf")
    values = [(x,) for x in (0.0, nan, None, -0.0, inf, -inf, 0.0, -0.0, 1.5)]
    lab.append(warehouse.session.createDataFrame(values, "x double").coalesce(1))
    [location] = lab.inspect.files()["file_path"]
    assert [str(x) for x in pq.read_table(location)["x"].to_pylist()] == [
        "-inf", "-0.0", "-0.0", "0.0", "0.0", "1.5", "inf", "nan", "None",
    ]  # fmt: skip
    shown = lab.scan(warehouse.session, engine="spark")
    assert shown.where("x = double('NaN')").count() == 1, "bounds without NaN would skip the row group"


@pytest.mark.parametrize("by", one_of(2, [("bucket(2, id)",), ((),)]))
def test_columns_have_any_names(warehouse: Warehouse, tmp_path: Path, by: Any) -> None:
    session = warehouse.session
    lab = ix.create(tmp_path / "t", {"id": "long", "a`b": "long", "`": "long"}, partition_by=by)
    lab.append(session.range(3).selectExpr("id", "id + 10 as `a``b`"))
    lab.merge(session.range(2, 4).selectExpr("id", "id + 20 as `a``b`", "1 as ````"), on="id")
    lab.merge(session.createDataFrame([(10, 5)], "`a``b` long, ```` int"), on="a`b")
    found = sorted(tuple(row.values()) for row in lab.to_arrow().to_pylist())
    assert found == [(0, 10, 5), (1, 11, None), (2, 22, 1), (3, 23, 1)]


def test_a_column_is_no_rows(warehouse: Warehouse, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    assert warehouse.session
    lab = ix.create(tmp_path / "t", {"id": "long"})
    for refused in (
        lambda: lab.append(f.col("id")),
        lambda: lab.merge(f.col("id"), on="id"),
        lambda: lab.overwrite(f.col("id")),
    ):
        with pytest.raises(OptionError, match=r"not pyspark\.sql\..*Column"):
            refused()


def test_what_fails_leaves_the_table_as_it_was(warehouse: Warehouse, tmp_path: Path) -> None:
    session = warehouse.session
    properties = {"write.target-file-size-bytes": "40000"}
    lab = ix.create(tmp_path / "t", {"id": "long"}, properties=properties)
    lab.append({"id": [1]})
    before = lab.metadata_location
    # What does not fit is in the last of three batches: the files of those before are written by then.
    bad = session.range(0, 30_000, 1, 1).selectExpr("if(id < 25000, cast(id AS decimal(20, 1)), 0.5BD) AS id")
    with pytest.raises(OptionError, match="column 'id': decimal"):
        lab.append(bad)
    assert ix.open(tmp_path / "t").metadata_location == before == lab.metadata_location
    assert lab.count() == 1
    left = lab.orphan_files()
    assert len(left) > 1 and set(left["kind"]) == {"data"}
    assert len(lab.remove_orphan_files(0)) == len(left) and lab.count() == 1


def test_what_workers_cannot_write_is_reported_here(warehouse: Warehouse, tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "s": "string"}, partition_by="s")
    frame = warehouse.session.createDataFrame([(1, "a")], "id long, s string")
    data = tmp_path / "t" / "data"
    data.write_bytes(b"")
    with pytest.raises(StorageError, match=rf"could not be written: {data} is a file, but must be a folder") as caught:
        lab.append(frame)
    assert "Traceback" not in str(caught.value)
    data.unlink()
    data.mkdir()
    (tmp_path / "outside").mkdir()
    (data / "s=a").symlink_to(tmp_path / "outside")
    with pytest.raises(OutsideRootsError, match=rf"leads to {tmp_path}/outside/"):
        lab.append(frame)
    assert not any((tmp_path / "outside").iterdir()) and not lab.snapshots


def test_what_does_not_fit_is_reported_before_anything_is_run(warehouse: Warehouse, tmp_path: Path) -> None:
    session = warehouse.session
    lab = ix.create(tmp_path / "t", {"id": "long", "city": "string"})
    for columns, message in {
        "id AS id, 'x' AS cyti": "no column 'cyti'.*city",
        "'x' AS id": "'id': string does not fit long",
        "id, make_ym_interval(1) AS city": "cannot be converted to Arrow",
    }.items():
        with pytest.raises(OptionError, match=message):
            lab.append(session.range(3).selectExpr(*columns.split(", ")))
    with pytest.raises(OptionError, match="no rows"):
        lab.append(session.range(3).where("id < 0"))
    with pytest.raises(OptionError, match="stream"):
        lab.append(session.readStream.format("rate").load())
    assert not lab.snapshots and not len(lab.orphan_files(running=True))
