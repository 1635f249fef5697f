"""Close the widgets of a cell's earlier run when the cell runs again, but keep what the user adjusted, such as height.

ipywidgets keeps every widget until it is closed, so each run of a cell would add one, with everything that it has read.
The frontend names the cell in a request's metadata (``cellId``: JupyterLab, Notebook 7, VS Code); without it, widgets
stay until the user closes them.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iceexplore.widgets.core._room import RoomTraits

if TYPE_CHECKING:
    import anywidget

__all__ = ["note_widget"]


@dataclass
class _Run:
    """A cell's last run: its id, weak references to its widgets, and the room of the widgets of the run before it."""

    id: str
    widgets: list[weakref.ReferenceType[Any]] = field(default_factory=list)
    rooms: list[tuple[dict[str, Any], dict[str, Any]] | None] = field(default_factory=list)


_runs: dict[str, _Run] = {}


def note_widget(widget: anywidget.AnyWidget) -> None:
    """Record a widget as created by the running cell, and close those from the cell's earlier run.

    Its predecessor is the widget that the earlier run created in the same position. What the user changed about the
    predecessor's room, such as its height, applies to the new widget too.
    """
    room = None
    for cell, run in _running():
        before = _runs.get(cell)
        if before is None or before.id != run:
            old = [made() for made in before.widgets] if before else []
            rooms = [one.room_changes() if isinstance(one, RoomTraits) else None for one in old]
            _runs[cell] = before = _Run(run, rooms=rooms)
            for one in old:
                if one is not None:
                    one.close()
        place = len(before.widgets)
        room = before.rooms[place] if place < len(before.rooms) else None
        before.widgets.append(weakref.ref(widget))
    if isinstance(widget, RoomTraits):
        widget.begin_room(room)


def _running() -> list[tuple[str, str]]:
    """Return the running cell and the id of its execution request, as a list of one; empty outside a notebook."""
    shell: Callable[[], Any] | None = getattr(sys.modules.get("IPython"), "get_ipython", None)
    parent = getattr(shell() if shell else None, "get_parent", lambda: None)()
    if not isinstance(parent, dict):
        return []
    cell, run = (parent.get("metadata") or {}).get("cellId"), (parent.get("header") or {}).get("msg_id")
    return [(cell, run)] if isinstance(cell, str) and isinstance(run, str) else []
