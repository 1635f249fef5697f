"""Place the tables of a diagram and route its edges so that solid edges cross as little as possible.

Nodes of a layer are placed side by side in the given order. Two parents that share two children cannot be joined to
them by downward lines without a crossing, wherever the children are. So an edge may also go down through the gap beside
a child, along a lane below the layer, and into its target from underneath. Edges are routed one after the other, those
to new children first. Each takes the route that crosses the fewest edges routed before it. Three parents that share
three children (K3,3) cannot be drawn without a crossing; then the edges cross as little as this search achieves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from iceexplore.render._measure import elide, text_width, wrapped
from iceexplore.render.diagrams._tables import TableDiagram, TableLink, TableNode

__all__ = ["DiagramPositions", "Placed", "Route", "label_lines", "place", "route_crossings"]

TITLE_SIZE = 13.0
ROW_SIZE = 12.0
ROW_HEIGHT = 19.0
TITLE_HEIGHT = 24.0
PAD = 10.0
NODE_GAP = 34.0
LAYER_GAP = 54.0
LANE = 9.0
FRAME_PAD = 12.0
FRAME_TITLE = 20.0
LABEL_SIZE = 11.0
MAX_NAME = 190.0
MIN_WIDTH = 92.0


@dataclass(frozen=True)
class Placed:
    """A node's position in pixels, and its texts cut to fit. The status column starts at ``x + split``."""

    node: TableNode
    x: float
    y: float
    width: float
    height: float
    title: str
    rows: tuple[tuple[str, str], ...]
    split: float

    @property
    def middle(self) -> float:
        """The x coordinate of its middle."""
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        """The y coordinate of its lower edge."""
        return self.y + self.height


@dataclass
class Route:
    """The route of an edge: straight down (``gap`` None), or a detour through a gap and along a lane below the layer.

    Attributes
    ----------
    gap
        The index of the gap in the target's layer; gap 0 is left of the first node.
    track, lane
        The index of the track in the gap, and of the lane below the layer.
    end
        The x coordinate at which a detour enters its target.
    """

    link: TableLink
    gap: int | None = None
    track: int = 0
    lane: int = 0
    end: float = 0.0


@dataclass
class DiagramPositions:
    """The positions of everything in a drawing.

    Attributes
    ----------
    tracks, lanes
        The x coordinates of the tracks by (layer, gap), and the y coordinates of the lanes by layer.
    frames
        (x, y, width, height) of each frame, outer ones first.
    """

    nodes: dict[str, Placed]
    routes: list[Route]
    tracks: dict[tuple[int, int], list[float]]
    lanes: dict[int, list[float]]
    width: float
    height: float
    frames: dict[tuple[str, ...], tuple[float, float, float, float]] = field(default_factory=dict)

    def floor(self, node: Placed) -> float:
        """Return the y coordinate of the lowest box edge in a node's layer, where the layer's outgoing curves begin."""
        return max(p.bottom for p in self.nodes.values() if p.node.layer == node.node.layer)


@dataclass
class _Order:
    """The order of nodes in two neighbouring layers: the index of each source, and of each target."""

    sources: dict[str, int]
    targets: dict[str, int]

    def top(self, route: Route) -> tuple[float, float]:
        """Return the start and end of the route's downward part, as indices; a gap is halfway between two targets."""
        start = self.sources[route.link.source]
        return start, self.targets[route.link.target] if route.gap is None else route.gap - 0.5

    def turn(self, route: Route) -> float:
        """Return the sort key that orders the detours in a gap from left to right such that their lanes nest.

        Detours to the left come first, the nearest target first; then those to the right, the farthest first.
        """
        gap = 0 if route.gap is None else route.gap
        away = self.targets[route.link.target] - (gap - 0.5)
        return -1e6 - away if away < 0 else 1e6 - away

    def below(self, route: Route) -> tuple[float, float] | None:
        """Return the two ends of the lane, None for a straight edge."""
        if route.gap is None:
            return None
        ends = (route.gap - 0.5, float(self.targets[route.link.target]))
        return min(ends), max(ends)


