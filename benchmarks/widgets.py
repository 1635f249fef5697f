"""Measure what the explorer costs in a notebook, in a real JupyterLab in Chromium.

``python benchmarks/widgets.py`` makes the tables (`generate.py`), starts a JupyterLab of its own, measures, prints and
writes ``results/widgets.md``. Opening is timed in fresh Python processes, the best of several. In the browser:

- the message is the largest that the kernel sent while 5,000 nodes were unfolded, measured on arrival;
- first paint is the time from its arrival until the frame after the canvas was painted with it;
- of a timeline of ten thousand snapshots, the time from running its cell until it is painted;
- of a saved page of the sample, the time of ``save_html`` in a process that has only shown it;
- of the tab Files, the time from choosing it until its cells are there, and until something says how far reading is;
- of the twelve tasks of `tests/browser/explorer/test_tasks.py` (`_tasks.py`), the time from the last input until the
  answer is painted, and until something says how far reading is, for each click; the median run of several, each with a
  fresh kernel;
- a frame is the time between two of the browser's animation frames while each received one event: the pointer dragged,
  the wheel turned, a node folded or unfolded, one selected. It includes our script, layout and painting; Chromium
  paints in software, without a graphics card.

``--tasks`` measures only the tasks and the saved page, and replaces their section of the report; ``--table`` measures
them with one of the tables. What fails is reported as missed, and does not keep the rest from being measured. Progress
goes to stderr.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _tables import v2_table, v4_table
from generate import Shape, generate

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # the notebook and the browser are those of the tests

harness: Any = importlib.import_module("tests.browser.harness")
screenshots: Any = importlib.import_module("scripts.screenshots")

from _tasks import CASES, limits, say, timed_tasks  # noqa: E402  (it imports the tests)

#: What is wanted: seconds, bytes, milliseconds.
FIRST_PAINT, MESSAGE, FRAME, OPEN, FIRST_SIGN, SAVED = 1.0, 5_000_000, 50.0, 1.0, 0.2, 2.0

_OPEN = """
import json, sys, time
import iceexplore as ix
t = ix.open(sys.argv[1])
begun = time.perf_counter()
w = t.explore()
made = time.perf_counter() - begun
assert w.settle(120) and not w.error, w.error
settled = time.perf_counter() - begun
entries = None
if len(sys.argv) > 2:
    begun = time.perf_counter()
    w.select(next(i for i in w.nodes if i.startswith("manifest:")))
    assert w.settle(120) and not w.error, w.error
    entries = time.perf_counter() - begun
    assert w.pages["detail"]["total"] == int(sys.argv[2]), w.pages["detail"]["total"]
print(json.dumps([made, settled, entries]))
"""

# Counts the changes of the last commit, or between the first and the last; says when there was a first sign of it.
_CHANGES = """
import json, sys, time
import iceexplore as ix
t = ix.sample("trips") if sys.argv[1] == "sample" else ix.open(sys.argv[1])
signs = []
w = ix.widgets.Explorer(t, selection={"node": "table"})
assert w.settle(120) and not w.error, w.error
w.observe(lambda change: signs.append(time.perf_counter()), "busy")
last = t.snapshots[-1]
cpu, begun = time.process_time(), time.perf_counter()
if sys.argv[2] == "commit":
    w.select(f"snapshot:{last.snapshot_id}", snapshot=last)
else:
    w.select(snapshot=last, against=t.snapshots[0])
