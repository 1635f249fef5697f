"""The scan lab: in a real JupyterLab by mouse, in a page of its own by keys alone; names that would like to be code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import ScanLab
from tests.browser.bare import BarePage, bare_page
from tests.browser.explorer.test_explorer import notebook_of
from tests.browser.harness import Theme
from tests.helpers.sampling import one_of

pytestmark = pytest.mark.browser

FILTER = "started_at >= '2024-05-01' and rider = 'guest'"
HOSTILE = '<img src=x onerror="owned=1">'


def lab(page: Any) -> Any:
    return page.locator(".ice-scan")


def idle(notebook: Any) -> None:
    notebook.page.wait_for_timeout(400)
    notebook.page.wait_for_selector(".ice-widget[aria-busy=false]")
    assert notebook.page.locator(".ice-error:visible").count() == 0


def tab(page: Any, key: str) -> Any:
    return lab(page).locator(f".ice-tab[data-key={key}]")


def test_by_mouse(notebook: Any, tmp_path: Path) -> None:
    """In the explorer: an example planned, a file explained, tables, advice, Python copied, cancelled."""
    page = notebook.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    notebook.open(notebook_of(tmp_path / "n.ipynb", "import iceexplore as ix", "w = ix.sample('trips').explore()\nw"))
    notebook.run_all()
    page.locator(".ice-part[data-part=scan]").click()
    lab(page).wait_for()
    idle(notebook)
    assert lab(page).locator(".ice-bars").count() == 0
    lab(page).locator(".ice-scan-empty .ice-chip", has_text="trip_id").first.click()
    idle(notebook)
    assert lab(page).locator(".ice-scan-input").input_value().startswith("trip_id = ")
    box = lab(page).locator(".ice-scan-input")
    box.fill(FILTER)
    page.get_by_role("button", name="Plan", exact=True).click()
    idle(notebook)
    assert lab(page).locator("h3").inner_text().startswith("Reads 2 of 12 data files")
    funnel = lab(page).locator(".ice-scan-answer > ul")
    levels = [" ".join(text.split()) for text in funnel.locator("li").all_inner_texts()]
    assert levels[1] == "After pruning manifests 6 files 16.9 KiB · 1 manifest"
    assert len(levels) == lab(page).locator(".ice-bars").count() == 4
    assert funnel.bounding_box()["height"] <= 60

    # the reasons lead to their files
    lab(page).locator(".ice-reasons .ice-link", has_text="4 files").click()
    idle(notebook)
    assert lab(page).locator(".ice-grid tbody tr").count() == 4

    # what is read leads to its node, and that to why
    tab(page, "tasks").click()
    idle(notebook)
    grid = lab(page).locator(".ice-grid")
    assert grid.locator("tbody tr").count() == 2
    grid.locator(".ice-open").first.click()
    idle(notebook)
    tab(page, "why").click()
    why = lab(page).locator(".ice-scan-pane")
    assert "✓ read" in why.inner_text() and "Residual filter for its rows: rider = 'guest'" in why.inner_text()
    tab(page, "skipped").click()
    idle(notebook)
    assert grid.locator("tbody tr").count() == 5
    grid.locator(".ice-open").nth(1).click()
    idle(notebook)
    tab(page, "why").click()
    assert "started_at_month is 2024-04" in why.inner_text() and "⊘ no row" in why.inner_text()
    tab(page, "advice").click()
    idle(notebook)
    assert "files on average" in why.inner_text()
    tab(page, "head").click()
    idle(notebook)
    assert "guest" in grid.locator("tbody").inner_text()
    page.get_by_role("button", name="Count rows").click()
    idle(notebook)
    assert "44 rows" in lab(page).locator(".ice-scan-answer").inner_text()
    page.get_by_role("button", name="Copy as Python").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f't.plan("{FILTER}")'

    # fewer columns
    lab(page).locator(".ice-scan-columns summary").click()
    lab(page).locator(".ice-scan-columns input[value=rider]").check()
    idle(notebook)
    assert "1/6" in lab(page).locator(".ice-scan-columns summary").inner_text()
    lab(page).locator(".ice-scan-columns summary").click()
    page.get_by_role("slider", name="Snapshot").press("Home")
    idle(notebook)
    # planned for that snapshot, which lacks the column: an error with the nearest names
    assert "no column 'rider'" in lab(page).locator(".ice-scan-answer").inner_text()
    box.fill("trip_id > 5")
    lab(page).locator(".ice-scan-columns summary").click()
    lab(page).locator(".ice-scan-columns input:checked").click()
    page.get_by_role("button", name="Plan", exact=True).click()
    idle(notebook)
    assert lab(page).locator("h3").inner_text().startswith("Reads ")
    assert "ice-stale" not in (lab(page).get_attribute("class") or "")

    # Python sets the filter; what takes long can be cancelled, and what was there stays
    page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code: `
import time, iceexplore.planning as p
real = p.plan_scan
def slow(*a, **k):
    time.sleep(6)
    return real(*a, **k)
p.plan_scan = slow
w.scan_filter = "trip_id = 7"`}).done"""
    )
    page.wait_for_selector(".ice-widget[aria-busy=true]")
    assert box.input_value() == "trip_id = 7"
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector(".ice-widget[aria-busy=false]", timeout=3000)
    assert "ice-stale" in lab(page).get_attribute("class")
    assert lab(page).locator("h3").inner_text().startswith("Reads ")