def _cross(order: _Order, a: Route, b: Route) -> bool:
    (s, t), (u, v) = order.top(a), order.top(b)
    if (s - u) * (t - v) < 0:
        return True
    one, two = order.below(a), order.below(b)
    if one is None or two is None:
        return False
    if a.gap == b.gap:  # edges in one gap cross if their lanes are nested in a different order than their sources
        return (order.turn(a) < order.turn(b)) != (s < u) and order.turn(a) != order.turn(b) and s != u
    return one[0] < two[0] < one[1] < two[1] or two[0] < one[0] < two[1] < one[1]


def route_crossings(positions: DiagramPositions, diagram: TableDiagram) -> int:
    """Return the number of crossings of solid edges as drawn (curves counted as straight)."""
    lines = [_corners(route, positions, diagram) for route in positions.routes]
    return sum(_meet(one, two) for i, one in enumerate(lines) for two in lines[:i])


def _corners(route: Route, positions: DiagramPositions, diagram: TableDiagram) -> list[tuple[float, float]]:
    source, target = positions.nodes[route.link.source], positions.nodes[route.link.target]
    start = (source.middle, positions.floor(source))
    if route.gap is None:
        return [start, (target.middle, target.y)]
    number = next(i for i, layer in enumerate(diagram.layers) if target.node in layer)
    track, lane = positions.tracks[number, route.gap][route.track], positions.lanes[number][route.lane]
    return [start, (track, target.y), (track, lane), (route.end, lane), (route.end, target.bottom)]


