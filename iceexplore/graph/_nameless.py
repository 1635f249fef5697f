"""A table's state without its names: what is made of it shows stand-ins for columns, refs and documentation."""

from __future__ import annotations

from dataclasses import replace

from iceexplore.graph._redact_document import DocumentRedactor
from iceexplore.graph._redaction import Redaction
from iceexplore.graph._state import TableState, state_of

__all__ = ["nameless"]


def nameless(state: TableState) -> TableState:
    """The same state with stand-ins for the names in its metadata; files, and where they are, stay as they are.

    Manifests name columns by id, so their stand-ins come from the metadata alone.
    """
    redaction = Redaction(frozenset({"names"}))
    document = DocumentRedactor(redaction).table(state.opened.document)
    made = state_of(replace(state.opened, document=document, name="table", notes=(), problems=()))
    if state.snapshot is None:
        return made
    snapshot = made.metadata.snapshot(state.snapshot.snapshot_id)
    ref = None if state.ref is None else redaction.name(state.ref)
    return made.showing(snapshot, made.schema, ref=ref if ref in made.metadata.refs else None, travel=None)
