"""The room that widgets take: height and its edge, larger text, what collapses, keys, narrow widgets, full screen."""

from __future__ import annotations

import json
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer, ScanLab, Timeline
from tests.browser.bare import MODEL, PAGE, BarePage, bare_page, state_text

pytestmark = pytest.mark.browser


def box(bare: BarePage, selector: str = ".ice-widget") -> dict[str, float]:
    """The rectangle of an element."""
    found: dict[str, float] = bare.page.locator(f"{selector}:visible").first.bounding_box()
    return found


def test_a_height_and_its_edge(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"), height=700)
    with bare_page(browser, widget, width=1200) as bare:
        page = bare.page
        assert box(bare)["height"] == 700
        before = box(bare, ".ice-panes")["height"]
        bare.page.get_by_role("button", name="Collapse the timeline").click()
        bare.idle()
        assert box(bare)["height"] == 700
        assert box(bare, ".ice-panes")["height"] > before + 100, "the tree has the room of the timeline"

        edge = page.get_by_role("separator", name="Height of the widget")
        place = edge.bounding_box()
        assert place["y"] + place["height"] <= box(bare)["y"] + 700
        page.mouse.move(600, place["y"] + 6)
        page.mouse.down()
        page.mouse.move(600, 500)
        page.mouse.move(600, 560)
        assert abs(box(bare)["y"] + box(bare)["height"] - 560) < 3, "while it is dragged"
        assert widget.height == "700px"
        page.mouse.up()
        bare.idle()
        assert widget.height == f"{round(560 - box(bare)['y'])}px"
        page.mouse.move(600, 800)
        assert box(bare)["height"] < 600, "released"

        edge.focus()
        bare.press("ArrowDown", "ArrowDown", "ArrowUp")
        assert widget.height == f"{round(600 - box(bare)['y'])}px"
        assert edge.get_attribute("aria-valuenow") == widget.height.removesuffix("px")
        bare.press("Home")
        assert (widget.height, box(bare)["height"]) == ("200px", 200)
        for name in ("min", "max"):
            assert edge.get_attribute(f"aria-value{name}") in ("200", "10000")
        bare.press("Enter")
        assert widget.height == ""
        assert box(bare, ".ice-panes")["height"] == 560
        edge.dblclick()
        widget.height = "50vh"
        bare.push()
        assert box(bare)["height"] == 450
        assert bare.violations() == []


def test_other_widgets_have_a_height_too(browser: Any) -> None:
    with bare_page(browser, ScanLab(ix.sample("trips"), scan_filter="true", height=820)) as bare:
        assert box(bare)["height"] == 820
        assert box(bare, ".ice-scan-panes")["height"] > 480
    with bare_page(browser, Timeline(ix.sample("trips"))) as bare:
        assert bare.page.get_by_role("separator").count() == 0


def test_the_head_collapses(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1200) as bare:
        page = bare.page
        before = box(bare, ".ice-detail .ice-panel")["height"]
        page.locator(".ice-detail").get_by_role("button", name="Collapse the head").click()
        bare.idle()
        assert widget.room()["head_collapsed"] is True
        assert box(bare, ".ice-detail .ice-panel")["height"] > before + 120
        assert page.locator(".ice-facts").first.is_hidden()
        assert page.locator(".ice-title h3").is_visible()
        page.locator(".ice-top").get_by_role("button", name="Expand the head").focus()
        bare.press("Enter")
        assert widget.head_collapsed is False
        assert page.locator(".ice-facts").first.is_visible()
        assert page.locator(".ice-top [aria-expanded]").get_attribute("aria-expanded") == "true"


def test_larger_text(browser: Any) -> None:
    """Words, pictures and what a pointer hits grow together."""
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1400, height=1000) as bare:
        page = bare.page
        larger = page.get_by_role("button", name="Larger text")
        height = page.locator(".ice-table-name").bounding_box()["height"]
        for size in (115, 130, 150):
            larger.click()
            bare.idle()
            assert widget.text_size == size
            assert page.get_by_role("group", name=f"Text size: {size} %").count() == 1
        assert page.locator(".ice-table-name").bounding_box()["height"] == pytest.approx(1.5 * height, abs=0.6)
        assert box(bare)["width"] == pytest.approx(1376, abs=1), "no wider"

        node = next(i for i, one in widget.nodes.items() if one["label"] == "main")
        place = page.evaluate("(id) => document.querySelector('.ice-map').where(id)", node)
        picture = box(bare, ".ice-canvas")
        page.mouse.click(picture["x"] + 1.5 * (place["x"] + 60), picture["y"] + 1.5 * (place["y"] + 20))
        bare.idle()
        assert widget.selection["node"] == node, "a click meets the card that is under the pointer"
        ratio = page.locator(".ice-canvas").evaluate("(one) => one.width / one.getBoundingClientRect().width")
        assert ratio == pytest.approx(1, abs=0.01), "as sharp as the screen"

        line = box(bare, ".ice-axis")
        page.mouse.click(line["x"] + 1.5 * 16, line["y"] + 1.5 * 49)
        bare.idle()
        assert widget.selection["snapshot"] == widget.snapshots[0]["id"]
        assert page.evaluate("document.documentElement.scrollWidth") <= 1400

        widget.text_size = 200
        bare.push()
        assert larger.get_attribute("aria-disabled") == "true"
        assert bare.violations() == []
        widget.text_size = 85
        bare.push()
        assert page.get_by_role("button", name="Smaller text").get_attribute("aria-disabled") == "true"
        assert page.locator(".ice-table-name").bounding_box()["height"] < height


