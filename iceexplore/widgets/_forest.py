"""What the explorer's tree shows: the way from the table down to one snapshot, and whatever has been unfolded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from iceexplore.graph import TableState, Tree, TreeNode, build_tree, json_safe

__all__ = ["Forest", "Growth", "short"]

#: Children shown at first, and added by each "more".
STEP = 100
_LOG = "log"


@dataclass(frozen=True)
class Growth:
    """The tree as the browser has it: nodes by id, the topmost ids, and the ids that are unfolded."""

    nodes: dict[str, dict[str, Any]]
    roots: list[str]
    expanded: list[str]
    limits: dict[str, int] = field(default_factory=dict)


class Forest:
    """Makes the nodes that the browser asks for, each read as far as that takes."""

    def __init__(self, state: TableState) -> None:
        self.state = state
        self.tree: Tree = build_tree(state, depth="snapshots")

    def node(self, node_id: str) -> TreeNode:
        """A node by id.

        Raises
        ------
        OptionError
            The table has no such node.
        """
        return self.tree.node(node_id)

    def start(self, snapshot_id: int | None) -> Growth:
        """The tree of one snapshot, unfolded down to its manifests."""
        expanded = ["table", "metadata"]
        if snapshot_id is not None:
            expanded += [f"snapshot:{snapshot_id}", f"root:{snapshot_id}"]
        return self.grow(snapshot_id, expanded, {})

    def grow(self, snapshot_id: int | None, expanded: Iterable[str], limits: dict[str, int]) -> Growth:
        """The tree with these nodes unfolded. ``limits`` says of how many children are shown, where not a hundred.

        An unfolded ``more:x`` shows a hundred more children of ``x``.
        """
        limits = dict(limits)
        opened: list[str] = []
        for node_id in dict.fromkeys(expanded):
            if node_id.startswith("more:"):
                parent = node_id.removeprefix("more:")
                limits[parent] = limits.get(parent, 0 if parent == _LOG else STEP) + STEP
            else:
                opened.append(node_id)
        nodes: dict[str, dict[str, Any]] = {}
        wanted = set(opened)
        queue = [self.node("table")]
        while queue:
            node = queue.pop()
            children: list[TreeNode] | None = None
            if node.id in wanted and node.child_count != 0:
                children, rest = self._children(node, snapshot_id, limits)
                queue += children
                nodes[node.id] = _sent(node, [c.id for c in children])
                if rest is not None:
                    nodes[node.id]["children"].append(rest["id"])
                    nodes[rest.pop("id")] = rest
            else:
                nodes[node.id] = _sent(node, None)
        return Growth(nodes, ["table"], [i for i in opened if i in nodes], limits)

    def follow(self, node_id: str, before: int | None, after: int | None) -> str:
        """The node to select when another snapshot is shown: the same one, or its counterpart there."""
        kind, _, rest = node_id.partition(":")
        if kind in ("table", "metadata"):
            return node_id
        if after is None:
            return "table"
        if kind == "root":
            return f"root:{after}"
        if kind == "manifest" and before is not None and rest.startswith(f"{before}:"):
            location = self.node(node_id).location
            for child in self.tree.children(f"root:{after}", limit=10_000):
                if child.location == location and location is not None:
                    return child.id
        return f"snapshot:{after}"

    def _children(
        self, node: TreeNode, snapshot_id: int | None, limits: dict[str, int]
    ) -> tuple[list[TreeNode], dict[str, Any] | None]:
        """A node's children that are shown, and the node that stands for the others."""
        if node.id == "table":
            return self._metadata_files(limits.get(_LOG, 0))
        if node.id == "metadata":
            return self._snapshot(snapshot_id), None
        limit = limits.get(node.id, STEP)
        children = self.tree.children(node.id, limit=limit + 1)
        if len(children) <= limit:
            return children, None
        total = None if node.child_count is None else node.child_count - limit
        return children[:limit], _more(node.id, f"+{total:,} more" if total and total > 0 else "more …")

    def _metadata_files(self, limit: int) -> tuple[list[TreeNode], dict[str, Any] | None]:
        earlier = len(self.state.metadata.metadata_log)
        children = self.tree.children("table", limit=limit + 1)
        rest = earlier + 1 - len(children)
        return children, _more(_LOG, f"+{rest:,} earlier metadata file{'s' if rest > 1 else ''}") if rest > 0 else None

    def _snapshot(self, snapshot_id: int | None) -> list[TreeNode]:
        """The snapshot that the slider stands on, with the refs that name it; the slider shows the others."""
        if snapshot_id is None:
            return []
        refs = self.tree.children("metadata", limit=len(self.state.metadata.refs))
        here = [n for n in refs if n.kind in ("branch", "tag") and n.fields.get("snapshot-id") == snapshot_id]
        return [*here, self.node(f"snapshot:{snapshot_id}")]


def _more(parent: str, label: str) -> dict[str, Any]:
    node: dict[str, Any] = {
        "id": f"more:{parent}",
        "kind": "more",
        "label": label,
        "note": "",
        "marks": [],
    }
    return {**node, "tooltip": None, "leaf": True, "children": None}


_UUID = re.compile(r"([0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID = re.compile(r"(?<![0-9a-f])(\d{4})\d{7,11}(\d{4})(?![0-9a-f])")


def short(label: str) -> str:
    """A label that fits a narrow pane: of UUIDs and snapshot ids only the ends, which tell them apart."""
    return _ID.sub(r"\1…\2", _UUID.sub(r"\1…", label[:300]))[:120]


def _sent(node: TreeNode, children: list[str] | None) -> dict[str, Any]:
    """What the browser needs of a node: little, as every change sends them all."""
    lines = [node.location or node.label, *node.lines]
    return {
        "kind": node.kind,
        "label": json_safe(short(node.label)),
        "note": json_safe(" · ".join([*([node.badge] if node.badge else []), *node.lines[:1]])[:160]),
        "marks": sorted(node.marks - {"folded"}),
        "tooltip": json_safe("\n".join(lines)[:600]),
        "leaf": node.child_count == 0,
        "children": children,
    }
