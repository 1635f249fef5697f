"""The harness notices what it is there for: otherwise the browser tests could not fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.harness import LabServer, notebook_page

pytestmark = pytest.mark.browser


def write(path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, path)
    return path


def test_runs_and_is_clean(notebook: Any, tmp_path: Path) -> None:
    notebook.open(write(tmp_path / "n.ipynb", "6 * 7", "print('second')"))
    notebook.run_all()
    assert notebook.output("6 * 7").inner_text().strip().endswith("42")
    notebook.theme("dark")
    assert notebook.page.evaluate("getComputedStyle(document.body).getPropertyValue('--jp-layout-color0')") != "white"


def test_a_failing_cell_fails(lab: LabServer, browser: Any, tmp_path: Path) -> None:
    with notebook_page(lab, browser) as page:
        page.open(write(tmp_path / "n.ipynb", "1 / 0", "2"))
        with pytest.raises(AssertionError, match="ZeroDivisionError"):
            page.run_all(30)


def test_another_host_is_noticed(lab: LabServer, browser: Any, tmp_path: Path) -> None:
    source = "from IPython.display import HTML; HTML('<img src=\"http://elsewhere.invalid/x.png\">')"
    with notebook_page(lab, browser) as page:
        page.open(write(tmp_path / "n.ipynb", source))
        page.run_all()
        page.page.wait_for_timeout(500)
        assert page.foreign_hosts() == {"elsewhere.invalid"}


def test_an_error_in_a_widget_is_noticed(lab: LabServer, browser: Any, tmp_path: Path) -> None:
    source = (
        "import anywidget\n"
        "class W(anywidget.AnyWidget):\n"
        "    _esm = 'export default { render() { setTimeout(() => { throw new Error(\"mine\") }) } }'\n"
        "W()"
    )
    with notebook_page(lab, browser) as page:
        page.open(write(tmp_path / "n.ipynb", source))
        page.run_all()
        page.page.wait_for_timeout(1000)
        assert any("mine" in error for error in page.our_errors())
