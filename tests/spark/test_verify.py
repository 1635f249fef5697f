"""t.verify on Spark's workers: nothing is found in what Spark wrote, and what is found here is found there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import CommitWriter
from iceexplore.errors import UnsupportedError
from iceexplore.verification import verify_local
from iceexplore.verification._cross_file import beside, suspects
from iceexplore.verification._findings import Checked, Place
from tests.helpers.sampling import one_of
from tests.spark import tables
from tests.spark.conftest import Warehouse
from tests.spark.session import TABLES, Spark
from tests.verification.test_verify_damage import named_last, say_lineage

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open


def rows(frame: Any) -> list[tuple[Any, ...]]:
    """Findings in an order of their own."""
    return sorted((tuple(row.values()) for row in frame.to_pylist()), key=repr)


@pytest.mark.parametrize("name", one_of(2, TABLES))
def test_nothing_is_wrong_with_what_spark_wrote(warehouse: Warehouse, name: str) -> None:
    """Every snapshot, every value: here, in threads."""
    assert tables.__name__  # importing it registers the tables
    t = ix.open(warehouse.path(name))
    for snapshot in t.snapshots:
        then = t.at(snapshot=snapshot.snapshot_id)
        found = then.verify(level="data")
        # expiry took away files that only this snapshot had: it is not in the metadata then
        assert found.empty, found.to_string()


@pytest.mark.parametrize(
    "name", one_of(2, ["upgraded", "equality_deletes", "orc_files", "avro_files", "v4_java", "empty"], 1)
)
def test_nor_is_on_workers(warehouse: Warehouse, name: str) -> None:
    t = ix.open(warehouse.path(name))
    assert t.verify(warehouse.session, level="data").collect() == []


def test_findings_are_the_same_on_workers(warehouse: Warehouse, tmp_path: Path) -> None:
    copy = tmp_path / "v2_pos_file"
    shutil.copytree(warehouse.path("v2_pos_file"), copy)
    t = ix.open(copy)
    first, second, third, *_ = [t.state.storage.resolve(p) for p in t.inspect.data_files()["file_path"]]
    Path(first).unlink()
    Path(second).write_bytes(Path(second).read_bytes()[:-20])
    shutil.copyfile(warehouse.path("v1_plain") / "data" / next(iter_names(warehouse.path("v1_plain") / "data")), third)
    levels: tuple[Literal["footers", "data"], ...] = ("footers", "data")
    for level in levels:
        here = verify_local(ix.open(copy).state, level=level)
        there = ix.open(copy).verify(warehouse.session, level=level).toArrow()
        assert {"file-missing", "file-truncated", "count-mismatch"} <= set(here["code"].to_pylist())
        assert rows(there) == rows(here)
    # Row ids that two files take are compared in an order, here and there.
    checked = Checked()
    for key, file, begin, end in (("1", "b", 7, 12), ("1", "a", 0, 10), ("1", "c", 9, 11), ("2", "c", 20, 30)):
        checked.row_ids(Place(file, 0, "m", 0), [key], begin, end)
    taken = beside(checked.table()).select(["named", "before_end", "before_named"]).to_pylist()
    found = suspects(warehouse.session.createDataFrame(checked.table())).toArrow()
    assert sorted(found["named"].to_pylist()) == ["b", "c"]
    assert all(row in taken for row in found.select(["named", "before_end", "before_named"]).to_pylist())


def test_untrue_lineage_is_found_on_workers(warehouse: Warehouse, tmp_path: Path) -> None:
    """Ids of several ranges that other live rows have are reported once, locally and on Spark."""
    lab = ix.create(tmp_path / "t", {"id": "long", "x": "long"}, format_version=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CommitWriter, "new_location", named_last(CommitWriter.new_location))
        lab.append({"id": list(range(300)), "x": [0] * 300})
        lab.set_properties({"write.update.mode": "merge-on-read"})
        lab.update({"x": 1}, "id < 3")
    say_lineage(tmp_path / "t", "_row_id", [3, 90, 303])
    t = ix.open(tmp_path / "t")
    here, there = verify_local(t.state, level="data"), t.verify(warehouse.session, level="data").toArrow()
    assert rows(there) == rows(here)
    assert sorted(set(build.to_pylist(here["code"]))) == ["count-mismatch", "row-ids-beyond", "row-ids-twice"]
    assert here["code"].to_pylist().count("row-ids-twice") == 1


def iter_names(folder: Path) -> Any:
    """Parquet files of a folder."""
    return (p.name for p in sorted(folder.glob("*.parquet")))


def test_a_simulation_of_v4(warehouse: Warehouse) -> None:
    s = ix.empty({"id": "long", "kind": "string"}, partition_by="kind", format_version=4)
    for _ in range(4):
        s.append(pd.DataFrame({"id": range(40), "kind": ["a", "b", "c", "d"] * 10}))
    paths = s.inspect.data_files()["file_path"].tolist()
    s.delete_files(paths[:2])
    s.row_delta(deletes={paths[5]: [0, 1]})
    assert s.verify(warehouse.session, level="data").collect() == []


def test_fields_that_were_dropped_from_structs(warehouse: Warehouse) -> None:
    spark = Spark(warehouse.session)
    spark.create("dropped_inside", "id int, st struct<d: double, i: int, deep: struct<x: int>>")
    spark.sql(
        "INSERT INTO cat.db.dropped_inside SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(1, named_struct('d', 1.5D, 'i', 1, 'deep', named_struct('x', 2))), (2, null)"
    )
    for change in ("DROP COLUMN st.d", "DROP COLUMN st.deep.x", "ADD COLUMN st.n int", "DROP COLUMN st"):
        if change == "DROP COLUMN st.deep.x":
            spark.alter("dropped_inside", "ADD COLUMN st.deep.y int")
        spark.alter("dropped_inside", change)
        t = ix.open(warehouse.path("dropped_inside"))
        assert t.verify(level="data").empty, change
        assert not t.verify(warehouse.session, level="data").collect(), change


def test_orc_timestamps_that_arrow_has_no_room_for(warehouse: Warehouse) -> None:
    spark = Spark(warehouse.session)
    spark.create("old_orc", "id int, at timestamp_ntz", write__format__default="orc")
    spark.insert("old_orc", "(1, timestamp_ntz'1500-01-01 00:00:00')")
    t = ix.open(warehouse.path("old_orc"))
    assert t.verify(level="data")["code"].tolist() == ["unsupported"]
    with pytest.raises(UnsupportedError, match="nanosecond"):
        t.to_arrow()
    assert t.scan(warehouse.session).count() == 1, "Iceberg reads it"
