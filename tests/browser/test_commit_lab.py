"""The commit lab in a real JupyterLab: a lesson by pointer, one by keyboard, names that would be code; under axe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

import iceexplore as ix
from iceexplore.widgets import CommitLab
from tests.browser.bare import bare_page

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
TABLE = """import iceexplore as ix
t = ix.empty({'id': 'long', 'region': 'string'}, format_version=3, partition_by='region', seed=5)
_ = t.append(5, rows=100), t.append(4, rows=20)"""


def show(notebook: Any, folder: Path, *cells: str) -> Any:
    """Run the cells; return the widgets that they show, once these are idle."""
    path = folder / "n.ipynb"
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(made, path)
    notebook.open(path)
    notebook.run_all()
    widgets = notebook.page.locator(".ice-widget")
    widgets.last.wait_for()
    idle(notebook)
    return widgets


def idle(notebook: Any) -> None:
    notebook.page.wait_for_timeout(250)
    notebook.page.wait_for_function("!document.querySelector('.ice-widget[aria-busy=true]')", timeout=60_000)
    assert notebook.page.locator(".ice-error:visible").count() == 0


def field(widget: Any, name: str) -> Any:
    return widget.locator(f"[data-field='{name}']:visible")


def report(widget: Any) -> str:
    """What is folded below the headline."""
    return str(widget.locator(".ice-report-list").text_content())


def marks(widget: Any, side: int, kind: str) -> list[str]:
    """The marks of the rows of a kind, in one of the two trees, as they are spoken."""
    rows = widget.locator(".ice-side").nth(side).locator(f".ice-row[data-id^='{kind}']")
    return [str(rows.nth(i).locator(".ice-mark").first.inner_text()) for i in range(rows.count())]


def apply(notebook: Any, widget: Any) -> None:
    widget.locator(".ice-commit-form .ice-go").click()
    idle(notebook)


def test_lessons(notebook: Any, tmp_path: Path) -> None:
    hostile = f"t.tag({HOSTILE!r}); t.set_properties({{{HOSTILE!r}: {HOSTILE!r}}})\nix.widgets.CommitLab(t)"
    widgets = show(notebook, tmp_path, TABLE, "ix.widgets.CommitLab(t)", hostile)
    by_pointer(notebook, widgets.nth(0), tmp_path)
    notebook.page.set_viewport_size({"width": 860, "height": 900})
    by_keyboard(notebook, widgets.nth(1))


def by_pointer(notebook: Any, widget: Any, tmp_path: Path) -> None:
    assert "the table is never written" in report(widget)
    figure = widget.locator(".ice-commit-figure img")
    assert figure.evaluate("(e) => e.complete && e.naturalWidth > 200")
    assert "Snapshot 2 (now)" in figure.get_attribute("alt")
    widget.locator(".ice-tab[data-key='trees']").click()
    assert widget.locator(".ice-side:visible").count() == 1
    assert widget.locator(".ice-commit-panel [role=tree] .ice-row").count() > 4
    # V4: one file a commit
    field(widget, "format_version").select_option("4")
    widget.locator(".ice-commit-form .ice-rest > summary").click()
    field(widget, "flush_data_files").fill("4")
    apply(notebook, widget)
    # Under load, the widget may be busy later than `idle` looks.
    widget.locator(".ice-report-list", has_text="Written:").wait_for(state="attached")
    assert "Added: 3 data files." in report(widget)
    assert "3 new entries are directly in the root" in report(widget)
    assert "rules checked, none broken" in report(widget)
    assert "Written: V4 2 files" in report(widget) and "v3 3 files" in report(widget)
    assert "2 PUTs, " in widget.locator(".ice-headline").inner_text()
    assert "next plan: " in widget.locator(".ice-headline").inner_text()
    assert widget.locator(".ice-side:visible").count() == 2
    for button in widget.locator(".ice-side:visible").get_by_role("button", name="Show as a list").all():
        button.click()  # pictures come first
    assert marks(widget, 1, "file:") == ["+"] * 3
    assert marks(widget, 1, "manifest:") == ["="] * 2 == marks(widget, 0, "manifest:")
    # selecting says what it is; folding and unfolding reads
    row = widget.locator(".ice-side").nth(1).locator(".ice-row[data-id^='manifest:']").first
    row.click()
    idle(notebook)
    assert "/metadata/" in widget.locator(".ice-side .ice-path").nth(1).inner_text()
    row.locator(".ice-twisty").click()
    idle(notebook)
    assert len(marks(widget, 1, "file:")) > 3
    widget.locator(".ice-tab[data-key='figure']").click()
    assert "Snapshot 2 (before)" in figure.get_attribute("alt")
    assert "Snapshot 3 (after)" in figure.get_attribute("alt")
    at_end = "(e) => (e = e.parentElement).scrollLeft + e.clientWidth > e.scrollWidth - 2"
    assert figure.evaluate(at_end), "what the step adds is in sight"
    # each tab has what it says
    for key, text in (
        ("files", "region="),
        ("manifests", "carried over"),
        ("rules", "added-is-change"),
        ("written", "root"),
    ):
        widget.locator(f".ice-tab[data-key='{key}']").click()
        idle(notebook)
        assert widget.locator(".ice-commit-panel .ice-table tbody tr").count() > 0
        assert text in widget.locator(".ice-commit-panel .ice-table").inner_text() or key == "files"
    widget.locator(".ice-tab[data-key='cost']").click()
    assert widget.locator(".ice-cost").count() == 4
    assert widget.locator(".ice-cost svg rect").count() > 12
    assert "root 1" in widget.locator(".ice-cost").first.inner_text()
    # another step, refused by its rule: it is drawn in the main pane; the form and the step shown stay
    height = widget.locator(".ice-commit-fields").bounding_box()["height"]
    field(widget, "operation").select_option("overwrite")
    field(widget, "rival").select_option("append")
    apply(notebook, widget)
    refused = widget.locator(".ice-commit-result > [role=alert]")
    assert "REFUSED: no-new-conflicting-files" in refused.locator("img").get_attribute("alt")
    assert widget.locator(".ice-commit-fields").bounding_box()["height"] >= height - 30
    assert "Refused: no-new-conflicting-files" in refused.inner_text()
    assert "MergingSnapshotProducer" in refused.inner_text()
    assert widget.locator(".ice-steps li").count() == 2
    field(widget, "isolation").select_option("snapshot")
    apply(notebook, widget)
    assert refused.inner_text() == ""
    assert "Another writer had committed first" in report(widget)
    # undo, redo, fork
    step = widget.locator(".ice-steps [aria-current=step]")
    assert step.inner_text() == "2 Overwrite data files"
    widget.get_by_role("button", name="Undo", exact=True).click()
    idle(notebook)
    assert step.inner_text() == "1 Append data files" and "Added: 3 data files." in report(widget)
    widget.get_by_role("button", name="Fork", exact=True).click()
    idle(notebook)
    assert widget.get_by_role("group", name="Forks").get_by_role("button").all_inner_texts() == ["main", "fork 1"]
    field(widget, "operation").select_option("compact")
    field(widget, "rival").select_option("")
    apply(notebook, widget)
    assert step.inner_text() == "2 Compact data files"
    widget.get_by_role("group", name="Forks").get_by_role("button", name="main").click()
    idle(notebook)
    widget.get_by_role("button", name="Redo", exact=True).click()
    idle(notebook)
    assert step.inner_text() == "2 Overwrite data files"
    # as Python, and saved
    widget.locator(".ice-tab[data-key='python']").click()
    code = widget.get_by_label("The steps as Python").inner_text()
    assert "s = t.simulate(format_version=4, seed=1, flush_data_files=4)" in code and "other = s.fork()" in code
    widget.locator(".ice-tab[data-key='save']").click()
    field(widget, "path").fill(str(tmp_path / "saved"))
    for _ in range(2):
        widget.get_by_role("button", name="Save", exact=True).click()
        idle(notebook)
        widget.locator(".ice-commit-panel form [role=status] > *").first.wait_for()
    assert (tmp_path / "saved" / "metadata").is_dir()
    assert "not an empty folder" in widget.locator(".ice-commit-panel form [role=status]").inner_text()


def by_keyboard(notebook: Any, widget: Any) -> None:
    """No pointer: Tab, arrows, Enter, letters. Names are markup; the page is narrow."""
    press, page = notebook.page.keyboard.press, notebook.page

    def focused(what: str) -> str:
        return str(page.evaluate(f"document.activeElement.{what} ?? ''"))

    field(widget, "format_version").focus()
    press("ArrowDown")  # 4 (upgrade first)
    assert page.evaluate("document.activeElement.value") == "4"
    press("Tab")
    assert focused("tagName") == "SUMMARY"
    press("Tab")
    assert focused("dataset.field") == "operation"
    page.keyboard.type("Roll")  # letters are for the field, not for the notebook
    press("Tab")
    idle(notebook)
    assert focused("dataset.field") == "to"
    for name in ("rival", ""):
        press("Tab")
        assert focused("dataset.field") == name
    assert focused("className") == "ice-go"
    field(widget, "operation").focus()
    press("Home")
    press("Tab")
    idle(notebook)
    assert focused("dataset.field") == "files"
    page.keyboard.type("2")
    press("Enter")  # from a field: what is typed counts
    idle(notebook)
    assert "Added: 2 data files." in report(widget), report(widget)
    # refs and properties by their names
    field(widget, "operation").focus()
    page.keyboard.type("Change prop")
    press("Tab")
    idle(notebook)
    assert focused("dataset.field") == "name"
    page.keyboard.type(HOSTILE)
    press("Enter")
    # Under load, the widget may be busy later than `idle` looks.
    widget.locator(".ice-report-list", has_text="onerror").wait_for(state="attached")
    idle(notebook)
    # tabs by arrows, cells by arrows
    widget.locator(".ice-tab[aria-selected=true]").focus()
    press("ArrowRight")
    assert focused("dataset.key") == "trees"
    press("ArrowRight")
    idle(notebook)
    assert focused("dataset.key") == "item"
    widget.locator(".ice-commit-panel .ice-above").get_by_text("after the step").wait_for()
    press("ArrowRight")
    idle(notebook)
    assert focused("dataset.key") == "files"
    press("End")
    idle(notebook)
    assert focused("dataset.key") == "save"
    for _ in range(4):
        press("ArrowLeft")
        idle(notebook)
    assert focused("dataset.key") == "rules"
    widget.locator(".ice-commit-panel .ice-table [tabindex='0']").first.wait_for()
    # the trees by keys
    press("Home")
    press("ArrowRight")
    idle(notebook)
    tree = widget.locator(".ice-side").nth(1).locator("[role=tree]")
    tree.locator("[tabindex='0']").focus()
    press("End")
    press("Home")
    assert focused("dataset.id") == "metadata"
    press("ArrowLeft")
    idle(notebook)
    assert tree.locator(".ice-row").count() == 1
    press("ArrowRight")
    idle(notebook)
    assert tree.locator(".ice-row").count() > 1
    # undo by the keyboard; the steps can be reached
    widget.get_by_role("button", name="Undo", exact=True).focus()
    press("Enter")
    idle(notebook)
    assert widget.locator(".ice-steps [aria-current=step]").inner_text() == "1 Append data files"
    widget.get_by_role("button", name="Start", exact=True).focus()
    press("Enter")
    idle(notebook)
    assert widget.locator(".ice-side:visible").count() == 1
    assert page.title() != "owned"
    assert widget.locator("img:not(.ice-figure img), script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_axe_finds_nothing_in_a_step(browser: Any) -> None:
    table = ix.empty({"id": "long", "region": "string"}, format_version=3, partition_by="region", seed=5)
    table.append(5, rows=100)
    widget = CommitLab(table)
    widget.apply("append", layout={"format_version": 4})
    widget.apply("delete", by="files", of=2)
    widget.fork("other")
    widget.undo()
    with bare_page(browser, widget) as bare:
        ask = {"n": 90, "do": "apply", "operation": "overwrite", "values": {}, "layout": {}, "rival": "append"}
        widget.commit_asked = ask
        bare.push()
        assert "Refused" in bare.page.locator("[role=alert]:visible").inner_text()
        bad_number(bare)
        bare.page.locator(".ice-tab[data-key='files']").click()
        bare.idle()
        bare.page.locator(".ice-commit-panel .ice-grid-bar .ice-input").focus()
        widget.commit_draft = {**widget.commit_draft, "tab": "cost"}
        bare.push()  # by Python, or in another view of it
        assert bare.page.evaluate("document.activeElement.dataset.key") == "cost", "not the page"
        widget.commit_draft = {**widget.commit_draft, "tab": "files"}
        bare.page.evaluate("document.activeElement.blur()")
        bare.push()
        bare.page.locator(".ice-commit-panel .ice-sort").first.click()
        bare.idle()
        bare.open()
        assert widget.pages["commit"]["sort"] == [0, "asc"], "another view leaves it as it is"
        for theme in ("light", "dark"):
            bare.page.evaluate(
                "(light) => { document.body.dataset.jpThemeLight = light; }", str(theme == "light").lower()
            )
            bare.page.evaluate(
                "(paper) => { document.body.style.background = paper; }", "#fff" if theme == "light" else "#111"
            )
            bare.page.wait_for_selector(f"[data-ice-theme={theme}]")
            for key in ("figure", "trees", "rules", "cost", "python", "save"):
                bare.page.locator(f".ice-tab[data-key='{key}']").click()
                bare.idle()
                bare.page.wait_for_timeout(200)
                assert bare.violations() == [], (theme, key)


def bad_number(bare: Any) -> None:
    """Text that is not a number is not replaced by the default."""
    done = bare.widget.commit_line["at"]
    bare.page.locator("[data-field=operation]").select_option("append")
    bare.idle()
    files = bare.page.locator("[data-field=files]:visible")
    assert files.get_attribute("placeholder") == "3"  # what an empty field means
    files.press("Control+a")
    files.press_sequentially("1e400")
    bare.press("Enter")
    assert "files='what was typed': give an integer" in bare.page.locator("[role=alert]:visible").inner_text()
    assert bare.widget.commit_line["at"] == done
    files.fill("")
    bare.press("Tab")
    assert files.input_value() == "", "the default is shown as a placeholder"
    bare.page.locator(".ice-commit-form .ice-go").click()
    bare.idle()
    assert bare.widget.commit_refused == {} and bare.widget.commit_line["at"] == done + 1
    assert "s.append(3, rows=1000)" in bare.widget.commit_line["code"]
    bare.page.locator("[data-field=operation]").select_option("evolve_schema")
    bare.idle()
    bare.page.locator("[data-field=type]:visible").focus()
    bare.press("Enter")
    assert bare.widget.commit_line["at"] == done + 2
    assert bare.page.evaluate("document.activeElement.dataset.field") == "type", "though the fields are others now"


def test_what_is_clicked_while_python_is_busy_is_all_done(browser: Any) -> None:
    """A notebook joins changes of a trait until the kernel has time: only the last of them arrives."""
    table = ix.empty({"id": "long"}, format_version=3, seed=5)
    table.append(2, rows=10)
    widget = CommitLab(table)
    for _ in range(4):
        widget.apply("append")
    with bare_page(browser, widget) as bare:
        for clicks, left in ((["Undo"] * 3, 1), (["Redo", "Redo", "Undo"], 2)):
            bare.page.evaluate("() => { ice.save = ice.model.save_changes; ice.model.save_changes = () => {}; }")
            for name in clicks:
                bare.page.get_by_role("button", name=name, exact=True).click()
            bare.page.evaluate("() => { ice.model.save_changes = ice.save; ice.model.save_changes(); }")
            bare.idle()
            assert widget.commit_line["at"] == left, clicks
            assert bare.page.get_by_role("button", name=f"{left} ", exact=False).get_attribute("aria-current") == "step"
