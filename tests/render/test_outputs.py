"""What the outputs say, and in which MIME types."""

from __future__ import annotations

import base64
import re
import sys
import xml.etree.ElementTree as ET

import pytest

import iceexplore as ix
from iceexplore import render
from iceexplore.errors import MissingDependencyError, OptionError
from iceexplore.render import Scene, SceneEdge, SceneNode


@pytest.fixture
def scene() -> Scene:
    nodes = (
        SceneNode("t", "table", "trips", ("2 snapshots",), "v3"),
        SceneNode("m", "metadata", "v2.metadata.json", parent="t", level=1),
        SceneNode("b", "branch", "main", parent="m", level=2),
        SceneNode("s", "snapshot", "Snapshot 17", parent="m", level=2),
        SceneNode("l", "manifest-list", "snap-17.avro", parent="s", level=3),
        SceneNode("a", "data-manifest", "m0.avro", parent="l", level=4, marks=frozenset({"added"})),
        SceneNode("d", "delete-manifest", "m1.avro", parent="l", level=4, marks=frozenset({"carried", "problem"})),
        SceneNode("f", "data-file", "a.parquet", parent="a", level=5, marks=frozenset({"removed"})),
        SceneNode("x", "more", "+9 more", ("90 rows",), parent="a", level=5, marks=frozenset({"folded"})),
        SceneNode("v", "deletion-vector", "dv.puffin", parent="d", level=5),
    )
    return Scene("trips", "a table", nodes, (SceneEdge("b", "s", "ref"), SceneEdge("v", "f", "applies-to")))


def test_text(scene: Scene) -> None:
    assert render.text(scene) == (
        "▦ trips [v3] · 2 snapshots\n"
        "└─ ▤ v2.metadata.json\n"
        "   ├─ ⚑ main · → Snapshot 17\n"
        "   └─ ● Snapshot 17\n"
        "      └─ ⬡ snap-17.avro\n"
        "         ├─ + ■ m0.avro\n"
        "         │  ├─ − ▭ a.parquet\n"
        "         │  └─ … +9 more · 90 rows\n"
        "         └─ =! ◪ m1.avro\n"
        "            └─ ◍ dv.puffin · applies to a.parquet"
    )


def test_svg_follows_the_viewer_or_keeps_one_theme(scene: Scene) -> None:
    auto, light, dark = (render.svg(scene, theme=t) for t in ("auto", "light", "dark"))
    assert "prefers-color-scheme:dark" in auto
    assert "prefers-color-scheme" not in light + dark
    assert render.PAPER["light"].paper in light and render.PAPER["dark"].paper not in light
    assert render.PAPER["dark"].paper in dark and render.PAPER["light"].paper not in dark
    root = ET.fromstring(auto)
    assert root.get("role") == "img"
    first, second = list(root)[:2]
    assert (first.text, second.text) == ("trips", "a table")


def test_an_unknown_theme_is_refused(scene: Scene) -> None:
    with pytest.raises(OptionError, match="'auto', 'light' or 'dark'"):
        render.svg(scene, theme="blue")  # type: ignore[arg-type]


def test_no_kind_and_no_mark_differs_by_colour_alone() -> None:
    def differs_beside_colour(one: str, other: str) -> bool:
        a, b = render.STYLE[one], render.STYLE[other]
        return a.sign != b.sign or a.layer != b.layer

    kinds = list(render.STYLE)
    assert all(differs_beside_colour(a, b) for i, a in enumerate(kinds) for b in kinds[i + 1 :])
    icons = [style.shape for style in render.STYLE.values()]
    assert set(icons) <= set(render.ICONS)
    # The two vectors share an icon: one hangs in the layer of manifests, the other in that of files.
    assert len(set(icons)) == len(icons) - 1
    assert len({mark.sign for mark in render.MARKS.values()}) == len(render.MARKS)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("kind", render.STYLE)
def test_text_on_every_box_is_legible(kind: str) -> None:
    style, light, dark = render.STYLE[kind], render.PAPER["light"], render.PAPER["dark"]
    assert _contrast(light.ink, style.fill) >= 7 and _contrast(dark.ink, style.dark_fill) >= 7
    assert _contrast(light.muted, style.fill) >= 4.5 and _contrast(dark.muted, style.dark_fill) >= 4.5
    # The icon and the frame are graphics (WCAG 1.4.11); amber on cream is the proposal's own, and has a shape.
    assert _contrast(style.dark_stroke, style.dark_fill) >= 3
    assert _contrast(style.stroke, style.fill) >= (2.3 if kind in ("data-file", "manifest-dv") else 3)