def test_a_session_remembers_what_was_chosen(browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.route("**/*", lambda route: route.fulfill(body="", content_type="text/html"))
    shown: list[Any] = []

    def show(widget: Any) -> Any:
        page = context.pages[0] if context.pages else context.new_page()
        if not shown:
            page.expose_function("iceSave", lambda patch: "{}")
        shown.append(widget)
        page.goto("http://127.0.0.1/")
        page.set_content(PAGE % (widget._css, "#ffffff", "true"))
        state = {name: value for name, value in widget.get_state().items() if not name.startswith("_")}
        state.pop("layout", None)
        page.evaluate(MODEL, [widget._esm, json.loads(state_text(state))])
        page.wait_for_timeout(150)
        widget.close()
        return page

    try:
        table = ix.sample("trips")
        page = show(Explorer(table))
        page.get_by_role("button", name="Larger text").click()
        page.get_by_role("button", name="Collapse the timeline").click()
        page.locator(".ice-detail").get_by_role("button", name="Collapse the head").click()
        page = show(Explorer(table))
        assert page.get_by_role("group", name="Text size: 115 %").count() == 1
        assert page.locator(".ice-axis").is_hidden()
        assert page.locator(".ice-facts").first.is_hidden()
        chosen = Explorer(table, text_size=130, head_collapsed=False, collapsed=False)
        page = show(chosen)
        assert page.get_by_role("group", name="Text size: 130 %").count() == 1, "Python has the last word"
        assert page.locator(".ice-axis").is_visible()
        assert page.locator(".ice-facts").first.is_visible()
    finally:
        context.close()


def test_the_keys_are_listed(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1000) as bare:
        page = bare.page
        sheet = page.get_by_role("dialog", name="Keys")
        row = page.get_by_role("treeitem").first
        row.focus()
        bare.press("?")
        assert sheet.is_visible()
        names = page.locator(".ice-keys h3").all_inner_texts()
        assert names == [place for place, _ in widget.shortcuts]
        assert page.locator(".ice-keys kbd").all_inner_texts() == [
            name for _, keys in widget.shortcuts for some, _ in keys for name in some
        ]
        assert bare.violations() == []
        bare.press("Tab", "Tab", "Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
        bare.press("Escape")
        assert sheet.is_hidden()
        assert row.evaluate("(one) => one === document.activeElement"), "the focus is back"

        page.get_by_role("button", name="Keys").click()
        assert sheet.is_visible()
        page.mouse.click(4, 4)
        assert sheet.is_hidden()
        field = page.locator(".ice-detail .ice-grid-bar input.ice-input").first
        field.focus()
        page.keyboard.type("a?")
        assert field.input_value() == "a?"
        assert sheet.is_hidden(), "in a field it is text"


def test_f6_and_a_link_lead_past_the_head(browser: Any) -> None:
    """From the top of the widget to a node took thirty stops of Tab."""
    focused = "one => one.contains(document.activeElement)"
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1200) as bare:
        page = bare.page
        names = (".ice-timeline", ".ice-bar", ".ice-stage", ".ice-detail", ".ice-detail .ice-grid")
        parts = [page.locator(name) for name in names]

        def at() -> list[bool]:
            return [part.evaluate(focused) for part in parts]

        bare.press("Tab")
        link = page.get_by_role("button", name="Skip the timeline and the tabs")
        assert link.evaluate(focused)
        shown = link.bounding_box()
        assert shown["height"] > 20
        assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).innerText", [shown["x"] + 9, shown["y"] + 9])
        bare.press("Enter")
        assert page.evaluate("document.activeElement.ariaSelected === 'true' && document.activeElement.role")
        assert at() == [False, False, True, False, False]
        bare.press("ArrowUp", "ArrowDown")
        steps = (("F6", (3,)), ("F6", (3, 4)), ("F6", (0,)), ("F6", (1,)), ("F6", (2,)))
        for key, now in (*steps, ("Shift+F6", (1,)), ("Shift+F6", (0,)), ("Shift+F6", (3, 4)), ("Shift+F6", (3,))):
            bare.press(key)
            assert at() == [part in now for part in range(5)], key
        bare.press("F6")
        assert page.evaluate("document.activeElement.closest('tbody') && document.activeElement.tagName") == "TH"
        page.get_by_role("tab", name="Scan").click()
        bare.idle()
        bare.press("F6")
        assert page.locator(".ice-scan input").first.evaluate(focused)
        bare.press("F6", "F6")
        assert page.get_by_role("tab", name="Scan").evaluate(focused), "a hidden part is left out"
        page.evaluate("document.activeElement.blur()")
        assert page.get_by_role("button", name="Skip").evaluate("one => getComputedStyle(one).clipPath") != "none"


