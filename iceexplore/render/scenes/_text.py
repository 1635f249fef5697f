"""Write a scene as lines of text, with box-drawing characters for the branches."""

from __future__ import annotations

from iceexplore.render import _escape as escape
from iceexplore.render.scenes._scene import Scene, SceneNode
from iceexplore.render.scenes._style import MARKS, style

__all__ = ["text"]

_MAX_PART = 240


def text(scene: Scene) -> str:
    """Write a scene as a tree of lines; each node has the sign of its kind and those of its marks, such as ``+``."""
    relations: dict[str, list[str]] = {}
    for edge in scene.relations():
        words = "applies to" if edge.kind == "applies-to" else "→"
        label = scene.by_id[edge.target].label
        if not any(label in line for line in scene.by_id[edge.source].lines):  # unless the node's own lines contain it
            target = escape.text(escape.shorten(label, 80))
            relations.setdefault(edge.source, []).append(f"{words} {target}")
    out: list[str] = []
    # (node, prefix of its line, whether it is its parent's last child), in reverse order of writing.
    stack: list[tuple[SceneNode, str, bool | None]] = [
        (node, "", None) for node in reversed(scene.children.get(None, []))
    ]
    while stack:
        node, before, last = stack.pop()
        branch = "" if last is None else ("└─ " if last else "├─ ")
        out.append(before + branch + _line(node, relations.get(node.id, [])))
        below = before + ("" if last is None else ("   " if last else "│  "))
        nodes = scene.children.get(node.id, [])
        for i in range(len(nodes) - 1, -1, -1):
            stack.append((nodes[i], below, i == len(nodes) - 1))
    return "\n".join(out)


def _line(node: SceneNode, relations: list[str]) -> str:
    signs = "".join(MARKS[mark].sign for mark in MARKS if mark in node.marks and mark != "folded")
    head = f"{signs} " if signs else ""
    head += f"{style(node.kind).sign} {escape.text(escape.shorten(node.label, _MAX_PART))}"
    if node.badge:
        head += f" [{escape.text(escape.shorten(node.badge, 60))}]"
    rest = [escape.text(escape.shorten(line, _MAX_PART)) for line in node.lines if line]
    if len(relations) > 3:
        relations = [*relations[:3], f"and {len(relations) - 3} more"]
    return " · ".join([head, *rest, *relations])
