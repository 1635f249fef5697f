"""Refuse to rewrite rows if some may be missing, because they would be lost permanently.

Reading continues with a warning if counts contradict each other (`ScanPlan.doubts`). But an operation that replaces
files, or depends on the rows that it finds, would make the loss permanent and impossible to detect later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from iceexplore.commits import Change, CommitWriter, MakeChange, NothingToDo
from iceexplore.errors import FormatError, warn_caller
from iceexplore.graph import TableState

__all__ = ["OnError", "careful", "refuse", "warn"]

OnError = Literal["raise", "skip"]


def careful(make: MakeChange, on_doubt: Callable[[TableState, Iterable[str]], None]) -> MakeChange:
    """Wrap a function that makes a change: check before and after it runs whether rows it needs may be missing."""

    def made(writer: CommitWriter) -> Change:
        before = doubts_of(writer.base)
        if before:
            on_doubt(writer.base, before)
        nothing, change = None, None
        try:
            change = make(writer)
        except NothingToDo as found:  # no row matches, but matching rows may be missing
            nothing = found
        new = [text for text in dict.fromkeys((*doubts_of(writer.base), *writer.doubts)) if text not in before]
        if new:
            on_doubt(writer.base, new)
        if change is None:
            assert nothing is not None
            raise nothing
        return change

    return made


def doubts_of(state: TableState) -> tuple[str, ...]:
    """Return descriptions of contradictory counts in a state's snapshot, if the manifests read so far revealed any."""
    root = state.root()
    met = [p for p in state.problems if p.code == "totals-differ"]
    if root is None or not met:
        return ()
    places = {root.location, *root.entries["location"].to_pylist()}
    return tuple(dict.fromkeys(f"{p.text} ({p.where})" for p in met if p.where.partition("#")[0] in places))


def refuse(state: TableState, doubts: Iterable[str]) -> None:
    """Raise a `FormatError` for rows that may be missing."""
    raise FormatError(
        f"Rows may be missing, and rewriting the others would make the loss permanent: {' '.join(doubts)} Roll back "
        "to a snapshot without this problem (rollback), or restore its metadata from a copy. To continue with "
        "only the rows that were found, use ix.lab(..., on_error='skip')",
        location=None if state.snapshot is None else state.snapshot.root_location,
        code="totals-differ",
    )


def warn(state: TableState, doubts: Iterable[str]) -> None:
    """Warn that rows may be missing."""
    for text in doubts:
        warn_caller(text)
