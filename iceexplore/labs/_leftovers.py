"""Orphan files of a lab: files that killed or failed commits left behind and that nothing in the table references."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.commits import MetadataNames, file_kind, is_referenced, snapshot_files
from iceexplore.errors import FileMissingError, OutsideRootsError, StorageError, whole_number_of
from iceexplore.graph import TableState
from iceexplore.labs._committer import LabCommitter
from iceexplore.labs._pointer import HINT, numbered
from iceexplore.labs._running import is_mark, oldest_running
from iceexplore.render import shown_frame
from iceexplore.storage import parse_document

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Leftover", "find_leftovers", "leftovers_frame", "needed_by_snapshots", "remove_files"]


@dataclass(frozen=True)
class Leftover:
    """A file that nothing in the table references.

    Attributes
    ----------
    location, real
        Its location as the table would spell it, and its real path.
    kind
        ``data`` (or a delete file), ``manifest`` (also a manifest list or root), ``metadata``, ``puffin``,
        ``temporary`` (a partly written file), ``mark`` (the mark file of a killed commit), ``other``.
    size
        Size in bytes.
    modified_ms
        Milliseconds since the epoch.
    """

    location: str
    real: str
    kind: str
    size: int
    modified_ms: int


def find_leftovers(lab: LabCommitter, *, running: bool = False) -> list[Leftover]:
    """Return the files under the table's folder that neither the newest metadata, its log nor any snapshot references.

    Parameters
    ----------
    running
        Also return files that may belong to running commits: those that are not older than the oldest running commit.

    Raises
    ------
    FormatError, FileMissingError
        Metadata cannot be read, so its references are unknown and no file is reported.
    """
    # The order matters: first list the files, then check for running commits, then read the table. A listed file that
    # belongs to a running commit is then recognized by its age; if its commit has ended successfully in the meantime,
    # the table that is read afterwards references it.
    storage = lab.storage
    listed = [e for e in storage.entries(storage.folder, recursive=True) if not e.is_folder]
    oldest = oldest_running(lab.metadata_folder)
    state = lab.strict(lab.newest())
    places = pa.array([*_metadata_files(state)], pa.string())
    references = pa.chunked_array([*snapshot_files(state)["location"].chunks, places], pa.string())
    needed = is_referenced(storage, listed, references)
    reals = {entry.real for entry, mine in zip(listed, needed, strict=True) if mine}
    found = []
    for entry, mine in zip(listed, needed, strict=True):
        modified = entry.modified_ms or 0
        if mine or (oldest is not None and modified >= oldest and not running):
            continue
        if _is_checksum_of(entry.real, reals):
            continue
        kind = "mark" if is_mark(os.path.basename(entry.real)) else file_kind(entry.real)
        found.append(Leftover(storage.unresolve(entry.real), entry.real, kind, entry.size or 0, modified))
    return found


def remove_files(lab: LabCommitter, files: list[Leftover], *, older_than_ms: int) -> list[Leftover]:
    """Remove files last modified at least ``older_than_ms`` milliseconds ago; return the removed ones.

    Raises
    ------
    OptionError
        ``older_than_ms`` is not an integer of at least 0.
    StorageError
        A file cannot be removed.
    """
    limit = time.time_ns() // 1_000_000 - whole_number_of("older_than_ms", older_than_ms, 0)
    gone = []
    for file in files:
        if file.modified_ms > limit:
            continue
        try:
            os.unlink(file.real)
        except FileNotFoundError:
            continue  # already removed by another process
        except OSError as e:
            raise StorageError(f"{file.real} cannot be removed: {e}") from e
        gone.append(file)
    return gone


def leftovers_frame(files: list[Leftover]) -> pd.DataFrame:
    """Return one row per file: ``location``, ``kind``, ``size``, ``modified_at``."""
    import pandas as pd

    frame = pd.DataFrame(
        {
            "location": pd.Series([f.location for f in files], dtype="string"),
            "kind": pd.Series([f.kind for f in files], dtype="string"),
            "size": pd.Series([f.size for f in files], dtype="int64"),
            "modified_at": pd.to_datetime([f.modified_ms for f in files], unit="ms", utc=True),
        }
    )
    return shown_frame(frame.sort_values("location", ignore_index=True))


def needed_by_snapshots(state: TableState) -> set[str]:
    """Return the real paths of all files that some snapshot references, except those outside the storage's roots."""
    found = set()
    for location in build.to_pylist(snapshot_files(state)["location"]):
        with suppress(OutsideRootsError):
            found.add(state.storage.resolve(location))
    return found


def _metadata_files(state: TableState) -> Iterator[str]:
    """Yield the real paths of the current and older metadata files, and of the version hint."""
    storage = state.storage
    current = storage.resolve(state.metadata_location)
    folder = os.path.dirname(current)
    yield current
    if MetadataNames.of(state.metadata_location).by_version:
        yield os.path.join(folder, HINT)
        number = numbered(os.path.basename(current)) or 0
        # All metadata files with lower numbers were current at some time, but the log lists only the last hundred.
        older = (n for n in os.listdir(folder) if (its := numbered(n)) is not None and its < number)
        yield from (os.path.join(folder, n) for n in older)
        return
    seen = {current}
    log = [e.metadata_file for e in state.metadata.metadata_log]
    while log:
        places = [storage.resolve(location) for location in log]
        yield from places
        oldest, first = log[0], places[0]
        if first in seen:
            return
        seen.update(places)
        try:
            document, _ = parse_document(storage.read(oldest, kind="metadata"), oldest)
        except FileMissingError:
            return
        log = [
            entry["metadata-file"]
            for entry in document.get("metadata-log") or []
            if isinstance(entry, dict) and isinstance(entry.get("metadata-file"), str)
        ]


def _is_checksum_of(real: str, needed: set[str]) -> bool:
    """Return whether the file is the checksum ``.x.crc`` that Hadoop writes beside a needed file ``x``."""
    folder, name = os.path.split(real)
    return name.startswith(".") and name.endswith(".crc") and os.path.join(folder, name[1:-4]) in needed


def remove_unneeded(lab: LabCommitter, before: Collection[str]) -> None:
    """Remove those files in ``before`` that no snapshot of the newest state needs.

    Some snapshot needed them earlier. Only files in the lab's folder are removed. Those that cannot be removed stay as
    orphan files.
    """
    needed = needed_by_snapshots(lab.strict(lab.newest()))
    root = os.path.realpath(lab.storage.folder)
    for real in set(before) - needed:
        if os.path.realpath(os.path.dirname(real)).startswith(root + os.sep):
            with suppress(OSError):
                os.unlink(real)
