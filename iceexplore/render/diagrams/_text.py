"""Write a diagram of tables as Mermaid, DOT and lines of text, with the nodes, order and statuses of the SVG."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from iceexplore.errors import MissingDependencyError
from iceexplore.render import _escape as escape
from iceexplore.render._mime import Mermaid
from iceexplore.render.diagrams._fold import with_children, with_newest, with_rows
from iceexplore.render.diagrams._tables import TableDiagram, TableNode, kind_style
from iceexplore.render.scenes._mermaid import MAX_EDGES, MAX_TEXT

if TYPE_CHECKING:
    from graphviz import Digraph

__all__ = ["tables_graphviz", "tables_mermaid", "tables_text"]

_MAX_NAME = 60

#: The proposal's own theme ("Diagram Source"): subgraphs are transparent and have no border; they only keep the nodes
#: of a layer at the same height.
_THEME = (
    '%%{init: {"flowchart": {"htmlLabels": true}, "theme": "base", "themeVariables": {"primaryColor": "#ffffff", '
    '"primaryTextColor": "#000000", "primaryBorderColor": "#000000", "lineColor": "#7d8896", "clusterBkg": '
    '"transparent", "clusterBorder": "transparent"}}}%%'
)
_LEFT = "style='text-align:left'"


def _numbers(diagram: TableDiagram) -> dict[str, str]:
    return {node.id: f"n{i}" for i, node in enumerate(diagram.nodes)}


def tables_mermaid(diagram: TableDiagram) -> Mermaid:
    """Write a diagram as Mermaid: a transparent subgraph per layer, an HTML table per manifest, dotted edges.

    Where Mermaid's limits would be exceeded, manifests show fewer rows; if necessary, only the newest nodes of the top
    layer are drawn, with a note in the caption, and only the first nodes of other layers, with "+N more".
    """
    part, text = diagram, _write(diagram)
    for rows in (8, 4, 2, 1):
        if len(text) >= MAX_TEXT:
            part = with_rows(diagram, rows)
            text = _write(part)
    shorter, newest = part, len(diagram.layers[0]) if diagram.nodes else 0
    while newest > 1 and (len(text) >= MAX_TEXT or len(part.links) >= MAX_EDGES):
        newest = newest * 2 // 3
        part = with_newest(shorter, newest)
        text = _write(part)
    whole, most = part, max(map(len, part.layers), default=0)
    while most > 1 and (len(text) >= MAX_TEXT or len(part.links) >= MAX_EDGES):
        most = most * 2 // 3
        part = with_children(whole, most)
        text = _write(part)
    return Mermaid(text)


def _write(diagram: TableDiagram) -> str:
    numbers = _numbers(diagram)
    out = [_THEME, "graph TD"]
    out.append(f"  accTitle: {escape.mermaid(escape.shorten(diagram.title, 200))}")
    out.append(f"  accDescr: {escape.mermaid(escape.shorten(diagram.caption, 600))}")
    frames = diagram.frames()
    if frames:
        out += _mermaid_frames(diagram, (), numbers, {frame: f"frame{i}" for i, frame in enumerate(frames)})
    else:
        for i, layer in enumerate(diagram.layers):
            out.append(f'  subgraph layer{i} [" "]')
            out += [f'    {numbers[node.id]}["{_mermaid_label(node)}"]' for node in layer]
            out.append("  end")
    out += [f"  {numbers[x.source]} --> {numbers[x.target]}" for x in diagram.children()]
    for x in diagram.relations():
        words = escape.mermaid(escape.shorten(x.label or "applies to", _MAX_NAME))
        out.append(f'  {numbers[x.source]} -.->|"{words}"| {numbers[x.target]}')
    for kind in sorted({node.kind for node in diagram.nodes}):
        look, name = kind_style(kind), "k" + "".join(c for c in kind if c.isalnum())
        members = [numbers[node.id] for node in diagram.nodes if node.kind == kind]
        out.append(f"  classDef {name} fill:{look.fill},stroke:{look.stroke},stroke-width:2px,color:#1c2430")
        out.append(f"  class {','.join(members)} {name}")
    out += [f"  style frame{i} fill:transparent,stroke:#7d8896" for i in range(len(frames))]
    if not frames:
        out += [f"  style layer{i} fill:transparent,stroke:transparent" for i in range(len(diagram.layers))]
    return "\n".join(out)


def _mermaid_frames(
    diagram: TableDiagram, at: tuple[str, ...], numbers: dict[str, str], names: dict[tuple[str, ...], str]
) -> list[str]:
    """Return the lines for a frame's content: first its own nodes, then the frames in it, as subgraphs."""
    pad = "  " * (len(at) + 1)
    out = [f'{pad}{numbers[node.id]}["{_mermaid_label(node)}"]' for node in diagram.nodes if node.frames == at]
    for frame, name in names.items():
        if frame[:-1] == at:
            out.append(f'{pad}subgraph {name} ["{escape.mermaid(escape.shorten(frame[-1], _MAX_NAME))}"]')
            out += [*_mermaid_frames(diagram, frame, numbers, names), f"{pad}end"]
    return out


