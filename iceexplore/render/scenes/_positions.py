"""Compute the positions of a scene's nodes: a layered tree from left to right, without measuring a font.

Every layer is a column as wide as its widest node. Subtrees are pushed together until their outlines touch (a
contour per layer), so a small subtree fits beside a tall one. The widget, the SVG export and the static fallback
share these positions, so the function is deterministic: the same scene gives the same positions.
"""

from __future__ import annotations

from dataclasses import dataclass

from iceexplore.render import _escape as escape
from iceexplore.render._measure import elide, text_width, wrapped
from iceexplore.render.scenes._cells import lines_of
from iceexplore.render.scenes._scene import Scene, SceneNode
from iceexplore.render.scenes._style import style

__all__ = ["Box", "Column", "ScenePositions", "scene_positions"]

LABEL_SIZE = 13.0
LINE_SIZE = 11.5
HEADING_SIZE = 11.0

ICON = 16.0
PAD_X = 11.0
PAD_Y = 9.0
LINE_HEIGHT = 15.5
LABEL_HEIGHT = 16.0
COLUMN_GAP = 40.0
SIBLING_GAP = 10.0
SUBTREE_GAP = 18.0
ATTACHED_GAP = 5.0
HEADING_HEIGHT = 26.0
MAX_LABEL = 196.0
MAX_LINE = 268.0
#: A label up to this length is not cut: a snapshot id without all digits is useless.
WHOLE_LABEL = 30
WIDEST_LABEL = 300.0
MIN_WIDTH = 96.0
#: Width of a strip of cells, distance between its cells, and size of a cell.
STRIP_WIDTH, CELL_PITCH, CELL_SIZE = 266.0, 9.0, 7.0
#: A parent is centered beside its children, but at most this many pixels below the first one, to stay in sight.
DROP = 150.0


@dataclass(frozen=True)
class Box:
    """A node's position in pixels, and its texts cut to fit."""

    node: SceneNode
    x: float
    y: float
    width: float
    height: float
    label: str
    lines: tuple[str, ...]
    badge: str | None
    attached: bool

    @property
    def middle(self) -> float:
        """The y coordinate of the box's middle, where edges begin and end."""
        return self.y + self.height / 2


@dataclass(frozen=True)
class Column:
    """A layer: its position, width and heading."""

    x: float
    width: float
    title: str


@dataclass(frozen=True)
class ScenePositions:
    """All boxes and columns, and the total size."""

    boxes: tuple[Box, ...]
    columns: tuple[Column, ...]
    width: float
    height: float


@dataclass
class _Sized:
    label: str
    lines: tuple[str, ...]
    badge: str | None
    width: float
    height: float


def _size(node: SceneNode, wrap: int) -> _Sized:
    badge = elide(escape.visible(node.badge), LINE_SIZE, 90.0) if node.badge else None
    limit = WIDEST_LABEL if len(node.label) <= WHOLE_LABEL else MAX_LABEL
    label = elide(escape.visible(node.label), LABEL_SIZE, limit, bold=True)
    texts = [escape.visible(escape.shorten(line, 1000) if wrap > 1 else line) for line in node.lines if line]
    if wrap > 1:
        lines = tuple(part for line in texts for part in wrapped(line, LINE_SIZE, MAX_LINE, wrap))
    else:
        lines = tuple(elide(line, LINE_SIZE, MAX_LINE) for line in texts)
    first = ICON + 7 + text_width(label, LABEL_SIZE, bold=True)
    if badge:
        first += 12 + text_width(badge, LINE_SIZE) + 10
    widest = max([first, *(text_width(line, LINE_SIZE) for line in lines)])
    height = 2 * PAD_Y + LABEL_HEIGHT + LINE_HEIGHT * len(lines)
    if node.cells is not None:
        count = len(node.cells)
        widest = max(widest, min(STRIP_WIDTH, count * CELL_PITCH))
        height += 6 + CELL_PITCH * lines_of(count, STRIP_WIDTH, CELL_PITCH)
    return _Sized(label, lines, badge, max(MIN_WIDTH, widest + 2 * PAD_X), height)


def _label(node: SceneNode, sized: _Sized, width: float) -> str:
    """Return the label, cut to the width of its column, which may be wider than the node itself."""
    room = width - 2 * PAD_X - ICON - 7
    if sized.badge:
        room -= 12 + text_width(sized.badge, LINE_SIZE) + 10
    return elide(escape.visible(node.label), LABEL_SIZE, room, bold=True)


