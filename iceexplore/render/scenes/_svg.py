"""Draw a scene as a standalone SVG: light and dark colours, no script, no links, no fonts to load."""

from __future__ import annotations

from collections.abc import Iterable

from iceexplore.render import _escape as escape
from iceexplore.render._measure import elide, text_width
from iceexplore.render._mime import Svg
from iceexplore.render._svg_parts import FONT, Theme, check_theme
from iceexplore.render._svg_parts import number as _n
from iceexplore.render._svg_parts import text as _text
from iceexplore.render.scenes import _positions as metrics
from iceexplore.render.scenes._cells import cell_css, cell_paths
from iceexplore.render.scenes._icons import ICONS
from iceexplore.render.scenes._positions import Box, scene_positions
from iceexplore.render.scenes._scene import Scene, SceneEdge
from iceexplore.render.scenes._strips import with_strips
from iceexplore.render.scenes._style import MARKS, PAPER, PRUNED, STYLE, KindStyle, Mark, style

__all__ = ["svg"]

_MARGIN = 24.0
_TITLE = 46.0
_LEGEND = 22.0
#: Maximum length of a tooltip in characters, because a name may have 100 kB.
_TOOLTIP = 1500


def svg(scene: Scene, *, theme: Theme = "auto") -> Svg:
    """Draw a scene.

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
    scene = with_strips(scene)
    placed = scene_positions(scene)
    blocks = [node.cells for node in scene.nodes if node.cells is not None]
    in_cells = {block.names[kind] for block in blocks for kind in set(block.kinds)}
    arcs = scene.relations(("applies-to", "ref"))
    boxes = {box.node.id: box for box in placed.boxes}
    bulge = max((_bulge(boxes[e.source], boxes[e.target]) for e in arcs if _is_arc(e, boxes)), default=0.0)
    seen = {node.kind for node in scene.nodes} | in_cells
    kinds = [kind for kind in STYLE if kind != "more" and kind in seen]
    marks = [mark for mark in MARKS if any(mark in n.marks for n in scene.nodes)]
    applies = any(e.kind == "applies-to" for e in arcs)
    inner = max(placed.width + bulge, 420.0)
    legend, legend_height = _legend(kinds, marks, applies, inner, bool(blocks))
    width = inner + 2 * _MARGIN
    height = _TITLE + placed.height + legend_height + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img" font-family="{FONT}">',
        f"<title>{escape.svg(escape.shorten(scene.title, 300))}</title>",
        f"<desc>{escape.svg(escape.shorten(scene.description, 1000))}</desc>",
        f"<style>{_css(theme, seen, in_cells)}</style>",
        f'<rect class="ix-paper" width="{_n(width)}" height="{_n(height)}" rx="10"/>',
        f'<g transform="translate({_n(_MARGIN)} {_n(_MARGIN)})">',
        _text(0, 13, elide(escape.visible(scene.title), 16, inner, bold=True), "ix-title", 16),
        _text(0, 32, elide(escape.visible(scene.description), 12, inner), "ix-muted", 12),
        f'<g transform="translate(0 {_n(_TITLE)})">',
        *(_heading(column) for column in placed.columns if column.title),
        *(_branch(boxes[box.node.parent], box) for box in placed.boxes if box.node.parent and not box.attached),
        *(_box(box) for box in placed.boxes),
        *(_relation(edge, boxes) for edge in arcs),
        "</g>",
        f'<g transform="translate(0 {_n(_TITLE + placed.height + 26)})">',
        *legend,
        "</g></g></svg>",
    ]
    return Svg("\n".join(filter(None, parts)), caption=scene.title, width=width)


def _css(theme: Theme, kinds: Iterable[str], in_cells: Iterable[str]) -> str:
    names = [kind for kind in STYLE if kind in set(kinds)]

    def rules(dark: bool) -> str:
        paper = PAPER["dark" if dark else "light"]
        out = [
            f".ix-paper{{fill:{paper.paper}}}.ix-title,.ix-label{{fill:{paper.ink}}}.ix-muted{{fill:{paper.muted}}}"
            f".ix-line{{stroke:{paper.line}}}.ix-gone .ix-label{{fill:{paper.muted}}}"
        ]
        for name in ["", *names]:
            s = style(name)
            fill, stroke = (s.dark_fill, s.dark_stroke) if dark else (s.fill, s.stroke)
            at = f".ix-{name}" if name else ".ix-other"
            out.append(
                f"{at} .ix-box{{fill:{fill};stroke:{stroke}}}{at} .ix-solid{{fill:{stroke}}}"
                f"{at} .ix-thin{{stroke:{stroke}}}"
            )
        for mark, m in MARKS.items():
            colour = m.dark if dark else m.light
            out.append(f".ix-m-{mark}{{fill:{colour}}}.ix-s-{mark}{{stroke:{colour};fill:none}}")
        fill, stroke = PRUNED["dark" if dark else "light"]
        out.append(
            f".ix-cut .ix-box{{fill:{fill};stroke:{stroke}}}.ix-cut .ix-solid{{fill:{stroke}}}"
            f".ix-cut .ix-thin{{stroke:{stroke}}}.ix-cut .ix-label{{fill:{paper.muted}}}"
        )
        out.append(f".ix-sign{{fill:{paper.paper}}}.ix-bar{{stroke:{paper.paper};stroke-width:2.2}}")
        applies = STYLE["deletion-vector"]
        colour = applies.dark_stroke if dark else applies.stroke
        out.append(f".ix-applies{{stroke:{colour}}}.ix-tip{{fill:{colour}}}")
        return "".join(out) + (cell_css(dark, in_cells) if in_cells else "")

    base = (
        ".ix-title{font-weight:650}.ix-label{font-weight:600}.ix-line{fill:none;stroke-width:1.4}"
        ".ix-box{stroke-width:1.3}.ix-thin{fill:none;stroke-width:1.4;stroke-linejoin:round;stroke-linecap:round}"
        ".ix-old .ix-box,.ix-more .ix-box,.ix-cut .ix-box{stroke-dasharray:4 3}"
        ".ix-gone .ix-label{text-decoration:line-through}"
        ".ix-applies{fill:none;stroke-width:1.5;stroke-dasharray:5 3.5}.ix-sign{font-weight:700;text-anchor:middle}"
        ".ix-heading{letter-spacing:.06em;font-weight:600}[class^=ix-cell]{stroke-width:.7}"
    )
    if theme == "auto":
        return f"{base}{rules(False)}@media (prefers-color-scheme:dark){{{rules(True)}}}"
    return base + rules(theme == "dark")


def _heading(column: metrics.Column) -> str:
    return _text(column.x + 1, 11, column.title.upper(), "ix-muted ix-heading", metrics.HEADING_SIZE - 0.5)


def _branch(parent: Box, box: Box) -> str:
    x1, y1, x2, y2 = parent.x + parent.width, parent.middle, box.x, box.middle
    bend = min(metrics.COLUMN_GAP, x2 - x1) / 2
    dashes = ' stroke-dasharray="3 3"' if "pruned" in box.node.marks else ""
    return (
        f'<path class="ix-line" d="M{_n(x1)} {_n(y1)}C{_n(x1 + bend)} {_n(y1)} {_n(x2 - bend)} {_n(y2)} '
        f'{_n(x2)} {_n(y2)}"{dashes}/>'
    )


def _class(kind: str) -> str:
    return f"ix-{kind}" if kind in STYLE else "ix-other"


def _icon(kind_style: KindStyle, x: float, y: float, scale: float = 1.0) -> str:
    fill, stroke = ICONS[kind_style.shape]
    paths = (f'<path class="ix-solid" d="{fill}"/>' if fill else "") + (
        f'<path class="ix-thin" d="{stroke}"/>' if stroke else ""
    )
    grow = "" if scale == 1.0 else f" scale({scale})"
    return f'<g transform="translate({_n(x)} {_n(y)}){grow}">{paths}</g>'


def _box(box: Box) -> str:
    node, look = box.node, style(box.node.kind)
    classes = [_class(node.kind)]
    if "removed" in node.marks:
        classes.append("ix-gone")
    if "carried" in node.marks:
        classes.append("ix-old")
    if "pruned" in node.marks:  # must come after the kind's class: of CSS rules with equal specificity, the later wins
        classes.append("ix-cut")
    radius = 14 if box.attached else 8
    parts = [f'<g class="{" ".join(classes)}">']
    tooltip = node.tooltip or "\n".join([node.label, *node.lines])
    words = [MARKS[mark].title for mark in MARKS if mark in node.marks and mark != "folded"]
    title = " · ".join([look.title, *words]) + "\n" + escape.shorten(tooltip, _TOOLTIP)
    parts.append("<title>" + "\n".join(escape.svg(line) for line in title.split("\n")) + "</title>")
    frame = f'width="{_n(box.width)}" height="{_n(box.height)}" rx="{radius}"'
    if "folded" in node.marks:  # draw a second sheet behind the box
        parts.append(f'<rect class="ix-box" x="{_n(box.x + 4)}" y="{_n(box.y + 4)}" {frame}/>')
    parts.append(f'<rect class="ix-box" x="{_n(box.x)}" y="{_n(box.y)}" {frame}/>')
    x, y = box.x + metrics.PAD_X, box.y + metrics.PAD_Y
    parts.append(_icon(look, x, y))
    parts.append(_text(x + metrics.ICON + 7, y + 12.5, box.label, "ix-label", metrics.LABEL_SIZE))
    if box.badge:
        at = box.x + box.width - metrics.PAD_X
        parts.append(_text(at, y + 12.5, box.badge, "ix-muted", metrics.LINE_SIZE, ' text-anchor="end"'))
    for i, line in enumerate(box.lines):
        top = y + metrics.LABEL_HEIGHT + metrics.LINE_HEIGHT * i + 11.5
        parts.append(_text(x, top, line, "ix-muted", metrics.LINE_SIZE))
    if node.cells is not None:
        top = y + metrics.LABEL_HEIGHT + metrics.LINE_HEIGHT * len(box.lines) + 6
        parts += cell_paths(node.cells, x, top, metrics.STRIP_WIDTH, metrics.CELL_PITCH, metrics.CELL_SIZE)
    signs = [mark for mark in MARKS if mark in node.marks and mark in ("added", "removed", "problem", "pruned")]
    for i, mark in enumerate(signs):
        parts.append(_sign(mark, box.x + box.width - 4 - 20 * i, box.y + 1))
    parts.append("</g>")
    return "".join(parts)


def _sign(mark: Mark, x: float, y: float, radius: float = 8.0) -> str:
    if mark == "pruned":  # a disc with a bar, drawn as shapes: few fonts have the character
        reach = radius * 0.5
        return (
            f'<circle class="ix-m-{mark}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>'
            f'<path class="ix-bar" d="M{_n(x - reach)} {_n(y + reach)}L{_n(x + reach)} {_n(y - reach)}"/>'
        )
    return (
        f'<circle class="ix-m-{mark}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>'
        f'<text class="ix-sign" x="{_n(x)}" y="{_n(y + radius * 0.55)}" font-size="{_n(radius * 1.6)}">'
        f"{escape.svg(MARKS[mark].sign)}</text>"
    )


def _is_arc(edge: SceneEdge, boxes: dict[str, Box]) -> bool:
    return not boxes[edge.source].attached and edge.source != edge.target


def _bulge(source: Box, target: Box, last: bool = True) -> float:
    """Return how far an arc within one column extends: it stays in the gap before the next column, if there is one."""
    if source.x != target.x:
        return 0.0
    wide = 26 + min(90.0, abs(source.middle - target.middle) * 0.14)
    return wide if last else min(wide, metrics.COLUMN_GAP * 1.2)


def _relation(edge: SceneEdge, boxes: dict[str, Box]) -> str:
    """Draw a line with an arrow head as a path (a marker would need an id).

    Within a column it is an arc on the right of the boxes; between columns it joins the facing sides.
    """
    if not _is_arc(edge, boxes):
        return ""
    source, target = boxes[edge.source], boxes[edge.target]
    y1, y2 = source.middle, target.middle
    forward = target.x > source.x  # the line joins a right side to a left side, so the arrow points right
    x1 = source.x if target.x < source.x else source.x + source.width
    x2 = target.x if forward else target.x + target.width
    side = -1 if forward else 1
    if source.x == target.x:
        last = all(box.x <= source.x for box in boxes.values())
        c1 = c2 = max(x1, x2) + _bulge(source, target, last)
    else:
        c1, c2 = x1 - side * 30, x2 + side * 30
    css = "ix-applies" if edge.kind == "applies-to" else "ix-line"
    tip = "ix-tip" if edge.kind == "applies-to" else "ix-muted"
    label = f"<title>{escape.svg(escape.shorten(edge.label, 300))}</title>" if edge.label else ""
    return (
        f'<g>{label}<path class="{css}" d="M{_n(x1)} {_n(y1)}C{_n(c1)} {_n(y1)} {_n(c2)} {_n(y2)} '
        f'{_n(x2 + side * 6)} {_n(y2)}"/><path class="{tip}" d="M{_n(x2 + side)} {_n(y2)}l{side * 8} -4v8z"/></g>'
    )


def _legend(kinds: list[str], marks: list[Mark], applies: bool, width: float, cells: bool) -> tuple[list[str], float]:
    """Return the legend of icons and signs, wrapped to the width, and its height."""
    x, y = 0.0, 0.0
    parts: list[str] = []

    def item(label: str) -> tuple[float, float]:
        nonlocal x, y
        need = 26 + text_width(label, 11.5)
        if x and x + need > width:
            x, y = 0.0, y + _LEGEND
        at = (x, y)
        x += need + 12
        return at

    for kind in kinds:
        look = style(kind)
        at, top = item(look.title)
        parts.append(f'<g class="{_class(kind)}">{_icon(look, at, top, 0.9)}</g>')
        parts.append(_text(at + 20, top + 11.5, look.title, "ix-muted", 11.5))
    for mark in marks:
        label = MARKS[mark].title
        at, top = item(label)
        if mark in ("carried", "folded"):
            shape = f'<rect class="ix-line" x="{_n(at)}" y="{_n(top + 2)}" width="14" height="10" rx="3"'
            dash = ' stroke-dasharray="3 2"/>' if mark == "carried" else "/>"
            behind = f'<path class="ix-line" d="M{_n(at + 3)} {_n(top + 15)}h14v-9"/>' if mark == "folded" else ""
            parts.append(shape + dash + behind)
        else:
            parts.append(_sign(mark, at + 7, top + 7, 7))
        parts.append(_text(at + 20, top + 11.5, label, "ix-muted", 11.5))
    if applies:
        at, top = item("applies to")
        parts.append(f'<path class="ix-applies" d="M{_n(at)} {_n(top + 7.5)}h15"/>')
        parts.append(_text(at + 20, top + 11.5, "applies to", "ix-muted", 11.5))
    if cells:
        label = "cells: one or several folded nodes each; stronger colour: larger (10 kB, 100 kB, … 100 MB)"
        at, top = item(label)
        parts.append(f'<path class="ix-line" d="M{_n(at)} {_n(top + 3)}h8v8h-8z"/>')
        parts.append(_text(at + 20, top + 11.5, label, "ix-muted", 11.5))
    return parts, (y + _LEGEND + 18 if parts else 0.0)
