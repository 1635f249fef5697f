"""Changes by rows as Spark DataFrames: Iceberg's own changelog where there is one, else ours of Arrow."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.on_spark import SparkColumns
from iceexplore.reading import Output, outputs_of
from tests.helpers.folders import local
from tests.spark import tables
from tests.spark.conftest import Warehouse
from tests.spark.session import MERGE_ON_READ, Spark
from tests.spark.test_changelog import COPY_ON_WRITE, changelog, rows, write

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open


def test_copy_on_write_as_iceberg_has_it(warehouse: Warehouse) -> None:
    spark, name = Spark(warehouse.session), "frames_cow"
    write(spark, name, 2, **COPY_ON_WRITE)
    t = ix.open(warehouse.path(name))
    start, end = t.snapshots[0].snapshot_id, t.snapshots[-1].snapshot_id
    seen: set[str] = set()
    several: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({}, {}),
        ({"identifier_columns": ["id"]}, {"identifier_columns": "array('id')"}),
        ({"net_changes": True}, {"net_changes": "true"}),
    ]
    for ours, theirs in several:
        frame = t.changes(start, end, rows=True, spark=spark.session, **ours)
        expected = changelog(spark, name, start, end, **theirs)
        assert frame.columns == expected.column_names
        found = frame.toArrow()
        assert rows(found) == rows(expected), ours
        seen |= set(found["_change_type"].to_pylist())
    assert seen == {"INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"}


def test_merge_on_read_as_without_spark(warehouse: Warehouse) -> None:
    """Java refuses these tables."""
    assert tables.__name__  # importing it registers the tables
    spark, name = Spark(warehouse.session), "frames_mor"
    write(spark, name, 3, **MERGE_ON_READ)
    t = ix.open(warehouse.path(name))
    end = t.snapshots[-1].snapshot_id
    several: list[dict[str, Any]] = [{}, {"columns": ["x", "id"], "filter": "id < 5"}, {"net_changes": True}]
    for more in several:
        frame = t.changes(None, end, rows=True, spark=spark.session, **more)
        plain = t.changes(None, end, rows=True, **more)
        assert frame.columns == plain.column_names
        assert rows(frame.toArrow()) == rows(plain), more
    e = ix.open(warehouse.path("equality_deletes"))
    last = e.snapshots[-1].snapshot_id
    found = e.changes(None, last, rows=True, spark=spark.session)
    assert rows(found.toArrow()) == rows(e.changes(None, last, rows=True))


def test_a_simulation_with_types_of_every_shape(warehouse: Warehouse) -> None:
    """Rows are carried over, equal but for -0.0, in maps and structs, and with NaN."""
    s = ix.empty(
        {"id": "long", "u": "uuid", "m": "map<string, long>", "st": "struct<a: double, b: list<uuid>>"},
        format_version=4,
    )
    u = uuid.UUID(int=7)
    frame = pd.DataFrame(
        {
            "id": range(6),
            "u": [u.bytes] * 6,
            "m": [[("k", i)] for i in range(6)],
            "st": [{"a": a, "b": [u.bytes]} for a in (float("nan"), 0.0, -0.0, 1.0, None, 2.0)],
        }
    )
    s.append(frame)
    [file] = s.inspect.files()["file_path"]
    again = frame.iloc[:5].copy()
    again["st"] = [*frame["st"][:1], {"a": -0.0, "b": [u.bytes]}, *frame["st"][2:5]]
    s.row_delta(deletes={file: [0, 3]})
    s.overwrite(again, delete=[file])
    ends = s.snapshots[0].snapshot_id, s.snapshots[-1].snapshot_id
    spark_columns = SparkColumns([Output(o.name, o.path) for o in outputs_of(s._state, None)], (4, 1))
    several: list[dict[str, Any]] = [{}, {"net_changes": True}, {"identifier_columns": ["id"]}]
    for more in several:
        plain = s.changes(*ends, rows=True, **more)
        shown = spark_columns.of(plain.select(range(4)))
        for name in plain.column_names[4:]:
            shown = shown.append_column(name, plain[name])
        found = s.changes(*ends, rows=True, spark=warehouse.session, **more)
        assert texts(found.toArrow()) == texts(shown), more


def test_columns_that_differ_in_case_only(warehouse: Warehouse) -> None:
    """Spark tells them apart by name only with ``spark.sql.caseSensitive``."""
    types = {"id": "long", "ID": "long", "st": "struct<a: int, A: struct<b: int, B: int>>"}
    s = ix.empty(types, format_version=3)
    inner = [{"a": 1, "A": {"b": 2, "B": 3}}, {"a": 1, "A": None}]
    s.append(pd.DataFrame({"id": [1, 2], "ID": [3, 4], "st": inner}))
    again = pd.DataFrame({"id": [1, 2], "ID": [3, 5], "st": inner})
    s.overwrite(again, delete=s.inspect.files()["file_path"].tolist())
    several: list[dict[str, Any]] = [
        {},
        {"identifier_columns": ["id"], "columns": ["ID"]},
        {"identifier_columns": ["st.A.B"], "columns": ["st.a", "st.A", "st.A.b"]},
    ]
    for more in several:
        found = s.changes(None, "main", rows=True, spark=warehouse.session, **more).toArrow()
        plain = s.changes(None, "main", rows=True, **more)
        assert (found.column_names, rows(found)) == (plain.column_names, rows(plain))


def texts(table: pa.Table) -> Counter[str]:
    return Counter(repr(list(row.values())) for row in table.to_pylist())


def test_damage_shows_when_the_frame_runs(warehouse: Warehouse, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    lab = ix.create(tmp_path / "t", {"id": "long"})
    lab.append({"id": list(range(100))})
    start = lab.append({"id": [1]}).snapshot_id
    end = lab.append({"id": list(range(100, 200))}).snapshot_id
    for path in lab.inspect.data_files()["file_path"]:
        local(path).write_bytes(b"PAR1 nothing of the kind PAR1")
    frame = lab.changes(start, end, rows=True, spark=warehouse.session)  # no data file is read here
    with pytest.raises(PySparkException, match=r"iceexplore\.errors\.FormatError: .*\.parquet"):
        frame.collect()
    with pytest.raises(ix.FormatError):
        lab.changes(start, end, rows=True)
