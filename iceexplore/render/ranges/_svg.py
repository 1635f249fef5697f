"""Draw ranges as a standalone SVG: light and dark colours, no script, no ids."""

from __future__ import annotations

import numpy as np

from iceexplore.render import _escape as escape
from iceexplore.render._measure import elide, text_width, wrapped
from iceexplore.render._mime import Svg
from iceexplore.render._svg_parts import MARGIN, Theme, chart_svg, check_theme, check_width, number
from iceexplore.render._svg_parts import text as _text
from iceexplore.render.ranges._ranges import RangeChart, spoken_ranges
from iceexplore.render.scenes._style import PAPER

__all__ = ["ranges_svg"]

_TEXT = 11.0
_TICKS = 6
_LEAST, _MOST = 120.0, 460.0
_LINE = 7.0
_NAMES = 0.2
_STRIP = 18.0
#: Colours of the classes in light and dark themes, strong for selected items and pale for the others.
_COLOURS = {
    "light": ("#0b5c94", "#2f86c5", "#a8793a", "#7a9a4c", "#98a3b0"),
    "dark": ("#7cc7f5", "#3f97d3", "#c79a5e", "#93b565", "#76828f"),
}
_HEIGHTS = (1.0, 1.0, 0.3, 0.45, 0.6)


def ranges_svg(chart: RangeChart, *, theme: Theme = "auto", width: float = 800.0) -> Svg:
    """Draw ranges with a title, an axis and a legend.

    Parameters
    ----------
    theme
        ``auto`` follows the viewer's ``prefers-color-scheme``; ``light`` and ``dark`` are fixed.
    width
        Width of the picture in pixels, at least 400.

    Raises
    ------
    OptionError
        The theme is unknown, or the width out of range.
    """
    check_theme(theme)
    check_width(width)
    inner = width - 2 * MARGIN
    parts = [_text(0, 13, elide(escape.visible(chart.title), 16, inner, bold=True), "ix-title", 16)]
    y = 22.0
    for line in wrapped(escape.visible(escape.shorten(chart.description, 1000)), 12, inner, 3):
        parts.append(_text(0, y + 11, line, "ix-muted", 12))
        y += 16
    y += 10
    named = [name for _, name in chart.cells.names]
    left = min(inner * _NAMES, max([0.0, *(text_width(escape.visible(n[:200]), _TEXT) + 8 for n in named)]))
    if chart.strips:
        left = max(left, 76.0)
    plot = inner - left
    height = min(_MOST, max(_LEAST, chart.cells.rows * _LINE)) if chart.cells.rows and chart.positions else 0.0
    if height:
        parts += _plot(chart, left, y, plot, height)
        y += height
        parts += _axis(chart, left, y, plot)
        y += 26
    for strip in chart.strips:
        parts += _strip(strip.name, strip.counts, chart, left, y, plot)
        y += _STRIP + 4
    y += 6
    legend, y = _legend(chart, y, inner)
    parts += legend
    total = y + 2 * MARGIN
    return chart_svg(chart.title, spoken_ranges(chart), _css(theme), width, total, parts)


def _n(value: float) -> str:
    return number(value, 2)


def _plot(chart: RangeChart, left: float, top: float, width: float, height: float) -> list[str]:
    cells = chart.cells
    out = [f'<rect class="ix-plot" x="{_n(left)}" y="{_n(top)}" width="{_n(width)}" height="{_n(height)}"/>']
    lower, upper = (None if at is None else chart.positions[at] for at in chart.band)
    if lower is not None or upper is not None:
        x0, x1 = (left + width * p for p in (lower or 0.0, 1.0 if upper is None else upper))
        out.append(
            f'<rect class="ix-band" x="{_n(x0)}" y="{_n(top)}" width="{_n(max(1.5, x1 - x0))}" height="{_n(height)}"/>'
        )
        for x in ([x0] if lower is not None else []) + ([x1] if upper is not None else []):
            out.append(f'<path class="ix-edge" d="M{_n(x)} {_n(top - 4)}v{_n(height + 8)}"/>')
    row_height = height / cells.rows
    low, high = chart.spans()
    starts = left + width * low
    lengths = np.maximum(2.0, width * (high - low))
    if cells.items is None:
        out += _density(chart, left, top, width, row_height)
    else:
        for i in range(len(cells.row)):
            state = int(cells.state[i])
            h = max(0.6, row_height * 0.8 * _HEIGHTS[state])
            y = top + row_height * (int(cells.row[i]) + 0.5) - h / 2
            out.append(
                f'<rect class="ix-c{state}" x="{_n(float(starts[i]))}" y="{_n(y)}" width="{_n(float(lengths[i]))}" '
                f'height="{_n(h)}"/>'
            )
    last = -100.0
    for row, name in cells.names:
        y = top + row_height * row
        if y - last >= 11:
            shown = elide(escape.visible(name), _TEXT, left - 8)
            out.append(_text(left - 6, y + min(row_height, 12) / 2 + 5, shown, "ix-muted", _TEXT, ' text-anchor="end"'))
            last = y
    return out


