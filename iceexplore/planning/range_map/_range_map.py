"""The range of a column in each live file of a plan, the filter's range, the verdicts, and their picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.expressions import name_sql
from iceexplore.graph import human_bytes, to_frame
from iceexplore.planning.evaluators._column_metrics import Mask
from iceexplore.planning.range_map._live_files import LiveFiles
from iceexplore.planning.range_map._stops import Stops
from iceexplore.render import RangeCells, RangeChart, RangePicture, RangeStrip

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DRAWN", "KINDS", "RangeBy", "RangeMap", "VERDICTS", "cells_of", "exact_cells"]

#: What files are ordered by, from top to bottom.
RangeBy: TypeAlias = Literal["range", "partition", "snapshot"]
#: More files are counted per cell instead of drawn one by one.
DRAWN = 1500
_READ = 1
#: Verdicts of a plan, by number.
VERDICTS = (
    "read, all rows match",
    "read, rows filtered",
    "skipped with the manifest",
    "skipped by partition",
    "skipped by column metrics",
)
#: What is known about a file's values, by number.
KINDS = ("range", "no bounds", "only nulls")

#: The maximum number of rows, of cells, and of the names of groups.
_ROWS, _CELLS, _NAMES = 48, 9000, 40
#: Numbers of rows, and of stops to join into one, from fine to coarse. The first pair with few enough cells is drawn.
_COARSER = ((_ROWS, 1), (_ROWS, 2), (_ROWS, 4), (_ROWS, 8), (_ROWS // 2, 8), (_ROWS // 4, 8), (1, 8))
_Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class RangeMap(RangePicture):
    """Each live file as a bar from its lower to its upper bound of a column, beside the range that a filter selects.

    Many files are shown as a density. `lit` returns the files that the plan would read if the filter's range were
    another one; other conditions of the filter stay. The ends of bars are rounded to stops, the values between which an
    edge can be moved, so that a bar touches the filter's range exactly if the file is read for it.

    Attributes
    ----------
    title, column, filter
        The table's name, the column's name, and the filter.
    by
        What files are ordered by: ``range``, ``partition`` or ``snapshot``.
    stops
        Values of the column to which the filter's edges can be moved.
    labels, literals
        The stops as text and as SQL.
    lower, upper
        The stops of the filter's edges; None if there is none.
    rest
        The other conditions of the filter, as SQL; empty if there are none.
    first, last, kind
        One per file: the stops at which the upper edge begins, and the lower one stops, to read the file; and the index
        in `KINDS`.
    open
        One per file: whether the other conditions leave the file.
    verdict
        One per file: the index in `VERDICTS`.
    rows, bytes
        One per file.
    group, groups
        One per file, the number of its group; and the groups' names, in order.
    notes
        Limits of the picture: manifests that cannot be read, truncated bounds.
    """

    title: str
    column: str
    filter: str
    by: RangeBy
    stops: Stops
    labels: tuple[str, ...]
    literals: tuple[str, ...]
    lower: int | None
    upper: int | None
    rest: str
    first: _Ints
    last: _Ints
    kind: _Ints
    open: Mask
    verdict: _Ints
    rows: _Ints
    bytes: _Ints
    group: _Ints
    groups: tuple[str, ...]
    files: LiveFiles
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.verdict)

    @property
    def name(self) -> str:
        """The column as SQL."""
        return name_sql(self.column)

    def lit(self, lower: int | None, upper: int | None) -> Mask:
        """Return the files that a plan would read if the edges were at these stops; None is an open edge."""
        out = self.open.copy()
        if lower is not None:
            out &= self.last > lower
        if upper is not None:
            out &= self.first <= upper
        return out

    def filter_text(self, lower: int | None, upper: int | None) -> str:
        """Return the filter with its edges at these stops, which come first: the next map is of the same column."""
        return " and ".join(filter(None, [self.edge_text(lower, upper), self.rest])) or "true"

    def edge_text(self, lower: int | None, upper: int | None) -> str:
        """Return the conditions of edges at these stops."""
        edges = ((lower, self.stops.lower_ops), (upper, self.stops.upper_ops))
        return " and ".join(f"{self.name} {ops[at]} {self.literals[at]}" for at, ops in edges if at is not None)

    @cached_property
    def counts(self) -> pd.DataFrame:
        """One row per verdict: ``verdict``, ``files``, ``rows``, ``bytes``, ``no_bounds`` (files without a range)."""
        out = []
        for number, verdict in enumerate(VERDICTS):
            mine = self.verdict == number
            rows, size = (int(a[mine].sum()) for a in (self.rows, self.bytes))
            bare = int((mine & (self.kind > 0)).sum())
            out.append((verdict, int(mine.sum()), rows, size, bare))
        names = ("verdict", "files", "rows", "bytes", "no_bounds")
        return to_frame(pa.table(dict(zip(names, zip(*out, strict=True), strict=True))))

    @cached_property
    def order(self) -> _Ints:
        """The files with a range, from top to bottom: by group, then by where their ranges begin and end."""
        group = np.zeros(len(self), np.int64) if self.by == "range" else self.group
        places = np.lexsort((self.last, self.first, group))
        ranged: _Ints = places[self.kind[places] == 0]
        return ranged

    @property
    def is_binned(self) -> bool:
        """Whether files are counted per cell instead of drawn one by one."""
        return len(self.order) > DRAWN

    @cached_property
    def description(self) -> str:
        """What the plan reads, in a sentence."""
        read = self.verdict <= _READ
        size = human_bytes(int(self.bytes[read].sum()))
        text = f"{int(read.sum()):,} of {len(self):,} files are read for {self.filter}, {size}"
        bare = int((self.kind == 1).sum())
        return text + (f"; {bare:,} have no bounds of {self.column}" if bare else "")

    def chart(self) -> RangeChart:
        """Return the picture as plain data."""
        return _drawn(self)


def cells_of(found: RangeMap) -> RangeCells:
    """Return the files with a range as cells: one per file, or of many files one per row and range.

    Ranges are rounded outwards, and rows joined, as far as is necessary for few enough cells to be sent and drawn.
    """
    order = found.order
    if not found.is_binned:
        one = np.ones(len(order), np.int64)
        row = np.arange(len(order))
        state = found.verdict[order], found.open[order].astype(np.int64)
        names = _names(found.group[order], row, found.groups) if found.by != "range" else ()
        return RangeCells(
            len(order), row, found.first[order], found.last[order], *state, one, found.bytes[order], names, order
        )
    for rows, step in _COARSER:
        row = _rows(found, order, rows)
        # Rounded outwards; what is counted while dragging is not.
        first = found.first[order] // step * step
        last = np.minimum(-(-found.last[order] // step) * step, len(found.stops))
        made = _grouped(found, order, row, first, last)
        if len(made.row) <= _CELLS:
            break
    return made


def exact_cells(found: RangeMap) -> RangeCells:
    """Return all files with a range in one row: few enough cells to be exact, for counting."""
    order = found.order
    return _grouped(found, order, np.zeros(len(order), np.int64), found.first[order], found.last[order])


def _grouped(found: RangeMap, order: _Ints, row: _Ints, first: _Ints, last: _Ints) -> RangeCells:
    """Return a cell per row, range, verdict, and whether the other conditions leave the files."""
    keys = row, first, last, found.verdict[order], found.open[order].astype(np.int64)
    code = np.zeros(len(order), np.int64)
    for key in keys:
        code = code * (int(key.max(initial=0)) + 1) + key
    _, firsts, inverse = np.unique(code, return_index=True, return_inverse=True)
    files = np.bincount(inverse, minlength=len(firsts)).astype(np.int64)
    # In whole bytes a float is exact up to 2⁵³, beyond the sum of a table.
    size = np.bincount(inverse, found.bytes[order].astype(np.float64), minlength=len(firsts)).astype(np.int64)
    names = _names(found.group[order], row, found.groups) if found.by != "range" else ()
    at, low, high, verdict, open_ = (key[firsts] for key in keys)
    return RangeCells(int(row.max(initial=-1)) + 1, at, low, high, verdict, open_, files, size, names)


def _rows(found: RangeMap, order: _Ints, rows: int) -> _Ints:
    """Return the row of each file: a group each, or consecutive groups, or parts of equal size."""
    if found.by == "range":
        return np.arange(len(order)) * rows // max(1, len(order))
    dense = np.unique(found.group[order], return_inverse=True)[1]
    count = int(dense.max(initial=-1)) + 1
    return dense if count <= rows else dense * rows // count


def _names(group: _Ints, row: _Ints, groups: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Return the rows at which a group begins, with its name; only some if there are many."""
    if not len(group):
        return ()
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    starts = starts[np.unique(row[starts], return_index=True)[1]]
    step = -(-len(starts) // _NAMES)
    return tuple((int(row[i]), groups[int(group[i])]) for i in starts[::step].tolist())


def _drawn(found: RangeMap) -> RangeChart:
    """Return the picture of a range map."""
    strips = []
    for number, name in enumerate(KINDS):
        counts = np.bincount(found.verdict[found.kind == number], minlength=len(VERDICTS))
        if number and counts.any():
            strips.append(RangeStrip(name, tuple(counts.tolist())))
    what = {"range": "where their ranges begin", "partition": "partition", "snapshot": "the snapshot that added them"}
    unit = "darker: more files" if found.is_binned else "a line per file"
    return RangeChart(
        title=f"{found.title}: {found.column} in {len(found):,} files",
        description=". ".join((found.description, *(n.rstrip(".") for n in found.notes))) + ".",
        positions=found.stops.positions,
        labels=found.labels,
        band=(found.lower, found.upper),
        cells=cells_of(found),
        strips=tuple(strips),
        classes=VERDICTS,
        legend=f"From top to bottom by {what[found.by]}; {unit}.",
        even=found.stops.even,
    )
