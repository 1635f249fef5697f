"""Leaves that several states of a table have in common: built once, and as true as if each state built its own."""

from __future__ import annotations

from typing import Any

import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.graph import TableState
from iceexplore.manifests import Manifest, ManifestReader
from iceexplore.simulation import Simulation

V3: dict[str, Any] = {"format_version": 3}
V4: dict[str, Any] = {"format_version": 4, "flush_data_files": 0, "flush_delete_files": 9}
DRAFT: dict[str, Any] = {**V4, "dialect": "v4-draft"}
LAYOUTS = pytest.mark.parametrize("layout", [V3, V4, DRAFT], ids=["v3", "v4", "draft"])


def made(layout: dict[str, Any]) -> Simulation:
    s = ix.empty({"id": "long", "kind": "string"}, seed=3, **layout)
    s.append(3, rows=10)
    return s


def first_leaf(state: TableState, location: str | None = None) -> Manifest:
    leaves = [x for x in state.leaves(parts=frozenset({"entries", "stats"})) if x.root_row is not None]
    (found,) = [x for x in leaves if x.location == (location or leaves[0].location)]
    return found


@LAYOUTS
def test_the_next_state_has_the_same_entries(layout: dict[str, Any]) -> None:
    s = made(layout)
    s.append(2, rows=10)  # from the second listing on, a manifest of V4 is EXISTING in its root
    before = first_leaf(s.state)
    s.append(2, rows=10)
    after = first_leaf(s.state, before.location)
    assert after.entries is before.entries
    root = s.state.root()
    assert root is not None and after.root_row is not None
    assert root.entries["location"][after.root_row].as_py() == before.location


@LAYOUTS
def test_removed_entries_are_not_those_of_the_state_before(layout: dict[str, Any]) -> None:
    s = made(layout)
    s.append(2, rows=10)
    before = first_leaf(s.state)
    gone = build.to_pylist(before.entries["location"])[0]
    s.delete_files([gone])
    kept = [name for leaf in s.state.leaves() for name, status, dv in zip(
        *(leaf.entries[c].to_pylist() for c in ("location", "status", "manifest_dv")), strict=True)
        if status in (0, 1, 4) and dv is None]  # fmt: skip
    assert gone not in kept
    assert set(kept) == set(s.inspect.files()["file_path"])
    assert gone in build.to_pylist(first_leaf(s.at(s.snapshots[1]).state, before.location).entries["location"])


@LAYOUTS
def test_what_a_state_finds_later_is_its_own_problem(layout: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    s = made(layout)
    s.append(2, rows=10)
    state = s.state
    older = first_leaf(state)
    s.append(2, rows=10)
    leaf = first_leaf(s.state, older.location)
    assert leaf.entries is older.entries
    for one, problems in ((older, state.problems), (leaf, s.state.problems)):
        one._note_contradiction(1, "nulls", build.array([0]).to_numpy())
        assert [p.code for p in problems] == ["count-mismatch"]
    assert len(list(state.problems)) == 1


def test_other_types_build_other_leaves() -> None:
    s = made(V3)
    s.append(2, rows=10)
    before = first_leaf(s.state)
    s.evolve_schema(update={"kind": "string"}, add={"more": "int"})
    s.append(2, rows=10)
    assert first_leaf(s.state, before.location).entries is not before.entries


def test_another_storage_builds_other_leaves() -> None:
    s = made(V3)
    state = s.state
    before = first_leaf(state)
    again = ManifestReader(s.fork().state.storage, state.metadata, state.problems, state.reader)
    root = again.root(state.snapshot)  # type: ignore[arg-type]
    assert again.leaf(root, 0).entries is not before.entries
    same = ManifestReader(state.storage, state.metadata, state.problems, state.reader)
    assert same.leaf(same.root(state.snapshot), 0).entries is before.entries  # type: ignore[arg-type]