def _meet(one: list[tuple[float, float]], two: list[tuple[float, float]]) -> int:
    """Return the number of crossing pairs of segments; touching ends do not count."""

    def side(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    count = 0
    for a, b in pairwise(one):
        for c, d in pairwise(two):
            across = side(a, b, c) * side(a, b, d), side(c, d, a) * side(c, d, b)
            count += across[0] < -1e-6 and across[1] < -1e-6
    return count


def _pairs(diagram: TableDiagram) -> list[tuple[list[TableNode], list[TableNode]]]:
    return list(zip(diagram.layers, diagram.layers[1:], strict=False))


def _order(upper: list[TableNode], lower: list[TableNode]) -> _Order:
    return _Order({n.id: i for i, n in enumerate(upper)}, {n.id: i for i, n in enumerate(lower)})


def _routes(diagram: TableDiagram) -> list[Route]:
    """Return a route for every solid edge."""
    out = []
    for upper, lower in _pairs(diagram):
        order = _order(upper, lower)
        links = [x for x in diagram.children() if x.source in order.sources and x.target in order.targets]
        parents: dict[str, int] = {}
        for link in links:  # a node is placed under the first parent that references it
            parents[link.target] = min(parents.get(link.target, 1 << 30), order.sources[link.source])
        links.sort(key=lambda x: (order.sources[x.source] - parents[x.target], order.sources[x.source]))
        # A dotted edge between neighbours runs through the gap between them.
        ends = [(order.targets.get(x.source, -9), order.targets.get(x.target, -9)) for x in diagram.relations()]
        taken = {max(a, b) for a, b in ends if abs(a - b) == 1}
        best: list[Route] | None = None
        least = 1 << 30
        for turn in range(2):
            placed: list[Route] = []
            total = 0
            for link in links if turn == 0 else sorted(links, key=lambda x: order.sources[x.source]):
                choices = [Route(link), *(Route(link, gap) for gap in _near(order, link, taken))]
                crossings = [sum(_cross(order, c, p) for p in placed) for c in choices]
                total += min(crossings)
                placed.append(choices[crossings.index(min(crossings))])
            if total < least:
                best, least = placed, total
        out += best or []
    return out


def _near(order: _Order, link: TableLink, taken: set[int]) -> list[int]:
    """Return the gaps sorted by their distance from the target, but gaps that a dotted edge crosses last."""
    at = order.targets[link.target]
    return sorted(range(len(order.targets) + 1), key=lambda gap: (gap in taken, abs(gap - 0.5 - at), -gap))


def _size(node: TableNode) -> tuple[float, float, str, tuple[tuple[str, str], ...], float]:
    title = elide(node.title, TITLE_SIZE, MAX_NAME + 60, bold=True)
    rows = tuple((elide(name, ROW_SIZE, MAX_NAME), status) for name, status in node.rows)
    names = max((text_width(name, ROW_SIZE) for name, _ in rows), default=0.0)
    states = max((text_width(status, ROW_SIZE - 1, bold=True) for _, status in rows), default=0.0)
    split = PAD + names + 12
    inner = max(names + (12 + states if states else 0), text_width(title, TITLE_SIZE, bold=True))
    return max(MIN_WIDTH, inner + 2 * PAD), TITLE_HEIGHT + ROW_HEIGHT * len(rows) + 8, title, rows, split


def place(diagram: TableDiagram) -> DiagramPositions:
    """Compute all positions; the same diagram gives the same drawing."""
    routes = _routes(diagram)
    sizes = {node.id: _size(node) for node in diagram.nodes}
    tracks, lanes = _numbered(diagram, routes)
    labels = _label_widths(diagram)
    out = DiagramPositions({}, routes, {}, {}, 0.0, 0.0)
    first, last_layer = _frame_layers(diagram)
    y = 0.0
    for number, layer in enumerate(diagram.layers):
        x = 0.0
        y += FRAME_TITLE * _deepest(first, number) + (FRAME_PAD if number == 0 and first else 0)
        for i, node in enumerate(layer):
            if i:
                x += labels.get((layer[i - 1].id, node.id), 0.0)
            room = tracks.get((number, i), 0) * LANE
            start = x - (NODE_GAP / 2 if i else 0)
            out.tracks[number, i] = [start + LANE * (k + 0.5) for k in range(tracks.get((number, i), 0))]
            x += room
            width, height, title, rows, split = sizes[node.id]
            out.nodes[node.id] = Placed(node, x, y, width, height, title, rows, split)
            x += width + NODE_GAP
        last = len(layer)
        out.tracks[number, last] = [x - NODE_GAP / 2 + LANE * (k + 0.5) for k in range(tracks.get((number, last), 0))]
        x += tracks.get((number, last), 0) * LANE
        out.width = max(out.width, x - NODE_GAP)
        y += max(sizes[node.id][1] for node in layer) + FRAME_PAD * _deepest(last_layer, number)
        out.lanes[number] = [y + 12 + LANE * k for k in range(lanes.get(number, 0))]
        y += LANE * lanes.get(number, 0) + (14 if lanes.get(number) else 0) + LAYER_GAP
    out.height = y - LAYER_GAP
    _centre(diagram, out, labels)
    _move_under_parents(diagram, out)
    _ends(out)
    if first:
        _frame(diagram, out)
    return out


def _move_under_parents(diagram: TableDiagram, out: DiagramPositions) -> None:
    """Move each group of nodes in the lowest layer right, at most until it is centered under its first parent."""
    number = len(diagram.layers) - 1
    if number < 1 or any(xs for (layer, _), xs in out.tracks.items() if layer == number):
        return  # detours run through gaps in this layer, so its nodes must stay where they are
    parents: dict[str, str] = {}
    for link in diagram.children():
        if link.target not in parents or diagram.by_id[link.source].group == diagram.by_id[link.target].group:
            parents[link.target] = link.source
    blocks: list[list[TableNode]] = []
    for node in diagram.layers[number]:
        if blocks and parents.get(blocks[-1][0].id) == parents.get(node.id):
            blocks[-1].append(node)
        else:
            blocks.append([node])
    room = 1e9  # how far the next block moved, and so how far this one may move
    for block in reversed(blocks):
        first, last = out.nodes[block[0].id], out.nodes[block[-1].id]
        parent = parents.get(block[0].id)
        wanted = out.nodes[parent].middle - (first.x + last.x + last.width) / 2 if parent else 0.0
        room = min(max(wanted, 0.0), room)
        _move(out, block, room)
    out.width = max(out.width, *(p.x + p.width + LANE for p in out.nodes.values()))


def label_lines(link: TableLink) -> list[str]:
    """Return the lines of the label of a dotted edge between neighbours, each at most 112 pixels wide."""
    pieces = (link.label or "applies to").split(", ")
    return [line for piece in pieces for line in wrapped(piece, LABEL_SIZE, 112, 2)]


def _label_widths(diagram: TableDiagram) -> dict[tuple[str, str], float]:
    """Return how far neighbours that a dotted edge joins are moved apart, so that its label fits between them."""
    neighbours = {pair for layer in diagram.layers for pair in pairwise(node.id for node in layer)}
    found: dict[tuple[str, str], float] = {}
    for link in diagram.relations():
        for pair in ((link.source, link.target), (link.target, link.source)):
            if pair in neighbours:
                width = max(text_width(line, LABEL_SIZE) for line in label_lines(link))
                found[pair] = max(found.get(pair, 0.0), width + 16 - NODE_GAP)
    return found


def _frame_layers(diagram: TableDiagram) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]]:
    """Return the first and the last layer of each frame, as indices into the diagram's layers."""
    places = {node.id: i for i, layer in enumerate(diagram.layers) for node in layer}
    found = {frame: [places[node.id] for node in nodes] for frame, nodes in diagram.frames().items()}
    return {frame: min(at) for frame, at in found.items()}, {frame: max(at) for frame, at in found.items()}


