"""Maintenance that a nightly job runs: nothing to do is no error."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.arrow import build

MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_idle_rewrites_return_none(tmp_path: Path, version: int) -> None:
    lab = ix.create(tmp_path / "lab", {"id": "long"}, format_version=version)
    assert lab.compact() is None
    assert lab.rewrite_manifests() is None
    lab.append({"id": [1]})
    before = lab.snapshot
    assert lab.compact() is None
    if version > 1:
        assert lab.rewrite_position_deletes() is None
    assert lab.refresh().snapshot == before
    simulation = lab.simulate()
    assert simulation.compact() is None and simulation.snapshot == before
    lab.append({"id": [2]})
    assert lab.compact() is not None


def deletes_of(table: ix.Table) -> list[tuple[str, int]]:
    files = table.inspect.delete_files.arrow().to_pylist()
    return [(str(file["file_format"]).lower(), file["record_count"]) for file in files]


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("simulated", [False, True])
def test_position_deletes_of_version_2_are_merged(tmp_path: Path, granularity: str, simulated: bool) -> None:
    lab = ix.create(
        tmp_path / "lab", {"id": "long", "p": "string"}, partition_by=["p"], format_version=2,
        properties=MERGE_ON_READ | {"write.delete.granularity": granularity},
    )  # fmt: skip
    lab.append({"id": list(range(8)), "p": ["a"] * 4 + ["b"] * 4})
    lab.append({"id": list(range(8, 12)), "p": ["a"] * 4})
    for number in (0, 1, 5, 6, 9):
        lab.delete(f"id = {number}")
    assert len(deletes_of(lab)) == 5
    table = lab.simulate() if simulated else lab
    made = table.rewrite_position_deletes()
    assert made is not None and made.operation == "replace"
    per_partition = [("parquet", 2), ("parquet", 3)]
    assert sorted(deletes_of(table)) == (
        per_partition if granularity == "partition" else [("parquet", 1), ("parquet", 2), ("parquet", 2)]
    )
    assert sorted(build.to_pylist(table.to_arrow()["id"])) == [2, 3, 4, 7, 8, 10, 11]
    assert table.rewrite_position_deletes() is None


def test_dangling_position_deletes_are_dropped(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "lab", {"id": "long"}, format_version=2, properties=MERGE_ON_READ)
    lab.append({"id": [0, 1]})
    lab.delete("id = 0")
    [path] = lab.inspect.data_files.arrow()["file_path"].to_pylist()
    simulation = lab.simulate()
    simulation.delete_files([path])
    if deletes_of(simulation):  # the delete file outlived what it deletes from
        assert simulation.rewrite_position_deletes() is not None
    assert deletes_of(simulation) == []
    assert simulation.count() == 0


def test_version_1_has_no_position_deletes(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "lab", {"id": "long"}, format_version=1)
    lab.append({"id": [1]})
    with pytest.raises(ix.RuleError, match="format version 2"):
        lab.rewrite_position_deletes()


def test_expire_explains_what_it_kept(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "lab", {"id": "long"}, format_version=2)
    for number in range(4):
        lab.append({"id": [number]})
    first, *_, last = (snapshot.snapshot_id for snapshot in lab.snapshots)
    lab.tag("keep", first)
    expired = lab.expire_snapshots(retain_last=2)
    assert len(expired) == 0 and len(expired.kept) == 4
    reasons = {kept.snapshot_id: kept.reason for kept in expired.kept}
    assert reasons[first] == "tag 'keep' points to it"
    assert reasons[last] == "branch 'main' points to it"
    young = "younger than 5 days, in branch 'main' (default of history.expire.max-snapshot-age-ms)"
    assert list(reasons.values()).count(young) == 2
    assert "0 snapshots expired, 4 kept" in repr(expired) and young in repr(expired)
    expired = lab.expire_snapshots(older_than="2100-01-01", retain_last=2)
    assert len(expired) == 1 and expired == tuple(expired)
    assert [kept.reason for kept in expired.kept if kept.snapshot_id not in (first, last)] == [
        "among the newest 2 of branch 'main' (retain_last=)"
    ]
    assert expired.to_pandas()["expired"].tolist() == [True, False, False, False]
    assert "<pre>1 snapshot expired, 3 kept" in expired._repr_html_()
    lab.set_properties({"history.expire.max-snapshot-age-ms": "7200000"})
    lab.append({"id": [9]})
    assert any("2 hours" in k.reason and "table property" in k.reason for k in lab.expire_snapshots().kept)


def test_expire_names_refs_that_went(tmp_path: Path) -> None:
    simulation = ix.empty({"id": "long"}, format_version=2)
    simulation.append(1, rows=1)
    simulation.tag("<b>\x1b", max_ref_age_ms=1)
    simulation.append(1, rows=1)
    expired = simulation.expire_snapshots(older_than="2100-01-01")
    assert expired.refs == ("<b>\x1b",) and len(expired) == 1
    assert "<b>" not in expired._repr_html_() and "\x1b" not in repr(expired)
    assert pickle.loads(pickle.dumps(expired)).kept == expired.kept
