"""The explorer of a V4 table in a real JupyterLab: the root's own files, and what a manifest DV removes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.graph import build_tree
from iceexplore.widgets import Explorer
from tests.browser.bare import bare_page
from tests.browser.explorer.test_explorer import idle, rows, show
from tests.browser.harness import Theme
from tests.test_v4_faces import made

pytestmark = pytest.mark.browser


@pytest.fixture
def v4(tmp_path: Path) -> Path:
    """A V4 table in a zip: a leaf, a manifest DV, and files in the root."""
    ix.Table(made(tmp_path / "t").state).bundle(tmp_path / "events.zip")
    return tmp_path / "events.zip"


def test_explore_a_v4_table(notebook: Any, v4: Path, tmp_path: Path) -> None:
    show(notebook, tmp_path, f"ix.open({str(v4)!r}).explore()")
    page = notebook.page
    assert rows(notebook, "root:").inner_text().startswith("Root manifest")
    vector = rows(notebook, "file:").filter(has_text="Inline manifest DV").first
    vector.click()
    idle(notebook)
    assert page.locator(".ice-kind").inner_text().startswith("Manifest deletion vector")
    assert page.locator(".ice-tab").all_inner_texts()[:1] == ["Removed entries"]
    assert "D1.parquet" in page.locator(".ice-detail .ice-table").inner_text()
    rows(notebook, "file:").filter(has_text="D6").first.click()
    idle(notebook)
    assert page.locator(".ice-kind").inner_text().startswith("Data file")
    assert "bucket(4, id)" in page.locator(".ice-detail .ice-table").inner_text()
    notebook.theme("dark")
    leaf = rows(notebook, "manifest:").first
    leaf.locator(".ice-twisty").click()
    idle(notebook)
    leaf.click()
    idle(notebook)
    assert "removed_entries" in page.locator(".ice-widget").inner_text()
    assert "removed_by" in page.locator(".ice-detail .ice-table").inner_text()
    rows(notebook, "root:").first.click()
    idle(notebook)
    assert page.locator(".ice-tab").all_inner_texts()[:4] == ["Entries", "Manifests", "Manifest DVs", "Content entries"]
    for i in range(4):
        page.locator(".ice-tab").nth(i).click()
        idle(notebook)
        assert page.locator(".ice-detail .ice-table tbody tr").count() > 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_fields_explain_what_the_proposal_leaves_open(browser: Any, theme: Theme, tmp_path: Path) -> None:
    t = ix.Table(made(tmp_path / "t").state)
    tree = build_tree(t.state, depth="snapshots")
    assert t.snapshot is not None
    vector = next(n for n in tree.children(f"root:{t.snapshot.snapshot_id}") if n.kind == "manifest-dv")
    with bare_page(browser, Explorer(t), theme=theme) as bare:
        page = bare.page
        bare.widget.select(vector.id)
        bare.push()
        field = page.locator(".ice-why", has_text="referenced_file")
        field.click()
        point = page.locator(".ice-help:visible .ice-point")
        assert point.count() == 1 and not point.evaluate("(details) => details.open")
        summary = point.locator("summary")
        summary.focus()
        bare.press("Enter")
        assert point.evaluate("(details) => details.open")
        assert summary.inner_text() == "Open in the proposal: The text lets a manifest DV reference a data file."
        assert summary.evaluate("(element) => element.getBoundingClientRect().height") >= 24
        assert point.locator("blockquote").all_inner_texts() == [
            "Location of data file that a DV references if content_type is 1 or 5."
        ]
        answer = point.locator(":scope > div")
        assert answer.inner_text().startswith("Written: The location of the leaf manifest")
        head, shown = page.locator(".ice-detail .ice-head").bounding_box(), answer.bounding_box()
        assert shown["y"] + shown["height"] <= head["y"] + head["height"] + 1, "it is in sight"
        assert bare.violations() == []
        bare.press("Escape")
        assert page.locator(".ice-help:visible").count() == 0
        assert page.evaluate("document.activeElement.textContent") == "referenced_file"
