"""The tabs Changes and Rows in Chromium: links, keyboard, a swap, a saved page, rows found by typing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import CommitLab, Explorer
from tests.browser.bare import bare_page, violations

pytestmark = pytest.mark.browser


def tabs(page: Any) -> list[str]:
    return list(page.get_by_role("tablist", name="Tables").get_by_role("tab").all_inner_texts())


def chosen(page: Any) -> str:
    return str(page.get_by_role("tablist", name="Tables").locator("[aria-selected=true]").inner_text())


def test_changes_lead_to_files_and_snapshots(browser: Any) -> None:
    table = ix.sample("trips")
    with bare_page(browser, Explorer(table)) as bare:
        page = bare.page
        assert chosen(page) == "Changes"
        above = page.locator(".ice-above")
        assert "−1 data file · −58 rows · −1 delete file" in above.inner_text()
        assert violations(page) == []
        # a removed file is one of the parent's; the list stays
        grid = page.locator(".ice-detail .ice-table")
        grid.locator(".ice-open").first.click()
        bare.idle()
        assert bare.widget.selection["snapshot"] == str(table.snapshots[-2].snapshot_id)
        assert bare.widget.selected.kind in ("data-file", "deletion-vector")
        assert chosen(page) == "↑ Changes" and page.locator(".ice-table tr[aria-selected=true]").count() == 1
        # by keyboard: cells of the table, not of the sums above it
        page.get_by_role("tab", name="↑ Changes").focus()
        bare.press("Tab")
        bare.widget.select(f"snapshot:{table.snapshots[5].snapshot_id}", snapshot=table.snapshots[5])
        bare.push()
        page.locator(".ice-table td").first.focus()
        bare.press("ArrowDown", "End", "Home")
        assert page.evaluate("document.activeElement.closest('.ice-table') !== null")
        above.locator(".ice-link").first.click()
        bare.idle()
        assert bare.widget.selection["node"] == f"snapshot:{table.snapshots[4].snapshot_id}"


def test_from_a_data_file_to_its_deleted_rows(browser: Any) -> None:
    table = ix.sample("trips")
    with bare_page(browser, Explorer(table)) as bare:
        page, widget = bare.page, bare.widget
        to_deletes = page.locator(".ice-detail").get_by_role("button", name="Show the deleted positions")
        assert to_deletes.count() == 0, "a snapshot has no positions"
        number = table.snapshots[-1].snapshot_id
        file = next(n for n in table.tree(depth="files").nodes if n.kind == "data-file" and "deleted" in str(n.lines))
        widget.select(file.id, snapshot=number)
        bare.push()
        to_deletes.click()
        bare.idle()
        assert widget.tab == "deletes" and widget.selected.id == file.id
        page.get_by_text(f"deleted of {file.fields['record_count']} rows").wait_for()
        widget.tab = "tree"
        widget.parts = [part for part in widget.parts if part[0] != "deletes"]  # as in a saved page
        widget.select(f"snapshot:{number}", snapshot=number)
        bare.push()
        widget.select(file.id, snapshot=number)
        bare.push()
        assert widget.detail["id"] == file.id and to_deletes.count() == 0


def test_a_comparison_is_shown_swapped_and_ended(browser: Any) -> None:
    table = ix.sample("trips")
    with bare_page(browser, Explorer(table)) as bare:
        page = bare.page
        page.get_by_role("button", name="Compare").first.click()
        page.get_by_role("slider", name="Snapshot").press("Shift+Home")
        bare.idle()
        assert bare.widget.selection["against"] == str(table.snapshots[0].snapshot_id)
        assert chosen(page) == "Compared"
        words = page.locator(".ice-above h4").first.inner_text()
        assert words.startswith("+")
        page.get_by_role("tab", name="Rows").click()
        page.get_by_text(f"Comparing 1 → {len(table.snapshots)}").click()  # it is in sight on every tab
        bare.idle()
        assert bare.widget.tab == "tree" and chosen(page) == "Compared"
        page.locator(".ice-line-foot button", has_text="⇄").click()
        bare.idle()
        assert chosen(page) == "Compared" and page.locator(".ice-above h4").first.inner_text() == words
        page.locator(".ice-line-foot button", has_text="×").click()
        bare.idle()
        assert chosen(page) == "Changes" and "Compared" not in tabs(page)
        assert page.get_by_text("Comparing 1").is_hidden()


def test_a_saved_page_shows_its_comparison(page: Any, tmp_path: Path) -> None:
    table = ix.sample("trips")
    widget = Explorer(table)
    widget.select(against=table.snapshots[3])
    assert widget.settle(60)
    made = widget.save_html(tmp_path / "page.html")
    page.goto(made.path.as_uri())
    page.locator(".ice-above").wait_for()
    assert chosen(page) == "Compared" and "+6 −1 data files" in page.locator(".ice-above").inner_text()
    page.locator(".ice-line-foot button", has_text="⇄").click()
    assert chosen(page) == "Compared" and "+6 −1 data files" in page.locator(".ice-above").inner_text()
    page.locator(".ice-line-foot button", has_text="×").click()
    assert chosen(page) == "Changes" and "Compared" not in tabs(page)
    page.get_by_role("button", name="Later snapshot").click()
    assert chosen(page) == "Changes" and "+2 data files" in page.locator(".ice-above").inner_text()
    assert violations(page) == []
    widget.close()


def test_rows_are_found_by_typing_and_lead_to_files(browser: Any) -> None:
    table = ix.sample("trips")
    with bare_page(browser, Explorer(table)) as bare:
        page = bare.page
        page.locator(".ice-part[data-part=rows]").click()
        rows = page.locator(".ice-rows")
        rows.get_by_role("heading", name="The first 100 rows").wait_for()
        assert "preview: there are more" in rows.locator(".ice-range").inner_text()
        box = rows.get_by_role("combobox", name="Filter", exact=True)
        box.focus()
        page.keyboard.type("trip_id < 1")
        page.keyboard.press("Escape")
        page.keyboard.type("00")
        page.keyboard.press("Enter")
        rows.get_by_role("heading", name="39 rows: 36 live, 3 deleted").wait_for()
        bare.idle()
        assert (
            "live" in rows.locator(".ice-table").inner_text() and "deleted" in rows.locator(".ice-table").inner_text()
        )
        assert violations(page) == []
        rows.get_by_role("textbox", name="Value").fill("95")
        page.keyboard.press("Enter")
        rows.get_by_role("heading", name="1 row: 1 deleted").wait_for()
        bare.idle()
        assert box.input_value() == "trip_id = 95"
        assert "deleted by vector" in rows.locator(".ice-scan-why").inner_text()
        rows.locator(".ice-open").first.click()
        bare.idle()
        assert bare.widget.tab == "tree" and bare.widget.selected.kind == "data-file"


def test_a_box_searches_what_is_typed(browser: Any) -> None:
    with bare_page(browser, Explorer(ix.sample("trips"))) as bare:
        page = bare.page
        page.locator(".ice-part[data-part=rows]").click()
        rows = page.locator(".ice-rows")
        rows.get_by_role("heading", name="The first 100 rows").wait_for()
        rows.get_by_role("combobox", name="Filter", exact=True).fill("start_station = 'Museum'")
        rows.get_by_role("checkbox", name="Include removed files").check()
        rows.get_by_role("heading", name="126 rows: 10 removed with their files, 108 live").wait_for()


#: What Python is asked is not answered from now on.
_SILENT = "window.ice.model.save_changes = async () => {}"


def test_rows_of_another_table_go_when_the_answer_takes_long(browser: Any) -> None:
    with bare_page(browser, Explorer(ix.sample("trips"))) as bare:
        page = bare.page
        rows = page.locator(".ice-detail .ice-table tbody tr")
        assert rows.count() == 2
        page.evaluate(_SILENT)
        page.locator(".ice-tab", has_text="Files").click()
        assert rows.count() == 2, "a short wait changes nothing"
        page.evaluate("window.ice.update({ busy: 'Reading: 3 of 4 manifests …' })")
        page.wait_for_function("document.querySelectorAll('.ice-detail .ice-table').length === 0", timeout=2000)
        assert page.locator(".ice-detail .ice-panel").inner_text() == "Reading: 3 of 4 manifests …"
        assert page.locator(".ice-detail .ice-grid").get_attribute("aria-busy") == "true"


def test_filters_for_a_table_that_is_awaited(browser: Any) -> None:
    with bare_page(browser, Explorer(ix.sample("trips"))) as bare:
        page = bare.page
        boxes = page.locator(".ice-detail .ice-grid-bar select")
        box = page.locator(".ice-detail .ice-grid-bar .ice-input")
        chosen = "(box) => box.selectedOptions[0].text"
        page.evaluate("() => { window.iceSaves = window.ice.model.save_changes }")
        page.evaluate(_SILENT)
        page.locator(".ice-tab", has_text="Files").click()
        assert boxes.first.is_disabled(), "its columns are still those of the changes"
        page.locator(".ice-detail .ice-funnel").first.dispatch_event("click")
        assert boxes.first.evaluate(chosen) == "any column"
        # any column is one of every table
        box.fill("deletes")
        page.wait_for_function("window.ice.state.query.detail.filters?.length === 1")
        page.evaluate("() => { window.ice.model.save_changes = window.iceSaves; window.iceSaves() }")
        bare.idle()
        assert boxes.first.is_enabled()
        assert "file_path" in boxes.first.inner_text()
        assert box.input_value() == "deletes"
        assert page.locator(".ice-detail .ice-range").inner_text() == "10 rows (of 22)"
        # the same column of the next snapshot's table is meant
        box.fill("")
        page.evaluate("() => { window.iceSaves = window.ice.model.save_changes }")
        page.evaluate(_SILENT)
        page.locator(".ice-axis").focus()
        page.keyboard.press("Home")
        page.wait_for_function("document.querySelector('.ice-detail .ice-grid').ariaBusy === 'true'")
        boxes.first.select_option(label="record_count")
        page.evaluate("() => { window.ice.model.save_changes = window.iceSaves; window.iceSaves() }")
        bare.idle()
        assert boxes.first.evaluate(chosen) == "record_count"


def test_a_form_that_is_not_there_yet_offers_nothing(browser: Any) -> None:
    with bare_page(browser, CommitLab(ix.sample("trips"))) as bare:
        page = bare.page
        form = page.locator(".ice-commit-form")
        assert page.get_by_role("button", name="Apply", exact=True).is_visible()
        page.evaluate("window.ice.update({ commit_form: {} })")
        assert form.get_attribute("aria-busy") == "true"
        assert page.get_by_role("button", name="Apply", exact=True).get_attribute("aria-disabled") == "true"
        assert form.locator("input:visible, select:visible").count() == 0


def test_an_explanation_leaves_the_fields_in_place(browser: Any) -> None:
    with bare_page(browser, Explorer(ix.sample("trips")), width=1300) as bare:
        page = bare.page
        places = """() => document.querySelector(".ice-facts").querySelectorAll(":scope > :not(.ice-help)").values()
          .map((one) => [one.querySelector("dt").innerText, one.offsetLeft, one.offsetTop]).toArray()"""
        before = page.evaluate(places)
        page.get_by_role("button", name="operation: what is it?").click()
        after = page.evaluate(places)
        assert page.locator(".ice-help:visible").count() == 1
        for fields in (before, after):
            order = [(top, left) for _, left, top in fields]
            assert order == sorted(order), "they are read in their own order"
        at = [name for name, *_ in before].index("operation")
        assert after[:at] == before[:at], "what is before it stays"