@pytest.fixture
def shown(browser: Any, theme: Theme) -> Iterator[BarePage]:
    with bare_page(browser, ScanLab(ix.sample("trips")), width=1100, height=1100, theme=theme) as bare:
        yield bare


@pytest.mark.parametrize("theme", one_of(2, ["light", "dark"]))
def test_by_keys_alone(shown: BarePage) -> None:
    """From an empty box to a plan, its tree, its tables; axe finds nothing wrong on the way."""
    page, press = shown.page, shown.press
    options = lab(page).locator("[role=option]")
    box = lab(page).locator("[role=combobox]")
    fault = lab(page).locator(".ice-scan-pop .ice-scan-fault")
    assert shown.violations() == []
    while page.evaluate("document.activeElement.getAttribute('role')") != "combobox":
        press("Tab")
    press("ArrowDown")
    assert options.first.inner_text().startswith("trip_id")
    assert options.first.get_attribute("aria-selected") == "true"
    page.keyboard.type("start")
    press()
    assert [o.split("\n")[0] for o in options.all_inner_texts()] == ["started_at", "start_station"]
    assert box.get_attribute("aria-expanded") == "true" and not fault.is_visible()
    press("ArrowUp")
    active = box.get_attribute("aria-activedescendant")
    assert page.evaluate("(id) => document.getElementById(id).textContent", active).startswith("start_station")
    assert shown.violations() == []
    press("ArrowDown", "ArrowDown", "Enter")  # past the end is none, then the first
    assert box.input_value() == "started_at "
    assert options.first.inner_text().startswith("=")
    press("Escape")
    assert options.count() == 0 and box.get_attribute("aria-expanded") == "false"
    page.keyboard.type(">= '2024-05-01' and ridr = 5")
    press()
    lines = fault.inner_text().split("\n")
    assert "nearest: rider" in lines[0] and lines[1].index("ridr") == lines[2].index("^^^^")
    assert box.get_attribute("aria-invalid") == "true"
    before = page.locator(".ice-widget").bounding_box()["height"]
    assert shown.violations() == []
    press("Enter")
    assert not fault.is_visible() and "ridr" in lab(page).locator(".ice-scan-answer").inner_text()
    assert before > 300
    for _ in range(len("ridr = 5")):
        page.keyboard.press("Backspace")
    page.keyboard.type("rider = ")
    press("ArrowDown")
    press("Enter")
    press("Enter")
    assert box.input_value() == "started_at >= '2024-05-01' and rider = 'guest' "
    assert lab(page).locator("h3").inner_text().startswith("Reads 2 of 12 data files")
    assert shown.widget.scan_filter == FILTER
    assert shown.violations() == []

    # the range map: an edge moved, the plan of the new range, and the edge opened again
    while page.evaluate("document.activeElement.ariaLabel ?? ''") != "Lower edge":
        press("Tab")
    status = lab(page).locator(".ice-range-status")
    press("PageDown")
    assert "5 of 12 files" not in status.inner_text() and " of 12 files, " in status.inner_text()
    press("Escape")
    assert shown.widget.scan_filter == FILTER
    press("PageDown")
    assert shown.violations() == []  # meanwhile the moved edge may be planned: Home counts all the same
    press("Home", "Enter")
    assert shown.widget.scan_plan["files"] == 12 - len(shown.widget.plan.skipped.query("kind == 'data file'"))
    assert shown.widget.scan_filter.startswith("started_at >= TIMESTAMP '2024-03-02")
    assert page.evaluate("document.activeElement.ariaLabel") == "Lower edge"
    press("Delete", "Enter")
    assert shown.widget.scan_filter == "rider = 'guest'"
    assert shown.widget.scan_range["column"] == "started_at"
    shown.widget.scan_range_of = {"column": "", "by": "range"}
    shown.widget.scan_filter, shown.widget.scan_view = FILTER, "tree"
    shown.push()

    # the tree: folded, unfolded, a file chosen
    while page.evaluate("document.activeElement.getAttribute('role')") != "treeitem":
        press("Tab")
    press("Home", "ArrowDown", "ArrowLeft")
    manifest = next(i for i in shown.widget.scan_nodes if shown.widget.scan_nodes[i]["children"] and i[0] == "m")
    assert manifest not in shown.widget.scan_expanded
    press("ArrowRight", "ArrowRight", "Enter")
    assert shown.widget.selection["node"].startswith("file:")
    pane = lab(page).locator(".ice-scan-pane")
    assert "✓ read" in pane.inner_text()
    assert shown.violations() == []

    # the tabs, a row, the form
    while page.evaluate("document.activeElement.dataset.key ?? ''") != "why":
        press("Tab")
    press("ArrowRight")
    assert tab(page, "tasks").get_attribute("aria-selected") == "true"
    assert pane.locator("tbody tr").count() == 2
    press("End")
    assert tab(page, "advice").get_attribute("aria-selected") == "true"
    assert shown.violations() == []
    assert "files on average" in pane.inner_text()
    box.focus()
    press("Enter")  # the same plan again
    assert "files on average" in pane.inner_text()
    shown.widget.scan_advice = {"of": shown.widget.scan_plan["of"], "missed": "Cancelled."}
    shown.push()
    page.get_by_role("button", name="Try again").focus()
    press("Enter")
    assert "files on average" in pane.inner_text()
    lab(page).locator("[role=treeitem][tabindex='0']").focus()
    shown.widget.scan_filter = "ridr = 5"
    shown.push()  # the tree goes
    assert page.evaluate("document.activeElement.textContent") == "Plan", "not the page"