def test_mermaid_bundle_has_no_html(scene: Scene) -> None:
    out = render.mermaid(scene)
    bundle = out._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/markdown", "text/vnd.mermaid"}
    assert bundle["text/markdown"] == f"```mermaid\n{out}\n```\n"
    assert out.startswith("flowchart LR\n  accTitle: trips\n  accDescr: a table\n")
    assert '  n9("#9677; dv.puffin")' in out.split("\n")
    assert "  n9 -. applies to .-> n7" in out.split("\n")
    assert "fill:#e1f5fe,stroke:#01579b" in out


def test_mermaid_stays_within_its_limits() -> None:
    nodes = [SceneNode("r", "table", "r")]
    nodes += [SceneNode(str(i), "data-file", 'é"<' * 40, ('é"<' * 40,) * 3, parent="r", level=1) for i in range(3000)]
    edges = tuple(SceneEdge(str(i), str(i + 1)) for i in range(2999))
    out = render.mermaid(Scene("t", "d", tuple(nodes), edges), max_nodes=5000)
    assert len(out) < 50_000
    assert "more" in out
    bare = tuple(SceneNode(n.id, n.kind, n.id, parent=n.parent, level=n.level) for n in nodes)
    short = render.mermaid(Scene("t", "d", bare), max_nodes=5000)
    assert 400 < short.count(" --> ") < 500, "Mermaid draws no more edges, however short the text"
    small = render.mermaid(Scene("t", "d", tuple(SceneNode(str(i), "tag", str(i)) for i in range(400))), max_nodes=150)
    assert len(re.findall(r"^  n\d+>", small, re.M)) <= 150
    assert "+251 more" in small


def test_svg_bundle_is_an_image(scene: Scene) -> None:
    out = render.svg(scene)
    bundle = out._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    match = re.search(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="trips"', bundle["text/html"])
    assert match is not None
    assert base64.b64decode(match[1]).decode() == out


def test_graphviz_builds_without_the_program(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    source = render.graphviz(scene).source
    assert "n9 -> n7" in source
    assert "dv.puffin" in source


def test_graphviz_package_missing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(MissingDependencyError, match="pip install graphviz"):
        render.graphviz(scene)


def test_html_table() -> None:
    out = render.html_table(["name", "rows"], [["a<b", 1234567], [render.Html("<i>x</i>"), None]], "two <rows>")
    assert "a&lt;b" in out and "<i>x</i>" in out and "1,234,567" in out and "two &lt;rows&gt;" in out
    assert "text-align:right" in out
    many = render.html_table(["n"], [[i] for i in range(1000)], limit=10)
    assert many.count("<tr>") == 1 + 10 + 1
    assert "+990 more rows" in many
    assert "<style" not in out and " id=" not in out and " class=" not in out


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_a_slide_has_the_picture_its_title_and_a_caption(scene: Scene, theme: render.Theme) -> None:
    picture = render.svg(scene, theme=theme)
    slide = picture.slide("A <title>", "snapshot 17 & date")
    root = ET.fromstring(slide)
    assert (root.get("width"), root.get("height"), slide.width) == ("1920", "1080", 1920)
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["A <title>", "snapshot 17 & date"]
    assert "Data manifest" in texts, "the legend of the picture"
    (inner,) = [e for e in root if e.tag.endswith("svg")]
    assert (inner.get("x"), inner.get("viewBox")) == ("64", ET.fromstring(picture).get("viewBox"))
    assert (inner.get("width"), inner.get("height")) == ("1792", "876")
    assert "prefers-color-scheme" in slide if theme == "auto" else "prefers-color-scheme" not in slide
    first = ET.fromstring(picture.slide())
    assert next(first.iter("{http://www.w3.org/2000/svg}text")).text == "trips", "by default that of the picture"


def test_every_kind_of_picture_makes_a_slide() -> None:
    t = ix.sample("trips")
    plan = t.plan("km > 5")
    for picture in (t.tree(style="proposal").to_svg(), t.file_map().to_svg(), plan.waterfall().to_svg()):
        root = ET.fromstring(picture.slide("x"))
        assert [e.get("height") for e in root if e.tag.endswith("svg")] == ["876"]
