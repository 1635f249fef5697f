"""The timeline by mouse and by keyboard alone: travel, compare, play, zoom; one, none and thousands of snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.metadata import Ref
from iceexplore.widgets import Explorer, Timeline
from tests.browser.bare import BarePage, bare_page
from tests.helpers.hostile import HOSTILE
from tests.widgets.test_timeline_panel import branch, snapshot, with_snapshots

pytestmark = pytest.mark.browser

Show = Callable[..., BarePage]


@pytest.fixture
def show(browser: Any) -> Iterator[Show]:
    with ExitStack() as open_pages:
        yield lambda widget, **options: open_pages.enter_context(bare_page(browser, widget, **options))


def at(widget: Timeline) -> int:
    return [s["id"] for s in widget.snapshots].index(widget.selection["snapshot"])


def place(bare: BarePage, number: int) -> tuple[float, float]:
    """Return the position of a snapshot of main in the page, one step each, as drawn."""
    box = bare.page.locator(".ice-axis").bounding_box()
    room = box["width"] - 16 - 30
    return box["x"] + 16 + room * number / (len(bare.widget.snapshots) - 1), box["y"] + 18 + 31


def test_travel_by_keyboard(show: Show) -> None:
    widget = Timeline(ix.sample("trips"))
    bare = show(widget)
    line = bare.page.get_by_role("slider", name="Snapshot")
    assert line.get_attribute("aria-valuetext").startswith("12 of 12: ")
    line.focus()
    keys = {"Home": 0, "ArrowRight": 1, "ArrowUp": 2, "ArrowLeft": 1, "PageUp": 11, "PageDown": 1, "End": 11}
    for key, expected in keys.items():
        bare.press(key)
        assert at(widget) == expected
    bare.press("ArrowDown")
    assert "11 of 12" in line.get_attribute("aria-valuetext")
    assert "replace" in line.get_attribute("aria-valuetext")
    bare.page.set_viewport_size({"width": 390, "height": 800})
    heights = set()
    for key in ("ArrowLeft", "ArrowLeft", "End"):
        bare.press(key)
        words = bare.page.locator(".ice-words-line")
        assert words.evaluate("(one) => one.scrollWidth - one.clientWidth") == 0, "no word is cut on a phone"
        heights.add(bare.page.locator(".ice-timeline").bounding_box()["height"])
    assert len(heights) == 1


def test_two_are_compared_by_keyboard_and_let_go(show: Show) -> None:
    widget = Timeline(ix.sample("trips"))
    bare = show(widget)
    bare.page.get_by_role("slider", name="Snapshot").focus()
    bare.press("Shift+ArrowLeft")
    bare.press("Shift+Home")
    assert widget.selection["against"] == widget.snapshots[0]["id"]
    assert at(widget) == 11
    comparison = bare.page.locator(".ice-compared")
    assert comparison.inner_text().startswith("1 → ")
    rows = {what: more for what, more, _ in widget.comparison["rows"]}
    assert f"+{rows['rows']:,}" in comparison.inner_text()
    assert "compared with 1" in bare.page.locator(".ice-axis").get_attribute("aria-valuetext")
    bare.press("Escape")
    assert widget.selection["against"] == ""
    assert comparison.is_hidden()
    assert bare.page.locator(".ice-line-legend").is_visible()


def test_mouse(show: Show) -> None:
    widget = Timeline(ix.sample("trips"))
    bare = show(widget)
    bare.page.mouse.move(*place(bare, 4))
    assert "5/12" in bare.page.locator(".ice-when").inner_text()
    assert at(widget) == 11, "to look is not to travel"
    bare.page.mouse.click(*place(bare, 4))
    bare.idle()
    assert at(widget) == 4
    bare.page.keyboard.down("Shift")
    bare.page.mouse.click(*place(bare, 7))
    bare.page.keyboard.up("Shift")
    bare.idle()
    assert (at(widget), widget.selection["against"]) == (4, widget.snapshots[7]["id"])
    comparison = bare.page.locator(".ice-compared").inner_text()
    assert comparison.startswith("5 → 8 of 12:")
    bare.page.get_by_role("button", name="Swap: show the other snapshot").click()
    bare.idle()
    assert (at(widget), widget.selection["against"]) == (7, widget.snapshots[4]["id"])
    assert bare.page.locator(".ice-compared").inner_text() == comparison, "from the older to the newer one"
    bare.page.get_by_role("button", name="Swap: show the other snapshot").click()
    bare.idle()
    bare.page.get_by_role("button", name="End the comparison").click()
    bare.idle()
    assert widget.selection["against"] == ""
    bare.page.get_by_role("button", name="Compare").click()
    prompt = bare.page.locator(".ice-line-prompt")
    assert prompt.inner_text().startswith("Pick the other snapshot")
    assert bare.page.locator(".ice-line-legend").is_hidden()
    bare.page.mouse.click(*place(bare, 0))
    bare.idle()
    assert prompt.is_hidden()
    assert widget.selection["against"] == widget.snapshots[0]["id"]
    bare.page.get_by_role("button", name="Later snapshot").click()
    bare.idle()
    assert at(widget) == 5


def test_play_goes_to_the_end_and_stops(show: Show) -> None:
    widget = Timeline(ix.sample("trips"))
    bare = show(widget)
    bare.page.emulate_media(reduced_motion="reduce")
    bare.page.get_by_role("combobox", name="Speed").select_option("300")
    bare.page.locator(".ice-axis").focus()
    bare.page.keyboard.press(" ")
    bare.page.get_by_role("button", name="Pause").wait_for()
    bare.page.wait_for_function("(id) => window.ice.state.selection.snapshot !== id", arg=widget.snapshots[-1]["id"])
    bare.idle()
    seen = at(widget)
    assert 0 <= seen < 6, "from the end it begins anew"
    bare.page.wait_for_selector("[aria-label='Play through the history']", timeout=20_000)
    bare.idle()
    assert at(widget) == 11
    bare.press("Home", " ")
    bare.press(" ")
    assert at(widget) < 11
    assert bare.page.get_by_role("button", name="Play").is_visible()


def test_scale_and_height_are_traits(show: Show) -> None:
    widget = Timeline(ix.sample("trips"))
    bare = show(widget)
    bare.page.get_by_role("combobox", name="Spacing").select_option("time")
    bare.page.get_by_role("combobox", name="Height").select_option("bytes")
    bare.idle()
    assert (widget.scale, widget.measure) == ("time", "bytes")
    assert "bytes added" in bare.page.locator(".ice-line-legend").inner_text()
    widget.scale = "steps"
    bare.push()
    assert bare.page.get_by_role("combobox", name="Spacing").input_value() == "steps"


def test_thousands(show: Show) -> None:
    ids = range(1, 2_001)
    many = [snapshot(i, i - 1 if i > 1 else None, ms=i * 1000, added_records=str(i)) for i in ids]
    refs = dict([branch("main", 2_000), branch("side", 700)])
    widget = Timeline(with_snapshots(ix.sample("trips").state, many, refs, 5000))
    bare = show(widget)
    bare.page.evaluate(
        """() => {
          const wheel = { deltaY: -40, ctrlKey: true, cancelable: true };
          const canvas = document.querySelector(".ice-line-canvas");
          for (let i = 0; i < 20; i++) canvas.dispatchEvent(new WheelEvent("wheel", wheel));
        }"""
    )
    bare.page.locator(".ice-axis").focus()
    bare.press("Home")
    assert at(widget) == 0
    bare.press("PageUp")
    assert at(widget) == 10
    # with Shift the wheel goes sideways; of Firefox's events that alone tells so
    aside = "new WheelEvent('wheel', { deltaY: 9, shiftKey: true, cancelable: true })"
    assert not bare.page.evaluate(f"document.querySelector('.ice-line-canvas').dispatchEvent({aside})")
    bare.page.get_by_role("button", name="Fit").click()
    bare.page.mouse.move(*place(bare, 1_000))
    words = bare.page.locator(".ice-when").inner_text()
    assert "click to zoom in" in words and "commits" in words and "append" in words, "too many to draw each"
    for _ in range(6):
        bare.page.mouse.click(*place(bare, 1_000))
        bare.idle()
        if at(widget) != 10:
            break
    assert abs(at(widget) - 1_000) < 30


@pytest.mark.parametrize("number", [0, 1])
def test_none_and_one(show: Show, number: int) -> None:
    state = ix.sample("trips").state
    refs = dict([branch("main", 1)]) if number else {}
    widget = Timeline(with_snapshots(state, [snapshot(1)][:number], refs, 1 if number else None))
    bare = show(widget)
    if not number:
        assert "No snapshots yet" in bare.page.locator(".ice-timeline").inner_text()
        assert bare.page.get_by_role("slider").count() == 0
        return
    assert bare.page.locator(".ice-timeline").bounding_box()["height"] < 60, "a single snapshot takes one line"
    assert "1/1" in bare.page.locator(".ice-when").inner_text()
    bare.page.get_by_role("button", name="Expand the timeline").click()
    bare.page.get_by_role("slider", name="Snapshot").focus()
    bare.press("ArrowRight", "Home", " ", "Shift+ArrowLeft", "Escape", "+", "0")
    assert at(widget) == 0
    assert widget.selection["against"] == ""


def test_equal_and_wild_times_and_names_that_would_be_code(show: Show) -> None:
    damaged = [
        snapshot(1, 2, ms=-(2**63), operation=HOSTILE["html"]),
        snapshot(2, 1, ms=5),
        snapshot(3, 2, ms=5, operation="constructor"),
        snapshot(4, 4, ms=2**63 - 1, added_records="9" * 18),
    ]
    refs = {name: Ref(name, "branch", 1 + i % 4) for i, name in enumerate(HOSTILE.values())}
    widget = Timeline(with_snapshots(ix.sample("trips").state, damaged, refs, 2))
    bare = show(widget)
    line = bare.page.get_by_role("slider", name="Snapshot")
    line.focus()
    for scale in ("time", "steps"):
        bare.page.get_by_role("combobox", name="Spacing").select_option(scale)
        line.focus()
        bare.press("Home", "ArrowRight", "ArrowRight", "Shift+End", "+", "-", "Escape", "End")
        assert at(widget) == 3
    assert bare.page.locator(".ice-widget img, .ice-widget script, .ice-widget b:has(*)").count() == 0
    box = bare.page.locator(".ice-widget").bounding_box()
    assert box["height"] < 260, "a name of 100,000 letters takes no room"


def test_narrow(show: Show) -> None:
    bare = show(Timeline(ix.sample("trips")), width=420)
    assert bare.page.locator(".ice-widget").evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert bare.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_focus_stays_when_a_comparison_ends_elsewhere(show: Show) -> None:
    widget = Timeline(ix.sample("trips"))
    widget.select(against=widget.snapshots[0]["id"])
    bare = show(widget)
    bare.page.get_by_role("button", name="End the comparison").focus()
    widget.select(against="")
    bare.push()
    assert bare.page.evaluate("document.activeElement.getAttribute('role')") == "slider"
    signs = bare.page.locator(".ice-line-legend b")
    assert signs.all_inner_texts() == ["●", "■", "▼", "◆"]
    assert len(set(signs.evaluate_all("(all) => all.map((one) => getComputedStyle(one).color)"))) == 4


def _year(count: int) -> Any:
    """The state of a table with a snapshot a day: three appends, then a delete; two engines."""
    day = 86_400_000
    many = [
        snapshot(
            i,
            i - 1 if i > 1 else None,
            ms=1_767_225_600_000 + (i - 1) * day,
            operation="append" if i % 4 else "delete",
            added_records="1" if i % 4 else "0",
            total_records=str(i),
            engine_name="spark" if i % 2 else "trino",
        )
        for i in range(1, count + 1)
    ]
    return with_snapshots(ix.sample("trips").state, many, dict([branch("main", count), branch("audit", 7)]), count)


def test_jump_and_filter(show: Show) -> None:
    widget = Timeline(_year(100))
    bare = show(widget)
    jump = bare.page.get_by_role("textbox", name="Go to a snapshot")
    for text, expected in {"audit": 6, "2026-02-01": 31, "17": 16, "first": 0, "latest": 99}.items():
        jump.fill(text)
        jump.press("Enter")
        bare.idle()
        assert at(widget) == expected, text
    jump.fill("<b>nowhere</b>")
    jump.press("Enter")
    assert "No snapshot found for “<b>nowhere</b>”" in bare.page.locator(".ice-line-found").inner_text()
    assert jump.get_attribute("aria-invalid") == "true"
    bare.page.get_by_role("combobox", name="Operation").select_option("delete")
    assert bare.page.locator(".ice-line-found").inner_text() == "25 of 100"
    bare.page.get_by_role("slider", name="Snapshot").focus()
    bare.press("ArrowLeft")
    assert at(widget) == 95, "only commits that match"
    bare.press("Home")
    assert at(widget) == 3
    bare.page.get_by_role("textbox", name="Filter by text").fill("SPARK")
    assert bare.page.locator(".ice-line-found").inner_text() == "0 of 100"
    assert bare.page.get_by_role("button", name="Later snapshot").get_attribute("aria-disabled") == "true"
    bare.page.get_by_role("combobox", name="Operation").select_option("*")
    assert bare.page.locator(".ice-line-found").inner_text() == "50 of 100"
    assert bare.violations() == []


def test_overview_and_collapsing(show: Show) -> None:
    widget = Timeline(_year(100))
    bare = show(widget)
    box = bare.page.locator(".ice-line-overview").bounding_box()
    frame = bare.page.locator(".ice-line-frame")
    assert frame.is_hidden()
    y = box["y"] + box["height"] / 2
    bare.page.mouse.move(box["x"] + box["width"] * 0.2, y)
    bare.page.mouse.down()
    bare.page.mouse.move(box["x"] + box["width"] * 0.3, y, steps=4)
    bare.page.mouse.up()
    bare.idle()
    seen = frame.bounding_box()
    assert abs(seen["width"] / box["width"] - 0.1) < 0.02, "what was brushed is in view"
    bare.page.mouse.move(seen["x"] + seen["width"] / 2, y)
    bare.page.mouse.down()
    bare.page.mouse.move(seen["x"] + seen["width"] / 2 + box["width"] * 0.4, y, steps=4)
    bare.page.mouse.up()
    bare.idle()
    assert abs((frame.bounding_box()["x"] - seen["x"]) / box["width"] - 0.4) < 0.02
    height = bare.page.locator(".ice-timeline").bounding_box()["height"]
    bare.page.get_by_role("button", name="Collapse the timeline").click()
    assert bare.page.locator(".ice-timeline").bounding_box()["height"] < 60 < height
    bare.page.get_by_role("button", name="Earlier snapshot").click()
    bare.idle()
    assert at(widget) == 98, "it still travels"
    widget.select(against=widget.snapshots[0]["id"])
    bare.push()
    assert bare.page.locator(".ice-compared").is_visible(), "a comparison is shown all the same"
    bare.page.get_by_role("button", name="Expand the timeline").click()
    assert bare.page.locator(".ice-timeline").bounding_box()["height"] == height


def test_broken_snapshots_and_simulated_commits(show: Show) -> None:
    widget = Explorer(ix.sample("trips"))
    widget.apply("append")
    bare = show(widget)
    bare.page.get_by_role("button", name="1 simulated commit").click()
    bare.idle()
    assert widget.tab == "commit"
    assert "▲" not in bare.page.locator(".ice-when").inner_text()
    widget.broken = {widget.selection["snapshot"]: "2 errors"}
    bare.push()
    assert "▲ 2 errors" in bare.page.locator(".ice-when").inner_text()
    assert bare.page.get_by_role("slider", name="Snapshot").get_attribute("aria-valuetext").endswith("2 errors")


def test_the_legend_has_the_totals_of_the_described_snapshot(show: Show) -> None:
    table = ix.sample("trips")
    widget = Timeline(table)
    bare = show(widget)
    legend = bare.page.locator(".ice-line-legend")
    first, *_, last = (int((one.summary or {})["total-records"]) for one in table.snapshots)
    words = "line: rows; dashed: live"
    assert f"{words} ({last:,}, {table.count():,})" in legend.inner_text()
    bare.page.get_by_role("slider", name="Snapshot").focus()
    bare.press("Home")
    assert f"({first:,} rows)" in legend.inner_text()
    bare.page.get_by_role("combobox", name="Bar height").select_option("files")
    bare.idle()
    assert "(3 data files, 0 delete files)" in legend.inner_text()
