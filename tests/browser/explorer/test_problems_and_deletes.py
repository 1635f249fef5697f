"""Problems and deletes by mouse and keyboard: to the node and back, reading on; pictures, tables, row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import problem
from iceexplore.widgets import DeletionVectors, Explorer, Problems
from tests.browser.bare import bare_page
from tests.browser.harness import Theme
from tests.helpers.hostile import HOSTILE
from tests.widgets.test_deletes_panel import nodes_of

pytestmark = pytest.mark.browser


def test_from_a_problem_to_its_node_and_back(browser: Any) -> None:
    table = ix.sample("trips")
    root = table.state.root()
    assert root is not None
    places = build.to_pylist(root.entries["location"])
    for place in places:
        table.state.problems.add(problem("file-missing", place, "It is not there."))
    widget = Explorer(table)
    with bare_page(browser, widget) as bare:
        tab = bare.page.get_by_role("tab", name="Health (4)")
        tab.click()
        bare.idle()
        bare.page.get_by_role("button", name=f"Show: {places[2]}").click()
        bare.idle()
        assert widget.selected.location == places[2]
        assert widget.tab == "tree"
        tab.click()
        bare.idle()
        here = bare.page.locator(".ice-finding[aria-current]")
        assert places[2] in here.inner_text()
        bare.page.get_by_role("button", name=f"Show: {places[0]}").focus()
        bare.press("Enter")
        assert widget.selected.location == places[0]
        assert bare.page.evaluate("document.activeElement.textContent") == "Tree", "not the page"


def test_severities_and_reading_on(browser: Any) -> None:
    table = ix.sample("trips")
    table.state.problems.add(problem("metadata-ambiguous", table.state.metadata_location, "Two files."))
    widget = Problems(table)
    with bare_page(browser, widget) as bare:
        shown = bare.page.locator(".ice-problems")
        assert "0 of 4 manifests of this snapshot read" in shown.inner_text()
        assert "errors: not checked" in shown.inner_text()
        assert "0 errors" not in shown.inner_text()
        bare.page.get_by_role("button", name="1 warning").click()
        bare.idle()
        assert widget.severities == ["error", "info"]
        assert "No problems of these severities." in shown.inner_text()
        bare.page.get_by_role("button", name="1 warning").focus()
        bare.press("Enter")
        assert "Two files." in shown.inner_text()
        bare.page.get_by_role("button", name="Read all").click()
        bare.idle()
        assert "4 of 4 manifests of this snapshot read" in shown.inner_text()
        assert "0 errors" in shown.inner_text(), "now that is known"
        assert bare.page.get_by_role("button", name="Read").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_unknown_is_shown_as_such(browser: Any, tmp_path: Path, theme: Theme) -> None:
    """Rows that a grid lacks, and a comparison of a newer snapshot with the older one that is shown."""
    whole = ix.empty({"id": "long"}, format_version=2, location=str(tmp_path / "t"))
    for _ in range(3):
        whole.append(files=2, rows=10)
    whole.save(tmp_path / "t")
    table = ix.open(tmp_path / "t")
    lost = Path(table.inspect.manifests.arrow()["path"][0].as_py())
    lost.write_bytes(b"Obj\x01")
    table = ix.open(tmp_path / "t")
    assert table.snapshot is not None
    widget = Explorer(table)
    with bare_page(browser, widget, theme=theme) as bare:
        widget.select(node=f"snapshot:{table.snapshot.snapshot_id}")
        bare.push()
        bare.page.get_by_role("tablist", name="Tables").get_by_role("tab", name="Files").click()
        bare.idle()
        lacks = bare.page.locator(".ice-lacks")
        assert lacks.inner_text().startswith("▲ Rows may be missing: 1 of the files listed in the manifest list")
        widget.select(snapshot=table.snapshots[0], against=table.snapshots[1])
        bare.push()
        compared = bare.page.locator(".ice-compared")
        assert compared.inner_text().startswith("1 → 2 of 3:")
        assert "+2 data files" in compared.inner_text()
        assert not bare.violations()


def test_the_list_stays_as_it_is_while_more_is_found(browser: Any) -> None:
    table = ix.sample("trips")
    for i in range(60):
        table.state.problems.add(problem("file-missing", f"s3://x/{i}", "It is not there."))
        table.state.problems.add(problem("count-mismatch", table.state.metadata_location, f"Another count: {i}."))
    widget = Problems(table)
    with bare_page(browser, widget) as bare:
        page = bare.page
        shown = page.locator(".ice-findings")
        assert "and 10 more: see found_problems in Python" in shown.inner_text()
        page.locator("summary").filter(has_text="missing").click()  # shut
        # Of one name with the others: all are in one place.
        item = page.locator(".ice-finding").filter(has_text="Another count: 7.")
        item.get_by_role("button").focus()
        at = shown.evaluate("(list) => list.scrollTop")
        assert at > 0
        table.state.problems.add(problem("metadata-ambiguous", table.state.metadata_location, "Two files."))
        widget.read_all += 1
        bare.push()
        assert "Two files." in shown.inner_text()
        assert shown.evaluate("(list) => list.scrollTop") == at
        focused = "document.activeElement.closest('.ice-finding, .ice-problem-bar > *').textContent"
        assert "Another count: 7." in page.evaluate(focused)
        opened = page.locator(".ice-finding-group").evaluate_all("(all) => all.map((one) => one.open)")
        assert opened == [False, True, True]
        page.locator("summary").first.focus()
        page.get_by_role("button", name="60 errors").evaluate("(one) => one.click()")
        bare.idle()
        assert page.evaluate("document.activeElement.className") == "ice-findings", "its group is gone"
        page.get_by_role("button", name="61 warnings").focus()
        bare.press("Enter")
        assert shown.inner_text() == "No problems of these severities."
        assert "61 warnings" in page.evaluate("document.activeElement.textContent")


def test_names_that_would_be_code_are_text(browser: Any) -> None:
    table = ix.sample("trips")
    for name in HOSTILE.values():
        table.state.problems.add(problem("file-missing", name, name, found=name, field=name))
    with bare_page(browser, Problems(table)) as bare:
        assert bare.page.locator(".ice-finding").count() == len(set(HOSTILE.values()))
        assert bare.page.locator(".ice-widget img, .ice-widget script").count() == 0
        assert bare.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_delete_its_tables_and_row_groups(browser: Any) -> None:
    table = ix.sample("trips")
    node = max(nodes_of(table, "deletion-vector"), key=lambda n: n.fields["record_count"])
    widget = DeletionVectors(table, selection={"snapshot": str(table.snapshot.snapshot_id), "node": node.id})  # type: ignore[union-attr]
    with bare_page(browser, widget) as bare:
        page = bare.page
        count = widget.vector["cardinality"]
        assert f"{count} deleted of" in page.locator(".ice-vector-head").inner_text()
        assert f"{count} of" in page.get_by_role("img", name="positions deleted").get_attribute("aria-label")
        painted = page.evaluate(
            """() => {
              const { width, height } = document.querySelector(".ice-cells");
              const data = document.querySelector(".ice-cells").getContext("2d").getImageData(0, 0, width, height).data;
              return new Set(new Uint32Array(data.buffer)).size;
            }"""
        )
        assert painted >= 3, "deleted, not deleted, and between them"
        first = int(widget.vector["first"])
        canvas = page.locator(".ice-cells")
        canvas.hover(position={"x": 12 * first + 4, "y": 4})
        assert page.locator(".ice-cell-text").inner_text() == f"Position {first}: deleted"
        canvas.hover(position={"x": 4, "y": 4})
        assert page.locator(".ice-cell-text").inner_text() == "Position 0: not deleted"
        page.locator(".ice-title").hover()
        assert page.locator(".ice-cell-text").inner_text() == widget.vector["legend"]
        page.evaluate("window.errors = []; addEventListener('error', ({ message }) => errors.push(message))")
        page.set_viewport_size({"width": 420, "height": 900})
        page.wait_for_function("document.querySelector('.ice-cells').clientWidth < 420")
        assert page.evaluate("new Promise((done) => setTimeout(() => done(errors), 100))") == []
        page.get_by_role("button", name="Ranges").click()
        bare.idle()
        assert widget.pages["positions"]["total"] == widget.vector["runs"]
        page.get_by_role("button", name="Read row groups").click()
        bare.idle()
        assert widget.vector["borders_from"] == "footer"
        assert "1 row group" in page.locator(".ice-vector-facts").inner_text()
        widget.vector = {**widget.vector, "paths": [["a", "2", "a"], ["b", "1", "b"]]}  # as of a delete file for both
        bare.push()
        page.get_by_label("Data file").focus()
        bare.press("ArrowDown")
        assert widget.vector["path"] == "b"
        assert page.evaluate("document.activeElement.closest('.ice-vectors') !== null"), "not the page"
        page.get_by_role("button", name="All deletes of the snapshot").focus()
        bare.press("Enter")
        other = next(n for n in widget.pages["deletes"]["nodes"] if n != node.id)
        page.locator(f"tr[data-node='{other}'] .ice-open").first.click()
        bare.idle()
        assert widget.selection["node"] == widget.vector["node"] == other
        widget.select(node)
        widget.cancelled += 1
        bare.push()
        assert "Reading" not in page.locator(".ice-vector-head").inner_text()
        page.get_by_role("button", name="Try again").click()
        bare.idle()
        assert f"{count} deleted of" in page.locator(".ice-vector-head").inner_text()
        page.get_by_role("button", name="Positions", exact=True).click()
        bare.idle()
        page.get_by_label("Filter Deleted positions").focus()
        widget.select("table")
        bare.push()  # which has no positions: their table goes
        assert page.evaluate("document.activeElement.closest('.ice-vectors') !== null"), "not the page"


def test_many_positions_have_a_square(browser: Any) -> None:
    s = ix.empty({"a": "long"}, format_version=3)
    s.append(files=1, rows=10_000)
    (path,) = s.inspect.files()["file_path"].tolist()
    s.row_delta(deletes={path: [0, 2, 9_999]})
    (node,) = nodes_of(s.table, "data-file")
    with bare_page(browser, DeletionVectors(s.table, selection={"node": node.id})) as bare:
        shown, canvas = bare.page.locator(".ice-cell-text"), bare.page.locator(".ice-cells")
        legend = "Each square is 3 positions; the darker, the more are deleted; 10,000 positions in total."
        assert shown.inner_text() == legend
        canvas.hover(position={"x": 2, "y": 2})
        assert shown.inner_text() == "Positions 0 to 2: 2 deleted (67 %)"
        bare.push()
        assert "3 deleted of 10,000 rows (< 0.1 %)" in bare.page.locator(".ice-title").inner_text()


def test_the_explorer_shows_deletes_of_what_is_selected(browser: Any) -> None:
    table = ix.sample("trips")
    node = nodes_of(table, "deletion-vector")[0]
    widget = Explorer(table)
    with bare_page(browser, widget) as bare:
        widget.select(node)
        bare.push()
        assert widget.vector == {}
        bare.page.get_by_role("tab", name="Deletes").click()
        bare.idle()
        bare.page.wait_for_selector(".ice-cells:visible")
        bare.idle()
        assert widget.vector["node"] == node.id