assert w.settle(600) and not w.error, w.error
spent = [time.perf_counter() - begun, time.process_time() - cpu]
assert w.pages["detail"]["table"].startswith(("changes", "compared:"))
print(json.dumps([w.pages["detail"]["total"], signs[0] - begun, *spent]))
"""

# Counts what comes from the kernel, and says when a canvas was painted.
_WATCH = """
window.__large = { bytes: 0, at: 0 };
window.__painted = 0;
const Own = window.WebSocket;
window.WebSocket = class extends Own {
  constructor(...args) {
    super(...args);
    this.addEventListener("message", ({ data }) => {
      const bytes = data.byteLength ?? data.size ?? data.length;
      if (bytes > window.__large.bytes) window.__large = { bytes, at: performance.now() };
    });
  }
};
const fill = CanvasRenderingContext2D.prototype.fillRect;
CanvasRenderingContext2D.prototype.fillRect = function (...args) {
  if (this.canvas.className === "ice-canvas") window.__painted = performance.now();
  return fill.apply(this, args);
};
"""

_FIRST = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  while (window.__painted < window.__large.at || !window.__large.at) await frame();
  await frame();
  await frame();
  return [window.__large.bytes, window.__painted - window.__large.at];
}"""

# One event a frame, the frames' times.
_FRAMES = """async ([kind, count, every]) => {
  const canvas = document.querySelector(".ice-canvas");
  const map = document.querySelector(".ice-map");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const send = (type, x, y, more = {}) => {
    const at = { bubbles: true, cancelable: true, pointerId: 7, clientX: left + x, clientY: top + y, ...more };
    canvas.dispatchEvent(type === "wheel" ? new WheelEvent(type, at) : new PointerEvent(type, at));
  };
  const times = [];
  const acts = {
    pan: (i) => send("pointermove", width / 2 + 160 * Math.sin(i / 5), height / 2 - 4 * i),
    zoom: (i) => send("wheel", width / 2, height / 2, { ctrlKey: true, deltaY: i % 40 < 20 ? 30 : -30 }),
    hover: (i) => send("pointermove", (37 * i) % width, (23 * i) % height),
    fold: (i) => click(fold[Math.floor(i / 16) % fold.length], true), // folds, and unfolds again
    select: (i) => click(pick[(Math.floor(i / 8) * 7) % pick.length], false),
  };
  // what is folded and selected are cards that are in view
  const pick = every.filter((id) => {
    const at = map.where(id);
    return at && at.x > 0 && at.y > 0 && at.x + at.width < width && at.y + at.height < height;
  });
  const fold = pick.filter((id) => /^(manifest|root|snapshot):/.test(id));
  const click = (id, twisty) => {
    const { x, y, width, height } = map.where(id);
    send("pointerdown", x + (twisty ? width : 20), y + height / 2);
    send("pointerup", x + (twisty ? width : 20), y + height / 2);
  };
  if (kind === "pan") {
    canvas.setPointerCapture = () => {};
    send("pointerdown", width / 2, height / 2);
  }
  await frame();
  let last = performance.now();
  for (let i = 0; i < count; i++) {
    if (!["fold", "select"].includes(kind) || i % 8 === 0) acts[kind](i); // a click is answered in the frames after it
    await frame();
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  if (kind === "pan") send("pointerup", width / 2, height / 2);
  return times;
}"""


#: A timeline of ten thousand snapshots, and the explorer's files of a table.
_MANY = """
import random, iceexplore as ix
from dataclasses import replace
from iceexplore.metadata import Ref, Snapshot
from iceexplore.widgets import Timeline
r, ms, rows, many = random.Random(1), 1_700_000_000_000, 0, []
for i in range(1, 10_001):
    operation = r.choice(["append", "append", "append", "overwrite", "delete"])
    ms, added, deleted = ms + r.randint(60_000, 9_000_000), r.randint(1, 2_000), r.randint(0, 900)
    rows += added - min(rows, deleted)
    summary = {"operation": operation, "added-records": added, "deleted-records": deleted, "total-records": rows}
    summary |= {"total-data-files": i, "total-delete-files": i % 97, "app-id": f"application_{i}"}
    texts = {key: str(value) for key, value in summary.items()}
    many.append(Snapshot(i, i - 1 if i > 1 else None, i, ms, None, (), texts, None))
state = ix.sample("trips").state
refs = {"main": Ref("main", "branch", 10_000)} | {f"t{i}": Ref(f"t{i}", "tag", i) for i in range(5, 10_000, 250)}
metadata = replace(state.metadata, snapshots=tuple(many), refs=refs, current_snapshot_id=10_000)
state = replace(state, metadata=metadata, snapshot=metadata.snapshot())
"""

