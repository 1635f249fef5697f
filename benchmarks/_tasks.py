"""The twelve tasks of the browser tests, timed in a JupyterLab of their own, each with a fresh kernel.

For each task and table: the clicks; of each step (a click to a tab, then one or typing that asks) the time from its
last input until the answer is painted, and until something says that or how far reading is; and the processor time of
the kernel from the first input to the answer. A task that fails is reported, and does not keep the others from being
timed.
"""

from __future__ import annotations

import importlib
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from generate import Shape, generate

__all__ = ["CASES", "Step", "TaskCase", "Timed", "limits", "say", "timed_tasks"]

tasks: Any = importlib.import_module("tests.browser.explorer.test_tasks")
harness: Any = importlib.import_module("tests.browser.harness")

#: ms to wait for anything; a check of a million files takes minutes where others compute, too.
_MOST = 900_000


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
class Step:
    """What a click took: seconds until the answer is painted, and until a first sign if there was one."""

    painted: float
    first: float | None


@dataclass(frozen=True)
class Timed:
    """What a task took: clicks, its steps, and processor time.

    If it failed, ``failure`` says why, and the rest is empty.
    """

    task: str
    clicks: int = 0
    steps: tuple[Step, ...] = ()
    cpu: float = 0.0
    failure: str = ""

    @property
    def painted(self) -> float:
        """The seconds until the slowest answer of a step is painted."""
        return max((step.painted for step in self.steps), default=0.0)


def say(text: str) -> None:
    """Print how far the benchmark is."""
    print(text, file=sys.stderr, flush=True)


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
    "A picture for slides": "window.__saved",
    "Undo": "document.querySelector('.ice-commit-bar [aria-current=step]')?.dataset.key === '0'",
}
#: When a first click, to a tab or a menu, has been answered: what the second needs is there.
_FIRST_DONE = {
    "Which commit deleted my row": "seen('.ice-rows input[aria-label=Value]')",
    "Why does the scan read these files": "tab('Scan') && seen('.ice-scan-line [role=combobox]')",
    "Which files are tiny": "chosen('Files') && seen('.ice-detail .ice-grid[aria-busy=false] tbody td')",
    "The deletion vector of a file": "tab('Deletes') && seen('.ice-part-panel .ice-table tbody .ice-open')",
    "What V4 writes for an append": "document.querySelector('.ice-commit-form')?.ariaBusy === 'false'",
    "What is broken, since when": "tab('Health') && seen('.ice-part-panel button', /^Check the table/)",
    "A picture for slides": "seen('button', /^PNG/)",
}
#: These need the bytes of data and delete files, which generated tables do not have.
_OF_DATA = ("Which commit deleted my row", "The deletion vector of a file")

# Each input begins a step, and a step ends in the first frame after its answer is there.
_WATCH = """(expressions) => {
  const shown = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  const seen = (selector, text = /(?:)/) => shown(selector).find((one) => text.test(one.innerText));
  const selected = (label) => seen(`[role=tablist][aria-label='${label}'] [aria-selected=true]`)?.innerText;
  const chosen = (name) => selected("Tables") === name;
  const tab = (name) => selected("Views of the explorer")?.startsWith(name);
  const before = seen(".ice-above")?.innerText;
  window.__saved = false;
  const save = ({ target }) => (window.__saved ||= target.matches("a[download]"));
  window.addEventListener("click", save, { capture: true });
  const names = ["seen", "chosen", "tab", "before"];
  const steps = expressions.map((one) => {
    const is = new Function(...names, `return Boolean(${one})`);
    return () => is(seen, chosen, tab, before);
  });
  const watch = (window.__task = { steps: [], done: false });
  let begun = 0;
  let first = null;
  let waiting = true;
  const answered = () => {
    if (!waiting || !begun || !steps[watch.steps.length]()) return;
    const step = { painted: null, first: first && first - begun };
    const start = begun;
    watch.steps.push(step);
    begun = 0;
    waiting = watch.steps.length < steps.length;
    requestAnimationFrame(() => {
      step.painted = performance.now() - start;
      watch.done = !waiting;
    });
  };
  const begin = () => {
    answered(); // the answer to the input before it may have come since the last frame
    [begun, first] = [performance.now(), null];
  };
  for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, begin, { capture: true });
  const look = () => {
    if (begun && first === null && seen(".ice-busy-text", /./)) first = performance.now();
    answered();
    if (waiting) requestAnimationFrame(look);
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
    notebook.page.set_default_timeout(_MOST)
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
    page.evaluate(_WATCH, [one[task.name] for one in (_FIRST_DONE, _DONE) if task.name in one])
    task.do(hand)
    page.wait_for_function("window.__task.done", timeout=_MOST, polling=50)
    steps = tuple(
        Step(one["painted"] / 1000, None if one["first"] is None else one["first"] / 1000)
        for one in page.evaluate("window.__task.steps")
    )
    return Timed(task.name, hand.count, steps, _cpu(process) - before)


def timed_tasks(
    lab: Any, browser: Any, folder: Path, table: TaskCase, book: Callable[..., Path], repeat: int
) -> Iterator[Timed]:
    """Do each task with a table some times, and yield the run with the median time of its slowest step.

    Tasks that need data files are done only if the table has some.

    Parameters
    ----------
    book
        Makes a notebook of cells.
    """
    for task in tasks.TASKS:
        if task.name in _OF_DATA and not table.has_data:
            continue
        runs: list[Timed] = []
        for number in range(repeat):
            try:
                with harness.notebook_page(lab, browser) as notebook:
                    one = _timed(notebook, folder, table, task, book)
            except Exception as error:  # whatever it is, the other tasks are timed
                one = Timed(task.name, failure=(str(error).strip() or repr(error)).splitlines()[0])
            parts = " + ".join(f"{step.painted:.2f}" for step in one.steps)
            text = one.failure or f"{parts} s, {one.cpu:.2f} s of processor time"
            say(f"{table.name}: {task.name}, {number + 1} of {repeat}: {text}")
            runs.append(one)
        fine = [one for one in runs if not one.failure]
        if len(fine) * 2 <= repeat:  # half of the runs failed: that is the result
            yield next(one for one in runs if one.failure)
            continue
        middle = statistics.median_low(one.painted for one in fine)
        yield next(one for one in fine if one.painted == middle)


def limits(table: TaskCase, timed: Timed) -> tuple[bool, str]:
    """Return whether each step of a task was answered fast enough, and what is wanted."""

    def is_fine(step: Step) -> bool:
        soon = table.progress is not None and step.first is not None and step.first <= table.progress
        return soon or step.painted <= table.wanted

    text = f"within {table.wanted * 1000:.0f} ms" if table.wanted < 1 else f"within {table.wanted:.0f} s"
    if table.progress is not None:
        text += f", or progress within {table.progress * 1000:.0f} ms"
    return bool(timed.steps) and all(is_fine(step) for step in timed.steps), text
