"""Texts for errors in widgets: the cause, whether in the user's code, the table or this library, and what to do."""

from __future__ import annotations

import traceback
from types import CodeType

from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.metadata import Snapshot

__all__ = ["unread", "words_of"]

_OWN = "iceexplore"
#: Packages whose frames are, in a traceback, between the assignment to a trait and the functions that observe it.
_BETWEEN = frozenset({"traitlets", "ipywidgets", "anywidget"})


def words_of(error: Exception) -> tuple[str, str]:
    """Return the text and the advice to show for an error."""
    text = f"{type(error).__name__}: {error}"
    theirs = _observer(error)
    if theirs is not None:
        where = f"{theirs.co_name}, line {theirs.co_firstlineno}"
        shown = f"Your function that observes this widget ({where}) raised {text}"
        return shown, "The widget keeps working. Fix the function, or remove it with unobserve()."
    advice = "Select something else or another snapshot; the rest still works."
    if isinstance(error, IceexploreError):
        return str(error), advice
    return text, f"{advice} This is a bug in iceexplore: please report it."


def unread(state: TableState, snapshot: Snapshot | None, row: int | None = None, *, leaves: bool = True) -> str:
    """Return the reason why a grid's table may lack rows; empty if it is complete.

    The table lists a snapshot's manifests (``leaves=False``) or files or, if ``row`` is given, the entries of the
    manifest in this row of the manifest list or root manifest.
    """
    root = None if snapshot is None else state.root(snapshot)
    faults = {p.where.partition("#")[0] for p in state.problems.met() if p.severity == "error"}
    if root is None:
        return ""
    doubts = [p.text for p in root.problems if p.code == "totals-differ"] if row is None else []
    if not faults:
        return doubts[0].rstrip(".") if doubts else ""
    name = "root" if state.metadata.may_have_root_manifests else "manifest list"
    if root.location in faults:
        return f"the {name} cannot be read"
    if row is not None:
        return "the manifest cannot be read" if root.entries["location"][row].as_py() in faults else ""
    lost = len(faults.intersection(root.entries["location"].to_pylist())) if leaves else 0
    if lost:
        return f"{lost} of the files listed in the {name} cannot be read"
    return doubts[0].rstrip(".") if doubts else ""


def _observer(error: Exception) -> CodeType | None:
    """Return the user's observer of a trait that raised an error; None if the error comes from elsewhere."""
    found: CodeType | None = None
    notified = False
    for frame, _ in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _BETWEEN:
            notified = frame.f_code.co_name == "_notify_observers"
        elif package == _OWN:
            notified = False
            # If the user's function called this library, an IceexploreError is the function's fault; any other error is
            # a bug of the library.
            found = found if isinstance(error, IceexploreError) else None
        else:
            found = found or (frame.f_code if notified else None)
            notified = False
    return found
