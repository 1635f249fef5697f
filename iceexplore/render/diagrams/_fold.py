"""Reduce a diagram of tables to Mermaid's limits: fewer rows, then only the newest snapshots, then fewer children."""

from __future__ import annotations

from dataclasses import replace

from iceexplore.render.diagrams._tables import TableDiagram, TableNode

__all__ = ["with_children", "with_newest", "with_rows"]


def with_rows(diagram: TableDiagram, most: int) -> TableDiagram:
    """Return the diagram with at most ``most`` rows per node, and a row that counts the others."""
    return replace(diagram, nodes=tuple(_short(node, most) for node in diagram.nodes))


def _short(node: TableNode, most: int) -> TableNode:
    if len(node.rows) <= most + 1:  # a row that replaces a single one saves nothing
        return node
    return replace(node, rows=(*node.rows[:most], (f"… {len(node.rows) - most:,} more", "")))


def with_newest(diagram: TableDiagram, most: int) -> TableDiagram:
    """Return the last ``most`` nodes of the top layer and all nodes below them, with a note in the caption."""
    top = diagram.layers[0]
    kept = {node.id for node in top[-most:]}
    left = sorted(kept)
    below: dict[str, list[str]] = {}
    for link in diagram.children():
        below.setdefault(link.source, []).append(link.target)
    while left:
        new = [child for child in below.get(left.pop(), ()) if child not in kept]
        kept.update(new)
        left += new
    note = f"the last {most} of {len(top)} shown, as Mermaid draws no more"
    return TableDiagram(
        diagram.title,
        f"{diagram.caption} · {note}" if diagram.caption else note,
        tuple(node for node in diagram.nodes if node.id in kept),
        tuple(link for link in diagram.links if link.source in kept and link.target in kept),
    )


def with_children(diagram: TableDiagram, most: int) -> TableDiagram:
    """Return the diagram with the first ``most`` nodes of each layer, and one node that replaces the others."""
    kept: list[TableNode] = []
    drawn_as: dict[str, str] = {}  # node → the node that is drawn instead of it
    for layer in diagram.layers:
        rest = layer[most:] if len(layer) > most + 1 else []
        kept += layer[: len(layer) - len(rest)]
        if rest:
            more = TableNode(
                f"more\x00{rest[0].layer}", "more", f"+{len(rest):,} more", (), rest[0].layer, rest[0].group
            )
            kept.append(more)
            drawn_as |= {node.id: more.id for node in rest}
    links = [
        replace(link, source=drawn_as.get(link.source, link.source), target=drawn_as.get(link.target, link.target))
        for link in diagram.links
        if link.kind == "child" or not drawn_as.keys() & {link.source, link.target}
    ]
    return replace(
        diagram, nodes=tuple(kept), links=tuple(link for link in dict.fromkeys(links) if link.source != link.target)
    )
