"""The code of the README and of the guides in docs/ runs as printed, each page on its own: here what needs no Spark."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import ipywidgets
import pytest

import iceexplore as ix

ROOT = Path(__file__).resolve().parents[1]
README = "README.md"
LABS = "docs/labs.md"
SPARK = "docs/spark.md"
#: Pages with code, and how many statements of each run without Spark.
PAGES = {
    README: 22,
    "docs/doctor.md": 9,
    "docs/explorer.md": 9,
    "docs/maintenance.md": 29,
    "docs/scan-plans.md": 19,
    "docs/simulations.md": 19,
    LABS: 20,
    "docs/v4.md": 5,
    "docs/views.md": 61,
}
#: What needs a session.
ON_SPARK = re.compile(r"\b(?:py)?spark\b|\bpyspark\.|\bF\.|\bfiles\b\.|\brides\b|\btable\b\.|^schema = ")
#: So wide is a code block on a public forge, without a scroll bar.
WIDEST = 88


def blocks(page: str) -> list[str]:
    """Return the Python blocks of a page, in order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def statements(page: str) -> list[str]:
    """Return the statements of all blocks of a page, without comments, in order."""
    return [ast.unparse(statement) for block in blocks(page) for statement in ast.parse(block).body]


def run(wanted: list[str], names: dict[str, Any], page: str) -> None:
    """Run statements; the error names the one that fails."""
    for statement in wanted:
        try:
            exec(compile(statement, page, "exec"), names)
        except Exception as e:
            raise AssertionError(f"{page}: {statement}\n{type(e).__name__}: {e}") from e


@pytest.mark.parametrize("page", PAGES)
def test_code_runs_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark", None)  # none of it needs the extra
    names: dict[str, Any] = {}
    plain = [statement for statement in statements(page) if not ON_SPARK.search(statement)]
    assert len(plain) >= PAGES[page]
    try:
        run(plain, names, page)
        if page == LABS:
            assert ix.lab("lab/trips").format_version == 4
    finally:
        ipywidgets.Widget.close_all()
        names["catalog"].close() if "catalog" in names else None


def test_all_pages_with_code_are_run() -> None:
    guides = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    assert {page for page in {README, *guides} if blocks(page)} == {*PAGES, SPARK}


@pytest.mark.parametrize("page", [*PAGES, SPARK])
def test_code_lines_fit(page: str) -> None:
    assert [line for block in blocks(page) for line in block.splitlines() if len(line) > WIDEST] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / README).read_text(encoding="utf-8").splitlines()) <= 120


def markdown() -> list[Path]:
    """Return the project's pages for people."""
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("path", markdown(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    wrong = []
    for target in (one or other for one, other in targets):
        if "://" in target:
            continue
        place, _, anchor = target.partition("#")
        aim = path.parent / place if place else path
        if not aim.exists() or (anchor and aim.suffix == ".md" and anchor not in anchors(aim)):
            wrong.append(target)
    assert not wrong


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as forges make them, and those that it names itself."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    named = set(re.findall(r'<a id="([^"]+)">', text))
    return named | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
