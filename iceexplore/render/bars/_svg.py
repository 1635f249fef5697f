"""Draw a bar chart as a standalone SVG: light and dark colours, every number as text, no script, no ids."""

from __future__ import annotations

from iceexplore.render import _escape as escape
from iceexplore.render._measure import elide, text_width, wrapped
from iceexplore.render._mime import Svg
from iceexplore.render._svg_parts import MARGIN, Theme, chart_svg, check_theme, check_width
from iceexplore.render._svg_parts import number as _n
from iceexplore.render._svg_parts import text as _text
from iceexplore.render.bars._bars import Bar, BarChart, BarRow, spoken
from iceexplore.render.scenes._style import PAPER

__all__ = ["bars_svg"]

_GAP = 18.0
_LABEL = 12.5
_NOTE = 11.0
_TEXT = 11.5
_LEAST_TEXT = 6.0
_BAR = 9.0
_MIN_ROW = 38.0
_LINE = 14.0
#: The largest fraction of the picture's width that the names of rows may take.
_NAMES = 0.34
#: By theme: the accent colour, and the fill and outline of a bar's pale part. Only the pale part has an outline, so
#: that the parts differ not only in colour.
_COLOURS = {"light": ("#1f6fb2", "#dfe6ee", "#7c8a9a"), "dark": ("#4aa3e0", "#263240", "#7f8fa3")}


def bars_svg(chart: BarChart, *, theme: Theme = "auto", width: float = 700.0) -> Svg:
    """Draw a bar chart.

    Parameters
    ----------
    theme
        ``auto`` follows the viewer's ``prefers-color-scheme``; ``light`` and ``dark`` are fixed.
    width
        Width of the picture in pixels, at least 400; texts are cut to fit.

    Raises
    ------
    OptionError
        The theme is unknown, or the width out of range.
    """
    check_theme(theme)
    check_width(width)
    inner = width - 2 * MARGIN
    names = min(inner * _NAMES, max([80.0, *(_name_width(row) for row in chart.rows)]))
    count = max(1, len(chart.columns))
    column = (inner - names - _GAP * count) / count
    lefts = [names + _GAP + i * (column + _GAP) for i in range(len(chart.columns))]
    parts: list[str] = []
    y = 0.0
    parts.append(_text(0, y + 13, elide(escape.visible(chart.title), 16, inner, bold=True), "ix-title", 16))
    y += 22
    for line in _wrapped(chart.description, inner):
        parts.append(_text(0, y + 11, line, "ix-muted", 12))
        y += 16
    y += 14
    for left, head in zip(lefts, chart.columns, strict=True):
        title = elide(escape.visible(head).upper(), 10.5, column, bold=True)
        parts.append(_text(left, y + 8, title, "ix-muted ix-heading", 10.5))
    if chart.columns and chart.rows:
        y += 16
        parts.append(f'<path class="ix-rule" d="M0 {_n(y)}h{_n(inner)}"/>')
    scales = chart.scales()
    for row in chart.rows:
        height, drawn = _row(row, y, names, lefts, column, scales)
        parts.append(drawn)
        y += height
        parts.append(f'<path class="ix-rule" d="M0 {_n(y)}h{_n(inner)}"/>')
    legend = [(word, css) for word, css in ((chart.solid, "ix-solid"), (chart.pale, "ix-pale")) if word]
    if legend and chart.rows:
        y += 12
        x = 0.0
        for word, css in legend:
            shown = elide(escape.visible(word), _TEXT, inner / 2 - 30)
            parts.append(
                f'<rect class="{css}" x="{_n(x + 0.5)}" y="{_n(y + 2)}" width="18" height="{_n(_BAR)}" rx="2"/>'
            )
            parts.append(_text(x + 25, y + 11, shown, "ix-muted", _TEXT))
            x += 25 + text_width(shown, _TEXT) + 22
        y += 16
    total = y + 2 * MARGIN
    return chart_svg(chart.title, spoken(chart), _css(theme), width, total, parts)


def _name_width(row: BarRow) -> float:
    label = text_width(escape.visible(escape.shorten(row.label, 200)), _LABEL, bold=True)
    return max(label, min(200.0, text_width(escape.visible(escape.shorten(row.note, 200)), _NOTE)))


def _wrapped(content: str, limit: float, *, size: float = 12.0, most: int = 3) -> list[str]:
    return wrapped(escape.visible(escape.shorten(content, 1000)), size, limit, most) if content else []


def _row(
    row: BarRow, top: float, names: float, lefts: list[float], column: float, scales: list[float]
) -> tuple[float, str]:
    """Return a row's height and its SVG."""
    notes = _wrapped(row.note, names, size=_NOTE) if row.note else []
    height = max(_MIN_ROW, 12 + 15 + _LINE * len(notes))
    parts = ["<g>"]
    if row.tooltip:
        parts.append(f"<title>{escape.svg(escape.shorten(row.tooltip, 1500))}</title>")
    parts.append(_text(0, top + 18, elide(escape.visible(row.label), _LABEL, names, bold=True), "ix-label", _LABEL))
    parts += [_text(0, top + 32 + _LINE * i, line, "ix-muted", _NOTE) for i, line in enumerate(notes)]
    for left, bar, scale in zip(lefts, row.bars, scales, strict=True):
        if bar is not None:
            parts += _bar(bar, left, top, column, scale)
    return height, "".join([*parts, "</g>"])


def _bar(bar: Bar, left: float, top: float, column: float, scale: float) -> list[str]:
    solid = 0.0 if bar.value <= 0 else max(2.0, column * bar.value / scale)
    pale = column * bar.rest / scale
    pale = min(column - solid, max(2.0, pale)) if bar.rest > 0 else 0.0
    at = f'y="{_n(top + 23.5)}" height="{_n(_BAR)}" rx="2"'
    text, size = _fitted(escape.visible(bar.text), column)
    parts = [_text(left, top + 17, text, "ix-value", size)]
    if pale > 0:
        parts.append(f'<rect class="ix-pale" x="{_n(left + solid)}" width="{_n(pale)}" {at}/>')
    if solid > 0:
        parts.append(f'<rect class="ix-solid" x="{_n(left)}" width="{_n(solid)}" {at}/>')
    return parts


def _fitted(text: str, width: float) -> tuple[str, float]:
    """Return a bar's text and font size: if too wide, the part in brackets is left out, then the font gets smaller."""
    short = text.partition(" (")[0]
    shown = text if text_width(text, _TEXT) <= width else short
    needed = text_width(shown, _TEXT)
    size = _TEXT if needed <= width else max(_LEAST_TEXT, _TEXT * width / needed)
    return elide(shown, size, width), size


def _css(theme: Theme) -> str:
    def rules(name: str) -> str:
        paper, (accent, pale, outline) = PAPER[name], _COLOURS[name]
        return (
            f".ix-paper{{fill:{paper.paper}}}.ix-title,.ix-label,.ix-value{{fill:{paper.ink}}}"
            f".ix-muted{{fill:{paper.muted}}}.ix-rule{{stroke:{paper.line}}}.ix-solid{{fill:{accent}}}"
            f".ix-pale{{fill:{pale};stroke:{outline}}}"
        )

    base = (
        ".ix-title{font-weight:650}.ix-label{font-weight:600}.ix-rule{stroke-width:.6;opacity:.7}"
        ".ix-pale{stroke-width:1;stroke-dasharray:3 2}.ix-heading{letter-spacing:.05em;font-weight:600}"
    )
    if theme == "auto":
        return f"{base}{rules('light')}@media (prefers-color-scheme:dark){{{rules('dark')}}}"
    return base + rules("dark" if theme == "dark" else "light")
