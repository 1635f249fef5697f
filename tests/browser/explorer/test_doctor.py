"""The doctor by mouse and keyboard: a check, from a finding to its node and back, the repair, and what is copied."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer, Problems
from iceexplore.widgets.problems._doctor_panel import DoctorPanel
from iceexplore.widgets.problems._findings import findings_sent
from tests.browser.bare import bare_page, violations
from tests.doctor import file_damages, manifest_damages  # noqa: F401 (they register their damages)
from tests.doctor.damages import DAMAGES, file_paths, healthy
from tests.helpers.hostile import HOSTILE

pytestmark = pytest.mark.browser

#: A page without an origin has no clipboard.
_CLIPBOARD = """() => {
  const writeText = async (text) => { window.copied = text; };
  Object.defineProperty(navigator, "clipboard", { value: { writeText } });
}"""
#: What JupyterLab says of terms in outputs.
_LAB_STYLE = (
    "dl dt { font-weight: bold; float: left; width: 20%; } dl dd { float: left; width: 80%; margin-left: 40px; }"
)
_FOCUSED = "document.activeElement.closest('.ice-widget') !== null"


def damaged(folder: Path, *names: str) -> ix.Table:
    path = healthy(folder)
    for one in DAMAGES:
        if one.name in names:
            one.damage(path)
    return ix.open(path)


def test_from_a_check_to_the_node_and_to_the_repair(browser: Any, tmp_path: Path) -> None:
    table = damaged(tmp_path, "data_file_gone", "summary_totals_wrong", "path_live_twice", "partition_summaries_null")
    (gone,) = {p.name for p in file_paths(tmp_path / "t") if not p.exists()}
    widget = Explorer(table, tab="problems")
    with bare_page(browser, widget) as bare:
        page = bare.page
        page.get_by_label("Level of the check").select_option("files")
        page.get_by_label("Snapshots to check").select_option("all")
        page.get_by_role("button", name="Check the table").focus()
        bare.press("Enter")
        assert widget.doctor_report["level"] == "files"
        assert page.get_by_role("tab", name="Findings").get_attribute("aria-selected") == "true"
        titles = page.locator(".ice-diagnoses > details > summary strong").all_inner_texts()
        assert titles == [f["title"] for f in widget.doctor_report["findings"]]
        chain = page.locator(".ice-finding-group").filter(has_text="findings follow from this")
        assert "totals-differ" in chain.locator("li").first.inner_text()
        assert bare.violations() == []
        page.add_style_tag(content=_LAB_STYLE)
        label = page.locator(".ice-diagnosis dt").filter(has_text="Affects").first
        assert label.bounding_box()["height"] < 25, "it is in one line"
        missing = page.locator(".ice-finding-group").filter(has_text="file-missing")
        missing.locator("summary").first.focus()
        bare.press("Enter")  # shut
        assert not missing.locator(".ice-diagnosis").is_visible()
        bare.press("Enter", "Tab")
        assert page.evaluate("document.activeElement.textContent").startswith("Snapshot 4 of 4, ")
        bare.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Show"
        bare.press("Enter")
        assert widget.tab == "tree"
        assert str(widget.selected.location).endswith(gone)
        assert page.evaluate(_FOCUSED), "not the page"
        page.get_by_role("tab", name="Health").click()
        bare.idle()
        assert "file-missing" in page.locator(".ice-finding-group:has([aria-current])").first.inner_text()
        page.get_by_role("button", name="1 × readers fail").click()
        bare.idle()
        assert "file-missing" not in page.locator(".ice-diagnoses").inner_text()
        page.get_by_role("tab", name="Findings").focus()
        bare.press("ArrowRight", "ArrowRight")
        page.get_by_role("button", name="Plan the repair").focus()
        bare.press("Enter")
        assert page.evaluate(_FOCUSED), "not the page"
        assert page.locator(".ice-repair h3").inner_text().startswith("Repair of t: ")
        assert page.get_by_role("tree", name="Tree before the repair").is_visible()
        removed = page.locator("[aria-label='Tree before the repair'] [role=treeitem]").filter(has_text="−")
        assert removed.count() >= 1
        assert bare.violations() == []
        page.evaluate(_CLIPBOARD)
        page.get_by_role("button", name="Copy as Python").focus()
        bare.press("Enter")
        assert page.evaluate("window.copied") == widget.repair_plan["python"]
        page.get_by_role("button", name="Copy as SQL").click()
        assert page.evaluate("window.copied").startswith("-- 1. ")


def test_hostile_findings_are_text(browser: Any) -> None:
    table = ix.sample("trips")
    report = table.check()
    hostile = [
        replace(
            report.findings[0],
            text=name,
            where=name,
            found=name,
            refs=(name,),
            snapshots=(1,),
            places=(name, name),
            count=2,
        )
        for name in HOSTILE.values()
    ]
    chain = replace(hostile[0], follows=tuple(hostile), severity="fail")
    widget = Problems(table)
    assert widget.settle(60)
    sent = findings_sent(replace(report, findings=(chain, *hostile)), table.state, table.snapshot)
    widget.doctor_report = {"id": "1", "snapshots": "current", **sent}
    widget._panel(DoctorPanel).report = report
    with bare_page(browser, widget, width=420) as bare:
        assert bare.page.locator(".ice-finding-group").count() == len(hostile) + 1
        bare.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert bare.page.locator(".ice-widget img, .ice-widget script").count() == 0
        assert bare.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert bare.violations() == []


def test_a_saved_page_goes_from_findings_to_nodes(page: Any, tmp_path: Path) -> None:
    widget = Explorer(damaged(tmp_path, "data_file_gone", "summary_totals_wrong"))
    widget.doctor_asked = {"n": 1, "do": "check", "level": "metadata", "snapshots": "all"}
    assert widget.settle(60)
    made = widget.save_html(tmp_path / "page.html")
    widget.close()
    page.goto(made.path.as_uri())
    page.get_by_role("tab", name="Health (2)").focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="Check the table").count() == 0
    assert violations(page) == []
    page.get_by_role("button", name="Show the commit").click()
    assert page.get_by_role("tab", name="Tree", exact=True).get_attribute("aria-selected") == "true"
    page.get_by_role("tab", name="Health (2)").click()
    page.get_by_role("button", name="Show: ").first.click()
    page.locator(".ice-kind").filter(has_text="file").wait_for()
