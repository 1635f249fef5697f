"""Collect the content of a saved page: trees of snapshots, details and tables, as much as fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iceexplore.errors import IceexploreError
from iceexplore.graph import TreeNode, human_bytes, json_safe
from iceexplore.storage import progress
from iceexplore.widgets.core._escape_text import signs_of_page
from iceexplore.widgets.detail._node_tables import JSON
from iceexplore.widgets.saved_page._redact import PageRedactor
from iceexplore.widgets.tree._forest import Forest, Growth, View

__all__ = ["Collected", "SavedPage", "collect"]

#: Kinds of nodes whose tables are read before the tables of files, which come last.
_MANIFESTS = frozenset({"data-manifest", "delete-manifest", "manifest-dv"})
#: Maximum number of nodes in a page. Each file adds a node, details and a table of its columns.
_MOST_NODES = 1_500
#: The minimum size in bytes of any content; with less space left, reading stops.
_LEAST = 500


@dataclass(frozen=True)
class SavedPage:
    """A page that was written.

    Attributes
    ----------
    path
        The file.
    size
        The size in bytes.
    redacted
        The kinds of redaction applied.
    left_out
        Sentences about content that did not fit; the page has them too.
    """

    path: Path
    size: int
    redacted: tuple[str, ...]
    left_out: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [f"{self.path}: {human_bytes(self.size)}, redacted: {', '.join(self.redacted) or 'nothing'}"]
        return "\n".join([*lines, *self.left_out])


@dataclass
class Collected:
    """The content of a page, and the bytes left for more."""

    left: int
    rows: int
    redactor: PageRedactor
    trees: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    cut: int = 0

    def full(self, kind: str) -> bool:
        """Return whether to stop reading a kind of content: too little space is left for its smallest rejected item."""
        return self.left < self.refused.get(kind, _LEAST)

    def take(self, kind: str, made: object, *, must: bool = False) -> bool:
        """Return whether an item is taken because it fits or ``must`` be in the page; if so, subtract its size."""
        size = len(json.dumps(made, ensure_ascii=False).encode())
        if size > self.left and not must:
            self.refused[kind] = min(size, self.refused.get(kind, size))
            return False
        self.left -= size
        return True

    def misses(self, what: str) -> None:
        """Count an item that is not in the page."""
        self.missing[what] = self.missing.get(what, 0) + 1

    def left_out(self) -> list[str]:
        """Return sentences about what is not in the page."""
        out = [f"Left out to limit the size of this page: {_so_many(n, what)}." for what, n in self.missing.items()]
        if self.cut:
            rows = "row is" if self.rows == 1 else f"{self.rows:,} rows are"
            out.append(f"Only the first {rows} included of {_so_many(self.cut, 'tables')}.")
        return out


def _so_many(count: int, what: str) -> str:
    """Return a count with a noun that is given in the plural; "details" is never singular."""
    one = {"snapshots": "snapshot", "tables": "table"}.get(what, what)
    return f"{count:,} {one if count == 1 else what}"


#: A function that returns the details of a node.
Detail = Callable[[TreeNode], dict[str, Any]]
#: A function that returns a node's table or text by its key: columns, rows, total and nodes, or text.
Read = Callable[[str, str, int], dict[str, Any]]


def collect(
    forest: Forest, snapshot: str, detail: Detail, read: Read, redactor: PageRedactor, *, size: int, rows: int
) -> Collected:
    """Read the content of a page: first the selected snapshot, then the others, then manifests, then files."""
    out = Collected(size, rows, redactor)
    ids = [str(s.snapshot_id) for s in reversed(forest.state.metadata.snapshots)]
    order = [s for s in dict.fromkeys([snapshot, *ids]) if s] or [""]
    grown: dict[str, Growth] = {}
    known = len(forest.state.problems)
    with progress(len(order), "snapshots") as step:
        for text in order:
            _tree(forest, text, grown, out)
            step()
    # If reading found new problems, nodes that were built before have to be built again to include them.
    nodes = list(_nodes(forest, grown, anew=len(forest.state.problems) != known))
    forest.at_hand = {node.id: node for node in nodes}  # reading a node's tables looks up the node again
    try:
        with progress(len(nodes), "parts of the table") as step:
            for node in nodes:
                _part(node, detail, read, out)
                step()
    finally:
        forest.at_hand = {}
    return out


def _tree(forest: Forest, snapshot: str, grown: dict[str, Growth], out: Collected) -> None:
    """Add the tree of a snapshot, unfolded as far as the limits allow."""
    if grown and out.full("tree"):
        out.misses("snapshots")
        return
    number = int(snapshot) if snapshot else None
    growth = forest.start(number)
    inner = [i for i, node in growth.nodes.items() if node["kind"] in _MANIFESTS and not node["leaf"]]
    room = _MOST_NODES - sum(len(g.nodes) for g in grown.values()) - len(growth.nodes)
    more = View(number, (*growth.expanded, *inner[: max(1, room // 100)]))
    whole = growth if room <= 0 else forest.grow(more)
    first = not grown
    for made in (whole, growth):
        places = {node.id: node.location for node in made.made}
        nodes = {i: out.redactor.node(_static(n), places.get(i)) for i, n in made.nodes.items()}
        sent = {"nodes": nodes, "roots": made.roots}
        sent["expanded"] = [i for i in made.expanded if i not in inner]
        if out.take("tree", sent, must=first and made is growth):
            out.trees[snapshot] = sent
            grown[snapshot] = made
            return
    out.misses("snapshots")


def _static(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node for a page, which cannot load more: a node whose children were not read becomes a leaf."""
    if node["kind"] == "more":
        return {**node, "label": f"{node['label']}, not in this page"}
    return node if node["children"] is not None else {**node, "leaf": True}


