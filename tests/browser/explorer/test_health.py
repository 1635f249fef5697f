"""The figures of the tab Health, by mouse and keyboard, in the explorer, on request, and in a saved page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer, Problems
from iceexplore.widgets.problems import _health_panel
from tests.browser.bare import bare_page, violations
from tests.browser.harness import Theme

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_from_a_bar_to_its_files_and_back(browser: Any, theme: Theme) -> None:
    widget = Explorer(ix.sample("trips"), tab="problems")
    assert widget.settle(60)
    with bare_page(browser, widget, theme=theme) as bare:
        page = bare.page
        figures = page.get_by_role("region", name="Files and manifests")
        figures.get_by_role("heading", name="Sizes of data files").wait_for()
        assert page.get_by_role("tab", name="Files and manifests").get_attribute("aria-selected") == "true"
        assert figures.get_by_role("table").count() == 5
        assert "12 of 12 data files are smaller than 384.0 MiB" in figures.inner_text()
        assert bare.violations() == []
        bar = figures.locator("tr").filter(has_text="2 KiB to 4 KiB").locator("svg").first.bounding_box()
        page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)  # the link is all over its row
        bare.idle()
        assert (widget.tab, widget.pages["detail"]["total"]) == ("tree", 11)
        assert "file_size_in_bytes < 4,096 bytes" in page.locator(".ice-explorer").inner_text()
        assert page.get_by_role("tab", name="Files", exact=True).last.get_attribute("aria-selected") == "true"
        page.get_by_role("tab", name="Health").click()
        bare.idle()
        figures.get_by_role("button", name="10 to 30 % of rows deleted").click()
        bare.idle()
        page.get_by_label("Show", exact=True).wait_for()
        assert page.get_by_label("Show", exact=True).input_value() == "10 to 30 % of rows deleted"
        assert widget.table_health is not None
        groups = {bar.label: bar.values for bar in widget.table_health["deletes"].bars}
        many = groups["10 to 30 % of rows deleted"][0]
        assert page.locator(".ice-file-map strong").inner_text().startswith(f"{many[1] if many else 0} files in ")
        assert bare.violations() == []
        page.get_by_label("Show", exact=True).select_option("all files")
        bare.idle()
        assert page.locator(".ice-file-map strong").inner_text() == "22 files in 11 partitions"
        page.get_by_role("tab", name="Health").click()
        bare.idle()
        figures.get_by_role("button", name="show", exact=True).first.click()
        bare.idle()
        assert (widget.pages["detail"]["table"], widget.pages["detail"]["total"]) == ("partitions", 1)
        page.get_by_role("tab", name="Health").click()
        bare.idle()
        figures.get_by_role("button", name="Show them").nth(2).focus()
        bare.press("Enter")
        assert (widget.pages["detail"]["table"], widget.pages["detail"]["total"]) == ("manifests", 4)
        page.get_by_role("tab", name="Health").focus()
        bare.press("Enter")
        figures.get_by_role("button", name="trip_id").focus()
        bare.press("Enter")
        assert (widget.tab, widget.scan_filter) == ("scan", "trip_id is not null")
        assert bare.violations() == []


def test_figures_of_many_manifests_wait_for_a_request(browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_health_panel, "_CHEAP_BYTES", 10)
    widget = Problems(ix.sample("trips"))
    with bare_page(browser, widget, width=420) as bare:
        page = bare.page
        page.get_by_role("tab", name="Files and manifests").focus()
        bare.press("Enter")
        button = page.get_by_role("button", name="Read 4 manifests (35.0 KiB)")
        assert bare.violations() == []
        button.focus()
        bare.press("Enter")
        figures = page.get_by_role("region", name="Files and manifests")
        assert figures.get_by_role("table").count() == 5
        assert figures.locator(".ice-link").count() == 0, "there is no table to go to"
        assert page.get_by_role("button", name="SVG: Manifests").count() == 1
        assert page.evaluate("document.activeElement.closest('.ice-widget') !== null"), "not the page"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert bare.violations() == []


def test_a_saved_page_has_the_figures(page: Any, tmp_path: Path) -> None:
    widget = Explorer(ix.sample("trips"))
    made = widget.save_html(tmp_path / "page.html")
    widget.close()
    page.goto(made.path.as_uri())
    page.get_by_role("tab", name="Health").focus()
    page.keyboard.press("Enter")
    figures = page.get_by_role("region", name="Files and manifests")
    assert figures.get_by_role("table").count() == 5
    assert violations(page) == []
    figures.get_by_role("button", name="2 KiB to 4 KiB").focus()
    page.keyboard.press("Enter")
    page.get_by_text("11 rows (of 22)").wait_for()
