"""The entries of all readable manifests, among which recovery looks for the files of lost manifests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.examination._examination import Examination, LeafPlace
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, Manifest, concat_batches, live
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["History", "PARTS", "Rows", "is_whole", "keys_of"]

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: The parts of an `EntryBatch` that are read from manifests. Recovery writes entries again, so it needs all of them.
PARTS = frozenset({"entries", "partition", "stats"})
#: Codes of problems of manifests that could be read only in part.
_PARTLY = frozenset({"manifest-salvaged", "file-truncated"})
_NUMBERS = ("partition_spec_id", "snapshot_id", "file_sequence_number", "record_count", "status")


def keys_of(entries: pa.Table) -> AnyArray:
    """Return, for each entry, a text that identifies its file: the location.

    Each deletion vector counts as a file of its own: its text has the location of the Puffin file and the offset in it.
    """
    offset = pc.struct_field(entries["deletion_vector"].combine_chunks(), "offset")
    location = entries["location"].combine_chunks()
    vector = pc.binary_join_element_wise(location, offset.cast(pa.string()), "#")
    return pc.if_else(offset.is_valid(), vector, location)


@dataclass(frozen=True)
class _Leaf:
    """One manifest, and where its entries can be found.

    Attributes
    ----------
    snapshots
        The ids of the snapshots that list the manifest.
    place
        Where a manifest list or root manifest lists the manifest, so that its entries can be read again; None for
        recovered entries.
    batch
        The recovered entries of a lost manifest; None for a manifest that is read from the table.
    """

    snapshots: frozenset[int]
    place: LeafPlace | None
    batch: EntryBatch | None = None


class History:
    """The entries of all readable manifests of all snapshots, as columns with one item per entry.

    Attributes
    ----------
    snapshots
        The snapshots by id.
    next_row_id
        The first unassigned row id. It is set before recovery, and increases as recovery assigns ids.
    keys
        For each distinct file, the text that identifies it (see `keys_of`).
    key
        For each entry, the index of its file in ``keys``; -1 if the file's location is unknown.
    locations
        The location of each entry's file.
    alive, deletes
        ``alive``: a mask of the live entries. ``deletes``: a mask of the entries of delete files and deletion vectors.
    spec, adder, number, records, status
        For each entry, its partition spec id, snapshot id, file sequence number, record count and status. Unknown
        record counts are 0, other unknown values are -1. The snapshot id of a DELETED entry is the id of the snapshot
        that deleted the file.
    """

    def __init__(self, state: TableState) -> None:
        self.state = state
        self.next_row_id = 0
        self.snapshots = {s.snapshot_id: s for s in state.metadata.snapshots}
        self._examination = Examination.of(state, list(self.snapshots.values()), "metadata")
        self._leaves: list[_Leaf] = []
        self._parts: list[pa.Table] = []
        #: Canonical locations of manifests whose entries are all known.
        self._whole: set[str] = set()
        self._missing: dict[str, frozenset[int]] = {}
        places = self._examination.leaf_places
        reader = self._examination.state.reader
        for place, leaf in zip(places, reader.leaves_of((p.root, p.row) for p in places), strict=True):
            name = canonical(leaf.location)
            if is_whole(leaf):
                self._whole.add(name)
            elif any(p.code == "file-missing" for p in leaf.problems):
                self._missing[name] = frozenset(place.snapshots)
            self._leaves.append(_Leaf(frozenset(place.snapshots), place))
            self._parts.append(_columns(leaf.entries))
        self._collect()

    def missing(self, snapshots: Collection[int]) -> set[str]:
        """Return the canonical locations of the manifests that do not exist, but that one of these snapshots lists."""
        return {name for name, listed in self._missing.items() if not listed.isdisjoint(snapshots)}

    def add(self, batch: EntryBatch, snapshots: frozenset[int], whole: Iterable[str]) -> None:
        """Add the recovered entries of a lost manifest, or of several that are recovered together.

        Parameters
        ----------
        batch
            The recovered entries.
        snapshots
            The ids of the snapshots that list the lost manifests.
        whole
            The canonical locations of the lost manifests if all their live entries are recovered; empty otherwise.
        """
        self._whole |= set(whole)
        self._leaves.append(_Leaf(snapshots, None, batch))
        self._parts.append(_columns(batch.entries))
        self._collect()

    def _collect(self) -> None:
        tables = self._parts or [_columns(EntryBatch.empty().entries)]
        lengths = [len(t) for t in tables]
        table = pa.concat_tables(tables).combine_chunks()
        self.locations: AnyArray = table["location"].combine_chunks()
        codes = table["key"].combine_chunks().dictionary_encode()
        self.keys: AnyArray = codes.dictionary
        self.key: Rows = np.asarray(pc.fill_null(codes.indices, -1)).astype(np.int64)
        self.leaf: Rows = np.repeat(np.arange(len(lengths)), lengths)
        self.at: Rows = np.concatenate([np.arange(n) for n in lengths]).astype(np.int64)
        self.alive: Mask = np.asarray(pc.fill_null(table["live"], False)) & (self.key >= 0)
        self.deletes: Mask = np.asarray(pc.not_equal(pc.fill_null(table["content_type"], 0), int(ContentType.DATA)))
        columns = [np.asarray(pc.fill_null(table[name], -1)).astype(np.int64) for name in _NUMBERS]
        self.spec, self.adder, self.number, records, self.status = columns
        self.records: Rows = np.maximum(records, 0)

    def listed_by(self, snapshots: Collection[int]) -> Mask:
        """Return a mask of this history's entries: those in manifests that at least one of these snapshots lists."""
        wanted = frozenset(snapshots)
        mine = np.array([not wanted.isdisjoint(one.snapshots) for one in self._leaves], bool)
        return mine[self.leaf] if len(self._leaves) else np.zeros(0, bool)

    def knows_all(self, snapshot_id: int, *, deletes: bool, besides: Collection[str] = ()) -> bool:
        """Return whether all data manifests (with ``deletes``, all delete manifests) of a snapshot are known.

        A manifest is known if it can be read completely, or was recovered completely.

        Parameters
        ----------
        besides
            Canonical locations of manifests to ignore.
        """
        root = self._examination.roots.get(snapshot_id)
        if root is None or not root.dialect:
            return False
        kind = ContentType.DELETE_MANIFEST if deletes else ContentType.DATA_MANIFEST
        some = root.entries.take(pa.array(live_manifests(root), pa.int64()))
        mine = some.filter(pc.equal(pc.fill_null(some["content_type"], int(ContentType.DATA_MANIFEST)), int(kind)))
        names = {canonical(name or "") for name in build.to_pylist(mine["location"])}
        return names <= self._whole.union(besides)

    def later_than(self, snapshots: Collection[int]) -> list[int]:
        """Return the ids of the snapshots, in any branch, that are later than the oldest of the given snapshots.

        Snapshots are ordered by sequence number. If sequence numbers are equal, as in version 1, timestamps decide.
        """

        def age(one: Snapshot) -> tuple[int, int]:
            return one.sequence_number or 0, one.timestamp_ms

        first = min(age(self.snapshots[i]) for i in snapshots)
        return [i for i, one in self.snapshots.items() if age(one) > first]

    def children(self, snapshots: Collection[int]) -> list[Snapshot]:
        """Return the snapshots whose parent is one of the given snapshots."""
        return [s for s in self.snapshots.values() if s.parent_snapshot_id in snapshots]

    def best(self, mask: Mask) -> Rows:
        """Return the row numbers of selected entries, only one for each file.

        Of several selected entries of the same file, a live one is preferred. The result is sorted.

        Parameters
        ----------
        mask
            A mask of the history's entries: those that are selected.
        """
        rows = np.flatnonzero(mask)
        rows = rows[np.argsort(~self.alive[rows], kind="stable")]
        return np.sort(rows[np.unique(self.key[rows], return_index=True)[1]])

    def fetch(self, rows: Rows) -> EntryBatch:
        """Return the entries with these row numbers, in this order, with their partition tuples and column metrics.

        A row number is an index into the columns of this history, such as ``key``.
        """
        parts: list[EntryBatch] = []
        order: list[Rows] = []
        for number in np.unique(self.leaf[rows]).tolist():
            mine = np.flatnonzero(self.leaf[rows] == number)
            one = self._leaves[number]
            batch = one.batch
            if batch is None:
                assert one.place is not None
                reader = self._examination.state.reader
                batch = EntryBatch.of(reader.leaf(one.place.root, one.place.row, PARTS))
            parts.append(batch.take(self.at[rows[mine]]))
            order.append(mine)
        if not parts:
            return EntryBatch.empty()
        return concat_batches([concat_batches(parts).take(np.argsort(np.concatenate(order)))])


def is_whole(leaf: Manifest) -> bool:
    """Return whether every entry of a manifest could be read."""
    return bool(leaf.dialect) and not any(p.code in _PARTLY for p in leaf.problems)


def _columns(entries: pa.Table) -> pa.Table:
    table = entries.select(["location", "content_type", *_NUMBERS])
    return table.append_column("key", keys_of(entries)).append_column("live", live(entries))
