"""Change detection: held against the live files of both states, and against what the storage was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.commits import Changes, LayoutOptions, Sandbox, changes_between, changes_of
from iceexplore.graph import TableState
from iceexplore.manifests import live
from iceexplore.metadata import Snapshot
from iceexplore.storage import CACHE
from tests.commits.root_lab import RootLab, data_file, dv, path
from tests.commits.root_model import History

ENCODINGS = ("removed", "replace", "delta")
Key = tuple[int, str, int | None, str | None]


def at(state: TableState, snapshot: Snapshot | None) -> TableState:
    return state.showing(snapshot, state.schema, ref=None, travel=None)


def files(state: TableState) -> set[Key]:
    """What is live, every manifest read."""
    out: set[Key] = set()
    root = state.root()
    for leaf in () if root is None else state.reader.leaves(root):
        for row in leaf.entries.filter(live(leaf.entries)).to_pylist():
            offset = (row["deletion_vector"] or {}).get("offset")
            out.add((row["content_type"], row["location"], offset, row["referenced_file"]))
    return out


def said(changes: Changes, change: str) -> set[Key]:
    """The files of a change; none is there twice."""
    kinds = {"data file": 0, "deletion vector": 1, "position delete file": 1, "equality delete file": 2}
    table = changes.files_arrow.filter(pc.equal(changes.files_arrow["change"], change))
    rows = [(kinds[r["content"]], r["location"], r["content_offset"], r["referenced_file"]) for r in table.to_pylist()]
    assert len(set(rows)) == len(rows)
    return set(rows)


def parent_of(state: TableState, snapshot: Snapshot) -> TableState:
    parent = snapshot.parent_snapshot_id
    return at(state, None if parent is None else state.metadata.snapshot(parent))


def read_by(state: TableState) -> set[str]:
    """Roots, manifests and Puffin files that the storage was asked for since its log was cleared."""
    return {r.location for r in state.storage.reads.of_kind("manifest-list", "manifest", "puffin")}


def proven(state: TableState, snapshot: Snapshot, **how: Any) -> Changes:
    """The changes of a snapshot, whose ``read`` is what the storage was asked for."""
    CACHE.clear()
    state.storage.reads.clear()
    found = changes_of(state, snapshot, **how)
    assert {r.location for r in found.read} == read_by(state)
    assert len({r.location for r in found.read}) == len(found.read)
    return found


def check(state: TableState, snapshot: Snapshot, **how: Any) -> Changes:
    """As `proven`, and the files are those in which the two states differ."""
    found = proven(state, snapshot, **how)
    before, now = files(parent_of(state, snapshot)), files(at(state, snapshot))
    assert said(found, "added") == now - before
    assert said(found, "removed") == before - now
    assert found.unambiguous, found.doubts
    return found


LAYOUTS = [
    {"flush_data_files": 2, "flush_delete_files": 1, "leaf_entries": 4},
    {"flush_data_files": 0, "flush_delete_files": 0, "leaf_entries": 3, "compact_leaves": 2, "affinity": "all"},
    {"flush_data_files": 3, "flush_delete_files": 2, "leaf_entries": 3, "rewrite_leaf_at": 0.5, "inline_dv_bytes": 0},
]


@pytest.mark.parametrize("attached", [False, True], ids=["rows", "attached"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@given(seed=st.integers(0, 10**6), layout=st.sampled_from(LAYOUTS))
@settings(max_examples=2, deadline=None)
def test_random_histories(tmp_path_factory: Any, encoding: str, attached: bool, seed: int, layout: Any) -> None:
    from random import Random

    options = {**layout, "dv_encoding": encoding, "dv_attached": attached}
    lab = RootLab(tmp_path_factory.mktemp("detect") / "t", options=options)
    history = History(lab, Random(seed))
    for _ in range(5):
        change = history.change()
        lab.box.commit(lambda writer, change=change: change)
    state = lab.state
    for snapshot in state.metadata.snapshots:
        known = check(state, snapshot, dv_encoding=encoding)
        blind = check(state, snapshot)
        assert {r.location for r in known.read} <= {r.location for r in blind.read}
        if encoding == "delta" or (encoding == "removed" and not attached):
            assert known.root_alone
        CACHE.clear()
        state.storage.reads.clear()
        pair = changes_between(parent_of(state, snapshot), at(state, snapshot))
        assert {r.location for r in pair.read} == read_by(state)
        for change in ("added", "removed"):
            assert said(pair, change) == said(known, change)