_LINE_PAINTED = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const begun = performance.now();
  window.jupyterapp.commands.execute("notebook:run-cell");
  const selector = ".ice-axis canvas";
  const drawn = () => {
    const canvas = document.querySelector(selector);
    return canvas?.width && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((n) => n);
  };
  while (!drawn()) await frame();
  return (performance.now() - begun) / 1000;
}"""

_LINE_FRAMES = """async (kind) => {
  const canvas = document.querySelector(".ice-axis canvas");
  const { left, top, width } = canvas.getBoundingClientRect();
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const send = (type, x, more = {}) => {
    const at = { bubbles: true, cancelable: true, pointerId: 7, clientX: left + x, clientY: top + 45, ...more };
    canvas.dispatchEvent(type === "wheel" ? new WheelEvent(type, at) : new PointerEvent(type, at));
  };
  canvas.setPointerCapture = () => {};
  const acts = {
    hover: (i) => send("pointermove", (37 * i) % width),
    zoom: (i) => send("wheel", width / 3, { ctrlKey: true, deltaY: i % 60 < 30 ? -40 : 40 }),
    pan: (i) => send("pointermove", width / 2 + 300 * Math.sin(i / 7)),
  };
  const times = [];
  if (kind === "pan") {
    for (let i = 0; i < 12; i++) send("wheel", width / 3, { ctrlKey: true, deltaY: -40 });
    send("pointerdown", width / 2);
  }
  await frame();
  let last = performance.now();
  for (let i = 0; i < 240; i++) {
    acts[kind](i);
    await frame();
    times.push(performance.now() - last);
    last = performance.now();
  }
  if (kind === "pan") send("pointerup", width / 2);
  return times;
}"""

_FILES = """
import json, sys, time
import iceexplore as ix
w = ix.open(sys.argv[1]).explore()
assert w.settle(120)
out = []
for again in (False, True):
    w.tab = "tree"
    if again:
        w.select(snapshot=w.snapshots[-2]["id"])
        w.settle(300)
        w.file_map = {}
    begun, cpu, first = time.perf_counter(), time.process_time(), []
    w.observe(lambda change: first.append(time.perf_counter() - begun) if change["new"] else None, "busy")
    w.tab = "files"
    assert w.settle(300) and not w.error, w.error
    out.append([time.perf_counter() - begun, time.process_time() - cpu, first[0] if first else None])
    w.unobserve_all("busy")
print(json.dumps([*out, w.file_map["title"], len(json.dumps(w.file_map))]))
"""


def timeline(page: Any, folder: Path) -> tuple[float, dict[str, list[float]]]:
    """Ten thousand snapshots: from running the cell until they are painted, and frames."""
    page.open(notebook_of(folder, _MANY, "Timeline(state)"))
    notebook = "window.jupyterapp.shell.currentWidget.content"
    page.page.evaluate(f"() => {{ {notebook}.activeCellIndex = 0 }}")
    page.page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell-and-select-next')")
    page.page.wait_for_timeout(4_000)
    painted = float(page.page.evaluate(_LINE_PAINTED))
    page.page.locator(".ice-axis").scroll_into_view_if_needed()
    page.page.wait_for_timeout(500)
    return painted, {kind: page.page.evaluate(_LINE_FRAMES, kind) for kind in ("hover", "zoom", "pan")}


def files_shown(path: Path) -> list[Any]:
    """The tab Files: wall time, processor time and when progress is visible; first, and with manifests cached."""
    command = [sys.executable, "-c", _FILES, str(path)]
    found: list[Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def opened(path: Path, *entries: int, runs: int = 3) -> tuple[float, float, float | None]:
    """The best of some fresh processes: `t.explore()`, until everything is shown, and a manifest's table."""
    found: list[list[float]] = []
    for _ in range(runs):
        command = [sys.executable, "-c", _OPEN, str(path), *map(str, entries)]
        found.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return min(f[0] for f in found), min(f[1] for f in found), min(f[2] for f in found) if entries else None


