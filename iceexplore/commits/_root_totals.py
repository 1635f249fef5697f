"""Totals of a snapshot whose summary does not have them: counted, so that the next summary can go on from them."""

from __future__ import annotations

from dataclasses import replace

from iceexplore.commits._locate import readable
from iceexplore.commits._summary import summary_of
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, concat_batches, live
from iceexplore.metadata import Snapshot

__all__ = ["with_totals"]

_NAMES = (
    "total-records",
    "total-files-size",
    "total-data-files",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
)


def with_totals(state: TableState) -> Snapshot | None:
    """The state's snapshot; totals that its summary lacks are counted, for which all leaves are read.

    Java leaves them out from then on; a simulation that is to be compared with one on another layout cannot.
    """
    snapshot = state.snapshot
    if snapshot is None:
        return None
    said = dict(snapshot.summary or {})
    if all(name in said for name in _NAMES):
        return snapshot
    root = state.root()
    assert root is not None
    parts = []
    for leaf in state.reader.leaves(root):
        parts.append(EntryBatch(readable(leaf).entries.filter(live(leaf.entries))))
    held = concat_batches(parts)
    counted = summary_of(added=held, removed=EntryBatch.empty(), metadata=state.metadata, parent=None)
    totals = {name: counted.get(name, "0") for name in _NAMES}
    return replace(snapshot, summary=totals | said)