def test_back_and_forward(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1200) as bare:
        page = bare.page
        back, forward = (page.get_by_role("button", name=name, exact=True) for name in ("Back", "Forward"))
        assert [one.get_attribute("aria-disabled") for one in (back, forward)] == ["true", "true"]
        first = dict(widget.selection)
        row = page.locator("[role=treeitem][tabindex='0']")
        row.focus()
        bare.press("Home", "Enter")
        node = widget.selection["node"]
        assert node != first["node"]
        page.locator(".ice-part[data-part=scan]").click()
        bare.idle()
        back.click()
        bare.idle()
        assert (widget.tab, widget.selection["node"]) == ("tree", node)
        assert forward.get_attribute("title").startswith("Forward: Scan")
        assert page.locator(".ice-part[data-part=tree]").get_attribute("aria-selected") == "true"

        address = page.url
        row.focus()
        bare.press("Alt+ArrowLeft")
        assert widget.selection == first
        assert back.get_attribute("aria-disabled") == "true"
        bare.press("Alt+ArrowLeft")
        assert widget.selection == first and page.url == address, "the browser does not go back instead"
        line = page.get_by_role("slider", name="Snapshot")
        line.focus()
        bare.press("Alt+ArrowRight", "Alt+ArrowRight")
        assert (widget.tab, widget.selection["node"]) == ("scan", node)
        assert line.evaluate("(one) => one === document.activeElement")

        page.locator("h1").evaluate("(one) => { one.tabIndex = -1; one.focus(); }")
        page.evaluate("window.addEventListener('keydown', (e) => (window.iceHeld = e.defaultPrevented))")
        page.evaluate("""document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', { key: 'ArrowLeft', altKey: true, cancelable: true, bubbles: true }))""")
        assert page.evaluate("window.iceHeld") is False, "outside of the widget the keys are the browser's"
        assert widget.tab == "scan"


