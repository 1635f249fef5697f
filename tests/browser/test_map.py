"""The map of a forest, and the explorer's frame, in a page of its own: by mouse, by keys, in every size and theme."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.browser.bare import BarePage, bare_page
from tests.browser.harness import ROOT

pytestmark = pytest.mark.browser

_WHERE = """(id) => {
  const map = document.querySelector(".ice-map");
  const at = map.where(id);
  const { left, top, width, height } = map.querySelector(".ice-canvas").getBoundingClientRect();
  return at && { ...at, left, top, right: left + width, bottom: top + height };
}"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """1,200 files in four manifests, by day and region."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        generate = importlib.import_module("generate")
        shape = generate.Shape(files=1200, deletes=0, manifests=4, partitioned=True)
        yield generate.generate(shape, tmp_path_factory.mktemp("large"))
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def where(bare: BarePage, node_id: str) -> dict[str, float]:
    found: dict[str, float] = bare.page.evaluate(_WHERE, node_id)
    assert found is not None, node_id
    return found


def on_card(bare: BarePage, node_id: str, *, twisty: bool = False) -> tuple[float, float]:
    """Where on the page a card is, or the sign that unfolds it."""
    at = where(bare, node_id)
    across = at["width"] if twisty else 24 * at["scale"]
    return at["left"] + at["x"] + across, at["top"] + at["y"] + at["height"] / 2


def is_seen(bare: BarePage, node_id: str) -> bool:
    at = where(bare, node_id)
    x, y = at["x"] + at["left"], at["y"] + at["top"]
    return x >= at["left"] and x + at["width"] <= at["right"] and y >= at["top"] and y + at["height"] <= at["bottom"]


def manifests(widget: Explorer) -> list[str]:
    return [i for i in widget.nodes if i.startswith("manifest:")]


def focused(bare: BarePage) -> str:
    return str(bare.page.evaluate("document.activeElement.dataset.id ?? document.activeElement.className"))


def by_name(bare: BarePage, name: str) -> Any:
    return bare.page.locator(".ice-explorer").get_by_role("button", name=name, exact=True)


