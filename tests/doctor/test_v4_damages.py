"""Every way to damage a V4 tree is found, with mode, place and severity and nothing else; healthy ones are silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.commits import RULES
from iceexplore.doctor.checks._rules import _KINDS
from iceexplore.errors import PROBLEM_KINDS
from tests.doctor.v4_damages import V4_DAMAGES, V4Damage, affiliated_v4, appended_v4, draft_v4, healthy_v4

#: The trees are a simulation's, whose synthetic files are nowhere, and outside of the folder that it is saved to.
NOWHERE = ("outside-roots",)
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"affinity": "some", "partition_storage": "source"},
    {"dv_encoding": "delta", "manifest_format": "avro"},
    {"dv_encoding": "replace", "inline_dv_bytes": 0, "partition_storage": "tuple"},
    {"dv_attached": True},
]


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
def test_every_layout_of_the_proposal_is_healthy(options: dict[str, Any], tmp_path: Path) -> None:
    report = ix.open(healthy_v4(tmp_path, **options)).check(snapshots="all", skip=NOWHERE)
    assert [str(f) for f in report if f.severity != "untidy" or not PROBLEM_KINDS[f.code].health] == []
    assert dict(report.unknown) == {}


@pytest.mark.parametrize("healthy", [affiliated_v4, appended_v4, draft_v4])
def test_healthy_trees_have_no_finding(healthy: Callable[[Path], Path], tmp_path: Path) -> None:
    t = ix.open(healthy(tmp_path))
    report = t.check(snapshots="all", skip=NOWHERE)
    assert [str(f) for f in report if f.severity != "untidy" or not PROBLEM_KINDS[f.code].health] == []
    assert dict(report.unknown) == {}
    root = t._state.root()
    assert root is not None
    assert (root.dialect == "v4-draft") == (healthy is draft_v4)


@pytest.mark.parametrize("one", V4_DAMAGES, ids=lambda d: f"{d.mode}-{d.name}")
def test_a_damage_is_found(one: V4Damage, tmp_path: Path) -> None:
    folder = one.healthy(tmp_path)
    place = one.damage(folder)
    report = ix.open(folder).check(skip=NOWHERE)
    found = [f for f in report if f.code == one.code and one.mode in f.modes]
    assert found, "\n".join(map(str, report))
    assert found[0].severity == one.severity
    assert place in found[0].where
    assert found[0].advice
    worse = [str(f) for f in report if f is not found[0] and f.severity in ("fail", "wrong")]
    assert worse == [], "one fault is one finding"


def test_every_rule_of_a_root_has_a_code() -> None:
    assert set(_KINDS) == {r.id for r in RULES.values() if r.is_checked and r.only != "manifest list"}
    assert {kind.code for kind in _KINDS.values()} <= set(PROBLEM_KINDS)
