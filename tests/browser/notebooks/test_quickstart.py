"""The quickstart in a real JupyterLab, light and dark: what a person sees first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.harness import LabServer, NotebookPage, Theme, notebook_page

pytestmark = pytest.mark.browser

THEMES: tuple[Theme, ...] = ("light", "dark")


@pytest.fixture(scope="module")
def ran_once(lab: LabServer, browser: Any, quickstart: Path) -> Iterator[NotebookPage]:
    """The quickstart with every cell run."""
    with notebook_page(lab, browser) as page:
        page.open(quickstart)
        page.run_all()
        yield page
        page.assert_clean()


@pytest.fixture(scope="module", params=THEMES)
def ran(request: pytest.FixtureRequest, ran_once: NotebookPage) -> NotebookPage:
    """The same in each theme."""
    ran_once.theme(request.param)
    return ran_once


def card(page: NotebookPage) -> Any:
    return page.output('t = ix.sample("trips")')


def explorer(page: NotebookPage) -> Any:
    found = page.output("t.explore()").locator(".ice-widget")
    found.scroll_into_view_if_needed()
    return found


def test_card(ran: NotebookPage) -> None:
    text = card(ran).inner_text()
    for part in ("trips", "Iceberg v3", "start_station", "was station", "promotion", "2024-q1-audit", "12 in total"):
        assert part in text
    box = card(ran).bounding_box()
    assert box["width"] > 600
    assert box["height"] > 300


def test_card_can_be_read(ran: NotebookPage) -> None:
    for text in ("Iceberg v3", "start_station", "was float", "Rows before deletes"):
        assert ran.contrast(card(ran).get_by_text(text, exact=True).first) >= 4.5, text


@pytest.mark.parametrize("source", ["t.tree()", 't.tree(depth="files")', "t.tree(snapshots=3)"])
def test_tree_is_drawn(ran: NotebookPage, source: str) -> None:
    picture = ran.output(source).locator("img").first
    drawn = picture.evaluate("async node => { await node.decode(); return [node.naturalWidth, node.naturalHeight] }")
    assert drawn[0] > 600
    assert drawn[1] > 200
    # A picture in an img is on its own: it must bring its colours for the theme that the system asks for.
    colours = picture.evaluate(
        """node => {
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [node.naturalWidth, node.naturalHeight];
          const context = canvas.getContext("2d");
          context.drawImage(node, 0, 0);
          const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
          const seen = new Set();
          for (let i = 0; i < data.length; i += 4) {
            if (data[i + 3] > 250) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
          }
          return seen.size;
        }"""
    )
    assert colours > 20


def test_tables_are_shown(ran: NotebookPage) -> None:
    table = ran.output("t.inspect.files()").locator("table.dataframe")
    assert "content" in table.inner_text()
    assert table.locator("tbody tr").count() > 10
    assert ran.output("t.inspect.deletion_vectors()").locator("table.dataframe tbody tr").count() > 5


def test_explorer_shows_tree_and_details(ran: NotebookPage) -> None:
    widget = explorer(ran)
    items = widget.get_by_role("treeitem")
    items.first.wait_for()
    assert items.count() >= 8
    assert widget.get_by_role("slider", name="Snapshot").is_visible()
    widget.locator(".ice-panel table tbody tr").first.wait_for()
    assert widget.get_by_role("alert").is_hidden()


def test_explorer_can_be_read(ran: NotebookPage) -> None:
    widget = explorer(ran)
    assert ran.contrast(widget.locator(".ice-table-name")) >= 4.5
    shown_as_list = widget.get_by_role("button", name="List")
    shown_as_list.click()  # the picture is a canvas, the tree's rows are beside it unseen
    for role in ("treeitem", "tab"):
        assert ran.contrast(widget.get_by_role(role).first) >= 4.5, role
    shown_as_list.click()


def test_explorer_travels(ran: NotebookPage) -> None:
    widget = explorer(ran)
    widget.locator("[aria-valuetext^='12 of 12']").wait_for()
    widget.get_by_role("button", name="Earlier snapshot").click()
    widget.locator("[aria-valuetext^='11 of 12']").wait_for()
    widget.get_by_role("treeitem").filter(has_text="optimized-m").first.wait_for()
    widget.get_by_role("button", name="Later snapshot").click()
    widget.locator("[aria-valuetext^='12 of 12']").wait_for()
    assert widget.get_by_role("alert").is_hidden()