def _deepest(layers: dict[tuple[str, ...], int], number: int) -> int:
    """Return the maximum number of nested frames that begin (or end) at a layer."""
    mine = {frame for frame, layer in layers.items() if layer == number}
    return max((sum(frame[:depth] in mine for depth in range(1, len(frame) + 1)) for frame in mine), default=0)


def _frame(diagram: TableDiagram, out: DiagramPositions) -> None:
    """Separate neighbouring frames, and compute their outlines.

    A node that is alone in its layer of a frame is centered over its children.
    """
    frames = diagram.frames()
    for frame in sorted(frames, key=len, reverse=True):
        edge = -1e9
        for other in [f for f in frames if f[:-1] == frame[:-1]]:
            left, right = _span(out, other, frames)
            _move(out, frames[other], max(0.0, edge + NODE_GAP / 2 - left))
            edge = _span(out, other, frames)[1]
    for frame, nodes in frames.items():
        alone = [node for node in nodes if node.frames == frame and sum(n.layer == node.layer for n in nodes) == 1]
        for node in alone:
            under = [out.nodes[x.target] for x in diagram.children() if x.source == node.id]
            if under:
                middle = (min(p.x for p in under) + max(p.x + p.width for p in under)) / 2
                _move(out, [node], middle - out.nodes[node.id].middle)
    for frame, nodes in frames.items():
        left, right = _span(out, frame, frames)
        inside = [f for f in frames if f[: len(frame)] == frame]
        placed = [out.nodes[node.id] for node in nodes]
        above = max(len(f) for f in inside if min(out.nodes[n.id].y for n in frames[f]) == min(p.y for p in placed))
        below = max(len(f) for f in inside if max(out.nodes[n.id].y for n in frames[f]) == max(p.y for p in placed))
        top = min(p.y for p in placed) - FRAME_TITLE * (above - len(frame) + 1) - FRAME_PAD / 2
        bottom = max(p.bottom for p in placed) + FRAME_PAD * (below - len(frame) + 1)
        out.frames[frame] = (left, top, right - left, bottom - top)
    start = min(x for x, _, _, _ in out.frames.values())
    _move(out, diagram.nodes, -start)
    out.frames = {f: (x - start, y, width, height) for f, (x, y, width, height) in out.frames.items()}
    out.width = max(x + width for x, _, width, _ in out.frames.values())
    out.height = max(y + height for _, y, _, height in out.frames.values())


def _span(
    out: DiagramPositions, frame: tuple[str, ...], frames: dict[tuple[str, ...], list[TableNode]]
) -> tuple[float, float]:
    """Return the left and right edge of a frame: around its nodes, and around the frames in it."""
    left, right = [], []
    for node in frames[frame]:
        room = FRAME_PAD * (len(node.frames) - len(frame) + 1)
        left.append(out.nodes[node.id].x - room)
        right.append(out.nodes[node.id].x + out.nodes[node.id].width + room)
    return min(left), max(right)


