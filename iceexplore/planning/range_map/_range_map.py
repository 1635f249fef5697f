"""Draw range maps: each live file's range of a column, the filter's range, and the plan's verdict on each file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.errors import OptionError
from iceexplore.expressions import name_sql
from iceexplore.graph import human_bytes, to_frame
from iceexplore.planning.evaluators._column_metrics import Mask
from iceexplore.planning.range_map._live_files import LiveFiles
from iceexplore.planning.range_map._stops import Stops
from iceexplore.render import RangeCells, RangeChart, RangePicture, RangeStrip

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DRAWN", "KINDS", "RangeBy", "RangeMap", "VERDICTS", "cells_of", "exact_cells"]

#: The order of files from top to bottom: by the start of their range, by partition, or by the snapshot that added them.
RangeBy: TypeAlias = Literal["range", "partition", "snapshot"]
#: If there are more files than this, they are counted per cell instead of drawn one by one.
DRAWN = 1500
_READ = 1
#: The verdicts of a plan on a file, each stored as its index in this tuple.
VERDICTS = (
    "read, all rows match",
    "read, rows filtered",
    "skipped with the manifest",
    "skipped by partition",
    "skipped by column metrics",
)
#: What is known about a file's values of the column: a range, nothing, or that all are null. It is stored as the index
#: in this tuple.
KINDS = ("range", "no bounds", "only nulls")

#: If files are counted per cell, a picture has at most this many rows and, if possible, at most this many cells. The
#: third number limits the names of groups (partitions or snapshots) that are written beside the rows of any picture.
_ROWS, _CELLS, _NAMES = 48, 9000, 40
#: Resolutions from fine to coarse: number of rows, and number of stops that are merged into one. The first resolution
#: with at most `_CELLS` cells is drawn.
_COARSER = ((_ROWS, 1), (_ROWS, 2), (_ROWS, 4), (_ROWS, 8), (_ROWS // 2, 8), (_ROWS // 4, 8), (1, 8))
_Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class RangeMap(RangePicture):
    """A picture of each live file's range of values in one column, with the filter's range of this column as a band.

    A file is drawn as a bar from its lower to its upper bound. More than `DRAWN` files are merged into cells, which are
    darker where there are more files.

    Users can move the edges of the filter's range, but only to certain values, called stops; `lit` returns the files
    that the plan would then read, with the filter's other conditions unchanged. Bars, too, begin and end at stops. They
    are drawn such that a bar overlaps the band exactly if the plan would read the file for a filter that consists of
    the range alone.

    Attributes
    ----------
    title, column, filter
        The table's name, the column's name, and the filter.
    by
        The order of files: by the start of their ``range``, by ``partition`` or by ``snapshot``.
    stops
        Values of the column to which the filter's edges can be moved.
    labels, literals
        The stops as short texts for display, and as SQL literals.
    lower, upper
        The indices of the stops at the lower and upper edge of the filter's range; None for an edge that the filter
        lacks.
    rest
        The other conditions of the filter, as SQL; empty if there are none.
    partition
        If the plan was limited to a partition, its values by name of the partition field; otherwise empty. An SQL
        filter cannot contain such a limit.
    first, last
        One per file: the file's range as indices of stops. If the upper edge of the filter's range is at a stop before
        `first`, the plan skips the file. It also skips the file if the lower edge is at the stop `last` or after it.
    kind
        One per file: the index in `KINDS`.
    open
        One per file: False if the filter's other conditions alone make the plan skip the file.
    verdict
        One per file: the index in `VERDICTS`.
    rows, bytes
        One per file: its number of rows, and its size in bytes.
    group
        One per file: the index in `groups` of the file's partition or snapshot; 0 if `by` is ``range``.
    groups
        The names of the partitions or snapshots, in the order of the picture.
    files
        The metadata of the files.
    notes
        Sentences on the limits of the picture: manifests that could not be read in full, bounds that seem truncated, or
        a column without bounds.
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
    partition: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.verdict)

    @property
    def name(self) -> str:
        """The column as SQL."""
        return name_sql(self.column)

    def lit(self, lower: int | None, upper: int | None) -> Mask:
        """Return which files the plan would read if the edges of the filter's range were at these stops.

        The filter's other conditions do not change.

        Parameters
        ----------
        lower, upper
            Indices of the stops at the lower and upper edge; None if the range has no edge on this side.

        Returns
        -------
        numpy.ndarray
            One boolean per file.
        """
        out = self.open.copy()
        if lower is not None:
            out &= self.last > lower
        if upper is not None:
            out &= self.first <= upper
        return out

    def filter_text(self, lower: int | None, upper: int | None) -> str:
        """Return the filter as SQL, with the edges of its range moved to these stops.

        The range comes first in the text, because a new map for this filter shows the filter's first column by default.

        Parameters
        ----------
        lower, upper
            Indices of the stops at the lower and upper edge; None for no edge. If no condition remains, the text is
            ``true``.

        Raises
        ------
        OptionError
            The plan was limited to a partition, which cannot be part of the text.
        """
        text = " and ".join(filter(None, [self.edge_text(lower, upper), self.rest])) or "true"
        if self.partition:
            given = dict(self.partition)
            raise OptionError(f"partition {given} cannot be part of a text: plan {text!r} with partition={given}")
        return text

    def edge_text(self, lower: int | None, upper: int | None) -> str:
        """Return the range with its edges at these stops as SQL, such as ``id >= 5 and id <= 9``.

        Parameters
        ----------
        lower, upper
            Indices of the stops at the lower and upper edge; None for no edge. If both are None, the text is empty.
        """
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
        """Indices of the files with a range, from top to bottom: by group, then by start and end of their range."""
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
        """A sentence on the files that the plan reads."""
        read = self.verdict <= _READ
        size = human_bytes(int(self.bytes[read].sum()))
        text = f"{int(read.sum()):,} of {len(self):,} files ({size}) are read for {self.filter}"
        bare = int((self.kind == 1).sum())
        return text + (f"; {bare:,} have no bounds of {self.column}" if bare else "")

    def chart(self) -> RangeChart:
        """Return the picture as plain data."""
        return _drawn(self)


