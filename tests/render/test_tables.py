"""Diagrams of tables: nothing crosses where nothing need cross, every output says the same, and nothing acts."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.errors import OptionError
from iceexplore.render import (
    TableDiagram,
    TableLink,
    TableNode,
    place,
    route_crossings,
    tables_graphviz,
    tables_mermaid,
    tables_svg,
    tables_text,
)
from tests.helpers.hostile import HOSTILE


def history(*named: tuple[str, ...]) -> TableDiagram:
    """Roots that name these children."""
    nodes: list[TableNode] = []
    links: list[TableLink] = []
    seen: dict[str, TableNode] = {}
    for i, children in enumerate(named):
        nodes.append(TableNode(f"r{i}", "root-manifest", f"Root {i}", tuple((c, "ADDED") for c in children), 1, str(i)))
        for child in children:
            seen.setdefault(child, TableNode(child, "data-manifest", f"Manifest {child}", (), 2, str(i)))
            links.append(TableLink(f"r{i}", child))
    return TableDiagram("A history", "of roots", (*nodes, *seen.values()), tuple(links))


@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=2))
def test_two_roots_never_need_a_crossing(named: list[set[int]]) -> None:
    diagram = history(*(tuple(str(c) for c in sorted(children)) for children in named))
    assert route_crossings(place(diagram), diagram) == 0


@pytest.mark.parametrize(
    "named",
    [
        (("m1",), ("m1", "d4"), ("m1", "d4", "d5")),
        (("m1",), ("m1", "dv1"), ("m1", "dv1", "dv2"), ("m1", "dv3", "d4")),
        (("m1", "m2"), ("m1", "m2", "m3"), ("m1", "m4")),
        (("m1", "dv1", "m2", "dv2"), ("m3", "d7")),
    ],
)
def test_the_histories_of_the_proposal_have_no_crossing(named: tuple[tuple[str, ...], ...]) -> None:
    diagram = history(*named)
    assert route_crossings(place(diagram), diagram) == 0


def test_what_cannot_be_drawn_without_a_crossing_is_counted() -> None:
    three = ("a", "b", "c")
    diagram = history(three, three, three)  # K3,3
    assert route_crossings(place(diagram), diagram) > 0


def test_boxes_do_not_overlap_and_layers_are_level() -> None:
    diagram = history(("m1",), ("m1", "d4"), ("m1", "d4", "d5"))
    placed = place(diagram).nodes.values()
    for a, b in combinations(placed, 2):
        assert a.x + a.width <= b.x or b.x + b.width <= a.x or a.bottom <= b.y or b.bottom <= a.y
        if a.node.layer == b.node.layer:
            assert a.y == b.y


def test_mermaid_of_a_long_history_stays_within_its_limits() -> None:
    named = [tuple(f"{i}-{j}" for j in range(8)) for i in range(90)]
    diagram = history(*named)
    text = tables_mermaid(diagram)
    assert len(text) < 50_000 and text.count("-->") < 500
    assert "n0[" in text and "Root 89" in text and "Root 0<" not in text
    assert "90 shown, as Mermaid draws no more" in re.sub(r"#(\d+);", lambda m: chr(int(m[1])), text)
    wide = history(*[tuple(f"{'x' * 50}{i}-{j}" for j in range(40)) for i in range(9)])
    rows = [name for node in wide.nodes for name, _ in node.rows]
    text = tables_mermaid(wide)
    assert len(text) < 50_000 and text.count("-->") == len(wide.links) and text.count(" more</td>") == 9
    assert len(rows) == 360
    text = tables_mermaid(history(tuple(f"m{i}" for i in range(600))))
    assert len(text) < 50_000 and text.count("-->") < 500
    last = text.count("<b>Manifest") + 1
    assert f'n{last}["<b>+{601 - last} more</b>"]' in text and f"n0 --> n{last}\n" in text


def test_every_output_has_every_row() -> None:
    diagram = history(("m1", "m2"), ("m2", "m3"))
    svg, mermaid, dot = tables_svg(diagram), tables_mermaid(diagram), tables_graphviz(diagram).source
    ET.fromstring(svg)
    for out in (svg, mermaid, dot, tables_text(diagram)):
        for words in ("Root 0", "Root 1", "Manifest m3"):
            assert words in out
        assert out.count("ADDED") >= 4
    assert mermaid.count("-->") == 4
    assert mermaid.count("subgraph") == 2


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_names_do_not_act(bad: str) -> None:
    nodes = (
        TableNode("r", "root-manifest", bad, ((bad, "ADDED"), (bad, bad)), 1, "1", bad),
        TableNode("c", "data-file", bad, (), 2, "1", bad),
        TableNode("v", bad, bad, ((bad, ""),), 2, "1", bad),
    )
    links = (TableLink("r", "c"), TableLink("r", "v"), TableLink("v", "c", "applies-to", bad))
    diagram = TableDiagram(bad, bad, nodes, links)
    tree = ET.fromstring(tables_svg(diagram))
    allowed = {"svg", "title", "desc", "style", "rect", "g", "text", "path"}
    assert {element.tag.rpartition("}")[2] for element in tree.iter()} <= allowed
    dot = tables_graphviz(diagram).source.encode()
    drawn = subprocess.run(["dot", "-Tjson0"], input=dot, capture_output=True, check=False)
    assert not drawn.returncode, (drawn.stderr[:500], dot[:1500])
    read = json.loads(drawn.stdout)
    assert len(read["edges"]) == 4  # three of ours, and the invisible one that keeps the order
    assert not any("URL" in thing for thing in (read, *read["objects"], *read["edges"]))
    mermaid = tables_mermaid(diagram)
    assert mermaid.count("%%{") == 1  # our own directive
    assert "<script" not in mermaid.lower()
    assert "\x1b" not in tables_text(diagram)


def test_an_edge_to_nowhere_is_refused() -> None:
    with pytest.raises(OptionError, match="not in the diagram"):
        TableDiagram("x", "y", (), (TableLink("a", "b"),))
    with pytest.raises(OptionError, match="same id"):
        TableDiagram("x", "y", (TableNode("a", "table", "a"), TableNode("a", "table", "b")))
