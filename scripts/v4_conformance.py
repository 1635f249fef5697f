"""Write docs/v4-conformance.md: every point of the V4 proposal, with the module, the test and how far the code goes.

The points are data, in tests/v4_points.toml; rules and open points come from the registries in ``iceexplore.errors``.

Run from the root of the repository: ``python -m scripts.v4_conformance``.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from scripts.v4_page import rule_tests

__all__ = ["PAGE", "POINTS", "ROOT", "Point", "names_of_tests", "page", "points"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "v4-conformance.md"
POINTS = ROOT / "tests" / "v4_points.toml"

_INTRODUCTION = """\
# Points of the V4 proposal

<!-- Written by `make v4-page` (scripts/v4_conformance.py) from tests/v4_points.toml: change these. -->

Each point of the proposal "Iceberg Single File Commits" in the document's order and words, with the module that does
it and a test that fails if it does not. Of {count} points the code does {kept} as written. For the other {others}, the
last column has the reason{untested}.

A point is something that a reader, a writer, a figure or a measurement can have right or wrong. What the document
repeats is counted once, where it comes first, and so are the two tables of entries and the two lists of old and new
fields; reasons, advantages and drawbacks count only where they can be tested. (An audit of the document counted more
coarsely, about 150.) "..." leaves words out, and words in brackets are ours. "Open" leads to what
[the proposal leaves open or contradicts](v4.md#what-the-proposal-leaves-open-or-contradicts-and-what-is-written-here).
`t.rules()` checks [the rules](v4.md#rules) in any V4 table.
"""


@dataclass(frozen=True)
class Point:
    """A point of the proposal.

    Attributes
    ----------
    section, says
        The section of the document, and its words.
    module
        The module that does it, from the root of the repository.
    test
        ``file::function``; empty if there is none.
    rule
        The rule of `iceexplore.errors.RULES` that says the same, whose test is `test`; empty for others.
    differs
        Why the code does something else, or only a part; empty if it does what the document says.
    open
        The point of `iceexplore.errors.OPEN_POINTS` that it belongs to; empty for none.
    """

    section: str
    says: str
    module: str
    test: str = ""
    rule: str = ""
    differs: str = ""
    open: str = ""


def points() -> list[Point]:
    """Return all points, in the order of the document.

    Raises
    ------
    KeyError
        A rule has no test.
    TypeError
        A point has a key that it cannot have, or lacks one.
    """
    found = tomllib.loads(POINTS.read_text(encoding="utf-8"))["point"]
    tests = rule_tests()
    return [Point(**{**item, "test": tests[item["rule"]]} if "rule" in item else item) for item in found]


@cache
def names_of_tests(file: str) -> frozenset[str]:
    """Return the names of the test functions of a module, from its syntax tree."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_"))


def page() -> str:
    """Return the page."""
    every = points()
    kept = sum(not p.differs for p in every)
    untested = sum(not p.test for p in every)
    lines = [
        _INTRODUCTION.format(
            count=len(every),
            kept=kept,
            others=len(every) - kept,
            untested=f"; {untested} of them are not done at all and have no test" if untested else "",
        )
    ]
    number = 0
    for section, held in groupby(every, lambda p: p.section):
        lines += [f"## {section}", "", "| | the document | module | test | as written |", "|--:|---|---|---|---|"]
        for point in held:
            number += 1
            lines.append(_row(number, point))
        lines.append("")
    return "\n".join(lines)


def _row(number: int, point: Point) -> str:
    state = f"no: {point.differs}" if point.differs else "yes"
    if point.open:
        state += f" ([open](v4.md#{point.open}))"
    file, _, test = point.test.partition("::")
    linked = f"[{test}](../{file})" if test else "none"
    if point.rule:
        linked += f", rule `{point.rule}`"
    says = point.says.replace("|", "\\|").replace("<", "&lt;")
    module = point.module.removeprefix("iceexplore/")
    return f"| {number} | {says} | [{module}](../{point.module}) | {linked} | {state.replace('|', chr(92) + '|')} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
