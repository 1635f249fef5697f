"""Every way to damage a table is found, with its mode, place and severity and nothing else; healthy ones are silent."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.doctor import UNTELLABLE
from tests.doctor import file_damages, manifest_damages  # noqa: F401 (they register their damages)
from tests.doctor.damages import (
    DAMAGES,
    Damage,
    Record,
    document_path,
    edit_avro,
    edit_json,
    edit_manifest,
    healthy,
    local,
    manifest_paths,
    records,
    root_path,
)


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


def test_of_two_damaged_manifests_each_has_its_own_consequences(tmp_path: Path) -> None:
    folder = tmp_path / "trips"
    shutil.copytree(sample_path("trips"), folder)
    table = ix.open(folder)
    newest = set(table.inspect.manifests()["path"])
    older = table.at(table.snapshots[1]).inspect.manifests()["path"]
    cut, missing = (folder / "metadata" / Path(path).name for path in older if path not in newest)
    missing.unlink()
    cut.write_bytes(cut.read_bytes()[:-200])

    report = ix.open(folder).check(snapshots="all")
    found = {one.code: one for one in report.findings}
    assert found["file-missing"].follows == (), "nothing of the other file"
    assert cut.name in found["file-truncated"].location
    assert {one.code for one in found["file-truncated"].follows} >= {"manifest-salvaged"}
    assert all(cut.name in one.location for one in found["file-truncated"].follows)


@pytest.mark.parametrize("is_partitioned", [True, False])
def test_all_specs_whose_deletes_apply_to_nothing_are_named(tmp_path: Path, is_partitioned: bool) -> None:
    how = {"write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"}
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "string"}, partition_by=["k"], format_version=2, properties=how)
    lab.append({"id": list(range(9)), "k": ["a"] * 9})
    for number in (1, 2, 3):
        lab.delete(f"id = {number}")
    folder = tmp_path / "t"

    def add_specs(document: Record) -> None:
        for number in (1, 2):
            field = {"name": f"k_{number}", "transform": "identity", "source-id": 2, "field-id": 1000}
            document["partition-specs"].append({"spec-id": number, "fields": [field] if is_partitioned else []})

    edit_json(document_path(folder), add_specs)
    specs = dict(zip(manifest_paths(folder, 1), (1, 2, 2), strict=True))

    def change(rows: list[Record], header: dict[str, str]) -> None:
        for row in rows:
            if row["content"] == 1:
                row["partition_spec_id"] = specs[local(row["manifest_path"])]

    edit_avro(root_path(folder), change)
    for path, number in specs.items():

        def change_header(rows: list[Record], header: dict[str, str], spec: str = str(number)) -> None:
            header["partition-spec-id"] = spec

        edit_avro(path, change_header, list_path=root_path(folder))
    (found,) = [f for f in ix.open(folder).check() if f.code == "delete-no-effect"]
    assert (found.count, found.found) == (3, "1, 2")
    assert "3 delete files were written for the partition specs 1, 2, which no live data file has" in found.text


@pytest.mark.parametrize(("code", "folder"), [("delete-path", "/old/data/"), ("delete-dangling", "/old/other/")])
def test_a_fault_of_several_snapshots_is_described_as_in_the_newest(code: str, folder: str, tmp_path: Path) -> None:
    how = {"write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"}
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=3, properties=how)
    for start in (0, 10, 20):
        lab.append({"id": list(range(start, start + 10))})
    lab.delete("id = 3")
    lab.delete("id in (13, 23)")

    def rename(rows: list[Record], header: dict[str, str]) -> None:
        for row in rows:
            file = row["data_file"]
            file["referenced_data_file"] = file["referenced_data_file"].replace("/t/data/", folder)

    for path in manifest_paths(tmp_path / "t", 1):
        edit_avro(path, rename, list_path=root_path(tmp_path / "t"))
    report = ix.open(tmp_path / "t").check(snapshots="all")
    (found,) = [f for f in report if f.code == code]
    assert len(found.snapshots) == 2
    assert (found.count, len(found.places)) == (3, 3)
    assert sum(len(rows) for rows in found.hits.by_file().values() if rows is not None) == 3
    if code == "delete-path":
        assert found.text.startswith("3 delete files name data files by outdated paths")


#: Damages of one file or snapshot, with a part of the finding's text.
_SINGULAR = {
    "partition_summaries_null": "1 of 4 manifests has no partition summaries in the manifest list: every filter reads "
    "this manifest, and commits that keep it do not",
    "metrics_of_one_file_lost": "1 data file has no column metrics at all, while 5 others of the table have metrics",
    "vector_names_no_file": "1 deletion vector does not state the data file: readers",
    "vector_names_the_old_place": "1 delete file names data files by outdated paths, such as",
    "equality_deletes_older_than_the_data": "1 delete file is older than every data file that it could apply to: it "
    "deletes nothing, and every scan opens it.",
    "deletes_dropped_by_a_compaction": "It also removed 1 delete file that applies to the new files: rows that were",
    "catalog_points_to_an_old_file": "continues its history with 1 more snapshot: the catalog",
}


@pytest.mark.parametrize("name", _SINGULAR)
def test_texts_about_one_file_or_snapshot_are_singular(name: str, tmp_path: Path) -> None:
    (one,) = [d for d in DAMAGES if d.name == name]
    folder = healthy(tmp_path, one.version)
    one.damage(folder)
    report = ix.open(folder / one.opens).check(level=one.level, snapshots=one.snapshots)  # type: ignore[arg-type]
    assert any(_SINGULAR[name] in f.text for f in report if f.code == one.code)


def test_a_vector_that_lacks_two_fields_has_two_findings(tmp_path: Path) -> None:
    folder = healthy(tmp_path, 3)
    lacking = {"content_offset": None, "content_size_in_bytes": None}
    edit_manifest(folder, records(lambda r: r["data_file"].update(lacking)), 1)
    found = [f for f in ix.open(folder).check() if f.code == "entry-invalid"]
    assert [(f.field, len(f.snapshots)) for f in found] == [
        ("144 content_offset", 1),
        ("145 content_size_in_bytes", 1),
    ]


def test_without_a_number_in_its_name_the_files_modified_last_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iceexplore.doctor.checks._folder._MOST_OPENED", 2)
    folder = healthy(tmp_path)
    current = document_path(folder).rename(folder / "metadata" / "current.metadata.json")
    for i in range(1, 6):
        os.utime(folder / "metadata" / f"v{i}.metadata.json", (i, i))

    def change(document: Record) -> None:
        document["table-uuid"] = "11111111-3681-40c8-86dc-e36561f83385"

    edit_json(folder / "metadata" / "v4.metadata.json", change)
    os.utime(folder / "metadata" / "v4.metadata.json", (4, 4))
    report = ix.open(current).check()
    assert [f.location.rpartition("/")[2] for f in report if f.code == "table-uuid-differs"] == ["v4.metadata.json"]
    assert report.unknown["some of the other metadata files"] == "only 2 of 5 were opened, those modified last"


def test_a_missing_next_row_id_is_fatal_beside_other_missing_keys(tmp_path: Path) -> None:
    folder = healthy(tmp_path, 3)

    def change(document: Record) -> None:
        del document["next-row-id"], document["last-column-id"]

    edit_json(document_path(folder), change)
    [found] = [f for f in ix.open(folder).check() if "next-row-id" in (f.field or "")]
    assert (found.field, found.severity) == ("last-column-id, next-row-id", "fail")
