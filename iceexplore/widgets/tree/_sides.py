"""Two trees in a panel, of the table before and after a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traitlets import Bunch

from iceexplore.widgets.core._panel import Panel
from iceexplore.widgets.tree._side_tree import SideTree

__all__ = ["NO_TREE", "SIDES", "Sides"]

SIDES = ("before", "after")
#: The traits of a side that is not shown.
NO_TREE: dict[str, Any] = {"nodes": {}, "roots": [], "expanded": []}


class Sides:
    """The trees before and after a change, which are shown in the traits of a panel and unfolded on request.

    Parameters
    ----------
    panel
        The panel. It has the traits ``<prefix>_before_nodes``, ``<prefix>_before_roots`` and
        ``<prefix>_before_expanded``, and three such traits for ``after``.
    """

    def __init__(self, panel: Panel, prefix: str) -> None:
        self._panel, self._prefix = panel, prefix
        self._trees: dict[str, SideTree] = {}
        self._growing = False

    def begin(self) -> None:
        """Answer requests to unfold nodes."""
        for side in SIDES:
            self._panel.host.observe(self._on_expanded, f"{self._prefix}_{side}_expanded")

    def show(self, trees: Mapping[str, SideTree], grown: Mapping[str, Mapping[str, Any]]) -> None:
        """Show the unfolded part of trees, ``grown`` by `SideTree.grow`; a side without a tree becomes empty."""
        self._trees = dict(trees)
        for side in SIDES:
            self._set(side, grown.get(side, NO_TREE))

    def clear(self) -> None:
        """Show no trees."""
        self.show({}, {})

    def close(self) -> None:
        """Release the trees."""
        self._trees = {}

    def _set(self, side: str, grown: Mapping[str, Any]) -> None:
        self._growing = True
        try:
            for name, value in grown.items():
                setattr(self._panel, f"{self._prefix}_{side}_{name}", value)
        finally:
            self._growing = False

    def _on_expanded(self, change: Bunch) -> None:
        if not self._growing:
            self._panel.host.shown(lambda: self._grow(change["name"].split("_")[1], list(change["new"])))

    def _grow(self, side: str, wanted: list[str]) -> None:
        tree, host = self._trees.get(side), self._panel.host
        nodes = getattr(self._panel, f"{self._prefix}_{side}_nodes")
        if tree is None or all(i in nodes and nodes[i]["children"] is not None for i in wanted):
            return

        def show(grown: dict[str, Any]) -> None:
            with host.hold_sync():
                self._set(side, grown)

        host.run(f"{self._prefix}:{side}", "Reading", lambda: tree.grow(wanted), show)
