"""The files that a snapshot needs: its manifest list or root, manifests, manifest DVs, and data and delete files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.delta import DELTA_LOG, commit_name
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, Manifest, column_file_rows, live
from iceexplore.metadata import PartitionStatisticsFile, Snapshot, StatisticsFile, TableMetadata
from iceexplore.storage import HINT, canonical

__all__ = [
    "MetadataFile",
    "REFERENCED_SCHEMA",
    "files_of_leaves",
    "metadata_files",
    "reachable_files",
    "referenced_files",
    "snapshot_files",
    "statistics_files",
    "tree_files",
]

_LISTED = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST, ContentType.MANIFEST_DV)
_KINDS = {
    ContentType.DATA: "data file",
    ContentType.POSITION_DELETE: "position delete file",
    ContentType.EQUALITY_DELETE: "equality delete file",
    ContentType.DATA_MANIFEST: "manifest",
    ContentType.DELETE_MANIFEST: "manifest",
    ContentType.MANIFEST_DV: "manifest deletion vectors",
}
#: The columns of the tables of files that this module returns. ``kind`` is a text such as ``manifest list`` or
#: ``data file``. ``bytes`` is the size of the file; null if it is not recorded.
REFERENCED_SCHEMA = build.schema([("location", pa.string()), ("kind", pa.string()), ("bytes", pa.int64())])
_SCHEMA = build.schema([("location", pa.string()), ("file_size_in_bytes", pa.int64()), ("content_type", pa.int32())])


@dataclass(frozen=True)
class MetadataFile:
    """A metadata file, or the blob of a manifest DV in a Puffin file.

    Attributes
    ----------
    kind
        ``metadata``, ``manifest-list`` (also a root manifest), ``manifest``, ``puffin``.
    size
        Bytes to read.
    offset
        Offset of a blob in a Puffin file; 0 for whole files.
    """

    location: str
    kind: str
    size: int
    offset: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """A key that identifies the content: metadata files never change, so location and offset suffice."""
        return self.location, self.offset


def tree_files(
    state: TableState, snapshot: Snapshot, *, read: Collection[int] | None = None
) -> tuple[MetadataFile, ...]:
    """Return a snapshot's manifest list or root, its live manifests, and its manifest DVs in Puffin files.

    Parameters
    ----------
    read
        The manifests to return, together with their manifest DVs, as row numbers in the root; by default all live
        manifests. The root itself is always returned.
    """
    root = state.root(snapshot)
    if root is None:
        return ()
    # A v1 snapshot that lists its manifests inline has no manifest list file.
    own = root.location and root.dialect != "inline"
    out = [MetadataFile(root.location, "manifest-list", root.length)] if own else []
    if root.composed is not None:
        out = [MetadataFile(location, "manifest-list", size) for location, size in root.composed.files]
    elif state.opened.is_delta:
        out += _own_commit(state, snapshot)
    names = None if read is None else _named(root, read)
    for entry in _listed(root):
        mine = entry["location"] if entry["content_type"] != ContentType.MANIFEST_DV else entry["referenced_file"]
        if names is not None and mine and canonical(mine) not in names:
            continue
        if entry["content_type"] != ContentType.MANIFEST_DV:
            out.append(MetadataFile(entry["location"], "manifest", entry["file_size_in_bytes"] or 0))
            continue
        blob = entry["deletion_vector"] or {}
        if blob.get("offset") is not None:
            out.append(MetadataFile(entry["location"], "puffin", blob.get("size_in_bytes") or 0, blob["offset"]))
    return tuple(out)


def _own_commit(state: TableState, snapshot: Snapshot) -> list[MetadataFile]:
    """Return the Delta commit file that made this snapshot, counted as a manifest list; empty for other snapshots."""
    location = f"{state.metadata.properties.get(DELTA_LOG)}/{commit_name(snapshot.snapshot_id)}"
    try:
        return [MetadataFile(location, "manifest-list", state.storage.stat(location).size or 0)]
    except IceexploreError:  # the table is no Delta table, or a simulation made this snapshot: there is no such file
        return []


def _named(root: Manifest, rows: Collection[int]) -> set[str]:
    names = root.entries["location"].take(pa.array(sorted(rows), pa.int64())).to_pylist()
    return {canonical(n) for n in names if n}


def _listed(root: Manifest) -> list[dict[str, Any]]:
    kinds = pc.is_in(root.entries["content_type"], pa.array([int(k) for k in _LISTED], pa.int32()))
    rows = np.flatnonzero(np.asarray(pc.fill_null(pc.and_(live(root.entries), kinds), False)))
    columns = ["content_type", "location", "file_size_in_bytes", "deletion_vector", "referenced_file"]
    return [e for e in root.entries.select(columns).take(build.array(rows)).to_pylist() if e["location"]]


def referenced_files(
    state: TableState,
    snapshots: Iterable[Snapshot],
    *,
    seen: set[tuple[str, ...]] | None = None,
) -> pa.Table:
    """Return every file that snapshots need, each once: manifest lists or roots, manifests, data and delete files.

    Statistics files are not included. A file has several rows if it has several kinds. For example, a Puffin file may
    contain manifest DVs (kind ``manifest deletion vectors``) and DVs of data files (kind ``position delete file``).

    Parameters
    ----------
    seen
        As for `files_of_leaves`.

    Returns
    -------
    A table of `REFERENCED_SCHEMA`.
    """
    snapshots = list(snapshots)
    parts = [REFERENCED_SCHEMA.empty_table(), *(_tree_table(state, s) for s in snapshots)]
    leaves = files_of_leaves(state, snapshots, seen=seen)
    parts.append(_with_kinds(leaves["content_type"], leaves["location"], leaves["file_size_in_bytes"]))
    found = pa.concat_tables(parts).group_by(["location", "kind"], use_threads=False).aggregate([("bytes", "max")])
    return found.rename_columns(["location", "kind", "bytes"])


def _tree_table(state: TableState, snapshot: Snapshot) -> pa.Table:
    root = state.root(snapshot)
    if root is None:
        return REFERENCED_SCHEMA.empty_table()
    kinds = pc.is_in(root.entries["content_type"], pa.array([int(k) for k in _LISTED], pa.int32()))
    entries = root.entries.filter(pc.fill_null(pc.and_(live(root.entries), kinds), False))
    found = _with_kinds(entries["content_type"], entries["location"], entries["file_size_in_bytes"])
    # A v1 snapshot that lists its manifests inline has no manifest list, and a manifest DV stored inline has no file of
    # its own.
    found = found.filter(pc.fill_null(pc.greater(pc.utf8_length(found["location"]), 0), False))
    if not root.location or root.dialect == "inline":
        return found
    own: dict[str, list[str | int | None]]
    own = {"location": [root.location], "kind": ["manifest list"], "bytes": [root.length or None]}
    return pa.concat_tables([pa.table(own, schema=REFERENCED_SCHEMA), found])


def _with_kinds(content: AnyColumn, locations: AnyColumn, sizes: AnyColumn) -> pa.Table:
    names = pa.array([_KINDS[ContentType(k)] for k in range(len(_KINDS))], pa.string())
    return pa.table([locations, pc.take(names, content), sizes], schema=REFERENCED_SCHEMA)


def files_of_leaves(
    state: TableState,
    snapshots: Iterable[Snapshot],
    *,
    among: Collection[str] | None = None,
    seen: set[tuple[str, ...]] | None = None,
) -> pa.Table:
    """Return the live files of snapshots, with their locations, sizes in bytes and content types.

    A manifest that several snapshots list is read only once. Column files (V4 draft) are included, with content type 0
    like data files. A file may have several rows, for example if the roots of two snapshots list it directly.

    Parameters
    ----------
    among
        Locations of the manifests to read; all by default.
    seen
        The manifests that earlier calls have read. They are not read again, so their files are not in the result. The
        manifests that this call reads are added to the set: pass an empty set to the first call, and the same set to
        later ones. An item is a tuple: a manifest's location, then a text for each manifest DV of the manifest.
    """
    parts = [_SCHEMA.empty_table()]
    seen = set() if seen is None else seen
    for snapshot in snapshots:
        root = state.root(snapshot)
        for manifest in () if root is None else _manifests(state, root, seen, among):
            entries = manifest.entries
            is_file = pc.less_equal(entries["content_type"], int(ContentType.EQUALITY_DELETE))
            entries = entries.filter(pc.and_(live(entries), is_file))
            parts += [entries.select(_SCHEMA.names), column_file_rows(entries).select(_SCHEMA.names)]
    return pa.concat_tables(parts)


def _manifests(
    state: TableState, root: Manifest, seen: set[tuple[str, ...]], among: Collection[str] | None
) -> Iterator[Manifest]:
    direct = state.reader.direct(root)
    if direct is not None:
        yield direct
    vectors: dict[str, list[str]] = {}
    columns = ["content_type", "location", "referenced_file", "deletion_vector"]
    for entry in build.to_pylist(root.entries.select(columns).filter(live(root.entries))) if _has_vectors(root) else ():
        if entry["deletion_vector"] and entry["content_type"] == ContentType.MANIFEST_DV:
            vectors.setdefault(entry["referenced_file"], []).append(f"{entry['location']} {entry['deletion_vector']}")
    kinds = pc.is_in(root.entries["content_type"], pa.array([int(k) for k in _LISTED[:2]], pa.int32()))
    rows = np.flatnonzero(np.asarray(pc.fill_null(pc.and_(live(root.entries), kinds), False)))
    wanted = []
    for row, location in zip(
        rows.tolist(), build.to_pylist(root.entries["location"].take(build.array(rows))), strict=True
    ):
        key = (location, *sorted(vectors.get(location, ())))
        if location and key not in seen and (among is None or location in among):
            seen.add(key)
            wanted.append(row)
    if wanted:
        yield from state.reader.leaves(root, wanted)


def _has_vectors(root: Manifest) -> bool:
    return bool(pc.any(pc.equal(root.entries["content_type"], int(ContentType.MANIFEST_DV))).as_py())


def snapshot_files(state: TableState) -> pa.Table:
    """Return every file that any snapshot needs, and all statistics files, as a table of `REFERENCED_SCHEMA`.

    Raises
    ------
    FormatError, FileMissingError
        A root or manifest cannot be read, so the files that it lists are unknown. This is raised only if the table was
        opened with ``strict=True``. Otherwise, these files are missing from the result.
    """
    snapshots = {s.snapshot_id: s for s in state.metadata.snapshots}
    return pa.concat_tables([referenced_files(state, snapshots.values()), statistics_files(state.metadata)])


def statistics_files(metadata: TableMetadata, snapshots: Iterable[int] | None = None) -> pa.Table:
    """Return the (partition) statistics files of snapshots, by default of all, as a table of `REFERENCED_SCHEMA`."""
    wanted = None if snapshots is None else set(snapshots)
    files: list[StatisticsFile | PartitionStatisticsFile] = [*metadata.statistics]
    files += metadata.partition_statistics
    chosen = [f for f in files if wanted is None or f.snapshot_id in wanted]
    columns: dict[str, list[str] | list[int]] = {
        "location": [f.statistics_path for f in chosen],
        "kind": ["statistics file"] * len(chosen),
        "bytes": [f.file_size_in_bytes for f in chosen],
    }
    return pa.table(columns, schema=REFERENCED_SCHEMA)


def metadata_files(state: TableState) -> pa.Table:
    """Return the metadata file, the older ones in its log, and the version hint, as a table of `REFERENCED_SCHEMA`.

    The sizes are null.
    """
    log = [e.metadata_file for e in state.metadata.metadata_log]
    hint = f"{state.metadata.location.rstrip('/')}/metadata/{HINT}"  # only file-system tables have this file
    places = list(dict.fromkeys([state.metadata_location, *log]))
    kinds = [*("metadata file" for _ in places), "version hint"]
    columns: dict[str, list[str] | list[None]] = {
        "location": [*places, hint],
        "kind": kinds,
        "bytes": [None] * len(kinds),
    }
    return pa.table(columns, schema=REFERENCED_SCHEMA)


def reachable_files(state: TableState, own: Collection[str]) -> set[str]:
    """Return the files that a simulation wrote and that its table still needs, as a set of locations.

    A table needs the files of its snapshots, its statistics files, its current metadata file, and the older metadata
    files in its metadata log.

    Parameters
    ----------
    state
        The newest state of the simulation.
    own
        The locations of all files that the simulation wrote. Other manifests are not read: they are older than the
        simulation, so they cannot list its files.
    """
    metadata = state.metadata
    needed = {state.metadata_location, *(e.metadata_file for e in metadata.metadata_log)}
    needed |= {s.statistics_path for s in metadata.statistics}
    needed |= {s.statistics_path for s in metadata.partition_statistics}
    for snapshot in metadata.snapshots:
        if snapshot.root_location in own:
            needed |= {f.location for f in tree_files(state, snapshot)}
    mine = [s for s in metadata.snapshots if s.root_location in own]
    needed |= set(build.to_pylist(files_of_leaves(state, mine, among=own)["location"]))
    return needed & set(own)
