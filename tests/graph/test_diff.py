"""Differences between states, held against a plain-Python reading of every manifest."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.graph._diff import _content


@pytest.fixture(scope="module")
def trips() -> ix.Table:
    return ix.sample("trips")


def _live(t: ix.Table, snapshot_id: int) -> dict[tuple[Any, ...], int]:
    """(content, location, offset) -> rows of every live file, read with nothing of ours but the bytes."""
    out = {}
    snapshot = t.metadata.snapshot(snapshot_id)
    assert snapshot is not None and snapshot.manifest_list is not None
    read = t.state.storage.read
    for m in fastavro.reader(io.BytesIO(read(snapshot.manifest_list, kind="other"))):
        for entry in fastavro.reader(io.BytesIO(read(m["manifest_path"], kind="other"))):
            f = entry["data_file"]
            if entry["status"] != 2:
                out[(f.get("content", 0), f["file_path"], f.get("content_offset"))] = f["record_count"]
    return out


def test_every_pair_of_snapshots_matches_brute_force(trips: ix.Table) -> None:
    ids = [s.snapshot_id for s in trips.snapshots]
    live = {i: _live(trips, i) for i in ids}
    changed = 0
    for a in ids:
        for b in ids:
            d = trips.diff(a, b)
            got = Counter(
                (r["change"], r["location"], r["content_offset"], r["record_count"]) for r in d.files_arrow.to_pylist()
            )
            added = live[b].keys() - live[a].keys()
            removed = live[a].keys() - live[b].keys()
            want = Counter(
                [("added", k[1], k[2], live[b][k]) for k in added]
                + [("removed", k[1], k[2], live[a][k]) for k in removed]
            )
            assert got == want, (a, b)
            carried = sum(r["carried_over_files"] for r in d.counts_arrow.to_pylist())
            assert carried == len(live[a].keys() & live[b].keys()), (a, b)
            changed += bool(want)
    assert changed > len(ids)


def test_only_what_is_new_is_read() -> None:
    t = ix.sample("trips")
    ids = [s.snapshot_id for s in t.snapshots]
    a, b = t.metadata.snapshot(ids[0]), t.metadata.snapshot(ids[1])
    assert a is not None and b is not None and b.parent_snapshot_id == a.snapshot_id
    d = t.diff(ids[0], ids[1])
    new = set(d.manifests.query("change == 'added'")["location"])
    old = set(d.manifests.query("change == 'carried over'")["location"])
    assert new and old
    read = {r.location for r in t.reads if r.kind == "manifest" and not r.cached}
    assert not read & old


def test_a_renamed_column_is_not_dropped_and_added(trips: ix.Table) -> None:
    first, last = trips.at(version=1), trips
    texts = [c.text for c in trips.diff(first, last).schema]
    by_id_first, by_id_last = first.schema.by_id(), last.schema.by_id()
    renamed = [i for i in by_id_first.keys() & by_id_last.keys() if by_id_first[i][0] != by_id_last[i][0]]
    assert renamed
    for field_id in renamed:
        old, new = by_id_first[field_id][0], by_id_last[field_id][0]
        mine = [t for t in texts if old in t and new in t]
        assert mine, texts
    dropped = [t for t in texts if "dropped" in t or "removed" in t]
    assert len(dropped) == len(by_id_first.keys() - by_id_last.keys())


def test_refs_tables_and_ids_are_all_taken(trips: ix.Table) -> None:
    tag = next(r for r in trips.refs.values() if r.type == "tag")
    by_ref = trips.diff(tag.name, "main")
    by_id = trips.diff(tag.snapshot_id, trips)
    by_table = trips.diff(trips.at(ref=tag.name))
    assert by_ref.files_arrow.equals(by_id.files_arrow)
    assert by_ref.files_arrow.equals(by_table.files_arrow)
    assert trips.diff("main", "main").is_empty
    assert "carried over" in repr(by_ref)
    assert "<script" not in by_ref._repr_html_()


def test_properties_between_versions(trips: ix.Table) -> None:
    d = trips.diff(trips.at(version=1), trips)
    old, new = trips.at(version=1).properties, trips.properties
    keys = {k for k in {*old, *new} if old.get(k) != new.get(k)}
    assert keys
    texts = " ".join(c.text for c in d.properties)
    assert all(k in texts for k in keys)


def test_a_content_that_cannot_be_has_no_name() -> None:
    kinds, none = pa.array([-1, 0, 99], pa.int32()), pa.nulls(3, pa.struct([]))
    files = pa.table({"content_type": kinds, "deletion_vector": none})
    names = _content(files).to_pylist()
    assert names[0] is names[2] is None and names[1]
