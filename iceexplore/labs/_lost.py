"""What commits have written for nothing: attempts that another commit came before, and commits that were refused.

Nobody has ever seen these files: the metadata file that names them was not written, or the catalog did not take it.
That is looked at once more. A network file system, or a database, can say of what it has done that it has not; then the
table names them, and everything stays.
"""

from __future__ import annotations

import os
from contextlib import suppress

from iceexplore.commits import CommitRecord
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState, state_of
from iceexplore.storage import FolderStorage, Write

__all__ = ["remove_lost", "remove_refused"]

#: In this order a crash in between leaves nothing behind that names what is gone.
_KINDS = ("metadata", "manifest-list", "manifest")


def remove_lost(storage: FolderStorage, record: CommitRecord, state: TableState) -> None:
    """Remove what a commit wrote in attempts before its last, and does not name.

    What cannot be removed stays, a leftover; so do data files, of which only all manifests know whether they are named.

    Parameters
    ----------
    record
        The commit's.
    state
        What it published.
    """
    written = [w for w in storage.writes if w.commit == record.number and (w.attempt or 0) < record.attempts]
    written = [w for w in written if w.kind in _KINDS]
    with suppress(IceexploreError, OSError):
        if written and not _published(written, state):
            named = _named(state_of(state.opened, strict=True), record.snapshot_id)
            for write in sorted(written, key=lambda w: _KINDS.index(w.kind)):
                if write.location not in named:
                    with suppress(FileNotFoundError):
                        os.unlink(write.real)


def remove_refused(storage: FolderStorage, record: CommitRecord, state: TableState) -> None:
    """Remove all that a commit wrote which is not published, data files too: their names are its own, told to nobody.

    What Spark's workers wrote in a job that failed is not known here, and stays, a leftover.

    Parameters
    ----------
    record
        The commit's.
    state
        The newest.
    """
    written = [w for w in storage.writes if w.commit == record.number]
    known = record.snapshot_id is not None and state.metadata.snapshot(record.snapshot_id) is not None
    if known or _published([w for w in written if w.kind in _KINDS], state):
        return
    places = {kind: place for place, kind in enumerate(_KINDS)}
    for write in sorted(written, key=lambda w: places.get(w.kind, len(places))):
        with suppress(FileNotFoundError):
            os.unlink(write.real)


def _published(written: list[Write], state: TableState) -> bool:
    """Whether an attempt that was lost was none."""
    metadata = state.metadata
    seen = {state.metadata_location, *(e.metadata_file for e in metadata.metadata_log)}
    seen |= {s.root_location for s in metadata.snapshots if s.root_location}
    return any(w.location in seen for w in written if w.kind != "manifest")


def _named(state: TableState, snapshot_id: int | None) -> set[str]:
    """What the list or root of the commit's snapshot names: no other snapshot can name files of this commit alone."""
    snapshot = None if snapshot_id is None else state.metadata.snapshot(snapshot_id)
    root = None if snapshot is None else state.root(snapshot)
    return set() if root is None else {name for name in root.entries["location"].to_pylist() if name}
