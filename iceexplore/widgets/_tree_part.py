"""The tree of one snapshot, unfolded as far as somebody wants to see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from iceexplore.graph import TreeNode
from iceexplore.widgets._face import Face, shown
from iceexplore.widgets._forest import Forest, Growth

__all__ = ["TreePart"]


class TreePart(Face):
    """The tree.

    Attributes
    ----------
    nodes, roots
        The nodes that the browser has, by id, and the topmost.
    expanded
        The nodes unfolded; the browser adds to them, Python reads and answers in ``nodes``.
    """

    nodes = traitlets.Dict().tag(sync=True)
    roots = traitlets.List(traitlets.Unicode()).tag(sync=True)
    expanded = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def _prepare(self) -> None:
        super()._prepare()
        self._forest = Forest(self._state)
        self._limits: dict[str, int] = {}
        self._applying = False

    def _first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        start = self._forest.start(_id(selection["snapshot"]))
        grown = {"nodes": start.nodes, "roots": start.roots, "expanded": start.expanded}
        return super()._first(selection) | grown

    def _begin(self) -> None:
        super()._begin()
        self.observe(self._on_expanded, "expanded")

    @property
    def selected(self) -> TreeNode:
        """The selected node, with everything known of it."""
        return self._forest.node(self.selection["node"])

    def _on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        super()._on_selected(old, new)
        if old["snapshot"] == new["snapshot"]:
            return
        after = self._snapshot_of(new["snapshot"]).snapshot_id
        moved = old["node"] != new["node"]

        def read() -> tuple[Growth, str]:
            node = new["node"] if moved else self._forest.follow(old["node"], _id(old["snapshot"]), after)
            return self._forest.start(after), node

        def show(result: tuple[Growth, str]) -> None:
            growth, node = result
            self._apply(growth)
            self.select(node)

        self._do("tree", f"Reading snapshot {after}", read, show)

    @shown
    def _on_expanded(self, change: Any) -> None:
        if self._applying:
            return
        wanted = list(self.expanded)
        missing = [i for i in wanted if i.startswith("more:") or (self.nodes.get(i) or {}).get("children") is None]
        if not missing:
            self._idle()
            return
        snapshot_id, limits = _id(self.selection["snapshot"]), dict(self._limits)
        self._do("tree", "Reading", lambda: self._forest.grow(snapshot_id, wanted, limits), self._apply)

    def _apply(self, growth: Growth) -> None:
        self._applying = True
        try:
            self._limits = growth.limits
            with self.hold_sync():  # one message: the browser never sees half a tree
                self.nodes = growth.nodes
                self.roots = growth.roots
                self.expanded = growth.expanded
        finally:
            self._applying = False

    def _no_kernel_html(self) -> str:
        return super()._no_kernel_html() + str(self._forest.tree._repr_mimebundle_()["text/html"])


def _id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None
