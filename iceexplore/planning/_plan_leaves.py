"""The second level of a plan: the data files of the manifests that are left, judged one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, Manifest, concat_batches, whole
from iceexplore.planning._filter import Filter
from iceexplore.planning._plan_roots import RootScan, candidates

__all__ = ["LeafScan", "Picked", "leaves_of", "pick", "pruned_of", "united"]


@dataclass(frozen=True)
class LeafScan:
    """What a plan met in one manifest, or among the files that stand in a V4 root itself.

    Attributes
    ----------
    scan
        Its root: an index into the plan's roots.
    root_row
        Its row in the root; None for the root's own files.
    location
        The manifest, or the root.
    length
        Bytes of the manifest as read; 0 where it could not be read.
    files, rows, bytes
        Live data files in it, their rows and bytes. A count that a damaged entry lacks counts as 0.
    kept
        How many of them the plan reads.
    readable
        Whether all of its entries could be read.
    """

    scan: int
    root_row: int | None
    location: str
    length: int
    files: int
    rows: int
    bytes: int
    kept: int
    readable: bool


@dataclass(frozen=True)
class Picked:
    """The files of one manifest that a plan reads; `batch` keeps the entries' ordinals in their manifest."""

    leaf: LeafScan
    batch: EntryBatch
    whole: pa.BooleanArray


def leaves_of(state: TableState, scan: RootScan, wanted: Filter, rows: Iterable[int]) -> Iterator[Manifest]:
    """The root's own files first, as a leaf, then the manifests in these rows, read ahead in threads."""
    direct = state.reader.direct(scan.root)
    parts = frozenset({"entries", "partition", "stats"} if wanted.field_ids else {"entries", "partition"})
    order = list(rows)
    return chain(
        [] if direct is None else [direct], state.reader.leaves(scan.root, order, parts=parts) if order else ()
    )


def pick(state: TableState, scan: RootScan, index: int, leaf: Manifest, wanted: Filter) -> Picked:
    """Judge the files of one manifest.

    Parameters
    ----------
    index
        Of the root among the plan's roots.
    """
    mine = candidates(scan, leaf)
    batch = _filtered(EntryBatch.of(leaf, wanted.field_ids), mine)
    may, must = wanted.judge(batch, state.metadata)
    kept = _filtered(batch, may)
    seen = LeafScan(
        scan=index,
        root_row=leaf.root_row,
        location=leaf.location,
        length=leaf.length,
        files=len(batch),
        rows=pc.sum(batch.entries["record_count"]).as_py() or 0,
        bytes=pc.sum(batch.entries["file_size_in_bytes"]).as_py() or 0,
        kept=len(kept),
        readable=not any(p.severity == "error" for p in leaf.problems),
    )
    return Picked(seen, kept, must if len(kept) == len(batch) else must.filter(may))


def pruned_of(state: TableState, scan: RootScan, leaf: Manifest, wanted: Filter) -> tuple[EntryBatch, pa.Int64Array]:
    """The candidates of a manifest, and the rows of those that were pruned: judged again, for an explanation."""
    batch = _filtered(EntryBatch.of(leaf, wanted.field_ids), candidates(scan, leaf))
    may, _ = wanted.judge(batch, state.metadata)
    return batch, pa.array(np.flatnonzero(~np.asarray(may)), pa.int64())


def united(picked: list[Picked]) -> tuple[EntryBatch, pa.Int64Array, pa.BooleanArray]:
    """All files in order, the root row of the leaf of each, and which match wholly."""
    filled = [p for p in picked if len(p.batch)]
    ordinals = [whole(p.batch.entries["ordinal"]) for p in filled]
    batch = concat_batches(p.batch for p in filled)
    if len(filled) > 1:  # one batch is renumbered too
        batch = batch.with_columns(ordinal=pa.concat_arrays(ordinals))
    elif filled:
        batch = batch.with_columns(ordinal=ordinals[0])
    counts = [len(p.batch) for p in filled]
    rows = np.repeat(
        np.array([-1 if p.leaf.root_row is None else p.leaf.root_row for p in filled], dtype=np.int64), counts
    )
    sure = pa.concat_arrays([p.whole for p in filled]) if filled else pa.array([], pa.bool_())
    return batch, pa.array(rows, mask=rows < 0), sure


def _filtered(batch: EntryBatch, mask: pa.BooleanArray) -> EntryBatch:
    """Without a copy where nothing is left out."""
    return batch if mask.true_count == len(batch) else batch.filter(mask)
