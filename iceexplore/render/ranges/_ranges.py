"""Ranges of values on an axis, compared with a selected range: as plain data and as text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iceexplore.render import _escape as escape

__all__ = ["RangeCells", "RangeChart", "RangeStrip", "ranges_text", "spoken_ranges"]

_Ints = npt.NDArray[np.int64]
_WIDTH = 60  # the length of the axis in characters
_LINES = 24
_SHADES = " ░▒▓█"


@dataclass(frozen=True, eq=False)
class RangeCells:
    """Items grouped into cells by row and range; each attribute is a column with one value for each cell.

    Attributes
    ----------
    rows
        The number of rows of the picture (one number, not a column).
    row
        The index of the cell's row.
    first, last
        The index of the first stop (`RangeChart.positions`) that is not below the range, and the number of stops that
        are not above it.
    state
        The index of the items' class in `RangeChart.classes`.
    open
        0 if conditions other than the selected range exclude the items, else 1.
    count, size
        The number of items, and their total size in bytes.
    names
        The rows at which groups of rows begin, with the groups' names.
    items
        The item's number if each cell represents one item; None if a cell can represent several.
    """

    rows: int
    row: _Ints
    first: _Ints
    last: _Ints
    state: _Ints
    open: _Ints
    count: _Ints
    size: _Ints
    names: tuple[tuple[int, str], ...] = ()
    items: _Ints | None = None


@dataclass(frozen=True)
class RangeStrip:
    """Items that have no range: the reason as the name, and the number of items by class."""

    name: str
    counts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RangeChart:
    """A picture of ranges.

    Attributes
    ----------
    positions, labels
        The stops on the axis: their positions from 0 to 1, and their values as text.
    band
        The selected range: the indices of the stops at its ends, None for an open end.
    classes
        The names of the classes of items; the items of the first two are selected.
    legend
        A text that says what rows and lines mean.
    even
        Whether the stops are spaced evenly, whatever their values.
    """

    title: str
    description: str
    positions: tuple[float, ...]
    labels: tuple[str, ...]
    band: tuple[int | None, int | None]
    cells: RangeCells
    strips: tuple[RangeStrip, ...]
    classes: tuple[str, ...]
    legend: str = ""
    even: bool = False

    def spans(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the left and right end of each cell, from 0 to 1; a range without a stop in it is a single point."""
        places = np.array([0.0, *self.positions, 1.0])
        low, high = places[self.cells.first + 1], places[self.cells.last]
        inside = low <= high
        middle = (low + high) / 2
        return np.where(inside, low, middle), np.where(inside, high, middle)


def spoken_ranges(chart: RangeChart) -> str:
    """Return the picture's numbers as sentences, for screen readers."""
    counts = np.bincount(chart.cells.state, chart.cells.count.astype(np.float64), minlength=len(chart.classes))
    parts = [f"{int(n):,} {name}" for n, name in zip(counts, chart.classes, strict=True) if n]
    text = f"{chart.description} With a range: {', '.join(parts) or 'none'}."
    for strip in chart.strips:
        inner = [f"{n:,} {name}" for n, name in zip(strip.counts, chart.classes, strict=True) if n]
        text += f" {strip.name.capitalize()}: {', '.join(inner)}."
    if chart.labels:
        text += f" The axis is from {chart.labels[0]} to {chart.labels[-1]}."
    return text


def ranges_text(chart: RangeChart) -> str:
    """Return the picture as lines of text, with control characters made visible."""
    out = [escape.text(escape.shorten(chart.title, 300)), escape.text(escape.shorten(chart.description, 1000))]
    cells = chart.cells
    if cells.rows and chart.positions:
        lines = min(cells.rows, _LINES)
        low, high = chart.spans()
        grid = np.zeros((lines, _WIDTH + 1))
        line = cells.row * lines // cells.rows
        start = np.minimum((low * _WIDTH).astype(int), _WIDTH - 1)
        stop = np.minimum((high * _WIDTH).astype(int), _WIDTH - 1) + 1
        np.add.at(grid, (line, start), cells.count)
        np.subtract.at(grid, (line, stop), cells.count)
        depth = np.cumsum(grid, axis=1)[:, :_WIDTH]
        most = depth.max(initial=1)
        shade = np.ceil(depth / most * (len(_SHADES) - 1)).astype(int)
        band = ["─" if _in_band(chart, (x + 0.5) / _WIDTH) else " " for x in range(_WIDTH)]
        out += ["filter " + "".join(band).rstrip()]
        out += ["       " + "".join(_SHADES[n] for n in row).rstrip() for row in shade]
        ends = [escape.text(escape.shorten(chart.labels[i], 28)) for i in (0, -1)]
        out.append("       " + ends[0] + ends[1].rjust(max(len(ends[1]) + 1, _WIDTH - len(ends[0]))))
    for strip in chart.strips:
        inner = [f"{n:,} {name}" for n, name in zip(strip.counts, chart.classes, strict=True) if n]
        out.append(f"{strip.name}: {', '.join(inner)}")
    return "\n".join(out)


def _in_band(chart: RangeChart, x: float) -> bool:
    lower, upper = (None if at is None else chart.positions[at] for at in chart.band)
    if lower is None and upper is None:
        return False
    return (lower is None or x >= lower) and (upper is None or x <= upper)
