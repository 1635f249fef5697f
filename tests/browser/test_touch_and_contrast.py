"""By finger, and in the system's own colours (a high contrast theme of Windows: CSS ``forced-colors``)."""

from __future__ import annotations

from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.browser.bare import BarePage, bare_page
from tests.browser.test_accessibility import explorer, timeline, vectors
from tests.browser.test_map import on_card, where

pytestmark = pytest.mark.browser


class Fingers:
    """Touches of a page, as the browser gets them from a screen."""

    def __init__(self, bare: BarePage) -> None:
        self._session = bare.page.context.new_cdp_session(bare.page)
        self._session.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})

    def _send(self, kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def move(self, *paths: tuple[tuple[float, float], tuple[float, float]], steps: int = 8) -> None:
        """Each finger from a place to another, all at once."""
        self._send("touchStart", *(a for a, _ in paths))
        for i in range(1, steps + 1):
            share = i / steps
            self._send("touchMove", *((a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share) for a, b in paths))
        self._send("touchEnd")

    def tap(self, x: float, y: float) -> None:
        self._send("touchStart", (x, y))
        self._send("touchEnd")


def test_a_trackpad_zooms_in_safari(browser: Any) -> None:
    """It has events of its own for that, which Chromium has not; what is not used of them zooms the page."""
    with bare_page(browser, Explorer(ix.sample("trips"))) as bare:
        used = bare.page.evaluate(
            """(names) => names.map((name) => {
              const canvas = document.querySelector(name);
              const { left, top } = canvas.getBoundingClientRect();
              return ["gesturestart", "gesturechange", "gesturechange"].map((type, i) => {
                const at = { scale: 1 + i / 2, clientX: left + 90, clientY: top + 50 };
                return !canvas.dispatchEvent(Object.assign(new Event(type, { cancelable: true }), at));
              });
            })""",
            [".ice-canvas", ".ice-line-canvas"],
        )
        assert used == [[True] * 3] * 2
        root = next(i for i in bare.widget.nodes if i.startswith("root:"))
        scale = "(id) => document.querySelector('.ice-map').where(id).scale"
        before = bare.page.evaluate(scale, root)
        wider = "Object.assign(new Event('gesturechange'), { scale: 2.2, clientX: 300, clientY: 400 })"
        bare.page.evaluate(f"document.querySelector('.ice-canvas').dispatchEvent({wider})")
        assert bare.page.evaluate(scale, root) == pytest.approx(before * 1.1), "from 2 to 2.2"


def test_two_fingers_zoom_and_one_moves(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1000) as bare:
        fingers = Fingers(bare)
        root = next(i for i in widget.nodes if i.startswith("root:"))
        x, y = on_card(bare, root)
        fingers.tap(x, y)
        bare.page.wait_for_function("window.ice.state.selection.node?.startsWith('root:')")
        assert widget.selection["node"] == root
        # until the tree is meant, one finger scrolls the page, and the tree is not moved by that
        bare.page.evaluate("document.activeElement.blur(); document.body.style.height = '3000px'")
        before, top = where(bare, root), bare.page.evaluate("scrollY")
        fingers.move(((x, y), (x, y - 120)), steps=40)
        bare.page.wait_for_function("(top) => scrollY > top + 50", arg=top)
        after = where(bare, root)
        assert (after["x"], after["y"], after["scale"]) == (before["x"], before["y"], before["scale"])
        bare.page.evaluate("(top) => scrollTo(0, top)", top)
        bare.page.locator(".ice-stage [tabindex='0']").first.focus()

        before = where(bare, root)
        x, y = on_card(bare, root)
        fingers.move(((x - 30, y), (x - 90, y)), ((x + 30, y), (x + 90, y)))
        after = where(bare, root)
        assert after["scale"] > 1.5 * before["scale"]
        now_x, now_y = on_card(bare, root)
        assert abs(now_y - y) < 40, "what is between the fingers stays there"

        fingers.move(((now_x - 120, now_y), (now_x - 30, now_y)), ((now_x + 120, now_y), (now_x + 30, now_y)))
        assert where(bare, root)["scale"] < after["scale"] / 1.5

        before = where(bare, root)
        fingers.move(((500, 400), (440, 430)))
        after = where(bare, root)
        assert after["scale"] == before["scale"]
        assert (after["x"], after["y"]) != (before["x"], before["y"])
        assert widget.selection["node"] == root, "what moves selects nothing"

        line = bare.page.locator(".ice-axis").bounding_box()
        left, y = line["x"] + line["width"] / 3, line["y"] + 49
        fingers.move(((left, y), (left - 60, y)), ((left + 60, y), (left + 120, y)))
        fingers.tap(line["x"] + 16, y)
        bare.idle()
        assert widget.selection["snapshot"] != widget.snapshots[0]["id"], "they have zoomed"
        fingers.move(((left - 60, y), (left, y)), ((left + 120, y), (left + 60, y)))
        bare.idle()
        assert widget.selection["node"] == root, "nor do two fingers in the history, nearer and back"
        fingers.tap(line["x"] + 16, y)
        bare.idle()
        assert widget.selection["snapshot"] == widget.snapshots[0]["id"], "one does"


#: Colours of the canvases that are seen, and of the icons, as red, green and blue on black, each with how often.
_COLOURS = """() => {
  const found = new Map();
  const add = (rgb) => found.set(rgb.join(), (found.get(rgb.join()) ?? 0) + 1);
  for (const canvas of [...document.querySelectorAll("canvas")].filter((one) => one.offsetParent)) {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < data.length; i += 4) add([0, 1, 2].map((j) => Math.round((data[i + j] * data[i + 3]) / 255)));
  }
  for (const path of document.querySelectorAll(".ice-icon path")) {
    const { fill, stroke } = getComputedStyle(path);
    for (const one of [fill, stroke]) if (one !== "none") add(one.match(/\\d+/g).slice(0, 3).map(Number));
  }
  return [...found].map(([key, times]) => [key.split(",").map(Number), times]);
}"""


@pytest.mark.parametrize("make", [explorer("tree"), timeline, vectors, explorer("scan")])
def test_the_systems_colours(browser: Any, make: Any) -> None:
    with bare_page(browser, make(), width=1000) as bare:
        own = bare.page.evaluate(_COLOURS)
        assert [c for c, _ in own if is_coloured(c)], "kinds have colours, where nothing is forced"
        bare.page.emulate_media(forced_colors="active", color_scheme="dark")
        bare.page.wait_for_timeout(500)  # a theme is read again, and drawn
        bare.idle()
        forced = bare.page.evaluate(_COLOURS)
        assert len(forced) > 1, "there is a picture"
        assert [(c, n) for c, n in forced if is_coloured(c)] == [], "of kinds the shape is left"
        bright = sum(times for colour, times in forced if min(colour) > 200)
        assert bright < sum(times for _, times in forced) / 2, "on the system's paper, which is black here"


def is_coloured(colour: list[int]) -> bool:
    """Whether it is neither grey nor of the system's highlight, which is cyan here, on its way to black or white."""
    red, green, blue = colour
    return max(colour) - min(colour) > 30 and not (red <= green <= blue and blue - green < 0.35 * (blue - red))
