"""Clean up after commits: files of attempts that lost to another commit, and of commits that were refused.

No reader has seen these files: the metadata file that references them was not written, or the catalog refused it. This
is checked again before anything is removed, because a network file system or a database may report a failure for an
operation that succeeded; in that case the table references the files, and all of them stay.
"""

from __future__ import annotations

import os
from contextlib import suppress

from iceexplore.commits import CommitRecord
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState, state_of
from iceexplore.storage import FolderStorage, Write

__all__ = ["remove_lost", "remove_refused"]

#: The order in which files are removed: if the process crashes in between, no remaining file references a removed one.
_KINDS = ("metadata", "manifest-list", "manifest")


def remove_lost(storage: FolderStorage, record: CommitRecord, state: TableState) -> None:
    """Remove metadata files and manifests that a commit wrote in earlier attempts and does not reference in the end.

    Files that cannot be removed remain as orphan files. So do data files, because finding out whether the table
    references them would require reading all manifests.

    Parameters
    ----------
    record
        The commit's record.
    state
        The state that the commit published.
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
    """Remove all files that an unpublished commit wrote; even data files, because no other commit can know their names.

    Files that Spark's workers wrote in a failed job are not known in this process and stay as orphan files.

    Parameters
    ----------
    record
        The commit's record.
    state
        The newest state.
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
    """Return whether the table references files of these attempts, which means that one was published after all."""
    metadata = state.metadata
    seen = {state.metadata_location, *(e.metadata_file for e in metadata.metadata_log)}
    seen |= {s.root_location for s in metadata.snapshots if s.root_location}
    return any(w.location in seen for w in written if w.kind != "manifest")


def _named(state: TableState, snapshot_id: int | None) -> set[str]:
    """Return the locations that the manifest list or root of the commit's snapshot lists.

    Reading this snapshot is enough: it lists every file of the commit that any snapshot lists.
    """
    snapshot = None if snapshot_id is None else state.metadata.snapshot(snapshot_id)
    root = None if snapshot is None else state.root(snapshot)
    return set() if root is None else {name for name in root.entries["location"].to_pylist() if name}
