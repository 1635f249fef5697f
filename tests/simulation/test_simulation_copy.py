"""Copies of simulations: neither sees what the other commits, with a seed they do the same, files are kept and go."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore import commits, manifests
from iceexplore.errors import StorageError
from iceexplore.simulation import Simulation


def paths(table: ix.Table) -> list[str]:
    return sorted(table.inspect.data_files()["file_path"]) if table.snapshot else []


@pytest.fixture
def start() -> Simulation:
    made = ix.sample("trips").simulate(4, seed=3)
    made.append(2, rows=100)
    return made


def test_a_copy_goes_its_own_way(start: Simulation) -> None:
    before, at = paths(start), start.metadata_location
    other = start.copy()
    assert (other.metadata_location, paths(other)) == (at, before)
    other.append(1, rows=5)
    assert (start.metadata_location, paths(start), len(start.writes)) == (at, before, len(start.copy().writes))
    start.append(3, rows=5)  # with a seed the names are those that the copy has given: no file is in the way
    assert len(paths(start)) == len(before) + 3
    assert len(paths(other)) == len(before) + 1
    assert start.refresh() is start and len(paths(start)) == len(before) + 3
    assert commits.check_rules(other.state) == commits.check_rules(start.state) == []


def test_equal_commits_make_equal_tables(start: Simulation) -> None:
    other = start.copy()
    for simulation in (start, other):
        simulation.append(2, rows=7)
        simulation.row_delta(deletes={paths(simulation)[0]: [1]})
    assert start.state.opened.document == other.state.opened.document
    root = start.state.root()
    assert root is not None
    assert [start.state.storage.read(p, kind="other") for p in (start.metadata_location, root.location)] == [
        other.state.storage.read(p, kind="other") for p in (other.metadata_location, root.location)
    ]


def test_costs_go_with_the_copy(start: Simulation, tmp_path: Path) -> None:
    other = start.copy()
    other.append(1, rows=5)
    assert other.cost().commits["operation"].tolist() == ["append", "append"]
    assert len(start.cost().commits) == 1
    saved = other.save(tmp_path / "saved")
    assert len(paths(ix.open(saved.path))) == len(paths(other))


def test_the_copied_files_stay_as_long_as_somebody_needs_them() -> None:
    first = ix.empty({"id": "long"}, format_version=3, seed=1)
    first.append(1, rows=5)
    folder = Path(first.overlay)
    other = first.copy().copy()
    del first
    other.append(1, rows=5)
    assert folder.exists() and len(paths(other)) == 2
    one = other.copy()
    other.close()
    with pytest.raises(StorageError, match="closed"):
        one.append(1, rows=5)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_what_is_reported_as_checked_is_what_the_checker_names(version: int) -> None:
    folders = [Path(package.__path__[0]) / "rules" for package in (commits, manifests)]
    text = "".join(m.read_text() for folder in folders for m in folder.glob("_*.py") if m.name != "_check.py")
    found = {name for name in commits.RULES if re.search(f'"{name}"', text)}
    s = ix.empty({"id": "long"}, format_version=version, seed=1)
    assert commits.checked_rules(s.state) == ()
    s.append(1, rows=5)
    checked = {rule.id for rule in commits.checked_rules(s.state)}
    of_lists = {"summaries-cover"}
    if version < 4:
        assert of_lists < checked < found
        return
    draft = ix.empty({"id": "long"}, format_version=4, dialect="v4-draft", seed=1)
    draft.append(1, rows=5)
    of_draft = {rule.id for rule in commits.checked_rules(draft.state)}
    assert checked | of_draft == found - of_lists
    assert checked - of_draft and of_draft - checked, "the proposal and the draft each have rules of their own"
