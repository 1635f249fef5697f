"""Select the data files that a plan reads, by evaluating its filter on the entries of manifests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iceexplore.arrow import Int64s, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, Manifest, concat_batches, whole
from iceexplore.planning.evaluators._filter import Filter
from iceexplore.planning.scan._manifests import RootScan, candidates

__all__ = [
    "LeafScan",
    "Picked",
    "concat_selected",
    "count_leaf",
    "leaves_of",
    "parts_of",
    "pick",
    "pruned_of",
]


@dataclass(frozen=True)
class LeafScan:
    """Counts of the data files in one manifest: how many a scan without a filter would read, and how many are kept.

    The root, which lists the manifests, is a manifest list or V4 root manifest. A V4 root may list data files itself.
    They are counted like the files of one more manifest.

    Attributes
    ----------
    scan
        Index of the manifest's root among the plan's roots; 0 unless the plan is incremental.
    root_row
        Row number of the manifest in the root; None for the files that a V4 root lists itself.
    location
        Location of the manifest. For the files that a V4 root lists itself, the location of the root.
    length
        Size of the file at this location, in bytes; 0 if it could not be read.
    files, rows, bytes
        Number of the live data files, and the sums of their record counts and of their sizes in bytes. In an
        incremental plan, only files that one of the planned snapshots added are counted. If a damaged entry has no
        record count or size, 0 is added.
    kept_files, kept_rows, kept_bytes
        How many of these files, rows and bytes the plan reads.
    readable
        Whether all entries of the manifest could be read.
    """

    scan: int
    root_row: int | None
    location: str
    length: int
    files: int
    rows: int
    bytes: int
    kept_files: int
    kept_rows: int
    kept_bytes: int
    readable: bool


@dataclass(frozen=True)
class Picked:
    """The data files that a plan reads from one manifest.

    A V4 root may list data files itself. These are treated like the files of one more manifest.

    Attributes
    ----------
    leaf
        How many data files the manifest or root lists, and how many of them the plan reads.
    batch
        The manifest entries of the files that are read. The column ``ordinal`` is the position of the entry in the
        stored manifest.
    whole
        One boolean per file: whether metadata proves that every row matches the filter.
    """

    leaf: LeafScan
    batch: EntryBatch
    whole: pa.BooleanArray


def parts_of(columns: Collection[int]) -> frozenset[str]:
    """Return the names of those parts of a manifest that a scan has to decode.

    The result always contains ``entries`` and ``partition`` (the partition tuples). It also contains ``stats`` (the
    column metrics) unless ``columns`` is empty.

    Parameters
    ----------
    columns
        Field ids of the columns whose metrics the scan uses.
    """
    return frozenset({"entries", "partition", "stats"} if columns else {"entries", "partition"})


def leaves_of(
    state: TableState,
    scan: RootScan,
    parts: frozenset[str],
    rows: Iterable[int],
    columns: Collection[int] | None = None,
) -> Iterator[Manifest]:
    """Read the manifests in the given rows of a root, and yield them in the order of ``rows``.

    While the caller uses one manifest, threads read the next ones. If a V4 root lists files itself, the first
    `Manifest` is not one of these: it contains the root's own entries of files, and its ``root_row`` is None.

    Parameters
    ----------
    state
        The state of the table for which the scan is planned; its reader reads the manifests.
    scan
        The root (manifest list or V4 root manifest) that lists the manifests.
    parts
        The parts of a manifest to decode, such as ``entries``; see `parts_of`.
    rows
        Row numbers, in the root, of the manifests.
    columns
        Field ids of the columns whose metrics are needed if ``parts`` contains ``stats``; None for all columns.
    """
    direct = state.reader.direct(scan.root)
    if direct is not None:
        yield direct
    order = list(rows)
    if order:
        yield from state.reader.leaves(scan.root, order, parts=parts, columns=columns)


def pick(
    state: TableState, scan: RootScan, index: int, leaf: Manifest, wanted: Filter, columns: Iterable[int]
) -> Picked:
    """Select the data files of one manifest that may have a row that matches the filter.

    Parameters
    ----------
    state
        The planned state of the table.
    scan, index
        The root (manifest list or V4 root manifest) that lists the manifest, and the index of this root among the
        plan's roots.
    leaf
        The manifest, or the entries of the files that a V4 root lists itself.
    wanted
        The filter.
    columns
        Field ids of the columns whose metrics are kept with the selected files: the columns of the filter, and the
        columns that equality deletes compare.
    """
    batch = _filtered(EntryBatch.of(leaf, sorted(set(columns))), candidates(scan, leaf))
    may, must = wanted.evaluate(batch, state.metadata)
    kept = _filtered(batch, may)
    sure = must if len(kept) == len(batch) else must.filter(may)
    readable = not any(p.severity == "error" for p in leaf.problems)
    seen = LeafScan(
        index, leaf.root_row, leaf.location, leaf.length, *_counts(batch.entries), *_counts(kept.entries), readable
    )
    return Picked(seen, kept, sure)


def count_leaf(scan: RootScan, leaf: Manifest) -> tuple[int, int, int]:
    """Count the data files of one manifest that the plan would read if it had no filter.

    These are the live data files; in an incremental plan, only those that a planned snapshot added.

    Returns
    -------
    tuple
        The number of these files, and the sums of their record counts and of their sizes in bytes.
    """
    return _counts(leaf.entries.filter(candidates(scan, leaf)))


def _counts(entries: pa.Table) -> tuple[int, int, int]:
    rows, size = (int(pc.sum(entries[n]).as_py() or 0) for n in ("record_count", "file_size_in_bytes"))
    return entries.num_rows, rows, size


def pruned_of(state: TableState, scan: RootScan, leaf: Manifest, wanted: Filter) -> tuple[EntryBatch, Int64s]:
    """Find out which data files of a manifest are pruned by the filter.

    A plan keeps only the files that it reads, so this function evaluates the filter again to find the others.

    Returns
    -------
    tuple
        The entries of all data files that the plan would read if it had no filter, and the row numbers, among these
        entries, of the files that the filter prunes.
    """
    batch = _filtered(EntryBatch.of(leaf, wanted.stats_ids), candidates(scan, leaf))
    may, _ = wanted.evaluate(batch, state.metadata)
    return batch, pa.array(np.flatnonzero(~np.asarray(may)), pa.int64())


def concat_selected(picked: list[Picked]) -> tuple[EntryBatch, Int64s, pa.BooleanArray]:
    """Concatenate the files that were picked from several manifests.

    Returns
    -------
    tuple
        The manifest entries of the files, and two arrays with one element per file:

        - The row number, in the manifest list or V4 root manifest, of the manifest that lists the file; null for a file
          that a V4 root manifest lists itself.
        - Whether metadata proves that every row of the file matches the filter.
    """
    filled = [p for p in picked if len(p.batch)]
    ordinals = [whole(p.batch.entries["ordinal"]) for p in filled]
    batch = concat_batches(p.batch for p in filled)
    # An entry's ordinal is its position in the manifest that lists it. `concat_batches` replaced the ordinals by new
    # numbers from 0, so restore the original ones.
    if len(filled) > 1:
        batch = batch.with_columns(ordinal=pa.concat_arrays(ordinals))
    elif filled:
        batch = batch.with_columns(ordinal=ordinals[0])
    counts = [len(p.batch) for p in filled]
    rows = np.repeat(
        np.array([-1 if p.leaf.root_row is None else p.leaf.root_row for p in filled], dtype=np.int64), counts
    )
    sure = pa.concat_arrays([p.whole for p in filled]) if filled else pa.array([], pa.bool_())
    return batch, build.array(rows, mask=rows < 0), sure


def _filtered(batch: EntryBatch, mask: pa.BooleanArray) -> EntryBatch:
    """Return the entries for which the mask is true. If it is true for all, return the batch itself, not a copy."""
    return batch if mask.true_count == len(batch) else batch.filter(mask)
