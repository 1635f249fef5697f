"""Changes of snapshots of the V4 draft, from what their roots record, against brute force of what is live."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

import iceexplore as ix
from iceexplore.commits import Changes, changes_of
from iceexplore.deletes import encode_mumbling
from iceexplore.graph import TableState, state_of, travel
from iceexplore.manifests import EntryBatch, live, root_batch, write_manifest
from iceexplore.metadata import Snapshot
from tests.helpers.root_model import History, run
from tests.helpers.tables.root_table import RootLab, data_file, dv, live_files, path, short

OPTIONS: dict[str, Any] = {"dialect": "v4-draft", "flush_data_files": 2}
File = tuple[str, str, int | None]


def files_of(state: TableState) -> set[File]:
    """What is live in a state: files with their content, vectors by offset, and column files, entry by entry."""
    root = state.root()
    out: set[File] = set()
    if root is None:
        return out
    direct = state.reader.direct(root)
    for manifest in [*([] if direct is None else [direct]), *state.reader.leaves(root)]:
        for row in manifest.entries.filter(live(manifest.entries)).to_pylist():
            offset = (row["deletion_vector"] or {}).get("offset")
            deletes = "deletion vector" if offset is not None else "position delete file"
            content = ("data file", deletes, "equality delete file")[row["content_type"]]
            out.add((content, row["location"], offset))
            out |= {("column file", one["location"], None) for one in row["column_files"] or ()}
    return out


def changed(found: Changes, change: str) -> set[File]:
    rows = [r for r in found.files_arrow.to_pylist() if r["change"] == change]
    keys = {(r["content"], r["location"], r["content_offset"]) for r in rows}
    assert len(keys) == len(rows)
    return keys


def check(state: TableState, snapshot: Snapshot) -> Changes:
    """The changes of a snapshot, which are the difference of what is live before and after it."""
    found = changes_of(state, snapshot)
    now = files_of(travel(state, snapshot=snapshot.snapshot_id))
    before: set[File] = set()
    if snapshot.parent_snapshot_id is not None:
        before = files_of(travel(state, snapshot=snapshot.parent_snapshot_id))
    assert changed(found, "added") == now - before
    assert changed(found, "removed") == before - now
    assert found.unambiguous, found.doubts
    return found


layouts = st.fixed_dictionaries(
    {
        "dialect": st.just("v4-draft"),
        "flush_data_files": st.sampled_from([0, 3, 6]),
        "leaf_entries": st.sampled_from([2, 4, 8]),
        "compact_leaves": st.sampled_from([0, 2]),
        "manifest_format": st.sampled_from(["avro", "parquet"]),
    }
)
few = settings(max_examples=max(5, settings().max_examples // 4), deadline=None)


@few
@given(options=layouts, seed=st.integers(0, 1 << 30))
def test_random_histories(options: dict[str, Any], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = RootLab(Path(folder) / "t", options=options)
        try:
            history = run(lab, seed, 5)
            for snapshot in history.lab.state.metadata.snapshots:
                check(history.lab.state, snapshot)
        finally:
            lab.box.close()


@few
@given(version=st.sampled_from([2, 3]), options=layouts, seed=st.integers(0, 1 << 30))
def test_histories_that_are_upgraded(version: int, options: dict[str, Any], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = RootLab(Path(folder) / "t", version=version)
        history = History(lab, Random(seed), version=version)
        try:
            for _ in range(2):
                history.commit()
            history.upgrade(lab.upgraded(**options))
            for _ in range(3):
                history.commit()
            for snapshot in history.lab.state.metadata.snapshots[2:]:
                check(history.lab.state, snapshot)
        finally:
            history.lab.box.close()
            lab.box.close()


def made(folder: Path, **options: Any) -> RootLab:
    """A leaf of four files, two files in the root, changes in both; then an append."""
    lab = RootLab(folder / "t", options={**OPTIONS, **options})
    lab.commit(add=[data_file(n) for n in "ABCD"])
    lab.commit(add=[data_file("R"), data_file("S")])
    lab.commit("overwrite", add=[dv("V", "B"), dv("W", "R")], remove_data=path("C", "S"))
    return lab


def names(found: Changes, change: Any) -> list[str]:
    return sorted(map(short, found.locations(change)))


def test_the_root_is_enough(tmp_path: Path) -> None:
    lab = made(tmp_path)
    state = lab.state
    for snapshot in state.metadata.snapshots:
        assert check(state, snapshot).root_alone
    found = changes_of(state)
    assert (names(found, "added"), names(found, "removed")) == (["V", "W"], ["C", "S"])
    assert [r.role for r in found.read] == ["root", "manifest"]
    lab.commit("delete", add=[dv("X", "B", rows=2)], replace_dvs=path("B"))
    found = check(lab.state, lab.state.snapshot)  # type: ignore[arg-type]
    assert (names(found, "added"), names(found, "removed")) == (["X"], ["V"])


def test_changes_of_a_snapshot_whose_parent_has_expired(tmp_path: Path) -> None:
    """The root says what changed; without it, all files would have to be taken for new."""
    state = made(tmp_path).state
    document = copy.deepcopy(state.opened.document)
    document["snapshots"] = document["snapshots"][-1:]
    found = changes_of(state_of(replace(state.opened, document=document)))
    assert (names(found, "added"), names(found, "removed")) == (["V", "W"], ["C", "S"])


def test_files_that_are_flushed_are_no_changes(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t", options={"dialect": "v4-draft", "flush_data_files": 3})
    lab.commit(add=[data_file("A"), data_file("B")])
    lab.commit("delete", add=[dv("V", "A")])
    lab.commit(add=[data_file("C"), data_file("D")])  # A and B go to a leaf
    found = check(lab.state, lab.state.snapshot)  # type: ignore[arg-type]
    assert (names(found, "added"), names(found, "removed")) == (["C", "D"], [])
    assert [(r.role, r.names_only) for r in found.read] == [("root", False), ("manifest", False)]


def test_column_updates() -> None:
    s = ix.empty({"id": "long", "x": "long"}, seed=1, format_version=4, **OPTIONS)
    s.append(pa.table({"id": [1, 2], "x": [3, 4]}))
    (name,) = s.inspect.data_files()["file_path"]
    s.row_delta(deletes={name: [0]})
    for value in (1, 2):
        s.update_columns({"x": value})
        found = check(s.state, s.state.snapshot)  # type: ignore[arg-type]
        assert found.root_alone
        assert [r.role for r in found.read] == ["root"]
    s.append(3, rows=5)  # the file goes to a leaf
    check(s.state, s.state.snapshot)  # type: ignore[arg-type]
    s.update_columns("x", name)
    assert check(s.state, s.state.snapshot).root_alone  # type: ignore[arg-type]


# Roots that do not record their changes, or lie -----------------------------------------------------------------------

Row = dict[str, Any]


def with_root(state: TableState, edit: Callable[[Row], Row]) -> TableState:
    root = state.root()
    assert root is not None
    batch = root_batch(root)
    entries = pa.Table.from_pylist([edit(row) for row in batch.entries.to_pylist()], schema=batch.entries.schema)
    data = write_manifest(
        EntryBatch(entries, batch.stats, batch.partition), content="root", metadata=state.metadata, spec_id=0,
        dialect="v4-draft", manifest_format="parquet",
    )  # fmt: skip
    location = f"{state.metadata.location}/metadata/{uuid4()}-root.parquet"
    state.storage.write(location, data, kind="manifest-list")  # type: ignore[attr-defined]
    document = copy.deepcopy(state.opened.document)
    document["snapshots"][-1]["root-manifest"] = location
    return state_of(replace(state.opened, document=document))


def is_leaf(row: Row) -> bool:
    return bool(row["content_type"] == 3)


WITHOUT: dict[str, Callable[[Row], Row]] = {
    "no positions": lambda r: {**r, "deleted_positions": None, "replaced_positions": None} if is_leaf(r) else r,
    "positions that are no bitmap": lambda r: {**r, "deleted_positions": b"\x01?"} if is_leaf(r) else r,
    "statuses of another snapshot": lambda r: {**r, "snapshot_id": 5} if r["content_type"] == 0 else r,
}


@pytest.mark.parametrize("name", WITHOUT)
def test_roots_without_positions_are_compared(tmp_path: Path, name: str) -> None:
    state = with_root(made(tmp_path).state, WITHOUT[name])
    found = check(state, state.metadata.snapshots[-1])
    assert not found.root_alone
    assert [r.role for r in found.read][:2] == ["root", "previous root"]


def test_positions_beyond_the_leaf(tmp_path: Path) -> None:
    """They name no entry; nothing is allocated for them."""
    far = encode_mumbling(BitMap([2, 2_000_000]))
    state = with_root(made(tmp_path).state, lambda r: {**r, "deleted_positions": far} if is_leaf(r) else r)
    assert names(changes_of(state), "removed") == ["C", "S"]


def test_the_model_sees_what_is_live(tmp_path: Path) -> None:
    state = made(tmp_path).state
    assert {short(location) for _, location, _ in files_of(state)} == set(live_files(state))
