"""Read what a root of the V4 draft records about its snapshot: statuses, and positions removed from leaves.

A commit that changes a data file lists the file again as MODIFIED. The previous entry is marked as REPLACED if it is in
the root; if it is in a leaf, its position is added to the leaf's ``replaced_positions`` (field id 7). The positions of
removed files are in ``deleted_positions`` (field id 6). The statuses and positions thus show which entries the commit
removed or replaced, and which ones are new. The differences between these old and new entries are the changes to files,
deletion vectors and column files.

Some roots do not record all changes and must be compared with the parent's root instead. For example, the roots of
older writers, such as Delta Lake 4.4, record no positions. If a root marks a whole manifest as removed, it does not
record whether the manifest's entries were removed, too, or moved to another manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.commits.change_detection._leaves import bare_leaves, is_at
from iceexplore.commits.layouts._root_builder import numbers
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, Manifest, Status, bool_array, decode_manifest_dv, live
from iceexplore.metadata import Snapshot

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["Tracked", "read_tracking"]

_MANIFESTS = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
_GONE = (Status.DELETED, Status.REPLACED)


@dataclass
class Tracked:
    """The entries that a snapshot removed, replaced or added.

    Attributes
    ----------
    before
        The old entries of the data files that the snapshot removed or changed, and of their deletion vectors.
    after
        The new entries of the data files that the snapshot added or changed, and of their deletion vectors.
    named
        Leaf manifests that were read only for the names of files. The root already shows which of their entries
        changed: it records the positions of removed and replaced entries, or it shows that all entries are new.
    read
        Leaf manifests that the snapshot added, but in which some entries may be older. Only the statuses of the entries
        show which ones are new.
    """

    before: list[pa.Table] = field(default_factory=list)
    after: list[pa.Table] = field(default_factory=list)
    named: list[Manifest] = field(default_factory=list)
    read: list[Manifest] = field(default_factory=list)

    @property
    def sides(self) -> tuple[pa.Table, pa.Table]:
        """The entries in ``before`` as one table, and those in ``after`` as another."""
        none = ENTRY_SCHEMA.empty_table()
        return pa.concat_tables([none, *self.before]), pa.concat_tables([none, *self.after])


def read_tracking(state: TableState, root: Manifest, snapshot: Snapshot) -> Tracked | None:
    """Read a snapshot's changes from its root; return None if the root does not record them completely.

    Parameters
    ----------
    root
        The snapshot's root, of the dialect ``v4-draft``.
    """
    entries = root.entries
    kind, status = numbers(entries["content_type"]), numbers(entries["status"])
    mine = numbers(entries["snapshot_id"]) == snapshot.snapshot_id
    manifests = np.isin(kind, _MANIFESTS)
    files = kind == ContentType.DATA
    gone, new = np.isin(status, _GONE), status == Status.ADDED
    foreign = (files & (gone | new) | manifests & new) & ~mine
    if foreign.any() or (manifests & gone).any() or (kind == ContentType.EQUALITY_DELETE).any():
        return None
    out = Tracked()
    came = files & (new | (status == Status.MODIFIED))
    out.before.append(_with_vectors(entries, files & gone))
    out.after.append(_with_vectors(entries, came))
    changed = _positions(root, np.flatnonzero(manifests & ~new), kind, snapshot)
    if changed is None:
        return None
    added = np.flatnonzero(manifests & new).tolist()
    vectors = numbers(entries["ordinal"])[kind == ContentType.MANIFEST_DV]
    if np.isin(numbers(entries["ordinal"])[added], vectors).any():
        return None  # a leaf added by this snapshot already has a manifest DV, which `_read_leaves` does not apply
    _read_leaves(state, root, changed, added, out)
    return out


def _with_vectors(entries: pa.Table, files: np.ndarray) -> pa.Table:
    """Return the entries of the data files that the mask ``files`` selects, and those of their deletion vectors.

    In the V4 draft, a manifest stores a data file and its deletion vector in one row, from which two entries are read.
    Both entries have the row's position in the manifest as their ``ordinal``. A deletion vector is therefore selected
    if it has the same ordinal as a selected data file.
    """
    ordinals = numbers(entries["ordinal"])
    vectors = (numbers(entries["content_type"]) == ContentType.POSITION_DELETE) & np.isin(ordinals, ordinals[files])
    return entries.filter(pa.array(files | vectors))


def _positions(root: Manifest, rows: np.ndarray, kind: np.ndarray, snapshot: Snapshot) -> dict[int, BitMap] | None:
    """Return the positions of the entries that the snapshot removed or replaced in leaf manifests.

    Parameters
    ----------
    rows
        The rows, in the root, of the leaf manifests that the snapshot did not add.
    kind
        The content type of each row of the root.

    Returns
    -------
    dict[int, pyroaring.BitMap] or None
        For each leaf in which entries were removed or replaced, by its row in the root, their positions. None if the
        root does not record all of them, or if they cannot be decoded.
    """
    ordinals = numbers(root.entries["ordinal"])
    owners = numbers(root.entries["snapshot_id"])
    vector_of = {int(ordinals[row]): int(owners[row]) for row in np.flatnonzero(kind == ContentType.MANIFEST_DV)}
    status = numbers(root.entries["status"])
    held = root.entries.select(["deleted_positions", "replaced_positions"]).take(build.array(rows)).to_pylist()
    out: dict[int, BitMap] = {}
    for row, values in zip(rows.tolist(), held, strict=True):
        found = [data for data in values.values() if data is not None]
        if found:
            try:
                first, *more = (decode_manifest_dv(data, location=root.location) for data in found)
            except IceexploreError:
                return None
            for bitmap in more:
                first |= bitmap
            out[row] = first
        elif status[row] == Status.MODIFIED or vector_of.get(int(ordinals[row])) == snapshot.snapshot_id:
            return None  # the leaf's manifest DV changed, and the root does not say which positions are new
    return out


def _read_leaves(
    state: TableState, root: Manifest, changed: dict[int, BitMap], added: Sequence[int], out: Tracked
) -> None:
    for row, leaf in zip(changed, bare_leaves(state, root, list(changed)), strict=True):
        hit = bool_array(live(leaf.entries)) & is_at(numbers(leaf.entries["ordinal"]), changed[row])
        out.before.append(leaf.entries.filter(pa.array(hit)))
        out.named.append(leaf)
    stats = root.entries["manifest_stats"]
    for row, leaf in zip(added, bare_leaves(state, root, list(added)), strict=True):
        status = numbers(leaf.entries["status"])
        files = (numbers(leaf.entries["content_type"]) == ContentType.DATA) & bool_array(live(leaf.entries))
        out.after.append(_with_vectors(leaf.entries, files & np.isin(status, (Status.ADDED, Status.MODIFIED))))
        all_new = (stats[row].as_py() or {}).get("existing_files_count") == 0
        (out.named if all_new else out.read).append(leaf)