def test_by_mouse(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1300) as bare:
        page = bare.page
        root = next(i for i in widget.nodes if i.startswith("root:"))
        first = manifests(widget)[0]

        # a card selects, its sign unfolds and folds, two clicks do too, and what is unfolded stays where it is
        page.mouse.click(*on_card(bare, root))
        bare.idle()
        assert widget.selection["node"] == root
        assert focused(bare) == root, "the rows have the focus: the keyboard goes on from here"
        before = where(bare, first)
        page.mouse.click(*on_card(bare, first, twisty=True))
        bare.idle()
        assert widget.nodes[first]["children"]
        after = where(bare, first)
        assert (after["x"], after["y"]) == pytest.approx((before["x"], before["y"]), abs=1)
        page.mouse.click(*on_card(bare, first, twisty=True))
        bare.idle()
        assert first not in widget.expanded
        page.mouse.dblclick(*on_card(bare, first))
        bare.idle()
        assert first in widget.expanded
        assert widget.selection["node"] == first

        # dragging pans; the wheel is the picture's once the tree has the focus, with Ctrl it zooms at the pointer
        at = where(bare, root)
        page.mouse.move(at["left"] + 230, at["bottom"] - 30)  # beside the overview, which may be in any corner
        page.mouse.down()
        page.mouse.move(at["left"] + 310, at["bottom"] - 70, steps=4)
        page.mouse.up()
        bare.idle()
        moved = where(bare, root)
        assert (moved["x"] - at["x"], moved["y"] - at["y"]) == pytest.approx((80, -40), abs=1)
        page.mouse.wheel(0, 50)
        bare.idle()
        assert where(bare, root)["y"] < moved["y"]
        page.keyboard.down("Control")
        page.mouse.wheel(0, -200)
        page.keyboard.up("Control")
        bare.idle()
        assert where(bare, root)["scale"] > moved["scale"]
        by_name(bare, "Fit the tree").click()
        bare.idle()
        assert all(is_seen(bare, i) for i in ("table", root, first))
        scale = where(bare, root)["scale"]
        by_name(bare, "Zoom into the tree").click()
        bare.idle()
        assert where(bare, root)["scale"] == pytest.approx(scale * 1.3)
        page.evaluate("document.activeElement.blur()")
        place = where(bare, root)
        page.mouse.move(*on_card(bare, root))
        page.mouse.wheel(0, 50)
        bare.idle()
        assert where(bare, root)["y"] == place["y"], "without focus the wheel is the page's"

        # a pointer that rests on a card gets a tooltip
        page.locator(".ice-tip").wait_for(state="visible")
        assert widget.nodes[root]["tooltip"].splitlines()[0] in page.locator(".ice-tip").inner_text()

        # the way to what is selected
        crumbs = page.locator(".ice-crumbs button")
        assert crumbs.first.inner_text() == "trips"
        assert page.locator(".ice-crumbs [aria-current]").inner_text() == widget.nodes[first]["label"]
        crumbs.first.click()
        bare.idle()
        assert widget.selection["node"] == "table"

        # the overview: a point of it is in the middle of the picture then
        for _ in range(6):
            by_name(bare, "Zoom into the tree").click()
        bare.idle()
        mini = page.locator(".ice-mini").bounding_box()
        page.mouse.click(mini["x"] + 6, mini["y"] + mini["height"] / 2)
        bare.idle()
        left = where(bare, "table")["x"]
        page.mouse.click(mini["x"] + mini["width"] - 6, mini["y"] + mini["height"] / 2)
        bare.idle()
        assert where(bare, "table")["x"] < left

        # the same as a list
        assert by_name(bare, "Zoom into the tree").is_visible()
        by_name(bare, "Show as a list").click()
        assert not by_name(bare, "Zoom into the tree").is_visible()
        page.locator(f".ice-row[data-id='{first}'] .ice-twisty").click()
        bare.idle()
        assert first not in widget.expanded
        page.locator(f".ice-row[data-id='{first}']").click()
        bare.idle()
        assert widget.selection["node"] == first


