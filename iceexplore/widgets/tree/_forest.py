"""The nodes of the explorer's tree: the path from the table to one snapshot, and everything that is unfolded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from iceexplore.graph import FoldedRows, TableState, Tree, TreeNode, applies_edges, build_tree
from iceexplore.render import Scene, size_shade
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.core._ids import snapshot_of_node
from iceexplore.widgets.tree._compare import Comparison

__all__ = ["Forest", "Growth", "View", "add_edges", "first_expanded", "sent", "short"]

#: The number of children shown at first, and also the number that each "more" adds.
STEP = 100
_LOG = "log"


@dataclass(frozen=True)
class View:
    """The content that the tree has to show.

    Attributes
    ----------
    snapshot, against
        The ids of the snapshot shown, and of the one that it is compared with.
    expanded
        The ids of unfolded nodes; ``more:x`` shows a hundred more children of ``x``.
    limits
        The number of children shown, by node, if not a hundred.
    pins
        Nodes that are shown in addition to their parent's first children.
    """

    snapshot: int | None
    expanded: tuple[str, ...]
    against: int | None = None
    limits: dict[str, int] = field(default_factory=dict)
    pins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Growth:
    """The tree for the browser: nodes by id, the ids of the topmost nodes and of the unfolded ones.

    ``made`` are the same nodes as `TreeNode`s, ``compared`` describes a comparison (see `TreePanel`).
    """

    nodes: dict[str, dict[str, Any]]
    roots: list[str]
    expanded: list[str]
    limits: dict[str, int]
    made: list[TreeNode]
    compared: dict[str, Any]


class Forest:
    """Builds the nodes that the browser requests. It reads only the files that these need, and each file once."""

    def __init__(self, state: TableState) -> None:
        self.state = state
        self.tree: Tree = build_tree(state, depth="snapshots")
        self._pages: dict[tuple[str, int], list[TreeNode]] = {}
        self._problems = len(state.problems)
        self._comparison: Comparison | None = None
        #: Nodes, by id, that `node` returns without building them again; set while a page is saved.
        self.at_hand: dict[str, TreeNode] = {}

    def node(self, node_id: str) -> TreeNode:
        """Return a node by id.

        Raises
        ------
        OptionError
            The table has no such node.
        """
        return self.at_hand.get(node_id) or self.tree.node(node_id)

    def start(self, snapshot_id: int | None, against: int | None = None) -> Growth:
        """Return the tree of one snapshot, unfolded to its manifests."""
        return self.grow(View(snapshot_id, tuple(first_expanded(snapshot_id)), against))

    def grow(self, view: View) -> Growth:
        """Return the tree with the content of a view.

        Raises
        ------
        OptionError
            A pinned node does not exist.
        """
        limits = dict(view.limits)
        opened: list[str] = []
        for node_id in dict.fromkeys(view.expanded):
            if node_id.startswith("more:"):
                parent = node_id.removeprefix("more:")
                limits[parent] = limits.get(parent, 0 if parent == _LOG else STEP) + STEP
            else:
                opened.append(node_id)
        view = replace(view, limits=limits)
        nodes: dict[str, dict[str, Any]] = {}
        made: list[TreeNode] = []
        wanted = set(opened)
        queue = [self.node("table")]
        while queue:
            node = queue.pop()
            children: list[str] | None = None
            if node.id in wanted and node.child_count != 0:
                found, rest = self._children(node, view)
                found += self._pinned(node, view, found)
                if len(self.state.problems) != self._problems:  # nodes built before lack marks of new problems
                    self._problems = len(self.state.problems)
                    self._pages.clear()
                    now = self.node(node.id)
                    node = replace(node, problems=now.problems, marks=node.marks | (now.marks & {"problem"}))
                queue += reversed(found)
                children = [c.id for c in found]
                if rest is not None:
                    children.append(rest["id"])
                    nodes[rest.pop("id")] = rest
            nodes[node.id] = sent(node, children)
            made.append(node)
        add_edges(nodes, made, self.state)
        expanded = [i for i in opened if i in nodes]
        return Growth(nodes, ["table"], expanded, limits, made, self._comparison_words(view))

    def scene(self, view: View) -> Scene:
        """Return the content of a view as a scene for the renderers."""
        made = self.grow(view).made
        known = {node.id for node in made}
        nodes = []
        for node in made:
            parent = self.parent(node.id, view)
            nodes.append(replace(node, parent=parent if parent in known else None).scene_node())
        shown = "no snapshot" if view.snapshot is None else f"snapshot {view.snapshot}"
        words = f"{shown}, compared with snapshot {view.against}" if view.against is not None else shown
        edges = tuple(applies_edges(made, self.state.metadata))
        return Scene(self.state.name, f"{self.state.format_name} · {words}", tuple(nodes), edges)

    def parent(self, node_id: str, view: View) -> str | None:
        """Return the parent of a node in the tree; None for the table."""
        kind, _, rest = node_id.partition(":")
        numbers = rest.split(":")
        if kind == "table":
            return None
        if kind == "metadata":
            return "table"
        if kind in ("snapshot", "ref"):
            return "metadata"
        if kind in ("root", "statistics"):
            return f"snapshot:{numbers[0]}"
        if kind == "file" and len(numbers) == 3:
            return f"manifest:{numbers[0]}:{numbers[1]}"
        # Entries that only the other snapshot has appear below the root of the snapshot shown.
        return f"root:{view.snapshot if numbers[0] == str(view.against) else numbers[0]}"

    def way(self, node_id: str, view: View) -> list[str]:
        """Return the ancestors of a node, the topmost first."""
        out: list[str] = []
        above = self.parent(node_id, view)
        while above is not None:
            out.insert(0, above)
            above = self.parent(above, view)
        return out

    def snapshot_of(self, node_id: str) -> int | None:
        """Return the snapshot to whose tree a node belongs, or to which a ref points; None for a node of all trees."""
        if node_id.startswith("ref:"):
            named = self.node(node_id).fields.get("snapshot-id")
            return named if named is not None and self.state.metadata.snapshot(named) is not None else None
        return snapshot_of_node(node_id)

    def follow(self, node_id: str, before: int | None, after: int | None) -> str:
        """Return the node to select when another snapshot is shown: the same one, or its counterpart."""
        kind, _, rest = node_id.partition(":")
        if kind in ("table", "metadata"):
            return node_id
        if after is None:
            return "table"
        if self.snapshot_of(node_id) == after:
            return node_id
        if kind == "root":
            return f"root:{after}"
        if kind == "manifest" and before is not None and rest.startswith(f"{before}:"):
            location = self.node(node_id).location
            for child in self.tree.children(f"root:{after}", limit=10_000):
                if child.location == location and location is not None:
                    return child.id
        return f"snapshot:{after}"

    # Children ---------------------------------------------------------------------------------------------------------

    def _page(self, node_id: str, limit: int) -> list[TreeNode]:
        """Return the first children of a node, changed ones before others; cached, as files never change."""
        at = (node_id, limit)
        if at not in self._pages:
            self._pages[at] = self.tree.children(node_id, limit=limit, changed_first=True)
        return list(self._pages[at])

    def _children(self, node: TreeNode, view: View) -> tuple[list[TreeNode], dict[str, Any] | None]:
        """Return the children of a node to show, and a node that represents the rest, or None."""
        if node.id == "table":
            return self._metadata_files(view.limits.get(_LOG, 0))
        if node.id == "metadata":
            return self._snapshot(view.snapshot), None
        limit = view.limits.get(node.id, STEP)
        comparison = self._compared(view)
        if comparison is not None and node.id == f"root:{view.snapshot}":
            differing = comparison.root_nodes(self.node, limit)
            rest = comparison.total - len(differing)
            return differing, _more(node.id, f"+{rest:,} more") if rest > 0 else None
        children = self._page(node.id, limit + 1)
        more = None
        if len(children) > limit:
            pinned = sum(self.parent(p, view) == node.id for p in view.pins)
            folded = self.tree.folded(node.id, limit)
            rest = folded.count if folded else (node.child_count or 0) - limit
            more = _more(node.id, f"+{rest - pinned:,} more" if rest > pinned else "more …", folded)
            children = children[:limit]
        if comparison is not None and node.id.startswith("manifest:"):
            children = comparison.marked(children)
        return children, more

    def _pinned(self, node: TreeNode, view: View, shown: Iterable[TreeNode]) -> list[TreeNode]:
        known = {child.id for child in shown}
        pins = [p for p in view.pins if p not in known and self.parent(p, view) == node.id]
        comparison = self._compared(view)
        found = [self.node(p) for p in sorted(pins, key=lambda p: (len(p), p))]  # in row order
        return found if comparison is None else comparison.marked(found)

    def _compared(self, view: View) -> Comparison | None:
        if view.against is None or view.snapshot is None or view.against == view.snapshot:
            return None
        pair = (view.against, view.snapshot)
        if self._comparison is None or self._comparison.pair != pair:
            self._comparison = Comparison(self.state, *pair)
        return self._comparison

    def _comparison_words(self, view: View) -> dict[str, Any]:
        comparison = self._compared(view)
        if comparison is None:
            return {}
        older, newer = (self.node(f"snapshot:{one}").label for one in comparison.in_age)
        text = f"{short(older)} → {short(newer.lower())}"
        return {"against": str(view.against), "text": text, "counts": comparison.words()}

    def _metadata_files(self, limit: int) -> tuple[list[TreeNode], dict[str, Any] | None]:
        earlier = len(self.state.metadata.metadata_log)
        children = self.tree.children("table", limit=limit + 1)
        rest = earlier + 1 - len(children)
        return children, _more(_LOG, f"+{rest:,} earlier metadata file{'s' if rest > 1 else ''}") if rest > 0 else None

    def _snapshot(self, snapshot_id: int | None) -> list[TreeNode]:
        """Return the refs of the selected snapshot and its node; the timeline shows the other snapshots."""
        if snapshot_id is None:
            return []
        refs = self.tree.children("metadata", limit=len(self.state.metadata.refs))
        here = [n for n in refs if n.kind in ("branch", "tag") and n.fields.get("snapshot-id") == snapshot_id]
        return [*here, self.node(f"snapshot:{snapshot_id}")]


def first_expanded(snapshot_id: int | None) -> list[str]:
    """Return the nodes unfolded at first, down to the manifests."""
    deeper = [] if snapshot_id is None else [f"snapshot:{snapshot_id}", f"root:{snapshot_id}"]
    return ["table", "metadata", *deeper]


def _more(parent: str, label: str, folded: FoldedRows | None = None) -> dict[str, Any]:
    """Return a node for the children that are not shown, with a cell for each child, or for several together."""
    node = {"id": f"more:{parent}", "kind": "more", "label": label, "note": "", "marks": []}
    made = {**node, "tooltip": None, "leaf": True, "children": None}
    return made if folded is None else {**made, "cells": _cells(folded)}


def _cells(folded: FoldedRows) -> dict[str, Any]:
    """Return cells for the browser: texts with one digit for each cell."""
    block = folded.cells
    texts = {name: "".join(map(str, getattr(block, name))) for name in ("kinds", "shades", "changes")}
    return {**texts, "names": list(block.names), "rows": folded.rows, "below": folded.below}


_UUID = re.compile(r"([0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID = re.compile(r"(?<![0-9a-f])(\d{4})\d{7,11}(\d{4})(?![0-9a-f])")


def short(label: str) -> str:
    """Return a label shortened for a narrow pane: UUIDs and snapshot ids keep only the distinguishing ends."""
    return _ID.sub(r"\1…\2", _UUID.sub(r"\1…", label[:300]))[:120]


def add_edges(nodes: Mapping[str, dict[str, Any]], made: Iterable[TreeNode], state: TableState) -> None:
    """Add to each delete's node, in the form for the browser, the ids of the nodes to which the delete applies."""
    for edge in applies_edges(made, state.metadata):
        nodes[edge.source].setdefault("applies", []).append(edge.target)


def sent(node: TreeNode, children: list[str] | None) -> dict[str, Any]:
    """Return the data of a node for the browser, kept small, as a tree may show thousands."""
    lines = [node.location or node.label, *node.lines]
    shade = {} if node.size is None else {"shade": size_shade(node.size)}
    badge = [node.badge] if node.badge else []
    title = {"title": signs(short(node.headline))} if node.headline else {}
    notes = [node.partition, *badge] if node.headline else [*badge, *node.lines[:1]]
    return {
        **shade,
        **title,
        "kind": node.kind,
        "label": signs(short(node.own_label)),
        "note": signs(" · ".join(filter(None, notes))[:160]),
        "marks": sorted(node.marks - {"folded"}),
        "tooltip": signs_of_lines("\n".join(lines)[:400]),
        "leaf": node.child_count == 0,
        "children": children,
    }
