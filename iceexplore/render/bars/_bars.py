"""Bars in a table: a row for each item, and a column with its own scale for each measure; also as plain text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain

from iceexplore.errors import OptionError
from iceexplore.render import _escape as escape

__all__ = ["Bar", "BarChart", "BarRow", "bars_text", "spoken"]

_CELLS = 12  # the length of the longest bars in characters
_MAX_LABEL = 60


@dataclass(frozen=True)
class Bar:
    """One value of a row.

    Attributes
    ----------
    value
        Length of the solid part.
    text
        The value as text, always shown with the bar.
    rest
        Length of the pale part that follows, for example the earlier value.
    """

    value: float
    text: str
    rest: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.rest) and self.value >= 0 and self.rest >= 0):
            raise OptionError(f"a bar of length {self.value} + {self.rest}: lengths must be finite and not negative")


@dataclass(frozen=True)
class BarRow:
    """A row: its name, a smaller line under it, a bar (or None) per column, and a tooltip."""

    label: str
    note: str = ""
    bars: tuple[Bar | None, ...] = ()
    tooltip: str | None = None


@dataclass(frozen=True)
class BarChart:
    """A bar chart.

    Attributes
    ----------
    columns
        Headings, one for each bar of a row.
    solid, pale
        Legends of the two parts of a bar; ``pale`` is empty if no bar has a pale part.

    Raises
    ------
    OptionError
        A row has more or fewer bars than there are columns.
    """

    title: str
    description: str
    columns: tuple[str, ...]
    rows: tuple[BarRow, ...]
    solid: str = ""
    pale: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.bars) != len(self.columns):
                raise OptionError(f"the row {row.label!r} has {len(row.bars)} bars for {len(self.columns)} columns")

    def scales(self) -> list[float]:
        """Return the length of the longest bar of each column, which is greater than zero."""
        out = []
        for i in range(len(self.columns)):
            lengths = [bar.value + bar.rest for row in self.rows if (bar := row.bars[i]) is not None]
            out.append(max([*lengths, 1e-9]))
        return out


def spoken(chart: BarChart) -> str:
    """Return a sentence for each row with all its numbers, for screen readers."""
    rows = []
    for row in chart.rows:
        parts = [f"{name} {bar.text}" for name, bar in zip(chart.columns, row.bars, strict=True) if bar is not None]
        note = f" ({row.note})" if row.note else ""
        rows.append(f"{row.label}{note}: {', '.join(parts)}." if parts else f"{row.label}{note}.")
    return " ".join(chain([chart.description], rows)) if chart.description else " ".join(rows)


def bars_text(chart: BarChart) -> str:
    """Return the chart as text with bars of block characters, and control characters made visible."""
    scales = chart.scales()
    names = [escape.text(escape.shorten(row.label, _MAX_LABEL)) for row in chart.rows]
    cells = [[_cell(bar, scale) for bar, scale in zip(row.bars, scales, strict=True)] for row in chart.rows]
    heads = [escape.text(escape.shorten(c, 30)) for c in chart.columns]
    widths = [max([len(h), *(len(line[i]) for line in cells)]) for i, h in enumerate(heads)]
    first = max([0, *map(len, names)])
    out = [escape.text(escape.shorten(chart.title, 300))]
    if chart.description:
        out.append(escape.text(escape.shorten(chart.description, 1000)))
    if chart.rows:
        out.append("  ".join([" " * first, *(h.ljust(w) for h, w in zip(heads, widths, strict=True))]).rstrip())
    for row, name, line in zip(chart.rows, names, cells, strict=True):
        note = [escape.text(escape.shorten(row.note, 120))] if row.note else []
        out.append(
            "  ".join([name.ljust(first), *(c.ljust(w) for c, w in zip(line, widths, strict=True)), *note]).rstrip()
        )
    return "\n".join(out)


def _cell(bar: Bar | None, scale: float) -> str:
    if bar is None:
        return ""
    solid = _length(bar.value, scale)
    pale = max(0, min(_CELLS - solid, _length(bar.value + bar.rest, scale) - solid))
    picture = "█" * solid + "░" * pale
    return f"{picture.ljust(_CELLS)} {escape.text(escape.shorten(bar.text, 40))}"


def _length(value: float, scale: float) -> int:
    """Return a bar's length in characters, at least one for a positive value."""
    return 0 if value <= 0 else max(1, round(_CELLS * value / scale))