def cells_of(found: RangeMap) -> RangeCells:
    """Return the cells of the picture, which represent the files that have a range.

    For up to `DRAWN` files, each file is a cell in a row of its own.

    If there are more files, they are distributed over at most `_ROWS` rows, and files with the same row, range, verdict
    and `RangeMap.open` are counted in one cell. While there are more than `_CELLS` cells, this is repeated with ranges
    that are rounded outwards to every 2nd, 4th or 8th stop, then with fewer rows. With a single row, any number of
    cells is accepted.
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
        # Ranges are rounded outwards for the picture only. To count the files that are read while a user moves an edge,
        # `exact_cells` returns exact ranges.
        first = found.first[order] // step * step
        last = np.minimum(-(-found.last[order] // step) * step, len(found.stops))
        made = _grouped(found, order, row, first, last)
        if len(made.row) <= _CELLS:
            break
    return made


def exact_cells(found: RangeMap) -> RangeCells:
    """Count the files by range, verdict and `RangeMap.open`, and return each combination that occurs as a cell.

    While a user moves an edge of the filter's range, the number of files that the plan would read is computed from
    these cells. Therefore, unlike in `cells_of`, ranges are not rounded. All cells are in row 0. Files without a range
    are left out.
    """
    order = found.order
    return _grouped(found, order, np.zeros(len(order), np.int64), found.first[order], found.last[order])


def _grouped(found: RangeMap, order: _Ints, row: _Ints, first: _Ints, last: _Ints) -> RangeCells:
    """Merge the files with the same row, range, verdict and `RangeMap.open` into one cell each, and count them.

    Parameters
    ----------
    order
        Indices of the files to count.
    row, first, last
        For each file in ``order``, the row of the picture in which it is drawn, and its range as indices of stops. The
        range may be rounded.
    """
    keys = row, first, last, found.verdict[order], found.open[order].astype(np.int64)
    code = np.zeros(len(order), np.int64)
    for key in keys:
        code = code * (int(key.max(initial=0)) + 1) + key
    _, firsts, inverse = np.unique(code, return_index=True, return_inverse=True)
    files = np.bincount(inverse, minlength=len(firsts)).astype(np.int64)
    # `bincount` adds floats. They are exact for whole numbers up to 2⁵³, more bytes than any table has.
    size = np.bincount(inverse, found.bytes[order].astype(np.float64), minlength=len(firsts)).astype(np.int64)
    names = _names(found.group[order], row, found.groups) if found.by != "range" else ()
    at, low, high, verdict, open_ = (key[firsts] for key in keys)
    return RangeCells(int(row.max(initial=-1)) + 1, at, low, high, verdict, open_, files, size, names)


def _rows(found: RangeMap, order: _Ints, rows: int) -> _Ints:
    """Return the row in the picture of each file in ``order``, for at most ``rows`` rows.

    If files are ordered by range, each row gets equally many files. If they are in groups, a row is one group or, if
    there are more groups than rows, several consecutive groups.
    """
    if found.by == "range":
        return np.arange(len(order)) * rows // max(1, len(order))
    dense = np.unique(found.group[order], return_inverse=True)[1]
    count = int(dense.max(initial=-1)) + 1
    return dense if count <= rows else dense * rows // count


def _names(group: _Ints, row: _Ints, groups: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Return the names to write beside the rows of the picture, as pairs of row and name.

    A row gets a name if a group of files begins in it; if several begin there, the name is that of the first. If there
    are more than `_NAMES` such rows, only every second of them, or every third and so on, gets its name.

    Parameters
    ----------
    group, row
        For each drawn file, in the order of the picture, the index of its group in ``groups``, and its row.
    groups
        The names of the groups.
    """
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
    what = {"range": "the start of their range", "partition": "partition", "snapshot": "the snapshot that added them"}
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
        legend=f"Files from top to bottom by {what[found.by]}; {unit}.",
        even=found.stops.even,
    )
