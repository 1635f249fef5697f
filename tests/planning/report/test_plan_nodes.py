"""A plan node by node: every manifest and file once, by the ids of the tree, and the evidence that decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.expressions import predicates
from iceexplore.planning import PlanNodes, ScanPlan, node_evidence
from iceexplore.render import SceneNode
from tests.helpers.tables.plan_table import filled, with_deletes


def walk(nodes: PlanNodes, step: int = 2) -> Iterator[tuple[str, SceneNode]]:
    """Every node with its group, a few at a time as a view asks for them."""
    assert nodes.root is not None
    queue = [nodes.root.id]
    while queue:
        parent = queue.pop()
        for group in nodes.groups(parent):
            seen: list[SceneNode] = []
            while len(seen) < group.count:
                found = nodes.nodes(parent, group.name, len(seen), step)
                assert found, (parent, group)
                seen += found
            assert len(seen) == group.count
            assert nodes.nodes(parent, group.name, group.count, step) == []
            for node in seen:
                yield group.name, node
                if group.name == "manifests":
                    queue.append(node.id)


#: Other layouts and filters plan by the same code: `test_plan` has them all.
_LAYOUTS = ("v1", "v3", "v4-root", "v4-leaves")
_FILTERS = (
    "id >= 25", "region is null", "day >= date '2024-01-02' and region = 'a'", "amount > 100 or id in (1, 2)",
    "not (region = 'a' or id < 20)",
)  # fmt: skip


@pytest.fixture(scope="module", params=_LAYOUTS)
def table(request: pytest.FixtureRequest) -> Any:
    return with_deletes(request.param)


@pytest.mark.parametrize("text", _FILTERS)
def test_every_file_and_manifest_once(table: Any, text: str) -> None:
    plan: ScanPlan = table.plan(text)
    nodes = PlanNodes(plan)
    tree = table.tree()
    found: dict[str, list[str]] = {"read": [], "manifests": [], "skipped-manifests": [], "skipped": []}
    for group, node in walk(nodes):
        location = (node.tooltip or "").partition("\n")[0]
        assert tree.node(node.id).location == location, "the ids are those of the tree"
        assert ("pruned" in node.marks) is group.startswith("skipped")
        found[group].append(location)
        evidence = node_evidence(nodes, node.id)
        assert evidence is not None and evidence.read is not group.startswith("skipped")
        check_terms(plan, group, evidence)
    assert sorted(found["read"]) == sorted(plan.tasks["file_path"].tolist())
    skipped = plan.skipped
    assert sorted(found["skipped"]) == sorted(skipped[skipped["kind"] == "data file"]["name"].tolist())
    assert sorted(found["skipped-manifests"]) == sorted(skipped[skipped["kind"] == "manifest"]["name"].tolist())
    assert len(found["manifests"]) == plan.totals["manifests"]


def check_terms(plan: ScanPlan, group: str, evidence: Any) -> None:
    """Each term is there, and of a conjunction one denies what is skipped, and none what is read."""
    texts = {p.text for p in predicates(plan.filter.expression)}
    assert {t.term for t in evidence.terms} == texts
    if " or " in plan.filter.text or "not (" in plan.filter.text or not texts:
        return
    denied = any(t.verdict == "no row" for t in evidence.terms)
    if group == "skipped":
        assert denied
    if group == "read":
        assert not denied
        whole = {t.term for t in evidence.terms if t.verdict == "every row"}
        assert (evidence.residual is None) is (whole == texts)


def test_deletes_that_are_left_out_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.planning.report._nodes.MOST_OF_A_FILE", 1)
    table = ix.empty({"id": "long"}, format_version=2, seed=1)
    table.append(files=1, rows=10)
    [file] = table.inspect.data_files()["file_path"]
    for position in range(3):
        table.row_delta(deletes={file: [position]})
    nodes = PlanNodes(table.plan())
    for most, rest in ((1, 2), (2, 1), (3, 0), (9, 0)):
        found, left = nodes.deletes({0: "file"}, most)
        assert (len(found), left) == (3 - rest, rest)


def test_deletes_of_a_file(table: Any) -> None:
    plan = table.plan()
    nodes = PlanNodes(plan)
    tasks = plan.tasks.set_index("file_path")
    for group, node in walk(nodes):
        if group != "read":
            continue
        evidence = node_evidence(nodes, node.id)
        assert evidence is not None
        assert evidence.delete_count == len(evidence.deletes) == tasks.loc[node.tooltip, "deletes"]
        if tasks.loc[node.tooltip, "deletion_vector"] is not None and evidence.deletes:
            assert {d.location for d in evidence.deletes if d.kind == "vector"} <= {
                tasks.loc[node.tooltip, "deletion_vector"]
            }


def test_files_of_a_manifest_that_is_not_opened_are_explained() -> None:
    table = filled("v2")
    plan = table.plan("region = 'b' and day >= date '2024-01-03'")
    nodes = PlanNodes(plan)
    closed = next(node for group, node in walk(nodes) if group == "skipped-manifests")
    _, snapshot, row = closed.id.split(":")
    evidence = node_evidence(nodes, f"file:{snapshot}:{row}:0")
    assert evidence is not None and not evidence.read
    assert evidence.why.startswith("Its manifest is not opened: day_day of the manifest's partitions is 2024-01-0")
    assert any(t.verdict == "no row" for t in evidence.terms)


@pytest.mark.parametrize(
    "node", ["table", "root:1", "manifest:1:2", "file:1:2:3", "manifest:x", "file:", "manifest:-1:0", "file:9:9:9:9:9"]
)
def test_other_nodes_are_none_of_the_plan(node: str) -> None:
    nodes = PlanNodes(filled("v2").plan("id > 3"))
    assert node_evidence(nodes, node) is None
    if not node.startswith("file:"):
        with pytest.raises(ix.OptionError, match="plan"):
            nodes.groups(node)


@pytest.mark.parametrize("row", [99, 10**18])
def test_rows_that_are_not_there(row: int) -> None:
    table = filled("v2")
    nodes = PlanNodes(table.plan("id > 3"))
    snapshot = table.snapshot.snapshot_id  # type: ignore[union-attr]
    assert node_evidence(nodes, f"manifest:{snapshot}:{row}") is None
    assert node_evidence(nodes, f"file:{snapshot}:0:{row}") is None
    assert node_evidence(nodes, f"file:{snapshot}:{row}:0") is None


def test_a_table_without_snapshots_has_no_nodes() -> None:
    nodes = PlanNodes(ix.empty({"id": "long"}).plan("id > 3"))
    assert nodes.root is None
    assert nodes.groups("root:1") == ()
    assert node_evidence(nodes, "manifest:1:0") is None


def test_incremental_plans_have_several_roots() -> None:
    table = filled("v2")
    first = table.snapshots[0].snapshot_id
    with pytest.raises(ix.OptionError, match="covers several snapshots"):
        PlanNodes(table.plan(from_snapshot=first))