def scene_positions(scene: Scene) -> ScenePositions:
    """Place every node of a scene; no two boxes overlap. Sizes are pixels, the origin is the upper left corner."""
    sized = {node.id: _size(node, scene.wrap) for node in scene.nodes}
    attached = _attached(scene)
    host = {source: target for target, sources in attached.items() for source in sources}
    columns = _columns(scene, sized)
    children = {
        node.id: [child for child in scene.children.get(node.id, []) if child.id not in host] for node in scene.nodes
    }
    above = {  # the total height of the nodes that are attached on top of a node
        target: sum(sized[s].height + ATTACHED_GAP for s in sources) for target, sources in attached.items()
    }
    tops = _place(scene, children, sized, above, host)
    for target, sources in attached.items():
        y = tops[target] - above[target]
        for source in sources:
            tops[source] = y
            y += sized[source].height + ATTACHED_GAP
    boxes = []
    for node in scene.nodes:
        s, column = sized[node.id], columns[node.level]
        label = _label(node, s, column.width)
        boxes.append(
            Box(node, column.x, tops[node.id], column.width, s.height, label, s.lines, s.badge, node.id in host)
        )
    shift = HEADING_HEIGHT - min((b.y for b in boxes), default=0.0)
    placed = tuple(
        Box(b.node, b.x, b.y + shift, b.width, b.height, b.label, b.lines, b.badge, b.attached) for b in boxes
    )
    return ScenePositions(
        boxes=placed,
        columns=tuple(columns[level] for level in sorted(columns)),
        width=max((c.x + c.width for c in columns.values()), default=0.0),
        height=max((b.y + b.height for b in placed), default=HEADING_HEIGHT),
    )


def _attached(scene: Scene) -> dict[str, list[str]]:
    """Return, by the id of a node, the ids of the nodes to draw on top of it.

    These are the childless sources of its `ref` edges that have the same parent and layer.
    """
    out: dict[str, list[str]] = {}
    taken: set[str] = set()
    for edge in scene.relations(("ref",)):
        source, target = scene.by_id[edge.source], scene.by_id[edge.target]
        beside = source.parent == target.parent and source.level == target.level and source.id != target.id
        free = source.id not in taken and target.id not in taken and source.id not in out
        if beside and free and not scene.children.get(source.id):
            out.setdefault(target.id, []).append(source.id)
            taken.add(source.id)
    return out


def _columns(scene: Scene, sized: dict[str, _Sized]) -> dict[int, Column]:
    widths: dict[int, float] = {}
    titles: dict[int, dict[str, int]] = {}
    for node in scene.nodes:
        widths[node.level] = max(widths.get(node.level, 0.0), sized[node.id].width)
        title = style(node.kind).layer
        if title:
            counts = titles.setdefault(node.level, {})
            counts[title] = counts.get(title, 0) + 1
    columns: dict[int, Column] = {}
    x = 0.0
    for level in sorted(widths):
        names = titles.get(level, {})
        title = max(names, key=lambda name: names[name]) if names else ""
        if {"Manifests", "Files"} <= set(names):  # a V4 root manifest can reference both
            title = "Manifests and files"
        columns[level] = Column(x, widths[level], title)
        x += widths[level] + COLUMN_GAP
    return columns


def _place(
    scene: Scene,
    children: dict[str, list[SceneNode]],
    sized: dict[str, _Sized],
    above: dict[str, float],
    host: dict[str, str],
) -> dict[str, float]:
    """Return the y coordinate of every node that is not attached to another.

    A subtree's outline is, per layer, its (top, bottom) relative to its root's top. Parents come before their children
    in a scene, so walking backwards visits children first, without recursion.
    """
    outlines: dict[str, dict[int, tuple[float, float]]] = {}
    offsets: dict[str, float] = {}  # a child's top relative to its parent's
    for node in reversed(scene.nodes):
        if node.id in host:
            continue
        outline: dict[int, tuple[float, float]] = {}
        starts = _stack(children[node.id], outlines, outline)
        height = sized[node.id].height
        top = 0.0
        if starts:
            first, last = children[node.id][0], children[node.id][-1]
            begin = starts[0] + sized[first.id].height / 2
            end = starts[-1] + sized[last.id].height / 2
            top = min((begin + end) / 2, begin + DROP) - height / 2
        for child, start in zip(children[node.id], starts, strict=True):
            offsets[child.id] = start - top
        shifted = {level: (a - top, b - top) for level, (a, b) in outline.items()}
        shifted[node.level] = (-above.get(node.id, 0.0), height)
        outlines[node.id] = shifted
        for child in children[node.id]:
            del outlines[child.id]
    tops: dict[str, float] = {}
    roots = [node for node in scene.children.get(None, []) if node.id not in host]
    for root, start in zip(roots, _stack(roots, outlines, {}), strict=True):
        tops[root.id] = start
    for node in scene.nodes:
        if node.parent is not None and node.id not in host:
            tops[node.id] = tops[node.parent] + offsets[node.id]
    return tops


def _stack(
    nodes: list[SceneNode],
    outlines: dict[str, dict[int, tuple[float, float]]],
    merged: dict[int, tuple[float, float]],
) -> list[float]:
    """Return the tops of subtrees, stacked as closely as their outlines allow; add their outlines to ``merged``."""
    starts: list[float] = []
    for i, node in enumerate(nodes):
        outline = outlines[node.id]
        gap = SIBLING_GAP if len(outline) == 1 else SUBTREE_GAP
        start = max((merged[level][1] + gap - a for level, (a, _) in outline.items() if level in merged), default=0.0)
        if i:
            start = max(start, starts[-1])  # keep the order of siblings, whatever their layers
        starts.append(start)
        for level, (a, b) in outline.items():
            old = merged.get(level)
            merged[level] = (start + a, start + b) if old is None else (min(old[0], start + a), max(old[1], start + b))
    return starts