def changes(path: Path | str, what: str) -> tuple[int, float, float, float]:
    """Files that changed, seconds until the first sign, until they are counted, and of processor time."""
    run = subprocess.run([sys.executable, "-c", _CHANGES, str(path), what], capture_output=True, text=True, check=True)
    files, first, wall, cpu = json.loads(run.stdout.splitlines()[-1])
    return files, first, wall, cpu


def notebook_of(folder: Path, *cells: str) -> Path:
    """A notebook of these cells."""
    import nbformat

    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    path = folder / "n.ipynb"
    nbformat.write(book, path)
    return path


def shown(page: Any, folder: Path, *cells: str) -> None:
    """Run the cells, the last of which shows the explorer."""
    page.page.add_init_script(_WATCH)
    page.open(notebook_of(folder, "import iceexplore as ix", *cells))
    page.run_all()
    page.page.wait_for_selector(".ice-widget[aria-busy=false]")


def in_browser(page: Any, folder: Path, path: Path) -> dict[str, Any]:
    """Paint, message and frames of 5,000 nodes unfolded."""
    unfold = "w.expanded = [*w.expanded, *(i for i in w.nodes if i.startswith('manifest:'))]\nw.settle()"
    shown(page, folder, f"w = ix.open({str(path)!r}).explore()\nw.settle()", unfold, "w")
    size, paint = page.page.evaluate(_FIRST)
    page.page.locator(".ice-canvas").scroll_into_view_if_needed()
    out: dict[str, Any] = {"bytes": size, "paint": paint / 1000, "frames": {}}
    snapshot = page.page.locator(".ice-row[data-id^='snapshot:']").get_attribute("data-id").split(":")[1]
    manifests = [f"manifest:{snapshot}:{i}" for i in range(50)]
    files = [f"{m.replace('manifest', 'file')}:{i}" for m in manifests for i in range(100)]
    ids = [f"snapshot:{snapshot}", f"root:{snapshot}", *manifests, *files]
    for near in ("cards with words", "all of the width"):
        if near == "all of the width":
            page.page.get_by_role("button", name="Fit the tree").click()
        page.page.wait_for_timeout(500)
        for kind in ("fold", "select", "hover", "pan", "zoom"):
            out["frames"][kind, near] = page.page.evaluate(_FRAMES, [kind, 240, ids])
        page.page.wait_for_selector(".ice-widget[aria-busy=false]")
    return out


def seconds_of_a_cell(page: Any, folder: Path, path: Path) -> float:
    """From running ``t.explore()`` in a notebook until its tree is painted."""
    page.page.add_init_script(_WATCH)
    page.open(notebook_of(folder, "import iceexplore as ix", f"t = ix.open({str(path)!r})", "t.explore()"))
    notebook = "window.jupyterapp.shell.currentWidget.content"
    page.page.evaluate(f"() => {{ {notebook}.activeCellIndex = 0 }}")
    for _ in range(2):  # the package is loaded, the table open: what is timed is the explorer
        page.page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell-and-select-next')")
    page.page.wait_for_timeout(1_000)
    return float(
        page.page.evaluate(
            """async () => {
                const begun = performance.now();
                window.__painted = 0;
                window.jupyterapp.commands.execute("notebook:run-cell");
                while (!window.__painted) await new Promise((done) => requestAnimationFrame(done));
                return (performance.now() - begun) / 1000;
            }"""
        )
    )


