"""Take the README's pictures: the quickstart in a real JupyterLab in Chromium, light and dark (`make docs`)."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.browser.harness import ROOT, LabServer, NotebookPage, Theme, chromium_browser, notebook_page

NOTEBOOK = ROOT / "notebooks" / "01_quickstart.ipynb"
THEMES: tuple[Theme, ...] = ("light", "dark")
#: A picture, by the line of the quickstart whose output it shows; `quickstart` is the whole window.
PICTURES = {"tree": "t.tree()", "explorer": "t.explore()"}


def chromium() -> Path:
    """The Chromium to use: ICEEXPLORE_CHROMIUM, or the one that is installed."""
    for name in (os.environ.get("ICEEXPLORE_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name) if name else None
        if found:
            return Path(found)
    sys.exit("no Chromium was found (Debian: apt-get install chromium; or set ICEEXPLORE_CHROMIUM)")


def take(page: NotebookPage, target: Path, suffix: str) -> None:
    """Each picture of one theme."""
    for name, source in PICTURES.items():
        output: Any = page.output(source).locator(".jp-OutputArea-output").first
        output.scroll_into_view_if_needed()
        page.page.wait_for_timeout(1_000)
        output.screenshot(path=target / f"{name}{suffix}.png")
    page.scroll_to_top()
    page.page.screenshot(path=target / f"quickstart{suffix}.png")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "docs", help="folder that gets the pictures")
    parser.add_argument("--notebook", type=Path, default=NOTEBOOK)
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
                for theme in THEMES:
                    with notebook_page(lab, browser, width=1280, height=1280, theme=theme) as page:
                        page.open(options.notebook)
                        page.run_all()
                        take(page, options.target, "" if theme == "light" else "-dark")
                        page.assert_clean()
        finally:
            lab.stop()
    for path in sorted(options.target.glob("*.png")):
        print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
