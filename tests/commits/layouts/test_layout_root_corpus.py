"""Real tables, upgraded to V4 on an overlay: nothing that was live is lost, and no rule breaks that held before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from iceexplore.commits import Change, CommitWriter, LayoutOptions, Sandbox, check_rules
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState, open_state
from iceexplore.manifests import live

LAYOUT = {"flush_data_files": 3, "flush_delete_files": 3, "leaf_entries": 50, "affinity": "all"}
Key = tuple[str, int, str | None, int | None]


def live_keys(state: TableState) -> set[Key]:
    out: set[Key] = set()
    root = state.root()
    for leaf in () if root is None else state.reader.leaves(root):
        held = leaf.entries.filter(live(leaf.entries))
        for row in held.select(["location", "content_type", "referenced_file", "deletion_vector"]).to_pylist():
            offset = (row["deletion_vector"] or {}).get("offset")
            out.add((row["location"], row["content_type"], row["referenced_file"], offset))
    return out


def whole_tables(corpus: Path) -> Iterator[tuple[TableState, set[str]]]:
    """Tables whose newest snapshot can be read, and the rules that it breaks already."""
    for folder in sorted({p.parent.parent for p in corpus.rglob("*metadata.json*")}):
        try:
            state = open_state(folder, strict=True)
            broken = {b.rule for b in check_rules(state)}
            names = [state.metadata.location, *(key[0] for key in live_keys(state))]
        except IceexploreError:
            continue
        # V4 takes a relative path to be relative to the table: one that is relative to a process has no place in it
        if state.snapshot is not None and all(map(is_absolute, [*names, state.snapshot.root_location or ""])):
            yield state, broken


def is_absolute(location: str) -> bool:
    """V4 takes a relative path to be relative to the table: one that is relative to a process has no place in it."""
    return location.startswith(("/", "file:")) or "://" in location


def always(change: Change) -> Callable[[CommitWriter], Change]:
    return lambda writer: change


@pytest.mark.corpus
@pytest.mark.parametrize("third", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_upgraded_tables(corpus: Path, third: int) -> None:
    seen = 0
    for state, broken in islice(whole_tables(corpus), third, None, 3):
        if "manifest-stats" in broken:
            continue  # row ids are given by counts that are not true
        box = Sandbox(state, LayoutOptions.of(4, **LAYOUT), seed=1)
        expected = live_keys(state)
        first = tuple(sorted(key[0] for key in expected if key[1] == 0)[:1])
        again: dict[str, Any] = {"rewrite_manifests": True}
        steps: list[dict[str, Any]] = [{}, again, {"remove_data": first}, again]
        for change in [Change("overwrite", **step) for step in steps]:
            box.commit(always(change))
            gone = set(change.remove_data)
            expected = {k for k in expected if k[0] not in gone and not (k[3] is not None and k[2] in gone)}
            assert live_keys(box.state) == expected, state.metadata_location
            assert {b.rule for b in check_rules(box.state)} <= broken, state.metadata_location
        seen += 1
        box.close()
    assert seen > 20
