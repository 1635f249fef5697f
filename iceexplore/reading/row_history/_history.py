"""Read a snapshot and its ancestors, and the manifests that they list, each manifest once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.formats import PUFFIN
from iceexplore.graph import Removals, TableState, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, Manifest, bool_array, live
from iceexplore.metadata import Snapshot, TableMetadata, ancestry
from iceexplore.storage import canonical

__all__ = ["DATA", "DELETES", "LeafKey", "Step", "file_keys", "is_damaged", "lineage", "read_leaves", "step_of"]

#: A manifest as a snapshot reads it: its location, and the manifest DVs that remove entries from it. For files that a
#: V4 root lists itself: the root's location, and None.
LeafKey = tuple[str, frozenset[str] | None]

DATA = frozenset({int(ContentType.DATA)})
DELETES = frozenset({int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE)})
_MANIFESTS = {DATA: frozenset({int(ContentType.DATA_MANIFEST)}), DELETES: frozenset({int(ContentType.DELETE_MANIFEST)})}


@dataclass(frozen=True, eq=False)
class Step:
    """One snapshot in a line of ancestors.

    Attributes
    ----------
    state
        The table at this snapshot, read with the schema of the queried state.
    """

    snapshot: Snapshot
    state: TableState

    @cached_property
    def root(self) -> Manifest:
        """The manifest list or root manifest; without entries if it cannot be read."""
        return self.state.reader.root(self.snapshot)

    @cached_property
    def readable(self) -> bool:
        """True if the root could be read completely."""
        return not is_damaged(self.root)

    @cached_property
    def data(self) -> Mapping[LeafKey, int]:
        """For each data manifest, the index of its row in the root; -1 for data files listed in a V4 root itself."""
        return self._keys(DATA)

    @cached_property
    def deletes(self) -> Mapping[LeafKey, int]:
        """For each delete manifest, the index of its row in the root; -1 for deletes listed in a V4 root itself."""
        return self._keys(DELETES)

    def _keys(self, kinds: frozenset[int]) -> dict[LeafKey, int]:
        contents = _MANIFESTS[kinds]
        if kinds == DELETES and self.root.dialect.deletion_vectors_on_entries:
            contents |= _MANIFESTS[DATA]
        rows, removals = live_manifests(self.root, contents), Removals(self.root)
        names = self.root.entries["location"].take(pa.array(rows, pa.int64())).to_pylist()
        found: dict[LeafKey, int] = {
            (canonical(name), removals.of(name).identity): row for name, row in zip(names, rows, strict=True) if name
        }
        direct = self.state.reader.direct(self.root)
        if direct is not None and _mask(direct, kinds).any():
            found[(canonical(self.root.location), None)] = -1
        return found


def lineage(metadata: TableMetadata, snapshot: Snapshot | None) -> list[Snapshot]:
    """Return a snapshot and those of its ancestors that are still in the metadata, oldest first."""
    return list(ancestry(metadata, snapshot))[::-1]


def step_of(state: TableState, snapshot: Snapshot) -> Step:
    """Return a step whose rows are read in the schema of `state`."""
    if state.snapshot is not None and state.snapshot.snapshot_id == snapshot.snapshot_id:
        return Step(snapshot, state)
    return Step(snapshot, state.showing(snapshot, state.schema, ref=None, travel=f"snapshot {snapshot.snapshot_id}"))


def is_damaged(manifest: Manifest) -> bool:
    """Return whether entries of a manifest may be missing because it could not be read completely."""
    return any(p.severity == "error" or p.code == "manifest-salvaged" for p in manifest.problems)


def read_leaves(
    step: Step,
    keys: Iterable[LeafKey],
    kinds: Collection[int],
    *,
    stats: Iterable[int] = (),
    partition: bool = True,
) -> Iterator[tuple[LeafKey, Manifest, EntryBatch]]:
    """Yield some manifests of a step, each with its live files of these content types.

    Parameters
    ----------
    kinds
        `DATA` or `DELETES`.
    stats
        The columns whose metrics are needed.
    """
    listed = step.data if kinds == DATA else step.deletes
    ids = list(stats)
    wanted = [(key, listed[key]) for key in keys]
    parts = {"entries"} | ({"stats"} if ids else set()) | ({"partition"} if partition else set())
    by_row = {row: key for key, row in wanted if row >= 0}
    for key, row in wanted:
        direct = step.state.reader.direct(step.root) if row < 0 else None
        if direct is not None:
            yield key, direct, _batch(direct, kinds, ids, partition)
    rows = sorted(by_row)
    for leaf in step.state.reader.leaves(step.root, rows, parts=frozenset(parts)) if rows else ():
        assert leaf.root_row is not None
        yield by_row[leaf.root_row], leaf, _batch(leaf, kinds, ids, partition)


def _batch(leaf: Manifest, kinds: Collection[int], ids: list[int], partition: bool) -> EntryBatch:
    batch = EntryBatch.of(leaf, ids) if partition or ids else EntryBatch(leaf.entries)
    mask = _mask(leaf, kinds)
    return batch if mask.all() else batch.filter(pa.array(mask))


def _mask(leaf: Manifest, kinds: Collection[int]) -> np.ndarray:
    types = pc.is_in(leaf.entries["content_type"], pa.array(sorted(kinds), pa.int32()))
    made: np.ndarray = bool_array(live(leaf.entries)) & bool_array(types)
    if kinds == DATA:  # leave out files without rows, which some writers list as data files (moonlink's indexes)
        made &= ~bool_array(pc.equal(leaf.entries["file_format"], PUFFIN.name))
    return made


def file_keys(entries: pa.Table) -> AnyArray:
    """Return keys that identify files: the location and, as vectors share Puffin files, a deletion vector's offset."""
    vector = entries["deletion_vector"].combine_chunks()
    offset = pc.struct_field(vector, "offset").cast(pa.string())
    joined = pc.binary_join_element_wise(
        entries["location"], offset, "\x1f", null_handling="replace", null_replacement=""
    )
    return joined.combine_chunks()
