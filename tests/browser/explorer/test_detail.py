"""Details and tables in a real JupyterLab, by mouse and by keys alone, of a table whose every name is markup."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.explorer.test_explorer import notebook_of

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document['title']='owned'\">"
TABLE = f"""
import iceexplore as ix
bad = {HOSTILE!r}
s = ix.empty({{"id": "long", bad: "string", "n": "int"}}, partition_by=[bad], format_version=2, properties={{bad: bad}})
s.append([
    {{"location": f"/warehouse/db/events/data/{{bad}}/={{i:03d}}-{{bad}}.parquet", "record_count": 10 + i,
      "file_size_in_bytes": 1000, "partition": {{bad: bad}}, "lower_bounds": {{"id": i, bad: bad}},
      "upper_bounds": {{"id": i + 1, bad: bad + "x" * 900}}}}
    for i in range(130)
])
s.tag(bad)
w = s.table.explore()
"""


#: It lets a page copy only while it handles a click: an answer from Python comes later.
LIKE_SAFARI = """() => {
  let clicked = false;
  addEventListener("click", () => { clicked = true; setTimeout(() => (clicked = false)); }, true);
  document.execCommand = () => false;
  for (const how of ["write", "writeText"]) {
    const own = navigator.clipboard[how].bind(navigator.clipboard);
    navigator.clipboard[how] = (what) => clicked ? own(what) : Promise.reject(new DOMException("", "NotAllowedError"));
  }
}"""


@pytest.fixture
def shown(notebook: Any, tmp_path: Path) -> Any:
    """The explorer of the hostile table, with a clipboard."""
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    notebook.open(notebook_of(tmp_path / "n.ipynb", TABLE, "w"))
    notebook.run_all()
    notebook.page.locator(".ice-widget").wait_for()
    settled(notebook)
    return notebook


def settled(notebook: Any) -> None:
    notebook.page.wait_for_timeout(400)
    notebook.page.wait_for_selector(".ice-widget[aria-busy=false]")
    notebook.page.wait_for_function("!document.querySelector('.ice-grid[aria-busy=true]')")
    assert notebook.page.locator(".ice-error:visible").count() == 0


def python(notebook: Any, code: str) -> None:
    """Run code in the notebook's kernel."""
    notebook.page.evaluate(
        "(code) => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code}).done",
        code,
    )
    settled(notebook)


def copied(notebook: Any) -> str:
    notebook.page.wait_for_function(
        "document.querySelector('.ice-detail .ice-message').textContent.startsWith('Copied')"
    )
    text = str(notebook.page.evaluate("navigator.clipboard.readText()"))
    notebook.page.evaluate("() => { document.querySelector('.ice-detail .ice-message').textContent = '' }")
    return text


def first_column(notebook: Any) -> list[str]:
    return [
        text.strip("…")[:4]
        for text in notebook.page.locator(".ice-detail .ice-table tbody tr > :first-child").all_inner_texts()
    ]


