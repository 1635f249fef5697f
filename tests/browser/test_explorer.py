"""The explorer in a real JupyterLab: pointer, keyboard, slider, pages, themes, and names that would like to be code."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.harness import ROOT, Theme

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def notebook_of(path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, path)
    return path


def show(notebook: Any, folder: Path, source: str) -> Any:
    """Run the cell that shows the explorer ``w`` and wait until it stands still."""
    cells = ("import iceexplore as ix", f"w = {source}\nw")
    notebook.open(notebook_of(folder / "n.ipynb", *cells))
    notebook.run_all()
    widget = notebook.page.locator(".ice-widget")
    widget.wait_for()
    idle(notebook)
    return widget


def idle(notebook: Any) -> None:
    notebook.page.wait_for_timeout(250)
    notebook.page.wait_for_selector(".ice-widget[aria-busy=false]")
    assert notebook.page.locator(".ice-error:visible").count() == 0


def rows(notebook: Any, kind: str = "") -> Any:
    return notebook.page.locator(f".ice-row[data-id^='{kind}']")


def focused(notebook: Any) -> str:
    return str(notebook.page.evaluate("document.activeElement.dataset.id ?? ''"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table with 330 entries in a manifest: pages of tables and of the tree."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        generate = importlib.import_module("generate")
        yield generate.generate(generate.Shape(files=330, deletes=0, manifests=1), tmp_path_factory.mktemp("large"))
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture
def hostile(large: Path, tmp_path: Path) -> Path:
    """The same table, with markup wherever a name can be."""
    document = json.loads(large.read_text())
    document["schemas"][0]["fields"][0]["name"] = HOSTILE
    document["properties"] = {HOSTILE: HOSTILE}
    document["refs"][HOSTILE] = {"snapshot-id": document["current-snapshot-id"], "type": "tag"}
    document["snapshots"][0]["summary"]["operation"] = HOSTILE
    document["snapshots"][0]["summary"][HOSTILE] = HOSTILE
    path = tmp_path / "v1.metadata.json"
    path.write_text(json.dumps(document))
    return path


def test_click_through(notebook: Any, tmp_path: Path) -> None:
    show(notebook, tmp_path, "ix.sample('trips').explore()")
    assert notebook.page.locator(".ice-row[aria-selected=true]").get_attribute("data-id").startswith("snapshot:")
    assert rows(notebook, "file:").count() == 0
    manifest = rows(notebook, "manifest:").first
    manifest.locator(".ice-twisty").click()
    idle(notebook)
    assert manifest.get_attribute("aria-expanded") == "true"
    file = rows(notebook, "file:").first
    file.click()
    idle(notebook)
    assert file.get_attribute("aria-selected") == "true"
    assert notebook.page.locator(".ice-kind").inner_text().startswith("Data file")
    assert "trip_id" in notebook.page.locator(".ice-table").inner_text()
    manifest.locator(".ice-twisty").click()
    idle(notebook)
    assert rows(notebook, "file:").count() == 0


def test_every_tab_shows_a_table(notebook: Any, tmp_path: Path) -> None:
    show(notebook, tmp_path, "ix.sample('trips').explore()")
    tabs = notebook.page.locator(".ice-tab")
    assert tabs.count() >= 3
    for i in range(tabs.count()):
        tabs.nth(i).click()
        idle(notebook)
        assert tabs.nth(i).get_attribute("aria-selected") == "true"
        assert notebook.page.locator(".ice-table tbody tr").count() > 0


def test_keyboard(notebook: Any, tmp_path: Path) -> None:
    show(notebook, tmp_path, "ix.sample('trips').explore()")
    press = notebook.page.keyboard.press
    tree = notebook.page.locator(".ice-tree")
    assert tree.locator("[tabindex='0']").count() == 1
    tree.locator("[tabindex='0']").focus()
    press("Home")
    assert focused(notebook) == "table"
    press("ArrowDown")
    assert focused(notebook) == "metadata"
    press("ArrowLeft")
    idle(notebook)
    assert rows(notebook, "metadata").first.get_attribute("aria-expanded") == "false"
    assert rows(notebook, "snapshot:").count() == 0
    press("ArrowLeft")
    assert focused(notebook) == "table"
    press("ArrowDown")
    press("ArrowRight")
    idle(notebook)
    assert rows(notebook, "snapshot:").count() == 1
    press("ArrowRight")
    assert focused(notebook).startswith(("ref:", "snapshot:"))
    press("End")
    assert focused(notebook) == notebook.page.locator(".ice-row").last.get_attribute("data-id")
    press("Home")
    press("Enter")
    idle(notebook)
    assert rows(notebook, "table").get_attribute("aria-selected") == "true"
    assert notebook.page.locator(".ice-kind").inner_text() == "Table"
    assert tree.locator("[tabindex='0']").count() == 1
    # the notebook kept its hands off: still one cell after the other, none of them in edit mode
    assert notebook.page.locator(".jp-Notebook .jp-CodeCell").count() == 2


def test_slider(notebook: Any, tmp_path: Path) -> None:
    show(notebook, tmp_path, "ix.sample('trips').explore()")
    last = rows(notebook, "snapshot:").get_attribute("data-id")
    slider = notebook.page.locator(".ice-line")
    slider.focus()
    notebook.page.keyboard.press("Home")
    idle(notebook)
    first = rows(notebook, "snapshot:").get_attribute("data-id")
    assert first != last
    assert notebook.page.locator(".ice-row[aria-selected=true]").get_attribute("data-id") == first
    assert "1 of" in slider.get_attribute("aria-valuetext")
    assert notebook.page.locator(".ice-button[aria-label='Earlier snapshot']").is_disabled()
    notebook.page.locator(".ice-button[aria-label='Later snapshot']").click()
    idle(notebook)
    assert rows(notebook, "snapshot:").get_attribute("data-id") not in (first, last)


def test_pages(notebook: Any, tmp_path: Path, large: Path) -> None:
    show(notebook, tmp_path, f"ix.open({str(large)!r}).explore()")
    manifest = rows(notebook, "manifest:").first
    manifest.click()
    idle(notebook)
    status = notebook.page.locator(".ice-range")
    assert status.inner_text() == "1–50 of 330 rows"
    notebook.page.locator("[aria-label='Next page']").click()
    idle(notebook)
    assert status.inner_text() == "51–100 of 330 rows"
    assert notebook.page.locator(".ice-table tbody tr").first.inner_text().startswith("000000050")
    notebook.page.locator("[aria-label='Last page']").click()
    idle(notebook)
    assert status.inner_text() == "301–330 of 330 rows"
    assert notebook.page.locator("[aria-label='Next page']").is_disabled()
    manifest.locator(".ice-twisty").click()
    idle(notebook)
    assert rows(notebook, "file:").count() == 100
    rows(notebook, "more:").first.click()
    idle(notebook)
    assert rows(notebook, "file:").count() == 200


def test_names_stay_names(notebook: Any, tmp_path: Path, hostile: Path, large: Path) -> None:
    moved = {f"{large.parents[1].as_uri()}": str(large.parents[1])}
    show(notebook, tmp_path, f"ix.open({str(hostile)!r}, moved={moved!r}, allow={str(large.parents[1])!r}).explore()")
    assert "<img" in notebook.page.locator(".ice-timeline").inner_text()
    assert "<img" in notebook.page.locator(".ice-tree").inner_text()
    for kind in ("snapshot:", "table", "metadata", "root:", "manifest:"):
        rows(notebook, kind).first.click()
        idle(notebook)
        for summary in notebook.page.locator(".ice-rest summary").all():
            summary.click()
        for tab in notebook.page.locator(".ice-tab").all():
            tab.click()
            idle(notebook)
    assert notebook.page.locator(".ice-widget img, .ice-widget script").count() == 0
    assert notebook.page.title() != "owned"


def test_errors_are_shown(notebook: Any, tmp_path: Path) -> None:
    show(notebook, tmp_path, "ix.sample('trips').explore()")
    notebook.page.evaluate(
        """() => {
            const code = "w.select('file:1:2:3')";
            window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code}).done;
        }"""
    )
    error = notebook.page.locator(".ice-error")
    error.wait_for()
    assert "file:1:2:3" in error.inner_text()
    rows(notebook, "table").click()
    notebook.page.wait_for_selector(".ice-error", state="hidden")
    idle(notebook)
    assert notebook.page.locator(".ice-kind").inner_text() == "Table"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes(notebook: Any, tmp_path: Path, theme: Theme) -> None:
    widget = show(notebook, tmp_path, "ix.sample('trips').explore()")
    notebook.theme(theme)
    notebook.page.wait_for_selector(f".ice-widget[data-ice-theme={theme}]")
    measured = notebook.page.evaluate(
        """() => [".ice-widget", ".ice-label", ".ice-note", ".ice-facts dt", ".ice-facts dd", ".ice-tab"].map((s) => {
            const style = getComputedStyle(document.querySelector(s));
            return [s, style.color, getComputedStyle(document.querySelector(".ice-widget")).backgroundColor];
        })"""
    )
    for selector, ink, paper in measured:
        assert contrast(ink, paper) >= 4.5, (selector, ink, paper)
    assert widget.bounding_box()["width"] > 500


def test_fits_a_narrow_cell(notebook: Any, tmp_path: Path) -> None:
    notebook.page.set_viewport_size({"width": 900, "height": 900})
    widget = show(notebook, tmp_path, "ix.sample('trips').explore()")
    assert widget.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert notebook.page.locator(".ice-when").evaluate("(e) => e.getBoundingClientRect().width") > 100


def contrast(first: str, second: str) -> float:
    """The contrast of two CSS colours ``rgb(r, g, b)`` (WCAG 2)."""

    def luminance(colour: str) -> float:
        parts = [float(p) / 255 for p in colour[colour.index("(") + 1 : colour.index(")")].split(",")[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
