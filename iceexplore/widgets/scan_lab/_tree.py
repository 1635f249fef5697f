"""The tree of a plan for the browser: manifests and files read, and those skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iceexplore.graph import MOST_TARGETS
from iceexplore.render import SceneNode
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.tree._forest import short

if TYPE_CHECKING:
    from iceexplore.planning import PlannedDelete, PlanNodes

__all__ = ["ScanGrowth", "first_unfolded", "grow_scan"]

#: The number of nodes that each group shows at first, and the number that each "more" adds.
_SHOWN = {"read": 25, "manifests": 25, "skipped-manifests": 10, "skipped": 10, "deletes": 40, "skipped-deletes": 10}
_STEP = 100
_WORDS = {
    "read": "more read", "manifests": "more manifests read", "skipped-manifests": "more manifests skipped",
    "skipped": "more skipped", "deletes": "more deletes apply", "skipped-deletes": "more delete manifests skipped",
}  # fmt: skip
#: Maximum number of manifests that are unfolded at first, and of the files that they may have together.
_UNFOLDED = 4
_FILES = 40


@dataclass(frozen=True)
class ScanGrowth:
    """A plan's tree for the browser; ``limits`` has the number of nodes shown in each group, by ``group:node``."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    expanded: list[str] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)


def first_unfolded(nodes: PlanNodes) -> list[str]:
    """Return the nodes to unfold at first: the root, the first manifests with files to read, and delete manifests."""
    root = nodes.root
    if root is None:
        return []
    out, files = [root.id], 0
    for node in nodes.nodes(root.id, "manifests", 0, _UNFOLDED):
        groups = {g.name: min(g.count, _SHOWN[g.name]) for g in nodes.groups(node.id)}
        files += sum(groups.values())
        if "read" in groups and files <= _FILES:
            out.append(node.id)
    return [*out, *(nodes.manifest_id(row) for row in nodes.plan.read_delete_rows[:_UNFOLDED])]


def grow_scan(nodes: PlanNodes, expanded: Iterable[str], limits: dict[str, int]) -> ScanGrowth:
    """Return the tree with these nodes unfolded; ``more:<group>:<node>`` shows a hundred more of a group."""
    root = nodes.root
    if root is None:
        return ScanGrowth()
    limits = dict(limits)
    opened: list[str] = []
    for node_id in dict.fromkeys(expanded):
        if node_id.startswith("more:"):
            at = node_id.removeprefix("more:")
            limits[at] = limits.get(at, _SHOWN.get(at.partition(":")[0], 0)) + _STEP
        else:
            opened.append(node_id)
    sent: dict[str, dict[str, Any]] = {}
    files: dict[int, str] = {}
    queue = [root]
    while queue:
        node = queue.pop()
        groups = nodes.groups(node.id) if "pruned" not in node.marks else ()
        children: list[str] | None = None
        if node.id in opened and groups:
            children = []
            for group in groups:
                at = f"{group.name}:{node.id}"
                shown = min(group.count, limits.get(at, _SHOWN[group.name]))
                found = nodes.nodes(node.id, group.name, 0, shown)
                queue += found
                children += [n.id for n in found]
                if group.name == "read":
                    files |= dict(enumerate((n.id for n in found), nodes.first_task(node.id)))
                if group.count > shown:
                    children.append(f"more:{at}")
                    sent[f"more:{at}"] = _more(group.name, group.count - shown)
        sent[node.id] = _sent(node, children, leaf=not groups)
    if sent[root.id]["children"] is not None:
        _add_deletes(nodes, files, sent, opened, limits)
    return ScanGrowth(sent, [root.id], [i for i in opened if i in sent], limits)


def _sent(node: SceneNode, children: list[str] | None, *, leaf: bool) -> dict[str, Any]:
    skipped = "pruned" in node.marks
    lines = [line for line in (node.badge, *node.lines) if line]
    return {
        "kind": node.kind,
        "label": signs(short(node.label)),
        "note": signs(" · ".join(lines[1:2] if skipped else lines)[:160]),
        "reason": signs(lines[0][:160]) if skipped and lines else "",
        "marks": sorted(node.marks),
        "tooltip": signs_of_lines((node.tooltip or "")[:600]),
        "leaf": leaf,
        "children": children,
    }


def _add_deletes(
    nodes: PlanNodes, files: dict[int, str], sent: dict[str, dict[str, Any]], opened: list[str], limits: dict[str, int]
) -> None:
    """Add the deletes that apply to the shown files, with arrows to them, and the delete manifests that are skipped."""
    assert nodes.root is not None
    root = nodes.root.id

    def limit(group: str) -> int:
        return limits.get(f"{group}:{root}", _SHOWN[group])

    def add(parent: str, *children: str) -> None:
        sent[parent]["children"] = [*(sent[parent]["children"] or ()), *children]

    found, rest = nodes.deletes(files, limit("deletes"))
    by_row: dict[int | None, list[PlannedDelete]] = {}
    for delete in found:
        by_row.setdefault(delete.row, []).append(delete)
    for row, some in by_row.items():
        parent = root if row is None else nodes.manifest_id(row)
        if parent not in sent and row is not None:
            sent[parent] = _sent(nodes.delete_manifest(row, len(some), more=rest > 0), None, leaf=False)
            add(root, parent)
        if parent == root or parent in opened:
            add(parent, *(delete.node.id for delete in some))
            for delete in some:
                applies = {"applies": list(delete.targets)} if len(delete.targets) <= MOST_TARGETS else {}
                sent[delete.node.id] = {**_sent(delete.node, None, leaf=True), **applies}
    skipped = nodes.skipped_deletes
    shown = limit("skipped-deletes")
    for node in skipped[:shown]:
        sent[node.id] = _sent(node, None, leaf=True)
        add(root, node.id)
    for group, more in (("deletes", rest), ("skipped-deletes", len(skipped) - shown)):
        if more > 0:
            sent[f"more:{group}:{root}"] = _more(group, more)
            add(root, f"more:{group}:{root}")


def _more(group: str, count: int) -> dict[str, Any]:
    marks = ["pruned"] if group.startswith("skipped") else []
    words: dict[str, Any] = {"kind": "more", "label": f"+{count:,} {_WORDS[group]}", "note": "", "reason": ""}
    return {**words, "marks": marks, "tooltip": None, "leaf": True, "children": None}
