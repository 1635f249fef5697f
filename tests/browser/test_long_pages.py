"""A table's page of 50 rows: what is out of view is drawn late, and nobody sees that."""

from __future__ import annotations

from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.browser.bare import BarePage, bare_page

pytestmark = pytest.mark.browser

ROWS = ".ice-detail .ice-table tbody tr"
# as soon as the table of a node is drawn: how many rows it has, and the columns' widths
FIRST = """of => new Promise((done) => {
  const look = () => {
    const table = document.querySelector(".ice-detail .ice-table");
    const { of: shown, total } = window.ice.state.pages.detail;
    // it is drawn in the frame after its page came
    if (shown !== of || Number(table?.ariaRowCount) !== total + 1) return requestAnimationFrame(look);
    const widths = [...table.tHead.rows[0].cells].map((cell) => cell.getBoundingClientRect().width);
    done([table.tBodies[0].rows.length, widths]);
  };
  look();
})"""
WIDTHS = """() => [...document.querySelectorAll(".ice-detail .ice-table thead th")]
  .map((cell) => cell.getBoundingClientRect().width)"""


def table() -> ix.Table:
    s = ix.empty({"id": "long", "text": "string"}, format_version=2)
    files = [
        {
            # fewer letters need more room
            "location": f"/w/{'i' * 14 if i < 40 else 'W' * 13}{i}",
            "record_count": 10**i if i < 15 else i,
            "file_size_in_bytes": 1000,
            "lower_bounds": {"id": i, "text": "a"},
            "upper_bounds": {"id": i + 1, "text": "z" * (1 + i % 50)},
        }
        for i in range(60)
    ]
    s.append(files)
    return s.table


def leaf(widget: Explorer) -> str:
    found: str = next(i for i in widget.nodes if i.startswith("manifest:"))
    return found


def choose(bare: BarePage, node: str) -> None:
    bare.page.evaluate(
        """node => {
            window.ice.model.set("selection", { ...window.ice.state.selection, node });
            window.ice.model.save_changes();
        }""",
        node,
    )


def opened(bare: BarePage, widget: Explorer) -> tuple[int, list[float]]:
    """The manifest's table as it is at first."""
    node = leaf(widget)
    bare.page.get_by_role("tab", name="Manifests", exact=True).click()  # Changes has as many rows
    bare.idle()
    bare.page.evaluate(f"of => {{ ({FIRST})(of).then((found) => {{ window.first = found }}) }}", node)
    choose(bare, node)
    bare.page.wait_for_function("window.first")
    rows, widths = bare.page.evaluate("window.first")
    return int(rows), list(widths)


def test_rows_out_of_view_come_with_a_pause(browser: Any) -> None:
    widget = Explorer(table())
    with bare_page(browser, widget, width=1000) as bare:
        rows, widths = opened(bare, widget)
        assert 5 < rows < 40
        bare.page.wait_for_function(f"document.querySelectorAll('{ROWS}').length === 50")
        assert bare.page.evaluate(WIDTHS) == pytest.approx(widths, abs=0.5), "a column jumps"
        places = bare.page.locator(ROWS).evaluate_all("rows => rows.map((row) => Number(row.ariaRowIndex))")
        assert places == list(range(2, 52))


@pytest.mark.parametrize("how", ["End", "wheel", "select"])
def test_rows_out_of_view_come_when_somebody_goes_there(browser: Any, how: str) -> None:
    widget = Explorer(table())
    with bare_page(browser, widget, width=1000) as bare:
        bare.page.evaluate(
            """() => {
                const { setTimeout } = window;
                // no pause ends
                window.setTimeout = (run, ms, ...more) => (ms === 500 ? 0 : setTimeout(run, ms, ...more));
            }"""
        )
        rows, _ = opened(bare, widget)
        bare.page.wait_for_timeout(700)
        assert bare.page.locator(ROWS).count() == rows < 40
        if how == "End":
            bare.page.locator(f"{ROWS} > *").first.click()
            bare.page.keyboard.press("Control+End")
            there = "document.activeElement.closest('tr')?.ariaRowIndex === '51'"
        elif how == "wheel":
            bare.page.locator(".ice-detail .ice-panel").hover()
            bare.page.mouse.wheel(0, 50)
            there = f"document.querySelectorAll('{ROWS}').length === 50"
        else:  # a card of the tree whose row is far below
            bare.page.evaluate(
                "node => window.ice.model.set('selection', { ...window.ice.state.selection, node })",
                widget.pages["detail"]["nodes"][45],
            )
            there = f"document.querySelector('{ROWS}[aria-selected=true]')?.ariaRowIndex === '47'"
        bare.page.wait_for_function(there)
        assert bare.errors == []


