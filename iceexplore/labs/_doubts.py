"""Refuse to write rows anew where some may be missing: then they would be missing for good.

Reading goes on with a warning where counts contradict each other (`ScanPlan.doubts`). An operation that replaces files,
or decides by the rows that it finds, makes what is missing final: nobody could tell afterwards that it was there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Literal

from iceexplore.commits import Change, CommitWriter, MakeChange, NothingToDo
from iceexplore.errors import FormatError
from iceexplore.graph import TableState

__all__ = ["OnError", "careful", "refuse", "warn"]

OnError = Literal["raise", "skip"]


def careful(make: MakeChange, on_doubt: Callable[[TableState, Iterable[str]], None]) -> MakeChange:
    """Wrap what makes a change, to look before and after it whether rows may be missing in what it goes by."""

    def made(writer: CommitWriter) -> Change:
        before = doubts_of(writer.base)
        if before:
            on_doubt(writer.base, before)
        nothing, change = None, None
        try:
            change = make(writer)
        except NothingToDo as found:  # no row matches: perhaps those that would are missing
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
    """Return the counts of a state's snapshot that contradict each other, as far as its manifests have been read."""
    root = state.root()
    met = [p for p in state.problems if p.code == "totals-differ"]
    if root is None or not met:
        return ()
    places = {root.location, *root.entries["location"].to_pylist()}
    return tuple(dict.fromkeys(f"{p.text} ({p.where})" for p in met if p.where.partition("#")[0] in places))


def refuse(state: TableState, doubts: Iterable[str]) -> None:
    """Raise a `FormatError` for rows that may be missing."""
    raise FormatError(
        f"Rows may be missing, and writing what is left would make that final: {' '.join(doubts)} Go back to a "
        "snapshot without this (rollback), or restore its metadata from a copy. To go on with the rows that are there: "
        "ix.lab(..., on_error='skip')",
        location=None if state.snapshot is None else state.snapshot.root_location,
        code="totals-differ",
    )


def warn(state: TableState, doubts: Iterable[str]) -> None:
    """Warn of rows that may be missing."""
    for text in doubts:
        warnings.warn(text, stacklevel=2)
