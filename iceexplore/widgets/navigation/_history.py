"""Back and forward through what was shown: node, snapshot, comparison and tab.

There is one history per model, in Python, not one per view: the views of a model show the same node and tab, so going
back in one view would change the others, which would record this as a new step. A history in Python also knows what
Python itself selects, and survives when the page is loaded again.
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

#: The maximum number of places in the history.
MOST_STEPS = 100
#: The time, in s, within which steps from snapshot to snapshot, by arrow keys or by playing, count as one.
_ONE_MOVE = 2.0
_LONGEST = 80


@dataclass
class Spot:
    """A place in the history: the tab and the selection that were shown, and a description in words."""

    tab: str
    selection: dict[str, str]
    words: str = ""
    # `travelled` is the time of the step if it selected another snapshot; `awaited` is whether Python still has to
    # select a node in that snapshot.
    travelled: float = -math.inf
    awaited: bool = False

    def same(self, other: Spot) -> bool:
        """Return whether two spots are the same place."""
        return (self.tab, self.selection) == (other.tab, other.selection)


class HistoryPanel(Panel):
    """Back and forward, for a widget with tabs and a tree.

    Attributes
    ----------
    history
        Descriptions of the places to which ``back`` and ``forward`` lead; empty if there is none.
    history_asked
        The browser's last request: ``n``, incremented; ``by``, -1 to go back or 1 to go forward; and ``earlier``, the
        requests before it, as a notebook may merge several changes of this trait into one.
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
        """Record the first place, then each change of the tab, and answer requests."""
        self._spots = [self._spot()]
        self.host.observe(self._on_tab, "tab")
        self.host.observe_requests(self._on_asked, "history_asked")

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Record the new selection."""
        # The selection itself is read from the host, as panels before this one may have changed it again.
        self._note(travelled=old["snapshot"] != new["snapshot"])

    def on_read(self) -> None:
        """Describe the current place again, as the label of its node may be known by now."""
        if not self._tree.awaited:
            self._spots[self._now].awaited = False
        self._show()

    def _on_tab(self, change: Bunch) -> None:
        self.host.call(lambda: self._note(travelled=False))

    def _spot(self) -> Spot:
        return Spot(self.host.tab or "", self.host.selection)

    def _note(self, *, travelled: bool) -> None:
        """Record the current place. It replaces the last place if that was only a stop on the way."""
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
            # Python has selected the node of the same kind in the new snapshot, or the user has moved on to a further
            # snapshot at once.
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
        """Drop a place that was not reached: its reading was cancelled, and the tree shows the old selection."""
        if self.host.selection != selection:
            self._drop_if_same(1)
            self._drop_if_same(2)
            self._show()

    def _words(self, spot: Spot) -> str:
        """Return a description of a place: the tab, the label of the node, and whether snapshots are compared."""
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
            raise OptionError(f"history_asked={str(asked)[:200]}: by must be -1 or 1")
        self.go(by)

    def go(self, by: int) -> None:
        """Go back (-1) or forward (1), if there is a place in that direction."""
        to = self._now + by
        if not 0 <= to < len(self._spots):
            self.host.answer()
            return
        self._now = to
        spot = self._spots[to]
        # If the snapshot changes, Python may then select the node of the same kind in it; that is not a new step.
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
