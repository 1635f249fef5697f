"""Cells of a table: units and exact values, bars, resized columns, filters with units, links, and 200 % zoom."""

from __future__ import annotations

from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.browser.bare import BarePage, bare_page
from tests.browser.test_grid_details import Filter

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=window.hostile=1>\u202egpj.exe"


def files_of(bare: BarePage) -> Any:
    """Show the table Files of the selected snapshot; return its grid."""
    bare.page.locator(".ice-detail .ice-tab", has_text="Files").first.click()
    bare.idle()
    return bare.page.locator(".ice-detail .ice-grid")


def column(bare: BarePage, name: str) -> int:
    """Return the place of a column among those that are shown."""
    page = bare.widget.pages["detail"]
    found: int = [page["columns"][i]["name"] for i in page["shown"]].index(name)
    return found


def heads(bare: BarePage) -> list[str]:
    found: list[str] = bare.page.locator(".ice-detail thead th .ice-sort > span:first-child").all_inner_texts()
    return found


def described(bare: BarePage, cell: Any) -> tuple[str, str]:
    """Return what assistive technology gets of a cell: its name and description, from Chromium's own tree."""
    cell.evaluate("(cell) => { window.iceCell = cell; }")
    session = bare.page.context.new_cdp_session(bare.page)
    handle = session.send("Runtime.evaluate", {"expression": "window.iceCell"})["result"]["objectId"]
    nodes = session.send("Accessibility.getPartialAXTree", {"objectId": handle, "fetchRelatives": False})["nodes"]
    node = next(one for one in nodes if not one.get("ignored"))
    session.detach()
    return node["name"]["value"], node.get("description", {}).get("value", "")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cells_have_units_exact_values_and_bars(browser: Any, theme: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, theme=theme) as bare:
        files_of(bare)
        assert heads(bare)[:5] == ["file_path", "content", "partition", "record_count", "file_size_in_bytes"]
        page = widget.pages["detail"]
        place = column(bare, "file_size_in_bytes")
        sizes = [int(row[place]) for row in page["rows"]]
        at = sizes.index(max(sizes))
        row = bare.page.locator(".ice-detail tbody tr").nth(at)
        cell = row.locator("th, td").nth(place)
        assert cell.inner_text() == page["texts"][str(page["shown"][place])][at] != str(sizes[at])
        assert cell.get_attribute("title") == f"{sizes[at]:,} bytes"
        assert described(bare, cell) == (cell.inner_text(), f"{sizes[at]:,} bytes")
        full, half = (
            bare.page.locator(".ice-detail tbody tr").nth(i).locator("th, td").nth(place)
            for i in (at, sizes.index(min(sizes)))
        )
        bars = [one.evaluate("(cell) => getComputedStyle(cell).backgroundSize") for one in (full, half)]
        assert bars[0].startswith("100% 3px") and bars[1].startswith(f"{round(100 * min(sizes) / max(sizes))}% 3px")
        # shown at the cell that has the focus, also without a mouse
        cell.focus()
        bare.press("ArrowUp" if at else "ArrowDown")
        shown = "getComputedStyle(document.activeElement, '::after').content"
        title = bare.page.evaluate("document.activeElement.title")
        assert title.endswith(" bytes") and bare.page.evaluate(shown) == f'"{title}"'
        # what is copied is exact
        number = title.removesuffix(" bytes").replace(",", "")
        bare.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        bare.press("Control+c")
        assert bare.page.evaluate("document.querySelector('.ice-detail .ice-message').textContent").startswith(
            f"Copied {len(number)} character"
        )
        assert bare.violations() == []


def test_columns_are_resized_by_mouse_and_keyboard(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        files_of(bare)
        page = bare.page
        head = page.locator(".ice-detail thead th").first

        def widths() -> tuple[int, int]:
            own = "(cell) => Math.round(cell.getBoundingClientRect().width)"
            return head.evaluate(own), page.locator(".ice-detail tbody th").first.evaluate(own)

        before = widths()[0]
        grip = head.locator(".ice-grip").bounding_box()
        assert grip is not None
        x, y = grip["x"] + grip["width"] / 2, grip["y"] + 8
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 40, y, steps=4)
        page.mouse.up()
        page.mouse.move(x + 60, y)
        assert widths() == (before - 40, before - 40)
        assert page.evaluate("document.querySelector('.ice-detail thead [aria-sort]:not([aria-sort=none])')") is None
        head.locator(".ice-sort").focus()
        bare.press("Shift+ArrowRight")
        assert widths() == (before - 16, before - 16)
        assert page.locator(".ice-detail .ice-message").inner_text() == f"file_path: {before - 16} px"
        for _ in range(40):
            page.keyboard.press("Shift+ArrowLeft")
        assert widths() == (48, 48), "a column stays visible"
        for _ in range(5):
            page.keyboard.press("Shift+ArrowRight")
        assert widths() == (168, 168)
        # of another page, sort and snapshot, too
        page.locator(".ice-detail .ice-sort", has_text="record_count").click()
        bare.idle()
        assert widths() == (168, 168)
        widget.select(f"snapshot:{ix.sample('trips').snapshots[-2].snapshot_id}")
        bare.push()
        assert widget.pages["detail"]["table"] == "files" and widths() == (168, 168)
        head.locator(".ice-grip").dblclick()
        assert widths()[0] != 168, "as wide as it is by itself"
        assert bare.violations() == []


