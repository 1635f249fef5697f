"""Count the rows of a table: from metadata where that is exact, otherwise from as little data as possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError, concern_of
from iceexplore.expressions import ALWAYS, FilterLike
from iceexplore.graph import TableState, live_manifests
from iceexplore.manifests import bool_array, whole
from iceexplore.planning import FileTasks, Filter
from iceexplore.reading._scan import DATA_MANIFESTS, Doubts, checked_on_error, file_rows, planned
from iceexplore.reading._tasks import NO_DATA, TaskReader
from iceexplore.storage import in_order, is_local

__all__ = ["RowCount", "count_rows"]

_TOTALS = ("total-records", "total-data-files", "total-delete-files")
Mask = npt.NDArray[np.bool_]


class RowCount(int):
    """A number of rows, with the sources of the count.

    Attributes
    ----------
    files
        Data files that may hold matching rows.
    from_metadata
        Number of these files that were counted from manifests alone.
    from_deletes
        Number of these files for which position delete files or deletion vectors were read, but no data.
    read
        Number of these files whose data was read: only the columns that the filter and the equality deletes need.
    by_list
        Whether the manifest list was sufficient, so that no manifest was read.
    """

    files: int
    from_metadata: int
    from_deletes: int
    read: int
    by_list: bool

    @classmethod
    def of(cls, rows: int, *, from_metadata: int, from_deletes: int, read: int, by_list: bool = False) -> RowCount:
        """Build a count from its parts."""
        made = cls(rows)
        made.from_metadata, made.from_deletes, made.read = from_metadata, from_deletes, read
        made.by_list = by_list
        made.files = from_metadata + from_deletes + read
        return made

    def explain(self) -> str:
        """Describe the count in a sentence."""
        if self.by_list:
            return f"{int(self):,} rows in {self.files:,} data files: counted from the manifest list alone"
        return (
            f"{int(self):,} rows in {self.files:,} data files: {self.from_metadata:,} counted from manifests alone, "
            f"{self.from_deletes:,} with position deletes, {self.read:,} read"
        )


def count_rows(
    state: TableState,
    where: FilterLike | Filter | None = None,
    *,
    partition: Mapping[str, Any] | None = None,
    on_error: str = "raise",
) -> RowCount:
    """Return how many rows match; see `iceexplore.Table.count`."""
    skip = checked_on_error(on_error)
    listed = None if where is not None or partition is not None else _by_list(state)
    if listed is not None:
        return listed
    doubts = Doubts()
    plan = planned(state, where, partition, skip, doubts)
    tasks = plan.files
    reader = TaskReader(state, tasks, [])
    entries = tasks.files.entries
    is_data = ~bool_array(pc.equal(entries["file_format"], NO_DATA))
    for row in np.flatnonzero(~is_data).tolist():
        reader.is_data(row)
    matched, n = tasks.matched, len(tasks)
    counts = np.asarray(pc.fill_null(entries["record_count"], -1)).astype(np.int64)
    # Writers do not add files without rows. Check a count of 0 by reading the file: any rows in it would otherwise be
    # left out.
    exact = is_data & _unfiltered(tasks) & (counts > 0)
    deleted_from = np.zeros(n, dtype=bool)
    if len(matched):
        exact &= np.asarray(pc.list_value_length(matched.equality)) == 0
        # Read vectors, too: an entry's count may differ from the number of positions in the vector, and readers apply
        # the positions.
        deleted_from = bool_array(matched.vector.is_valid())
        deleted_from |= np.asarray(pc.list_value_length(matched.positions)) > 0
    plain = exact & ~deleted_from
    total = int(counts[plain].sum())
    through = exact & ~plain
    read = (is_data & ~exact).tolist()
    rows_through = np.flatnonzero(through).tolist()
    for row, deleted in zip(rows_through, _all_deleted(reader, rows_through, counts), strict=True):
        if deleted is None:
            read[row] = True  # count again by reading the file, which reports the problem
            through[row] = False
        else:
            total += int(counts[row]) - deleted
    rows = np.flatnonzero(np.array(read, dtype=bool)).tolist()
    total += sum(part.table.num_rows for _, part in file_rows(reader, rows, parallel=True, on_error=skip))
    doubts.warn(plan)
    return RowCount.of(total, from_metadata=int(plain.sum()), from_deletes=int(through.sum()), read=len(rows))


def _by_list(state: TableState) -> RowCount | None:
    """Return the row count of a remote table from its manifest list; None if manifests must be read to count.

    Manifests must be read if deletes may apply, if counts are missing, or if the list contradicts itself or the
    snapshot's summary: then the entries decide. Manifests are also read on a local disk, where reading costs next to
    nothing and reports faults, and for strict tables, where faults raise errors.
    """
    if is_local(state.storage.folder) or state.problems.strict:
        return None
    # Leave the count to a plan, which knows whether these problems concern files that it reads.
    if any(concern_of(p.code, p.field, p.severity) == "rows" for p in state.problems):
        return None
    root = state.root()
    if root is None or state.snapshot is None or not root.dialect.is_published or root.problems:
        return None
    if len(live_manifests(root, DATA_MANIFESTS)) != len(root):
        return None
    totals = [_number(state.snapshot.summary, name) for name in _TOTALS]
    if totals[2] != 0:
        return None
    sums = []
    for what in ("rows", "files"):
        stats = root.entries["manifest_stats"]
        counts = [whole(pc.struct_field(stats, f"{kind}_{what}_count")) for kind in ("added", "existing")]
        if any(c.null_count or (len(c) and pc.min(c).as_py() < 0) for c in counts):
            return None
        sums.append(sum(int(pc.sum(c).as_py() or 0) for c in counts))
    if sums != totals[:2]:
        return None
    return RowCount.of(sums[0], from_metadata=sums[1], from_deletes=0, read=0, by_list=True)


def _number(summary: Mapping[str, str] | None, name: str) -> int | None:
    text = (summary or {}).get(name, "")
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _unfiltered(tasks: FileTasks) -> Mask:
    """Return a mask of the tasks that have no residual filter."""
    nothing = np.array([r == ALWAYS for r in tasks.residuals], dtype=bool)
    unasked: Mask = bool_array(tasks.whole) | nothing[np.asarray(tasks.residual)]
    return unasked


def _all_deleted(reader: TaskReader, rows: list[int], counts: npt.NDArray[np.int64]) -> Iterator[int | None]:
    """Yield how many rows of each file are deleted by position, None if unreadable. Remote reads run in parallel."""

    def one(row: int) -> int | None:
        try:
            return reader.positions.count(row, int(counts[row]))
        except IceexploreError:
            return None

    storage = reader.state.storage
    if len(rows) < 2 or is_local(storage.folder):
        return map(one, rows)
    return in_order(one, rows, width=storage.readers, name="iceexplore-deletes")