def test_by_keys(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=1300) as bare:
        page = bare.page
        tree = page.locator(".ice-tree")
        assert tree.locator("[tabindex='0']").count() == 1
        tree.locator("[tabindex='0']").focus()
        bare.press("Home")
        assert focused(bare) == "table"
        bare.press("ArrowDown")
        assert focused(bare) == "metadata"
        bare.press("ArrowLeft")
        assert "metadata" not in widget.expanded
        bare.press("ArrowLeft")
        assert focused(bare) == "table"
        bare.press("ArrowDown", "ArrowRight")
        assert "metadata" in widget.expanded
        bare.press("ArrowRight")
        assert focused(bare).startswith("ref:")
        bare.press("End")
        assert focused(bare) == page.locator(".ice-row").last.get_attribute("data-id")
        assert is_seen(bare, focused(bare)), "the picture follows"
        bare.press("Home", "m")
        assert focused(bare).startswith("ref:"), "a letter goes to what begins with it"
        bare.press("Enter")
        assert widget.selection["node"] == focused(bare)

        # the picture by keys: moved, nearer, farther, whole
        at = where(bare, "table")
        bare.press("Shift+ArrowUp")
        assert where(bare, "table")["y"] == pytest.approx(at["y"] + 60, abs=61)
        bare.press("+")
        assert where(bare, "table")["scale"] > at["scale"]
        bare.press("-")
        assert where(bare, "table")["scale"] == pytest.approx(at["scale"])
        bare.press("+", "0")
        assert is_seen(bare, "table")

        # search: what is found is marked; buttons go through it
        bare.press("/")
        assert "ice-omni-input" in focused(bare)
        page.keyboard.type("m5.avro")
        count = page.locator(".ice-count-found")
        count.filter(has_text="1 found").wait_for()
        bare.idle()
        assert count.inner_text() == "1 found"
        bare.press("Enter")
        assert widget.selection["node"].startswith("manifest:")
        assert page.evaluate("document.activeElement.getAttribute('role')") == "treeitem"
        assert page.locator(".ice-hit").count() == 1
        bare.press("Control+k")
        page.keyboard.type("parquet")
        page.wait_for_function("window.ice.state.found.hits?.length > 1")
        bare.idle()
        total = len(widget.found["hits"])
        assert count.inner_text() == f"{total} found"
        bare.press("Escape")
        hits = []
        by_name(bare, "Next match").focus()
        for _ in range(3):
            bare.press("Enter")
            hits.append(widget.selection["node"])
            assert is_seen(bare, hits[-1]), "the way to it is unfolded, and it is in view"
        assert len(set(hits)) == 3
        by_name(bare, "Previous match").focus()
        bare.press("Enter")
        assert widget.selection["node"] == hits[1]
        assert count.inner_text() == f"2 of {total}"
        by_name(bare, "End the search").click()
        bare.idle()
        assert (widget.search["text"], count.inner_text()) == ("", "")

        # tabs of the explorer, and the bar between tree and details
        page.locator(".ice-part[aria-selected=true]").focus()
        bare.press("ArrowRight")
        assert widget.tab == "files"
        bare.press("End")
        assert widget.tab == "deletes"
        bare.press("Home")
        assert page.locator("[role=tabpanel]:visible .ice-map").count() == 1
        bar = page.locator(".ice-splitter")
        bar.focus()
        width = page.locator(".ice-panes > .ice-map").bounding_box()["width"]
        bare.press("ArrowLeft", "ArrowLeft")
        assert page.locator(".ice-panes > .ice-map").bounding_box()["width"] < width
        assert int(bar.get_attribute("aria-valuenow")) == 48
        bare.press("Enter")
        assert page.locator(".ice-panes > .ice-map").bounding_box()["width"] == pytest.approx(width, abs=1)


