"""docs/doctor.md is made from the registries, and lists every mode that a code or a damage names."""

from __future__ import annotations

from iceexplore.doctor import MODES
from iceexplore.errors import PROBLEM_KINDS
from scripts.doctor_page import PAGE, page
from tests.doctor.damages import DAMAGES
from tests.doctor.v4_damages import V4_DAMAGES


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make doctor-page"


def test_every_mode_is_described() -> None:
    assert list(MODES) == list(range(1, 86))
    assert all(number == mode.number and mode.text.endswith(".") for number, mode in MODES.items())
    named = {number for kind in PROBLEM_KINDS.values() for number in kind.modes}
    assert named | {one.mode for one in (*DAMAGES, *V4_DAMAGES)} <= MODES.keys()
