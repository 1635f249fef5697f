"""What `cost`, `plan_cost` and `retained` say, against what is on disk, what is read, and sets made the slow way."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import plan_cost, plan_files, retained
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, travel
from iceexplore.planning import plan_scan
from iceexplore.simulation import Simulation
from iceexplore.storage import CACHE, open_version
from tests.helpers.sampling import one_of

LAYOUTS = [(3, {}), (4, {}), (4, {"flush_data_files": 0, "inline_dv_bytes": 0}), (4, {"dialect": "v4-java"})]


@pytest.fixture(scope="module", params=LAYOUTS, ids=lambda p: f"v{p[0]}" + "".join(f"-{k}" for k in p[1]))
def simulation(request: pytest.FixtureRequest) -> Simulation:
    """Some commits of two writers; it is left as it is."""
    version, layout = request.param
    s = ix.sample().simulate(version, seed=5, **layout)
    s.append(3, rows=1000)
    paths = s.inspect.data_files()["file_path"].tolist()
    s.row_delta(deletes={paths[0]: [0], paths[-1]: [7]})
    s.delete_files(paths[1])
    other = s.fork()
    s.append(2, rows=10)
    other.append(1, rows=10)
    s.refresh()
    return s


def test_commits_are_what_is_on_disk(simulation: Simulation) -> None:
    cost = simulation.cost()
    on_disk = [Path(folder, f).stat().st_size for folder, _, files in os.walk(simulation.overlay) for f in files]
    assert cost.commits["files"].sum() == len(on_disk) == len(cost.files)
    assert cost.commits["bytes"].sum() == sum(on_disk) == cost.files["bytes"].sum()
    assert (cost.commits["metadata_bytes"] + cost.commits["data_bytes"] == cost.commits["bytes"]).all()
    kinds = ["json_bytes", "root_bytes", "manifest_bytes", "dv_bytes"]
    assert (cost.commits[kinds].sum(axis=1) == cost.commits["metadata_bytes"]).all()
    assert cost.commits["attempt"].tolist() == [1, 1, 1, 1, 1, 2]
    assert cost.commits["published"].tolist() == [True, True, True, True, False, True]
    assert cost.commits["operation"].tolist() == ["append", "delete", "delete", "append", "append", "append"]


def test_orphans_are_what_no_snapshot_needs(simulation: Simulation) -> None:
    cost = simulation.cost()
    metadata = simulation.metadata
    needed = {e.metadata_file for e in metadata.metadata_log} | {simulation.metadata_location}
    for snapshot in metadata.snapshots:
        state = travel(simulation.state, snapshot=snapshot.snapshot_id)
        root = state.root()
        assert root is not None
        needed |= {root.location, *build.to_pylist(root.entries["location"])}
        for leaf in state.leaves():
            needed |= set(build.to_pylist(leaf.entries["location"]))
    files = cost.files
    orphans = files[~files["reachable"]]
    assert set(orphans["location"]).isdisjoint(needed)
    assert set(files[files["reachable"]]["location"]) <= needed
    # The losing attempt's list or root, and nothing else.
    assert orphans["kind"].tolist() == ["manifest-list"]
    assert orphans["commit"].tolist() == [5] and orphans["attempt"].tolist() == [1]


def test_the_retry_wrote_no_manifest_again(simulation: Simulation) -> None:
    second = simulation.cost().commits.iloc[-1]
    assert second["manifest_bytes"] == 0 and second["root_bytes"] > 0 and second["json_gets"] == 1


def planned(state: TableState) -> tuple[int, int]:
    """Requests and bytes when the metadata file, the root and every live leaf are really read."""
    CACHE.clear()
    state.storage.reads.clear()
    open_version(state.opened, state.metadata_location)
    list(state.leaves())
    reads = [r for r in state.storage.reads if r.kind not in ("stat", "list") and not r.cached]
    return len(reads), sum(r.length for r in reads)


def test_plan_cold_is_what_reading_reads(simulation: Simulation) -> None:
    state = simulation.state
    cost = plan_cost(state)
    assert planned(state) == (len(cost.cold), sum(f.size for f in cost.cold))


@pytest.mark.parametrize("inline", [0, 4096], ids=["puffin", "inline"])
def test_a_leaf_that_is_removed_wholly_is_not_planned(inline: int) -> None:
    s = ix.empty({"id": "long"}, format_version=4, seed=5, flush_data_files=0, inline_dv_bytes=inline)
    s.append(2, rows=10)
    gone = s.inspect.data_files()["file_path"].tolist()
    s.append(3, rows=10)
    s.delete_files(gone)
    state = s.state
    root = state.root()
    assert root is not None and root.dv_rows, "manifest DVs remove the first leaf, which the root still names"
    CACHE.clear()
    state.storage.reads.clear()
    open_version(state.opened, state.metadata_location)
    assert len(plan_scan(state)) == 3
    reads = [r for r in state.storage.reads if r.kind not in ("stat", "list") and not r.cached]
    cold = plan_cost(state).cold
    assert plan_files(state) == cold
    assert (len(reads), sum(r.length for r in reads)) == (len(cold), sum(f.size for f in cold))
    assert [f.kind for f in cold] == ["metadata", "manifest-list", "manifest"]


# What a planner opens -------------------------------------------------------------------------------------------------

V4_LEAVES: dict[str, Any] = {"format_version": 4, "flush_data_files": 0, "flush_delete_files": 0, "inline_dv_bytes": 0}
OPENED: dict[str, dict[str, Any]] = {
    "v2": {"format_version": 2}, "v3": {"format_version": 3},
    "v4 in leaves": V4_LEAVES, "v4 not affine": V4_LEAVES | {"affinity": "none", "leaf_entries": 2},
    "v4 affine": V4_LEAVES | {"affinity": "all", "inline_dv_bytes": 4096},
}  # fmt: skip


def opened(state: TableState) -> Counter[tuple[str, int, int]]:
    """What planning a scan of a table that was never read opens: location, offset, bytes."""
    CACHE.clear()
    state.storage.reads.clear()
    open_version(state.opened, state.metadata_location)
    plan_scan(state)
    return Counter(
        (r.location, r.offset, r.length) for r in state.storage.reads if r.kind not in ("stat", "list") and not r.cached
    )


def paths(s: Any) -> list[str]:
    return [str(n) for n in s.inspect.data_files()["file_path"]]


def rows(first: int, kind: str) -> pd.DataFrame:
    return pd.DataFrame({"id": list(range(first, first + 4)), "kind": [kind] * 4})


def history(s: Any, name: str) -> None:
    """Commits that leave deletes in each of the ways in which they may apply, or no longer."""
    files: list[str] = []
    for n, kind in enumerate("abc"):
        s.append(rows(4 * n, kind))
        files += [p for p in paths(s) if p not in files]
        s.row_delta(deletes={files[-1]: [0]})
    match name:
        case "some files go":
            s.delete_files(files[:2])
        case "all files go":
            s.delete_files(files)
        case "all are replaced":
            s.delete_files(files)
            s.append(rows(20, "d"))
        case "a partition goes, and a newer file comes":
            s.delete_files(files[0])
            s.append(rows(20, "b"))
        case "equality deletes":
            s.row_delta(equality={"id": [1], "kind": ["a"]})
            s.append(rows(20, "d"))
        case "equality deletes, then all are replaced":
            s.row_delta(equality={"id": [1], "kind": ["a"]})
            s.delete_files(files)
            s.append(rows(20, "d"))
        case "another spec":
            s.evolve_spec(add=["bucket(4, id)"])
            s.append(rows(20, "d"))
            s.delete_files(files[1:])


@pytest.mark.parametrize("name", [
    "deletes alone", "some files go", "all files go", "all are replaced", "a partition goes, and a newer file comes",
    "equality deletes", "equality deletes, then all are replaced", "another spec",
])  # fmt: skip
@pytest.mark.parametrize("layout", one_of(3, OPENED), ids=str)
def test_a_plan_costs_what_the_planner_opens(layout: str, name: str) -> None:
    """Each file once, none that is not opened, and none that is forgotten."""
    s = ix.empty({"id": "long", "kind": "string"}, partition_by=["kind"], seed=5, **OPENED[layout])
    history(s, name)
    found = opened(s.state)
    assert found == Counter((f.location, f.offset, f.size) for f in plan_cost(s.state).cold)
    assert max(found.values()) == 1


@pytest.mark.corpus
def test_real_tables_cost_what_the_planner_opens(corpus: Path) -> None:
    """But for tables whose root, and manifests, cannot be read."""
    seen = 0
    for name, expected in sorted(json.loads((corpus / "expected.json").read_text()).items()):
        try:
            state = ix.open(corpus / name / expected["metadata"])._state
        except ix.IceexploreError:
            continue
        root = state.root()
        if root is None or not (root.length or root.dialect == "inline"):
            continue
        found = {(where, at) for where, at, _ in opened(state)}
        lost = {leaf.location for leaf in plan_scan(state).leaves if not leaf.length}
        cost = {(f.location, f.offset) for f in plan_cost(state).cold if f.location not in lost}
        assert {where for where, _ in cost ^ found} <= {state.metadata_location}, name
        seen += 1
    assert seen > 130


def test_plan_warm_leaves_out_what_the_parent_has(simulation: Simulation) -> None:
    state = simulation.state
    parent = travel(state, snapshot=state.snapshot.parent_snapshot_id)  # type: ignore[union-attr]
    given, found = plan_cost(state, cached=parent), plan_cost(state)
    assert given == found
    before = {f.location for f in plan_cost(parent).cold}
    assert {f.location for f in found.cold} - {f.location for f in found.warm} <= before
    assert [f.kind for f in found.warm][:2] == ["metadata", "manifest-list"]
    table = found.to_pandas().set_index("kind")
    assert table.loc["all", "cold_files"] == len(found.cold) and table.loc["all", "warm_files"] == len(found.warm)


def reach(state: TableState, ids: set[int]) -> tuple[set[str], set[str]]:
    tree: set[str] = set()
    data: set[str] = set()
    for snapshot in state.metadata.snapshots:
        if snapshot.snapshot_id in ids:
            shown = travel(state, snapshot=snapshot.snapshot_id)
            root = shown.root()
            assert root is not None
            rows = [r for r in root.entries.to_pylist() if r["status"] != 2]
            tree |= {root.location, *(r["location"] for r in rows if r["content_type"] in (3, 4))}
            tree |= {
                r["location"] for r in rows if r["content_type"] == 5 and r["deletion_vector"]["offset"] is not None
            }
            for leaf in shown.leaves():
                entries = leaf.entries.to_pylist()
                data |= {
                    e["location"]
                    for e in entries
                    if e["status"] != 2 and e["manifest_dv"] is None and e["content_type"] < 3
                }
    return tree, data


@pytest.mark.parametrize("window", [1, 3, 100])
def test_retained_and_freed(simulation: Simulation, window: int) -> None:
    state = simulation.state
    found = retained(state, window, data=True)
    assert set(found.kept) | set(found.expired) == {s.snapshot_id for s in state.metadata.snapshots}
    assert {r.snapshot_id for r in state.metadata.refs.values()} <= set(found.kept)
    tree, data = reach(state, set(found.kept))
    old_tree, old_data = reach(state, set(found.expired))
    assert {f.location for f in found.files} == tree
    assert {f.location for f in found.freed} == old_tree - tree
    assert found.freed_data_files == len(old_data - data)
    for f in found.files:
        if f.kind != "puffin":
            assert f.size == state.storage.stat(f.location).size
    assert found.bytes == sum(f.size for f in found.files)
    assert "keep" in repr(found) and retained(state, window).freed_data_files is None


def test_a_window_is_at_least_one(simulation: Simulation) -> None:
    with pytest.raises(OptionError, match="window"):
        simulation.retained(0)


def test_what_expiry_frees_is_what_it_frees(simulation: Simulation) -> None:
    other = simulation.simulate()
    expected = other.retained(2)
    gone = other.expire_snapshots(retain_last=2, older_than=2**60)
    assert set(gone) == set(expected.expired)
    left = other.retained(100)
    assert {f.location for f in left.files} == {f.location for f in expected.files}


def test_how_it_looks(simulation: Simulation) -> None:
    cost = simulation.cost()
    assert "plan cold" in repr(cost) and "orphans" in repr(cost)
    assert "<table" in cost._repr_html_() and "cold files" in cost._repr_html_()
    empty = ix.sample().simulate().cost()
    assert "nothing has been committed yet" in repr(empty) and "Nothing" in empty._repr_html_()
    assert len(empty.commits) == 0 and len(empty.files) == 0


@pytest.mark.parametrize("version", [3, 4])
def test_what_a_commit_reads_of_metadata_is_kept_apart_from_data(tmp_path: Path, version: int) -> None:
    modes = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update")}
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=version, properties=modes)
    for start in (0, 10):
        lab.append({"id": list(range(start, start + 10))})
    lab.delete("id = 3")
    CACHE.clear()
    needed = [f.size for f in plan_cost(lab.state).cold if f.kind != "metadata"]  # the writer has the JSON
    CACHE.clear()
    lab.delete("id < 6")  # reads the rows, and the deletion vector that there is
    made = lab.cost().commits.iloc[-1]
    assert (made["metadata_gets"], made["metadata_get_bytes"]) == (len(needed), sum(needed))
    assert made["gets"] > made["metadata_gets"] and made["get_bytes"] > made["metadata_get_bytes"]