def _density(chart: RangeChart, left: float, top: float, width: float, row_height: float) -> list[str]:
    """Draw the number of overlapping ranges as shades: first those of skipped files, then, on top, of files read.

    Neighbouring places with the same shade become one rectangle.
    """
    cells, steps = chart.cells, 60
    low, high = chart.spans()
    start = np.minimum((low * steps).astype(int), steps - 1)
    stop = np.minimum((high * steps).astype(int), steps - 1) + 1
    depth = np.zeros((2, cells.rows, steps + 1))
    kind = (cells.state < 2).astype(int)
    np.add.at(depth, (kind, cells.row, start), cells.count)
    np.subtract.at(depth, (kind, cells.row, stop), cells.count)
    depth = np.cumsum(depth, axis=2)[:, :, :steps]
    most = np.log1p(depth.max(initial=1))
    shade = np.where(depth > 0, np.maximum(1, np.ceil(5 * np.log1p(depth) / most)), 0).astype(int)
    out = []
    for side, css in ((0, "ix-c4"), (1, "ix-c1")):
        for row in range(cells.rows):
            line = shade[side, row]
            edges = np.flatnonzero(np.diff(line, prepend=-1, append=-1))
            for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
                if line[a]:
                    out.append(
                        f'<rect class="{css}" opacity="{_n(0.18 + 0.16 * int(line[a]))}" '
                        f'x="{_n(left + width * a / steps)}" y="{_n(top + row_height * row)}" '
                        f'width="{_n(width * (b - a) / steps)}" height="{_n(row_height)}"/>'
                    )
    return out


def _axis(chart: RangeChart, left: float, top: float, width: float) -> list[str]:
    """Draw values below the axis: first the band's edges, then a few others that fit without touching."""
    out = [f'<path class="ix-rule" d="M{_n(left)} {_n(top)}h{_n(width)}"/>']
    edges = [at for at in chart.band if at is not None]
    wanted = np.linspace(0, 1, _TICKS)
    places = np.array(chart.positions)
    ticks = [*edges, *dict.fromkeys(int(np.abs(places - p).argmin()) for p in wanted)]
    taken: list[tuple[float, float]] = []
    for at in ticks:
        x = left + width * chart.positions[at]
        shown = elide(escape.visible(chart.labels[at]), _TEXT, 110)
        half = text_width(shown, _TEXT) / 2
        centre = min(max(x, left + half), left + width - half)
        if any(centre - half < b + 8 and a - 8 < centre + half for a, b in taken):
            continue
        taken.append((centre - half, centre + half))
        out.append(f'<path class="ix-rule" d="M{_n(x)} {_n(top)}v4"/>')
        css = "ix-label" if at in edges else "ix-muted"
        out.append(_text(centre, top + 16, shown, css, _TEXT, ' text-anchor="middle"'))
    return out


def _strip(name: str, counts: tuple[int, ...], chart: RangeChart, left: float, y: float, width: float) -> list[str]:
    total = sum(counts)
    out = [
        _text(left - 6, y + 13, elide(escape.visible(name), _TEXT, left - 8), "ix-muted", _TEXT, ' text-anchor="end"')
    ]
    x = left
    for state, count in enumerate(counts):
        if count:
            part = width * count / total
            out.append(
                f'<rect class="ix-c{state}" x="{_n(x)}" y="{_n(y + 4)}" width="{_n(part)}" height="{_n(_STRIP - 8)}">'
                f"<title>{count:,} {escape.svg(chart.classes[state])}</title></rect>"
            )
            x += part
    return out


def _legend(chart: RangeChart, top: float, width: float) -> tuple[list[str], float]:
    counts = np.bincount(chart.cells.state, chart.cells.count.astype(np.float64), minlength=len(chart.classes))
    for strip in chart.strips:
        counts = counts + np.array(strip.counts)
    out: list[str] = []
    x, y = 0.0, top
    for state, (count, name) in enumerate(zip(counts, chart.classes, strict=True)):
        if not count:
            continue
        words = f"{int(count):,} {name}"
        size = 24 + text_width(words, _TEXT) + 18
        if x and x + size > width:
            x, y = 0.0, y + 17
        h = max(2.0, 9 * _HEIGHTS[state])
        out.append(f'<rect class="ix-c{state}" x="{_n(x)}" y="{_n(y + 8 - h / 2)}" width="16" height="{_n(h)}"/>')
        out.append(_text(x + 22, y + 12, words, "ix-muted", _TEXT))
        x += size
    if chart.band != (None, None):
        words = "range of the filter"
        if x and x + 24 + text_width(words, _TEXT) > width:
            x, y = 0.0, y + 17
        out.append(f'<rect class="ix-band" x="{_n(x)}" y="{_n(y + 2)}" width="16" height="12"/>')
        out.append(_text(x + 22, y + 12, words, "ix-muted", _TEXT))
    y += 18
    note = chart.legend + (" The values that occur are evenly spaced on the axis." if chart.even else "")
    for line in wrapped(note, _TEXT, width, 2):
        out.append(_text(0, y + 11, line, "ix-muted", _TEXT))
        y += 14
    return out, y


def _css(theme: Theme) -> str:
    def rules(name: str) -> str:
        paper = PAPER[name]
        fills = "".join(f".ix-c{i}{{fill:{colour}}}" for i, colour in enumerate(_COLOURS[name]))
        return (
            f".ix-paper{{fill:{paper.paper}}}.ix-title,.ix-label{{fill:{paper.ink}}}.ix-muted{{fill:{paper.muted}}}"
            f".ix-rule,.ix-plot{{stroke:{paper.line}}}.ix-edge{{stroke:{_COLOURS[name][0]}}}"
            f".ix-band{{fill:{_COLOURS[name][1]}}}{fills}"
        )

    base = (
        ".ix-title{font-weight:650}.ix-label{font-weight:600}.ix-rule{stroke-width:1}.ix-band{fill-opacity:.14}"
        ".ix-plot{fill:none;stroke-width:.6}.ix-edge{stroke-width:1.5}"
    )
    if theme == "auto":
        return f"{base}{rules('light')}@media (prefers-color-scheme:dark){{{rules('dark')}}}"
    return base + rules("dark" if theme == "dark" else "light")
