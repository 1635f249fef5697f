"""Draw range maps: the range of a column in each live file, the filter's range, and which files the plan reads."""

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

#: The order in which the picture shows files, from top to bottom: by the column's lower bound in each file, by
#: partition, or by the snapshot that added the file.
RangeBy: TypeAlias = Literal["range", "partition", "snapshot"]
#: Up to this many files are drawn one by one. If there are more, similar files are drawn as one cell: a rectangle that
#: is darker if it represents more files. Only files with a known range of column values are drawn and counted here.
DRAWN = 1500
_READ = 1
#: Texts that state whether a plan reads a file, or why the plan skips it: the "verdict" on the file. `RangeMap.verdict`
#: has, for each file, an index in this tuple.
VERDICTS = (
    "read, all rows match",
    "read, rows filtered",
    "skipped with its manifest",
    "skipped by partition",
    "skipped by column metrics",
)
#: Texts that state what is known about the column's values in a file. ``range``: bounds of the values are known.
#: ``no bounds``: they are unknown. ``only nulls``: all values are null or NaN, so there are no bounds. `RangeMap.kind`
#: has, for each file, an index in this tuple.
KINDS = ("range", "no bounds", "only nulls")

#: Limits of the picture. If it shows more than `DRAWN` files, similar files are drawn as one rectangle (a cell). The
#: cells are in at most `_ROWS` horizontal rows, and there are at most `_CELLS` cells in all, if possible. Beside the
#: rows, at most `_NAMES` names of partitions or snapshots are written; this limit applies to any number of files.
_ROWS, _CELLS, _NAMES = 48, 9000, 40
#: Resolutions of the picture, from fine to coarse, as pairs: a maximum number of horizontal rows, and a step to which
#: the ranges of files are rounded. They are tried in this order until similar files form at most `_CELLS` rectangles
#: (cells); if none achieves this, the last one is used. The ends of a range are indices of values on the picture's
#: axis. With the step 4, the lower index is rounded down to a multiple of 4, and the upper one is rounded up, so that
#: more files have equal ranges and share a rectangle.
_COARSER = ((_ROWS, 1), (_ROWS, 2), (_ROWS, 4), (_ROWS, 8), (_ROWS // 2, 8), (_ROWS // 4, 8), (1, 8))
_Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class RangeMap(RangePicture):
    """A picture of the range of values that each live data file has in one column.

    A file is drawn as a horizontal bar from its lower to its upper bound. If more than `DRAWN` files have a range,
    similar files are merged into a cell, which is darker if it represents more files.

    A filter such as ``id >= 5 and id <= 9 and a = 1`` limits the column ``id`` to a range with two edges, 5 and 9. This
    range is drawn as a vertical band across all bars. Users can move its edges, but only to certain values, called
    stops. `lit` returns the files that the plan would then read; the other conditions, here ``a = 1``, do not change.

    The ends of the bars are moved to stops, too: a bar extends from the lowest to the highest stop within the file's
    bounds. If no stop is within them, it is a point between two stops. So a bar overlaps the band if, and only if, the
    plan would read the file for a filter that consists of the range alone.

    Attributes
    ----------
    title
        The table's name.
    column
        The column's name.
    filter
        The plan's filter, as text.
    by
        The order of the files, from top to bottom: ``range`` (by the start of their range), ``partition`` (by their
        partition) or ``snapshot`` (by the snapshot that added them).
    stops
        Values of the column to which the edges of the filter's range can be moved.
    labels, literals
        The stops as short texts for display, and as SQL literals.
    lower, upper
        The indices of the stops at the lower and upper edge of the filter's range; None for an edge that the filter
        lacks.
    rest
        The other conditions of the filter, as SQL; empty if there are none.
    partition
        If the plan was limited to one partition, the values of its partition fields, by field name; otherwise empty. An
        SQL filter cannot express this limit.
    first, last
        One per file: the file's range as indices of stops, from `first` up to, but not including, `last`. The plan
        skips the file if the upper edge of the filter's range is at a stop before `first`, or if the lower edge is at
        the stop `last` or after it.
    kind
        One per file: what is known about its values of the column, as an index in `KINDS`.
    open
        One per file: True if the plan would read the file for a filter without the range, that is, for `rest` and
        `partition` alone.
    verdict
        One per file: whether the plan reads it, or why the plan skips it, as an index in `VERDICTS`.
    rows, bytes
        One per file: its number of rows, and its size in bytes.
    group
        One per file: the index in `groups` of the file's partition or snapshot; 0 if `by` is ``range``.
    groups
        The names of the partitions or snapshots, from top to bottom; one empty name if `by` is ``range``.
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
        """The column's name as SQL, in quotes if it needs them."""
        return name_sql(self.column)

    def lit(self, lower: int | None, upper: int | None) -> Mask:
        """Return which files the plan would read if the filter's range of the column had the given limits.

        The filter's other conditions do not change.

        Parameters
        ----------
        lower, upper
            The lower and upper limit of the range, as indices of values in `stops`; None for no such limit. The range
            includes these values, with one exception: if the plan's own filter has, for example, ``id > 5``, a lower
            limit of 5 is not included.

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
        """Return the filter as SQL, with a new range of `column` in place of the filter's own range.

        The range comes first in the text, before the other conditions. If users plan with this text, the range map of
        the new plan shows the same column again, because by default, it shows the first column in the filter.

        If no condition remains, the text is ``true``.

        Parameters
        ----------
        lower, upper
            The ends of the new range, as indices in `stops`, the values to which users can move the ends; None if the
            range is open on that side.

        Raises
        ------
        OptionError
            The plan was limited to a partition, which cannot be part of the text.
        """
        text = " and ".join(filter(None, [self.edge_text(lower, upper), self.rest])) or "true"
        if self.partition:
            given = dict(self.partition)
            raise OptionError(
                f"the partition {given} cannot be part of the filter text: call plan({text!r}, partition={given})"
            )
        return text

    def edge_text(self, lower: int | None, upper: int | None) -> str:
        """Return a range of the column's values as SQL, such as ``id >= 5 and id <= 9``.

        Parameters
        ----------
        lower, upper
            The ends of the range: indices of stops in `stops`, the values at which a range can begin or end. None if
            the range is open on that side; if both are None, the text is empty.
        """
        edges = ((lower, self.stops.lower_ops), (upper, self.stops.upper_ops))
        return " and ".join(f"{self.name} {ops[at]} {self.literals[at]}" for at, ops in edges if at is not None)

    @cached_property
    def counts(self) -> pd.DataFrame:
        """A table that counts files by verdict: whether the plan reads a file, or why the plan skips it (`VERDICTS`).

        There is one row per verdict, with these columns:

        - ``verdict``: the verdict as text.
        - ``files``, ``rows``, ``bytes``: the number of files with this verdict, and their total rows and bytes.
        - ``no_bounds``: how many of these files have no range of the map's column, because its bounds are unknown or
          all its values are null or NaN.
        """
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
        """Indices of the files that are drawn, in their order from top to bottom.

        A file is drawn as the range from the lower to the upper bound of its values of `column`. Files whose range is
        unknown, or whose values are all null or NaN, are left out.

        If `by` is ``range``, files are sorted by the start of their range, then by its end. If `by` is ``partition`` or
        ``snapshot``, files of the same partition or snapshot come together, sorted among themselves in the same way.
        """
        group = np.zeros(len(self), np.int64) if self.by == "range" else self.group
        places = np.lexsort((self.last, self.first, group))
        ranged: _Ints = places[self.kind[places] == 0]
        return ranged

    @property
    def is_binned(self) -> bool:
        """True if the range of the column's values is known for more than `DRAWN` files.

        Similar files are then drawn as one rectangle (a cell). Otherwise, each file is drawn on its own.
        """
        return len(self.order) > DRAWN

    @cached_property
    def description(self) -> str:
        """A sentence: how many of the files, and how many bytes, the plan reads; and how many files have no bounds."""
        read = self.verdict <= _READ
        size = human_bytes(int(self.bytes[read].sum()))
        text = f"{int(read.sum()):,} of {len(self):,} files ({size}) are read for {self.filter}"
        bare = int((self.kind == 1).sum())
        return text + (f"; number of files without bounds of {self.column}, read or skipped: {bare:,}" if bare else "")

    def chart(self) -> RangeChart:
        """Return the data from which the picture is drawn: positions, rectangles that represent files, and texts."""
        return _drawn(self)


def cells_of(found: RangeMap) -> RangeCells:
    """Return the cells to draw for a range map: each is a rectangle that represents one or more files.

    Only files whose range of column values is known are drawn. If there are at most `DRAWN` of them, each file is a
    cell in a row of its own.

    Otherwise, the files are distributed over at most `_ROWS` rows. One cell represents all files with the same row, the
    same range, the same `RangeMap.verdict` (whether the plan reads the file, or why not) and the same `RangeMap.open`
    (whether the plan would read the file if the filter did not limit the column to a range). If this makes more than
    `_CELLS` cells, it is tried again with coarser ranges, then with fewer rows. A range goes from one stop (a value on
    the picture's axis) to another; a coarser range is rounded outwards to every 2nd, 4th or 8th stop. The last try has
    a single row, and its result is returned even if it has more cells.
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
        # The ends of a file's range are indices in `found.stops`, the values on the picture's axis. Round the lower
        # index down, and the upper index up, to a multiple of `step`, so that more files have equal ranges and are
        # drawn as one cell. The rounded ranges are only for drawing. To count the files that a plan reads,
        # `exact_cells` uses the exact ranges.
        first = found.first[order] // step * step
        last = np.minimum(-(-found.last[order] // step) * step, len(found.stops))
        made = _grouped(found, order, row, first, last)
        if len(made.row) <= _CELLS:
            break
    return made


def exact_cells(found: RangeMap) -> RangeCells:
    """Merge files of a range map into cells, from which the files that a plan would read can be counted exactly.

    A range map is a picture of the range of a column's values in each file: the range between the file's bounds. Users
    can also move the edges of the range to which the filter limits the column. Meanwhile, the number of files that the
    plan would read is computed from the cells. It must be exact, so the files' ranges are not rounded, as they may be
    in `cells_of`.

    A cell consists of all files with the same range, the same `RangeMap.verdict` (whether the plan reads the file, or
    why not) and the same `RangeMap.open` (whether the plan would read the file if the filter did not limit the column).
    Files without a known range are left out. The cells are not drawn, so the ``row`` of each (its row in the picture)
    is 0.
    """
    order = found.order
    return _grouped(found, order, np.zeros(len(order), np.int64), found.first[order], found.last[order])


def _grouped(found: RangeMap, order: _Ints, row: _Ints, first: _Ints, last: _Ints) -> RangeCells:
    """Merge files into cells, and count the files and bytes in each cell.

    A range map is a picture in which each file is drawn as the range of its values in one column. Files that look alike
    are merged: a cell consists of all files that are in the same row of the picture and have the same range, the same
    `RangeMap.verdict` (whether the plan reads the file, or why not) and the same `RangeMap.open` (whether the plan
    would read the file if the filter did not limit the column).

    Parameters
    ----------
    found
        The range map.
    order
        Indices, in the arrays of ``found``, of the files to merge.
    row
        For each file in ``order``, the row of the picture in which it is drawn; 0 if the cells are only for counting.
    first, last
        For each file in ``order``, the ends of its range, as indices in `RangeMap.stops` (the values on the picture's
        axis). The caller may have rounded the lower end down and the upper end up, so that more files have the same
        range.
    """
    keys = row, first, last, found.verdict[order], found.open[order].astype(np.int64)
    code = np.zeros(len(order), np.int64)
    for key in keys:
        code = code * (int(key.max(initial=0)) + 1) + key
    _, firsts, inverse = np.unique(code, return_index=True, return_inverse=True)
    files = np.bincount(inverse, minlength=len(firsts)).astype(np.int64)
    # With weights, `bincount` adds 64-bit floats. The sums of bytes are exact up to 2⁵³ (8 PiB) and approximate above.
    size = np.bincount(inverse, found.bytes[order].astype(np.float64), minlength=len(firsts)).astype(np.int64)
    names = _names(found.group[order], row, found.groups) if found.by != "range" else ()
    at, low, high, verdict, open_ = (key[firsts] for key in keys)
    return RangeCells(int(row.max(initial=-1)) + 1, at, low, high, verdict, open_, files, size, names)


def _rows(found: RangeMap, order: _Ints, rows: int) -> _Ints:
    """Distribute files over the rows of the picture, and return the index of each file's row.

    If the map orders files by range, all rows have about the same number of files. If it orders them by partition (or
    snapshot), each row has the files of one partition. If there are more than ``rows`` partitions, a row has the files
    of several consecutive ones.

    Parameters
    ----------
    order
        Indices of the files, from top to bottom.
    rows
        The maximum number of rows.
    """
    if found.by == "range":
        return np.arange(len(order)) * rows // max(1, len(order))
    dense = np.unique(found.group[order], return_inverse=True)[1]
    count = int(dense.max(initial=-1)) + 1
    return dense if count <= rows else dense * rows // count


def _names(group: _Ints, row: _Ints, groups: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Return the names of partitions (or snapshots) to write beside rows of the picture, as pairs of row and name.

    A row of the picture shows one or several files. The name of a partition is written beside the row that shows its
    first file. If several partitions begin in one row, only the name of the first one is written. If more than `_NAMES`
    names remain, only every second of them is written, or every third, and so on.

    Parameters
    ----------
    group
        For each file, from top to bottom, the index in ``groups`` of its partition or snapshot.
    row
        For each file, in the same order, the index of its row in the picture.
    groups
        The names of all partitions or snapshots.
    """
    if not len(group):
        return ()
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    starts = starts[np.unique(row[starts], return_index=True)[1]]
    step = -(-len(starts) // _NAMES)
    return tuple((int(row[i]), groups[int(group[i])]) for i in starts[::step].tolist())


def _drawn(found: RangeMap) -> RangeChart:
    """Convert a range map to a `RangeChart`, which has everything that is drawn: the axis, the cells and the texts.

    A cell is a line or rectangle that shows the range of one file, or of several similar files.
    """
    strips = []
    for number, name in enumerate(KINDS):
        counts = np.bincount(found.verdict[found.kind == number], minlength=len(VERDICTS))
        if number and counts.any():
            strips.append(RangeStrip(name, tuple(counts.tolist())))
    what = {
        "range": "the start of their range",
        "partition": "their partition",
        "snapshot": "the snapshot that added them",
    }
    unit = "darker: more files" if found.is_binned else "a line per file"
    return RangeChart(
        title=f"{found.title}: values of {found.column} in {len(found):,} files",
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
