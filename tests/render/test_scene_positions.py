"""Layout: layers are columns, nothing overlaps, the same scene gives the same positions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceexplore.errors import OptionError
from iceexplore.render import Scene, SceneEdge, SceneNode, fold, scene_positions, share
from iceexplore.render._measure import elide, text_width
from tests.helpers.hangs import ends


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    nodes: list[SceneNode] = []
    edges: list[SceneEdge] = []
    for i in range(draw(st.integers(0, 40))):
        parent = draw(st.one_of(st.none(), st.sampled_from(nodes))) if nodes else None
        level = 0 if parent is None else parent.level + draw(st.integers(1, 2))
        lines = tuple(draw(st.lists(st.text(max_size=30), max_size=3)))
        label = draw(st.text(max_size=60))
        nodes.append(
            SceneNode(str(i), "data-file", label, lines, None, frozenset(), parent.id if parent else None, level)
        )
    if len(nodes) > 1:
        for _ in range(draw(st.integers(0, 10))):
            source, target = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
            edges.append(SceneEdge(source.id, target.id, draw(st.sampled_from(["ref", "applies-to"]))))
    return Scene("t", "d", tuple(nodes), tuple(edges))


@settings(max_examples=200, deadline=None)
@given(scenes())
def test_no_two_boxes_overlap(scene: Scene) -> None:
    placed = scene_positions(scene)
    assert [box.node.id for box in placed.boxes] == [node.id for node in scene.nodes]
    boxes = sorted(placed.boxes, key=lambda b: (b.x, b.y))
    for a, b in itertools.pairwise(boxes):
        if a.x == b.x:
            assert a.y + a.height <= b.y + 1e-6, (a, b)
        else:
            assert a.x + a.width < b.x
    for box in placed.boxes:
        assert box.y >= 0
        assert box.y + box.height <= placed.height + 1e-6
        assert box.x + box.width <= placed.width + 1e-6


@settings(max_examples=50, deadline=None)
@given(scenes())
def test_layers_run_left_to_right_and_siblings_keep_their_order(scene: Scene) -> None:
    placed = scene_positions(scene)
    assert placed == scene_positions(scene)
    boxes = {box.node.id: box for box in placed.boxes}
    for node in scene.nodes:
        if node.parent is not None:
            assert boxes[node.parent].x < boxes[node.id].x
    for children in scene.children.values():
        standing = [boxes[c.id] for c in children if not boxes[c.id].attached]
        for a, b in itertools.pairwise(standing):
            if a.node.level == b.node.level:
                assert a.y < b.y


def test_refs_are_drawn_on_their_snapshot() -> None:
    nodes = (
        SceneNode("m", "metadata", "m"),
        SceneNode("a", "branch", "main", parent="m", level=1),
        SceneNode("b", "tag", "v1", parent="m", level=1),
        SceneNode("s", "snapshot", "S", parent="m", level=1),
    )
    scene = Scene("t", "d", nodes, (SceneEdge("a", "s", "ref"), SceneEdge("b", "s", "ref")))
    boxes = {box.node.id: box for box in scene_positions(scene).boxes}
    assert boxes["a"].attached and boxes["b"].attached and not boxes["s"].attached
    assert boxes["a"].y < boxes["b"].y < boxes["s"].y
    assert boxes["s"].y - (boxes["b"].y + boxes["b"].height) < 10
    assert boxes["m"].middle == boxes["s"].middle


def test_a_parent_stays_in_sight_of_its_first_child() -> None:
    nodes = [SceneNode("p", "data-manifest", "p")]
    nodes += [SceneNode(str(i), "data-file", "f", parent="p", level=1) for i in range(200)]
    boxes = {box.node.id: box for box in scene_positions(Scene("t", "d", tuple(nodes))).boxes}
    assert 0 < boxes["p"].middle - boxes["0"].middle <= 150


def test_five_thousand_nodes_take_no_time_by_the_square() -> None:
    nodes = [SceneNode("r", "table", "r")]
    for i in range(100):
        nodes.append(SceneNode(f"m{i}", "data-manifest", f"m{i}", parent="r", level=1))
        nodes += [
            SceneNode(f"f{i}-{j}", "data-file", "x" * 60, ("a", "b"), None, frozenset(), f"m{i}", 2) for j in range(50)
        ]
    with ends(20):  # about 0.3 s
        scene_positions(Scene("t", "d", tuple(nodes)))


@pytest.mark.parametrize(
    ("nodes", "edges", "words"),
    [
        ([SceneNode("a", "table", ""), SceneNode("a", "table", "")], [], "unique"),
        ([SceneNode("a", "table", "", parent="b", level=1)], [], "must come before"),
        ([SceneNode("a", "table", ""), SceneNode("b", "table", "", parent="a")], [], "layer beyond"),
        ([SceneNode("a", "table", "")], [SceneEdge("a", "z")], "'z'"),
    ],
)
def test_a_scene_that_makes_no_sense_is_refused(nodes: list[SceneNode], edges: list[SceneEdge], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Scene("t", "d", tuple(nodes), tuple(edges))


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(1, 500))
def test_share_is_fair_and_keeps_the_budget(counts: list[int], budget: int) -> None:
    shares = share(counts, budget)
    assert all(0 <= s <= c for s, c in zip(shares, counts, strict=True))
    cost = sum(s + (s < c) for s, c in zip(shares, counts, strict=True))
    assert cost <= max(budget, sum(c > 0 for c in counts))
    cut = [s for s, c in zip(shares, counts, strict=True) if s < c]
    assert len(set(cut)) <= 1  # those that are cut are cut alike, and none that is whole is larger by more than one
    if cut:
        assert all(s <= cut[0] for s, c in zip(shares, counts, strict=True) if s == c)


def test_fold_names_what_it_folds() -> None:
    nodes = [SceneNode("r", "table", "r")]
    for i in range(20):
        nodes.append(SceneNode(f"m{i}", "data-manifest", f"m{i}", parent="r", level=1))
        nodes += [SceneNode(f"f{i}-{j}", "data-file", "f", parent=f"m{i}", level=2) for j in range(50)]
    small = fold(Scene("t", "d", tuple(nodes), (SceneEdge("f0-0", "f0-1"), SceneEdge("f0-0", "f19-49"))), 100)
    assert len(small.nodes) <= 100
    shown = [n for n in small.nodes if n.kind != "more"]
    direct = sum(int(n.label.removeprefix("+").removesuffix(" more")) for n in small.nodes if n.kind == "more")
    assert len(shown) + direct == len(nodes)
    assert SceneEdge("f0-0", "f19-49") not in small.edges
    whole = Scene("t", "d", tuple(nodes))
    assert fold(whole, len(nodes)) is whole


@given(st.text(max_size=80), st.floats(40, 400))
def test_elide_fits(text: str, limit: float) -> None:
    out = elide(text, 13, limit)
    assert text_width(out, 13) <= limit + 1e-6
    assert out == text or "…" in out
