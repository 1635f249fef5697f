"""The twelve tasks of the browser tests, timed in a JupyterLab of their own, each with a fresh kernel.

For each task and table: the clicks, the time from the last input until the answer is painted, the time until something
says that or how far reading is, and the processor time of the kernel from the first input to the answer.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from generate import Shape, generate

__all__ = ["CASES", "TaskCase", "Timed", "limits", "timed_tasks"]

tasks: Any = importlib.import_module("tests.browser.explorer.test_tasks")
harness: Any = importlib.import_module("tests.browser.harness")

_MOST = 180_000


@dataclass(frozen=True)
class TaskCase:
    """A table: how a notebook opens it, what is asked of it, its snapshots; seconds wanted, and until progress."""

    name: str
    source: Callable[[], str]
    case: Any
    snapshots: int
    wanted: float
    progress: float | None = None
    has_data: bool = False


@dataclass(frozen=True)
class Timed:
    """What a task took: clicks, seconds until the answer is painted and until a first sign, processor time."""

    task: str
    clicks: int
    painted: float
    first: float | None
    cpu: float


def _generated(files: int, deletes: int, manifests: int) -> Callable[[], str]:
    shape = Shape(files=files, deletes=deletes, manifests=manifests, partitioned=True)
    return lambda: f"ix.open({str(generate(shape))!r})"


def _asked(manifests: int) -> Any:
    return tasks.Case("quantity >= 0 and quantity < 1000", "000000077-0-00001", manifests - 3)


CASES = (
    TaskCase(
        "the sample", lambda: "ix.sample('trips')", tasks.Case(tasks.FILTER, "0-00001.parquet", 9), 12, 0.2,
        has_data=True,
    ),
    TaskCase("100,000 files", _generated(90_000, 10_000, 11), _asked(11), 11, 1.0),
    TaskCase("1,100,000 files", _generated(1_000_000, 100_000, 110), _asked(110), 110, 2.0, progress=0.2),
)  # fmt: skip

#: When a task is done, as an expression of JavaScript; ``before`` is the text above the table before it began.
_DONE = {
    "Which commit deleted my row": "seen('.ice-rows h3')?.innerText.startsWith('1 row: 1 deleted')",
    "Why does the scan read these files": "seen('.ice-reasons li') && /^Reads /.test(seen('.ice-scan h3')?.innerText)",
    "Which files are tiny": "seen('.ice-detail th[aria-sort=ascending]') && seen('.ice-detail tbody td')",
    "What did a snapshot change": "seen('.ice-above h4') && seen('.ice-above').innerText !== before",
    "The deletion vector of a file": "/\\d/.test(seen('.ice-vector-facts')?.innerText ?? '')",
    "Small manifests": "chosen('Manifests') && seen('.ice-detail tbody td')",
    "What V4 writes for an append": "/PUT/.test(seen('.ice-headline')?.innerText)",
    "Compare two snapshots": "chosen('Compared') && seen('.ice-above h4')",
    "Find a file by its path": "document.querySelector(`.ice-row[aria-selected=true][data-id^='file:']`)",
    "What is broken, since when": "seen('.ice-diagnosis') || /Nothing found/.test(seen('.ice-diagnoses')?.innerText)",
    "Undo": "document.querySelector('.ice-commit-bar [aria-current=step]')?.dataset.key === '0'",
}
#: These need the bytes of data and delete files, which generated tables do not have.
_OF_DATA = ("Which commit deleted my row", "The deletion vector of a file")

_WATCH = """(done) => {
  const seen = (selector) => [...document.querySelectorAll(selector)].find((one) => one.checkVisibility());
  const chosen = (name) => seen("[role=tablist][aria-label=Tables] [aria-selected=true]")?.innerText === name;
  const before = seen(".ice-above")?.innerText;
  const is = new Function("seen", "chosen", "before", `return Boolean(${done})`);
  const watch = (window.__task = { begun: 0, first: null, done: null });
  const begin = () => Object.assign(watch, { begun: performance.now(), first: null });
  const kinds = ["pointerdown", "keydown"];
  for (const kind of kinds) window.addEventListener(kind, begin, { capture: true });
  const look = (now) => {
    if (watch.begun && watch.first === null && seen(".ice-busy-text")?.innerText) watch.first = now;
    if (watch.begun && is(seen, chosen, before)) {
      for (const kind of kinds) window.removeEventListener(kind, begin, { capture: true });
      requestAnimationFrame(() => (watch.done = performance.now()));
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


class _Page:
    """A widget in a notebook, as `Hand` uses it; nothing waits for an answer."""

    def __init__(self, page: Any, snapshots: int) -> None:
        self.page = page
        self.widget = SimpleNamespace(snapshots=range(snapshots))

    def idle(self) -> None:
        """Let the browser draw a frame."""
        self.page.wait_for_timeout(30)

    def press(self, *keys: str) -> None:
        """Press keys."""
        for key in keys:
            self.page.keyboard.press(key)


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _timed(notebook: Any, folder: Path, table: TaskCase, task: Any, book: Callable[..., Path]) -> Timed:
    noted = folder / "pid"
    first = f"import os, pathlib, iceexplore as ix\npathlib.Path({str(noted)!r}).write_text(str(os.getpid()))"
    notebook.open(book(folder, first, f"{table.source()}.explore()"))
    notebook.run_all()
    page = notebook.page
    page.wait_for_selector(".ice-widget[aria-busy=false]", timeout=_MOST)
    page.locator(".ice-widget").scroll_into_view_if_needed()
    page.wait_for_timeout(1_000)
    hand = tasks.Hand(_Page(page, table.snapshots), table.case, None, keys=False)
    if task.name == "Undo":
        tasks.append_in_v4(hand)
        page.wait_for_function("/PUT/.test(document.querySelector('.ice-headline')?.innerText)", timeout=_MOST)
        page.wait_for_selector(".ice-widget[aria-busy=false]", timeout=_MOST)
        hand.count = 0
    process = int(noted.read_text())
    before = _cpu(process)
    if task.name not in _DONE:  # a picture, which the browser makes by itself
        begun = page.evaluate("performance.now()")
        task.do(hand)
        took = page.evaluate("performance.now()") - begun
        return Timed(task.name, hand.count, took / 1000, None, _cpu(process) - before)
    page.evaluate(_WATCH, _DONE[task.name])
    task.do(hand)
    page.wait_for_function("window.__task.done !== null", timeout=_MOST, polling=50)
    watch = page.evaluate("window.__task")
    sign = None if watch["first"] is None else max(0.0, watch["first"] - watch["begun"]) / 1000
    return Timed(task.name, hand.count, (watch["done"] - watch["begun"]) / 1000, sign, _cpu(process) - before)


def timed_tasks(lab: Any, browser: Any, folder: Path, table: TaskCase, book: Callable[..., Path]) -> list[Timed]:
    """Do each task with a table; ``book`` makes a notebook of cells. Those that need data files only if it has some."""
    out = []
    for task in tasks.TASKS:
        if task.name in _OF_DATA and not table.has_data:
            continue
        with harness.notebook_page(lab, browser) as notebook:
            out.append(_timed(notebook, folder, table, task, book))
            print(json.dumps([table.name, vars(out[-1])]), flush=True)
    return out


def limits(table: TaskCase, timed: Timed) -> tuple[bool, str]:
    """Return whether a task was fast enough, and what is wanted."""
    fine = timed.painted <= table.wanted
    text = f"within {table.wanted * 1000:.0f} ms" if table.wanted < 1 else f"within {table.wanted:.0f} s"
    if table.progress is not None:
        fine = fine or (timed.first is not None and timed.first <= table.progress)
        text += f", or progress within {table.progress * 1000:.0f} ms"
    return fine, text
