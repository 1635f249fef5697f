"""Draw a range map: a line per file, or a cell per group of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from iceexplore.render import RangeCells, RangeChart, RangeStrip

if TYPE_CHECKING:
    from iceexplore.planning.range_map._range_map import RangeMap

__all__ = ["cells_of", "drawn", "exact_cells"]

#: The maximum number of rows, of cells, and of the names of groups.
_ROWS, _CELLS, _NAMES = 48, 9000, 40
#: Rows, and how many stops are one, from fine to coarse: the first that gives few enough cells is drawn.
_COARSER = ((_ROWS, 1), (_ROWS, 2), (_ROWS, 4), (_ROWS, 8), (_ROWS // 2, 8), (_ROWS // 4, 8), (1, 8))
_Ints = npt.NDArray[np.int64]


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


def drawn(found: RangeMap) -> RangeChart:
    """Return the picture of a range map."""
    from iceexplore.planning.range_map._range_map import KINDS, VERDICTS

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
