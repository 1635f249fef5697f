"""Diagrams in which a manifest is a table with a row per entry: the drawing rules of the V4 proposal's figures.

The layers are, from top to bottom, snapshots, root manifests, and the children of root manifests. An entry's status
belongs to the reference, so it is shown in the row of the referring manifest, not on the node. A node that several
snapshots reference is drawn once. The classes are plain data; `_positions` computes where nodes and edges are placed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from iceexplore.errors import OptionError
from iceexplore.render.scenes._style import KindStyle, style

__all__ = ["FIGURE_STYLE", "TableDiagram", "TableLink", "TableNode", "kind_style"]

#: Kinds that only the figure "Current and proposed structure" has; the colours are the proposal's.
FIGURE_STYLE: dict[str, KindStyle] = {
    "current": KindStyle("Current", "", "▭", "rows", ("[", "]"), "box", "#ffebee", "#c62828", "#3b1518", "#ef9a9a"),
    "proposed": KindStyle("Proposed", "", "▭", "rows", ("[", "]"), "box", "#e8f5e8", "#1b5e20", "#14301a", "#81c784"),
    "entry-point": KindStyle(
        "Entry point", "", "⬢", "hexagon", ("[", "]"), "box", "#e1f5fe", "#01579b", "#0c2b3e", "#4fc3f7"
    ),
}


def kind_style(kind: str) -> KindStyle:
    """Return the style of a node's kind from `STYLE` or `FIGURE_STYLE`, or a neutral one."""
    return FIGURE_STYLE.get(kind) or style(kind)


@dataclass(frozen=True)
class TableNode:
    """One box: a title, and a row per entry.

    Attributes
    ----------
    kind
        A key of `STYLE` or `FIGURE_STYLE`.
    title
        The kind as text, and the name: ``Data Manifest M1``.
    rows
        Name and status of each entry; a deletion vector has ordinals with an empty status.
    layer
        0 for snapshots, 1 for root manifests, 2 for the children of root manifests; some figures have more layers.
    group
        The first snapshot that references the node; children of one group are placed side by side.
    frames
        Titles of the frames around the node, outermost first. Neighbours with the same titles share the frames.
    """

    id: str
    kind: str
    title: str
    rows: tuple[tuple[str, str], ...] = ()
    layer: int = 0
    group: str = ""
    tooltip: str = ""
    frames: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableLink:
    """An edge of a diagram.

    ``child`` goes from a snapshot or manifest to what it references, ``applies-to`` (dotted) from a deletion vector or
    delete manifest to what it deletes from.
    """

    source: str
    target: str
    kind: Literal["child", "applies-to"] = "child"
    label: str = ""


@dataclass(frozen=True)
class TableDiagram:
    """Nodes and edges of a figure.

    Raises
    ------
    OptionError
        Two nodes share an id, or an end of an edge is not in the diagram.
    """

    title: str
    caption: str
    nodes: tuple[TableNode, ...] = ()
    links: tuple[TableLink, ...] = field(default=())

    def __post_init__(self) -> None:
        if len(self.by_id) != len(self.nodes):
            raise OptionError("two nodes of the diagram have the same id")
        for link in self.links:
            for end in (link.source, link.target):
                if end not in self.by_id:
                    raise OptionError(f"an edge references the node {end!r}, which is not in the diagram")

    @cached_property
    def by_id(self) -> dict[str, TableNode]:
        """The nodes by id."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def layers(self) -> list[list[TableNode]]:
        """The nodes of each layer, in the given order, without empty layers."""
        found = sorted({node.layer for node in self.nodes})
        return [[node for node in self.nodes if node.layer == layer] for layer in found]

    def children(self) -> list[TableLink]:
        """Return the solid edges."""
        return [link for link in self.links if link.kind == "child"]

    def relations(self) -> list[TableLink]:
        """Return the dotted edges."""
        return [link for link in self.links if link.kind == "applies-to"]

    def frames(self) -> dict[tuple[str, ...], list[TableNode]]:
        """Return the nodes in each frame, outer frames first.

        A frame's key consists of the titles of the frames around it, outermost first, and its own title.
        """
        found: dict[tuple[str, ...], list[TableNode]] = {}
        for node in self.nodes:
            for depth in range(1, len(node.frames) + 1):
                found.setdefault(node.frames[:depth], []).append(node)
        return dict(sorted(found.items(), key=lambda item: len(item[0])))
