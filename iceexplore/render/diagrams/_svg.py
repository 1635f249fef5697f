"""Draw a diagram of tables as a standalone SVG, in the palette of the V4 proposal's figures."""

from __future__ import annotations

from iceexplore.render import _escape as escape
from iceexplore.render._measure import elide, text_width, wrapped
from iceexplore.render._mime import Svg
from iceexplore.render._svg_parts import FONT, Theme, check_theme
from iceexplore.render._svg_parts import number as _n
from iceexplore.render._svg_parts import text as _text
from iceexplore.render.diagrams import _positions as metrics
from iceexplore.render.diagrams._positions import DiagramPositions, Placed, Route, label_lines, place
from iceexplore.render.diagrams._tables import FIGURE_STYLE, TableDiagram, TableLink, kind_style
from iceexplore.render.scenes._style import PAPER, STYLE

__all__ = ["tables_svg"]

_MARGIN = 24.0
#: Height of the title, and of each line of the caption.
_TITLE, _LINE = 31.0, 15.0
#: Maximum number of lines of a caption, and maximum width of a line in pixels.
_LINES, _MEASURE = 6, 640.0


def tables_svg(diagram: TableDiagram, *, theme: Theme = "auto") -> Svg:
    """Draw a diagram of tables.

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
    at = place(diagram)
    dotted = diagram.relations()
    below = _below(at, dotted)
    drawn = max(at.width, *(_label_end(x, at) for x in dotted)) if dotted else at.width
    inner = max(drawn, 420.0, min(text_width(diagram.caption, 12), _MEASURE))
    lines = wrapped(escape.visible(diagram.caption), 12, min(inner, 900.0), _LINES)
    top = _TITLE + _LINE * len(lines)
    width, height = inner + 2 * _MARGIN, top + at.height + below + 2 * _MARGIN
    shift = (inner - drawn) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img" font-family="{FONT}">',
        f"<title>{escape.svg(escape.shorten(diagram.title, 300))}</title>",
        f"<desc>{escape.svg(escape.shorten(_described(diagram), 4000))}</desc>",
        f"<style>{_css(theme, {node.kind for node in diagram.nodes})}</style>",
        f'<rect class="ix-paper" width="{_n(width)}" height="{_n(height)}" rx="10"/>',
        f'<g transform="translate({_n(_MARGIN)} {_n(_MARGIN)})">',
        _text(0, 13, elide(escape.visible(diagram.title), 16, inner, bold=True), "ix-title", 16),
        *(_text(0, 32 + _LINE * i, line, "ix-muted", 12) for i, line in enumerate(lines)),
        f'<g transform="translate({_n(shift)} {_n(top)})">',
        *(_frame_box(*box) for box in at.frames.values()),
        *(_edge(route, at, diagram) for route in at.routes),
        *(_relation(link, at, i) for i, link in enumerate(dotted)),
        *(_frame_title(frame, *box) for frame, box in at.frames.items()),
        *(_box(p) for p in at.nodes.values()),
        "</g></g></svg>",
    ]
    return Svg("".join(parts), caption=f"{diagram.title}: {diagram.caption}", width=width)


def _described(diagram: TableDiagram) -> str:
    """Return a description for screen readers."""
    lines = [diagram.caption]
    for node in diagram.nodes:
        rows = ", ".join(f"{name} {status}".strip() for name, status in node.rows)
        lines.append(f"{node.title}{': ' + rows if rows else ''}.")
    lines += [f"{_name(diagram, x.source)} applies to {_name(diagram, x.target)}." for x in diagram.relations()]
    return " ".join(lines)


def _frame_box(x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="ix-frame" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="6"/>'


def _frame_title(frame: tuple[str, ...], x: float, y: float, width: float, height: float) -> str:
    title = elide(escape.visible(frame[-1]), 12, width - 16, bold=True)
    return _text(x + 8, y + 16, title, "ix-frame-title", 12)


def _name(diagram: TableDiagram, node_id: str) -> str:
    return diagram.by_id[node_id].title


def _css_class(kind: str) -> str:
    return f"ix-{kind}" if kind in STYLE or kind in FIGURE_STYLE else "ix-other"


def _css(theme: Theme, kinds: set[str]) -> str:
    def rules(dark: bool) -> str:
        paper = PAPER["dark" if dark else "light"]
        out = [
            f".ix-paper{{fill:{paper.paper}}}.ix-title,.ix-label,.ix-row{{fill:{paper.ink}}}.ix-muted{{fill:{paper.muted}}}",
            f".ix-line{{stroke:{paper.muted}}}.ix-tip{{fill:{paper.muted}}}.ix-applies-label{{stroke:{paper.paper}}}",
            f".ix-frame{{stroke:{paper.line}}}.ix-frame-title{{fill:{paper.muted};stroke:{paper.paper}}}",
        ]
        for kind in sorted(kinds):
            look = kind_style(kind)
            fill, stroke = (look.dark_fill, look.dark_stroke) if dark else (look.fill, look.stroke)
            at = f".{_css_class(kind)}"
            out.append(f"{at} .ix-box{{fill:{fill};stroke:{stroke}}}{at} .ix-rule{{stroke:{stroke}}}")
        vector = STYLE["deletion-vector"]
        colour = vector.dark_stroke if dark else vector.stroke
        out.append(f".ix-applies{{stroke:{colour}}}.ix-applies-tip,.ix-applies-label{{fill:{colour}}}")
        return "".join(out)

    base = (
        ".ix-title{font-weight:650}.ix-label{font-weight:650;text-anchor:middle}.ix-line{fill:none;stroke-width:1.4}"
        ".ix-box{stroke-width:2}.ix-rule{stroke-width:.7;opacity:.55}"
        ".ix-frame{fill:none;stroke-width:1.2}.ix-frame-title{font-weight:650;stroke-width:4;paint-order:stroke}"
        ".ix-applies-label{text-anchor:middle;stroke-width:3;paint-order:stroke}"
        ".ix-applies{fill:none;stroke-width:1.5;stroke-dasharray:2.5 3.5}.ix-status{font-weight:600}"
    )
    if theme == "auto":
        return f"{base}{rules(False)}@media (prefers-color-scheme:dark){{{rules(True)}}}"
    return base + rules(theme == "dark")


def _box(p: Placed) -> str:
    kind = _css_class(p.node.kind)
    look = kind_style(p.node.kind)
    tip = escape.svg(escape.shorten(f"{look.title}: {p.node.tooltip or p.node.title}", 1500))
    frame = f'x="{_n(p.x)}" y="{_n(p.y)}" width="{_n(p.width)}" height="{_n(p.height)}"'
    parts = [f'<g class="{kind}"><title>{tip}</title><rect class="ix-box" {frame} rx="3"/>']
    parts.append(_text(p.middle, p.y + 17, p.title, "ix-label", metrics.TITLE_SIZE))
    for i, (name, status) in enumerate(p.rows):
        top = p.y + metrics.TITLE_HEIGHT + metrics.ROW_HEIGHT * i
        parts.append(f'<path class="ix-rule" d="M{_n(p.x)} {_n(top + 2)}h{_n(p.width)}"/>')
        parts.append(_text(p.x + metrics.PAD, top + 16, name, "ix-row", metrics.ROW_SIZE))
        if status:
            parts.append(_text(p.x + p.split, top + 16, status, "ix-muted ix-status", metrics.ROW_SIZE - 1))
    return "".join([*parts, "</g>"])


def _edge(route: Route, at: DiagramPositions, diagram: TableDiagram) -> str:
    """Draw an edge down to the target's top, or through the gap, along the lane, and up to the target's lower edge."""
    source, target = at.nodes[route.link.source], at.nodes[route.link.target]
    x1, y1 = source.middle, at.floor(source)
    down = f"M{_n(x1)} {_n(source.bottom)}V{_n(y1)}"
    if route.gap is None:
        x2, y2 = target.middle, target.y - 7
        bend = (y2 - y1) / 2
        path = f"{down}C{_n(x1)} {_n(y1 + bend)} {_n(x2)} {_n(y2 - bend)} {_n(x2)} {_n(y2)}"
        tip = f"M{_n(x2)} {_n(target.y - 1)}l-4 -8h8z"
    else:
        number = next(i for i, layer in enumerate(diagram.layers) if target.node in layer)
        track, lane = at.tracks[number, route.gap][route.track], at.lanes[number][route.lane]
        top = min(p.y for p in at.nodes.values() if p.node.layer == target.node.layer)
        bend = (top - y1) / 2
        x2 = route.end
        turn = 5 if track > x2 else -5
        path = (
            f"{down}C{_n(x1)} {_n(y1 + bend)} {_n(track)} {_n(top - bend)} {_n(track)} {_n(top)}"
            f"V{_n(lane - 5)}q0 5 {_n(-turn)} 5H{_n(x2 + turn)}q{_n(-turn)} 0 {_n(-turn)} -5V{_n(target.bottom + 7)}"
        )
        tip = f"M{_n(x2)} {_n(target.bottom + 1)}l-4 8h8z"
    return f'<path class="ix-line" d="{path}"/><path class="ix-tip" d="{tip}"/>'


def _neighbours(source: Placed, target: Placed, at: DiagramPositions) -> bool:
    """Return whether two nodes are adjacent in one layer."""
    low, high = sorted((source.x, target.x))
    return source.node.layer == target.node.layer and not any(
        low < p.x < high for p in at.nodes.values() if p.node.layer == source.node.layer
    )


def _label_end(link: TableLink, at: DiagramPositions) -> float:
    """Return the x coordinate at which the label of a dotted edge ends if the edge goes up a layer; 0 for others."""
    source, target = at.nodes[link.source], at.nodes[link.target]
    if target.node.layer >= source.node.layer:
        return 0.0
    return source.middle + 24 + text_width(link.label or "applies to", metrics.LABEL_SIZE)


def _is_far(link: TableLink, at: DiagramPositions) -> bool:
    """Return whether a dotted edge runs below all layers: it neither joins neighbours nor goes up a layer."""
    source, target = at.nodes[link.source], at.nodes[link.target]
    return target.node.layer >= source.node.layer and not _neighbours(source, target, at)


def _below(at: DiagramPositions, links: list[TableLink]) -> float:
    """Return the height needed below the lowest layer for dotted edges between distant nodes and their labels."""
    far = [x for x in links if _is_far(x, at)]
    return 30.0 + 16.0 * len(far) if far else 0.0


def _relation(link: TableLink, at: DiagramPositions, number: int) -> str:
    source, target = at.nodes[link.source], at.nodes[link.target]
    label = escape.shorten(link.label or "applies to", 60)
    if _neighbours(source, target, at):
        y = max(source.y, target.y) + 12 + 14 * (number % 2)
        x1 = source.x if target.x < source.x else source.x + source.width
        x2 = target.x + target.width if target.x < source.x else target.x
        way = 1 if x2 > x1 else -1
        path, tip = f"M{_n(x1)} {_n(y)}H{_n(x2 - 6 * way)}", f"M{_n(x2)} {_n(y)}l{_n(-8 * way)} -4v8z"
        lines = enumerate(label_lines(link), start=1)
        words = f"<title>{escape.svg(label)}</title>" + "".join(
            _text((x1 + x2) / 2, y + 12 * i, escape.visible(line), "ix-applies-label", metrics.LABEL_SIZE)
            for i, line in lines
        )
    elif target.node.layer < source.node.layer:
        # Up, beside the solid edge that comes down.
        x1, x2 = source.middle + 18, max(target.x + 8, min(source.middle + 18, target.x + target.width - 8))
        middle = (target.bottom + source.y) / 2
        path = f"M{_n(x1)} {_n(source.y)}C{_n(x1)} {_n(middle)} {_n(x2)} {_n(middle)} {_n(x2)} {_n(target.bottom + 7)}"
        tip = f"M{_n(x2)} {_n(target.bottom + 1)}l-4 8h8z"
        beside = x1 + 6 + text_width(label, metrics.LABEL_SIZE) / 2
        words = _text(beside, middle + 4, label, "ix-applies-label", metrics.LABEL_SIZE)
    else:
        y = at.height + 14 + 16.0 * number
        lanes = [r for r in at.routes if r.link.target == link.target and r.gap is not None]
        # On the side of the target that no lane enters.
        x1, x2 = source.middle - 12, target.middle + (-14 if source.x > target.x or not lanes else 14)
        end = target.bottom if source.node.layer == target.node.layer else target.y + target.height
        path = f"M{_n(x1)} {_n(source.bottom)}V{_n(y)}H{_n(x2)}V{_n(end + 7)}"
        tip = f"M{_n(x2)} {_n(end + 1)}l-4 8h8z"
        words = _text((x1 + x2) / 2, y - 3, label, "ix-applies-label", metrics.LABEL_SIZE)
    return f'<g><path class="ix-applies" d="{path}"/><path class="ix-applies-tip" d="{tip}"/>{words}</g>'
