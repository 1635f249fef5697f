"""Close the widgets of a cell's earlier run when the cell runs again.

ipywidgets keeps every widget until it is closed, so each run of a cell would add one, with everything that it has read.
The frontend names the cell in a request's metadata (``cellId``: JupyterLab, Notebook 7, VS Code); without it, widgets
stay until the user closes them.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import anywidget

__all__ = ["note_widget"]

#: For each cell, the id of its last run and weak references to the widgets created in it.
_made: dict[str, tuple[str, list[weakref.ReferenceType[Any]]]] = {}


def note_widget(widget: anywidget.AnyWidget) -> None:
    """Record a widget as created by the running cell, and close those from the cell's earlier run."""
    for cell, run in _running():
        before = _made.get(cell)
        if before is None or before[0] != run:
            _made[cell] = (run, [])
            for made in before[1] if before else ():
                old = made()
                if old is not None:
                    old.close()
        _made[cell][1].append(weakref.ref(widget))


def _running() -> list[tuple[str, str]]:
    """Return the running cell and the id of its execution request, as a list of one; empty outside a notebook."""
    shell: Callable[[], Any] | None = getattr(sys.modules.get("IPython"), "get_ipython", None)
    parent = getattr(shell() if shell else None, "get_parent", lambda: None)()
    if not isinstance(parent, dict):
        return []
    cell, run = (parent.get("metadata") or {}).get("cellId"), (parent.get("header") or {}).get("msg_id")
    return [(cell, run)] if isinstance(cell, str) and isinstance(run, str) else []
