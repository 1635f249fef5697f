"""The timeline by mouse and by keyboard alone: travel, compare, play, zoom; one, none and thousands of snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.metadata import Ref
from iceexplore.widgets import Timeline
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
    bare.page.mouse.click(*place(bare, 0))
    bare.idle()
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
    ids = range(1, 5_001)
    many = [snapshot(i, i - 1 if i > 1 else None, ms=i * 1000, added_records=str(i)) for i in ids]
    refs = dict([branch("main", 5000), branch("side", 700)])
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
    bare.page.mouse.click(*place(bare, 2500))
    bare.idle()
    assert abs(at(widget) - 2500) < 15


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