def _move(out: DiagramPositions, nodes: Iterable[TableNode], by: float) -> None:
    for node in nodes:
        out.nodes[node.id] = replace(out.nodes[node.id], x=out.nodes[node.id].x + by)


def _numbered(diagram: TableDiagram, routes: list[Route]) -> tuple[dict[tuple[int, int], int], dict[int, int]]:
    """Give every detour a track in its gap and a lane below, so that they nest; count tracks and lanes."""
    tracks: dict[tuple[int, int], int] = {}
    lanes: dict[int, int] = {}
    for number, (upper, lower) in enumerate(_pairs(diagram), start=1):
        order = _order(upper, lower)
        detours = [r for r in routes if r.gap is not None and r.link.target in order.targets]
        # The shortest lane is the highest; of lanes of equal length, the one on the inner track.
        detours.sort(key=lambda r: (_length(order, r), _inner(order, r)))
        for lane, route in enumerate(detours):
            route.lane = lane
        for gap in {r.gap for r in detours if r.gap is not None}:
            mine = sorted(
                (r for r in detours if r.gap == gap), key=lambda r: (order.turn(r), order.sources[r.link.source])
            )
            for track, route in enumerate(mine):
                route.track = track
            tracks[number, gap] = len(mine)
        lanes[number] = len(detours)
    return tracks, lanes


def _inner(order: _Order, route: Route) -> int:
    """Return a sort key for detours from one gap into one target, the inner track first."""
    at = order.sources[route.link.source]
    return at if route.gap is not None and order.targets[route.link.target] < route.gap else -at


def _ends(out: DiagramPositions) -> None:
    """Let detours end side by side under their target: those from the right on its right half, others on its left."""
    for target in {r.link.target for r in out.routes if r.gap is not None}:
        p = out.nodes[target]
        mine = [r for r in out.routes if r.link.target == target and r.gap is not None]
        number = next(n for (n, gap) in out.tracks if any(r.gap == gap for r in mine) and out.tracks[n, gap])
        for right in (True, False):
            some = [r for r in mine if (out.tracks[number, r.gap or 0][r.track] > p.middle) == right]
            some.sort(key=lambda r: r.lane, reverse=True)  # the edge with the longest lane enters nearest to the middle
            step = min(6.0, (p.width / 2 - 8) / (len(some) + 1)) if some else 0.0
            for i, route in enumerate(some, start=1):
                route.end = p.middle + step * i * (1 if right else -1)


def _length(order: _Order, route: Route) -> float:
    ends = order.below(route)
    return 0.0 if ends is None else ends[1] - ends[0]


def _centre(diagram: TableDiagram, out: DiagramPositions, labels: dict[tuple[str, str], float]) -> None:
    """Center each node over the children placed under it, keeping the order; the lowest layer is not moved."""
    for number in reversed(range(len(diagram.layers) - 1)):
        if any(out.tracks.get((number, gap)) for gap in range(len(diagram.layers[number]) + 1)):
            continue  # detours run through gaps in this layer, so its nodes must stay where they are
        edge = -NODE_GAP
        before = ""
        for node in diagram.layers[number]:
            p = out.nodes[node.id]
            edge += labels.get((before, node.id), 0.0)
            before = node.id
            own = [out.nodes[x.target] for x in diagram.children() if x.source == node.id]
            under = [c for c in own if c.node.group == node.group] or own
            middle = (min(c.x for c in under) + max(c.x + c.width for c in under)) / 2 if under else p.middle
            moved = replace(p, x=max(edge + NODE_GAP, middle - p.width / 2))
            out.nodes[node.id] = moved
            edge = moved.x + moved.width
    tracks = [x for xs in out.tracks.values() for x in xs]
    left = min([p.x for p in out.nodes.values()] + tracks, default=0.0)
    for key, p in out.nodes.items():
        out.nodes[key] = replace(p, x=p.x - left)
    for at, xs in out.tracks.items():
        out.tracks[at] = [x - left for x in xs]
    right = max([p.x + p.width for p in out.nodes.values()] + tracks, default=0.0)
    out.width = right - left + LANE