def _nodes(forest: Forest, grown: dict[str, Growth], *, anew: bool) -> Iterator[TreeNode]:
    """Return the nodes of all trees, the most important first."""
    made: dict[str, TreeNode] = {}
    for growth in grown.values():
        for node in growth.made:
            made.setdefault(node.id, node)
    # Root nodes were built before their files were read, so they are built again.
    nodes = [forest.node(i) if anew or i.startswith("root:") else node for i, node in made.items()]
    newest = next(iter(grown), "")

    def rank(node: TreeNode) -> int:
        if node.kind in _MANIFESTS:
            return 3 if node.id.startswith(f"manifest:{newest}:") else 4
        if node.id.startswith("file:"):
            return 5
        return 1 if newest in node.id or node.kind in ("table", "metadata") else 2

    return iter(sorted(nodes, key=rank))


def _part(node: TreeNode, of_node: Detail, read: Read, out: Collected) -> None:
    """Add the details and tables of a node."""
    detail = None if out.full("detail") else out.redactor.detail(of_node(node))
    if detail is None or not out.take("detail", detail):
        out.misses(f"details of {'files' if node.id.startswith('file:') else 'manifests and snapshots'}")
        return
    if node.id.startswith("file:"):  # a file's JSON would need another read of its manifest
        detail["tables"] = [tab for tab in detail["tables"] if tab["key"] != JSON]
    out.details[node.id] = detail
    for tab in detail["tables"]:
        if tab["of"] != node.id:
            continue
        if out.full("table"):
            out.misses("tables")
            continue
        try:
            page = read(node.id, tab["key"], out.rows)
        except IceexploreError as error:
            text = out.redactor.failure(json_safe(str(error)[:500]))
            page = {"columns": [{"name": "cannot be read", "right": False}], "rows": [[text]], "total": 1}
        made = signs_of_page(out.redactor.page(page))
        if not out.take("table", made):
            out.misses("tables")
            continue
        out.cut += "rows" in made and made["total"] > len(made["rows"])
        out.tables.setdefault(node.id, {})[tab["key"]] = made
