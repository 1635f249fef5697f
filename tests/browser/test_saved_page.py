"""A saved page in a real Chromium: it works from a file, asks nobody, and what a table calls itself stays a name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.browser.bare import violations

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"window['owned']=1\"></script><script>window['owned']=1</script>"


def test_walk_through(page: Any, tmp_path: Path) -> None:
    table = ix.sample("trips")
    made = Explorer(table).save_html(tmp_path / "trips.html", max_bytes=600_000)
    page.goto(made.path.as_uri())
    page.locator(".ice-timeline").wait_for()
    assert page.locator("footer").inner_text().startswith("Created by iceexplore")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert violations(page) == []
    tree = page.get_by_role("tree")
    tree.locator("[tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.locator(".ice-kind").filter(has_text="Table").wait_for()
    # a table: sorted by its own script
    page.get_by_role("columnheader").first.locator(".ice-sort").click()
    page.locator("[aria-sort=ascending]").wait_for()
    # another snapshot
    page.get_by_role("button", name="Earlier snapshot").click()
    shown = str(table.snapshots[-2].snapshot_id)
    page.locator(f"[role=treeitem][data-id='snapshot:{shown}']").wait_for(state="attached")
    assert page.locator(".ice-error:visible").count() == 0


def test_tabs_work_or_say_why_they_do_not(page: Any, tmp_path: Path) -> None:
    widget = Explorer(ix.sample("trips"), scan_filter="km > 5", tab="scan")
    assert widget.settle(60) and widget.scan_plan
    headline = widget.scan_plan["headline"]
    made = widget.save_html(tmp_path / "trips.html", redact=False)
    small = widget.save_html(tmp_path / "small.html", redact=["values"])
    widget.close()
    page.goto(made.path.as_uri())
    page.get_by_role("tab", name="Files", exact=True).first.click()
    title = page.locator(".ice-file-map strong")
    assert title.inner_text() == "22 files in 11 partitions"
    assert page.get_by_label("Show", exact=True).is_hidden(), "which takes Python"
    page.get_by_label("Shade by").select_option("age")
    assert "Shade: age" in page.locator(".ice-cell-legend").inner_text()
    assert violations(page) == []
    page.get_by_role("slider", name="Snapshot").focus()
    page.keyboard.press("Home")
    first = ix.sample("trips").snapshots[0]
    many = ix.sample("trips").at(snapshot=first.snapshot_id).inspect.files.arrow().num_rows
    page.locator(".ice-file-map strong", has_text=f"{many} file").wait_for()
    page.get_by_role("slider", name="File").focus()
    page.keyboard.press("Enter")
    assert page.locator(".ice-kind").inner_text().startswith("Data file")
    page.get_by_role("tab", name="Scan").click()
    plan = page.get_by_role("region", name="Plan")
    assert plan.get_by_role("heading").inner_text() == headline
    assert plan.locator("[role=treeitem]").count() > 12
    assert "takes Python: t.plan(filter)" in plan.inner_text()
    assert violations(page) == []
    page.get_by_role("tab", name="Rows", exact=True).click()
    assert page.get_by_text("to read them takes Python").is_visible()
    page.goto(small.path.as_uri())
    page.get_by_role("tab", name="Scan").click()
    assert page.get_by_text("No plan was shown when this page was saved, or it is redacted").is_visible()


def test_a_row_that_is_opened_keeps_its_table(page: Any, tmp_path: Path) -> None:
    table = ix.empty({"id": "long"}, format_version=2)
    table.append(3, rows=10)
    page.goto(Explorer(table).save_html(tmp_path / "small.html").path.as_uri())
    manifest = page.locator("[role=treeitem][data-id^='manifest:']").first
    manifest.dispatch_event("click")  # the picture covers it
    page.locator(".ice-kind").filter(has_text="manifest").wait_for()
    rows = page.locator(".ice-table tr[data-node]")
    rows.nth(1).locator("td").first.dblclick()
    page.locator(".ice-kind").filter(has_text="file").wait_for()
    assert page.locator(".ice-tab[aria-selected=true]").inner_text().startswith("↑ ")
    assert [rows.nth(i).get_attribute("aria-selected") for i in range(3)] == ["false", "true", "false"]


def test_nobody_is_missed(page: Any, tmp_path: Path) -> None:
    made = Explorer(ix.sample("trips")).save_html(tmp_path / "trips.html", max_bytes=600_000)
    page.clock.install()
    page.goto(made.path.as_uri())
    page.locator(".ice-timeline").wait_for()
    page.locator(".ice-sort").first.click()
    page.locator("[aria-sort=ascending]").wait_for()
    page.clock.run_for(7_000)  # longer than Python may be silent
    assert page.locator(".ice-error:visible").count() == 0
    page.get_by_role("button", name="Earlier snapshot").click()
    page.clock.run_for(7_000)
    assert page.locator(".ice-error:visible").count() == 0


def test_a_missing_snapshot_is_reported(page: Any, tmp_path: Path) -> None:
    made = Explorer(ix.sample("trips")).save_html(tmp_path / "trips.html", max_bytes=3_000)
    assert any("snapshot" in text for text in made.left_out)
    page.goto(made.path.as_uri())
    page.locator(".ice-timeline").wait_for()
    tree = page.get_by_role("tree")
    before = tree.inner_text()
    page.get_by_role("button", name="Earlier snapshot").click()
    error = page.locator(".ice-error")
    assert error.inner_text().startswith("This page does not include this snapshot.")
    assert tree.inner_text() == before
    page.locator("[role=treeitem][data-id=table]").dispatch_event("click")
    assert not error.is_visible(), "until something else is asked"


def test_what_is_found_is_in_sight(page: Any, tmp_path: Path) -> None:
    table = ix.empty({"id": "long"}, format_version=2)
    table.append(3, rows=10)
    page.goto(Explorer(table).save_html(tmp_path / "small.html").path.as_uri())
    page.locator(".ice-timeline").wait_for()
    files = page.locator("[role=treeitem][data-id^='file:']")
    assert files.count() == 0, "folded at first"
    finder = page.get_by_role("searchbox").first
    finder.fill("file:")
    page.locator(".ice-count-found").filter(has_text="found").wait_for()
    finder.press("Enter")
    page.locator(".ice-kind").filter(has_text="file").wait_for()
    assert page.locator("[role=treeitem][aria-selected=true][data-id^='file:']").count() == 1
    assert files.count() == 3


def test_on_paper_a_dark_page_is_light(page: Any, tmp_path: Path) -> None:
    made = Explorer(ix.sample("trips")).save_html(tmp_path / "trips.html", max_bytes=100_000)
    page.emulate_media(color_scheme="dark")
    page.goto(made.path.as_uri())
    page.locator(".ice-line-legend b").first.wait_for()
    page.emulate_media(color_scheme="dark", media="print")
    for dark in (".ice-line-legend b", ".ice-canvas", ".ice-line-canvas"):
        assert "invert(1)" in page.locator(dark).first.evaluate("(one) => getComputedStyle(one).filter"), dark
    for ink in ("html", "footer"):
        found = page.locator(ink).first.evaluate("(one) => getComputedStyle(one).color")
        assert max(int(part) for part in found[4:-1].split(", ")) < 128, ink


def test_names_stay_names(page: Any, tmp_path: Path) -> None:
    table = ix.empty({"id": "long", HOSTILE: "string"}, format_version=2)
    table.append(pd.DataFrame({"id": [1], HOSTILE: [HOSTILE]}))
    table.set_properties({HOSTILE: HOSTILE})
    table.branch(HOSTILE)
    made = Explorer(table).save_html(tmp_path / "hostile.html")
    page.goto(made.path.as_uri())
    page.locator(".ice-timeline").wait_for()
    tree = page.get_by_role("tree")
    for _ in range(8):
        tree.locator("[tabindex='0']").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_timeout(100)
        for tab in page.get_by_role("tablist", name="Tables").get_by_role("tab").all():
            tab.click()
    page.get_by_role("tab", name=re.compile("^Health")).click()
    page.get_by_role("region", name="Files and manifests").wait_for()
    assert page.locator("#ice-page img, #ice-page script").count() == 0
    assert page.evaluate("window.owned") is None
