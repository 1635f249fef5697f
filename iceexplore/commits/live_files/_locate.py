"""Locate the manifest entries of live files: find which leaf, or the root itself, lists a file, and at which position.

The results are Arrow tables and arrays rather than Python objects. A leaf is read only when it is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError
from iceexplore.graph import TableState
from iceexplore.manifests import (
    ENTRY_SCHEMA,
    ContentType,
    EntryBatch,
    Manifest,
    ManifestReader,
    bool_array,
    concat_batches,
    live,
    whole,
)

__all__ = [
    "Found",
    "LOCATED_SCHEMA",
    "data_leaf_of",
    "delete_manifests",
    "find_data_files",
    "find_files",
    "live_manifests",
    "locate",
    "readable",
    "texts",
]

_FILE_TYPES = pa.array([ContentType.DATA, ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE], pa.int32())
_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)

#: The columns of the table that `locate` returns, with one row per file. The first column, `root_row`, identifies the
#: leaf that lists the file: it is the position of the leaf's entry in the root, or null if the root lists the file
#: directly. The other columns are those of the file's own entry; `ordinal` is its position in the leaf or root.
LOCATED_SCHEMA = pa.schema([pa.field("root_row", pa.int64()), *ENTRY_SCHEMA])


def texts(values: Iterable[str]) -> AnyArray:
    """Return strings, such as locations, as an Arrow array."""
    return pa.array(values if isinstance(values, (list, tuple)) else list(values), pa.string())


def readable(manifest: Manifest) -> Manifest:
    """Return the manifest unchanged if it was read without errors; otherwise raise the first error.

    Raises
    ------
    FormatError
        The manifest is missing or damaged; a commit that builds on it would lose the files that it lists.
    """
    for item in manifest.problems:
        if item.severity == "error":
            raise FormatError(
                f"a commit cannot build on a manifest that cannot be read: {item.text}",
                location=manifest.location,
                code=item.code,
            )
    return manifest


def delete_manifests(root: Manifest) -> set[ContentType]:
    """Return the content types of the manifests that may list deletes.

    These are delete manifests, and in the V4 draft also data manifests, because the draft stores the deletion vector of
    a data file in the data file's entry.
    """
    own = {ContentType.DELETE_MANIFEST}
    return own | {ContentType.DATA_MANIFEST} if root.dialect.deletion_vectors_on_entries else own


def live_manifests(entries: pa.Table, kinds: Collection[int]) -> list[int]:
    """Return the positions, among a root's entries, of the live manifests of some content types.

    Parameters
    ----------
    entries
        The root's entries.
    kinds
        The content types, such as `ContentType.DATA_MANIFEST`.
    """
    wanted = pc.is_in(entries["content_type"], pa.array([int(k) for k in kinds], pa.int32()))
    return [int(i) for i in np.flatnonzero(bool_array(wanted) & bool_array(live(entries)))]


@dataclass(frozen=True)
class Found:
    """The entries of files that were found, and their positions in the root or its leaves.

    Attributes
    ----------
    root_row
        For each file, the position in the root of the entry for the leaf that lists the file; -1 if the root lists the
        file directly (int64).
    ordinal
        For each file, the position of its entry in the leaf; for a file that the root lists directly, the position in
        the root (int64).
    batch
        The files' entries without statistics. Partition tuples are included if the caller requested them.
    """

    root_row: np.ndarray
    ordinal: np.ndarray
    batch: EntryBatch

    def __len__(self) -> int:
        return len(self.batch)


def locate(
    state: TableState,
    locations: Iterable[str],
    *,
    contents: Collection[int] = (ContentType.DATA,),
    referenced: Iterable[str] = (),
) -> pa.Table:
    """Find live files by location in a state's snapshot; return each file's entry and the entry's position.

    Parameters
    ----------
    locations
        Locations of files, as the table spells them.
    contents
        The content types to look for. Leaves that cannot list files of these types are not read. All other leaves are
        read, even if every file was already found: if a damaged table lists a file twice, both entries are returned.
    referenced
        Locations of data files whose deletion vectors should be located as well.

    Returns
    -------
    pyarrow.Table
        The files found, with the columns of `LOCATED_SCHEMA`: first files that the root lists directly, then files in
        leaves, in the root's order.

    Raises
    ------
    FormatError
        The root, or a leaf that had to be read, is damaged.
    """
    root = state.root()
    if root is None:
        return LOCATED_SCHEMA.empty_table()
    found = find_files(state.reader, readable(root), texts(locations), contents, texts(referenced), tuples=False)
    root_row = pa.array(found.root_row, mask=found.root_row < 0)
    entries = found.batch.with_columns(ordinal=pa.array(found.ordinal)).entries
    return pa.table([root_row, *entries.columns], schema=LOCATED_SCHEMA)


def find_files(
    reader: ManifestReader,
    root: Manifest,
    locations: AnyArray,
    contents: Collection[int],
    referenced: AnyArray,
    *,
    rows: list[int] | None = None,
    tuples: bool = True,
) -> Found:
    """Find live files by location in a given root, like `locate`.

    Parameters
    ----------
    locations, contents, referenced
        The files to find, as for `locate`.
    rows
        The leaves that may be read, as positions of their entries in the root; by default all. Files that the root
        lists directly are found in any case.
    tuples
        Whether to return the partition tuples of files that are listed in leaves; in V4, they are derived from the
        files' statistics, which must be read. Tuples of files that the root lists directly are always returned.
    """
    kinds = {ContentType.DATA_MANIFEST} if ContentType.DATA in contents and len(locations) else set()
    if len(referenced) or (len(locations) and any(k in contents for k in _DELETES)):
        kinds |= delete_manifests(root)
    wanted = [r for r in live_manifests(root.entries, kinds) if rows is None or r in set(rows)]
    parts: list[EntryBatch] = []
    where: list[np.ndarray] = []
    ordinals: list[np.ndarray] = []

    def take(batch_entries: pa.Table, hits: np.ndarray, row: int, partition: pa.StructArray | None) -> None:
        indices = pa.array(hits)
        parts.append(
            EntryBatch(batch_entries.take(indices), {}, None if partition is None else partition.take(indices))
        )
        where.append(np.full(len(hits), row, dtype=np.int64))
        ordinals.append(np.asarray(whole(batch_entries["ordinal"]))[hits])

    direct = reader.direct(root)
    if direct is not None:
        hits = _hits(direct.entries, locations, contents, referenced)
        if len(hits):
            take(direct.entries, hits, -1, direct.partition())
            ordinals[-1] = np.flatnonzero(bool_array(pc.is_in(root.entries["content_type"], _FILE_TYPES)))[hits]
    for row, leaf in _leaves(reader, root, wanted):
        hits = _hits(leaf.entries, locations, contents, referenced)
        if len(hits):
            take(leaf.entries, hits, row, leaf.partition() if tuples else None)
    empty = np.zeros(0, dtype=np.int64)
    return Found(np.concatenate([empty, *where]), np.concatenate([empty, *ordinals]), concat_batches(parts))


def find_data_files(
    reader: ManifestReader,
    root: Manifest,
    locations: AnyArray,
    manifests: Collection[str] | None,
    *,
    tuples: bool = True,
) -> Found:
    """Find live data files in a root, like `find_files`, but first read only the manifests that probably list them.

    Parameters
    ----------
    root
        The root, or the manifest list, in which to find the files.
    locations
        Locations of the data files, as the table spells them.
    manifests
        Locations of the data manifests that probably list the files. If they do not list all of the files, all data
        manifests are read, because a concurrent commit may have moved entries to other manifests. None means that it is
        not known which manifests list the files: all data manifests are read.
    tuples
        Whether to return the partition tuples of files that are listed in leaves, as for `find_files`.
    """
    contents, none = (ContentType.DATA,), texts(())
    if manifests is not None:
        rows = live_manifests(root.entries, {ContentType.DATA_MANIFEST})
        names = root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
        some = [row for row, name in zip(rows, names, strict=True) if name in manifests]
        found = find_files(reader, root, locations, contents, none, rows=some, tuples=tuples)
        if pc.all(pc.is_in(locations, value_set=whole(found.batch.entries["location"]))).as_py() is not False:
            return found
    return find_files(reader, root, locations, contents, none, tuples=tuples)


def _leaves(reader: ManifestReader, root: Manifest, rows: list[int]) -> Iterator[tuple[int, Manifest]]:
    for row, leaf in zip(rows, reader.leaves(root, rows) if rows else (), strict=True):
        yield row, readable(leaf)


def _hits(entries: pa.Table, locations: AnyArray, contents: Collection[int], referenced: AnyArray) -> np.ndarray:
    kind = entries["content_type"]
    mask = np.zeros(len(entries), dtype=np.bool_)
    if len(locations):
        named = pc.is_in(entries["location"], value_set=locations)
        mask |= bool_array(named) & bool_array(pc.is_in(kind, pa.array([int(c) for c in contents], pa.int32())))
    if len(referenced):
        vectors = bool_array(pc.equal(kind, int(ContentType.POSITION_DELETE)))
        vectors &= bool_array(whole(entries["deletion_vector"]).is_valid())
        mask |= vectors & bool_array(pc.is_in(entries["referenced_file"], value_set=referenced))
    if not mask.any():
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(mask & bool_array(live(entries)))


def data_leaf_of(reader: ManifestReader, root: Manifest, files: AnyArray) -> np.ndarray:
    """Return, for each data file, which leaf of a root lists it as live: the position of the leaf's entry in the root.

    The value is -1 for a file that no leaf lists as live.

    Parameters
    ----------
    files
        Locations of data files.
    """
    found = np.full(len(files), -1, dtype=np.int64)
    rows = live_manifests(root.entries, {ContentType.DATA_MANIFEST}) if len(files) else []
    names: list[AnyChunkedArray] = []
    counts: list[int] = []
    for _, leaf in _leaves(reader, root, rows):
        names.append(leaf.entries["location"].filter(live(leaf.entries)))
        counts.append(len(names[-1]))
    if not names:
        return found
    at = pc.index_in(files, value_set=pa.chunked_array([c for n in names for c in n.chunks], pa.string()))
    hit = np.asarray(at.is_valid())
    found[hit] = np.repeat(np.array(rows, dtype=np.int64), counts)[np.asarray(at.drop_null())]
    return found
