"""docs/doctor.md is made from the registries, and lists every mode that a code or a damage names."""

from __future__ import annotations

from iceexplore.doctor import MODES, Finding, finding_lines
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


def test_every_code_has_a_meaning_and_a_remedy() -> None:
    for kind in PROBLEM_KINDS.values():
        assert kind.means.endswith(".") and kind.remedy.endswith(".")
        assert kind.means[0].isupper() or kind.means.startswith("iceexplore")
        assert kind.remedy[0].isupper()


def test_a_finding_names_the_issues_of_its_modes() -> None:
    finding = Finding("file-missing", (1, 6, 99), "fail", "/t/a.parquet", "It is gone.")
    assert finding.reported == tuple(f"apache/iceberg#{n}" for n in (7007, 2435, 12792, 12499))
    assert ("Reported", ", ".join(finding.reported)) in list(finding_lines(finding))
    assert MODES[12].issues[0] == "duckdb-iceberg#29"
    assert MODES[50].issues == ()
