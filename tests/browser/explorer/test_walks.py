"""Random walks: whatever is clicked, typed and pressed, in whatever order, a widget stays whole.

`_WRONG` defines what must hold after each step, and a view that is made of the same traits afterwards shows the same.
`make test-long` walks farther.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.widgets import CommitLab, DeletionVectors, Explorer, FileMap, Problems, ScanLab, Timeline
from tests.browser.bare import BarePage, bare_page
from tests.browser.harness import ROOT
from tests.helpers.sampling import one_of

STEPS = 40
KEYS = (
    *("Tab", "Tab", "Tab", "Shift+Tab", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowLeft"),
    *("Enter", "Enter", "Space", "Escape", "Home", "End", "PageDown", "PageUp", "/", "+", "-", "0", "a", "Backspace"),
    *("Shift+ArrowRight", "Shift+ArrowLeft", "Control+Home", "Control+End"),
)
TEXTS = ("", "1", "0", "-1", "1e400", "nan", "a", "main", "parquet", "'", '"', "<b>x</b>", "\\", "%s", "{}", "x" * 400)
FILTERS = ("rider = 'guest'", "trip_id < 50", "started_at >= '2024-05-01'", "nonsense = 4", "true", "not (", "é\u202e")
PARTS = ("tree", "files", "rows", "scan", "commit", "problems", "deletes")

# What can be clicked; by kind, as there are hundreds of cells for one button.
_TARGETS = """() => {
  const kinds = ["button:not([role=tab])", "[role=tab]", "[role=treeitem]", ".ice-twisty", "[role=grid] :is(td, th)",
    ".ice-open", "summary", "input", "select", "canvas", "label"];
  const seen = (one) => one.checkVisibility({ visibilityProperty: true }) && !/Full screen/.test(one.textContent);
  window.targets = kinds.map((kind) => [...document.querySelectorAll(`#host :is(${kind})`)].filter(seen));
  return window.targets.map((all) => all.length);
}"""

_WRONG = """() => {
  const wrong = [];
  const root = document.querySelector("#host .ice-widget");
  const seen = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length;
  const all = (kind, box = root) => [...box.querySelectorAll(kind)].filter(seen);
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  if (new Set(ids).size < ids.length) wrong.push("an id is there twice");
  for (const name of ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant", "for"])
    for (const one of root.querySelectorAll(`[${name}]`))
      for (const id of one.getAttribute(name).split(" ").filter(Boolean))
        if (!ids.includes(id)) wrong.push(`${name} of ${one.className} leads nowhere`);
  for (const box of all("[role=grid], [role=tree], [role=tablist]")) {
    const inside = all("*", box);
    const stops = inside.filter((one) => one.tabIndex >= 0);
    if (stops.length !== 1 && inside.some((one) => one.hasAttribute("tabindex")))
      wrong.push(`${box.role} ${box.ariaLabel} has ${stops.length} tab stops`);
  }
  for (const panel of all("[role=tabpanel]"))
    if (document.getElementById(panel.getAttribute("aria-labelledby"))?.ariaSelected !== "true")
      wrong.push(`${panel.id} is shown under another tab`);
  const text = root.innerText;
  const left = /.*(Reading|Loading|Looking) …?.*…/.exec(text) ?? /.*(undefined|\\[object |Traceback).*/.exec(text);
  if (left) wrong.push("says " + left[0]);
  if (all(".ice-busy button").length || root.ariaBusy === "true") wrong.push("is busy");
  const { selection, nodes, detail, expanded } = window.ice.state;
  const tree = root.querySelector(".ice-panes .ice-tree");
  if (tree && seen(tree)) {
    const chosen = [...tree.querySelectorAll("[aria-selected=true]")].map((one) => one.dataset.id);
    if (chosen.some((id) => id !== selection.node)) wrong.push(`the tree has ${chosen}, not ${selection.node}`);
    if (detail.id !== selection.node) wrong.push(`details are of ${detail.id}, not of ${selection.node}`);
    if (root.querySelector(".ice-detail h3").textContent !== detail.title) wrong.push("details have another title");
    const end = root.querySelector(".ice-panes .ice-crumbs [aria-current]")?.textContent;
    if (nodes[selection.node] && end !== nodes[selection.node].label) wrong.push("the path ends elsewhere");
    if (new Set(expanded).size < expanded.length) wrong.push("a node is unfolded twice");
  }
  if (root.scrollWidth > root.clientWidth + 1) wrong.push("scrolls sideways");
  return wrong;
}"""

# Of a view what traits tell, not what is its own (what is typed, unfolded in the details, scrolled, and which cell of
# the files the arrow keys have reached).
_SHOWN = """() => [".ice-tree [role=treeitem]", ".ice-crumbs li", ".ice-detail h3", ".ice-detail tbody tr",
  ".ice-scan-answer li", ".ice-scan-why :is(h4, p, li, th)", ".ice-steps button", ".ice-report-list li",
  ".ice-costs", ".ice-vector-head", ".ice-vector-facts", ".ice-compared", "[role=tab][aria-selected=true]",
  "[role=slider]:not(.ice-file-cells)"]
  .flatMap((kind) => [...document.querySelectorAll(`#host ${kind}`)].filter((one) => one.checkVisibility())
    .map((one) => `${kind}: ${one.textContent} ${one.ariaValueText ?? one.ariaExpanded ?? ""}`))"""


def _broken(folder: Path) -> ix.Table:
    """A table of which manifests are gone."""
    shutil.copytree(ROOT / "iceexplore" / "data" / "trips", folder / "trips")
    for manifest in (folder / "trips").rglob("*-m0.avro"):
        manifest.unlink()
    return ix.open(folder / "trips")


def _v4(folder: Path) -> ix.Table:
    """A V4 table of some commits."""
    lab = ix.empty({"id": "long", "name": "string"}, format_version=4)
    for _ in range(3):
        lab.append(3, rows=50)
    lab.row_delta(deletes={lab.table.inspect.files()["file_path"].iloc[0]: [1, 2]})
    return lab.table


TABLES: dict[str, Callable[[Path], ix.Table]] = {"sample": lambda _: ix.sample("trips"), "broken": _broken, "v4": _v4}
WIDGETS = {kind.__name__: kind for kind in (Explorer, FileMap, Timeline, ScanLab, CommitLab, Problems, DeletionVectors)}


class Walk:
    """Steps at random in a page that shows a widget."""

    def __init__(self, bare: BarePage, seed: int) -> None:
        self.bare, self.page = bare, bare.page
        self.random = random.Random(seed)
        self.steps: list[str] = []

    def step(self) -> None:
        """Do something, and see that all is as it must be."""
        acts = [self.click] * 8 + [self.key] * 8 + [self.write, self.choose, self.resize, self.python]
        act = self.random.choice(acts)
        self.steps.append(act.__name__)
        inside = self.page.evaluate("document.activeElement.closest('.ice-widget') !== null")
        self.steps[-1] += f" {act()}"
        self.page.wait_for_timeout(40)
        for _ in range(8):  # what is typed is asked for after a while
            self.bare.push()
            if not (wrong := self.page.evaluate(_WRONG)):
                break
            self.page.wait_for_timeout(250)
        assert wrong == [], self.log()
        assert not self.bare.errors, self.log()
        assert "bug in iceexplore" not in self.bare.widget.error.get("advice", ""), self.log()
        if inside and act == self.python:
            assert self.page.evaluate("document.activeElement !== document.body"), f"the focus is lost: {self.log()}"

    def log(self) -> str:
        return "\n".join([*self.steps, str(self.bare.errors), str(self.bare.widget.error)])

    def click(self) -> str:
        counts = self.page.evaluate(_TARGETS)
        kind = self.random.choice([i for i, n in enumerate(counts) if n])
        which = self.random.randrange(counts[kind])
        left, top, width, height, what = self.page.evaluate(
            """([kind, which]) => {
              const one = window.targets[kind][which];
              one.scrollIntoView({ block: "nearest", inline: "nearest" });
              const { left, top, width, height } = one.getBoundingClientRect();
              return [left, top, width, height, `${one.className}: ${one.textContent.slice(0, 30)}`];
            }""",
            [kind, which],
        )
        x, y = left + width * self.random.uniform(0.1, 0.9), top + height * self.random.uniform(0.1, 0.9)
        self.page.mouse.click(x, y, click_count=self.random.choice((1, 1, 1, 2)))
        return str(what)

    def key(self) -> str:
        pressed = self.random.choice(KEYS)
        self.page.keyboard.press(pressed)
        return pressed

    def write(self) -> str:
        boxes = self.page.locator("#host input:not([type=checkbox]):visible")
        if not boxes.count():
            return "nothing"
        text = self.random.choice((*TEXTS, *FILTERS))
        boxes.nth(self.random.randrange(boxes.count())).click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)
        self.page.keyboard.press(self.random.choice(("Enter", "Enter", "Tab", "Escape", "Shift")))
        return text[:30]

    def choose(self) -> str:
        lists = self.page.locator("#host select:visible")
        if not lists.count():
            return "nothing"
        one = lists.nth(self.random.randrange(lists.count()))
        values = one.evaluate("(one) => [...one.options].filter((o) => !o.hidden).map((o) => o.value)")
        value = self.random.choice(values or [""])
        if values:
            one.select_option(value)
        return str(value)

    def resize(self) -> str:
        width = self.random.choice((340, 500, 700, 1000, 1400))
        self.page.set_viewport_size({"width": width, "height": 900})
        return str(width)

    def python(self) -> str:
        widget = self.bare.widget
        snapshots = [str(s["id"]) for s in getattr(widget, "snapshots", [])] or [widget.selection["snapshot"]]
        node = self.random.choice([*getattr(widget, "nodes", {}), "table"])
        change = self.random.choice(
            ({"node": node}, {"node": node}, {"snapshot": self.random.choice(snapshots)}, {"against": snapshots[0]})
        )
        widget.select(**change)
        if hasattr(widget, "tab"):
            widget.tab = self.random.choice(PARTS)
        return str(change)


SHORT = [("Explorer", "sample", 1), ("Explorer", "broken", 2), ("ScanLab", "broken", 3), ("CommitLab", "v4", 4)]
LONG = [(kind, table, seed) for kind in WIDGETS for table in TABLES for seed in range(5, 9)]


@pytest.mark.parametrize(
    ("kind", "table", "seed"), [*one_of(2, SHORT), *(pytest.param(*one, marks=pytest.mark.long) for one in LONG)]
)
def test_whatever_is_done_it_stays_whole(
    kind: str, table: str, seed: int, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the commit lab writes
    with bare_page(browser, WIDGETS[kind](TABLES[table](tmp_path)), width=1000) as bare:
        walk = Walk(bare, seed)
        for _ in range(STEPS):
            walk.step()
        shown = bare.page.evaluate(_SHOWN)
        bare.open()
        assert bare.page.evaluate(_SHOWN) == shown, f"made anew: {walk.log()}"
