"""Take the pictures of each widget in four states, light, dark, narrow and of a damaged table (`make docs`).

Each in a page of its own, by Chromium, with Python behind it. They go to ``docs/widgets``; ``docs/widgets.md`` shows
them. More are of the explorer full screen, as on a projector, and of the explorer of large tables, which are made for
it: a history of 1,000 commits, and 1,100,000 files (`benchmarks/generate.py`: minutes, 250 MB; kept in the folder that
``--warehouse`` names).
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.widgets import (
    CommitLab,
    DeletionVectors,
    Explorer,
    FileMap,
    Problems,
    Rows,
    ScanLab,
    TableWidget,
    Timeline,
    ViewExplorer,
)
from scripts.screenshots import chromium
from tests.browser.bare import BarePage, bare_page
from tests.browser.harness import ROOT, Theme, chromium_browser


class State(NamedTuple):
    """How a picture is taken."""

    title: str
    theme: Theme
    width: int
    damaged: bool


STATES = {
    "light": State("Light", "light", 1100, False),
    "dark": State("Dark", "dark", 1100, False),
    "narrow": State("Narrow: 420 pixels", "light", 420, False),
    "error": State("A table whose manifests and vectors are gone", "light", 1100, True),
}


def _explorer(table: ix.Table) -> TableWidget:
    made = Explorer(table)
    assert made.settle(60)
    made.select(next(i for i in made.nodes if i.startswith("manifest:")))
    return made


def _timeline(table: ix.Table) -> TableWidget:
    return Timeline(table, selection={"against": str(table.snapshots[-3].snapshot_id)})


def _file_map(table: ix.Table) -> TableWidget:
    return FileMap(table, file_color="age")


def _rows(table: ix.Table) -> TableWidget:
    return Rows(table, rows_filter="trip_id < 100")


def _scan_lab(table: ix.Table) -> TableWidget:
    return ScanLab(table, scan_filter="started_at >= timestamp '2024-05-01 00:00:00' and km > 5")


def _commit_lab(table: ix.Table) -> TableWidget:
    return CommitLab(table)


def _problems(table: ix.Table) -> TableWidget:
    return Problems(table)


def _figures(table: ix.Table) -> TableWidget:
    return Problems(table, doctor_draft={"tab": "figures"})


def _deletes(table: ix.Table) -> TableWidget:
    vectors = [n for n in table.tree(depth="files").nodes if n.kind == "deletion-vector"]
    most = max(vectors, key=lambda n: n.fields["record_count"], default=None)
    return DeletionVectors(table, selection={"node": most.id} if most else None)


def _view(table: ix.Table) -> ViewExplorer:
    """Return the explorer of a view of the table, its two versions compared; for a damaged table, see `CAPTIONS`."""
    is_damaged = any(finding.severity == "fail" for finding in table.check())
    columns = {"member": "boolean", "trips": "long", "km": "double"}
    text = "SELECT rider IS NOT NULL AS member, count(*) AS trips, sum(km) AS km\nFROM trips"
    made_at = table.snapshots[-1].timestamp_ms + 86_400_000
    view = ix.simulate_view(f"{text}\nGROUP BY 1", columns, dialect="spark", timestamp=made_at, seed=1)
    more = "WHERE speed < 30" if is_damaged else "WHERE km > 0"
    view.replace(f"{text}\n{more}\nGROUP BY 1\nORDER BY trips DESC", dialect="spark")
    made = view.explore(tables={"trips": table})
    if is_damaged:
        made.tab = "problems"
    else:
        made.against, made.tab = 0, "compare"
    return made


WIDGETS: dict[str, tuple[str, Callable[[ix.Table], TableWidget | ViewExplorer]]] = {
    "explorer": ("The explorer", _explorer),
    "timeline": ("The timeline", _timeline),
    "file-map": ("The files of a snapshot", _file_map),
    "rows": ("Rows", _rows),
    "scan-lab": ("The scan lab", _scan_lab),
    "commit-lab": ("The commit lab", _commit_lab),
    "problems": ("Health: findings", _problems),
    "figures": ("Health: files and manifests", _figures),
    "deletes": ("Deleted positions", _deletes),
    "view": ("The explorer of views", _view),
}
#: The captions of pictures that show something other than their state.
CAPTIONS = {("view", "error"): "A view that reads a column which its table lacks"}
#: The size of a projector's picture.
FULL = (1920, 1080)


def tables(folder: Path) -> tuple[Path, Path]:
    """The sample, away from this machine's paths, and a copy without its manifests and deletion vectors."""
    whole, damaged = folder / "trips", folder / "damaged" / "trips"
    for path in (whole, damaged):
        shutil.copytree(sample_path("trips"), path)
    for path in damaged.rglob("*"):
        if path.suffix == ".puffin" or (path.suffix == ".avro" and not path.name.startswith("snap-")):
            path.unlink()
    return whole, damaged


def history(folder: Path) -> ix.Table:
    """A table of 1,000 commits: appends, deletes of rows and files, and rewritten manifests; the same each time."""
    columns = {"id": "long", "region": "string", "ts": "timestamp"}
    simulated = ix.empty(columns, partition_by=["region"], format_version=3, seed=1)

    def live() -> list[str]:
        paths: list[Any] = simulated.table.inspect.data_files.arrow().column("file_path").to_pylist()
        return paths

    for n in range(1, 1_001):
        if n % 24 == 0:
            simulated.rewrite_manifests()
        elif n % 9 == 0:
            simulated.row_delta(deletes={live()[n % 7]: list(range(n % 900, n % 900 + n % 50 + 1))})
        elif n % 31 == 0:
            simulated.delete_files(live()[:2])
        else:
            simulated.append(1 + n % 3, rows=1_000 + 137 * (n % 11))
    return simulated.table