def test_a_comparison_is_drawn(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    ids = [s["id"] for s in widget.snapshots]
    widget.select(against=ids[-2])
    with bare_page(browser, widget, width=1300) as bare:
        page = bare.page
        legend = page.locator(".ice-legend")
        assert re.search("Snapshot .* → snapshot ", legend.inner_text())
        assert re.search(r"\+\s*\d+ manifests? added", legend.inner_text())
        marks = [sorted({*widget.nodes[i]["marks"]} & {"added", "removed", "carried"}) for i in manifests(widget)]
        assert all(len(m) == 1 for m in marks)
        removed = page.locator(f".ice-row[data-id^='manifest:{ids[-2]}:'] [aria-label=removed]")
        assert removed.count() == sum(m == ["removed"] for m in marks) > 0
        legend.get_by_role("button", name="Stop comparing").click()
        bare.idle()
        assert widget.selection["against"] == ""
        assert not legend.is_visible()


_RECORD = """() => {
  window.iceTexts = [];
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { a, f } = this.getTransform();
    window.iceTexts.push([text, parseFloat(this.font.match(/[\\d.]+px/)[0]) * a / devicePixelRatio,
      (y * a + f) / devicePixelRatio]);
    return draw.call(this, text, x, y);
  };
}"""


def texts(bare: BarePage, act: Any) -> list[tuple[str, float, float]]:
    """What the picture writes while something is done: each text, its size and its place from the top, in px."""
    bare.page.evaluate("window.iceTexts = []")
    act()
    bare.idle()
    return [(text, size, y) for text, size, y in bare.page.evaluate("window.iceTexts")]


def test_the_whole_tree_has_words_and_headings(browser: Any) -> None:
    """Of 25 cards, `Fit` shows no grey skeletons; headings stay at the top; siblings have different labels."""
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    for manifest in manifests(widget)[:2]:
        widget.expanded = [*widget.expanded, manifest]
        assert widget.settle(60)
    assert len(widget.nodes) == 25
    with bare_page(browser, widget, width=1400, height=1000) as bare:
        bare.page.evaluate(_RECORD)
        whole = texts(bare, by_name(bare, "Fit the tree").click)
        assert where(bare, "table")["scale"] < 0.5
        words = [text for text, _, _ in whole]
        assert min(size for text, size, _ in whole if text not in "+−=!") > 9
        headings = ["Table", "Metadata", "Snapshots", "Manifest list", "Manifests", "Files"]
        assert [text for text, _, y in whole if y == pytest.approx(15, abs=1)] == headings
        days = [f"2024-03-0{i}" for i in range(1, 8)]
        assert all(any(text.startswith(day) for text in words) for day in days)
        assert any(re.match("−4 · 2024-03", text) for text in words)
        bare.page.locator(".ice-tree [tabindex='0']").focus()
        for _ in range(3):
            bare.press("+")
        moved = texts(bare, lambda: bare.press("Shift+ArrowDown", "Shift+ArrowDown"))
        assert {text for text, _, y in moved if y == pytest.approx(15, abs=1)} & set(headings)


def test_files_of_the_picture(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        for name, ending, start in (
            ("PNG", "png", b"\x89PNG"),
            ("SVG", "svg", b"<svg"),
            ("Mermaid", "mmd", b"flowchart LR"),
            ("DOT", "gv", b"digraph"),
        ):
            by_name(bare, "Save the picture").click()
            with bare.page.expect_download() as waiting:
                by_name(bare, f"{name}: Tree" if ending in ("png", "svg") else f"Save as {name}").click()
            assert waiting.value.suggested_filename == f"trips-tree.{ending}"
            assert Path(waiting.value.path()).read_bytes().startswith(start)
        bare.idle()  # a download begins before the page has confirmed what it received
        assert widget.written == {}, "what was handed over is not kept"


def test_a_view_is_made_of_traits(browser: Any) -> None:
    """A second page, drawn from the current traits, shows the same."""
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    widget.expanded = [*widget.expanded, manifests(widget)[0]]
    assert widget.settle(60)
    widget.select(widget.nodes[manifests(widget)[0]]["children"][2])
    widget.tab = "problems"
    widget.search = {"n": 1, "text": "parquet"}
    assert widget.settle(60)
    seen = []
    with bare_page(browser, widget) as bare:
        for _ in range(2):
            bare.open()
            bare.page.locator(".ice-part[data-part=tree]").click()
            bare.idle()
            rows = bare.page.locator(".ice-row")
            seen.append((rows.all_inner_texts(), bare.page.locator(".ice-count-found").inner_text()))
            chosen = bare.page.locator("[aria-selected=true][role=treeitem]")
            assert chosen.get_attribute("data-id") == widget.selection["node"]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_readable(browser: Any, theme: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, theme=theme) as bare:
        assert bare.violations() == []
        by_name(bare, "Show as a list").click()
        bare.page.locator(".ice-omni-input").fill("m0")
        bare.page.wait_for_timeout(400)
        bare.idle()
        assert bare.violations() == []
        # 2.5.8: what a pointer hits is 24 pixels large
        small = bare.page.evaluate(
            """() => [...document.querySelectorAll(".ice-map button, .ice-map input, .ice-bar button")]
              .filter((e) => e.offsetParent && (e.offsetHeight < 24 || e.offsetWidth < 24)).map((e) => e.outerHTML)"""
        )
        assert small == []


def test_forced_colours_contrast_and_motion(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        bare.page.emulate_media(forced_colors="active", reduced_motion="reduce")
        bare.idle()
        ink, paper = bare.page.evaluate(
            """() => {
              const probe = document.createElement("span");
              document.querySelector(".ice-widget").append(probe);
              return ["ink", "paper"].map((name) => {
                probe.style.color = `var(--ice-${name})`;
                return getComputedStyle(probe).color;
              });
            }"""
        )
        assert ink != paper
        moving = bare.page.evaluate(
            """() => document.querySelector(".ice-widget").getAnimations({ subtree: true }).length"""
        )
        assert moving == 0


@pytest.mark.parametrize("width", [420, 724, 2000])
def test_fits(browser: Any, width: int) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget, width=width) as bare:
        box = bare.page.locator(".ice-widget")
        assert box.evaluate("(e) => e.scrollWidth <= e.clientWidth")
        detail_of = {True: ".ice-drawer", False: ".ice-detail"}
        map_box, detail = (bare.page.locator(s).bounding_box() for s in (".ice-map", detail_of[width < 740]))
        if width < 740:
            assert map_box["y"] + map_box["height"] <= detail["y"] + 1, "the handle of the drawer is below"
            assert map_box["width"] > 0.9 * (width - 26)
        else:
            assert map_box["x"] + map_box["width"] <= detail["x"]
        assert is_seen(bare, widget.selection["node"])
        heights = [bare.page.locator(s).bounding_box()["height"] for s in (".ice-crumbs", ".ice-stage")]
        bare.page.mouse.click(*on_card(bare, widget.selection["node"]))
        widget.select("table")
        bare.push()
        assert heights == [bare.page.locator(s).bounding_box()["height"] for s in (".ice-crumbs", ".ice-stage")]


def test_thousands_of_nodes(browser: Any, large: Path) -> None:
    """Rows in the page are those in view; all are reached by keys, and a place far down by what is selected."""
    widget = Explorer(ix.open(large))
    assert widget.settle(60)
    widget.expanded = [*widget.expanded, *manifests(widget)]
    assert widget.settle(60)
    last = manifests(widget)[-1]
    for _ in range(2):
        widget.expanded = [*widget.expanded, f"more:{last}"]
        assert widget.settle(60)
    with bare_page(browser, widget, width=1300) as bare:
        rows = bare.page.locator(".ice-row")
        assert len(widget.nodes) > 600
        assert rows.count() < 80
        bare.page.locator(".ice-row[tabindex='0']").focus()
        bare.press("End")
        assert focused(bare) == widget.nodes[last]["children"][-1]
        assert is_seen(bare, focused(bare))
        bare.press("PageUp")
        assert focused(bare).startswith("file:")
        bare.press("Home")
        assert focused(bare) == "table"
        assert is_seen(bare, "table")
        assert rows.count() < 12, "what nobody sees is not laid out"
        bare.press("PageDown")
        assert 5 < int(bare.page.evaluate("document.activeElement.offsetTop")) / 36 < 30, "a page of the picture"
        bare.press("Home")
        row = rows.nth(3)
        assert (row.get_attribute("aria-level"), row.get_attribute("aria-setsize")) == ("3", "2")
        snapshot = widget.selection["snapshot"]
        chosen = f"file:{snapshot}:0:250"
        widget.select(chosen)
        bare.push()
        assert is_seen(bare, chosen)
        bare.page.locator(".ice-omni-input").fill("region=")
        bare.page.locator(".ice-count-found", has_text="+ found").wait_for()
        bare.press("Escape")  # the list of what was found covers the tools of the tree
        by_name(bare, "Show as a list").click()
        assert 20 < rows.count() < 80
        # the header of a table stays where it is scrolled
        widget.select(last)
        bare.push()
        panel, head = (bare.page.locator(f".ice-detail {s}") for s in (".ice-panel", "thead"))
        panel.evaluate("(e) => { e.scrollTop = 200 }")
        bare.idle()
        assert abs(head.bounding_box()["y"] - panel.bounding_box()["y"]) < 3
