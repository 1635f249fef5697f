"""docs/v4.md and docs/v4-conformance.md: made from the registries and the points, with tests that exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iceexplore.errors import OPEN_POINTS, RULES
from scripts import v4_conformance, v4_page
from scripts.v4_conformance import ROOT, Point, names_of_tests, points
from scripts.v4_page import rule_tests


@pytest.mark.parametrize("made", [v4_page, v4_conformance], ids=lambda module: module.PAGE.name)
def test_a_page_is_what_its_script_writes(made: Any) -> None:
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run: make v4-page"


@pytest.mark.parametrize("name", sorted({*rule_tests().values(), *(p.test for p in points() if p.test)}))
def test_every_test_that_they_name_exists(name: str) -> None:
    file, _, test = name.partition("::")
    assert test in names_of_tests(file)


def test_open_points_name_rules() -> None:
    assert {rule for point in OPEN_POINTS.values() for rule in point.rules} <= RULES.keys()
    assert all(point.title and point.written for point in OPEN_POINTS.values())


def test_points_have_a_module_and_a_test_or_a_reason() -> None:
    for point in points():
        assert (ROOT / point.module).is_file() and point.section and point.says, point
        assert point.test or point.differs.startswith("not "), point
        assert not point.open or point.open in OPEN_POINTS, point
    quoted = [(p.section, p.says) for p in points()]
    assert len(set(quoted)) == len(quoted)


def test_every_rule_and_open_point_of_the_proposal_is_a_point() -> None:
    checked = {r.id for r in RULES.values() if r.is_checked and r.source.startswith("V4 proposal")}
    assert {p.rule for p in points() if p.rule} == checked
    assert {p.open for p in points() if p.open} == set(OPEN_POINTS)


def test_a_point_that_is_not_as_written_shows_why() -> None:
    row = v4_conformance._row(7, Point("S", "a|b <c>", "iceexplore/x.py", "tests/y.py::test_z", differs="for a reason"))
    assert row == r"| 7 | a\|b &lt;c> | [x.py](../iceexplore/x.py) | [test_z](../tests/y.py) | no: for a reason |"
    assert Path(v4_conformance.PAGE).name == "v4-conformance.md"
