"""Read the metadata of all live files in a plan's snapshot, including those that the plan skips."""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from iceexplore.arrow import Int64s, build
from iceexplore.arrow import compute as pc
from iceexplore.manifests import EntryBatch, concat_batches, whole
from iceexplore.planning.scan._files import leaves_of, parts_of
from iceexplore.planning.scan._manifests import candidates
from iceexplore.planning.scan._result import PlannedScan

__all__ = ["LiveFiles", "finished", "planned_rows", "read_live_files"]

T = TypeVar("T")

#: If there are more files than this, none of their locations are kept, because locations take much memory. The picture
#: then usually shows many files as one rectangle, for which no location is shown.
_MOST_NAMED = 5000


@dataclass(frozen=True, eq=False)
class LiveFiles:
    """All data files that a plan would read if it had no filter, in the order of the plan's roots and their manifests.

    A root is the manifest list or V4 root manifest of a snapshot. Only an incremental plan has several.

    Attributes
    ----------
    batch
        The entries of the files, with partition tuples and the metrics of the requested columns. Locations are null if
        there are more than `_MOST_NAMED` files: in the range map, which shows each file's range of a column's values,
        each is then too small for users to point at.
    root
        int64, one per file: the index of the file's root in ``plan.roots``.
    root_row
        int64, one per file: the row of the file's manifest in this root; -1 for a file that a V4 root lists itself.
    ordinal
        int64, one per file: the number of its entry in the manifest, or in the V4 root that lists it.
    unreadable
        The number of manifests with errors. Files that they list may be missing from `batch`.
    """

    batch: EntryBatch
    root: Int64s
    root_row: Int64s
    ordinal: Int64s
    unreadable: int = 0

    def __len__(self) -> int:
        return len(self.batch)


def read_live_files(plan: PlannedScan, columns: Collection[int]) -> Generator[str, None, LiveFiles]:
    """Read all data manifests, including those that the plan skips, and return the live data files that they list.

    The result includes data files that a V4 root lists itself. After each manifest, yield the progress as text. No data
    file is read.

    Parameters
    ----------
    columns
        Field ids of the columns whose metrics are read.
    """
    parts = parts_of(columns)
    batches: list[EntryBatch] = []
    places: list[tuple[int, int, int]] = []
    unreadable = 0
    manifests, read = sum(len(scan.rows) for scan in plan.roots), 0
    for index, scan in enumerate(plan.roots):
        for leaf in leaves_of(plan.state, scan, parts, scan.rows.tolist(), columns):
            batch = EntryBatch.of(leaf, sorted(columns)).filter(candidates(scan, leaf))
            if len(batch):
                batches.append(batch)
                places.append((index, -1 if leaf.root_row is None else leaf.root_row, len(batch)))
            if leaf.root_row is not None:
                read += 1
                unreadable += any(p.severity == "error" for p in leaf.problems)
                yield f"Reading bounds: {read:,} of {manifests:,} manifests"
    ordinals = [whole(b.entries["ordinal"]) for b in batches]
    if sum(count for _, _, count in places) > _MOST_NAMED:
        batches = [b.with_columns(location=None) for b in batches]
    counts = [count for _, _, count in places]
    root, root_row = (np.repeat(np.array([p[i] for p in places], dtype=np.int64), counts) for i in (0, 1))
    ordinal = np.asarray(pa.concat_arrays(ordinals)).astype(np.int64) if ordinals else np.zeros(0, np.int64)
    return LiveFiles(
        concat_batches(batches), build.array(root), build.array(root_row), build.array(ordinal), unreadable
    )


def finished(steps: Generator[str, None, T]) -> T:
    """Run a generator to its end, ignore the texts that it yields, and return its return value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def planned_rows(plan: PlannedScan, files: LiveFiles) -> Int64s:
    """Return the index in ``files`` of each data file that the plan reads, in the order of the plan's tasks.

    The plan's files are found in ``files`` by three numbers, not by location, because the locations in ``files`` may be
    null:

    1. the index, in ``plan.roots``, of the manifest list or V4 root manifest (an incremental plan has several of them),
    2. the row of the file's manifest in this manifest list or root manifest; -1 if the root manifest lists the file
       itself,
    3. the number of the file's entry in its manifest, or in the root manifest that lists it.

    Parameters
    ----------
    files
        All live files of the same plan, as `read_live_files` returns them.
    """
    if plan.appends is not None or len(plan.roots) != 1:
        known = {key: i for i, key in enumerate(zip(*(build.to_pylist(a) for a in _keys(files)), strict=True))}
        counts = [leaf.kept_files for leaf in plan.leaves]
        root = np.repeat(np.array([leaf.scan for leaf in plan.leaves], dtype=np.int64), counts).tolist()
        rows = build.to_pylist(pc.fill_null(plan.files.root_row, -1))
        ordinals = build.to_pylist(whole(plan.files.files.entries["ordinal"]))
        return pa.array([known[key] for key in zip(root, rows, ordinals, strict=True)], pa.int64())
    step = int(np.asarray(files.ordinal).max(initial=0)) + 1
    every = (np.asarray(files.root_row) + 1) * step + np.asarray(files.ordinal)
    own = np.asarray(pc.fill_null(plan.files.root_row, -1)).astype(np.int64)
    wanted = (own + 1) * step + np.asarray(whole(plan.files.files.entries["ordinal"])).astype(np.int64)
    order = np.argsort(every, kind="stable")
    return build.array(order[np.searchsorted(every[order], wanted)])


def _keys(files: LiveFiles) -> tuple[Int64s, Int64s, Int64s]:
    return files.root, files.root_row, files.ordinal