def many_files(folder: Path) -> ix.Table:
    """A table of 1,000,000 data files and 100,000 delete files, made unless the folder has it."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    generator: Any = importlib.import_module("generate")
    shape = generator.Shape(files=1_000_000, deletes=100_000, manifests=110, partitioned=True)
    return ix.open(generator.generate(shape, folder / "clicks"))


#: Large tables: a title, what the picture shows, the table, and the tab that is shown.
LARGE: dict[str, tuple[str, str, Callable[[Path], ix.Table], str]] = {
    "history": (
        "The explorer of a table with 1,000 snapshots",
        "Where commits are too near to draw each, the timeline has a band by operation and a bar per bin; the overview "
        "below zooms, and a filter dims what does not match.",
        history,
        "tree",
    ),
    "files": (
        "The explorer of a table with 1,100,000 files",
        "The tab Files draws a cell for several files of a partition where there are too many, shaded by age.",
        many_files,
        "files",
    ),
}


def act(bare: BarePage) -> None:
    """What somebody would do first, where a widget waits for it."""
    first = "Apply" if isinstance(bare.widget, CommitLab) else "Check the table"
    if isinstance(bare.widget, CommitLab) or (isinstance(bare.widget, Problems) and not bare.widget.doctor_draft):
        bare.page.get_by_role("button", name=first, exact=True).click()
        bare.idle()


def page_of() -> str:
    """The page that shows them."""
    lines = ["# Each widget in four states", "", "Made by `make docs` of the sample table."]
    for name, (title, _) in WIDGETS.items():
        lines += ["", f"## {title}"]
        for state, (words, *_) in STATES.items():
            shown = CAPTIONS.get((name, state), words)
            lines += ["", f"{shown}:", "", f"![{title}: {shown.lower()}](widgets/{name}-{state}.png)"]
    lines += ["", "## The explorer, full screen", "", "1,920 × 1,080 pixels, the text enlarged twice."]
    lines += ["", "![The explorer: full screen](widgets/explorer-full.png)"]
    for name, (title, words, *_) in LARGE.items():
        lines += ["", f"## {title}", "", words]
        for theme in ("light", "dark"):
            lines += ["", f"{theme.capitalize()}:", "", f"![{title}: {theme}](widgets/large-{name}-{theme}.png)"]
    return "\n".join(lines) + "\n"


def take_full(browser: Any, table: ix.Table, target: Path) -> None:
    """Take the picture of the explorer that fills a projector's screen."""
    width, height = FULL
    with bare_page(browser, _explorer(table), width=width, height=height) as bare:
        bare.page.get_by_role("button", name="Full screen").click()
        for _ in range(2):
            bare.page.get_by_role("button", name="Larger text").click()
        bare.page.get_by_role("button", name="Fit the tree").click()
        bare.idle()
        bare.page.wait_for_timeout(500)
        bare.page.screenshot(path=target / "explorer-full.png")


def take_large(browser: Any, name: str, warehouse: Path, target: Path) -> None:
    """Take the pictures of the explorer of a large table; reading its files takes a minute."""
    _, _, make, tab = LARGE[name]
    table = make(warehouse)
    themes: tuple[Theme, ...] = ("light", "dark")
    for theme in themes:
        widget = Explorer(table, tab=tab, file_color="age")
        assert widget.settle(900)
        assert not widget.error, widget.error
        with bare_page(browser, widget, width=1100, height=1000, theme=theme) as bare:
            bare.page.wait_for_timeout(1_500)
            shown: Any = bare.page.locator(".ice-widget").first
            shown.screenshot(path=target / f"large-{name}-{theme}.png")


def main(arguments: Sequence[str] | None = None) -> int:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "docs", help="folder that gets the pictures")
    every = [*WIDGETS, "explorer-full", *(f"large-{name}" for name in LARGE)]
    parser.add_argument("--only", nargs="*", default=every, choices=every)
    parser.add_argument("--warehouse", type=Path, help="folder that keeps the large table of files")
    options = parser.parse_args(arguments)
    target = options.target / "widgets"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="warehouse-") as folder, chromium_browser(chromium()) as browser:
        whole, damaged = tables(Path(folder))
        for name in (one for one in options.only if one.startswith("large-")):
            take_large(browser, name.removeprefix("large-"), options.warehouse or Path(folder), target)
        if "explorer-full" in options.only:
            take_full(browser, ix.open(whole), target)
        for name in (one for one in options.only if one in WIDGETS):
            for state, how in STATES.items():
                widget = WIDGETS[name][1](ix.open(damaged if how.damaged else whole))
                with bare_page(browser, widget, width=how.width, height=1000, theme=how.theme) as bare:
                    act(bare)
                    bare.page.wait_for_timeout(300)
                    shown: Any = bare.page.locator(".ice-widget").first
                    shown.screenshot(path=target / f"{name}-{state}.png")
    (options.target / "widgets.md").write_text(page_of(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
