"""The tree of one snapshot, which users unfold as needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets
from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.graph import TreeNode
from iceexplore.render import graphviz, mermaid
from iceexplore.widgets.core._ids import id_of, snapshot_of_node
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.tree._forest import Forest, Growth, View, first_expanded
from iceexplore.widgets.tree._search import Search

__all__ = ["TreePanel"]

#: Maximum number of nodes kept in the tree in addition to their parents' first children; the newest are kept.
_PINS = 50
_LONGEST = 1000


class TreePanel(Panel):
    """The panel that shows the tree. All views share what is unfolded, selected and searched, but not scroll and zoom.

    Attributes
    ----------
    nodes, roots
        The nodes that the browser has, by id, and the ids of the topmost ones.
    expanded
        The ids of unfolded nodes; the browser adds to them, and Python answers in ``nodes``.
    compared
        If ``selection["against"]`` is set: ``against`` (its id), ``text`` (a description) and ``counts``, by mark.
    search, found
        The browser's request to search, with ``n`` (incremented) and ``text``; and Python's answer, with the same
        ``n``, ``hits`` (node ids), ``busy`` (the search continues) and ``more`` (there are more hits than listed).
    wanted, written
        The browser's request for the tree in a text format, with ``n`` and ``format`` (``mermaid`` or ``dot``); and
        Python's answer, with both and ``text``, which the browser clears on receipt.
    """

    nodes = SyncedTrait(traitlets.Dict())
    roots = SyncedTrait(traitlets.List(traitlets.Unicode()))
    expanded = SyncedTrait(traitlets.List(traitlets.Unicode()))
    compared = SyncedTrait(traitlets.Dict())
    search = SyncedTrait(traitlets.Dict())
    found = SyncedTrait(traitlets.Dict())
    wanted = SyncedTrait(traitlets.Dict())
    written = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self.forest = Forest(host.state)
        self._limits: dict[str, int] = {}
        self._pins: tuple[str, ...] = ()
        self._applying = False
        self._in_sight: dict[str, str] = {}  # the selection that the tree currently shows
        self._awaited = False  # whether another selection is being read for the tree
        self._marked = len(self.host.state.problems)  # the number of problems marked on the nodes shown
        self._marking = False
        self.searching: Search | None = None  # the search whose hits are in `found`

    def first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """Return the tree with the selected snapshot unfolded."""
        start = self.forest.start(id_of(selection["snapshot"]), id_of(selection.get("against", "")))
        return {"nodes": start.nodes, "roots": start.roots, "expanded": start.expanded, "compared": start.compared}

    def begin(self) -> None:
        """Answer requests to unfold nodes, to search, and to write the tree as text."""
        self._in_sight = dict(self.host.selection)
        self.host.observe(self._on_expanded, "expanded")
        self.host.observe(self._on_search, "search")
        self.host.observe(self._on_wanted, "wanted")

    @property
    def selected(self) -> TreeNode:
        """The selected node, with all known fields."""
        return self.forest.node(self.host.selection["node"])

    @property
    def awaited(self) -> bool:
        """Whether another selection is being read for the tree."""
        return self._awaited

    # Selecting and unfolding ------------------------------------------------------------------------------------------

    def _view(self, expanded: list[str] | None = None, selection: Mapping[str, str] | None = None) -> View:
        chosen = self.host.selection if selection is None else selection
        opened = tuple(self.expanded if expanded is None else expanded)
        return View(id_of(chosen["snapshot"]), opened, id_of(chosen["against"]), dict(self._limits), self._pins)

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Show the selected snapshot and node."""
        if not self._awaited and new == self._in_sight:
            return  # reverted to the selection shown: nothing to read
        if (old["snapshot"], old["against"]) != (new["snapshot"], new["against"]):
            self._other_snapshot(old, new)
        elif old["node"] != new["node"]:
            self._other_node(new)

    def _other_snapshot(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        before, after, against = (id_of(text) for text in (old["snapshot"], new["snapshot"], new["against"]))
        moved = old["node"] != new["node"]

        def read() -> tuple[Growth, str]:
            node = new["node"]
            if not moved and not (against is not None and snapshot_of_node(node) == against):
                node = self.forest.follow(node, before, after)
            self.forest.node(node)
            start = View(after, tuple(first_expanded(after)), against)
            way = self.forest.way(node, start)
            pins = tuple(i for i in [*way, node] if i.startswith(("manifest:", "file:")))
            wanted = tuple(dict.fromkeys([*start.expanded, *way]))
            return self.forest.grow(View(after, wanted, against, {}, pins)), node

        def show(result: tuple[Growth, str]) -> None:
            growth, node = result
            self._pins = ()
            self._show_growth(growth)
            self.host.select(node)

        self._awaited = True
        self.host.run("tree", f"Reading snapshot {after}", read, show)

    def _other_node(self, new: Mapping[str, str]) -> None:
        """Show a selected node that is not in the tree, by unfolding its ancestors."""
        wanted = new["node"]
        snapshot = self.forest.snapshot_of(wanted)
        there = [id_of(new["snapshot"]), *([] if wanted.startswith("ref:") else [id_of(new["against"])])]
        if snapshot is not None and snapshot not in there and self.host.state.metadata.snapshot(snapshot) is not None:
            self.host.select(snapshot=snapshot)
            return
        view = self._view(selection=new)
        way = self.forest.way(wanted, view) if ":" in wanted or wanted == "metadata" else []
        if wanted in self.nodes and set(way) <= set(self.expanded):
            if not self._awaited:
                self._in_sight = dict(new)
            return
        pins = tuple(i for i in [*way, wanted] if i.startswith(("manifest:", "file:")) and i not in self.nodes)
        kept = tuple(dict.fromkeys([*self._pins, *pins]))[-_PINS:]
        opened = tuple(dict.fromkeys([*view.expanded, *way]))

        def read() -> Growth:
            self.forest.node(wanted)
            return self.forest.grow(View(view.snapshot, opened, view.against, view.limits, kept))

        def show(growth: Growth) -> None:
            self._pins = kept
            self._show_growth(growth)

        self._awaited = True
        self.host.run("tree", "Reading", read, show)

    def _on_expanded(self, change: Bunch) -> None:
        if not self._applying:
            self._on_unfolded(change)

    @shown
    def _on_unfolded(self, change: Bunch) -> None:
        wanted = list(self.expanded)
        if not self._unread():
            self.host.finish()
            return
        view = self._view(wanted)

        def show(growth: Growth) -> None:
            # Nodes that were folded during the read stay folded.
            still = set(self.expanded)
            self._show_growth(growth, [i for i in growth.expanded if i in still])

        self.host.run("tree", "Reading", lambda: self.forest.grow(view), show)

    def _unread(self) -> list[str]:
        """Return the unfolded nodes whose children have not been read."""
        nodes = self.nodes
        return [i for i in self.expanded if i.startswith("more:") or _is_unread(nodes.get(i))]

    def _show_growth(self, growth: Growth, expanded: list[str] | None = None) -> None:
        self._applying = True
        self._in_sight, self._awaited = dict(self.host.selection), False
        try:
            self._limits = growth.limits
            with self.host.hold_sync():  # one message, so that the browser never has an inconsistent tree
                self.nodes = growth.nodes
                self.roots = growth.roots
                self.expanded = growth.expanded if expanded is None else expanded
                self.compared = growth.compared
        finally:
            self._applying = False

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Fold nodes whose children were not read, and return to the selection shown."""
        self._fold_unread()
        if self._awaited:  # restore the selection shown, so that the other can be selected again
            self._awaited = False
            self.host.selection = self._in_sight
        if self.found.get("n") != self.search.get("n") or self.found.get("busy"):
            hits = self.found.get("hits", []) if self.found.get("n") == self.search.get("n") else []
            self.found = {"n": self.search.get("n"), "hits": hits, "busy": False, "more": True}
        if self._marking:  # the user cancelled other work, so the marks must still appear
            self._mark()

    def on_failed(self) -> None:
        """Fold nodes whose children were not read."""
        self._fold_unread()

    def _fold_unread(self) -> None:
        """Fold nodes whose children were not read, so that nothing waits for them."""
        unread = set(self._unread())
        if unread:
            self._applying = True
            try:
                self.expanded = [i for i in self.expanded if i not in unread]
            finally:
                self._applying = False

    def on_read(self) -> None:
        """Mark the nodes again if more problems have been found."""
        if len(self.host.state.problems) != self._marked:
            self._mark()

    def _mark(self) -> None:
        """Mark problems that other reads have found, on the nodes that are shown."""
        view = self._view()

        def read() -> Growth:
            try:
                return self.forest.grow(view)
            finally:
                self._marked = len(self.host.state.problems)  # problems found by this read are marked already

        def show(growth: Growth) -> None:
            self._marking = False
            if growth.nodes != self.nodes and view == self._view() and not self._awaited:
                self._show_growth(growth)

        self._marked = len(self.host.state.problems)
        self._marking = True
        self.host.run_silently("marks", read, show)

    # Searching and files ----------------------------------------------------------------------------------------------

    @shown
    def _on_search(self, change: Bunch) -> None:
        text, n = self.search.get("text", ""), self.search.get("n", 0)
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise OptionError(f"search={str(self.search)[:200]}: give n, and text of at most {_LONGEST:,} characters")
        if text.strip():
            self.searching = Search(self.host.state, id_of(self.host.selection["snapshot"]), text)
            self._search_on(n, self.searching, text.strip()[:40])
        else:
            self.searching = None
            self.found = {"n": n, "hits": [], "busy": False, "more": False}
            self.host.run("search", "Reading", lambda: None, lambda _: None)  # supersedes a running search

    def _search_on(self, n: object, search: Search, text: str) -> None:
        """Search for a while, show the hits, and continue after other pending requests."""

        def show(_: None) -> None:
            self.found = {"n": n, "hits": list(search.hits), "busy": not search.done, "more": search.more}
            if not search.done:
                self._search_on(n, search, text)

        self.host.run("search", f"Searching for {text}", search.step, show)

    @shown
    def _on_wanted(self, change: Bunch) -> None:
        wanted = self.wanted.get("format")
        if wanted not in ("mermaid", "dot"):
            raise OptionError(f"wanted={str(self.wanted)[:200]}: the format must be mermaid or dot")
        view = self._view([i for i in self.expanded if not i.startswith("more:")])
        asked = {"n": self.wanted.get("n", 0), "format": wanted}

        def read() -> str:
            scene = self.forest.scene(view)
            return str(mermaid(scene)) if wanted == "mermaid" else str(graphviz(scene).source)

        def show(text: str) -> None:
            self.written = {**asked, "text": text}

        self.host.run("export", "Drawing", read, show)

    def no_kernel_html(self) -> str:
        """Return the tree as HTML."""
        return str(self.forest.tree._repr_mimebundle_()["text/html"])


def _is_unread(node: Mapping[str, Any] | None) -> bool:
    return node is None or (node["children"] is None and not node["leaf"])
