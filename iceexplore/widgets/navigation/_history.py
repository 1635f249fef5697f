"""Back and forward through what was shown: node, snapshot, comparison and tab.

There is one history per model, in Python, not one per view: the views of a model show the same node and tab, so going
back in one view's history would undo steps of the others, and would be recorded there as a step. A history in Python
also knows what Python itself selects, and survives when the page is loaded again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import traitlets
from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.tree._panel import TreePanel

__all__ = ["HistoryPanel", "MOST_STEPS"]

#: The maximum number of places that are kept.
MOST_STEPS = 100
#: The time, in s, within which steps from snapshot to snapshot, by arrow keys or by playing, count as one.
_ONE_MOVE = 2.0
_LONGEST = 80


@dataclass
class Spot:
    """What was shown: the tab, the selection, and its description."""

    tab: str
    selection: dict[str, str]
    words: str = ""
    # When another snapshot was selected, if that was the step, and whether Python still has to select its node.
    travelled: float = -math.inf
    awaited: bool = False

    def same(self, other: Spot) -> bool:
        """Return whether two are the same place."""
        return (self.tab, self.selection) == (other.tab, other.selection)


class HistoryPanel(Panel):
    """Back and forward, for a widget with tabs and a tree.

    Attributes
    ----------
    history
        What ``back`` and ``forward`` lead to, as text; empty if there is nothing.
    history_asked
        The browser requests with ``n`` (incremented) and ``by``: -1 to go back, 1 to go forward; ``earlier``: requests
        before it, which may have been merged.
    """

    history = SyncedTrait(traitlets.Dict({"back": "", "forward": ""}))
    history_asked = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._tree = host.panel(TreePanel)
        self._spots: list[Spot] = []
        self._now = 0
        self._going = False

    def begin(self) -> None:
        """Note the first place, and each tab; answer requests."""
        self._spots = [self._spot()]
        self.host.observe(self._on_tab, "tab")
        self.host.observe_requests(self._on_asked, "history_asked")

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Note another selection."""
        # Panels before this one may have changed it again.
        self._note(travelled=old["snapshot"] != new["snapshot"])

    def on_read(self) -> None:
        """Describe the places beside the current one, whose nodes may be known by now."""
        if not self._tree.awaited:
            self._spots[self._now].awaited = False
        self._show()

    def _on_tab(self, change: Bunch) -> None:
        self.host.call(lambda: self._note(travelled=False))

    def _spot(self) -> Spot:
        return Spot(self.host.tab or "", self.host.selection)

    def _note(self, *, travelled: bool) -> None:
        """Record the current place; it replaces the last one if that was only on the way to it."""
        if self._going:
            return
        spot, last = self._spot(), self._spots[self._now]
        if spot.same(last):
            return
        only_node = spot.tab == last.tab and {**spot.selection, "node": ""} == {**last.selection, "node": ""}
        followed = last.awaited and only_node
        spot.awaited = travelled
        spot.travelled = time.monotonic() if travelled else last.travelled if followed else -math.inf
        if followed or (travelled and spot.travelled - last.travelled < _ONE_MOVE):
            # The node of the same kind in the other snapshot, or the next snapshot of a longer way.
            self._spots[self._now] = spot
            self._drop_if_same(1)
        else:
            last.words = self._words(last)
            self._spots[self._now + 1 :] = [spot]
            self._spots = self._spots[-MOST_STEPS:]
            self._now = len(self._spots) - 1
        self._show()

    def _drop_if_same(self, steps: int) -> None:
        """Drop the last steps if they led back to where they began."""
        before = self._now - steps
        if before >= 0 and self._spots[self._now].same(self._spots[before]):
            del self._spots[before + 1 : self._now + 1]
            self._now = before

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Forget a place that was not reached: the tree has gone back to the selection shown."""
        if self.host.selection != selection:
            self._drop_if_same(1)
            self._drop_if_same(2)
            self._show()

    def _words(self, spot: Spot) -> str:
        """Return a description of a place: the tab, the node by its label, the snapshot by its number."""
        widget: Any = self.host.widget
        tab = dict(widget.parts).get(spot.tab, spot.tab)
        node = self._tree.nodes.get(spot.selection["node"], {}).get("label", "")
        words = [tab, node[:_LONGEST]]
        if spot.selection["against"]:
            words.append("compared")
        return spot.words if spot.words and not node else " · ".join(filter(None, words))

    def _show(self) -> None:
        self._spots[self._now].words = self._words(self._spots[self._now])
        back = self._spots[self._now - 1].words if self._now else ""
        forward = self._spots[self._now + 1].words if self._now + 1 < len(self._spots) else ""
        self.history = {"back": back, "forward": forward}

    @shown
    def _on_asked(self, asked: Mapping[str, Any]) -> None:
        by = asked.get("by")
        if by not in (-1, 1):
            raise OptionError(f"history_asked={str(asked)[:200]}: by is -1 or 1")
        self.go(by)

    def go(self, by: int) -> None:
        """Go back (-1) or forward (1), if there is something."""
        to = self._now + by
        if not 0 <= to < len(self._spots):
            self.host.answer()
            return
        self._now = to
        spot = self._spots[to]
        # In the other snapshot, Python may then select the node of the same kind, which is not recorded as a step.
        spot.travelled, spot.awaited = -math.inf, spot.selection["snapshot"] != self.host.selection["snapshot"]
        self._going = True
        try:
            widget: Any = self.host.widget
            with self.host.hold_sync():
                self.host.selection = dict(spot.selection)
                widget.tab = spot.tab
        finally:
            self._going = False
        self._show()
        self.host.answer()
