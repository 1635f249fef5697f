"""Write a scene as a Mermaid flowchart, with numbered nodes and escaped labels, within Mermaid's limits."""

from __future__ import annotations

from iceexplore.render import _escape as escape
from iceexplore.render._mime import Mermaid
from iceexplore.render.scenes._fold import fold
from iceexplore.render.scenes._scene import Scene, SceneNode
from iceexplore.render.scenes._style import MARKS, PRUNED, STYLE, style

__all__ = ["MAX_EDGES", "MAX_TEXT", "mermaid"]

#: Mermaid refuses longer texts (`maxTextSize`), and 500 or more edges (`maxEdges`).
MAX_TEXT = 50_000
MAX_EDGES = 480
_MAX_LABEL = 72
_PRUNED = f"fill:{PRUNED['light'][0]},stroke:{PRUNED['light'][1]},color:#525d6c,stroke-dasharray:2 3"


def mermaid(scene: Scene, *, max_nodes: int = 150) -> Mermaid:
    """Write a scene as a Mermaid flowchart from left to right.

    Parameters
    ----------
    max_nodes
        Approximate number of nodes; the rest is folded into "+N more". It is lowered if the text or the edges would
        exceed Mermaid's limits.
    """
    limit = max(2, min(max_nodes, MAX_EDGES))
    while True:
        text = _write(fold(scene, limit))
        if len(text) < MAX_TEXT or limit <= 2:
            return Mermaid(text)
        limit = limit * 2 // 3


def _label(node: SceneNode) -> str:
    look = style(node.kind)
    signs = "".join(MARKS[mark].sign for mark in MARKS if mark in node.marks and mark not in ("folded", "carried"))
    head = f"{signs} {look.sign} {node.label}".strip()
    if node.badge:
        head += f" ({node.badge})"
    return "<br/>".join(escape.mermaid(escape.shorten(part, _MAX_LABEL)) for part in (head, *node.lines))


def _write(scene: Scene) -> str:
    numbers = {node.id: f"n{i}" for i, node in enumerate(scene.nodes)}
    out = [
        "flowchart LR",
        f"  accTitle: {escape.mermaid(escape.shorten(scene.title, 200))}",
        f"  accDescr: {escape.mermaid(escape.shorten(scene.description, 400))}",
    ]
    for node in scene.nodes:
        left, right = style(node.kind).mermaid
        out.append(f'  {numbers[node.id]}{left}"{_label(node)}"{right}')
    out.extend(f"  {numbers[n.parent]} --> {numbers[n.id]}" for n in scene.nodes if n.parent is not None)
    edges = scene.relations()
    for edge in edges[: max(0, MAX_EDGES - len(scene.nodes))]:
        words = "applies to" if edge.kind == "applies-to" else ""
        arrow = f"-. {words} .->" if words else "-.->"
        out.append(f"  {numbers[edge.source]} {arrow} {numbers[edge.target]}")
    if any(n.parent is not None for n in scene.nodes) or edges:
        out.append("  linkStyle default stroke:#7d8896")  # visible on light and dark backgrounds
    for kind in STYLE:
        members = [numbers[node.id] for node in scene.nodes if node.kind == kind]
        if members:
            look, name = STYLE[kind], "k" + kind.replace("-", "")
            out.append(f"  classDef {name} fill:{look.fill},stroke:{look.stroke},stroke-width:2px,color:#1c2430")
            out.append(f"  class {','.join(members)} {name}")
    for mark, css in (
        ("carried", "stroke-dasharray:5 4"),
        ("removed", "stroke-dasharray:2 3,stroke-width:3px"),
        ("pruned", _PRUNED),
    ):
        members = [numbers[node.id] for node in scene.nodes if mark in node.marks]
        if members:
            out.append(f"  classDef m{mark} {css}")
            out.append(f"  class {','.join(members)} m{mark}")
    return "\n".join(out)