def test_the_menu_of_columns_by_keys(browser: Any) -> None:
    widget = Explorer(table())
    with bare_page(browser, widget, width=1000) as bare:
        opened(bare, widget)
        assert bare.page.locator(".ice-menu-list input").count() == 0  # made when they are looked at
        menu = bare.page.locator(".ice-detail .ice-menu", has_text="Columns")
        menu.locator("summary").focus()
        bare.page.keyboard.press("Enter")
        bare.page.locator(".ice-menu-list input").first.wait_for()
        assert bare.page.evaluate("document.activeElement.tagName") == "SUMMARY"
        columns = len(widget.pages["detail"]["shown"])
        bare.page.keyboard.press("Tab")
        bare.page.keyboard.press("Space")
        bare.page.wait_for_function(f"window.ice.state.pages.detail.shown.length === {columns - 1}")
        assert bare.page.evaluate("document.activeElement.dataset.key") == "0"
        bare.page.keyboard.press("Escape")
        assert not menu.evaluate("menu => menu.open")
        assert bare.page.evaluate("document.activeElement.tagName") == "SUMMARY"
        assert bare.errors == []


def test_columns_chosen_faster_than_python_answers(browser: Any) -> None:
    widget = Explorer(table())
    with bare_page(browser, widget, width=1000) as bare:
        opened(bare, widget)
        columns = widget.pages["detail"]["shown"]
        bare.page.locator(".ice-detail .ice-menu summary", has_text="Columns").click()
        bare.page.locator(".ice-menu-list input").first.wait_for()
        # In one task of the page: no answer can come between.
        bare.page.evaluate(
            "[...document.querySelectorAll('.ice-menu-list input')].slice(1, 4).forEach((one) => one.click())"
        )
        bare.idle()
        assert widget.pages["detail"]["shown"] == [place for place in columns if place not in (1, 2, 3)]
        bare.page.evaluate(
            "[...document.querySelectorAll('.ice-menu-list input')].forEach((one) => one.checked && one.click())"
        )
        bare.idle()
        assert widget.pages["detail"]["shown"], "the last column stays"


def test_a_heading_of_the_table_before_does_not_sort_the_next(browser: Any) -> None:
    widget = Explorer(table())
    with bare_page(browser, widget, width=1000) as bare:
        opened(bare, widget)
        was = widget.pages["detail"]["table"]
        tab = "document.querySelector('[aria-label=Tables] [role=tab][aria-selected=false]').click()"
        # In one task of the page: the headings are still those of the table before.
        bare.page.evaluate(f"{tab}; document.querySelectorAll('.ice-detail .ice-sort')[1].click()")
        bare.idle()
        shown = widget.pages["detail"]
        assert shown["table"] != was and shown["sort"] is None
        bare.page.locator(".ice-detail .ice-sort").nth(1).click()
        bare.idle()
        assert widget.pages["detail"]["sort"] is not None