def _mermaid_label(node: TableNode) -> str:
    title = f"<b>{escape.mermaid(escape.shorten(node.title, _MAX_NAME))}</b>"
    if not node.rows:
        return title
    rows = "".join(
        f"<tr><td {_LEFT}>{escape.mermaid(escape.shorten(name, _MAX_NAME))}</td>"
        f"<td {_LEFT}>{escape.mermaid(escape.shorten(status, _MAX_NAME))}</td></tr>"
        for name, status in node.rows
    )
    return f"{title}<table>{rows}</table>"


def tables_graphviz(diagram: TableDiagram) -> Digraph:
    """Build a ``graphviz.Digraph`` with a table per manifest; its ``.source`` is the DOT text.

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
    heading = escape.dot(escape.shorten(f"{diagram.title} · {diagram.caption}", 800))
    graph = gv.Digraph(
        name="iceexplore",
        graph_attr={"rankdir": "TB", "label": heading, "labelloc": "t", "fontname": font, "bgcolor": "white"},
        node_attr={"fontname": font, "fontsize": "11", "shape": "box", "style": "filled", "fontcolor": "#1c2430"},
        edge_attr={"color": "#8792a0", "arrowsize": "0.6", "fontname": font, "fontsize": "9"},
    )
    numbers = _numbers(diagram)
    if diagram.frames():
        _dot_frames(graph, diagram, (), numbers)
    for layer in () if diagram.frames() else diagram.layers:
        with graph.subgraph() as same:
            same.attr(rank="same")
            for before, after in pairwise(layer):  # keeps the order of the layer
                same.edge(numbers[before.id], numbers[after.id], style="invis")
            for node in layer:
                _dot_node(same, node, numbers)
    for x in diagram.children():
        graph.edge(numbers[x.source], numbers[x.target])
    for x in diagram.relations():
        label = escape.dot(escape.shorten(x.label or "applies to", _MAX_NAME))
        graph.edge(
            numbers[x.source], numbers[x.target], style="dotted", color="#c62828", constraint="false", label=label
        )
    return graph


def _dot_node(graph: Digraph, node: TableNode, numbers: dict[str, str]) -> None:
    look = kind_style(node.kind)
    graph.node(numbers[node.id], label=_dot_label(node), fillcolor=look.fill, color=look.stroke)


def _dot_frames(graph: Digraph, diagram: TableDiagram, at: tuple[str, ...], numbers: dict[str, str]) -> None:
    """Add the nodes in a frame, and the frames in it as clusters."""
    for node in diagram.nodes:
        if node.frames == at:
            _dot_node(graph, node, numbers)
    for i, frame in enumerate(diagram.frames()):
        if frame[:-1] == at:
            with graph.subgraph(name=f"cluster_{i}") as cluster:
                cluster.attr(label=escape.dot(escape.shorten(frame[-1], _MAX_NAME)), color="#8792a0", style="rounded")
                _dot_frames(cluster, diagram, frame, numbers)


def _dot_label(node: TableNode) -> str:
    """Return an HTML-like label, or a plain one if the node has no rows. The text is escaped as XML."""
    if not node.rows:
        return escape.dot(escape.shorten(node.title, _MAX_NAME))
    title = escape.svg(escape.shorten(node.title, _MAX_NAME)) or " "
    rows = "".join(
        f'<TR><TD ALIGN="LEFT">{escape.svg(escape.shorten(name, _MAX_NAME)) or " "}</TD>'
        f'<TD ALIGN="LEFT">{escape.svg(escape.shorten(status, _MAX_NAME)) or " "}</TD></TR>'
        for name, status in node.rows
    )
    return f'<<TABLE BORDER="0" CELLBORDER="0"><TR><TD COLSPAN="2"><B>{title}</B></TD></TR>{rows}</TABLE>>'


def tables_text(diagram: TableDiagram) -> str:
    """Write a diagram as lines: every node once, with its rows, by layer; then the "applies to" relations."""
    out = [escape.text(diagram.title)]
    if diagram.caption:
        out.append(escape.text(diagram.caption))
    for layer in diagram.layers:
        out.append("")
        before: tuple[str, ...] = ()
        for node in layer:
            if node.frames != before:
                before = node.frames
                out.append(f"{escape.text(escape.shorten(' › '.join(before), 200))}:")
            named = [diagram.by_id[x.target].title for x in diagram.children() if x.source == node.id]
            arrow = f" → {', '.join(named)}" if named and not node.rows else ""
            out.append(f"{kind_style(node.kind).sign} {escape.text(escape.shorten(node.title + arrow, 200))}")
            width = max((len(name) for name, _ in node.rows), default=0)
            for name, status in node.rows:
                shown = escape.text(escape.shorten(name, 80)).ljust(min(width, 80))
                out.append(f"    {shown}  {escape.text(escape.shorten(status, 80))}".rstrip())
    relations = diagram.relations()
    if relations:
        out.append("")
    for x in relations:
        words = x.label or f"applies to {diagram.by_id[x.target].title}"
        out.append(escape.text(escape.shorten(f"{diagram.by_id[x.source].title} ⇢ {words}", 200)))
    return "\n".join(out)