def test_tables_by_mouse(shown: Any) -> None:
    page = shown.page
    tab = page.locator(".ice-tab[aria-selected=true]")

    # a row leads to its node, and its table stays
    assert tab.inner_text() == "Changes"
    page.get_by_role("tab", name="Manifests", exact=True).click()
    settled(shown)
    page.locator(".ice-detail .ice-open").first.click()
    settled(shown)
    assert page.locator(".ice-kind").inner_text().startswith("Data manifest")
    assert tab.inner_text() == "↑ Manifests"
    assert page.locator(".ice-detail .ice-table tr[aria-selected=true]").count() == 1

    # pages, by button and by number
    page.locator(".ice-tab", has_text="Entries").click()
    settled(shown)
    status = page.locator(".ice-range")
    assert status.inner_text() == "1–50 of 130 rows"
    number = page.locator(".ice-number")
    number.fill("3")
    number.press("Enter")
    settled(shown)
    assert status.inner_text() == "101–130 of 130 rows"

    # sorted up, down, and unsorted
    header = page.locator("th", has=page.get_by_role("button", name="record_count", exact=True))
    header.locator(".ice-sort").hover()  # scrolls it into view: a click at once might meet it on its way
    settled(shown)
    for way, first in (("ascending", "=000"), ("descending", "=129"), ("none", "=000")):
        header.locator(".ice-sort").click()
        settled(shown)
        assert header.get_attribute("aria-sort") == way
        assert first_column(shown)[0] == first
    header.locator(".ice-sort").click()
    settled(shown)

    # a column's filter, and one for any column that holds while it is typed
    header.hover()
    header.locator(".ice-funnel").click()
    page.locator(".ice-detail .ice-select").nth(1).select_option(">")
    page.keyboard.type("130")
    page.keyboard.press("Enter")
    settled(shown)
    assert status.inner_text() == "9 rows (of 130)"
    page.locator(".ice-detail .ice-input[type=search]").fill(f"=122-{HOSTILE}")
    status.filter(has_text="1 row (of 130)").wait_for()
    settled(shown)
    assert status.inner_text() == "1 row (of 130)"
    page.keyboard.press("Enter")
    settled(shown)
    assert page.locator(".ice-chip").all_inner_texts() == [
        "record_count > 130\n×",
        f"any column contains =122-{HOSTILE}\n×",
    ]
    page.locator(".ice-chip").last.click()
    settled(shown)
    assert status.inner_text() == "9 rows (of 130)"

    # what leaves it: a cell with all its text, a row, the filtered table
    page.evaluate(LIKE_SAFARI)
    page.locator(".ice-detail .ice-table tbody tr").nth(1).locator("td, th").first.click()
    settled(shown)
    page.get_by_role("button", name="Copy cell").click()
    assert copied(shown) == f"=122-{HOSTILE}.parquet"
    page.get_by_role("button", name="Copy row as JSON").click()
    record = json.loads(copied(shown))
    assert (record["record_count"], record["partition"]) == (132, {HOSTILE: HOSTILE})
    assert isinstance(record["snapshot_id"], str), "JavaScript would lose digits"
    with page.expect_download() as started:
        page.get_by_role("button", name="Download all rows as CSV").click()
    text = Path(started.value.path()).read_text(encoding="utf-8-sig")
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [line["record_count"] for line in lines] == [str(n) for n in range(131, 140)]
    assert {line["file"][:2] for line in lines} == {"'="}, "a spreadsheet must not calculate it"

    # nothing matches
    page.locator(".ice-detail .ice-input[type=search]").fill("nowhere")
    page.locator(".ice-detail .ice-empty", has_text="None of the 130 rows match.").wait_for()
    settled(shown)
    page.locator(".ice-detail .ice-empty button").click()
    settled(shown)
    assert status.inner_text() == "1–50 of 130 rows"

    # columns hidden and shown
    page.locator(".ice-detail .ice-menu:last-child > summary").click()
    page.locator(".ice-detail .ice-menu-list input").nth(1).click()
    settled(shown)
    assert page.locator(".ice-detail .ice-menu:last-child > summary").inner_text() == "Columns 7/11"
    assert page.get_by_role("columnheader", name="status").count() == 0
    page.locator(".ice-detail .ice-menu-list input").nth(1).click()
    settled(shown)
    page.locator(".ice-detail .ice-menu:last-child > summary").click()

    # what the tree selects is found in its parent's table
    page.locator(".ice-detail .ice-open").first.click()
    settled(shown)
    assert page.locator(".ice-kind").inner_text().startswith("Data file")
    assert tab.inner_text() == "↑ Entries"
    python(shown, "w.select(w.selection['node'].rsplit(':', 1)[0] + ':111')")
    settled(shown)
    chosen = page.locator(".ice-detail .ice-table tr[aria-selected=true]")
    assert chosen.inner_text().startswith("=111")
    assert chosen.evaluate(
        "(row) => { const a = row.getBoundingClientRect(), b = row.closest('.ice-panel').getBoundingClientRect();"
        " return a.top >= b.top && a.bottom <= b.bottom + 1 }"
    ), "it is in sight"

    # what a field means, its section of the spec, a copy of the location, a long value unfolded
    help_ = page.locator(".ice-why", has_text="record_count")
    help_.click()
    assert help_.get_attribute("aria-expanded") == "true"
    link = page.locator(".ice-help:visible a")
    assert link.inner_text() == "Data File Fields"
    assert link.get_attribute("href") == "https://iceberg.apache.org/spec/#data-file-fields"
    assert link.get_attribute("rel") == "noopener noreferrer"
    page.locator(".ice-path .ice-copy").click()
    page.wait_for_timeout(200)
    assert page.evaluate("navigator.clipboard.readText()").endswith(f"=111-{HOSTILE}.parquet")

    # its JSON, as written
    page.locator(".ice-tab", has_text="JSON").click()
    settled(shown)
    raw = json.loads(page.locator(".ice-text").inner_text())
    assert raw["data_file"]["record_count"] == 121
    assert raw["sequence_number"] is None, "before anything is inherited"
    assert f"=111-{HOSTILE}" in raw["data_file"]["file_path"]
    page.locator(".ice-tab", has_text="Columns").click()
    settled(shown)
    assert HOSTILE in page.locator(".ice-detail .ice-table").inner_text()

    # nothing of all that was executed
    for node in ("table", "metadata", "ref:main"):
        python(shown, f"w.select({node!r})")
        for each in page.locator(".ice-tab").all():
            each.click()
            settled(shown)
    assert page.locator(".ice-widget img, .ice-widget script").count() == 0
    assert page.title() != "owned"


