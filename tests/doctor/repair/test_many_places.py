"""Findings with hundreds of places: all are repaired in one round, and a step without effect is named as such."""

from __future__ import annotations

import shutil
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iceexplore as ix
from iceexplore.doctor import Finding, Report
from iceexplore.doctor.health import _health as health
from iceexplore.doctor.repair._document_repairs import step_of
from iceexplore.doctor.repair._registry import REPAIRS, Repair, _repair
from iceexplore.storage import Cache
from tests.doctor.damages import Record, edit_manifest, file_paths, healthy, local, records

#: The number of data files, and of places of each fault.
FILES, EACH = 400, 80


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a v3 table of 400 files with two rows each, one of them deleted, with five faults at 80 places each."""
    folder = tmp_path_factory.mktemp("many") / "t"
    properties = {"write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"}
    lab = ix.create(folder, {"id": "long", "k": "string"}, partition_by="k", format_version=3, properties=properties)
    lab.append({"id": list(range(2 * FILES)), "k": [f"k{i // 2:03}" for i in range(2 * FILES)]})
    lab.delete(f"id in ({', '.join(str(2 * i) for i in range(FILES))})")

    def damage_data(rows: list[Record], header: dict[str, str]) -> None:
        for number, row in enumerate(rows):
            file = row["data_file"]
            if number < EACH:
                file["first_row_id"] = 0
            elif number < 2 * EACH:
                file["file_size_in_bytes"] += number
            elif number < 3 * EACH:
                file["record_count"] += number

    def damage_deletes(rows: list[Record], header: dict[str, str]) -> None:
        for number, row in enumerate(rows):
            if 3 * EACH <= number < 4 * EACH:
                row["data_file"]["referenced_data_file"] += ".gone"

    edit_manifest(folder, damage_data, recount=True)
    edit_manifest(folder, damage_deletes, content=1)
    for path in file_paths(folder)[4 * EACH :]:
        path.unlink()
    return folder


def test_all_places_of_many_are_repaired(table: Path, tmp_path: Path) -> None:
    report = ix.open(table).check(level="files")
    every = [more for one in report for more in (one, *one.follows)]
    counts = {(f.code, f.field): f.count for f in every}
    for fault in (
        ("count-mismatch", "file_size_in_bytes"),
        ("count-mismatch", "record_count"),
        ("row-ids-twice", "142 first_row_id"),
        ("delete-dangling", "143 referenced_data_file"),
        ("file-missing", None),
    ):
        assert EACH - 1 <= counts[fault] <= EACH, fault
    assert all(len(f.places) <= 10 for f in every)
    plan = report.repair()
    assert all(step.effective for step in plan)
    assert plan.is_complete, plan
    assert plan.rows_after == FILES - EACH
    mended = plan.table
    assert mended.check(level="files").ok
    files = mended.inspect.files.arrow().to_pylist()
    made = {(local(r["file_path"]), r["record_count"], r["file_size_in_bytes"]) for r in files if r["content"] == 0}
    assert made == {(path, 2, path.stat().st_size) for path in file_paths(table)[: 4 * EACH]}
    plan.save(tmp_path / "fixed")
    assert ix.open(tmp_path / "fixed").count() == FILES - EACH


def test_a_finding_keeps_all_its_places(table: Path) -> None:
    report = ix.open(table).check(level="files")
    one = next(f for f in report if f.field == "file_size_in_bytes")
    (ordinals,) = one.hits.by_file().values()
    assert ordinals is not None
    assert sorted(ordinals.tolist()) == list(range(EACH, 2 * EACH))
    (found,) = one.hits.found
    assert len(np.unique(found.ordinals)) == EACH
    read = Report.from_dict(report.to_dict())
    assert next(f for f in read if f.field == one.field).hits.places == one.places


def test_a_step_without_effect_is_taken_once_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = healthy(tmp_path)
    edit_manifest(folder, records(lambda r: r["data_file"].update({"file_size_in_bytes": 7})))
    planned: list[int] = []

    def in_vain(draft: object, found: list[Finding]) -> object:
        planned.append(len(found))
        return step_of("Look at the files", "Looks at the files.", found)

    fruitless: Repair = _repair("count-mismatch entry .*", in_vain)  # type: ignore[arg-type]
    others = tuple(r for r in REPAIRS if not r.pattern.pattern.startswith("count-mismatch (entry|row) (record"))
    assert len(others) == len(REPAIRS) - 1
    monkeypatch.setattr("iceexplore.doctor.repair._plan.REPAIRS", (fruitless, *others))
    plan = ix.open(folder).check(level="files").repair()
    assert planned == [1]
    (step,) = plan.steps
    assert (step.title, step.effective) == ("Look at the files", False)
    assert "no effect: the findings remain" in repr(plan)
    assert "no effect: the findings remain" in plan._repr_html_()
    (left,) = [u for u in plan.unrepaired if u.finding.code == "count-mismatch"]
    assert left.reason.startswith("This fault remains after the repair “Look at the files”. ")
    assert not plan.is_complete
    assert plan.to_dict()["steps"][0]["effective"] is False


def test_a_large_table_passes_through_a_smaller_cache(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    lowered = Cache.lowered

    def spy(cache: Cache, most: int) -> AbstractContextManager[None]:
        limits.append(most)
        return lowered(cache, most)

    monkeypatch.setattr(Cache, "lowered", spy)
    expected = [(f.code, f.where) for f in ix.open(table).check()]
    assert limits == []
    limit = "iceexplore.doctor.examination._examination._MANY_ENTRIES"
    monkeypatch.setattr(limit, 2 * FILES - 1)  # data files and vectors
    assert [(f.code, f.where) for f in ix.open(table).check()] == expected
    assert len(limits) == 1
    limits.clear()
    monkeypatch.setattr(limit, 2 * FILES)
    ix.open(table).check(snapshots="all")  # snapshots share their manifests
    assert limits == []


@pytest.mark.parametrize("damaged", [False, True])
def test_the_plan_made_in_a_thread_changes_nothing(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    folder = shutil.copytree(table, tmp_path / "t")
    if damaged:  # the plan is refused, which the report says
        next((folder / "metadata").glob("*-m0.avro")).write_bytes(b"")
    threads: list[str] = []
    plan = health._plan

    def spy(*arguments: Any) -> Any:
        threads.append(threading.current_thread().name)
        return plan(*arguments)

    monkeypatch.setattr(health, "_plan", spy)
    expected = ix.open(folder).check()
    monkeypatch.setattr(health, "_FEWEST_ENTRIES", 2 * FILES)
    found = ix.open(folder).check()
    assert [thread.startswith("iceexplore-doctor") for thread in threads] == [False, True]
    assert found.to_dict()["findings"] == expected.to_dict()["findings"]
    assert found.unknown == expected.unknown
    assert ("the sizes and deletes of data files" in found.unknown) == damaged
