"""Draw cells as a standalone SVG, with one path for all cells that look alike, so that the file stays small."""

from __future__ import annotations

from iceexplore.render import _escape as escape
from iceexplore.render._measure import elide, text_width, wrapped
from iceexplore.render._mime import Svg
from iceexplore.render._svg_parts import MARGIN, Theme, chart_svg, check_theme
from iceexplore.render._svg_parts import number as _n
from iceexplore.render._svg_parts import text as _text
from iceexplore.render.cells._cells import CellMap, CellRow
from iceexplore.render.scenes._cells import CellBlock, cell_css, cell_paths, lines_of
from iceexplore.render.scenes._style import MARKS, PAPER, STYLE, style

__all__ = ["cells_svg"]

_WIDTH = 820.0
_GAP = 14.0
_LABEL, _NOTE = 12.0, 11.0
#: Maximum width of row names in pixels, for a map with one column (True) or with several (False).
_NAMES = {True: 270.0, False: 210.0}
#: Distance between cells, and size of a cell, in pixels, for a map with one column (True) or with several (False).
_PITCH = {True: 11.0, False: 8.0}
_SIZE = {True: 9.0, False: 6.5}


def cells_svg(cells: CellMap, *, theme: Theme = "auto") -> Svg:
    """Draw rows of cells.

    Parameters
    ----------
    theme
        ``auto`` follows the viewer's ``prefers-color-scheme``; ``light`` and ``dark`` are fixed.

    Raises
    ------
    OptionError
        The theme is unknown.
    """
    check_theme(theme)
    inner = _WIDTH - 2 * MARGIN
    count = max(1, len(cells.columns))
    one = count == 1
    names = min(_NAMES[one], max([40.0, *(_name_width(row) for row in cells.rows)])) if cells.rows else 0.0
    width = (inner - names - _GAP * count) / count
    lefts = [names + _GAP + i * (width + _GAP) for i in range(len(cells.columns))]
    parts = [_text(0, 13, elide(escape.visible(cells.title), 16, inner, bold=True), "ix-title", 16)]
    y = 22.0
    for line in _wrapped(cells.description, inner):
        parts.append(_text(0, y + 11, line, "ix-muted", 12))
        y += 16
    y += 10
    if any(cells.columns):
        heads = [_wrapped(head, width, 10.5) for head in cells.columns]
        for left, lines in zip(lefts, heads, strict=True):
            for i, line in enumerate(lines):
                parts.append(_text(left, y + 9 + 13 * i, line, "ix-muted ix-heading" if not i else "ix-muted", 10.5))
        y += 13 * max(map(len, heads)) + 6
    for row in cells.rows:
        parts.append(f'<path class="ix-rule" d="M0 {_n(y)}h{_n(inner)}"/>')
        notes = _wrapped(row.note, names, _NOTE) if row.note else []
        parts.append("<g>")
        parts.append(f"<title>{escape.svg(escape.shorten(f'{row.label}: {row.note}', 1000))}</title>")
        labels = _wrapped(row.label, names, _LABEL * 1.13)  # bold text is 13 % wider
        parts += [_text(0, y + 15 + 14 * i, line, "ix-label", _LABEL) for i, line in enumerate(labels)]
        below = y + 15 + 14 * len(labels)
        parts += [_text(0, below + 13 * i, line, "ix-muted", _NOTE) for i, line in enumerate(notes)]
        height = 6.0 + 14 * len(labels) + 13 * len(notes)
        for left, block in zip(lefts, row.blocks, strict=True):
            parts += cell_paths(block, left, y + 6, width, _PITCH[one], _SIZE[one])
            height = max(height, 12 + _PITCH[one] * lines_of(len(block), width, _PITCH[one]))
        parts.append("</g>")
        y += height + 4
    parts.append(f'<path class="ix-rule" d="M0 {_n(y)}h{_n(inner)}"/>')
    y += 12
    blocks = [block for row in cells.rows for block in row.blocks]
    drawn, y = _legend(blocks, cells.legend, y, inner)
    total = y + 2 * MARGIN
    spoken = ". ".join([cells.description, *(f"{row.label}: {row.note}" for row in cells.rows), *cells.legend])
    return chart_svg(cells.title, spoken, _css(theme, blocks), _WIDTH, total, [*parts, *drawn])


def _name_width(row: CellRow) -> float:
    label = text_width(escape.visible(escape.shorten(row.label, 200)), _LABEL, bold=True)
    return max(label, text_width(escape.visible(escape.shorten(row.note, 200)), _NOTE))


def _wrapped(content: str, limit: float, size: float = 12.0) -> list[str]:
    return wrapped(escape.visible(escape.shorten(content, 1000)), size, limit, 3) if content else []


def _legend(blocks: list[CellBlock], texts: tuple[str, ...], y: float, inner: float) -> tuple[list[str], float]:
    """Return the legend (a cell for each kind and each change, then texts), and the y coordinate at which it ends."""
    parts: list[str] = []
    x = 0.0

    def item(block: CellBlock, label: str) -> None:
        nonlocal x, y
        need = 16 + text_width(label, 11.5) + 18 + 11 * (len(block) - 1)
        if x and x + need > inner:
            x, y = 0.0, y + 18
        parts.extend(cell_paths(block, x, y + 2, 200, 11, 9))
        parts.append(_text(x + 16 + 11 * (len(block) - 1), y + 11, label, "ix-muted", 11.5))
        x += need

    seen = {block.names[k] for block in blocks for k in set(block.kinds)}
    for name in [kind for kind in STYLE if kind in seen]:
        item(CellBlock(bytes([4]), bytes(1), bytes(1), (name,)), style(name).title)
    for change, mark in ((1, "added"), (2, "removed")):
        if any(change in block.changes for block in blocks):
            label = MARKS["added" if mark == "added" else "removed"].title
            item(CellBlock(bytes([1]), bytes(1), bytes([change]), ("data-file",)), label)
    y += 18 if parts else 0
    for line in texts:
        for one in _wrapped(line, inner, 11.5):
            parts.append(_text(0, y + 11, one, "ix-muted", 11.5))
            y += 15
    return parts, y


def _css(theme: Theme, blocks: list[CellBlock]) -> str:
    kinds = {block.names[k] for block in blocks for k in set(block.kinds)} | {"data-file"}

    def rules(dark: bool) -> str:
        paper = PAPER["dark" if dark else "light"]
        return (
            f".ix-paper{{fill:{paper.paper}}}.ix-title,.ix-label{{fill:{paper.ink}}}"
            f".ix-muted{{fill:{paper.muted}}}.ix-rule{{stroke:{paper.line}}}{cell_css(dark, kinds)}"
        )

    base = (
        ".ix-title{font-weight:650}.ix-label{font-weight:600}.ix-rule{stroke-width:.6;opacity:.7}"
        ".ix-heading{font-weight:600}[class^=ix-cell]{stroke-width:.7}"
    )
    if theme == "auto":
        return f"{base}{rules(False)}@media (prefers-color-scheme:dark){{{rules(True)}}}"
    return base + rules(theme == "dark")
