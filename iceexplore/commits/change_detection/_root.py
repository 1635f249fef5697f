"""Read what a root of the V4 proposal records about its snapshot: statuses, and changes of manifest DVs.

The proposal describes the encodings of DV changes ("Brainstorming about detecting changes"). Only the root and
manifest DVs in Puffin files are read. The parent's root is read, too, if a manifest DV may have replaced an older one
that the snapshot's root does not list.

If what a root records can mean two things, the result assumes that the root follows the rules: ADDED files are new,
DELETED files were removed, and DELETED manifests were compacted (rules ``added-is-change``, ``deleted-entries``,
``leaf-change-by-dv``, ``compaction-existing``). A sentence in `RootReading.doubts` then explains why the result may be
wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._root_builder import numbers
from iceexplore.commits.model._options import DvEncoding
from iceexplore.graph import Removals, TableState
from iceexplore.manifests import ContentType, Manifest, Status, read_manifest_dv
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["DeletedManifests", "RootReading", "read_root"]

#: What a DELETED manifest means: its live entries were moved to other manifests ("compacted"), or dropped ("removed").
DeletedManifests = Literal["compacted", "removed"]

_FILES = (ContentType.DATA, ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
_MANIFESTS = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
#: Statuses of removed entries. A null status counts as EXISTING (`iceexplore.manifests.live`).
_GONE = (Status.DELETED, Status.REPLACED)


@dataclass
class RootReading:
    """The changes that one root records.

    Attributes
    ----------
    added_rows, removed_rows
        Row numbers, in the root, of the entries of added files and of removed files.
    added_leaves
        Row numbers, in the root, of the manifests whose live entries are all new.
    hidden, gone, back
        Positions of entries (`pyroaring.BitMap`) in each manifest, by the manifest's row in the root. ``hidden``:
        entries that a manifest DV already removes from an added manifest; ``gone``: removed entries; ``back``: entries
        that were removed earlier and are live again.
    puffins
        Puffin files from which manifest DVs were read.
    previous
        Location of the parent's root if that had to be read, otherwise None.
    doubts
        Reasons, as sentences, why the root can also be interpreted differently.
    """

    added_rows: np.ndarray
    removed_rows: np.ndarray
    added_leaves: list[int] = field(default_factory=list)
    hidden: dict[int, Any] = field(default_factory=dict)
    gone: dict[int, Any] = field(default_factory=dict)
    back: dict[int, Any] = field(default_factory=dict)
    puffins: list[str] = field(default_factory=list)
    previous: str | None = None
    doubts: list[str] = field(default_factory=list)


def read_root(
    state: TableState,
    root: Manifest,
    snapshot: Snapshot,
    dv_encoding: DvEncoding | None,
    deleted_manifests: DeletedManifests = "compacted",
) -> RootReading:
    """Read a snapshot's changes from its root.

    Parameters
    ----------
    root
        The snapshot's root, of the dialect ``v4-proposal``.
    dv_encoding
        How the writer records that a manifest DV changed; None if this is not known. With None or ``replace``, an ADDED
        manifest DV may have replaced an older DV of the same manifest that this root does not list. To find out, the
        parent's root is read. With ``removed``, this is necessary only for attached DVs, and with ``delta`` never.
    deleted_manifests
        What a DELETED manifest means: ``compacted``, as the rules require, or ``removed``, as in option 1 of the
        proposal's first scenario: "The diff can be computed from applying m1_dv on m1 and the remaining 3 entries are
        the newly deleted data files".
    """
    return _Reader(state, root, snapshot, dv_encoding, deleted_manifests).read()


class _Reader:
    def __init__(
        self,
        state: TableState,
        root: Manifest,
        snapshot: Snapshot,
        encoding: DvEncoding | None,
        deleted_manifests: DeletedManifests,
    ) -> None:
        self.state, self.root, self.snapshot, self.encoding = state, root, snapshot, encoding
        self.deleted_are_removed = deleted_manifests == "removed"
        entries = root.entries
        self.kind, self.status = numbers(entries["content_type"]), numbers(entries["status"])
        self.mine = numbers(entries["snapshot_id"]) == snapshot.snapshot_id
        files = np.isin(self.kind, _FILES)
        added, removed = files & (self.status == Status.ADDED), files & np.isin(self.status, _GONE)
        self.out = RootReading(np.flatnonzero(added), np.flatnonzero(removed))
        self.doubt_rows(files & (self.status == Status.EXISTING) & self.mine, "files of this snapshot are EXISTING")
        self.doubt_rows(
            (added | removed) & ~self.mine, "files are ADDED or DELETED but have the id of another snapshot"
        )

    def read(self) -> RootReading:
        manifests = np.flatnonzero(np.isin(self.kind, _MANIFESTS))
        names = [canonical(x) for x in self.texts("location", manifests)]
        gone = np.isin(self.status, _GONE)
        # If a manifest is listed twice, its live row is used: it is sorted last and so replaces the other row in the
        # mapping.
        places = dict(sorted(zip(names, manifests.tolist(), strict=True), key=lambda item: not gone[item[1]]))
        vectors = np.flatnonzero(self.kind == ContentType.MANIFEST_DV)
        by_leaf: dict[str, dict[int, list[int]]] = {}
        for row, name in zip(vectors.tolist(), self.texts("referenced_file", vectors), strict=True):
            by_leaf.setdefault(canonical(name), {}).setdefault(int(self.status[row]), []).append(row)
        bearing = np.asarray(pc.is_valid(self.root.entries["deletion_vector"]))
        for name in by_leaf.keys() - places.keys():
            if Status.ADDED in by_leaf[name]:
                self.out.doubts.append(f"An ADDED manifest DV references {name}, which is not in the root.")
        for name, row in places.items():
            rows = by_leaf.get(name, {})
            if self.status[row] == Status.ADDED:
                self.added_leaf(row, [*self.live_rows(rows), *([row] if bearing[row] else [])])
            elif gone[row]:
                self.deleted_leaf(row, rows, attached=bool(bearing[row]))
            else:
                self.kept_leaf(name, row, rows, attached=bool(bearing[row]))
        self.check_dropped(np.flatnonzero(gone & np.isin(self.kind, _MANIFESTS)), by_leaf, bearing)
        return self.out

    # Manifests --------------------------------------------------------------------------------------------------------

    def added_leaf(self, row: int, vectors: list[int]) -> None:
        self.out.added_leaves.append(row)
        if not self.mine[row]:
            self.out.doubts.append(f"{self.name(row)} is ADDED but has another snapshot's id.")
        old = self.count(row, "existing"), self.count(row, "deleted")
        if any(old):
            self.out.doubts.append(
                f"{self.name(row)} is ADDED, but {sum(n or 0 for n in old)} of its entries are not: "
                "they are new according to the root, but not according to their own statuses."
            )
        if vectors:
            self.out.hidden[row] = self.positions(vectors)
            self.out.doubts.append(f"{self.name(row)} is ADDED and has a manifest DV.")

    def deleted_leaf(self, row: int, rows: dict[int, list[int]], *, attached: bool) -> None:
        new = rows.get(Status.ADDED)
        if self.deleted_are_removed and not new:
            self.removed_leaf(row, [*(r for group in rows.values() for r in group), *([row] if attached else [])])
        if new:
            self.out.gone[row] = self.positions(new)
            self.out.doubts.append(f"{self.name(row)} is DELETED and has an ADDED manifest DV.")

    def removed_leaf(self, row: int, vectors: list[int]) -> None:
        """Record in ``self.out.gone`` that this snapshot removed the remaining entries of a DELETED manifest.

        Entries that the manifest's DVs remove are left out: earlier snapshots removed them. If the manifest's row in
        the root lacks counts, its number of entries is unknown. Then nothing is recorded, and a sentence in
        ``self.out.doubts`` explains this.

        Parameters
        ----------
        row
            The manifest's row in the root.
        vectors
            The rows of its DVs in the root; the manifest's own row if a DV is attached to it.
        """
        from pyroaring import BitMap

        counts = [self.count(row, name) for name in ("added", "existing", "deleted")]
        if None in counts:
            self.out.doubts.append(f"{self.name(row)} is DELETED, and it is unknown how many entries it has.")
            return
        stored = min(sum(n for n in counts if n is not None), 2**32)
        left = BitMap(range(stored)) - self.positions(vectors)
        if left:
            self.out.gone[row] = left

    def kept_leaf(self, name: str, row: int, rows: dict[int, list[int]], *, attached: bool) -> None:
        """Record which entries the snapshot removed from a manifest that it neither added nor removed as a whole.

        Parameters
        ----------
        name, row
            The manifest's location in canonical form, and its row in the root.
        rows
            The rows of its manifest DVs in the root, by their status. Attached DVs have no rows of their own.
        attached
            Whether a DV is attached to the manifest's row.
        """
        added, deleted = rows.get(Status.ADDED, []), rows.get(Status.DELETED, [])
        existing = rows.get(Status.EXISTING, [])
        if not (added or deleted or attached):
            return
        if added and not deleted and (existing or attached or self.encoding in ("removed", "delta")):
            # The previous DV is still listed, or there was none: all positions of the ADDED DV are newly removed.
            self.changed(row, self.positions(added), None)
        elif deleted:
            now = self.positions([*added, *existing, *([row] if attached else [])])
            self.changed(row, now, self.positions(deleted))
        elif added or self.encoding != "delta":
            self.against_previous(name, row, [*added, *existing, *([row] if attached else [])])

    def against_previous(self, name: str, row: int, vectors: list[int]) -> None:
        """Compare a manifest's DVs in this root with those in the parent's root, and record the entries newly removed.

        This is necessary if a DV is ADDED or attached, and this root does not list the older DV that it may have
        replaced. If the parent snapshot has expired, all entries that the DVs remove count as newly removed. Some of
        them may have been removed before, so a sentence about this is added to ``self.out.doubts``.

        Parameters
        ----------
        name, row
            The manifest's location in canonical form, and its row in this root.
        vectors
            The rows of its DVs in this root; the manifest's own row if a DV is attached to it.
        """
        if self.snapshot.parent_snapshot_id is None:
            self.changed(row, self.positions(vectors), None)
            return
        previous = self.previous
        if previous is None:
            self.changed(row, self.positions(vectors), None)
            text = f"Some entries that the manifest DV of {self.name(row)} removes may have been removed earlier"
            parent = self.snapshot.parent_snapshot_id
            self.out.doubts.append(f"{text}; the parent snapshot, {parent}, would show which, but has expired.")
            return
        before = self.previous_removals.of(name)
        if before.identity == self.removals.of(name).identity:
            return
        prior = self.positions(list(before.rows), previous)
        self.changed(row, self.positions(vectors), prior)

    def changed(self, row: int, now: BitMap, before: BitMap | None) -> None:
        gone = now if before is None else now - before
        if gone:
            self.out.gone[row] = gone
        if self.mine[row] and self.status[row] == Status.EXISTING and gone:
            self.out.doubts.append(f"{self.name(row)} was written by compaction but has a manifest DV.")
        if before is not None and before - now:
            self.out.back[row] = before - now
            self.out.doubts.append(f"Entries of {self.name(row)} were removed before and are live again.")

    def check_dropped(self, dropped: np.ndarray, by_leaf: dict[str, dict[int, list[int]]], bearing: np.ndarray) -> None:
        """Check whether the entries of DELETED manifests may have been removed instead of moved, or the reverse.

        If so, add a sentence about this to ``self.out.doubts``. There are two cases (`DeletedManifests`):

        - DELETED manifests are taken to be ``removed``, but this snapshot also wrote EXISTING manifests. It may have
          moved the entries to them.
        - DELETED manifests are taken to be ``compacted``, but they had more live entries than there are EXISTING
          entries in the EXISTING manifests that this snapshot wrote. The other entries were removed, or moved to an
          ADDED manifest.

        Data manifests and delete manifests are checked separately.

        Parameters
        ----------
        dropped
            The rows of the DELETED manifests in the root.
        by_leaf
            The manifest DVs that have a row of their own in the root. For each manifest, by its canonical location: the
            rows of its DVs, by the DVs' status.
        bearing
            For each row of the root, whether a DV is attached to it.
        """
        for kind in _MANIFESTS:
            if self.deleted_are_removed:
                new = np.flatnonzero((self.kind == kind) & self.mine & (self.status == Status.EXISTING))
                if len(new) and (self.kind[dropped] == kind).any():
                    text = "If this snapshot moved entries of DELETED manifests to EXISTING manifests, such as"
                    self.out.doubts.append(f"{text} {self.name(int(new[0]))}, then these entries were not removed.")
                continue
            left = 0
            for row in dropped[self.kind[dropped] == kind].tolist():
                counts = [self.count(row, name) for name in ("added", "existing")]
                vectors = [r for group in by_leaf.get(canonical(self.name(row)), {}).values() for r in group]
                removed = [self.root.entries["record_count"][r].as_py() for r in vectors]
                if bearing[row]:
                    removed.append(len(self.positions([row])))
                if None in counts or None in removed:
                    continue  # it is unknown how many entries this manifest had left
                left += sum(counts) - sum(removed)  # type: ignore[arg-type]
            new = np.flatnonzero((self.kind == kind) & self.mine & (self.status == Status.EXISTING))
            taken = sum(self.count(row, "existing") or 0 for row in new.tolist())
            if left > taken:
                text = f"{left - taken} entries of DELETED manifests are in no manifest written by compaction"
                self.out.doubts.append(f"{text}: they were removed, or moved to an ADDED manifest.")

    # Access to the roots ----------------------------------------------------------------------------------------------

    @cached_property
    def previous(self) -> Manifest | None:
        """The root of the parent snapshot, read on first use; None if there is no parent, or if it has expired."""
        parent = self.snapshot.parent_snapshot_id
        found = None if parent is None else self.state.metadata.snapshot(parent)
        if found is None:
            return None
        root = self.state.reader.root(found)
        self.out.previous = root.location
        return root

    @cached_property
    def removals(self) -> Removals:
        return Removals(self.root)

    @cached_property
    def previous_removals(self) -> Removals:
        assert self.previous is not None
        return Removals(self.previous)

    def positions(self, rows: Iterable[int], root: Manifest | None = None) -> BitMap:
        """Return the union of the positions that the manifest DVs in these rows of a root remove.

        Without ``root``, the DVs are read from the root of the snapshot whose changes are detected. The locations of
        the Puffin files that are read are added to ``self.out.puffins``.
        """
        from pyroaring import BitMap

        root = root or self.root
        out = BitMap()
        for row in rows:
            out |= read_manifest_dv(self.state.storage, root, row)
            if root.entries["deletion_vector"][row].as_py()["inline_content"] is None:
                self.out.puffins.append(root.entries["location"][row].as_py())
        return out

    def live_rows(self, rows: dict[int, list[int]]) -> list[int]:
        return [r for status, group in rows.items() if status not in _GONE for r in group]

    def doubt_rows(self, mask: np.ndarray, what: str) -> None:
        if mask.any():
            self.out.doubts.append(f"{int(mask.sum())} {what}: {self.name(int(np.flatnonzero(mask)[0]))}.")

    def texts(self, column: str, rows: np.ndarray) -> list[str]:
        return [x or "" for x in self.root.entries[column].take(pa.array(rows)).to_pylist()]

    def name(self, row: int) -> str:
        return str(self.root.entries["location"][row].as_py())

    def count(self, row: int, name: str) -> int | None:
        stats = self.root.entries["manifest_stats"][row].as_py() or {}
        found: int | None = stats.get(f"{name}_files_count")
        return found
