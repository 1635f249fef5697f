"""A cell that runs again leaves nothing behind: the widgets that its earlier run made are closed.

ipywidgets keeps every widget until it is closed, so that each run of a cell would add one, with all that it has read.
The frontend says in a request's metadata which cell it is for (``cellId``: JupyterLab, Notebook 7, VS Code); where it
does not, widgets stay until somebody closes them.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["note_widget"]

#: By cell: the run, and what closes each widget that it made.
_made: dict[str, tuple[str, list[weakref.ReferenceType[Any]]]] = {}


def note_widget(widget: Any) -> None:
    """Remember that the running cell made this widget, and close those that its earlier run made."""
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
    """The cell that runs, and the id of the request to run it; none outside a notebook."""
    shell: Callable[[], Any] | None = getattr(sys.modules.get("IPython"), "get_ipython", None)
    parent = getattr(shell() if shell else None, "get_parent", lambda: None)()
    if not isinstance(parent, dict):
        return []
    cell, run = (parent.get("metadata") or {}).get("cellId"), (parent.get("header") or {}).get("msg_id")
    return [(cell, run)] if isinstance(cell, str) and isinstance(run, str) else []
