"""Cells in rows: a row per group, a cell per item, shaded by a measure; as plain data and as text."""

from __future__ import annotations

from dataclasses import dataclass

from iceexplore.errors import OptionError
from iceexplore.render import _escape as escape
from iceexplore.render.scenes._cells import CellBlock

__all__ = ["CellMap", "CellRow", "cells_text"]

#: The shades in text, from pale to dark, and how added and removed items are marked.
_BLOCKS = "░░▒▒▓█"
_CHANGES = {1: "+", 2: "×"}
_MOST_TEXT = 60
_MOST_LABEL = 60


@dataclass(frozen=True)
class CellRow:
    """A group: its label, a smaller line under it, and its cells in each column."""

    label: str
    note: str
    blocks: tuple[CellBlock, ...]


@dataclass(frozen=True)
class CellMap:
    """Rows of cells.

    Attributes
    ----------
    columns
        Headings, one for each block of a row; a heading may be empty.
    legend
        What cells, shades and colours mean, a sentence each.

    Raises
    ------
    OptionError
        A row has more or fewer blocks than there are columns.
    """

    title: str
    description: str
    columns: tuple[str, ...]
    rows: tuple[CellRow, ...]
    legend: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.blocks) != len(self.columns):
                raise OptionError(f"the row {row.label!r} has {len(row.blocks)} blocks for {len(self.columns)} columns")


def cells_text(cells: CellMap) -> str:
    """Return the last column as text: a line per row, a character per cell, and control characters made visible."""
    out = [escape.text(escape.shorten(cells.title, 300))]
    out += [escape.text(escape.shorten(text, 1000)) for text in (cells.description, *cells.columns[-1:]) if text]
    names = [escape.text(escape.shorten(row.label, _MOST_LABEL)) for row in cells.rows]
    width = max([0, *map(len, names)])
    for row, name in zip(cells.rows, names, strict=True):
        picture = _line(row.blocks[-1])
        note = escape.text(escape.shorten(row.note, 200))
        out.append("  ".join([name.ljust(width), picture, note]).rstrip())
    return "\n".join([*out, *(escape.text(escape.shorten(line, 300)) for line in cells.legend)])


def _line(block: CellBlock) -> str:
    """Return a block as a line of characters; if it has too many cells, each character shows one of several cells.

    Of these, it shows the first that was added or removed, if there is one.
    """
    signs = [_CHANGES.get(change) or _BLOCKS[shade] for shade, change in zip(block.shades, block.changes, strict=True)]
    if len(signs) <= _MOST_TEXT:
        return "".join(signs)
    out = []
    for i in range(_MOST_TEXT):
        part = signs[i * len(signs) // _MOST_TEXT : (i + 1) * len(signs) // _MOST_TEXT]
        out.append(next((sign for sign in part if sign in _CHANGES.values()), part[0]))
    return "".join(out)