def test_filters_with_units_say_what_they_mean(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        files_of(bare)
        page = bare.page
        sizes = ix.sample("trips").inspect.files()["file_size_in_bytes"]
        wanted = Filter(page, bare.idle)
        shown = page.locator(".ice-detail .ice-range")
        wanted.on("file_size_in_bytes", "=")
        wanted.types("< 2 KiB")
        assert shown.inner_text() == f"{sum(sizes < 2048)} rows (of {len(sizes)})"
        assert wanted.note.inner_text() == "file_size_in_bytes < 2,048 bytes"
        wanted.types("< 2 K")
        assert wanted.note.inner_text() == "file_size_in_bytes < 2,000 bytes"
        wanted.types("< 2 Kx")
        assert wanted.note.inner_text().startswith("'Kx' is not a unit here: use one of k, m, g") and wanted.is_wrong()
        wanted.types("<")
        assert not wanted.is_wrong(), "more may come"
        wanted.types("2k..3 kB")
        bare.press("Enter")
        bare.idle()
        assert (
            page.locator(".ice-detail .ice-chip")
            .inner_text()
            .startswith("file_size_in_bytes from 2,000 to 3,000 bytes".replace("2,000 to", "2,000 bytes to"))
        )
        page.locator(".ice-detail .ice-menu summary", has_text="?").click()
        assert "64 MiB" in page.locator(".ice-detail .ice-hints").inner_text()
        assert bare.violations() == []


def test_rows_of_delete_files_are_links(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        files_of(bare)
        page = widget.pages["detail"]
        place = str(page["shown"][column(bare, "content")])
        for kind in ("position deletes", "deletion vector"):
            files_of(bare)
            at = widget.pages["detail"]["texts"][place].index(kind)
            row = bare.page.locator(".ice-detail tbody tr").nth(at)
            row.locator("td").first.focus()
            bare.press("Enter")
            bare.idle()
            assert widget.detail["kind_title"].lower().startswith(kind.removesuffix("s"))
            widget.select(f"snapshot:{widget.selection['snapshot']}")
            bare.push()


def test_long_and_hostile_names_stay_in_their_cells(browser: Any) -> None:
    lab = ix.empty({"id": "long"}, format_version=2)
    lab.append(
        [{"location": f"/t/data/{HOSTILE}{'x' * 200}{i}", "record_count": 1, "file_size_in_bytes": 9} for i in (1, 2)]
    )
    widget = Explorer(lab.table)
    with bare_page(browser, widget) as bare:
        files_of(bare)
        cell = bare.page.locator(".ice-detail tbody th").first
        cell.focus()
        bare.press("ArrowDown")
        title = bare.page.evaluate("document.activeElement.title")
        assert "onerror" in title and "\u202e" not in title and "⟨U+202E⟩" in title
        assert bare.page.evaluate("window.hostile") is None
        box = bare.page.locator(".ice-detail .ice-panel").bounding_box()
        widths = "[...document.querySelectorAll('.ice-detail tbody tr > *')].map((one) => one.offsetWidth)"
        assert box is not None and max(bare.page.evaluate(widths)) <= 290
        assert bare.violations() == []


def test_five_rows_are_visible_at_200_per_cent(browser: Any) -> None:
    """A window of 1280 by 900 at 200 % zoom has 640 by 450 CSS pixels."""
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=640, height=450) as bare:
        handle = bare.page.locator(".ice-handle")
        if handle.is_visible():
            handle.click()
        files_of(bare)
        visible = """(panel) => {
          const box = panel.getBoundingClientRect();
          const head = panel.querySelector("thead").getBoundingClientRect();
          const low = Math.min(box.bottom, innerHeight);
          return [...panel.querySelectorAll("tbody tr")].map((row) => row.getBoundingClientRect())
            .filter(({ top, bottom }) => top >= head.bottom - 1 && bottom <= low + 1).length;
        }"""
        bare.page.evaluate("document.querySelector('.ice-detail .ice-pager').scrollIntoView({ block: 'end' })")
        assert bare.page.locator(".ice-detail .ice-panel").evaluate(visible) >= 5
