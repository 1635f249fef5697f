"""How many rows a table has: of metadata where that is exact, else of as little data as tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.manifests import bool_array
from iceexplore.planning import ALWAYS, FileTasks
from iceexplore.reading._scan import checked_on_error, file_rows, planned
from iceexplore.reading._tasks import NO_DATA, TaskReader

__all__ = ["RowCount", "count_rows"]

Mask = npt.NDArray[np.bool_]


class RowCount(int):
    """A number of rows, and what it was told by.

    Attributes
    ----------
    files
        Data files that may hold such rows.
    from_metadata
        Those of them whose rows were counted by manifests alone.
    from_deletes
        Those of which position delete files or vectors were read, no data.
    read
        Those that were read: columns of the filter and of equality deletes, no more.
    """

    files: int
    from_metadata: int
    from_deletes: int
    read: int

    @classmethod
    def of(cls, rows: int, *, from_metadata: int, from_deletes: int, read: int) -> RowCount:
        """A count with its parts."""
        made = cls(rows)
        made.from_metadata, made.from_deletes, made.read = from_metadata, from_deletes, read
        made.files = from_metadata + from_deletes + read
        return made

    def explain(self) -> str:
        """A sentence."""
        return (
            f"{int(self):,} rows in {self.files:,} data files: {self.from_metadata:,} counted by manifests alone, "
            f"{self.from_deletes:,} by position deletes too, {self.read:,} read"
        )


def count_rows(state: TableState, where: Any = None, *, partition: Any = None, on_error: str = "raise") -> RowCount:
    """How many rows match; see `iceexplore.Table.count`."""
    skip = checked_on_error(on_error)
    tasks = planned(state, where, partition, skip)
    reader = TaskReader(state, tasks, [])
    entries = tasks.files.entries
    is_data = ~bool_array(pc.equal(entries["file_format"], NO_DATA))
    for row in np.flatnonzero(~is_data).tolist():
        reader.is_data(row)
    matched, n = tasks.matched, len(tasks)
    counts = np.asarray(pc.fill_null(entries["record_count"], -1)).astype(np.int64)
    # No writer adds a file without rows: a count of 0 is looked up in the file, for its rows would be left out.
    exact = is_data & _unfiltered(tasks) & (counts > 0)
    vector, by_position = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    gone = np.zeros(n, dtype=np.int64)
    if len(matched):
        exact &= np.asarray(pc.list_value_length(matched.equality)) == 0
        vector = bool_array(matched.vector.is_valid())
        by_position = np.asarray(pc.list_value_length(matched.positions)) > 0
        numbers = np.asarray(pc.fill_null(matched.vector, 0))
        cardinality = np.asarray(pc.fill_null(matched.deletes.entries["record_count"], -1)).astype(np.int64)
        if len(cardinality):
            gone[vector] = cardinality[numbers[vector]]
    sound = ~vector | ((gone >= 0) & (gone <= counts))
    plain = exact & ~by_position & sound
    total = int(counts[plain].sum() - gone[plain].sum())
    through = exact & ~plain
    read = (is_data & ~exact).tolist()
    for row in np.flatnonzero(through).tolist():
        try:
            total += int(counts[row]) - _deleted(reader, row, int(counts[row]))
        except IceexploreError:
            read[row] = True  # told again, as reading the file tells it
            through[row] = False
    rows = np.flatnonzero(np.array(read, dtype=bool)).tolist()
    total += sum(part.table.num_rows for _, part in file_rows(reader, rows, parallel=True, on_error=skip))
    return RowCount.of(total, from_metadata=int(plain.sum()), from_deletes=int(through.sum()), read=len(rows))


def _unfiltered(tasks: FileTasks) -> Mask:
    """The tasks of whose rows nothing is asked."""
    nothing = np.array([r == ALWAYS for r in tasks.residuals], dtype=bool)
    unasked: Mask = bool_array(tasks.whole) | nothing[np.asarray(tasks.residual)]
    return unasked


def _deleted(reader: TaskReader, row: int, rows: int) -> int:
    parts = [positions[positions < rows] for _, positions in reader.positions.of(row)]
    return len(np.unique(np.concatenate(parts))) if parts else 0