def test_what_is_too_long_or_leaves_its_line_is_clipped(browser: Any) -> None:
    widget = Explorer(table())
    with bare_page(browser, widget, width=1000) as bare:
        opened(bare, widget)
        bare.page.evaluate(
            """([long, stacked]) => {
                const { pages } = window.ice.state;
                const { columns, rows, ...more } = pages.detail;
                const names = columns.map((column, i) => ({ ...column, name: [long, stacked][i] ?? column.name }));
                const texts = rows.map((row, i) => (i < 3 ? ["W".repeat(100), stacked, ...row.slice(2)] : row));
                window.ice.update({ pages: { ...pages, detail: { ...more, of: "x", columns: names, rows: texts } } });
            }""",
            ["a_rather_long_name_of_a_column_" * 9, "Z" + "\u0301\u0323" * 40],
        )
        bare.page.wait_for_function(f"document.querySelectorAll('{ROWS}').length === 50")
        cells = bare.page.locator(".ice-detail .ice-table :is(thead, tbody) :is(th, td)").evaluate_all(
            """cells => cells.map((cell) => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                const inside = range.getBoundingClientRect();
                const box = cell.getBoundingClientRect();
                const fits = inside.left >= box.left - 1 && inside.right <= box.right + 1;
                const plain = /^[ -~]*$/.test(cell.textContent.replace(/[↑↓]/g, ""));
                return [cell.textContent.slice(0, 20), (fits && plain) || getComputedStyle(cell).overflow === "clip"];
            })"""
        )
        assert [text for text, fine in cells if not fine] == []


def test_the_focus_keeps_its_place_though_others_have_the_same_text(browser: Any) -> None:
    widget = Explorer(table())
    with bare_page(browser, widget, width=1000) as bare:
        opened(bare, widget)
        where = """() => {
            const cell = document.activeElement.closest("th, td");
            return [Number(cell.parentElement.ariaRowIndex), Number(cell.ariaColIndex), cell.textContent];
        }"""
        bare.page.locator(f"{ROWS} > *").first.click()
        bare.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight")
        row, column, text = bare.page.evaluate(where)
        assert (row, column, text) == (5, 2, "ADDED"), "as above and below it"
        bare.press("PageDown")
        assert bare.page.evaluate(where) == [55, 2, "ADDED"]
        bare.press("PageUp")
        assert bare.page.evaluate(where) == [5, 2, "ADDED"]
        # another grid's page is not this table's concern
        bare.page.evaluate("() => { window.row = document.activeElement.parentElement }")
        bare.page.evaluate(
            "() => window.ice.update({ pages: { ...window.ice.state.pages, other: { n: 1, of: 'x' } } })"
        )
        bare.idle()
        assert bare.page.evaluate("window.row.isConnected && window.row.contains(document.activeElement)")


def test_what_was_cancelled_is_asked_for_again(browser: Any) -> None:
    widget = Explorer(table())
    with bare_page(browser, widget, width=1000) as bare:
        page = bare.page
        opened(bare, widget)
        # nobody answers
        page.evaluate(
            """() => {
                window.iceAsked = window.ice.model.save_changes;
                window.ice.model.save_changes = () => {};
            }"""
        )
        cancel = "window.ice.update({ cancelled: window.ice.state.cancelled + 1 })"
        panel = page.locator(".ice-detail .ice-panel")
        page.get_by_label("Filter Table").fill("zzz")
        page.wait_for_function("window.ice.state.query.detail?.filters?.length === 1")
        assert page.locator(".ice-detail .ice-grid").get_attribute("aria-busy") == "true"
        page.evaluate(cancel)
        assert page.locator(".ice-detail .ice-grid").get_attribute("aria-busy") == "false"
        assert page.locator(ROWS).count() > 5, "what was shown still is"
        assert page.get_by_label("Filter Table").input_value() == "zzz"
        page.locator(".ice-detail .ice-tab", has_text="JSON").click()
        page.evaluate(cancel)
        assert panel.inner_text() == "Cancelled. Try again"
        assert not page.locator(".ice-detail .ice-pager").is_visible()
        before = page.evaluate("window.ice.state.query.detail")
        page.evaluate("() => { window.ice.model.save_changes = window.iceAsked }")
        page.get_by_role("button", name="Try again").focus()
        bare.press("Enter")
        asked = page.evaluate("window.ice.state.query.detail")
        assert asked == {**before, "n": before["n"] + 1}
        assert page.locator(".ice-detail .ice-text").is_visible()
        assert page.evaluate("document.activeElement.className") == "ice-text"
