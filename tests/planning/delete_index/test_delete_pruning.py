"""Delete manifests that a plan does not read: whatever the partitioning, no delete is lost with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits.layouts import _root_files, _root_maintenance
from iceexplore.commits.operations import _row_delta
from iceexplore.graph import live_manifests
from iceexplore.manifests import ContentType, EntryBatch
from iceexplore.planning import match_deletes, may_hold, plan_scan
from iceexplore.planning.delete_index import _delete_files
from iceexplore.planning.delete_index._delete_files import live_deletes
from iceexplore.planning.delete_index._match import DeleteIndex
from iceexplore.planning.scan import _manifests as _plan_roots
from iceexplore.writing._column_metrics import stat_columns, stats_arrays
from tests.planning.delete_index.delete_table import by_file
from tests.planning.delete_index.test_delete_match import data_files, names

LEAVES: dict[str, Any] = {"flush_data_files": 0, "flush_delete_files": 0, "affinity": "none"}
APART: dict[str, Any] = {"format_version": 4, **LEAVES, "leaf_entries": 4}
SCHEMA = {"id": "long", "kind": "string", "x": "double"}
KINDS, NUMBERS = ["a", "b", None, "cc", "ä"], [1.0, float("nan"), None, -0.0, 0.0, 7.5]
SPECS: list[list[str]] = [
    [], ["kind"], ["x", "truncate(1, kind)"], ["bucket(3, id)"], ["kind", "bucket(3, id)"], ["truncate(10, id)"],
    ["id"],
]  # fmt: skip
FILTERS = ["kind = 'a'", "kind is null", "id = 3", "id < 12", "x > 1", "kind > 'b' or id = 2"]


def mixed_chunks(batch: EntryBatch, size: int) -> Iterable[EntryBatch]:
    """Leaves of entries of all specs together, as V4 allows: the root gives such a leaf the newest spec."""
    rows = np.argsort(-np.asarray(batch.entries["partition_spec_id"]), kind="stable")
    return [batch.take(pa.array(part)) for part in np.array_split(rows, -(-len(rows) // size))]


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_root_files, _root_maintenance):
        monkeypatch.setattr(module, "chunks", mixed_chunks)


def frame(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(zip(*rows, strict=True), (pa.int64(), pa.string(), pa.float64()), strict=True)
    return pa.table([pa.array(list(v), t) for v, t in columns], list(SCHEMA))


def made(random: np.random.Generator, first: list[str], layout: dict[str, Any], commits: int = 8) -> Any:
    """A table after some random commits and changes of its partitioning."""
    table = ix.empty(SCHEMA, partition_by=first, seed=int(random.integers(1 << 30)), **layout)
    at, deleted, written = 0, set[str](), list[tuple[Any, ...]]()
    for _ in range(commits):
        files = sorted(set(names(table)) - deleted) if at else []
        steps = ["append", "append", "vector", "vector", "equality", "spec", "spec"] if files else ["append"]
        match random.choice(steps):
            case "append":
                count = int(random.integers(1, 5))
                rows = [(at + i, KINDS[random.integers(len(KINDS))], NUMBERS[random.integers(len(NUMBERS))])
                        for i in range(count)]  # fmt: skip
                table.append(frame(rows))
                written += rows
                at += count
            case "vector":
                chosen = random.choice(files, min(len(files), int(random.integers(2, 6))), replace=False)
                table.row_delta(deletes={str(name): [0] for name in chosen})
                deleted |= {str(name) for name in chosen}
            case "equality":
                rows = [written[i] for i in random.integers(0, at, 2)]
                wide = any(s.is_unpartitioned for s in table.metadata.partition_specs) and random.random() < 0.5
                table.row_delta(equality=frame(rows).select(["id"] if wide else list(SCHEMA)))
            case "spec":
                spec = table.metadata.spec(table.metadata.default_spec_id)
                assert spec is not None
                add = SPECS[random.integers(len(SPECS))]
                table.evolve_spec(remove=[f.name for f in spec.fields], add=add)
    return table


def check(table: Any, random: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that pruning changes no assignment, of some data files or of a filter's plan."""
    state = table._state
    files, every = data_files(state), live_deletes(state)
    chosen = [[i] for i in range(len(files))] + [random.integers(0, len(files), 3).tolist() for _ in range(6)]
    for rows in chosen:
        some = files.take(np.array(sorted(set(rows))))
        assert by_file(match_deletes(state, some)) == by_file(DeleteIndex(state, some, every).result()), rows
    pruned = [_planned(table, where) for where in FILTERS]
    with monkeypatch.context() as patch:
        patch.setattr(_delete_files, "concerned", lambda _state, _root, rows, _files: rows)
        whole = may_hold
        patch.setattr(_plan_roots, "may_hold", lambda state, root, rows, wanted, *, files="data": (
            pa.array(np.ones(len(rows), np.bool_)) if files == "deletes" else whole(state, root, rows, wanted)
        ))  # fmt: skip
        assert [_planned(table, where) for where in FILTERS] == pruned


def _planned(table: Any, where: str) -> dict[str, Any]:
    plan = plan_scan(table._state, where)
    files = build.to_pylist(plan.files.files.entries["location"])
    return dict(zip(files, by_file(plan.files.matched), strict=True))


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 24))])
@pytest.mark.parametrize("how", ["one spec a leaf", "mixed leaves"])
def test_pruning_changes_no_assignment(
    how: str, seed: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "mixed leaves":
        request.getfixturevalue("mixed")
    random = np.random.default_rng(seed)
    table = made(random, SPECS[seed % len(SPECS)], APART)
    check(table, random, monkeypatch)


@pytest.mark.parametrize("layout", [{"format_version": 2}, {"format_version": 3}], ids=["v2", "v3"])
@pytest.mark.parametrize("seed", range(2))
def test_pruning_changes_no_assignment_below_v4(
    layout: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(100 + seed)
    check(made(random, SPECS[1 + seed], layout), random, monkeypatch)


@pytest.mark.usefixtures("mixed")
def test_a_global_delete_in_a_leaf_of_another_spec_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file has the column `kind`, too, by which it does not match and of which the leaf's bounds are."""
    table = ix.empty(SCHEMA, **{**APART, "leaf_entries": 9})
    table.append(frame([(1, "a", 1.0), (2, "a", 1.0)]))
    table.evolve_spec(add=["kind"])
    table.append(frame([(1, "a", 2.0), (3, "a", 2.0)]))
    table.append(frame([(4, "z", 3.0), (5, "z", 3.0)]))
    whole, columns = stats_arrays, stat_columns(table.metadata, table.schema)
    kind = {"lower": "z", "upper": "z", "value_count": 1, "null_count": 0}
    monkeypatch.setattr(_row_delta, "stats_arrays", lambda _, rows: whole(columns, [{**rows[0], 2: kind}]))
    (last,) = (name for name in names(table) if "kind=z" in name)
    table.row_delta(deletes={last: [0]}, equality={"id": [1]})
    root = table._state.root()
    assert root is not None
    (row,) = live_manifests(root, {int(ContentType.DELETE_MANIFEST)})
    assert root.entries["partition_spec_id"][row].as_py() == 1
    assert [root.stats(2).lower[row].as_py(), root.stats(2).upper[row].as_py()] == ["z", "z"]
    assert sorted(build.to_pylist(table.to_arrow("kind = 'a'")["id"])) == [2, 3]
    check(table, np.random.default_rng(1), monkeypatch)
