"""Every way to damage a table is found, with its mode, place and severity and nothing else; healthy ones are silent."""

from __future__ import annotations

from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.doctor import UNTELLABLE
from tests.doctor import file_damages, manifest_damages  # noqa: F401 (they register their damages)
from tests.doctor.damages import DAMAGES, Damage, healthy


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("level", ["metadata", "files", "rows"])
def test_a_healthy_table_has_no_finding(version: int, level: str, tmp_path: Path) -> None:
    folder = healthy(tmp_path, version) if version > 1 else _v1(tmp_path)
    report = ix.open(folder).check(level=level, snapshots="all")  # type: ignore[arg-type]
    assert list(map(str, report)) == []
    assert report.ok
    assert report.exit_code == 0
    assert dict(report.unknown) == {}


def _v1(folder: Path) -> Path:
    lab = ix.create(folder / "t", {"id": "long", "k": "string"}, partition_by="k", format_version=1)
    lab.append({"id": [1, 2], "k": ["a", "b"]})
    lab.append({"id": [3], "k": ["a"]})
    return folder / "t"


#: The V4 proposal's modes, and a catalog that points at a deleted metadata file, which is found while opening.
_ELSEWHERE = {5, *range(50, 59), 85}


def test_every_mode_is_damaged_or_untellable() -> None:
    damaged = {one.mode for one in DAMAGES}
    assert damaged & UNTELLABLE.keys() == set()
    assert set(range(1, 86)) - damaged - UNTELLABLE.keys() - _ELSEWHERE == set()
    assert all(reason.endswith(".") for reason in UNTELLABLE.values())


@pytest.mark.parametrize("one", DAMAGES, ids=lambda d: f"{d.mode}-{d.name}")
def test_a_damage_is_found(one: Damage, tmp_path: Path) -> None:
    folder = healthy(tmp_path, one.version)
    place = one.damage(folder)
    report = ix.open(folder / one.opens).check(level=one.level, snapshots=one.snapshots)  # type: ignore[arg-type]
    found = [f for f in report if f.code == one.code and one.mode in f.modes]
    assert found, "\n".join(map(str, report))
    assert found[0].severity == one.severity
    assert place in found[0].where
    assert found[0].advice
    worse = [str(f) for f in report if f.code != one.code and f.severity in ("fail", "wrong")]
    assert worse == [], "one fault is one finding"
