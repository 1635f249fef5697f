"""Bars in a table: a row per thing, a column per measure, each column with a scale of its own. Also as plain text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain

from iceexplore.errors import OptionError
from iceexplore.render import _escape as escape

__all__ = ["Bar", "BarChart", "BarRow", "bars_text", "spoken"]

_CELLS = 12  # characters of a whole bar
_MAX_LABEL = 60


@dataclass(frozen=True)
class Bar:
    """One value of a row.

    Attributes
    ----------
    value
        The solid length.
    text
        The value in words: a bar is never alone.
    rest
        A pale length that follows: what was there before, say.
    """

    value: float
    text: str
    rest: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.rest) and self.value >= 0 and self.rest >= 0):
            raise OptionError(f"a bar of length {self.value} + {self.rest}: lengths are finite and not negative")


@dataclass(frozen=True)
class BarRow:
    """A row: its name, a smaller line under it, a bar (or None) per column, and a long form."""

    label: str
    note: str = ""
    bars: tuple[Bar | None, ...] = ()
    tooltip: str | None = None


@dataclass(frozen=True)
class BarChart:
    """A picture of bars.

    Attributes
    ----------
    columns
        Headings, one per bar of a row.
    solid, pale
        What the two parts of a bar mean; an empty ``pale`` where no bar has one.

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
        """Per column the longest bar's length; at least a tiny one."""
        out = []
        for i in range(len(self.columns)):
            lengths = [bar.value + bar.rest for row in self.rows if (bar := row.bars[i]) is not None]
            out.append(max([*lengths, 1e-9]))
        return out


def spoken(chart: BarChart) -> str:
    """Every number in a sentence per row: what a screen reader says instead of the picture."""
    rows = []
    for row in chart.rows:
        parts = [f"{name} {bar.text}" for name, bar in zip(chart.columns, row.bars, strict=True) if bar is not None]
        note = f" ({row.note})" if row.note else ""
        rows.append(f"{row.label}{note}: {', '.join(parts)}." if parts else f"{row.label}{note}.")
    return " ".join(chain([chart.description], rows)) if chart.description else " ".join(rows)


def bars_text(chart: BarChart) -> str:
    """The chart as lines, bars made of block characters; nothing in it can drive a terminal."""
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
    """Characters of a bar: something is never drawn as nothing."""
    return 0 if value <= 0 else max(1, round(_CELLS * value / scale))