def percentile(times: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(times, n=20)[-1]


#: Where the section of the tasks begins in the report; it is the last one.
_TASKS = "## Twelve tasks"


_SAVE = """
import sys, time
import iceexplore as ix
widget = ix.sample("trips").explore()
widget.settle(60)
wall, cpu = time.perf_counter(), time.process_time()
page = widget.save_html(sys.argv[1])
print(time.perf_counter() - wall, time.process_time() - cpu, page.size)
"""


def saved_page(folder: Path, runs: int = 3) -> tuple[float, float, int]:
    """Return the seconds and the processor time of saving the sample, and the bytes of the page.

    Each run is a process of its own, in which nothing has been checked or measured yet; the median is returned.
    """
    found = []
    for number in range(runs):
        command = [sys.executable, "-c", _SAVE, str(folder / f"sample-{number}.html")]
        wall, cpu, size = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        found.append((float(wall), float(cpu), int(size)))
    return sorted(found)[(len(found) - 1) // 2]


@contextmanager
def jupyterlab() -> Iterator[tuple[Any, Any, Path]]:
    """Start a JupyterLab and a Chromium; also yields a folder, which is removed after it."""
    chromium = harness.chromium_browser(screenshots.chromium())
    with tempfile.TemporaryDirectory(prefix="iceexplore-") as name, chromium as browser:
        lab = harness.LabServer(Path(name) / "lab")
        lab.start()
        try:
            yield lab, browser, Path(name)
        finally:
            lab.stop()


def task_section(rows: list[str]) -> list[str]:
    """The section of the tasks, with these rows of its table."""
    return [
        _TASKS,
        "",
        "Wall time until the answer is painted, and until something says how far reading is; of a task that first goes "
        "to a tab or a menu, of each of both clicks. Processor time of the kernel. Of each task the median run, each "
        "with a fresh kernel.",
        "",
        "| table | task | clicks | answer, s | first progress, s | processor time, s | limit |  |",
        "|---|---|--:|--:|--:|--:|---|---|",
        *rows,
        "",
        f"{machine()} Load at the end: {os.getloadavg()[0]:.1f}. Generated tables have no data files, which two of the "
        "tasks need.",
        "",
    ]


def write_tasks(out: Path, rows: list[str]) -> None:
    """Replace the section of the tasks in the report, which is the last one."""
    before = out.read_text(encoding="utf-8").partition(_TASKS)[0].rstrip() if out.exists() else "# The explorer"
    out.write_text("\n".join([before, "", *task_section(rows)]), encoding="utf-8")


def measure_tasks(out: Path, tables: list[str], repeat: int) -> int:
    """Do the twelve tasks with each table and save the sample; after each, write the report. Return how many missed."""
    rows, missed = [], 0

    def add(cells: list[str], limit: str, fine: bool) -> None:
        nonlocal missed
        missed += not fine
        rows.append(f"| {' | '.join([*cells, limit, 'met' if fine else '**missed**'])} |")
        write_tasks(out, rows)

    with jupyterlab() as (lab, browser, folder):
        for table in CASES:
            if tables and table.name not in tables:
                continue
            for one in timed_tasks(lab, browser, folder, table, notebook_of, repeat):
                fine, limit = limits(table, one)
                signs = ["–" if step.first is None else f"{step.first:.2f}" for step in one.steps]
                painted = [f"{step.painted:.2f}" for step in one.steps]
                times = [str(one.clicks), " + ".join(painted), " + ".join(signs), f"{one.cpu:.2f}"]
                add([table.name, one.task, *([one.failure[:200], "", "", ""] if one.failure else times)], limit, fine)
        if not tables or CASES[0].name in tables:
            try:
                wall, cpu, size = saved_page(folder, repeat)
            except subprocess.CalledProcessError as error:
                add(
                    [CASES[0].name, "Save the page", error.stderr.strip()[-200:], "", "", ""],
                    f"within {SAVED:.0f} s",
                    False,
                )
            else:
                say(f"{CASES[0].name}: a page saved, {wall:.2f} s, {cpu:.2f} s of processor time")
                what = f"Save the page ({size / 1e6:.1f} MB)"
                add([CASES[0].name, what, "", f"{wall:.2f}", "", f"{cpu:.2f}"], f"within {SAVED:.0f} s", wall < SAVED)
    print("\n".join(task_section(rows)))
    return missed


def machine() -> str:
    """The machine and what runs on it, as a sentence."""
    python = f"Python {platform.python_version()}, anywidget {version('anywidget')}"
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {python}, Chromium without a graphics card."
    )


class Marks:
    """What was wanted, and whether it was met."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.all_met = True

    def add(self, text: str, fine: bool, wanted: str) -> None:
        """Add a line."""
        self.all_met = self.all_met and fine
        self.lines.append(f"- {'met' if fine else 'NOT met'}: {text} (wanted: {wanted})")

    def frames(self, what: str, times: list[float]) -> float:
        """Add a line about the time of frames; return the 95th percentile."""
        high = percentile(times)
        self.add(f"{what}: 95 % of the frames within {high:.0f} ms", high < FRAME, f"under {FRAME:.0f} ms")
        return high

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure a part of the report; if it fails, the line says so, and the others are measured."""
        say(f"measuring: {name}")
        try:
            yield
        except Exception as error:  # whatever it is
            text = getattr(error, "stderr", None) or str(error) or repr(error)
            self.add(f"{name} could not be measured: {text.strip().splitlines()[-1][:200]}", False, "a measurement")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "widgets.md", help="the report")
    parser.add_argument("--tasks", action="store_true", help="only the twelve tasks and the saved page")
    names = [table.name for table in CASES]
    parser.add_argument("--table", choices=names, action="append", help="tables of the tasks; by default all")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each task (%(default)s)")
    options = parser.parse_args()
    # As when it is installed: what is imported has been compiled.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for folder in ("iceexplore", "benchmarks"):
        compileall.compile_dir(HERE.parent / folder, quiet=2)
    if not options.tasks:
        fine = measure_explorer(options.out)
        return 1 if measure_tasks(options.out, options.table or [], options.repeat) or not fine else 0
    return 1 if measure_tasks(options.out, options.table or [], options.repeat) else 0


