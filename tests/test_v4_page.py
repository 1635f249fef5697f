"""docs/v4.md: made from the registries, with tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from iceexplore.errors import OPEN_POINTS, RULES
from scripts.v4_page import PAGE, STATEMENTS, page, rule_tests

ROOT = PAGE.parent.parent


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make v4-page"


@pytest.mark.parametrize("name", sorted({*rule_tests().values(), *(t for *_, t in STATEMENTS if t)}))
def test_every_test_that_it_names_exists(name: str) -> None:
    file, _, test = name.partition("::")
    assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


def test_open_points_name_rules() -> None:
    assert {rule for point in OPEN_POINTS.values() for rule in point.rules} <= RULES.keys()
    assert all(point.title and point.written for point in OPEN_POINTS.values())
    assert Path(PAGE).name == "v4.md"
