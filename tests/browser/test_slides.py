"""Pictures for slides: every picture of the explorer as PNG and SVG, with title, caption and legend."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer, ScanLab
from tests.browser.bare import BarePage, bare_page
from tests.browser.hostile_table import hostile_table
from tests.helpers.sampling import one_of

pytestmark = pytest.mark.browser

_SVG = "{http://www.w3.org/2000/svg}"


def saved(bare: BarePage, name: str, way: str) -> bytes:
    """Save a picture, and return the file."""
    page = bare.page
    if name == "Tree":
        page.get_by_role("button", name="Save the picture").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"{way}: {name}", exact=True).click()
    assert waiting.value.suggested_filename.endswith(f"-{name.lower().replace(' ', '-')}.{way.lower()}")
    return Path(waiting.value.path()).read_bytes()


def words(svg: bytes) -> list[str]:
    """The texts of a page, which must be well-formed, of 16 : 9, and without anything that runs or loads."""
    root = ET.fromstring(svg)
    assert (root.tag, root.get("width"), root.get("height")) == (f"{_SVG}svg", "1920", "1080")
    assert not {e.tag for e in root.iter()} & {f"{_SVG}script", f"{_SVG}a", f"{_SVG}image", f"{_SVG}foreignObject"}
    assert not [name for e in root.iter() for name in e.attrib if name.startswith("on") or name.endswith("href")]
    return [e.text or "" for e in root.iter(f"{_SVG}text")]


def open_tab(bare: BarePage, key: str) -> None:
    bare.page.locator(f".ice-part[data-part={key}]").click()
    bare.idle()
    bare.page.wait_for_timeout(300)
    bare.idle()


@pytest.mark.parametrize("theme", one_of(2, ["dark", "light"]))
def test_every_picture_as_a_slide(browser: Any, theme: Any) -> None:
    widget = Explorer(ix.sample("trips"), scan_filter="km > 5")
    assert widget.settle(60)
    for manifest in [i for i in widget.nodes if i.startswith("manifest:")]:
        widget.expanded = [*widget.expanded, manifest]
        assert widget.settle(60)
    vector = next(i for i, node in widget.nodes.items() if node["kind"] == "deletion-vector")
    snapshot = widget.snapshot
    assert snapshot is not None
    caption = f"snapshot {snapshot.snapshot_id} · delete · 2026-11-21 06:07:51.920 UTC"
    with bare_page(browser, widget, width=1400, height=1000, theme=theme) as bare:

        def check(name: str, *legend: str, caption: str = caption) -> None:
            png = saved(bare, name, "PNG")
            assert png.startswith(b"\x89PNG")
            assert struct.unpack(">II", png[16:24]) == (1920, 1080)
            svg = saved(bare, name, "SVG")
            texts = words(svg)
            assert texts[:2] == [f"{name} of trips", caption]
            for item in legend:
                assert item in texts, (name, item, texts)
            paper = "rgb(17, 22, 29)" if theme == "dark" else "rgb(255, 255, 255)"
            assert f'fill="{paper}"'.encode() in svg

        check("Tree", "Data manifest", "Deletion vector", "removed by the snapshot", "arrow: applies to", "Files")
        check("Timeline", "append", "overwrite", "main", "line: rows; dashed: live")
        open_tab(bare, "files")
        check("Files", "data file", "removed", "started_at_day=2024-03-01")
        open_tab(bare, "scan")
        bare.page.get_by_role("button", name="Plan", exact=True).click()
        bare.idle()
        bare.page.locator(".ice-range-stage").wait_for()
        check("Ranges", "filter: km > 5")
        check("Waterfall", "filter: km > 5", "after pruning data files")
        open_tab(bare, "commit")
        bare.page.get_by_role("button", name="Apply", exact=True).click()
        bare.page.locator(".ice-commit-figure img").wait_for()
        bare.page.wait_for_function("window.ice.state.commit_report.figure")
        check("Figure", "Append data files", "Snapshot 13 (after)")
        widget.select(vector)
        bare.push()
        open_tab(bare, "deletes")
        check("Deleted positions", "deleted")
        # Of the table's own snapshot, whichever is selected.
        widget.select(str(widget.snapshots[0]["id"]))
        bare.push()
        open_tab(bare, "problems")
        bare.page.get_by_role("tab", name="Files and manifests").click()
        health = ix.sample("trips").health()
        for figure in health.measured:
            bar = figure.bars[0]
            check(figure.title, *(value[1] for value in bar.values if value), caption=f"S{health.scope[1:]}")
            texts = "".join(words(saved(bare, figure.title, "SVG")))
            assert figure.verdict in texts
            assert bar.label in texts, "in two lines if it is long"
        assert bare.errors == []


def test_the_tree_of_a_plan_is_drawn_as_the_tables(browser: Any) -> None:
    """With headings of columns, and arrows from deletes to the files that they apply to."""
    widget = ScanLab(ix.sample("trips"), scan_filter="km > 5", scan_view="tree")
    with bare_page(browser, widget, width=1400, height=1000) as bare:
        bare.page.get_by_role("button", name="Plan", exact=True).click()
        bare.idle()
        bare.page.get_by_role("button", name="Fit the tree").click()
        svg = saved(bare, "Tree", "SVG")
        texts = words(svg)
        assert {"Manifest list", "Manifests", "Files", "arrow: applies to", "Deletion vector"} <= set(texts)
        arrows = sum(len(node.get("applies", ())) for node in widget.scan_nodes.values())
        assert arrows == 10
        colour = bare.page.evaluate("window.ice.state.styles['deletion-vector'].light")
        paths = [e for e in ET.fromstring(svg).iter(f"{_SVG}path") if e.get("stroke") == colour]
        assert max((path.get("d") or "").count("C") for path in paths) == arrows, "all arrows are one path"
        assert bare.violations() == []


def test_a_picture_is_copied(browser: Any) -> None:
    widget = Explorer(ix.sample("trips"))
    with bare_page(browser, widget) as bare:
        # A page of its own is no secure context, so that it lacks both.
        bare.page.evaluate(
            """() => {
              window.ClipboardItem = class { constructor(types) { this.types = types; } };
              const write = async ([{ types }]) => {
                const blob = await types["image/png"];
                window.iceCopied = [blob.type, blob.size];
              };
              Object.defineProperty(navigator, "clipboard", { value: { write }, configurable: true });
            }"""
        )
        button = bare.page.get_by_role("button", name="Copy: Timeline", exact=True)
        button.click()
        bare.page.wait_for_function("window.iceCopied")
        assert bare.page.evaluate("window.iceCopied[0]") == "image/png"
        assert bare.page.evaluate("window.iceCopied[1]") > 10_000
        assert button.inner_text() == "Done"
        bare.page.evaluate("delete window.ClipboardItem")
        button.click()
        bare.page.wait_for_timeout(300)
        assert button.inner_text() == "Failed"


def test_names_of_strangers_are_text(browser: Any, tmp_path: Path) -> None:
    widget = Explorer(hostile_table(tmp_path / "t"))
    assert widget.settle(60)
    for manifest in [i for i in widget.nodes if i.startswith("manifest:")]:
        widget.expanded = [*widget.expanded, manifest]
        assert widget.settle(60)
    with bare_page(browser, widget, width=1400, height=1000) as bare:
        for name in ("Tree", "Timeline"):
            assert words(saved(bare, name, "SVG"))[0].startswith(f"{name} of ")
            assert saved(bare, name, "PNG").startswith(b"\x89PNG"), "a browser draws it"
        open_tab(bare, "files")
        assert words(saved(bare, "Files", "SVG"))
        assert bare.errors == []
