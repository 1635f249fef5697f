"""A snapshot as the rule checker sees it: the root, its leaves, and every live file with the leaf that lists it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.manifests import ContentType, Manifest, ManifestReader, Status, live, read_manifest_dv, whole
from iceexplore.manifests.rules import MANIFESTS, Rows
from iceexplore.metadata import Snapshot

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["LeafView", "TreeView", "keys_of", "view_tree"]

_COLUMNS = ("content_type", "status", "location", "referenced_file", "record_count", "first_row_id")


@dataclass(frozen=True)
class LeafView:
    """A live manifest of a root.

    Attributes
    ----------
    row
        Row number of the manifest's entry in the root.
    owner
        The data manifest with which a delete manifest is affiliated; None for all other manifests.
    old
        Whether the manifest was written before V4.
    statuses
        The statuses of the manifest's entries, as stored.
    removed
        The positions of the manifest's entries that live manifest DVs remove. The keys are the statuses that these DVs
        have in the root (such as ADDED), and the values are bitmaps (`pyroaring.BitMap`).
    """

    row: int
    location: str
    kind: int
    status: int
    owner: str | None
    old: bool
    statuses: frozenset[int]
    removed: dict[int, Any]

    def positions(self) -> BitMap:
        """Return all positions that the leaf's manifest DVs remove."""
        from pyroaring import BitMap

        out = BitMap()
        for bitmap in self.removed.values():
            out |= bitmap
        return out


@dataclass(frozen=True)
class TreeView:
    """The tree of a snapshot, read completely.

    Attributes
    ----------
    v4
        Whether the snapshot has a root manifest.
    leaves
        The live manifests by location.
    files
        The live files: some columns of the entry, ``leaf`` (the manifest's row number in the root; -1 if the root lists
        the file directly), ``key`` (identifies a file or DV across snapshots; see `keys_of`) and ``vector`` (whether it
        is a DV).
    """

    snapshot: Snapshot
    root: Manifest
    v4: bool
    leaves: dict[str, LeafView]
    files: pa.Table


def view_tree(
    reader: ManifestReader, snapshot: Snapshot, visit: Callable[[LeafView, Manifest], None] | None = None
) -> TreeView:
    """Read the root and all leaves of a snapshot, and return them as a tree.

    Parameters
    ----------
    visit
        A function that is called with each leaf directly after the leaf was read. Only this function gets the whole
        leaf: the tree has only some columns of the leaf's live entries.

    Raises
    ------
    IceexploreError
        A manifest DV cannot be read. (An unreadable manifest does not raise; it is recorded in the reader's problems.)
    """
    root = reader.root(snapshot)
    v4 = root.dialect.has_root_manifest
    rows = Rows(root.entries)
    vectors = _removed(reader, root, rows) if v4 else {}
    order = np.flatnonzero(rows.live & rows.is_kind(*MANIFESTS)).tolist()
    leaves: dict[str, LeafView] = {}
    parts = [_files(root.entries, -1, files_only=True)]
    for row, leaf in zip(order, reader.leaves(root, order, parts={"entries", "partition", "stats"}), strict=True):
        entry = root.entries.slice(row, 1).select(["location", "referenced_file"]).to_pylist()[0]
        view = LeafView(
            row,
            entry["location"],
            int(rows.kind[row]),
            int(rows.status[row]),
            entry["referenced_file"] if rows.kind[row] == ContentType.DELETE_MANIFEST else None,
            not leaf.dialect.has_root_manifest,
            frozenset(Rows(leaf.entries).status.tolist()),
            vectors.get(entry["location"], {}),
        )
        leaves.setdefault(view.location, view)
        parts.append(_files(leaf.entries, row))
        if visit is not None:
            visit(view, leaf)
    return TreeView(snapshot, root, v4, leaves, pa.concat_tables(parts).combine_chunks())


def _removed(reader: ManifestReader, root: Manifest, rows: Rows) -> dict[str, dict[int, Any]]:
    """Return the positions of the entries that live manifest DVs remove from the leaves of a V4 root.

    The result has a dictionary for each leaf, by the leaf's location. The keys of this dictionary are the statuses of
    the leaf's manifest DVs, such as ADDED, and its values are bitmaps of positions. If the root stores a manifest
    DV in the row of the leaf (`LayoutOptions.dv_attached`) and not in a separate row, the DV counts as EXISTING.

    Parameters
    ----------
    rows
        The entries of ``root``.
    """
    out: dict[str, dict[int, Any]] = {}
    attached = rows.is_kind(*MANIFESTS) & rows.has_vector
    for row in np.flatnonzero(rows.live & (rows.is_kind(ContentType.MANIFEST_DV) | attached)).tolist():
        name = "location" if attached[row] else "referenced_file"
        location = root.entries[name][row].as_py()
        status = int(Status.EXISTING) if attached[row] else int(rows.status[row])
        bitmap = read_manifest_dv(reader.storage, root, row)
        held = out.setdefault(location, {})
        held[status] = held[status] | bitmap if status in held else bitmap
    return out


def _files(entries: pa.Table, leaf: int, *, files_only: bool = False) -> pa.Table:
    mask = live(entries)
    if files_only:
        mask = pc.and_(mask, pc.less(whole(entries["content_type"]), int(ContentType.DATA_MANIFEST)))
    held = entries.filter(mask)
    made = held.select(_COLUMNS)
    made = made.append_column("vector", whole(held["deletion_vector"]).is_valid())
    made = made.append_column("key", keys_of(held))
    return made.append_column("leaf", pa.repeat(pa.scalar(leaf, pa.int64()), len(held)))


def keys_of(entries: pa.Table) -> AnyArray:
    """Return a key for each entry, which is the same in every snapshot that lists the same file or DV.

    The key is a text that contains the location of the file. Several DVs may be in one Puffin file, so the key of a DV
    also contains the offset of its blob in the Puffin file, and the location of the data file that it references.
    """
    vectors = whole(pc.equal(entries["content_type"], int(ContentType.POSITION_DELETE)))
    offset = pc.struct_field(whole(entries["deletion_vector"]), "offset").cast(pa.string())
    nothing = pa.scalar(None, pa.string())
    parts = [whole(entries["location"])]
    parts += [pc.if_else(vectors, part, nothing) for part in (offset, whole(entries["referenced_file"]))]
    return pc.binary_join_element_wise(*parts, "\n", null_handling="replace", null_replacement="")
