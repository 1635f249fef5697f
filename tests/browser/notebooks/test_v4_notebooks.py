"""The notebooks of V4 in a real JupyterLab, light and dark: figures are drawn, Mermaid's too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

import iceexplore as ix
from iceexplore._figures import Figure
from tests.browser.harness import ROOT, LabServer, NotebookPage, Theme, notebook_page

pytestmark = pytest.mark.browser

THEMES: tuple[Theme, ...] = ("light", "dark")
FIGURES = list(ix.figures())
DIAGRAMS = [name for name, figure in ix.figures().items() if isinstance(figure, Figure)]


@pytest.fixture(scope="module")
def ran(lab: LabServer, browser: Any) -> Iterator[NotebookPage]:
    """The notebook of figures with every cell run."""
    with notebook_page(lab, browser) as page:
        page.open(ROOT / "notebooks" / "02_v4_figures.ipynb")
        page.run_all()
        yield page
        page.assert_clean()


@pytest.fixture(scope="module", params=THEMES)
def figures(request: pytest.FixtureRequest, ran: NotebookPage) -> NotebookPage:
    """The same in each theme."""
    ran.theme(request.param)
    return ran


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn(figures: NotebookPage, name: str) -> None:
    picture = figures.output(f'ix.figures()["{name}"]').locator("img").first
    drawn = picture.evaluate("async node => { await node.decode(); return [node.naturalWidth, node.naturalHeight] }")
    assert drawn[0] > 400
    assert drawn[1] > 150


def test_the_list_names_every_figure(figures: NotebookPage) -> None:
    text = figures.page.content()
    assert all(name in text for name in FIGURES)


def test_mermaid_draws_the_proposals_notation(notebook: NotebookPage, tmp_path: Path) -> None:
    cell = "import iceexplore as ix\nfrom IPython.display import display\n\n"
    cell += f"for name in {DIAGRAMS}:\n    display(ix.figures()[name].tree().to_mermaid())"
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell)],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(made, tmp_path / "n.ipynb")
    notebook.open(tmp_path / "n.ipynb")
    notebook.run_all()
    output = notebook.output("display(ix.figures()")
    images = output.locator(".jp-RenderedMermaid img")
    images.nth(len(DIAGRAMS) - 1).wait_for(timeout=60_000)
    assert images.count() == len(DIAGRAMS)
    assert output.locator(".jp-RenderedMermaid.jp-mod-warning").count() == 0
    sources = images.evaluate_all("images => images.map(image => decodeURIComponent(image.src))")
    assert sum("EXISTING" in source or "ADDED" in source for source in sources) == len(sources) - 1  # not the sketch
    assert any("<table" in source for source in sources)  # entries are rows of a table, not lines of text
