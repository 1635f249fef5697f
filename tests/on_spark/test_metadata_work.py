"""What workers make of manifests, without Spark: the same rows as here, from what goes to them pickled."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.errors import FormatError
from iceexplore.formats import FileFacts
from iceexplore.inspect import DEFINITIONS, DIRECT
from iceexplore.on_spark import _metadata_tables as metadata
from iceexplore.on_spark import ship
from iceexplore.on_spark.transport._arrow_schema import for_spark, held_type
from iceexplore.on_spark.transport._bundles import deal, from_table
from iceexplore.storage import CACHE
from iceexplore.verification._cross_file import beside, judged
from iceexplore.verification._findings import CHECKED_SCHEMA, Checked, Place, Role
from iceexplore.verification._row_lineage import claim_row_ids

BY_LEAF = [d.name for d in DEFINITIONS.values() if d.by_leaf is not None]


def made(state: Any, name: str, columns: tuple[str, ...] | None = None, on_error: Any = "raise") -> pa.Table:
    """A metadata table as workers make it, each manifest by one of them."""
    definition = DEFINITIONS[name]
    assert definition.by_leaf is not None
    places = definition.by_leaf.places(state)
    names = columns or tuple(definition.schema(state).names)
    work = metadata._Work(ship(state, snapshots=[p.snapshot for p in places]), name, names, on_error)
    parts = []
    for place in places:
        bundle = metadata._Bundle((place.snapshot.snapshot_id,), (place.row,), (0,))
        there, task = pickle.loads(pickle.dumps((work, bundle)))
        parts += there(task)
    return pa.concat_tables(parts) if parts else definition.schema(state).empty_table().select(list(names))


def simulated(version: int, **layout: Any) -> ix.Table:
    """A table with appends, deletes of files and of rows."""
    s = ix.empty({"id": "long", "kind": "string"}, partition_by="kind", format_version=version, **layout)
    for i in range(4):
        s.append(pd.DataFrame({"id": range(i, i + 8), "kind": ["a", "b", "c", "d"] * 2}))
    paths = s.inspect.data_files()["file_path"].tolist()
    s.delete_files([paths[0], paths[-3]])
    if version > 1:
        s.row_delta(deletes={paths[5]: [0, 1]})
    return s.table


@pytest.mark.parametrize(
    ("version", "layout"),
    [(1, {}), (2, {}), (3, {}), (4, {}), (4, {"flush_data_files": 5}), (4, {"dialect": "v4-java"})],
)
def test_workers_make_the_same_rows(version: int, layout: dict[str, Any]) -> None:
    t = simulated(version, **layout)
    for state in (t.state, t.at(snapshot=t.snapshots[2].snapshot_id).state):
        for name in BY_LEAF:
            ours = ix.Table(state).inspect[name].arrow()
            assert made(state, name).equals(ours), name


def test_a_v4_table_has_manifest_dvs_and_files_in_its_root() -> None:
    """What the test above is to meet."""
    t = simulated(4, flush_data_files=5)
    assert len(t.inspect.manifest_deletion_vectors.arrow())
    by_leaf = DEFINITIONS["files"].by_leaf
    assert by_leaf is not None
    rows = [p.row for p in by_leaf.places(t.state)]
    assert DIRECT in rows
    assert len(rows) > 1


@pytest.mark.parametrize(
    "columns", [("content",), ("file_path", "lower_bounds"), ("readable_metrics",), ("partition",)]
)
def test_chosen_columns(columns: tuple[str, ...]) -> None:
    state = simulated(2).state
    assert made(state, "files", columns).equals(ix.Table(state).inspect.files.arrow().select(list(columns)))
    assert made(state, "column_stats", ("file_path",)).column_names == ["file_path"]


def test_a_manifest_that_cannot_be_read(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=2, location="/warehouse/t")
    for _ in range(2):
        s.append(pd.DataFrame({"id": [1, 2]}))
    s.save(tmp_path / "t", data="copy")
    t = ix.open(tmp_path / "t")
    first = t.inspect.manifests()["path"][0]
    Path(t.state.storage.resolve(first)).write_bytes(b"Obj\1")
    again = ix.open(tmp_path / "t")
    with pytest.raises(FormatError, match=r"on_error='skip'"):
        made(again.state, "files")
    assert len(made(again.state, "files", on_error="skip")) == 1


@given(sizes=st.lists(st.integers(0, 10**9), max_size=60), parts=st.integers(1, 80))
def test_work_is_dealt_whole_and_evenly(sizes: list[int], parts: int) -> None:
    hands = deal(sizes, parts)
    assert sorted(i for hand in hands for i in hand) == list(range(len(sizes)))
    assert len(hands) <= parts
    if sizes:
        loads = [sum(max(sizes[i], 1) for i in hand) for hand in hands]
        assert max(loads) - min(loads) <= max(max(sizes), 1) or len(hands) < parts


def test_tasks_are_few_where_manifests_are_many() -> None:
    # A task costs some 80 ms of processor time whatever it does: ten million files took a third of it for that.
    assert metadata.parts_of([3_300_000] * 500, 2) == 50
    assert metadata.parts_of([3_300_000] * 500, 64) == 192
    assert metadata.parts_of([1_000] * 500, 2) == 2
    assert metadata.parts_of([1_000], 16) == 1
    assert metadata.parts_of([], 16) == 0


def test_types_that_spark_lacks() -> None:
    table = pa.table(
        {
            "time": pa.array([1, None], pa.time64("us")),
            "nano": pa.array([5, None], pa.timestamp("ns", tz="UTC")),
            "fixed": pa.array([b"ab", None], pa.binary(2)),
            "none": pa.nulls(2),
            "in": pa.array(
                [{"t": 3, "l": [7]}, None], pa.struct([("t", pa.time64("us")), ("l", pa.list_(pa.int64()))])
            ),
        }
    )
    held = for_spark(table)
    assert held.schema.types == [held_type(f.type) for f in table.schema]
    assert held.to_pylist() == [
        {"time": 1, "nano": 5, "fixed": b"ab", "none": None, "in": {"t": 3, "l": [7]}},
        dict.fromkeys(table.column_names),
    ]


def test_what_is_judged_next_to_other_files() -> None:
    state = simulated(2).state
    out = Checked()
    delete = Place("s3://b/d/delete.parquet", 1)
    out.data(Place("s3://b/d/one.parquet", 0), 10)
    out.data(Place("s3://b/d/twice.parquet", 0), 10)
    out.data(Place("s3://b/d/twice.parquet", 0), 10)
    out.data(Place("s3://a/d/bucket.parquet", 0), 5)
    out.data(Place("s3://b/d/bucket.parquet", 0), 500)
    out.data(Place("s3://b/d/unknown.parquet", 0), None)
    for named, rows in (("one", 10), ("bucket", 300), ("unknown", 10**6)):
        out.claim(Role.POSITIONS, delete, f"s3://b/d/{named}.parquet", rows)
    assert [r["code"] for r in judged(state, beside(out.table())).to_pylist()] == ["file-twice"] * 2
    out.claim(Role.POSITIONS, delete, "s3://b/d/one.parquet", 11)
    out.claim(Role.VECTOR, Place("s3://b/d/dv.puffin", 1), "s3://b/d/one.parquet", 10)
    out.claim(Role.VECTOR, Place("s3://b/d/dv.puffin", 1), "s3://b/d/one.parquet", 0)
    out.claim(Role.VECTOR, Place("s3://b/d/dv.puffin", 1), "s3://b/d/gone.parquet", 0)
    out.claim(Role.POSITIONS, delete, "/d/one.parquet", 1)
    found = judged(state, beside(out.table())).to_pylist()
    assert sorted(r["code"] for r in found) == [
        "delete-dangling",
        "delete-path",
        "delete-position",
        "dv-twice",
        *["file-twice"] * 2,
    ]
    assert judged(state, beside(CHECKED_SCHEMA.empty_table())).num_rows == 0


def claimed_row_ids(state: Any) -> Checked:
    """Files of ten rows: the second overlaps the first, the fourth is live twice, the fifth has row ids of its own."""
    out = Checked()
    for i, (name, first, ids) in enumerate(
        [("a", 0, ()), ("b", 9, ()), ("c", 20, ()), ("d", 30, ()), ("d", 30, ()), ("e", 21, (1, 2147483540))]
    ):
        found = FileFacts("parquet", 10, None, frozenset(ids))
        claim_row_ids(state, Place(f"/t/{name}.parquet", 0, "/t/m.avro", i), {"first_row_id": first}, found, out)
    found = FileFacts("parquet", 10, None, frozenset())
    for none in (None, -5):
        claim_row_ids(state, Place("/t/f.parquet", 0), {"first_row_id": none}, found, out)
    return out


def test_row_ids_are_compared_in_parts() -> None:
    state = simulated(3).state
    rows = judged(state, beside(claimed_row_ids(state).table())).to_pylist()
    assert [(r["code"], r["location"], r["found"], r["expected"]) for r in rows] == [
        ("row-ids-twice", "/t/b.parquet", "9", "at least 10")
    ]


def test_work_goes_by_value_as_spark_pickles_it() -> None:
    """Functions inside functions are pickled with the globals they name, and some of ours hold locks."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")

    class Session:
        """Takes what Spark is given."""

        given: Any = None

        def range(self, *numbers: int) -> Session:
            return self

        def mapInArrow(self, function: Any, schema: Any) -> Session:
            self.given = function
            return self

    session = Session()
    table = pa.table({"x": [1, 2, 3]})
    from_table(session, table)
    there = cloudpickle.loads(cloudpickle.dumps(session.given))
    batch = pa.record_batch([pa.array([0])], names=["id"])
    before = CACHE.max_bytes
    try:
        assert pa.Table.from_batches(there(iter([batch]))).equals(table)
        assert CACHE.max_bytes < before, "a worker keeps little"
    finally:
        CACHE.max_bytes = before
