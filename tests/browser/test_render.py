"""Mermaid, SVG and HTML of hostile strings in a real JupyterLab: drawn, shown, and nothing runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from iceexplore.render import escape
from tests.browser.harness import watched
from tests.helpers.hostile import HOSTILE

pytestmark = pytest.mark.browser

_SCENE = """
from IPython.display import HTML, display
from iceexplore import render
from iceexplore.render import Scene, SceneEdge, SceneNode
from tests.helpers.hostile import HOSTILE

def scene_of(text):
    nodes = (
        SceneNode("a", "table", text, (text,), text),
        SceneNode("b", "data-file", text, (text,), None, frozenset({"added"}), "a", 1, text),
        SceneNode("c", "deletion-vector", text, (), None, frozenset(), "a", 1, text),
    )
    return Scene(text, text, nodes, (SceneEdge("c", "b", "applies-to", text),))
"""


def _write(path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, path)
    return path


def test_mermaid_draws_every_hostile_string(notebook: Any, tmp_path: Path) -> None:
    seen = watched(notebook.page)
    cell = "for text in HOSTILE.values():\n    display(render.mermaid(scene_of(text)))"
    notebook.open(_write(tmp_path / "n.ipynb", _SCENE, cell))
    notebook.run_all()
    output = notebook.output("display(render.mermaid")
    images = output.locator(".jp-RenderedMermaid img")
    images.nth(len(HOSTILE) - 1).wait_for(timeout=60_000)
    assert images.count() == len(HOSTILE)
    assert output.locator(".jp-RenderedMermaid.jp-mod-warning, .jp-RenderedMermaid details").count() == 0
    # JupyterLab shows a diagram as an image of its SVG: take the SVGs apart in the page.
    drawn = images.evaluate_all(
        """images => images.map(image => {
          const source = decodeURIComponent(image.src.replace(/^data:image[/]svg[+]xml(;charset=utf-?8)?,/i, ""));
          const svg = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
          const all = [...svg.querySelectorAll("*")];
          const css = [...svg.querySelectorAll("style")];
          css.forEach(style => style.remove());
          return {
            text: svg.textContent,
            width: image.naturalWidth,
            tags: [...new Set(all.map(e => e.localName))],
            handlers: all.flatMap(e => [...e.attributes].map(a => a.name)).filter(n => /^on|href$/.test(n)),
          };
        })"""
    )
    for text, found in zip(HOSTILE.values(), drawn, strict=True):
        assert found["width"] > 0
        assert not {"script", "iframe", "image", "a", "b", "i"} & set(found["tags"])
        assert found["handlers"] == []
        if 0 < len(text) < 60:
            compact = "".join(escape.visible(text).split())
            seen_there = found["text"].replace("\u2060", "")  # takes apart what Mermaid would act on
            assert compact in "".join(seen_there.split()), (text, found["text"])
    assert seen == []


def test_html_and_svg_show_every_hostile_string(notebook: Any, tmp_path: Path) -> None:
    seen = watched(notebook.page)
    cells = (
        "for text in HOSTILE.values():\n    display(render.svg(scene_of(text)))",
        "rows = [[text, 1] for text in HOSTILE.values()]\nHTML(render.html_table(['text', 'n'], rows, 'all'))",
    )
    notebook.open(_write(tmp_path / "n.ipynb", _SCENE, *cells))
    notebook.run_all()
    images = notebook.output("render.svg(").locator("img")
    assert images.count() == len(HOSTILE)
    loaded = images.evaluate_all("images => Promise.all(images.map(i => i.decode().then(() => i.naturalWidth)))")
    assert min(loaded) > 100
    table = notebook.output("html_table")
    table.locator("td").first.wait_for()
    notebook.page.wait_for_timeout(1500)  # MathJax typesets after the output is there
    assert table.locator("mjx-container, script, img, b, style").count() == 0
    shown = table.locator("tbody tr td:first-child").evaluate_all("cells => cells.map(c => c.textContent)")
    assert shown == [escape.visible(escape.shorten(text, 400)) for text in HOSTILE.values()]
    assert seen == []


def test_the_tree_is_an_image_that_stays_legible(notebook: Any, tmp_path: Path) -> None:
    notebook.open(_write(tmp_path / "n.ipynb", "import iceexplore as ix", 'ix.sample("trips").tree(depth="files")'))
    notebook.run_all()
    image = notebook.output("tree(depth").locator("img")
    natural, shown = image.evaluate("i => i.decode().then(() => [i.naturalWidth, i.getBoundingClientRect().width])")
    assert natural > 1200
    assert 0.7 * natural < shown <= natural  # it shrinks a little, then it scrolls
