"""Twelve tasks that people have with a table, each by mouse and by keyboard: the clicks are counted, and limited.

Each click counts, also that into a field. What is written there, and the Enter that ends it, does not. By keyboard, the
focus is moved without counting, by Tab and arrows; keys that do something count. The limits of clicks are those of a
review of an earlier version: as many as it took, or two if that was more; three for tasks that were only half possible
then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.graph import diff, travel
from iceexplore.widgets import Explorer
from tests.browser.bare import BarePage, bare_page
from tests.browser.explorer.test_timeline import place
from tests.doctor import manifest_damages  # noqa: F401 (it registers its damages)
from tests.doctor.damages import DAMAGES, healthy
from tests.helpers.sampling import one_of

pytestmark = pytest.mark.browser

FILTER = "started_at >= '2024-05-01' and rider = 'guest'"

#: Whether an element has the focus and can get it by Tab, or by arrows within a group of which one member can.
_REACHED = """(element) => {
  element.focus();
  const group = element.closest("[role=tablist], [role=tree], [role=grid], [role=toolbar], [role=menu], table");
  const members = [element, ...(group?.querySelectorAll("[tabindex], button, a, input") ?? [])];
  return document.activeElement === element && members.some((member) => member.tabIndex >= 0);
}"""


@dataclass(frozen=True)
class Case:
    """What is asked of a table: a filter, the name of a file, and the place of an earlier snapshot on the timeline."""

    filter: str
    file: str
    earlier: int


class Hand:
    """Does what a person does, by mouse or by keyboard, and counts it."""

    def __init__(self, bare: BarePage, case: Case, table: ix.Table, *, keys: bool) -> None:
        self.bare, self.page, self.widget, self.case, self.table = bare, bare.page, bare.widget, case, table
        self.keys = keys
        self.count = 0

    def do(self, what: Any, key: str = "Enter") -> None:
        """Click on something; by keyboard, move the focus to it and press a key."""
        if self.keys:
            self.reach(what)
            self.press(key)
            return
        self.count += 1
        what.click()
        self.bare.idle()

    def reach(self, what: Any) -> None:
        """Move the focus to something."""
        assert what.evaluate(_REACHED), what

    def press(self, *keys: str) -> None:
        """Press keys that do something."""
        self.count += len(keys)
        self.bare.press(*keys)

    def write(self, where: Any, text: str, *, suggested: bool = False) -> None:
        """Write into a field, and end it with Enter, which takes the first suggestion or none.

        To begin, the field is clicked.
        """
        if self.keys:
            self.reach(where)
        else:
            self.count += 1
            where.click()
        where.press("ControlOrMeta+a")
        self.page.keyboard.type(text)
        if where.get_attribute("role") == "combobox" and not suggested:
            self.page.keyboard.press("Escape")  # closes what is suggested
        self.page.wait_for_timeout(300)  # while hits are looked for
        self.bare.idle()
        self.bare.press("Enter")

    def tab(self, name: str) -> None:
        """Go to a tab of the explorer."""
        views = self.page.get_by_role("tablist", name="Views of the explorer")
        self.do(views.get_by_role("tab", name=re.compile(f"^({name})")))

    def table_of_node(self, name: str) -> None:
        """Go to a table of the selected node."""
        self.do(self.page.get_by_role("tablist", name="Tables").get_by_role("tab", name=name, exact=True))

    def panel(self) -> Any:
        """The tab that is shown."""
        return self.page.locator(".ice-part-panel:visible")

    def rows(self) -> list[str]:
        """The rows of the table beside the tree."""
        return list(self.page.locator(".ice-detail .ice-table tbody tr:visible").all_inner_texts())


@dataclass(frozen=True)
class Task:
    """A task: the clicks that the review counted, whether it was half possible, what to do, and what proves it done."""

    name: str
    found: int
    do: Callable[[Hand], None]
    done: Callable[[Hand], None]
    half: bool = False
    begin: Callable[[Hand], None] | None = None

    @property
    def most(self) -> int:
        """The most clicks."""
        return 3 if self.half else min(self.found, 2)


def who_deleted(hand: Hand) -> None:
    hand.tab("Rows")
    hand.write(hand.panel().get_by_role("textbox", name="Value"), "95")


def deleted_by(hand: Hand) -> None:
    rows = hand.panel()
    rows.get_by_role("heading", name="1 row: 1 deleted").wait_for()
    hand.bare.idle()
    assert "deleted by vector" in rows.locator(".ice-scan-why").inner_text()


def why_read(hand: Hand) -> None:
    hand.tab("Scan")
    box = hand.panel().get_by_role("combobox", name="Filter", exact=True)
    hand.write(box, hand.case.filter)


def reasons_read(hand: Hand) -> None:
    assert hand.panel().locator("h3").first.inner_text().startswith("Reads 2 of 12 data files")
    reasons = hand.panel().locator(".ice-reasons")
    reasons.wait_for()
    assert "4 files" in reasons.inner_text()


def tiny_files(hand: Hand) -> None:
    hand.table_of_node("Files")
    hand.page.locator(".ice-detail .ice-grid[aria-busy=false]").wait_for()  # a heading before is of another table
    head = hand.page.locator(
        ".ice-detail .ice-table thead th button", has_text=re.compile(r"^(size|file_size_in_bytes)")
    )
    hand.do(head.first)


def tiny_first(hand: Hand) -> None:
    files = hand.table.inspect.files().sort_values("file_size_in_bytes")
    least = files["file_size_in_bytes"].iloc[0]
    names = {path.rpartition("/")[2] for path in files["file_path"][files["file_size_in_bytes"] == least]}
    shown = hand.widget.pages["detail"]
    assert [s["column"] for s in shown["sort"]] if isinstance(shown["sort"][0], dict) else shown["sort"]
    assert any(name[-20:] in hand.rows()[0] or name[:12] in hand.rows()[0] for name in names), hand.rows()[0]


def one_before(hand: Hand) -> None:
    if hand.keys:
        hand.reach(hand.page.get_by_role("slider", name="Snapshot"))
        hand.press("ArrowLeft", "ArrowLeft")
        return
    hand.count += 1
    hand.page.mouse.click(*place(hand.bare, hand.case.earlier))
    hand.bare.idle()


def its_change(hand: Hand) -> None:
    before, at = (s.snapshot_id for s in hand.table.snapshots[8:10])
    assert hand.widget.selection["snapshot"] == str(at)
    state = hand.table.state
    change = diff(travel(state, snapshot=before), travel(state, snapshot=at)).change
    assert change.words(), "a commit that changed files"
    head = hand.page.locator(".ice-above h4", has_text=change.words()[0]).first
    head.wait_for()
    assert all(word in head.inner_text() for word in change.words())


def vector_of_file(hand: Hand) -> None:
    hand.tab("Deletes")
    link = hand.panel().locator(".ice-table tbody .ice-open:visible").first
    hand.do(link.locator("xpath=ancestor::*[self::td or self::th][1]") if hand.keys else link)


def its_positions(hand: Hand) -> None:
    found = hand.widget.vector
    assert found["cardinality"] > 0
    hand.tab("Deletes") if hand.widget.tab != "deletes" else None
    assert f"{found['cardinality']:,}" in hand.panel().inner_text()


def small_manifests(hand: Hand) -> None:
    hand.table_of_node("Manifests")


def their_sizes(hand: Hand) -> None:
    rows = hand.rows()
    lengths = hand.table.inspect.manifests()["length"]
    assert len(rows) == len(lengths) == 4
    assert all(any(f"{n:,}" in row or f"{n / 1024:.1f} KiB" in row for row in rows) for n in lengths), rows


def append_in_v4(hand: Hand) -> None:
    hand.tab("Simulate")
    hand.page.wait_for_function("document.querySelector('.ice-commit-form')?.ariaBusy === 'false'")
    hand.do(hand.panel().get_by_role("button", name="Apply in V4"))


def written_in_v4(hand: Hand) -> None:
    figure = hand.panel().locator(".ice-commit-figure img")
    figure.wait_for()
    words = hand.panel().locator(".ice-headline").inner_text()
    assert "PUT" in words, words
    python = hand.widget.commit_line["code"]
    assert "format_version=4" in python and ".append(" in python, python


def compare(hand: Hand) -> None:
    if hand.keys:
        hand.reach(hand.page.get_by_role("slider", name="Snapshot"))
        hand.press("Shift+Home")
        return
    hand.count += 1
    hand.page.keyboard.down("Shift")
    hand.page.mouse.click(*place(hand.bare, 0))
    hand.page.keyboard.up("Shift")
    hand.bare.idle()


def compared(hand: Hand) -> None:
    first = hand.table.snapshots[0]
    assert hand.widget.selection["against"] == str(first.snapshot_id)
    change = diff(travel(hand.table.state, snapshot=first.snapshot_id), hand.table.state).change
    words = hand.page.locator(".ice-above h4").first.inner_text()
    assert all(word in words for word in change.words()), words


def find_file(hand: Hand) -> None:
    field = hand.page.get_by_role("combobox", name=re.compile("^Find"))
    hand.write(field, hand.case.file, suggested=True)


def found_file(hand: Hand) -> None:
    assert hand.widget.selected.kind == "data-file"
    assert hand.widget.selected.location.endswith(hand.case.file)


def save_picture(hand: Hand) -> None:
    hand.do(hand.page.get_by_role("button", name=re.compile("^Save the picture|^Save…")).first)
    with hand.page.expect_download() as started:
        hand.do(hand.page.get_by_role("button", name=re.compile("PNG")).first)
    hand.page.saved = Path(started.value.path()).read_bytes()


def saved_picture(hand: Hand) -> None:
    assert hand.page.saved.startswith(b"\x89PNG")
    width, height = (int.from_bytes(hand.page.saved[at : at + 4]) for at in (16, 20))
    assert width * 9 == height * 16, "of the shape of a slide"


def what_is_broken(hand: Hand) -> None:
    hand.tab("Problems|Health")
    hand.do(hand.page.get_by_role("button", name="Check the table"))


def broken_since(hand: Hand) -> None:
    found = hand.widget.doctor_report["findings"]
    assert found[0]["code"] == "file-twice"
    newest = hand.table.snapshots[-1]
    assert found[0]["since"]["snapshot"] == str(newest.snapshot_id)
    shown = hand.page.locator(".ice-diagnosis").first
    shown.wait_for()
    words = shown.inner_text()
    assert re.search("since", words, re.IGNORECASE), words
    assert str(newest.snapshot_id) in words, words


def a_step(hand: Hand) -> None:
    append_in_v4(hand)
    assert hand.widget.commit_line["at"] > 0


def undo(hand: Hand) -> None:
    hand.do(hand.panel().get_by_role("button", name="Undo", exact=True))


def undone(hand: Hand) -> None:
    line = hand.widget.commit_line
    assert line["at"] < len(line["steps"])


TASKS = (
    Task("Which commit deleted my row", 3, who_deleted, deleted_by),
    Task("Why does the scan read these files", 2, why_read, reasons_read),
    Task("Which files are tiny", 2, tiny_files, tiny_first, half=True),
    Task("What did a snapshot change", 1, one_before, its_change, half=True),
    Task("The deletion vector of a file", 2, vector_of_file, its_positions),
    Task("Small manifests", 1, small_manifests, their_sizes),
    Task("What V4 writes for an append", 4, append_in_v4, written_in_v4),
    Task("Compare two snapshots", 2, compare, compared),
    Task("Find a file by its path", 1, find_file, found_file),
    Task("A picture for slides", 2, save_picture, saved_picture),
    Task("What is broken, since when", 2, what_is_broken, broken_since, half=True),
    Task("Undo", 1, undo, undone, begin=a_step),
)
BROKEN = TASKS[10]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> ix.Table:
    """A table whose last commit added a file twice."""
    path = healthy(tmp_path_factory.mktemp("broken"))
    next(one for one in DAMAGES if one.name == "path_live_twice").damage(path)
    return ix.open(path)


@pytest.mark.parametrize(
    ("task", "keys"),
    # every other task by keys, and by mouse; the long run has both
    one_of(2, [(task, keys) for i, task in enumerate(TASKS) for keys in ((False, True) if i % 2 else (True, False))]),
    ids=lambda one: ("keys" if one else "mouse") if isinstance(one, bool) else one.name,
)
def test_a_task(browser: Any, broken: ix.Table, task: Task, keys: bool) -> None:
    table = broken if task is BROKEN else ix.sample("trips")
    with bare_page(browser, Explorer(table), width=1280) as bare:
        path = table.inspect.files()["file_path"].iloc[5]
        case = Case(FILTER, path.rpartition("/")[2], earlier=9)
        hand = Hand(bare, case, table, keys=keys)
        if task.begin:
            task.begin(hand)
        hand.count = 0
        task.do(hand)
        count = hand.count
        task.done(hand)
        assert keys or count <= task.most, f"{count} clicks"
        assert count <= 4, f"{count} keys"
