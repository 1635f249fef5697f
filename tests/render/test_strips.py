"""Long lists of siblings in drawings: cards for what changed, a strip of cells for the rest."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from iceexplore.render import CellBlock, Scene, SceneEdge, SceneNode, size_shade, svg
from iceexplore.render.scenes._strips import with_strips


def scene(count: int, *more: SceneNode, edges: tuple[SceneEdge, ...] = (), **changes: Any) -> Scene:
    """Return a root with so many children; ``changes`` are marks by the number of a child."""
    root = SceneNode("r", "manifest-list", "root")
    marks = {int(name[1:]): frozenset(value) for name, value in changes.items()}
    nodes = [
        SceneNode(f"n{i}", "data-manifest", f"n{i}", marks=marks.get(i, frozenset()), parent="r", level=1, size=10**i)
        for i in range(count)
    ]
    return Scene("t", "d", (root, *nodes, *more), edges)


def shown(made: Scene) -> list[str]:
    return [node.id for node in made.nodes]


def test_thirty_siblings_are_cards() -> None:
    few = scene(30)
    assert with_strips(few) is few
    assert len(with_strips(scene(31)).nodes) == 1 + 12 + 1


def test_what_changed_comes_first_and_is_never_folded_away() -> None:
    made = with_strips(scene(110, n90=["added"], n70=["removed"], n60=["problem"], n50=["removed", "carried"]))
    assert shown(made)[1:4] == ["n60", "n70", "n90"]
    assert "n50" not in shown(made), "an earlier snapshot removed it"
    strip = made.nodes[-1]
    assert (strip.label, strip.lines, strip.count) == ("+98 more", ("98 data manifests",), 98)
    assert strip.cells is not None and len(strip.cells) == 98
    # if the commit changed more than fit, the cells of the others show it
    added: dict[str, Any] = {f"n{i}": ["added"] for i in range(50)}
    many = with_strips(scene(110, **added))
    cells = many.nodes[-1].cells
    assert cells is not None
    assert len(shown(many)) == 1 + 24 + 1 and sum(cells.changes) == 50 - 24


def test_children_follow_their_parents_and_edges_their_ends() -> None:
    deep = SceneNode("deep", "data-file", "deep", parent="n99", level=2)
    gone = SceneNode("gone", "data-file", "gone", parent="n98", level=2)
    edges = (SceneEdge("n97", "deep"), SceneEdge("n40", "n41"))
    made = with_strips(scene(100, deep, gone, edges=edges))
    assert {"n97", "n98", "n99", "deep", "gone"} <= set(shown(made)), "parents and ends of edges are cards"
    assert made.edges == edges
    crowd = [SceneNode(f"c{i}", "data-file", "c", parent=f"n{i}", level=2) for i in range(100)]
    made = with_strips(scene(100, *crowd, edges=(SceneEdge("c50", "c51"),)))
    assert len([i for i in shown(made) if i.startswith("c")]) == 12, "a folded node takes its children along"
    assert made.edges == ()


def test_the_cells_of_a_fold_join_the_strip() -> None:
    fold = SceneNode(
        "more", "more", "+7 more", ("7 files",), parent="r", level=1, count=7,
        cells=CellBlock(bytes([5] * 7), bytes([1] * 7), bytes(7), ("x", "delete-manifest")),
    )  # fmt: skip
    carried = SceneNode("old", "more", "9 carried over", marks=frozenset({"carried"}), parent="r", level=1,
                        cells=CellBlock(bytes(9), bytes(9), bytes(9), ("data-manifest",)), count=9)  # fmt: skip
    made = with_strips(scene(40, fold, carried))
    assert shown(made)[-2:] == ["strip\x00r", "old"]
    strip = made.nodes[-2]
    assert (strip.label, strip.lines) == ("+35 more", ("28 data manifests", "7 delete manifests"))
    assert strip.cells is not None and strip.cells.shades[-7:] == bytes([5] * 7)
    binned = with_strips(scene(40, replace(fold, lines=("900 files",), count=900)))
    assert (binned.nodes[-1].label, binned.nodes[-1].lines) == ("+928 more", ("900 files",))


def test_the_drawing_of_thousands_fits_a_page() -> None:
    drawing = svg(scene(1_290, n5=["pruned"], n1000=["added"]))
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', drawing)
    assert size and float(size[2]) < 1_600
    root = ET.fromstring(drawing)
    paths = [p for p in root.iter("{http://www.w3.org/2000/svg}path") if "ix-cell" in p.attrib.get("class", "")]
    assert sum(p.attrib["d"].count("M") for p in paths) == 1_290 - 12
    assert len(drawing) < 60_000


@pytest.mark.parametrize(
    ("size", "shade"), [(None, 2), (-5, 0), (0, 0), (9_999, 0), (10_000, 1), (99_999_999, 4), (10**8, 5), (10**30, 5)]
)
def test_shades_of_sizes(size: int | None, shade: int) -> None:
    assert size_shade(size) == shade
