"""Which deletes apply in whole tables: simulations of every version, the spec's examples, PyIceberg, real tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, open_state, resolve_state
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, live, whole
from iceexplore.planning import equality_columns, make_filter, match_deletes, unmatched_deletes
from tests.planning.delete_index.delete_table import by_file

LEAVES = {"flush_data_files": 0, "flush_delete_files": 0}
LAYOUTS: list[dict[str, Any]] = [
    {"format_version": 2}, {"format_version": 3}, {"format_version": 4}, {"format_version": 4, **LEAVES},
    {"format_version": 4, "affinity": "all", **LEAVES}, {"format_version": 4, "dialect": "v4-java"},
]  # fmt: skip
IDS = ["v2", "v3", "v4 in the root", "v4 in leaves", "v4 affine", "v4-java"]


def data_files(state: TableState) -> EntryBatch:
    """All live data files with their statistics."""
    root = state.root()
    found = []
    for leaf in [] if root is None else state.reader.leaves(root, parts=("entries", "partition", "stats")):
        entries = leaf.entries
        kept = pc.and_(live(entries), pc.equal(whole(entries["content_type"]), int(ContentType.DATA)))
        found.append(EntryBatch.of(leaf).filter(kept))
    return concat_batches(found)


def names(table: Any) -> list[str]:
    return [str(n) for n in table.inspect.data_files().file_path]


def ids(*numbers: int) -> pd.DataFrame:
    return pd.DataFrame({"id": list(numbers), "kind": ["ab"[n % 2] for n in numbers]})


def matched(table: Any, where: str | None = None) -> dict[str, tuple[str | None, int, int]]:
    """For each data file its vector, and how many position and equality deletes apply."""
    state = table._state
    files = data_files(state)
    wanted = None if where is None else make_filter(state.metadata, state.schema, where)
    found = by_file(match_deletes(state, files, where=wanted))
    return {
        n: (v, len(p), len(e)) for n, (v, p, e) in zip(build.to_pylist(files.entries["location"]), found, strict=True)
    }


def reasons(table: Any, where: str | None = None, **how: Any) -> list[dict[str, Any]]:
    state = table._state
    files = data_files(state)
    wanted = None if where is None else make_filter(state.metadata, state.schema, where)
    made = match_deletes(state, files, where=wanted)
    rows: list[dict[str, Any]] = unmatched_deletes(state, files, made, where=wanted, **how).to_pylist()
    return rows


# The spec's own example -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_the_example_of_the_spec(layout: dict[str, Any]) -> None:
    """Scan Planning, note 2: ids 1 to 10, deletes of 1 to 4: a scan for id = 9 may ignore the delete file."""
    table = ix.empty({"id": "long", "kind": "string"}, **layout)
    table.append(ids(*range(1, 11)))
    table.row_delta(equality={"id": [1, 2, 3, 4]})
    (name,) = names(table)
    assert equality_columns(table._state) == [1]
    assert matched(table) == {name: (None, 0, 1)}
    assert matched(table, "id = 3") == {name: (None, 0, 1)}
    assert matched(table, "id = 9") == {name: (None, 0, 0)}
    assert [(r["code"], r["data_file"], r["reason"]) for r in reasons(table, "id = 9")] == [
        ("filter", None, "the filter id = 9 excludes it: its metrics show id 1 to 4")
    ]
    assert reasons(table) == []
    assert sorted(build.to_pylist(table.to_arrow("id = 9")["id"])) == [9]
    assert sorted(build.to_pylist(table.to_arrow()["id"])) == [5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_deletes_of_the_same_commit(layout: dict[str, Any]) -> None:
    """A position delete applies to files of its own commit, an equality delete to older ones alone."""
    table = ix.empty({"id": "long", "kind": "string"}, **layout)
    table.append(ids(1, 2))
    (old,) = names(table)
    table.row_delta(ids(1, 3), equality={"id": [1]})
    (new,) = set(names(table)) - {old}
    assert matched(table) == {old: (None, 0, 1), new: (None, 0, 0)}
    assert sorted(build.to_pylist(table.to_arrow()["id"])) == [1, 2, 3]
    table.row_delta(deletes={new: [0]})
    found = matched(table)[new]
    assert (found[0] is not None) + found[1] == 1
    assert sorted(build.to_pylist(table.to_arrow()["id"])) == [2, 3]


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_deletes_of_other_partitions_and_specs_do_not_apply_but_global_ones_do(layout: dict[str, Any]) -> None:
    table = ix.empty({"id": "long", "kind": "string"}, partition_by="kind", **layout)
    table.append(ids(1, 2, 3, 4))
    a, b = sorted(names(table), key=lambda n: matched_kind(table, n))
    table.row_delta(equality={"id": [2, 3]}, equality_partition={"kind": "a"})
    assert matched(table) == {a: (None, 0, 1), b: (None, 0, 0)}
    table.evolve_spec(remove=["kind"])
    table.row_delta(equality={"id": [1, 2]})
    assert matched(table) == {a: (None, 0, 2), b: (None, 0, 1)}
    assert sorted(build.to_pylist(table.to_arrow()["id"])) == [3, 4]
    facts = {r["code"]: r["reason"] for r in reasons(table)}
    assert not facts


def matched_kind(table: Any, name: str) -> str:
    frame = table.inspect.data_files()
    return str(frame[frame.file_path == name].partition.iloc[0]["kind"])


@pytest.mark.parametrize("layout", LAYOUTS[1:], ids=IDS[1:])
def test_a_vector_takes_the_place_of_position_delete_files(layout: dict[str, Any]) -> None:
    wide = {"write.delete.granularity": "partition"}
    table = ix.empty({"id": "long", "kind": "string"}, format_version=2, properties=wide)
    table.append(ids(1, 2, 3))
    table.append(ids(4, 5, 6))
    a, b = names(table)
    table.row_delta(deletes={a: [0], b: [0]})
    assert {n: c[1] for n, c in matched(table).items()} == {a: 1, b: 1}
    table.upgrade(**layout)
    table.row_delta(deletes={a: [1]})
    found = matched(table)
    assert (found[a][0] is not None, found[a][1]) == (True, 0)
    assert found[b][:2] == (None, 1)
    (row,) = reasons(table)
    assert (row["code"], row["kind"], row["data_file"]) == ("vector", "position", a)
    assert "the data file's deletion vector replaces it: " in row["reason"]
    assert len(table.to_arrow()) == 3


def test_each_reason_has_its_numbers() -> None:
    table = ix.empty({"id": "long", "kind": "string"}, partition_by="kind", format_version=2)
    table.append(pd.DataFrame({"id": [1], "kind": ["b"]}))
    (kept,) = names(table)
    table.append(pd.DataFrame({"id": [1, 2, 3, 4], "kind": ["a"] * 4}))
    (first,) = set(names(table)) - {kept}
    table.row_delta(deletes={first: [3]})
    table.row_delta(equality={"id": [7, 9]}, equality_partition={"kind": "a"})
    table.row_delta(equality={"id": [1]}, equality_partition={"kind": "z"})
    table.append(pd.DataFrame({"id": [5, 9], "kind": ["a"] * 2}))
    rows = {r["code"]: r for r in reasons(table)}
    assert rows["bounds"]["reason"] == "its bounds of id, 7 to 9, do not overlap those of the data file, 1 to 4"
    assert rows["bounds"]["data_file"] == first
    assert rows["partition"]["reason"] == "no data file of the plan is in its partition, kind=z (spec 0)"
    assert set(rows) == {"bounds", "partition"}
    table.delete_files([first])
    rows = {r["code"]: r for r in reasons(table)}
    why = "its sequence number 4 is not above 6, the sequence number of the only data file in its partition"
    assert rows["sequence"]["reason"] == why
    assert rows["dangling"]["reason"] == f"the data file that it references is not live: {first}"
    few = reasons(table, limit=1)
    assert [r["code"] for r in few] == [few[0]["code"], "more"]
    assert few[1]["reason"] == "number of rows that are not shown because of the limit: 2"


def test_version_1_has_no_deletes_and_an_empty_table_no_files() -> None:
    table = ix.empty({"id": "long", "kind": "string"}, format_version=1)
    assert len(match_deletes(table._state, data_files(table._state))) == 0
    assert equality_columns(table._state) == []
    table.append(ids(1, 2))
    assert list(matched(table).values()) == [(None, 0, 0)]
    assert reasons(table) == []


def test_no_manifest_is_read_for_nothing() -> None:
    """Manifests of deletes that are older than every data file, or of other partitions, are left alone."""
    table = ix.empty({"id": "long", "kind": "string"}, partition_by="kind", format_version=2)
    table.append(pd.DataFrame({"id": [1, 2], "kind": ["a", "b"]}))
    for kind in "ab":
        table.row_delta(equality={"id": [1, 2]}, equality_partition={"kind": kind})
    state = table._state
    files = data_files(state)
    assert files.partition is not None
    only = files.take([i for i, p in enumerate(build.to_pylist(files.partition)) if p["1000"] == "b"])

    def read(batch: EntryBatch) -> tuple[int, int]:
        from iceexplore.planning.delete_index._delete_files import live_deletes

        found = live_deletes(state, files=batch)
        return len(found), found.skipped

    assert read(files) == (2, 0)
    assert read(only) == (1, 1)
    newer = only.with_columns(sequence_number=9)
    assert read(newer) == (0, 2)


def test_a_v4_root_prunes_manifests_of_deletes_by_its_statistics() -> None:
    """A manifest of vectors for each of some regions, and a filter that leaves one data file: one of them is read."""
    from iceexplore.planning.delete_index._delete_files import live_deletes

    regions = [f"r{i:02}" for i in range(6)]
    layout: dict[str, Any] = {"flush_data_files": 0, "flush_delete_files": 0, "affinity": "none", "leaf_entries": 1}
    table = ix.empty({"id": "long", "region": "string"}, partition_by="region", format_version=4, **layout)
    table.append(pd.DataFrame({"id": range(12), "region": [r for r in regions for _ in range(2)]}))
    places = table.to_arrow(columns=["region", "_file", "_pos"]).to_pylist()
    for region in regions:
        first = next(p for p in places if p["region"] == region)
        table.row_delta(deletes={first["_file"]: [first["_pos"]]})
    state = table._state
    files = data_files(state)
    assert files.partition is not None
    total = live_deletes(state, files=files)
    only = files.take([i for i, p in enumerate(build.to_pylist(files.partition)) if list(p.values()) == ["r03"]])
    found = live_deletes(state, files=only)
    assert {p["region"] for p in table.to_arrow(columns=["region"]).to_pylist()} == set(regions)
    assert (table.count(), table.count("region = 'r03'")) == (6, 1)
    assert (len(total), total.skipped, len(found), found.skipped) == (6, 0, 1, 5)


# PyIceberg ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("version", [2, 3])
def test_position_deletes_are_those_of_pyiceberg(tmp_path: Path, version: int, granularity: str) -> None:
    from pyiceberg.table import StaticTable

    rng = np.random.default_rng(version)
    table = ix.empty(
        {"id": "long", "kind": "string"}, partition_by="kind", format_version=version,
        properties={"write.delete.granularity": granularity},
    )  # fmt: skip
    for step in range(12):
        if step % 3 == 0:
            table.append(ids(*range(step * 16, step * 16 + 16)))
            continue
        live_files = names(table)
        chosen = rng.choice(len(live_files), size=min(3, len(live_files)), replace=False)
        table.row_delta(deletes={live_files[i]: [step // 3 * 2 + step % 3 - 1] for i in chosen})
    saved = table.save(tmp_path / "t", data="copy")
    opened = ix.open(tmp_path / "t")
    state = opened._state
    files = data_files(state)
    ours = by_file(match_deletes(state, files))
    tasks = StaticTable.from_metadata(state.metadata_location).scan().plan_files()
    theirs = {t.file.file_path: {d.file_path for d in t.delete_files} for t in tasks}
    assert saved is not None
    assert any(theirs.values())
    assert any(vector for vector, _, _ in ours) is (version == 3)
    for name, (vector, positions, _) in zip(files.entries["location"].to_pylist(), ours, strict=True):
        if version == 2:
            assert positions == theirs[name]
        else:  # PyIceberg takes all vectors of the partition, and sorts them out when it reads
            assert vector is None or vector in theirs[name]


# Real tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.corpus
def test_the_deletes_of_real_tables_are_in_scope_and_none_is_lost(corpus: Path) -> None:
    """Each pair in scope is applied, or skipped with a reason; nothing else is applied."""
    expected = json.loads((corpus / "expected.json").read_text())
    seen = applied = skipped = 0
    for folder, facts in expected.items():
        if not facts.get("metadata"):
            continue
        state = open_state(corpus / folder / facts["metadata"])
        for snapshot in state.metadata.snapshots:
            there = resolve_state(state, snapshot.snapshot_id)
            files = data_files(there)
            made = match_deletes(there, files)
            deletes = made.deletes.entries.to_pylist()
            total = 0
            rows = files.entries.select(["sequence_number", "partition_spec_id"]).to_pylist()
            for i, row in enumerate(rows):
                vector = made.vector[i].as_py()
                by_position = made.positions[i].as_py() + ([] if vector is None else [vector])
                by_value = made.equality[i].as_py()
                total += len(by_position) + len(by_value)
                assert all(deletes[d]["sequence_number"] >= row["sequence_number"] for d in by_position)
                assert all(deletes[d]["sequence_number"] > row["sequence_number"] for d in by_value)
            table = unmatched_deletes(there, files, made, limit=10_000)
            assert all(r["reason"] for r in table.to_pylist())
            seen, applied, skipped = seen + 1, applied + total, skipped + len(table)
    assert seen > 100
    assert applied > 50
    assert skipped > 10


@pytest.mark.corpus
def test_positions_of_files_spelled_with_another_scheme_apply_and_are_reported(corpus: Path) -> None:
    """Impala's table was moved by editing its metadata: inside, the delete file has ``hdfs://localhost:20500/...``; its
    bounds are cut off, so that only who reads it knows."""
    t = ix.open(corpus / "impala" / "iceberg_v2_delete_positional")
    (name,) = names(t)
    assert name.startswith("/")
    assert matched(t) == {name: (None, 1, 0)}
    assert reasons(t) == []
    assert t.count() == 2
    (item,) = (p for p in t.problems if p.code == "delete-path")
    assert (item.found, item.expected) == (f"hdfs://localhost:20500{name}", name)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_reasons_of_columns_without_bounds(layout: dict[str, Any]) -> None:
    """A column of nothing but NaN has no bounds, and a file without metrics shows only that a column is required."""
    table = ix.empty({"id": "long", "x": "double"}, **layout)
    table.append(pa.table({"id": [1], "x": [float("nan")]}))
    table.row_delta(equality={"x": [1.0]})
    (row,) = reasons(table)
    assert row["reason"] == "x is NaN in every row of the data file, and in no row of the delete file"
    table = ix.empty({"id": "long", "x": "double"}, **layout)
    table.append(pa.table({"id": [1, 2], "x": [float("nan"), None]}))
    table.row_delta(equality={"x": [1.0]})
    (row,) = reasons(table)
    assert row["reason"] == "x is null or NaN in every row of the data file, and in no row of the delete file"
    table = ix.empty({"id": "long", "x": "double"}, **layout)
    table.append(pa.table({"id": [1, 2], "x": [1.0, 2.0]}))
    table.row_delta(equality={"x": [float("nan")]})
    (row,) = reasons(table)
    assert row["reason"] == "x is NaN in every row of the delete file, and in no row of the data file"


def test_the_filter_excludes_by_partition_or_by_bounds() -> None:
    table = ix.empty({"id": "long", "kind": "string"}, partition_by="kind", format_version=2)
    table.append(ids(1, 2, 3, 4))
    table.row_delta(equality={"id": [1, 2]}, equality_partition={"kind": "a"})
    (row,) = reasons(table, "kind = 'b'")
    assert row["reason"] == (
        "the filter kind = 'b' excludes it: its metrics show id 1 to 2, and its partition is kind=a (spec 0)"
    )
    table.close()