def measure_explorer(out: Path) -> bool:
    """Measure everything but the tasks, and write the report; return whether all limits were met."""
    marks = Marks()
    shape = Shape(files=100_000, deletes=0, manifests=1)
    tables: dict[str, tuple[Callable[[], Path], tuple[int, ...]]] = {
        "v2, 1,000,000 files, 100 manifests": (lambda: v2_table(1_000_000, 100), ()),
        "V4, 1,000,000 files, 100 leaves": (lambda: v4_table(1_000_000, 100)[0], ()),
        "v2, 100,000 files in one manifest": (lambda: generate(shape), (100_000,)),
    }
    lines = ["| table | `t.explore()`, s | everything shown, s | the manifest's entries as a table, s |"]
    lines.append("|---|--:|--:|--:|")
    for name, (path_of, count) in tables.items():
        with marks.part(name):
            made, settled, table = opened(path_of(), *count)
            lines.append(f"| {name} | {made:.2f} | {settled:.2f} | {'' if table is None else f'{table:.2f}'} |")
            marks.add(f"{name}: opens in {settled:.2f} s", settled < OPEN, f"under {OPEN:.0f} s")
    counted = ["| changes | files | first sign, s | shown, s | processor time, s |", "|---|--:|--:|--:|--:|"]
    compared: tuple[tuple[str, Callable[[], Path | str], str], ...] = (
        ("the sample, first to last snapshot", lambda: "sample", "compared"),
        ("a commit of 100,000 files", lambda: generate(shape), "commit"),
        ("1,000,000 files, first to last snapshot", lambda: v2_table(1_000_000, 100), "compared"),
    )
    for name, source, what in compared:
        with marks.part(f"changes of {name}"):
            files, first, wall, cpu = changes(source(), what)
            counted.append(f"| {name} | {files:,} | {first:.2f} | {wall:.2f} | {cpu:.2f} |")
            marks.add(f"changes of {name}: a first sign after {first:.2f} s", first < FIRST_SIGN, "under 0.2 s")
    maps = ["| table | files | first, s | processor, s | progress after, s | manifests cached, s | sent, KB |"]
    maps.append("|---|---|--:|--:|--:|--:|--:|")
    partitioned = {"100,000 files": Shape(files=90_000, deletes=10_000, manifests=11, partitioned=True)}
    partitioned["1,100,000 files"] = Shape(files=1_000_000, manifests=110, partitioned=True)
    for name, shape_of_map in partitioned.items():
        with marks.part(f"{name} as cells"):
            (wall, cpu, first), (warm, _, _), title, sent = files_shown(generate(shape_of_map))
            progress = first or 0.0
            cells = f"{wall:.2f} | {cpu:.2f} | {progress:.2f} | {warm:.2f} | {sent / 1000:.0f}"
            maps.append(f"| {name} | {title} | {cells} |")
            marks.add(f"{name} as cells: progress after {progress:.2f} s", progress < FIRST_SIGN, "within 0.2 s")
    frames = ["| what | shown | median, ms | 95 %, ms | longest, ms | frames |", "|---|---|--:|--:|--:|--:|"]
    with marks.part("the explorer in a browser"), jupyterlab() as (lab, browser, folder):
        with marks.part("the tree of 1,000,000 files"), harness.notebook_page(lab, browser) as page:
            cell = seconds_of_a_cell(page, folder, v2_table(1_000_000, 100))
            text = f"1,000,000 files: the cell's tree is painted after {cell:.2f} s"
            marks.add(text, cell < OPEN, f"under {OPEN:.0f} s")
        with marks.part("the timeline of 10,000 snapshots"), harness.notebook_page(lab, browser) as page:
            line_painted, line_frames = timeline(page, folder)
            text = f"10,000 snapshots: the cell's timeline is painted after {line_painted:.2f} s"
            marks.add(text, line_painted < OPEN, f"under {OPEN:.0f} s")
            for kind, times in line_frames.items():
                marks.frames(f"timeline, {kind}", times)
        with marks.part("5,000 nodes unfolded"), harness.notebook_page(lab, browser) as page:
            found = in_browser(page, folder, generate(Shape(files=5_000, deletes=0, manifests=50)))
            paint, length = found["paint"], found["bytes"]
            text = f"5,000 nodes: first paint {paint:.2f} s after the message"
            marks.add(text, paint < FIRST_PAINT, f"under {FIRST_PAINT:.0f} s")
            marks.add(f"5,000 nodes: a message of {length / 1e6:.2f} MB", length < MESSAGE, "under 5 MB")
            for (kind, near), times in found["frames"].items():
                high = marks.frames(f"{kind}, {near}", times)
                middle, longest = statistics.median(times), max(times)
                frames.append(f"| {kind} | {near} | {middle:.0f} | {high:.0f} | {longest:.0f} | {len(times)} |")
    report = [
        "# The explorer",
        "",
        "Made by `python benchmarks/widgets.py`; the top of that file describes how it measures.",
        "",
        f"{machine()} Load at the end: {os.getloadavg()[0]:.1f} (one program that computes all the time is 1).",
        "",
        "## Opening",
        "",
        *lines,
        "",
        "## The tab Files",
        "",
        *maps,
        "",
        "## Changes counted",
        "",
        *counted,
        "",
        "## 5,000 nodes unfolded",
        "",
        *frames,
        "",
        *marks.lines,
        "",
    ]
    print("\n".join(report))
    # The section of the tasks stays until they are measured again.
    old = out.read_text(encoding="utf-8") if out.exists() else ""
    tasks = old[old.index(_TASKS) :] if _TASKS in old else ""
    out.write_text("\n".join(report) + ("\n" + tasks if tasks else ""), encoding="utf-8")
    return marks.all_met


if __name__ == "__main__":
    sys.exit(main())
