"""No string of a table does anything in any output but show."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from iceexplore import render
from iceexplore.render import Scene, SceneEdge, SceneNode, escape
from tests.helpers.hostile import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"
CASES = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())


def scene_of(text: str) -> Scene:
    """A scene with the text in every place that takes one."""
    kinds = [*render.STYLE, text]
    nodes = [SceneNode("root" + text, "table", text, (text, text), text, frozenset({"problem"}), None, 0, text)]
    nodes += [
        SceneNode(f"{i}{text}", kind, text, (text,), text, frozenset({"added"}), "root" + text, 1, text)
        for i, kind in enumerate(kinds)
    ]
    edges = (SceneEdge(f"0{text}", f"1{text}", "applies-to", text), SceneEdge(f"2{text}", f"4{text}", "ref", text))
    return Scene(text, text, tuple(nodes), edges)


@CASES
@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_svg_parses_and_holds_nothing_active(text: str, theme: render.Theme) -> None:
    out = render.svg(scene_of(text), theme=theme)
    root = ET.fromstring(out)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "g", "rect", "path", "text", "title", "desc", "style", "circle"}
    attributes = {name for element in root.iter() for name in element.attrib}
    allowed = "width height viewBox role font-family font-size class x y rx cx cy r d transform text-anchor"
    assert attributes <= {*allowed.split(), "stroke-dasharray"}
    style = root.findtext(f"{SVG}style") or ""
    assert "url(" not in style and "@import" not in style and "display:none" not in style


@pytest.mark.parametrize("text", [t for t in HOSTILE.values() if len(escape.visible(t)) <= 20 and t.strip()])
def test_svg_shows_the_text(text: str) -> None:
    shown = escape.visible(text)
    root = ET.fromstring(render.svg(scene_of(text)))
    assert shown in [element.text for element in root.iter(f"{SVG}text")]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@CASES
def test_html_holds_only_our_tags_and_the_text(text: str) -> None:
    out = render.html_table([text, "n"], [[text, 1], [text, 2]], text) + render.details(text, render.Html("<b>x</b>"))
    out += render.svg_image(render.svg(scene_of(text)), text)
    parser = _Tags()
    parser.feed(out)
    ours = {
        ("table", ("style",)),
        ("caption", ("style",)),
        ("thead", ()),
        ("tbody", ()),
        ("tr", ()),
        ("th", ("style",)),
        ("td", ("style",)),
        ("span", ()),
        ("details", ("style",)),
        ("summary", ("style",)),
        ("b", ()),
        ("div", ("style",)),
        ("img", ("src", "alt", "style")),
    }
    assert set(parser.tags) <= ours
    if len(text) < 300:
        assert escape.visible(text) in "".join(parser.text)
    out.encode("utf-8")


def test_html_leaves_mathjax_no_delimiter() -> None:
    # MathJax looks for $...$ and \(...\) within one run of text; each sign is a run of its own.
    out = escape.html(HOSTILE["latex"])
    runs = re.split(r"<[^>]*>", out)
    assert all(run in ("$", "\\") or not re.search(r"[$\\]", run) for run in runs)


@CASES
def test_mermaid_lines_have_one_of_a_few_forms(text: str) -> None:
    out = str(render.mermaid(scene_of(text)))
    label = r"(?:[^\x00-\x1f\"`<>{}%\\$&;#]|#\d+;|<br/>)*"
    opening, closing = r"(?:\[\(|\[/|>|\(\[|\{\{|\[\[|\[\\|\(|\[)", r"(?:\)\]|/\]|\]|\]\)|\}\}|\]\]|\\\]|\)|\])"
    forms = [
        r"flowchart LR",
        rf"  acc(?:Title|Descr): {label}",
        rf'  n\d+{opening}"{label}"{closing}',
        r"  n\d+ (?:-->|-\. applies to \.->|-\.->) n\d+",
        r"  classDef \w+ [\w:#,\- ]+",
        r"  class n\d+(?:,n\d+)* \w+",
        r"  linkStyle default stroke:#7d8896",
    ]
    for line in out.split("\n"):
        assert any(re.fullmatch(form, line) for form in forms), line
    assert len(out) < 50_000
    out.encode("utf-8")


@CASES
def test_mermaid_label_decodes_to_the_text(text: str) -> None:
    # What Mermaid does: #123; is a character. Then it looks for these, in the text that has become.
    decoded = re.sub(r"#(\d+);", lambda m: chr(int(m[1])), escape.mermaid(text))
    assert not re.search(r"\\n|\$\$|\ufb02\u00b0|\u00b6\u00df|fa[bklrs]?:fa-", decoded)
    assert decoded.replace("\u2060", "") == escape.visible(text)


@CASES
def test_dot_is_drawn_with_nothing_active(text: str, require_dot: Path) -> None:
    source = render.graphviz(scene_of(text)).source
    assert "URL" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", source)
    drawn = subprocess.run(
        [str(require_dot), "-Tsvg"], input=source.encode(), capture_output=True, timeout=60, check=False
    )
    assert drawn.returncode == 0, drawn.stderr
    root = ET.fromstring(drawn.stdout)
    names = {name for element in root.iter() for name in element.attrib}
    assert not any("href" in name or name.startswith("on") for name in names)
    assert not {e.tag for e in root.iter()} & {f"{SVG}a", f"{SVG}script", f"{SVG}foreignObject", f"{SVG}image"}
    nodes = [e for e in root.iter(f"{SVG}g") if e.get("class") == "node"]
    assert len(nodes) == len(scene_of(text).nodes)
    if 0 < len(text) < 70 and text.strip() and "  " not in text:
        shown = [e.text.replace("\xa0", " ") for e in root.iter(f"{SVG}text") if e.text]
        assert any(escape.visible(text) in s for s in shown)


@CASES
def test_text_keeps_its_lines_and_drives_no_terminal(text: str) -> None:
    scene = scene_of(text)
    out = render.text(scene)
    assert len(out.split("\n")) == len(scene.nodes)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", out)
    assert len(out) < 2000 * len(scene.nodes)


@CASES
def test_visible_is_stable_and_shows_every_character(text: str) -> None:
    shown = escape.visible(text)
    assert escape.visible(shown) == shown
    assert len(shown) >= len(text)
    shown.encode("utf-8")


def test_visible_keeps_what_scripts_need() -> None:
    assert escape.visible(HOSTILE["emoji"]) == HOSTILE["emoji"]
    assert escape.visible("\u0645\u06cc\u200c\u062e") == "\u0645\u06cc\u200c\u062e"
    assert escape.visible("a\x1b[0m\u202eb\ud800\x00") == "a␛[0m⟨U+202E⟩b⟨U+D800⟩␀"


def test_shorten_keeps_both_ends() -> None:
    assert escape.shorten("abcdefghij", 7) == "abc…hij"
    assert escape.shorten("abcdefg", 7) == "abcdefg"
    assert len(escape.shorten(HOSTILE["long"], 100)) == 100