@pytest.mark.parametrize("width", [724, 600, 390])
def test_details_are_a_drawer_where_it_is_narrow(browser: Any, width: int) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=width) as bare:
        page = bare.page
        assert box(bare)["height"] < 1000, "it was 1,100 px"
        details = page.locator(".ice-detail")
        handle = page.locator(".ice-handle")
        assert details.is_hidden()
        assert (handle.get_attribute("aria-expanded"), handle.get_attribute("aria-controls")) == (
            "false", details.get_attribute("id"),
        )  # fmt: skip
        assert handle.inner_text().startswith("▴ Details: Snapshot")
        assert bare.violations() == []

        tree = page.locator("[role=treeitem][tabindex='0']")
        tree.focus()
        bare.press("Home", "Enter")
        assert widget.selection["node"] == page.locator("[role=treeitem]").first.get_attribute("data-id")
        assert details.is_visible()
        assert page.evaluate("document.activeElement.className") == "ice-head"
        panes, drawer = box(bare, ".ice-panes"), box(bare, ".ice-drawer")
        assert drawer["y"] > panes["y"] and drawer["y"] + drawer["height"] <= panes["y"] + panes["height"] + 1
        assert page.locator(".ice-crumbs").is_visible(), "what is above it is still reached"
        assert bare.violations() == []
        page.locator(".ice-facts .ice-why").first.click()
        bare.press("Escape")
        assert details.is_visible(), "the first Escape closed an explanation"
        bare.press("Escape")
        assert details.is_hidden()
        assert page.evaluate("document.activeElement.getAttribute('role')") == "treeitem"

        handle.focus()
        bare.press("Enter")
        assert details.is_visible() and handle.get_attribute("aria-expanded") == "true"
        tree.focus()
        bare.press("Escape")
        assert details.is_hidden(), "from the tree, too"
        line = page.get_by_role("slider", name="Snapshot")
        line.focus()
        bare.press("ArrowLeft")
        assert details.is_hidden(), "who goes through the history watches the tree"
        assert widget.detail["title"] in handle.inner_text()
        handle.click()
        page.set_viewport_size({"width": 1200, "height": 900})
        bare.idle()
        assert handle.is_hidden()
        first, second = box(bare, ".ice-map"), box(bare, ".ice-detail")
        assert first["x"] + first["width"] <= second["x"]
        page.keyboard.press("Escape")
        assert details.is_visible(), "beside the tree it stays"


def test_the_omnibox_by_keys(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1200) as bare:
        page = bare.page
        field = page.get_by_role("combobox", name="Find files, snapshots, rows, actions")

        def find(text: str) -> None:
            page.keyboard.press("Control+k")
            page.keyboard.type(text)
            page.wait_for_timeout(300)
            bare.idle()

        row = page.locator("[role=treeitem][tabindex='0']")
        row.focus()
        bare.press("/")
        assert field.evaluate("(one) => one === document.activeElement") and field.input_value() == ""
        assert page.locator(".ice-omni-item").count() > 5, "actions, to begin with"
        assert bare.violations() == []
        bare.press("Enter")
        assert widget.tab == "tree", "nothing was chosen"
        bare.press("Escape")
        assert (field.get_attribute("aria-expanded"), page.locator(".ice-omni-item").count()) == ("false", 0)
        bare.press("Escape")
        assert page.evaluate("document.activeElement.getAttribute('role')") == "treeitem", "back where it was"

        find("append")
        groups = page.get_by_role("group").locator("visible=true")
        names = groups.evaluate_all("(all) => all.map((one) => one.ariaLabel)")
        assert {"Snapshots", "Actions"} <= set(names), "appending is an action, and what snapshots did"
        bare.press("ArrowDown")
        chosen = page.locator("[role=option][aria-selected=true]")
        assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
        bare.press("ArrowUp")
        last = page.locator(".ice-omni-item").last
        assert last.get_attribute("aria-selected") == "true" and chosen.count() == 1

        find("promotion")
        bare.press("Enter")
        assert widget.selection["snapshot"] == widget.snapshots[6]["id"]
        assert page.evaluate("document.activeElement.getAttribute('role')") == "treeitem"

        find("trip_id = 95")
        bare.press("Enter")
        page.wait_for_function("window.ice.state.rows_answer.filter === 'trip_id = 95'")
        assert widget.tab == "rows"
        assert page.evaluate("document.activeElement.dataset.part") == "rows"

        find("larger")
        bare.press("Enter")
        assert widget.text_size == 115
        find("collapse timeline")
        bare.press("Enter")
        assert page.locator(".ice-axis").is_hidden()
        find("expand timeline")
        bare.press("Enter")
        assert page.locator(".ice-axis").is_visible()
        find("list of keys")
        assert page.locator(".ice-omni-item").count() == 0
        assert "Nothing found in 12 snapshots" in page.locator(".ice-omni-note").inner_text()
        find("keys")
        bare.press("Enter")
        assert page.get_by_role("dialog", name="Keys").is_visible()
        bare.press("Escape")
        find("save picture")
        bare.press("Enter")
        assert widget.tab == "tree"
        assert page.get_by_role("button", name="Save the picture").get_attribute("aria-expanded") == "true"
        find("compare parent")
        bare.press("Enter")
        assert widget.selection["against"] == widget.snapshots[5]["id"]
        find("back")
        bare.press("Enter")
        assert widget.selection["against"] == ""