@pytest.mark.parametrize("theme", ["light"])
def test_python_sets_the_filter_and_a_narrow_cell_fits(shown: BarePage) -> None:
    page = shown.page
    page.set_viewport_size({"width": 700, "height": 1000})
    shown.widget.scan_filter = FILTER
    shown.push()
    widget = page.locator(".ice-widget")
    assert widget.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    for key in ("why", "tasks", "skipped", "deletes", "head", "advice"):
        tab(page, key).click()
        shown.idle()
        assert widget.evaluate("(e) => e.scrollWidth <= e.clientWidth"), key
        assert lab(page).locator(".ice-scan-pane > *:visible").bounding_box()["height"] > 30
    assert lab(page).locator("[role=combobox]").input_value() == FILTER
    what_comes_late_is_not_shown_elsewhere(shown)
    for _ in range(2):  # the filter that is planned already can be chosen again, and again
        asked = shown.widget.scan_ask.get("n", 0)
        page.get_by_label("Examples and recent filters").select_option(FILTER)
        shown.idle()
        assert (shown.widget.scan_ask["want"], shown.widget.scan_ask["n"]) == ("plan", asked + 1)
        assert page.get_by_label("Examples and recent filters").input_value() == ""
    # 1.4.10: at 320 pixels, which is 400 %, no head runs into the next one, and what was left out is described in full
    page.set_viewport_size({"width": 320, "height": 1000})
    cut = page.locator(".ice-scan-answer li > *").evaluate_all(
        "all => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)"
    )
    assert cut == []
    shown.widget.scan_filter = "trip_id = 95"
    shown.push()
    assert lab(page).locator("[role=combobox]").input_value() == "trip_id = 95"
    assert lab(page).locator("h3").inner_text().startswith("Reads 1 of 12")
    assert shown.end() == {"observers": 0, "listeners": 0, "model": 0}


