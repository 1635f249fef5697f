"""Write a scene as a Graphviz graph: building it needs the package ``graphviz``, drawing it the program ``dot``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iceexplore.errors import MissingDependencyError
from iceexplore.render import _escape as escape
from iceexplore.render.scenes._scene import Scene, SceneNode
from iceexplore.render.scenes._style import MARKS, PRUNED, style

if TYPE_CHECKING:
    from graphviz import Digraph

__all__ = ["graphviz"]

_MAX_LABEL = 90


def graphviz(scene: Scene) -> Digraph:
    """Build a ``graphviz.Digraph``; its ``.source`` is the DOT text.

    Raises
    ------
    MissingDependencyError
        The ``graphviz`` package is not installed.
    """
    try:
        import graphviz as gv
    except ImportError as error:
        raise MissingDependencyError("writing DOT needs the package graphviz: pip install graphviz") from error
    font = "Helvetica,Arial,sans-serif"
    graph = gv.Digraph(
        name="iceexplore",
        comment=None,
        graph_attr={
            "rankdir": "LR",
            "label": escape.dot(escape.shorten(f"{scene.title} · {scene.description}", 200)),
            "labelloc": "t",
            "fontname": font,
            "nodesep": "0.18",
            "ranksep": "0.6",
            "bgcolor": "white",
        },
        node_attr={"fontname": font, "fontsize": "11", "style": "filled", "penwidth": "1.4", "fontcolor": "#1c2430"},
        edge_attr={"color": "#8792a0", "arrowsize": "0.6", "fontname": font, "fontsize": "9"},
    )
    numbers = {node.id: f"n{i}" for i, node in enumerate(scene.nodes)}
    for node in scene.nodes:
        look = style(node.kind)
        faded = "filled,dashed" if node.marks & {"carried", "removed", "pruned"} else "filled"
        fill, stroke = PRUNED["light"] if "pruned" in node.marks else (look.fill, look.stroke)
        graph.node(
            numbers[node.id],
            label=_label(node),
            shape=look.graphviz,
            fillcolor=fill,
            color=stroke,
            style=faded,
            **({"fontcolor": "#525d6c"} if "pruned" in node.marks else {}),
        )
    for node in scene.nodes:
        if node.parent is not None:
            graph.edge(numbers[node.parent], numbers[node.id])
    for edge in scene.relations():
        applies = edge.kind == "applies-to"
        graph.edge(
            numbers[edge.source],
            numbers[edge.target],
            style="dashed",
            constraint="false",
            color="#c62828" if applies else "#00695c",
            label="applies to" if applies else "",
        )
    return graph


def _label(node: SceneNode) -> str:
    look = style(node.kind)
    signs = "".join(MARKS[mark].sign for mark in MARKS if mark in node.marks and mark not in ("folded", "carried"))
    head = f"{signs} {look.sign} {node.label}".strip()
    if node.badge:
        head += f" ({node.badge})"
    return "\\n".join(escape.dot(escape.shorten(part, _MAX_LABEL)) for part in (head, *node.lines))