def test_the_omnibox_goes_to_the_first_result_once_it_comes(browser: Any) -> None:
    """Enter right after typing; then the found node has the focus and the tree's only tab stop."""
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    manifests = [i for i in widget.nodes if i.startswith("manifest:")]
    with bare_page(browser, widget, width=1200) as bare:
        page = bare.page

        def find(text: str) -> str:
            page.keyboard.press("Control+k")
            page.keyboard.type(text)
            page.keyboard.press("Enter")  # before the field has sent anything
            page.wait_for_timeout(600)
            bare.idle()
            stops = page.locator("[role=treeitem][tabindex='0']").evaluate_all("(all) => all.map((e) => e.dataset.id)")
            assert stops == [page.evaluate("document.activeElement.dataset.id")]
            return str(stops[0])

        page.locator("[role=treeitem][tabindex='0']").focus()
        file = find("00000-11-13be98db")
        assert file == widget.selection["node"] and file.startswith("file:"), "in a manifest that was folded"
        bare.press("ArrowLeft")
        assert page.evaluate("document.activeElement.dataset.id") in manifests
        assert widget.selection["node"] == file
        assert find("m1.avro") == widget.selection["node"] in manifests, "and not the result of the text before"
        page.keyboard.press("Control+k")
        page.keyboard.type("no such thing")
        page.keyboard.press("Enter")
        page.wait_for_timeout(600)
        bare.idle()
        assert "Nothing found" in page.locator(".ice-omni-note").inner_text()
        page.keyboard.press("Backspace")
        page.wait_for_timeout(400)
        assert widget.selection["node"] in manifests, "another text is not taken without Enter"
        assert bare.violations() == []


def test_the_omnibox_by_mouse_and_in_a_filter(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=700, theme="dark") as bare:
        page = bare.page
        page.locator(".ice-omni-input").click()
        page.keyboard.type("m1.avro")
        page.wait_for_timeout(300)
        bare.idle()
        assert bare.violations() == []
        edge = box(bare)
        pop = box(bare, ".ice-omni-list")
        assert pop["x"] >= edge["x"] and pop["x"] + pop["width"] <= edge["x"] + edge["width"]
        page.locator(".ice-omni-item").first.click()
        bare.idle()
        assert widget.selection["node"].startswith("manifest:")
        assert page.locator(".ice-detail").is_visible(), "in a narrow widget the drawer opens"
        assert page.locator(".ice-omni-list").is_hidden()
        page.locator(".ice-part[data-part=scan]").click()
        bare.idle()
        page.locator(".ice-scan-input:visible").click()
        page.keyboard.type("a/b?")
        assert page.locator(".ice-scan-input:visible").input_value() == "a/b?", "in a field these are letters"


