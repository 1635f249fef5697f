"""Replace names or values in the metadata of a table's state by placeholders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from iceexplore.graph._state import TableState, state_of
from iceexplore.graph.redaction._document import DocumentRedactor
from iceexplore.graph.redaction._redactor import Redaction

__all__ = ["nameless"]


def nameless(state: TableState, kinds: Iterable[str] = ("names",)) -> TableState:
    """Return the same state with placeholders in its metadata; files and their locations do not change.

    Manifests refer to columns by id, so renaming in the metadata suffices. Values in manifests are kept.

    Parameters
    ----------
    kinds
        ``names``, ``values`` or both, as in `iceexplore.graph.REDACTIONS`; other kinds would change file locations
        and are ignored.
    """
    redaction = Redaction(frozenset(kinds) & {"names", "values"})
    document = DocumentRedactor(redaction).table(state.opened.document)
    name = "table" if redaction.names else state.opened.name
    made = state_of(replace(state.opened, document=document, name=name, notes=(), problems=()))
    if state.snapshot is None:
        return made
    snapshot = made.metadata.snapshot(state.snapshot.snapshot_id)
    ref = None if state.ref is None else redaction.name(state.ref)
    return made.showing(snapshot, made.schema, ref=ref if ref in made.metadata.refs else None, travel=None)
