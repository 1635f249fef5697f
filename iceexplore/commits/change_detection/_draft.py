"""Read what a root of the V4 draft records about its snapshot: statuses, and positions removed from leaves.

A commit that changes a data file lists the file again as MODIFIED. The previous entry is marked as REPLACED if it is in
the root; if it is in a leaf, its position is added to the leaf's ``replaced_positions`` (field id 7). The positions of
removed files are in ``deleted_positions`` (field id 6). The changes (to files, deletion vectors and column files) are
the difference between the entries that the commit took out and those that it put in.

Two kinds of roots must be compared with the parent's root instead: the roots of older writers, such as Delta Lake 4.4,
record no positions, and a root that drops whole manifests does not say where their entries went.
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
    """The entries that a snapshot took out of the metadata tree, and the entries that it put in.

    Attributes
    ----------
    before, after
        The entries taken out (``before``) and put in (``after``), each of data files and their deletion vectors.
    named
        Manifests that were read only for the names of files, because the root has the removed positions, or because all
        entries of the manifest are new.
    read
        Manifests that were read both for the names of files and for the statuses of entries.
    """

    before: list[pa.Table] = field(default_factory=list)
    after: list[pa.Table] = field(default_factory=list)
    named: list[Manifest] = field(default_factory=list)
    read: list[Manifest] = field(default_factory=list)

    @property
    def sides(self) -> tuple[pa.Table, pa.Table]:
        """The entries taken out, and the entries put in, as two tables."""
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
    Both have the row's position in the manifest as their ``ordinal``, by which the deletion vectors are found.
    """
    ordinals = numbers(entries["ordinal"])
    vectors = (numbers(entries["content_type"]) == ContentType.POSITION_DELETE) & np.isin(ordinals, ordinals[files])
    return entries.filter(pa.array(files | vectors))


def _positions(root: Manifest, rows: np.ndarray, kind: np.ndarray, snapshot: Snapshot) -> dict[int, BitMap] | None:
    """Return the positions that the snapshot removed from leaves; None if the root does not record all of them.

    The keys of the result are the leaves' rows in the root.
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
