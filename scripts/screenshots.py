"""Take the pictures of the README and docs: notebooks in a real JupyterLab, light and dark (`make docs`)."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from tests.browser.harness import ROOT, LabServer, NotebookPage, Theme, chromium_browser, notebook_page

NOTEBOOKS = ROOT / "notebooks"
THEMES: tuple[Theme, ...] = ("light", "dark")
#: Pictures by notebook: a name, and the line whose output it shows; `quickstart` is the whole window.
PICTURES = {
    "01_quickstart.ipynb": {"tree": "t.tree()", "explorer": "t.explore()"},
    "02_v4_figures.ipynb": {"figure": 'ix.figures()["row-delta-complex"]'},
    "07_explorer.ipynb": {"scan-lab": "scan", "commit-lab": "commits"},
    "05_scan_plans.ipynb": {"plan": "p.tree()", "waterfall": "p.waterfall()", "range-map": "p.range_map()"},
}
#: Pictures that do not fill the notebook's width: no more than the image itself.
NARROW = {"range-map", "waterfall"}


def chromium() -> Path:
    """The Chromium to use: ICEEXPLORE_CHROMIUM, or the one that is installed."""
    given = os.environ.get("ICEEXPLORE_CHROMIUM", "")
    for name in (given, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name) if name else None
        if found:
            return Path(found)
    sys.exit("no Chromium was found (Debian: apt-get install chromium; or set ICEEXPLORE_CHROMIUM)")


def take(page: NotebookPage, notebook: str, target: Path, suffix: str) -> None:
    """Each picture of one notebook in one theme."""
    for name, source in PICTURES[notebook].items():
        output: Any = page.output(source).locator("img" if name in NARROW else ".jp-OutputArea-output").first
        output.scroll_into_view_if_needed()
        page.page.wait_for_timeout(1_000)
        output.screenshot(path=target / f"{name}{suffix}.png")
    if notebook == "01_quickstart.ipynb":
        page.scroll_to_top()
        page.page.screenshot(path=target / f"quickstart{suffix}.png")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "docs", help="folder that gets the pictures")
    parser.add_argument("--notebook", choices=PICTURES, help="only the pictures of this notebook")
    options = parser.parse_args(arguments)
    options.target.mkdir(parents=True, exist_ok=True)

    with tempfile.TemporaryDirectory(prefix="iceexplore-") as folder:
        # The card says where the table lies: a copy of the package keeps this machine out of the pictures.
        site = Path(folder, "site")
        shutil.copytree(ROOT / "iceexplore", site / "iceexplore", ignore=shutil.ignore_patterns("__pycache__"))
        lab = LabServer(Path(folder, "lab"), python_path=site)
        lab.start()
        try:
            with chromium_browser(chromium()) as browser:
                wanted = [options.notebook] if options.notebook else list(PICTURES)
                for theme, notebook in product(THEMES, wanted):
                    with notebook_page(lab, browser, width=1280, height=1280, theme=theme) as page:
                        page.open(NOTEBOOKS / notebook)
                        page.run_all()
                        take(page, notebook, options.target, "" if theme == "light" else "-dark")
                        page.assert_clean()
        finally:
            lab.stop()
    for path in sorted(options.target.glob("*.png")):
        print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
