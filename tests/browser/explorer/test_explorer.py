"""The explorer in a real JupyterLab: what takes a kernel, two views, and names that would like to be code."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.harness import ROOT

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def notebook_of(path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, path)
    return path


def show(notebook: Any, folder: Path, source: str, *, as_list: bool = True) -> Any:
    """Run the cell that shows the explorer ``w`` and wait until it is idle."""
    cells = ("import iceexplore as ix", f"w = {source}\nw")
    notebook.open(notebook_of(folder / "n.ipynb", *cells))
    notebook.run_all()
    widget = notebook.page.locator(".ice-widget")
    widget.wait_for()
    idle(notebook)
    if as_list:  # rows that a pointer can hit
        notebook.page.locator(".ice-panes > .ice-map [aria-label='Show as a list']").click()
    return widget


def idle(notebook: Any) -> None:
    notebook.page.wait_for_timeout(250)
    notebook.page.wait_for_selector(".ice-widget[aria-busy=false]")
    assert notebook.page.locator(".ice-error:visible").count() == 0


def rows(notebook: Any, kind: str = "") -> Any:
    return notebook.page.locator(f".ice-panes > .ice-map .ice-row[data-id^='{kind}']")


def focused(notebook: Any) -> str:
    return str(notebook.page.evaluate("document.activeElement.dataset.id ?? ''"))


def run(notebook: Any, code: str) -> None:
    """Run code in the notebook's kernel, and do not wait for its end."""
    notebook.page.evaluate(
        """(code) => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code}); }""",
        code,
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table with 330 entries in a manifest: pages of tables and of the tree."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        generate = importlib.import_module("generate")
        yield generate.generate(generate.Shape(files=330, deletes=0, manifests=1), tmp_path_factory.mktemp("large"))
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture
def hostile(large: Path, tmp_path: Path) -> Path:
    """The same table, with markup wherever a name can be."""
    document = json.loads(large.read_text())
    document["schemas"][0]["fields"][0]["name"] = HOSTILE
    document["properties"] = {HOSTILE: HOSTILE}
    document["refs"][HOSTILE] = {"snapshot-id": document["current-snapshot-id"], "type": "tag"}
    document["snapshots"][0]["summary"]["operation"] = HOSTILE
    document["snapshots"][0]["summary"][HOSTILE] = HOSTILE
    path = tmp_path / "v1.metadata.json"
    path.write_text(json.dumps(document))
    return path


# A read that waits until the test releases it, like one from a slow remote store.
_SLOW = """
import threading
from iceexplore.widgets.tree._forest import Forest
gate, grow = threading.Event(), Forest.grow
def slow(self, view):
    if slow.on in view.expanded:
        gate.wait(60)
    return grow(self, view)
slow.on = {first!r}
Forest.grow = slow
"""


def test_in_a_notebook(notebook: Any, tmp_path: Path) -> None:
    """By mouse in the list and in the picture, by keys, two views, another snapshot, cancel, errors."""
    show(notebook, tmp_path, "ix.sample('trips').explore()")
    page = notebook.page
    chosen = page.locator(".ice-panes .ice-row[aria-selected=true]")
    assert chosen.get_attribute("data-id").startswith("snapshot:")
    assert rows(notebook, "file:").count() == 0
    first, second = (rows(notebook, "manifest:").nth(i).get_attribute("data-id") for i in (0, 1))

    # a node is unfolded and folded, a file selected; its details are beside it
    rows(notebook, first).first.locator(".ice-twisty").click()
    idle(notebook)
    assert rows(notebook, first).first.get_attribute("aria-expanded") == "true"
    file = rows(notebook, "file:").first
    file.click()
    idle(notebook)
    assert file.get_attribute("aria-selected") == "true"
    assert page.locator(".ice-kind").inner_text().startswith("Data file")
    assert "trip_id" in page.locator(".ice-detail .ice-table").inner_text()
    rows(notebook, first).first.locator(".ice-twisty").click()
    idle(notebook)
    assert rows(notebook, "file:").count() == 0

    # keys: the notebook keeps its hands off
    press = page.keyboard.press
    press("Home")
    assert focused(notebook) == "table"
    press("ArrowDown")
    press("ArrowLeft")
    idle(notebook)
    assert rows(notebook, "snapshot:").count() == 0
    press("ArrowRight")
    idle(notebook)
    assert rows(notebook, "snapshot:").count() == 1
    press("Home")
    press("Enter")
    idle(notebook)
    assert page.locator(".ice-kind").inner_text() == "Table"
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == 2

    # a search reads what nobody has unfolded, and leads to it
    press("/")
    page.keyboard.type("00001.parquet")
    page.locator(".ice-count-found", has_text="found").wait_for()
    idle(notebook)
    press("Enter")
    idle(notebook)
    assert chosen.get_attribute("data-id").startswith("file:")
    assert chosen.is_visible()
    press("Escape")

    # another snapshot; then one to compare with
    run(notebook, "w.select(snapshot=w.snapshots[2]['id'])")
    page.wait_for_function("document.querySelector('.ice-count').textContent.startsWith('3/')")
    idle(notebook)
    earlier = rows(notebook, "snapshot:").get_attribute("data-id")
    run(notebook, "w.select(snapshot=w.snapshots[-1]['id'], against=w.snapshots[2]['id'])")
    page.locator(".ice-legend").wait_for()
    idle(notebook)
    removed = rows(notebook, earlier.replace("snapshot", "manifest"))
    assert removed.count() > 0
    assert removed.first.locator("[aria-label=removed]").count() == 1
    run(notebook, "w.select(against='')")
    page.wait_for_selector(".ice-legend", state="hidden")
    idle(notebook)

    # what takes long is shown as coming, is given up at once, and keeps nothing waiting
    run(notebook, _SLOW.format(first=first))
    page.wait_for_timeout(300)
    rows(notebook, first).first.locator(".ice-twisty").click()
    page.wait_for_selector(f".ice-row[data-id='{first}'][aria-busy=true]")
    cancel = page.locator(".ice-busy").get_by_role("button", name="Cancel")
    cancel.click()
    page.wait_for_selector(f".ice-row[data-id='{first}'][aria-expanded=false]", timeout=2_000)
    rows(notebook, second).first.locator(".ice-twisty").click()
    page.wait_for_selector(".ice-row[data-id^='file:']", timeout=10_000)
    run(notebook, "gate.set(); Forest.grow = grow")
    idle(notebook)

    # an error says what to do, and the next answer takes it away
    run(notebook, "w.select('file:1:2:3')")
    error = page.locator(".ice-error")
    error.wait_for()
    assert "file:1:2:3" in error.inner_text()
    rows(notebook, "table").click()
    page.wait_for_selector(".ice-error", state="hidden")
    idle(notebook)
    assert page.locator(".ice-kind").inner_text() == "Table"

    # a second view: unfolding, selection and tab are the widget's; list or picture is each view's own
    page.evaluate(
        """() => {
            const { content } = window.jupyterapp.shell.currentWidget;
            content.activeCellIndex = 1;
            window.jupyterapp.commands.execute("notebook:create-output-view");
        }"""
    )
    page.wait_for_function("document.querySelectorAll('.ice-panes > .ice-map').length === 2")
    idle(notebook)
    maps = page.locator(".ice-panes > .ice-map")
    lists = [maps.nth(i).evaluate("(e) => e.classList.contains('ice-as-list')") for i in (0, 1)]
    assert sorted(lists) == [False, True]
    ids = "(e) => [...e.querySelectorAll('.ice-row')].map((r) => r.dataset.id + r.ariaSelected + r.ariaExpanded)"
    page.locator(".ice-as-list .ice-row[data-id^='root:'] .ice-twisty").click()
    idle(notebook)
    assert maps.nth(0).evaluate(ids) == maps.nth(1).evaluate(ids)
    page.locator(".ice-part[data-part=scan]").first.click()
    page.wait_for_function("document.querySelectorAll('.ice-part[data-part=scan][aria-selected=true]').length === 2")
    page.wait_for_function("document.querySelectorAll('.ice-part-panel:not([hidden]) .ice-map').length >= 0")
    idle(notebook)

    # the cell runs again: the elements that JupyterLab keeps of its output hold nothing of the widget
    page.evaluate(
        """() => {
            window.kept = [...document.querySelectorAll('.ice-host')];
            window.jupyterapp.commands.execute('notebook:run-all-cells');
        }"""
    )
    page.wait_for_function("window.kept.length === 2 && window.kept.every((host) => !host.childElementCount)")


def test_names_stay_names(notebook: Any, tmp_path: Path, hostile: Path, large: Path) -> None:
    moved = {f"{large.parents[1].as_uri()}": str(large.parents[1])}
    show(notebook, tmp_path, f"ix.open({str(hostile)!r}, moved={moved!r}, allow={str(large.parents[1])!r}).explore()")
    assert "<img" in notebook.page.locator(".ice-panes .ice-tree").inner_text()
    assert "<img" in notebook.page.locator(".ice-timeline").inner_text()
    for kind in ("snapshot:", "table", "metadata", "root:", "manifest:"):
        rows(notebook, kind).first.click()
        idle(notebook)
        for summary in notebook.page.locator(".ice-rest summary").all():
            summary.click()
        for tab in notebook.page.locator(".ice-tab").all():
            tab.click()
            idle(notebook)
    assert notebook.page.locator(".ice-widget img, .ice-widget script").count() == 0
    assert notebook.page.title() != "owned"


def views_of(notebook: Any) -> tuple[Any, Any]:
    """Open a second view of the widget beside the notebook, and return both."""
    page = notebook.page
    page.evaluate(
        """() => {
            const { content } = window.jupyterapp.shell.currentWidget;
            content.activeCellIndex = 1;
            window.jupyterapp.commands.execute("application:set-mode", { mode: "multiple-document" });
            window.jupyterapp.commands.execute("notebook:create-output-view");
        }"""
    )
    page.wait_for_function("document.querySelectorAll('.ice-widget').length === 2")
    idle(notebook)
    views = page.locator(".ice-widget")
    return views.nth(0), views.nth(1)


def test_two_views_and_a_kernel_that_restarts(notebook: Any, tmp_path: Path) -> None:
    """What the views share is in traits; what is open in one is its own. Without a kernel nothing hangs."""
    page = notebook.page
    page.set_viewport_size({"width": 700, "height": 1800})  # each view is narrow: details are a drawer
    show(notebook, tmp_path, "ix.sample('trips').explore(height=700)", as_list=False)
    one, other = views_of(notebook)

    def both(script: str) -> list[Any]:
        return [view.evaluate(script) for view in (one, other)]

    height = "(e) => Math.round(e.getBoundingClientRect().height)"
    tab = "(e) => e.querySelector('.ice-part[aria-selected=true]').dataset.part"

    # height, what is collapsed, the size of texts and the tab are shared, whichever view changes them
    assert both(height) == [700, 700]
    edge = one.get_by_role("separator").last
    edge.focus()
    page.keyboard.press("ArrowDown")
    idle(notebook)
    assert both(height) == [740, 740]
    other.get_by_role("button", name="Collapse the timeline").click()
    idle(notebook)
    assert [view.locator(".ice-axis").is_visible() for view in (one, other)] == [False, False]
    one.get_by_role("button", name="Larger text").click()
    idle(notebook)
    assert len(set(both("(e) => getComputedStyle(e).zoom + getComputedStyle(e).fontSize"))) == 1
    other.locator(".ice-part[data-part=problems]").click()
    idle(notebook)
    assert both(tab) == ["problems", "problems"]
    one.locator(".ice-part[data-part=tree]").click()
    idle(notebook)
    assert both(tab) == ["tree", "tree"]

    # the drawer, the results of the omnibox, and the list of keys are each view's own
    assert [view.locator(".ice-detail").is_visible() for view in (one, other)] == [False, False]
    one.locator(".ice-handle").click()
    idle(notebook)
    assert [view.locator(".ice-detail").is_visible() for view in (one, other)] == [True, False]
    one.locator(".ice-handle").click()
    other.locator(".ice-omni-input").click()
    page.keyboard.type("m1.avro")
    other.locator(".ice-omni-item").first.wait_for()
    assert one.locator(".ice-omni-item").count() == 0
    page.keyboard.press("Enter")
    idle(notebook)
    chosen = both("(e) => e.querySelector('.ice-map [role=treeitem][aria-selected=true]').dataset.id")
    assert chosen[0] == chosen[1] and chosen[0].startswith("manifest:"), "the selection is shared again"
    assert [view.locator(".ice-detail").is_visible() for view in (one, other)] == [False, True]

    # the kernel restarts: both say so, keep what was read, and nothing waits
    page.evaluate("() => window.jupyterapp.shell.widgets('main').next().value.sessionContext.session.kernel.restart()")
    page.wait_for_timeout(1500)
    one.locator(".ice-omni-input").click()
    page.keyboard.type("deletes")
    for view in (one, other):
        view.locator(".ice-part[data-part=deletes]").click()
        view.locator(".ice-error", has_text="The kernel has ended or was restarted.").wait_for(timeout=15_000)
    assert both("(e) => e.ariaBusy") == ["false", "false"]
    assert [view.get_by_text("Not loaded: the kernel has ended.").is_visible() for view in (one, other)] == [True, True]
    for view in (one, other):
        view.locator(".ice-part[data-part=tree]").click()
        assert view.locator(".ice-map").is_visible()
    one.get_by_role("button", name="Expand the timeline").click()
    assert [view.locator(".ice-axis").is_visible() for view in (one, other)] == [True, True], (
        "the browser does it alone"
    )
    assert both("(e) => e.querySelector('.ice-map [role=treeitem][aria-selected=true]').dataset.id") == chosen
    assert both("(e) => e.ariaBusy") == ["false", "false"]
    notebook.errors.clear()  # JupyterLab says that its connection is gone
