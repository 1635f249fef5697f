"""What is typed into a table's filter, what it says, and where the focus goes; the same in a saved page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.browser.bare import BarePage, bare_page

pytestmark = pytest.mark.browser

FILES = [
    {
        "location": f"/warehouse/db/events/data/{'long-' * 12}{i:03d}.parquet",
        "record_count": 10 + i,
        "file_size_in_bytes": 1000,
        "lower_bounds": {"id": i, "name": "a" * 60},
        "upper_bounds": {"id": i + 1, "name": "b" * 60},
    }
    for i in range(60)
]
FOCUS = "(document.activeElement.ariaLabel ?? document.activeElement.textContent).slice(0, 40)"


def many_files() -> Explorer:
    """A table of 62 files, by two commits."""
    lab = ix.empty({"id": "long", "name": "string"}, format_version=2)
    lab.append(FILES)
    lab.append(2, rows=5)
    return Explorer(lab.table)


class Filter:
    """The filter of the table of details: what is typed, and what comes of it."""

    def __init__(self, page: Any, answered: Any) -> None:
        self.page = page
        self.box = page.locator(".ice-detail .ice-grid-bar .ice-input")
        self.note = page.locator(".ice-detail .ice-message")
        self.answered = answered

    def on(self, column: str, how: str) -> None:
        for place, label in enumerate((column, how)):
            self.page.locator(".ice-detail .ice-grid-bar select").nth(place).select_option(label=label)

    def types(self, text: str) -> None:
        self.box.fill(text)
        self.page.wait_for_timeout(380)
        self.answered()

    def is_wrong(self) -> bool:
        return bool(self.box.get_attribute("aria-invalid") == "true")


def tops(page: Any) -> list[float]:
    """Return the positions of elements that must not move."""
    places = page.locator(".ice-timeline, .ice-panes, .ice-detail .ice-panel, .ice-detail .ice-pager")
    found: list[float] = places.evaluate_all(
        "(all) => all.flatMap((one) => [one.getBoundingClientRect().top, one.clientHeight])"
    )
    return found


def test_no_text_leaves_its_cell(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    with bare_page(browser, widget) as bare:
        seen = """(all) => all.filter((one) => one.scrollWidth > one.clientWidth)
            .map((one) => getComputedStyle(one).overflow + " " + getComputedStyle(one).textOverflow)"""
        page = widget.pages["detail"]

        def cut(text: Callable[[int], str]) -> list[str]:
            rows = [[text(i) for _ in page["shown"]] for i in range(12)]
            widget.pages = {"detail": {**page, "rows": rows, "nodes": [None] * len(rows), "total": len(rows)}}
            bare.push()
            assert bare.page.locator(".ice-table tbody tr").count() == 12
            found: list[str] = bare.page.locator(".ice-table tbody > tr > *").evaluate_all(seen)
            return found

        assert cut(lambda i: f"{'8' * 40}-{i:05}.parquet") == [], "of a file's name the end is in sight"
        wide = cut(lambda i: "m" * (18 + i))
        assert len(wide) > 5 and set(wide) == {"clip ellipsis"}


def test_what_a_filter_cannot_take_is_explained_beside_it(browser: Any) -> None:
    widget = many_files()
    widget.select("table")
    with bare_page(browser, widget) as bare:
        page = bare.page
        page.locator(".ice-tab", has_text="Snapshots").click()
        bare.idle()
        wanted = Filter(page, bare.idle)
        shown = page.locator(".ice-detail .ice-range")
        wanted.on("committed_at", ">")
        wanted.types("2000-01-01")
        assert shown.inner_text() == "2 rows"
        wanted.types("2000-01-0x")
        refused = "'2000-01-0x' does not fit 'committed_at', which has times, such as 2024-05-01 10:30:00"
        assert (wanted.note.inner_text(), wanted.is_wrong(), widget.error) == (refused, True, {})
        assert (shown.inner_text(), wanted.box.input_value()) == ("2 rows", "2000-01-0x")
        assert page.locator(".ice-detail .ice-chip").count() == 0
        bare.press("Enter")
        assert (wanted.note.inner_text(), wanted.box.input_value()) == (refused, "2000-01-0x"), "it can be corrected"
        wanted.types("2999-01-01")
        assert (wanted.note.inner_text(), wanted.is_wrong()) == ("committed_at > 2999-01-01 00:00:00 UTC", False)
        assert shown.inner_text() == "0 rows (of 2)"
        # what numbers without end are called is typed like any other
        wanted.on("snapshot_id", "<")
        wanted.types("inf")
        assert (wanted.note.inner_text(), wanted.is_wrong()) == ("snapshot_id < Infinity", False)


def test_a_page_that_is_none_and_a_search_for_nothing(browser: Any) -> None:
    with bare_page(browser, many_files()) as bare:
        page = bare.page
        page.locator(".ice-tab", has_text="Files").click()
        bare.idle()
        number = page.locator(".ice-detail .ice-number")
        for text in ("0", "abc", ""):
            number.fill(text)
            bare.press("Enter")
            assert number.input_value() == "1", text
        number.fill("2")
        bare.press("Enter")
        assert number.input_value() == "2"
        page.locator(".ice-omni-input").fill("   ")
        page.wait_for_timeout(350)
        bare.idle()
        assert page.locator(".ice-count-found").inner_text() == ""


def test_an_invalid_number_is_reported_where_it_is_typed(browser: Any) -> None:
    widget = many_files()
    with bare_page(browser, widget) as bare:
        page = bare.page
        page.locator(".ice-tab", has_text="Files").click()
        bare.idle()
        wanted = Filter(page, bare.idle)
        wanted.on("record_count", ">")

        def filters() -> list[str]:
            return [one["value"] for one in widget.pages["detail"]["filters"]]

        # half a number is no reason to say anything
        for half in ("-", "1e", "1e-", "."):
            wanted.types(half)
            assert (wanted.note.inner_text(), wanted.is_wrong(), widget.error) == ("", False, {}), half
        wanted.types("-1")
        assert filters() == ["-1"]
        # what is no number leaves what was
        wanted.types("50")
        before = tops(page)
        wanted.types("50x and some more")
        refused = "does not fit 'record_count', which has integers, such as 500 or 10k"
        assert wanted.note.inner_text() == f"'50x and some more' {refused}"
        assert wanted.is_wrong()
        assert filters() == ["50"]
        assert page.locator(".ice-detail .ice-range").inner_text() == "19 rows (of 62)"
        assert page.locator(".ice-error:visible").count() == 0
        assert tops(page) == before
        # and nothing behind when it is corrected
        wanted.types("1")
        assert (filters(), wanted.is_wrong(), wanted.note.inner_text()) == (["1"], False, "")
        assert page.locator(".ice-detail .ice-chip").count() == 0
        wanted.types("1e")
        bare.press("Enter")
        assert wanted.note.inner_text() == f"'1e' {refused}", "whoever presses Enter has finished it"
        assert wanted.box.input_value() == "1e"

        # a filter that another view takes away is not left in the box
        wanted.types("12")
        page.evaluate("document.activeElement.blur()")
        widget.query = {"detail": {**widget.query["detail"], "filters": [], "n": widget.query["detail"]["n"] + 1}}
        bare.push()
        assert page.locator(".ice-detail .ice-range").inner_text() == "1–50 of 62 rows"
        assert wanted.box.input_value() == ""

        # the focus stays on the button that led to the last page
        page.get_by_role("button", name="Next page").focus()
        bare.press("Enter")
        assert page.locator(".ice-detail .ice-range").inner_text() == "51–62 of 62 rows"
        assert page.evaluate(FOCUS) == "Next page"
        bare.press("Enter")
        assert page.locator(".ice-detail .ice-range").inner_text() == "51–62 of 62 rows"

        # what is cut can be read
        page.get_by_role("button", name="Previous page").click()
        bare.idle()
        cut = page.locator(".ice-detail tbody th").first
        assert "…" in cut.inner_text() or cut.evaluate("(cell) => cell.scrollWidth > cell.clientWidth")
        assert str(cut.get_attribute("title")).startswith("/warehouse/db/events/data/"), "all of it"

        # a message about one table does not stay for another
        page.get_by_role("button", name="Copy cell").click()
        page.wait_for_function("document.querySelector('.ice-detail .ice-message').textContent !== ''")
        page.locator(".ice-tab", has_text="JSON").click()
        bare.idle()
        assert wanted.note.inner_text() == ""

        refused_by_python(bare, wanted, filters)


def refused_by_python(bare: BarePage, wanted: Filter, filters: Any) -> None:
    """What Python refuses leaves nothing behind either, typed on or kept."""
    bare.widget.select("table")
    bare.push()
    bare.page.locator(".ice-tab", has_text="Snapshots").click()
    bare.idle()
    wanted.on("committed_at", ">")
    for text in ("2020", "2020x", "2021"):
        wanted.types(text)
    assert filters() == ["2021"]
    wanted.box.fill("2021x")
    bare.press("Enter")
    assert wanted.box.input_value() == "2021x"
    assert bare.page.locator(".ice-detail .ice-chip").count() == 0
    wanted.types("2022")
    assert filters() == ["2022"]

    # a row selects its snapshot, whose id may be negative
    bare.page.evaluate(
        """() => {
          const { detail, ...others } = window.ice.state.pages;
          window.ice.model.save_changes = () => {};
          const nodes = detail.nodes.map(() => "snapshot:-5");
          window.ice.update({ pages: { ...others, detail: { ...detail, nodes } } });
        }"""
    )
    bare.page.locator(".ice-detail .ice-open").first.click()
    assert bare.page.evaluate("window.ice.state.selection.snapshot") == "-5"


def test_the_focus_stays_in_the_widget(browser: Any) -> None:
    with bare_page(browser, many_files()) as bare:
        page = bare.page

        def go(part: str) -> None:
            page.locator(f".ice-part[data-part={part}]").click()
            bare.idle()
            page.wait_for_timeout(300)

        def busy(text: str) -> None:
            page.evaluate("(text) => window.ice.update({ busy: text })", text)
            bare.idle()

        go("problems")
        page.get_by_role("tab", name="Found while reading").click()
        assert "1 of 2 manifests of this snapshot read" in page.locator(".ice-problems").inner_text()
        page.get_by_role("button", name="Read the other one").focus()
        busy("Reading")
        assert page.evaluate(FOCUS) == "Read the other one"
        busy("")
        bare.press("Enter")
        assert page.locator(".ice-findings").evaluate("(list) => list === document.activeElement")
        assert "No problems in this snapshot's metadata" in page.locator(".ice-problems").inner_text()

        go("scan")
        page.locator(".ice-scan-empty .ice-chip").last.focus()
        bare.press("Enter")
        assert page.locator(".ice-scan-answer > ul").is_visible()
        assert page.evaluate(FOCUS) == "Plan"
        page.get_by_role("button", name="Count rows").focus()
        bare.press("Enter")
        assert page.evaluate(FOCUS) == "Count rows"

        go("commit")
        apply = page.get_by_role("button", name="Apply", exact=True)
        apply.focus()
        busy("Committing")
        assert page.evaluate(FOCUS) == "Apply"
        asked = bare.widget.commit_asked
        page.keyboard.press("Enter")
        assert bare.widget.commit_asked == asked, "not while it is busy"
        busy("")
        bare.press("Enter")
        assert page.locator(".ice-steps button").count() == 2
        for name, key in (("Undo", "Start"), ("Redo", "1 ")):
            page.get_by_role("button", name=name, exact=True).focus()
            bare.press("Enter")
            assert page.locator(".ice-steps [aria-current=step]").inner_text().startswith(key)
            assert page.evaluate(FOCUS) == name
        page.locator(".ice-steps button").first.focus()
        bare.press("Enter")
        assert page.evaluate(FOCUS) == "Start"


def test_no_snapshot(browser: Any) -> None:
    """What cannot be done is off; the doctor checks the metadata file alone."""
    with bare_page(browser, Explorer(ix.empty({"id": "long"}))) as bare:
        for part, words, enabled in (
            (
                "problems",
                "it has no snapshot to check",
                ["Check the table", "Findings", "Files and manifests", "Repair", "Found while reading"],
            ),
            ("deletes", "has no snapshot, so nothing is", []),
        ):
            bare.page.locator(f".ice-part[data-part={part}]").click()
            bare.idle()
            bare.page.wait_for_timeout(300)
            if part == "problems":
                bare.page.get_by_role("tab", name="Found while reading").click()
            assert words in bare.page.locator(".ice-part-panel:visible").inner_text()
            buttons = bare.page.locator(".ice-part-panel:visible button:visible:not([aria-disabled=true])")
            assert buttons.all_inner_texts() == enabled
        bare.page.locator(".ice-part[data-part=problems]").click()
        bare.page.get_by_role("button", name="Check the table").click()
        bare.page.get_by_text("The version hint is missing").wait_for()


def test_a_saved_page_offers_what_works_without_python(page: Any, tmp_path: Path) -> None:
    lab = ix.empty({"id": "long", "=name": "string"}, format_version=2)
    lab.append(pd.DataFrame({"id": [1], "=name": ["x"]}))
    lab.append(3, rows=10)
    widget = Explorer(lab.table)
    assert widget.settle(60)
    page.goto(widget.save_html(tmp_path / "saved.html").path.as_uri())
    page.locator(".ice-timeline").wait_for()
    # it searches what is there, alone
    note = "(found) => RegExp(found).test(document.querySelector('.ice-count-found').textContent)"
    for text, found in (("zzzz", "^no matches$"), ("parquet", r"^\d+\+? found$"), ("", "^$")):
        page.locator(".ice-find").fill(text)
        page.wait_for_function(note, arg=found)
    # it draws the pictures; other files take Python, and so does a comparison with which it was not saved
    page.get_by_role("button", name="Save the picture").click()
    pictures = page.get_by_role("button", name=re.compile(": Tree$"))
    names = pictures.evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert names == ["Copy: Tree", "PNG: Tree", "SVG: Tree"]
    with page.expect_download() as started:
        page.get_by_role("button", name="SVG: Tree").click()
    assert "<svg" in Path(started.value.path()).read_text(encoding="utf-8")[:200]
    assert page.get_by_role("button", name="Compare").count() == 0
    assert page.locator(".ice-compared").inner_text() == ""
    page.locator(".ice-axis").focus()
    page.keyboard.press("Shift+Home")
    page.wait_for_timeout(100)
    assert page.locator(".ice-compared").inner_text() == ""
    # a number is asked for as with Python
    page.locator(".ice-tab", has_text="Files").click()
    wanted = Filter(page, lambda: None)
    wanted.on("record_count", ">")
    wanted.types("-")
    assert (wanted.note.inner_text(), wanted.is_wrong()) == ("", False)
    wanted.types("1,0x")
    assert wanted.note.inner_text() == "“1,0x” is not a number"
    assert page.locator(".ice-detail .ice-table tbody tr").count() == 4
    wanted.types("")
    # an apostrophe is spoken of where there is one
    page.locator("[role=treeitem][data-id=table]").dispatch_event("click")
    for tab, note in (("Snapshots", "Saved"), ("Schema", "Saved; formulas begin with an apostrophe")):
        page.locator(".ice-tab", has_text=tab).first.click()
        with page.expect_download():
            page.get_by_role("button", name="Download all rows as CSV").click()
        page.wait_for_function(
            "(note) => document.querySelector('.ice-detail .ice-message').textContent === note", arg=note
        )
    # before Firefox 127 there were no clipboard items
    page.evaluate(
        """() => {
          delete window.ClipboardItem;
          document.execCommand = () => false;
          navigator.clipboard.writeText = async (text) => { window.copied = text; };
        }"""
    )
    page.get_by_role("button", name="Copy row as JSON").click()
    page.wait_for_function("window.copied?.startsWith('{')")