def focused(notebook: Any) -> str:
    return str(notebook.page.evaluate("document.activeElement.textContent"))


def test_tables_by_keys_alone(shown: Any) -> None:
    page, press = shown.page, shown.page.keyboard.press
    python(shown, "w.select(next(n for n in w.nodes if n.startswith('manifest:')))")
    page.locator(".ice-detail .ice-menu:last-child > summary").click()
    page.get_by_label("location", exact=True).check()
    settled(shown)
    page.keyboard.press("Escape")
    page.locator(".ice-tab[aria-selected=true]").focus()

    # tabs
    press("ArrowRight")
    settled(shown)
    assert focused(shown) == "↑ Manifests"
    press("End")
    settled(shown)
    assert focused(shown) == "JSON"
    assert page.locator(".ice-text").is_visible()
    press("Home")
    settled(shown)
    assert focused(shown) == "Entries"

    # the filter is the next stop
    press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "Column to filter"
    press("Tab")
    page.keyboard.type("-<img")
    page.wait_for_timeout(500)
    settled(shown)
    press("Enter")
    settled(shown)
    assert page.locator(".ice-chip").count() == 1
    assert page.evaluate("document.activeElement.type") == "search"

    # the table is one stop, its cells are walked
    for _ in range(8):
        press("Tab")
        if page.evaluate("document.activeElement.closest('.ice-table') !== null"):
            break
    assert focused(shown).startswith("=000")
    assert page.locator(".ice-detail .ice-table [tabindex='0']").count() == 1
    press("ArrowDown")
    assert focused(shown).startswith("=001")
    press("End")
    assert focused(shown).startswith("…") or "/warehouse" in focused(shown)
    press("Control+c")
    assert copied(shown).startswith("/warehouse/db/events/data/<img")
    press("Home")
    press("PageDown")
    settled(shown)
    assert page.locator(".ice-range").inner_text() == "51–100 of 130 rows"
    assert focused(shown).startswith("=051")
    press("Control+End")
    assert page.evaluate("document.activeElement.closest('tr').textContent").startswith("=099")

    # to the header: sorted by Enter, filtered by the button beside
    press("Control+Home")
    press("ArrowUp")
    for _ in range(12):  # a column sorts, filters and explains
        press("ArrowRight")
    assert focused(shown) == "record_count"
    press("Enter")
    settled(shown)
    press("Enter")
    settled(shown)
    assert page.locator("th[aria-sort=descending]").count() == 1
    assert focused(shown).startswith("record_count"), "focus stays while the table is drawn anew"
    assert first_column(shown)[0] == "=129"
    press("ArrowRight")
    press("Enter")
    assert page.evaluate("document.activeElement.type") == "search"
    assert page.locator(".ice-detail .ice-select").first.input_value() == "4"
    page.keyboard.type("139")
    press("Enter")
    settled(shown)
    assert page.locator(".ice-range").inner_text() == "1 row (of 130)"

    # a row is opened
    page.locator(".ice-detail .ice-table [tabindex='0']").focus()
    press("Control+Home")
    press("ArrowDown")
    press("ArrowDown")
    press("Enter")
    settled(shown)
    assert page.locator(".ice-kind").inner_text().startswith("Data file")
    assert page.locator(".ice-detail .ice-table tr[aria-selected=true]").count() == 1

    # a field is explained, and its explanation closed
    page.locator(".ice-why").first.focus()
    press("Enter")
    assert page.locator(".ice-help:visible").count() == 1
    press("Escape")
    assert page.locator(".ice-help:visible").count() == 0
    # the notebook kept its hands off
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == 2
    assert page.title() != "owned"