@pytest.mark.parametrize(("width", "height", "size"), [(1920, 1080, 100), (1920, 1080, 150), (960, 540, 100)])
def test_full_screen_fits(browser: Any, width: int, height: int, size: int) -> None:
    """On a projector, with larger text, and at 200 % zoom: the tree, all tabs, and rows of the table."""
    widget = Explorer(ix.sample("trips"), text_size=size)
    with bare_page(browser, widget, width=width, height=height) as bare:
        page = bare.page
        page.get_by_role("button", name="Full screen").click()
        page.wait_for_function("document.fullscreenElement !== null")
        page.wait_for_timeout(300)
        page.get_by_role("tab", name="Files", exact=True).last.click()
        bare.idle()
        page.locator(".ice-detail tbody tr").nth(5).wait_for(state="attached")
        inside = """(one) => {
          const { left, right, top, bottom } = one.getBoundingClientRect();
          return left >= -1 && top >= -1 && right <= innerWidth + 1 && bottom <= innerHeight + 1;
        }"""
        for tab in page.locator(".ice-part").all():
            assert tab.evaluate(inside), tab.inner_text()
        assert page.locator(".ice-map").evaluate(inside)
        assert page.locator(".ice-stage").bounding_box()["height"] > 150
        seen = page.locator(".ice-detail .ice-panel").evaluate(
            """(panel) => {
              const { bottom } = panel.getBoundingClientRect();
              const { bottom: top } = panel.querySelector("thead").getBoundingClientRect();
              const rows = [...panel.querySelectorAll("tbody tr")].map((row) => row.getBoundingClientRect());
              return rows.filter((row) => row.height && row.top >= top - 1 && row.bottom <= bottom + 1).length;
            }"""
        )
        assert seen >= 5
        assert page.locator(".ice-widget").evaluate("(one) => one.scrollWidth <= one.clientWidth")
        assert page.locator(".ice-explorer").evaluate("(one) => one.scrollHeight <= one.clientHeight + 1")
        assert bare.violations() == []
        if height == 540:
            assert page.locator(".ice-axis").is_hidden()
            page.get_by_role("button", name="Expand the timeline").click()
            bare.idle()
            assert page.locator(".ice-axis").is_visible(), "who wants it has it"


def test_an_explained_field_moves_no_other_to_another_column(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1200) as bare:
        page = bare.page
        places = """() => {
          const terms = [...document.querySelectorAll(".ice-head > .ice-facts > div > dt")];
          const lines = [...new Set(terms.map((one) => one.getBoundingClientRect().top))];
          return terms.map((one) => {
            const { left, top } = one.getBoundingClientRect();
            return [one.textContent, Math.round(left), lines.indexOf(top)];
          });
        }"""
        before = page.evaluate(places)
        assert len({left for _, left, _ in before}) > 1 and len({line for *_, line in before}) > 1
        buttons = page.locator(".ice-head > .ice-facts .ice-why")
        for i in range(4):
            buttons.nth(i).click()
            bare.idle()
            assert page.evaluate(places) == before, "each field is in the line and column where it was"
            assert page.locator(".ice-head .ice-help").count() == i + 1
        help_box, button = page.locator(".ice-head .ice-help").first.bounding_box(), buttons.first.bounding_box()
        assert help_box["y"] > button["y"] and help_box["width"] > 400
        assert bare.violations() == []
        buttons.nth(3).focus()
        bare.press("Escape")
        assert page.locator(".ice-head .ice-help").count() == 3


def test_the_details_are_hidden_by_a_key_and_stay_so_in_other_tabs(browser: Any) -> None:
    """And what a message about a download, a busy kernel and the overview of the tree must not cover or move."""
    with bare_page(browser, Explorer(ix.sample("trips")), width=1200) as bare:
        page = bare.page
        details, stage = page.locator(".ice-detail"), box(bare, ".ice-stage")["width"]
        page.get_by_role("tab", name="Tree").focus()
        bare.press(".")
        assert bare.widget.room()["details_hidden"] is True
        assert details.is_hidden()
        assert box(bare, ".ice-stage")["width"] > 1.5 * stage
        page.get_by_role("tab", name="Files").click()
        bare.idle()
        assert page.get_by_role("button", name="Details").count() == 0, "they are those of the tree"
        page.get_by_role("tab", name="Tree").click()
        bare.idle()
        assert details.is_hidden()
        page.get_by_role("button", name="Save the picture").click()
        with page.expect_download() as saved:
            page.get_by_role("button", name="SVG: Tree").click()
        assert saved.value.suggested_filename == "trips-tree.svg"
        page.get_by_text("Saved trips-tree.svg").wait_for()
        page.get_by_role("button", name="Details").click()
        bare.idle()
        assert bare.widget.room()["details_hidden"] is False
        assert details.is_visible()
        before = box(bare, ".ice-timeline")
        notice = "one => { one.hidden = false; one.textContent = 'busy'; one.classList.add('ice-silent'); }"
        page.locator(".ice-error").first.evaluate(notice)
        assert box(bare, ".ice-timeline") == before, "nothing moves under the pointer"