@pytest.mark.parametrize("theme", ["light"])
def test_files_light_up_while_the_filter_is_dragged(shown: BarePage) -> None:
    """What is counted while dragging is what the plan reads once the pointer is released."""
    page = shown.page
    shown.widget.scan_filter = FILTER
    shown.push()
    stage, edge = page.locator(".ice-range-stage").bounding_box(), page.locator(".ice-range-edge").first.bounding_box()
    status = page.locator(".ice-range-status")
    y = stage["y"] + stage["height"] / 3
    page.mouse.move(edge["x"] + 12, y)
    page.mouse.down()
    for part in (0.8, 0.6, 0.4):
        page.mouse.move(stage["x"] + stage["width"] * part, y)
        page.wait_for_timeout(50)
    counted = int(status.inner_text().split(": ")[-1].split(" of ")[0])
    assert shown.widget.scan_filter == FILTER, "nothing is planned yet"
    page.mouse.up()
    shown.idle()
    shown.idle()
    assert shown.widget.scan_plan["files"] == counted == 6
    assert page.locator("[role=combobox]").input_value() == shown.widget.scan_filter
    # a new range across files, and a click on a file, which says why
    page.mouse.move(stage["x"] + 4, y)
    page.mouse.down()
    page.mouse.move(stage["x"] + 60, y, steps=3)
    page.mouse.up()
    shown.idle()
    shown.idle()
    assert " <= " in shown.widget.scan_filter and " >= " in shown.widget.scan_filter
    stage = page.locator(".ice-range-stage").bounding_box()
    row = min(20, (stage["height"] - 20) / 12)
    page.mouse.click(stage["x"] + stage["width"] * 0.85, stage["y"] + row * 10.5)
    shown.idle()
    assert shown.widget.selection["node"].startswith("file:")
    assert "skipped" in lab(page).locator(".ice-scan-pane").inner_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG: Ranges", exact=True).click()
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")
    assert shown.end() == {"observers": 0, "listeners": 0, "model": 0}


def what_comes_late_is_not_shown_elsewhere(shown: BarePage) -> None:
    """Whoever goes to a table, and back before it has come, sees that to which they have come back."""
    page, panel = shown.page, lab(shown.page).locator(".ice-scan-pane .ice-panel")
    tab(page, "head").click()
    shown.idle()
    heads = panel.locator("thead").inner_text()
    for cancelled in (False, True):
        # Python is busy
        page.evaluate("() => { ice.save = ice.model.save_changes; ice.model.save_changes = () => {}; }")
        tab(page, "tasks").click()
        if cancelled:
            page.evaluate("ice.update({ cancelled: ice.state.cancelled + 1 })")
            assert panel.inner_text() == "Cancelled. Try again"
        tab(page, "head").click()
        page.evaluate("() => { ice.model.save_changes = ice.save; ice.model.save_changes(); }")
        shown.idle()
        assert panel.locator("thead").inner_text() == heads, cancelled


def test_a_long_name_leaves_room_for_the_other_examples(browser: Any) -> None:
    table = ix.empty({"n" * 10_000: "string", "id": "long"}, format_version=2, seed=1)
    table.append(files=2, rows=3)
    with bare_page(browser, ScanLab(table.table)) as bare:
        examples = lab(bare.page).locator(".ice-scan-empty .ice-chip")
        examples.first.wait_for()
        assert all(example.bounding_box()["height"] < 100 for example in examples.all())
        examples.first.click()
        bare.idle()
        assert lab(bare.page).locator("h3").inner_text().startswith("Reads ")


def test_names_and_values_stay_text(browser: Any) -> None:
    table = ix.empty({HOSTILE: "string", "id": "long"}, partition_by=[HOSTILE], format_version=2, seed=1)
    place = {"record_count": 3, "file_size_in_bytes": 9, "partition": {HOSTILE: HOSTILE}}
    bounds = {"lower_bounds": {"id": 1, HOSTILE: HOSTILE}, "upper_bounds": {"id": 5, HOSTILE: HOSTILE}}
    table.append([{"location": f"mem:/{HOSTILE}/{n}{HOSTILE}.parquet", **place, **bounds} for n in range(60)])
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    text = f"{quoted} = '{HOSTILE.replace(chr(39), chr(39) * 2)}'"
    with bare_page(browser, ScanLab(table.table, scan_filter=text)) as bare:
        page = bare.page
        assert lab(page).locator("h3").inner_text().startswith("Reads 60 of 60")
        bare.widget.select(next(i for i in bare.widget.scan_nodes if i.startswith("file:")))
        bare.push()
        assert HOSTILE in lab(page).locator(".ice-scan-pane").inner_text()
        for key in ("tasks", "skipped", "head", "advice", "why"):
            bare.widget.error = {}
            tab(page, key).click()
            bare.idle()
        box = lab(page).locator("[role=combobox]")
        box.fill('"<')
        bare.press("ArrowDown")
        assert HOSTILE.replace('"', '""') in lab(page).locator("[role=option]").first.inner_text()
        bare.press("Enter")
        page.keyboard.type("= ")
        bare.press("ArrowDown")
        bare.press("Enter")
        assert box.input_value().strip() == text
        box.fill(f"{HOSTILE} = 5")
        bare.press("Enter")
        assert "onerror" in lab(page).locator(".ice-scan-answer").inner_text()
        assert page.locator(".ice-widget :is(img, script, iframe)").count() == 0
        assert page.evaluate("'owned' in window") is False
