"""What a saved page holds of a table: trees of snapshots, details and tables, as much as fits."""

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

#: Kinds whose tables are read first; files' own tables are the last to go in.
_MANIFESTS = frozenset({"data-manifest", "delete-manifest", "manifest-dv"})
#: A file of a page is a node, details and a table of its columns: of more than these only the first go in.
_MOST_NODES = 1_500
#: Bytes that anything takes: with less left nothing is read any more.
_LEAST = 500


@dataclass(frozen=True)
class SavedPage:
    """A page that was written.

    Attributes
    ----------
    path
        The file.
    size
        Its bytes.
    redacted
        What was left out on purpose.
    left_out
        What did not fit or could not be read, in sentences; the page says so, too.
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
    """What goes into a page, and how many bytes of it there may still be."""

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
        """Whether no other of a kind is read: there is less room than the smallest that did not fit would take."""
        return self.left < self.refused.get(kind, _LEAST)

    def take(self, kind: str, made: Any, *, must: bool = False) -> bool:
        """Whether something fits; then it is counted."""
        size = len(json.dumps(made, ensure_ascii=False).encode())
        if size > self.left and not must:
            self.refused[kind] = min(size, self.refused.get(kind, size))
            return False
        self.left -= size
        return True

    def misses(self, what: str) -> None:
        """Count what is not in the page."""
        self.missing[what] = self.missing.get(what, 0) + 1

    def left_out(self) -> list[str]:
        """What is not in the page, in sentences."""
        out = [
            f"Not in this page, as it would grow too large: {_so_many(n, what)}."
            for what, n in self.missing.items()
        ]
        if self.cut:
            rows = "row is" if self.rows == 1 else f"{self.rows:,} rows are"
            out.append(f"Of {_so_many(self.cut, 'tables')} the first {rows} in this page.")
        return out


def _so_many(count: int, what: str) -> str:
    """A number of something that is given in the plural; details have no other form."""
    one = {"snapshots": "snapshot", "tables": "table"}.get(what, what)
    return f"{count:,} {one if count == 1 else what}"


#: The details of a node; a node's table or text, by its key: columns, rows, total and nodes, or text.
Detail = Callable[[TreeNode], dict[str, Any]]
Read = Callable[[str, str, int], dict[str, Any]]


def collect(
    forest: Forest, snapshot: str, detail: Detail, read: Read, redactor: PageRedactor, *, size: int, rows: int
) -> Collected:
    """Read what a page shows: first the snapshot that is selected, then the others, then manifests, then files."""
    out = Collected(size, rows, redactor)
    ids = [str(s.snapshot_id) for s in reversed(forest.state.metadata.snapshots)]
    order = [s for s in dict.fromkeys([snapshot, *ids]) if s] or [""]
    grown: dict[str, Growth] = {}
    known = len(forest.state.problems)
    with progress(len(order), "snapshots") as step:
        for text in order:
            _tree(forest, text, grown, out)
            step()
    # Of a healthy table they are as they were made; else what was met later belongs to those made before, too.
    nodes = list(_nodes(forest, grown, anew=len(forest.state.problems) != known))
    forest.at_hand = {node.id: node for node in nodes}  # the tables of each ask for it again
    try:
        with progress(len(nodes), "parts of the table") as step:
            for node in nodes:
                _part(node, detail, read, out)
                step()
    finally:
        forest.at_hand = {}
    return out


def _tree(forest: Forest, snapshot: str, grown: dict[str, Growth], out: Collected) -> None:
    """The tree of a snapshot, as far unfolded as it may be."""
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
    """A node of a page that nobody can ask for more: what was not read is no branch."""
    if node["kind"] == "more":
        return {**node, "label": f"{node['label']}, not in this page"}
    return node if node["children"] is not None else {**node, "leaf": True}


def _nodes(forest: Forest, grown: dict[str, Growth], *, anew: bool) -> Iterator[TreeNode]:
    """The nodes of all trees, those first that tell most."""
    made: dict[str, TreeNode] = {}
    for growth in grown.values():
        for node in growth.made:
            made.setdefault(node.id, node)
    # A root stands in the tree before it is read.
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
    """The details and tables of a node."""
    detail = None if out.full("detail") else out.redactor.detail(of_node(node))
    if detail is None or not out.take("detail", detail):
        out.misses(f"details of {'files' if node.id.startswith('file:') else 'manifests and snapshots'}")
        return
    if node.id.startswith("file:"):  # its JSON takes another reading of its manifest
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
