"""A scene to draw: nodes in layers and the edges between them, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from iceexplore.errors import OptionError
from iceexplore.render.scenes._cells import CellBlock
from iceexplore.render.scenes._style import Mark

__all__ = ["EdgeKind", "Scene", "SceneEdge", "SceneNode"]

EdgeKind = Literal["child", "applies-to", "ref"]


@dataclass(frozen=True)
class SceneNode:
    """A node of a scene, drawn as a box.

    Attributes
    ----------
    id
        Unique in the scene. Never written into an output: renderers number nodes themselves.
    kind
        A key of `STYLE`; an unknown kind is drawn in neutral colours.
    label, lines
        The title and the smaller lines under it, unescaped (renderers escape and shorten).
    badge
        A short text beside the title.
    marks
        The node's changes and states; each is drawn with a sign as well as a colour.
    parent
        The parent's id, or None for a root.
    level
        The layer, from 0; greater than the parent's.
    tooltip
        A longer text; renderers do not rely on it.
    size
        The size in bytes; it determines the shade of the node's cell if many siblings are drawn as cells.
    cells, count
        For a node that represents many others: cells, one for each of them or for several together, and their number.
    """

    id: str
    kind: str
    label: str
    lines: tuple[str, ...] = ()
    badge: str | None = None
    marks: frozenset[Mark] = frozenset()
    parent: str | None = None
    level: int = 0
    tooltip: str | None = None
    size: int | None = None
    cells: CellBlock | None = None
    count: int = 1


@dataclass(frozen=True)
class SceneEdge:
    """A relation between nodes. The source of a `ref` edge between siblings is drawn on top of its target."""

    source: str
    target: str
    kind: EdgeKind = "applies-to"
    label: str | None = None


@dataclass(frozen=True)
class Scene:
    """Nodes (parents before their children) and edges; a parent and its children are joined without an explicit edge.

    Attributes
    ----------
    wrap
        The maximum number of lines into which a node's line may be wrapped.

    Raises
    ------
    OptionError
        Two nodes share an id, a parent or an edge's end is not in the scene (or a parent comes after its child), or
        a child's layer is not beyond its parent's.
    """

    title: str
    description: str
    nodes: tuple[SceneNode, ...] = ()
    edges: tuple[SceneEdge, ...] = field(default=())
    wrap: int = 1

    def __post_init__(self) -> None:
        levels: dict[str, int] = {}
        for node in self.nodes:
            if node.id in levels:
                raise OptionError(f"two nodes of the scene have the id {node.id!r}; ids must be unique")
            if node.parent is not None:
                if node.parent not in levels:
                    raise OptionError(f"the parent {node.parent!r} of {node.id!r} must come before it in the scene")
                if node.level <= levels[node.parent]:
                    raise OptionError(f"{node.id!r} must be on a layer beyond its parent's ({levels[node.parent]})")
            levels[node.id] = node.level
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in levels:
                    raise OptionError(f"an edge references the node {end!r}, which is not in the scene")

    @cached_property
    def by_id(self) -> dict[str, SceneNode]:
        """The nodes by id."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def children(self) -> dict[str | None, list[SceneNode]]:
        """Nodes by parent, in order; the roots under None."""
        out: dict[str | None, list[SceneNode]] = {}
        for node in self.nodes:
            out.setdefault(node.parent, []).append(node)
        return out

    def relations(self, kinds: Iterable[EdgeKind] = ("applies-to", "ref")) -> list[SceneEdge]:
        """Return the edges of these kinds."""
        wanted = set(kinds)
        return [edge for edge in self.edges if edge.kind in wanted]
