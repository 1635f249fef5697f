"""Every hostile string in every place of a table, in every widget: in its own page, saved, and as nbconvert has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

import iceexplore as ix
from iceexplore.widgets import CommitLab, DeletionVectors, Explorer, FileMap, Problems, ScanLab, TableWidget, Timeline
from tests.browser.bare import bare_page
from tests.browser.harness import watched
from tests.browser.hostile_table import hostile_table

pytestmark = pytest.mark.browser

#: What the strings would bring with them, and the widgets have none of.
#: The figures of the commit lab are images of our own, in which nothing runs.
FOREIGN = (
    "img:not(.ice-figure img), script, iframe, object, foreignObject, "
    "b:text-is('bold'), mjx-container, a[href^=javascript]"
)
KINDS = ("table", "metadata", "snapshot:", "root:", "manifest:", "file:")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ix.Table:
    return hostile_table(tmp_path_factory.mktemp("hostile") / "table")


def widgets(table: ix.Table) -> Iterator[TableWidget]:
    """Each kind of widget, showing something."""
    explorer = Explorer(table)
    assert explorer.settle(60)
    explorer.expanded = [*explorer.expanded, *(i for i in explorer.nodes if i.startswith("manifest:"))]
    yield explorer
    yield Timeline(table, selection={"against": str(table.snapshots[0].snapshot_id)})
    yield ScanLab(table, scan_filter="text is not null")
    yield CommitLab(table)
    problems = Problems(table)
    problems.read_all += 1
    yield problems
    yield DeletionVectors(table)
    yield FileMap(table)


def test_in_every_widget(browser: Any, table: ix.Table) -> None:
    for widget in widgets(table):
        with bare_page(browser, widget) as bare:
            seen = watched(bare.page)
            for kind in KINDS if isinstance(widget, Explorer) else ():
                node = next((i for i in widget.nodes if i.startswith(kind)), None)
                if node is None:
                    continue
                widget.select(node)
                bare.push()
                for summary in bare.page.locator(".ice-rest summary").all():
                    summary.click()
                for tab in bare.page.locator(".ice-detail .ice-tab").all():
                    tab.click()
                    bare.idle()
                    assert bare.page.locator(".ice-widget").locator(FOREIGN).count() == 0, (kind, tab)
            if isinstance(widget, CommitLab):
                bare.page.get_by_role("button", name="Apply", exact=True).click()
                bare.idle()
            assert bare.page.locator(".ice-widget").locator(FOREIGN).count() == 0, type(widget)
            assert bare.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), type(widget)
            assert seen == [], type(widget)


def test_saved_and_converted(browser: Any, table: ix.Table, tmp_path: Path) -> None:
    from nbconvert import HTMLExporter

    cells = []
    for widget in widgets(table):
        assert widget.settle(60)
        if isinstance(widget, Explorer):
            widget.save_html(tmp_path / "saved.html")
        data, _ = widget._repr_mimebundle_()
        cells.append(nbformat.v4.new_code_cell("w", outputs=[nbformat.v4.new_output("display_data", data)]))
        widget.close()
    for shown in (table, table.tree(snapshots="all", depth="files"), table.diff(table.snapshots[0].snapshot_id)):
        data = shown._repr_mimebundle_() if hasattr(shown, "_repr_mimebundle_") else {"text/html": shown._repr_html_()}
        cells.append(nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("display_data", data)]))
    body, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    (tmp_path / "converted.html").write_text(body, encoding="utf-8")
    for name, outputs, wanted in (("saved", "#ice-page", 1), ("converted", ".jp-RenderedHTMLCommon", 8)):
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        page = context.new_page()
        seen = watched(page)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if request.url.startswith("http") else None)
        page.route("http*://**", lambda route: route.abort())
        page.goto((tmp_path / f"{name}.html").as_uri())
        page.locator(outputs).first.wait_for()
        page.wait_for_timeout(500)
        assert page.locator(outputs).count() >= wanted, name
        found = page.locator(outputs).locator(FOREIGN).evaluate_all("all => all.map((e) => e.src ?? e.outerHTML)")
        assert [html[:200] for html in found if not html.startswith("data:image/svg+xml;base64,")] == [], name
        assert name == "converted" or asked == []  # nbconvert's own template asks for MathJax
        assert seen == [], name
        context.close()


def test_a_field_named_as_what_every_object_has(browser: Any) -> None:
    """Who writes a snapshot names what its summary tells."""
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    names = ["constructor", "toString", "__proto__"]
    widget.detail = {**widget.detail, "facts": [[name, "mine"] for name in names]}
    with bare_page(browser, widget) as bare:
        facts = bare.page.locator(".ice-head > .ice-facts dt")
        assert facts.all_inner_texts() == names
        assert bare.page.locator(".ice-head > .ice-facts dd").all_inner_texts() == ["mine"] * 3
