"""Every widget under axe-core, light and dark; and what is left in the page when one is taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import problem
from iceexplore.widgets import CommitLab, DeletionVectors, Explorer, Problems, Rows, ScanLab, Timeline
from iceexplore.widgets.core._bundle import style_sheet
from tests.browser.bare import bare_page
from tests.helpers.sampling import one_of

pytestmark = pytest.mark.browser


def timeline() -> Any:
    table = ix.sample("trips")
    made = Timeline(table)
    made.select(against=table.snapshots[2].snapshot_id)
    return made


def problems() -> Any:
    table = ix.sample("trips")
    root = table.state.root()
    assert root is not None
    for place in build.to_pylist(root.entries["location"]):
        table.state.problems.add(problem("file-missing", place, "not there", found=404))
        table.state.problems.add(problem("count-mismatch", place + "#entry 0", "another count"))
    return Problems(table)


def vectors() -> Any:
    table = ix.sample("trips")
    deletes = DeletionVectors(table)
    assert table.snapshot is not None
    deletes.query = {"deletes": {"n": 1, "of": str(table.snapshot.snapshot_id), "table": "all"}}
    assert deletes.settle(60)
    deletes.select(next(n for n in deletes.pages["deletes"]["nodes"] if n))
    return deletes


def explorer(tab: str) -> Callable[[], Any]:
    def make() -> Any:
        made = Explorer(ix.sample("trips"))
        made.tab = tab
        return made

    return make


def failed() -> Any:
    made = Explorer(ix.sample("trips"))
    made.select("file:1:2:3")
    return made


WIDGETS: dict[str, Callable[[], Any]] = {
    "timeline": timeline,
    "no snapshots": lambda: Timeline(ix.empty({"a": "long"})),
    "problems": problems,
    "no problems": lambda: Problems(ix.sample("trips")),
    "deletes": vectors,
    "explorer": explorer("tree"),
    "explorer, problems": explorer("problems"),
    "explorer, deletes": explorer("deletes"),
    "an error": failed,
    "scan": lambda: ScanLab(ix.sample("trips"), scan_filter="true"),
    "rows": lambda: Rows(ix.sample("trips"), rows_filter="trip_id < 65"),
    "no scan": lambda: ScanLab(ix.sample("trips")),
    "commit": lambda: CommitLab(ix.sample("trips"), commit_draft={"after": "file:7137812319701696493:3:6"}),
}


#: What a pointer can hit, with its labels, and is less than 24 by 24 (WCAG 2.2, 2.5.8). Rows and links in text are not
#: asked for that much; a pseudo-element may be what is hit.
_SMALL = """() => {
  const acts = "button, summary, input, select, textarea, [role=tab], [role=slider], [role=separator], .ice-twisty";
  const all = [...document.querySelectorAll(`.ice-widget :is(${acts})`)];
  const box = (one) => {
    const { width, height } = one.getBoundingClientRect();
    const { position, left, right, top, bottom } = getComputedStyle(one, "::after");
    const more = position === "absolute" ? [left, right, top, bottom].map((px) => -parseFloat(px)) : [0, 0, 0, 0];
    return [width + more[0] + more[1], height + more[2] + more[3]];
  };
  const unseen = (one) => !one.checkVisibility() || one.closest(".ice-map:not(.ice-as-list) .ice-tree");
  return all.filter((one) => !unseen(one) && ![one, ...(one.labels ?? [])].some((it) => Math.min(...box(it)) > 23.9))
    .map((one) => [one.className, one.getAttribute("aria-label") ?? one.textContent, ...box(one)]);
}"""


#: What ends beyond the widget, where nobody can scroll to it.
_BEYOND = """() => {
  const edge = document.querySelector(".ice-widget").getBoundingClientRect().right + 1;
  const beyond = (one) => one.checkVisibility() && one.getBoundingClientRect().right > edge;
  const scrolls = (one) => one.closest(".ice-panel, .ice-tree, .ice-figure, pre");
  const all = [...document.querySelectorAll(".ice-widget *")];
  return all.filter((one) => beyond(one) && !scrolls(one)).map((one) => one.outerHTML);
}"""


#: Shows all that can be unfolded.
_UNFOLD = """() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  for (const one of document.querySelectorAll("[aria-label='Save the picture'][aria-expanded=false]")) one.click();
}"""
#: Menus that are over what would shut them.
_COVERED = """() => [...document.querySelectorAll(".ice-menu summary")].filter((one) => {
  if (!one.checkVisibility()) return false;
  one.scrollIntoView({ block: "center" });
  const { x, y, width, height } = one.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2)?.closest(".ice-menu-list");
}).length"""


@pytest.mark.parametrize("name", WIDGETS)
def test_axe_finds_nothing(browser: Any, name: str) -> None:
    with bare_page(browser, WIDGETS[name]()) as bare:
        bare.page.locator(".ice-widget").wait_for()
        bare.page.wait_for_timeout(150)
        assert bare.violations() == []
        bare.page.evaluate("document.body.dataset.jpThemeLight = 'false'; document.body.style.background = '#111'")
        bare.page.wait_for_selector("[data-ice-theme=dark]")
        bare.page.wait_for_timeout(100)
        assert bare.violations() == []
        for width in (1000, 390, 320, 240):  # JupyterLab's own bars leave 216 of 320 pixels
            bare.page.set_viewport_size({"width": width, "height": 900})
            bare.page.evaluate(_UNFOLD)
            bare.page.wait_for_timeout(100)
            assert bare.page.evaluate(_SMALL) == [], width
            assert bare.page.evaluate(_BEYOND) == [], "400 % of 1280 pixels: nothing is cut off (1.4.10)"
            assert bare.page.evaluate(_COVERED) == 0, width
        if name == "commit":
            assert bare.violations() == [], "what scrolls now, too"
        squeezed = "tables => tables.filter((one) => one.checkVisibility() && one.clientHeight < 60).length"
        assert bare.page.locator(".ice-panel").evaluate_all(squeezed) == 0, "a table has room for its rows"


def test_a_list_that_scrolls_is_no_tab_stop_beside_its_own(browser: Any) -> None:
    """In Firefox whatever scrolls is one, unless it says otherwise."""
    with bare_page(browser, WIDGETS["explorer"]()) as bare:
        bare.page.locator(".ice-detail .ice-menu summary", has_text="Columns").click()
        bare.page.locator(".ice-menu-list input").first.wait_for()
        for box in (".ice-tree", ".ice-detail .ice-panel", ".ice-menu-list:has(input)"):
            assert bare.page.locator(box).get_attribute("tabindex") == "-1", box


def test_the_focus_is_seen_where_a_script_moved_it_on(browser: Any) -> None:
    """Safari shows none after a click; nor does Chromium after keys that were not pressed."""
    with bare_page(browser, WIDGETS["explorer"]()) as bare:
        bare.page.locator(".ice-detail .ice-table td").first.click()
        ring = "getComputedStyle(document.activeElement).outlineStyle"
        assert bare.page.evaluate(ring) == "none", "it was clicked"
        key = "new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true, cancelable: true })"
        bare.page.evaluate(f"document.activeElement.dispatchEvent({key})")
        assert bare.page.evaluate("document.activeElement.closest('tr').ariaRowIndex") == "3"
        assert bare.page.evaluate(ring) == "solid"
        bare.page.locator(".ice-detail .ice-table td").first.click()
        assert bare.page.evaluate(ring) == "none"


def test_the_row_of_widths_takes_no_room(browser: Any) -> None:
    """To Safari a row that is collapsed is merely hidden."""
    with bare_page(browser, WIDGETS["explorer"]()) as bare:
        bare.page.add_style_tag(content=".ice-widget .ice-table .ice-widths { visibility: hidden !important; }")
        tall = "document.querySelector('.ice-detail .ice-widths').offsetHeight"
        assert bare.page.evaluate(tall) == 0


def test_a_path_is_selected_whole_in_safari() -> None:
    """It knows the property by its old name alone."""
    assert all("-webkit-user-select:" in line for line in style_sheet().splitlines() if "user-select:" in line)


@pytest.mark.parametrize("name", one_of(2, ["timeline", "explorer", "problems", "scan", "deletes", "commit"], 1))
def test_nothing_is_left_of_a_widget_that_is_taken_away(browser: Any, name: str) -> None:
    with bare_page(browser, WIDGETS[name]()) as bare:
        during = bare.page.evaluate("({ ...window.iceOpen, model: window.ice.listeners() })")
        assert during["observers"] > 0
        assert during["model"] > 0
        assert bare.end() == {"observers": 0, "listeners": 0, "model": 0}


def test_two_views_of_one_widget_stay_in_step(browser: Any) -> None:
    widget = Timeline(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        bare.page.evaluate(
            """async (source) => {
              const host = document.createElement("div");
              document.querySelector("main").append(host);
              const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
              window.ice.second = await module.default.render({ model: window.ice.model, el: host });
            }""",
            widget._esm,
        )
        lines = bare.page.get_by_role("slider", name="Snapshot")
        assert lines.count() == 2
        lines.nth(0).focus()
        bare.press("Home")
        assert [line.get_attribute("aria-valuenow") for line in lines.all()] == ["1", "1"]
        lines.nth(1).focus()
        bare.press("ArrowRight", "Shift+End")
        assert [line.get_attribute("aria-valuenow") for line in lines.all()] == ["2", "2"]
        assert bare.page.locator(".ice-compared:visible").count() == 2


def test_silence_is_reported_and_forgotten(browser: Any) -> None:
    widget = Timeline(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        bare.page.evaluate("window.ice.model.save_changes = () => {}")
        bare.page.locator(".ice-axis").focus()
        bare.page.keyboard.press("Home")
        bare.page.wait_for_selector(".ice-error:visible", timeout=10_000)
        assert "is not responding" in bare.page.locator(".ice-error").inner_text()
        assert bare.page.evaluate("window.ice.sent") == [{"ping": True}], "it asked again before it reported silence"
        assert bare.page.locator(".ice-axis").get_attribute("aria-valuenow") == "1", "what is there is still usable"
        widget.answered += 1
        bare.push()
        assert bare.page.locator(".ice-error:visible").count() == 0
