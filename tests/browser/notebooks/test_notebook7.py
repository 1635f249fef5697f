"""What only a notebook adds: Notebook 7, widgets that are linked, cells that run again, kernels that end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.harness import LabServer, Notebook7Page, notebook_page

pytestmark = pytest.mark.browser

LINKED = """import iceexplore as ix, ipywidgets, threading
from iceexplore.widgets import DeletionVectors, Problems, Timeline
t = ix.sample("trips")
a, b = Timeline(t), Timeline(t)
c = Timeline(t, selection=b)
link = ipywidgets.jslink((a, "selection"), (b, "selection"))
p, d = Problems(t, selection=c), DeletionVectors(t, selection=c)
display(a, b, c, p, d)"""

AGAIN = """made = Timeline(t, selection=a)
made"""


def write(path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, path)
    return path


def answers(notebook: Any, code: str) -> str:
    """What a kernel prints."""
    return str(
        notebook.page.evaluate(
            """async (code) => {
              const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
              const future = kernel.requestExecute({ code });
              let text = "";
              future.onIOPub = ({ content }) => (text += content.text ?? (content.traceback ?? []).join(""));
              await future.done;
              return text;
            }""",
            code,
        )
    ).strip()


def values(notebook: Any) -> list[str]:
    return [line.get_attribute("aria-valuenow") for line in notebook.page.locator(".ice-axis").all()]


def test_linked_widgets_cells_run_again_and_a_kernel_that_ends(notebook: Any, tmp_path: Path) -> None:
    notebook.open(write(tmp_path / "n.ipynb", LINKED, AGAIN))
    notebook.run_all()
    page = notebook.page
    page.wait_for_function("document.querySelectorAll('.ice-axis').length === 4")
    # jslink in the browser, a link of Python's, and one that was made with selection=: all of them in step
    page.locator(".ice-axis").first.focus()
    page.keyboard.press("Home")
    page.wait_for_function("[...document.querySelectorAll('.ice-axis')].every((e) => e.ariaValueNow === '1')")
    same = "print({w.selection['snapshot'] for w in (a, b, c, p, d, made)} == {a.snapshots[0]['id']})"
    assert answers(notebook, same) == "True"
    # the kernel is busy, the browser's link works all the same
    page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
        ".requestExecute({ code: 'import time; time.sleep(4)' }) }"
    )
    page.locator(".ice-axis").first.focus()
    page.keyboard.press("End")
    page.wait_for_function(
        "[...document.querySelectorAll('.ice-axis')].slice(0, 2).every((e) => e.ariaValueNow === '12')", timeout=3_000
    )
    page.wait_for_function("[...document.querySelectorAll('.ice-axis')].every((e) => e.ariaValueNow === '12')")
    # a cell that runs again leaves one widget, not three
    count = "print(len(ipywidgets.widgets.widget._instances))"
    before = answers(notebook, count)
    for _ in range(2):
        page.evaluate(
            "() => { const notebook = window.jupyterapp.shell.currentWidget.content;"
            " notebook.activeCellIndex = 1; notebook.deselectAll();"
            " return window.jupyterapp.commands.execute('notebook:run-cell') }"
        )
        page.wait_for_timeout(500)
    assert answers(notebook, count) == before
    page.wait_for_function("document.querySelectorAll('.ice-axis').length === 4")
    threads = "import threading; print([t.name for t in threading.enumerate() if t.name.startswith('iceexplore')])"
    assert answers(notebook, threads) == "[]"
    # the kernel is started again: whoever asks for something hears so, and what was read before stays to be looked at
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.locator(".ice-axis").first.focus()
    page.keyboard.press("Home")
    page.wait_for_selector(".ice-error:visible", timeout=20_000)
    assert "kernel has ended" in page.locator(".ice-error:visible").first.inner_text()
    # nobody answered the other one: it is taken back, at once or as soon as the notebook knows that there is nobody
    page.locator(".ice-axis").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.ice-axis').ariaValueNow === '12'", timeout=20_000)
    page.locator(".ice-lost").first.wait_for()


def test_a_killed_kernel_is_noticed(notebook: Any, tmp_path: Path) -> None:
    notebook.open(write(tmp_path / "n.ipynb", "import iceexplore as ix\nix.sample('trips').explore()"))
    notebook.run_all()
    line = notebook.page.locator(".ice-axis")
    line.wait_for()
    notebook.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
        ".requestExecute({ code: 'import os; os._exit(1)' }) }"
    )
    notebook.page.wait_for_timeout(1500)
    line.focus()
    notebook.page.keyboard.press("Home")
    error = notebook.page.locator(".ice-widget .ice-error")
    notebook.page.wait_for_selector(".ice-widget .ice-error:visible", timeout=15_000)
    assert "kernel has ended" in error.inner_text()
    assert notebook.page.locator(".ice-widget").get_attribute("aria-busy") == "false"
    notebook.errors.clear()  # JupyterLab says that its connection is gone


def test_notebook_7(lab: LabServer, browser: Any, tmp_path: Path) -> None:
    with notebook_page(lab, browser, kind=Notebook7Page) as notebook:
        notebook.open(write(tmp_path / "n.ipynb", "import iceexplore as ix\nw = ix.sample('trips').explore()\nw"))
        notebook.run_all()
        page = notebook.page
        page.locator(".ice-axis").focus()
        page.keyboard.press("Home")
        page.wait_for_selector(".ice-axis[aria-valuenow='1']")
        for tab in ("scan", "commit", "problems", "deletes", "tree"):
            page.locator(f"[data-part={tab}]").click()
            page.wait_for_timeout(300)
            page.wait_for_selector(".ice-widget[aria-busy=false]")
            filled = "[...document.querySelectorAll('.ice-part-panel')].some((e) => !e.hidden && e.innerText.trim())"
            page.wait_for_function(filled)
            assert page.locator(".ice-error:visible").count() == 0
        notebook.assert_clean()
