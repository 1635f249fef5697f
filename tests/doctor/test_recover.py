"""Files of lost manifests are listed again where other manifests or the data folder still have them."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

import iceexplore as ix
from iceexplore.doctor import RepairPlan, step_instead
from iceexplore.doctor.recovery._choose import Counts, choose
from tests.doctor.damages import (
    Record,
    document_path,
    edit_avro,
    edit_json,
    edit_manifest,
    file_paths,
    healthy,
    local,
    manifest_paths,
    records,
    root_path,
)
from tests.doctor.file_damages import with_equality_delete
from tests.helpers.sampling import one_of

AGAIN = "List the files of lost manifests again"
REGISTERED = "Re-register files that no manifest lists"
REMOVED = "Remove lost manifests"


def _table(folder: Path, version: int = 2, *, rows: tuple[int, ...] = (3, 2, 1), **options: Any) -> ix.Lab:
    """Return a table with an append for each number of rows; its ids count from 0."""
    lab = ix.create(
        folder / "t", {"id": "long", "k": "string"}, format_version=version,
        properties={"commit.manifest-merge.enabled": "false", "write.delete.mode": "copy-on-write"}, **options,
    )  # fmt: skip
    start = 0
    for count in rows:
        lab.append({"id": list(range(start, start + count)), "k": ["ab"[i % 2] for i in range(count)]})
        start += count
    return lab


def _first_manifest(lab: ix.Lab) -> Path:
    """Return the only manifest of the first snapshot, which later snapshots list, too."""
    (path,) = lab.at(lab.snapshots[0]).inspect.manifests()["path"]
    return Path(path.removeprefix("file://"))


def _lose(folder: Path, number: int = 0, content: int = 0) -> Path:
    path = manifest_paths(folder, content)[number]
    path.unlink()
    return path


def _merge_newest(folder: Path) -> None:
    """Have the newest manifest list the files of the second one, too, as an append that merges manifests does."""
    new, old = manifest_paths(folder)
    with old.open("rb") as file:
        merged: list[Any] = list(fastavro.reader(file))

    def listed(rows: list[Record], header: dict[str, str]) -> None:
        gone = next(r for r in rows if local(r["manifest_path"]) == old)
        rows.remove(gone)
        rows[0].update({n: gone[n] for n in ("existing_files_count", "existing_rows_count", "min_sequence_number")})

    edit_avro(root_path(folder), listed)
    edit_avro(new, lambda rows, header: rows.extend(merged), list_path=root_path(folder))


def _plan(folder: Path) -> RepairPlan:
    return ix.open(folder).check().repair()


def _entries(table: Any) -> list[dict[str, Any]]:
    return sorted(table.inspect.entries.arrow().to_pylist(), key=lambda e: str(e["data_file"]["file_path"]))


def _ids(plan: RepairPlan, folder: Path) -> list[int]:
    """Save a repaired table, and return its ids if it checks clean, counts right and reads without a warning."""
    plan.save(folder / "fixed")
    (folder / "fixed").rename(folder / "elsewhere")
    mended = ix.open(folder / "elsewhere")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found: Any = mended.to_arrow(columns=["id"])["id"].to_pylist()
        ids: list[int] = sorted(found)
    assert mended.count() == len(ids) == plan.rows_after
    assert [str(f) for f in mended.check("rows") if f.severity != "untidy"] == []
    return ids


# From other manifests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", one_of(2, [1, 2, 3]))
def test_a_merged_manifest_is_taken_from_those_it_was_merged_of(version: int, tmp_path: Path) -> None:
    lab = _table(tmp_path, version)
    lab.rewrite_manifests()
    before = _entries(lab)
    path = _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    (step,) = plan
    assert (step.title, step.certain, step.rows_back, step.rows_lost, step.places) == (AGAIN, True, 6, 0, 1)
    assert f"3 files with 6 rows of the manifest {path.name}" in step.text
    assert plan.is_complete
    assert _entries(plan.table) == before, "sequence numbers, row ids, metrics and all else"
    assert _ids(plan, tmp_path) == list(range(6))


def test_the_file_that_the_last_append_added_is_in_the_folder_only(tmp_path: Path) -> None:
    lab = _table(tmp_path, 3)
    lab.rewrite_manifests()
    lab.append({"id": [6], "k": ["c"]})
    _merge_newest(tmp_path / "t")
    table = ix.open(tmp_path / "t")
    assert table.check().ok
    before = {e["data_file"]["file_path"]: e for e in table.inspect.entries.arrow().to_pylist()}
    _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    assert [(s.title, s.certain, s.rows_back) for s in plan] == [(AGAIN, True, 6), (REGISTERED, False, 1)]
    for entry in plan.table.inspect.entries.arrow().to_pylist():
        old = before[entry["data_file"]["file_path"]]
        assert {n: entry[n] for n in ("status", "snapshot_id", "sequence_number", "file_sequence_number")} == {
            n: old[n] for n in ("status", "snapshot_id", "sequence_number", "file_sequence_number")
        }
        assert entry["data_file"]["first_row_id"] == old["data_file"]["first_row_id"]
    assert _ids(plan, tmp_path) == list(range(7))


@pytest.mark.parametrize("expired", [False, True])
def test_a_file_that_was_deleted_since_does_not_come_back(expired: bool, tmp_path: Path) -> None:
    lab = _table(tmp_path, rows=(2, 2, 2))
    lab.rewrite_manifests()
    lab.delete("id < 2")
    deleted: Any = lab.snapshot
    lab.rewrite_manifests()
    if expired:  # the parent is not there to compare with, but its manifest is still listed by a branch

        def expire(document: Record) -> None:
            document["refs"]["old"] = {"snapshot-id": deleted.snapshot_id, "type": "branch"}
            document["snapshots"][-1]["parent-snapshot-id"] = 4242

        edit_json(document_path(tmp_path / "t"), expire)
    _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    assert plan.steps[0].title == AGAIN
    assert plan.steps[0].rows_back == 4
    assert _ids(plan, tmp_path) == [2, 3, 4, 5]


def test_the_manifest_of_a_deletion_is_restored_with_what_it_deleted(tmp_path: Path) -> None:
    lab = _table(tmp_path)
    lab.rewrite_manifests()
    lab.delete("id in (3, 4)")
    before = _entries(lab)
    _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    (step,) = plan
    assert (step.title, step.certain, step.rows_back) == (AGAIN, True, 4)
    assert _entries(plan.table) == before
    assert _ids(plan, tmp_path) == [0, 1, 2, 5]


def test_equal_files_of_which_one_was_deleted_are_left_out(tmp_path: Path) -> None:
    lab = _table(tmp_path, rows=(2, 2, 1))
    lab.rewrite_manifests()
    lab.delete("id < 2")
    paths = [p.name for p in file_paths(tmp_path / "t")]
    _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    assert [(s.title, s.rows_back, s.rows_lost) for s in plan] == [(AGAIN, 1, 0), (REMOVED, 0, 2)]
    assert not plan.steps[0].certain
    assert "1 file with 2 rows" in plan.steps[1].text and "2 files may be among the lost ones" in plan.steps[1].text
    assert any(name in plan.steps[1].python[0] for name in paths), "they are named, to be registered"
    assert _ids(plan, tmp_path) == [4]


def test_a_later_snapshot_has_the_files_of_an_older_ones_manifest(tmp_path: Path) -> None:
    lab = _table(tmp_path, rows=(3,))
    old = manifest_paths(tmp_path / "t")[0]
    lab.append({"id": [3], "k": ["a"]})
    lab.rewrite_manifests()
    old.unlink()
    plan = ix.open(tmp_path / "t").check(snapshots="all").repair()
    (step,) = plan
    assert (step.title, step.certain, step.rows_back, step.rows_lost) == (AGAIN, True, 0, 0), "the current one has them"
    saved = plan.save(tmp_path / "fixed")
    mended = ix.open(saved.metadata_location)
    first = mended.metadata.snapshots[0].snapshot_id
    assert mended.at(first).count() == 3
    assert mended.check(snapshots="all").ok


@pytest.mark.parametrize("version", one_of(2, [1, 2, 3], 1))
def test_a_later_deletion_has_the_file_of_an_older_snapshots_manifest(version: int, tmp_path: Path) -> None:
    lab = _table(tmp_path, version, rows=(3, 2))
    path = next(p for p in manifest_paths(tmp_path / "t") if _rows_in(p) == 3)
    lab.delete("id < 3")
    assert path not in manifest_paths(tmp_path / "t")
    path.unlink()
    plan = ix.open(tmp_path / "t").check(snapshots="all").repair()
    (step,) = plan
    assert (step.title, step.certain, step.rows_back) == (AGAIN, True, 0)
    assert [plan.table.at(s.snapshot_id).count() for s in plan.table.metadata.snapshots] == [3, 5, 2]


def _rows_in(path: Path) -> int:
    with path.open("rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    return sum(r["data_file"]["record_count"] for r in rows)


def test_a_manifest_cut_in_the_middle_is_completed(tmp_path: Path) -> None:
    lab = _table(tmp_path, rows=(3, 2, 1))
    lab.rewrite_manifests()
    (path,) = manifest_paths(tmp_path / "t")
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema: Any = reader.writer_schema
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, metadata=header, sync_interval=1)
    size = path.stat().st_size
    edit_avro(root_path(tmp_path / "t"), records(lambda r: r.update({"manifest_length": size})))
    path.write_bytes(path.read_bytes()[:-30])
    plan = _plan(tmp_path / "t")
    assert [s.title for s in plan][-2:] == ["Rewrite manifests", AGAIN]
    step = plan.steps[-1]
    assert "1 file with" in step.text and step.certain
    assert len(re.findall("parquet'", step.python[0])) == 1
    assert _ids(plan, tmp_path) == list(range(6))


# From the data folder -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "by"),
    one_of(2, [(version, by) for version in (1, 2, 3) for by in (None, "k", "bucket(4, id)")]),
)
def test_the_files_of_an_append_are_found_in_the_data_folder(version: int, by: str | None, tmp_path: Path) -> None:
    lab = _table(tmp_path, version, rows=(4, 1), **({} if by is None else {"partition_by": by}))
    before = lab.to_arrow(columns=["id", *(["_row_id"] if version == 3 else [])]).sort_by("id")
    names = {p.name for p in file_paths(tmp_path / "t")}
    _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    (step,) = plan
    assert (step.title, step.certain, step.rows_back, step.rows_lost) == (REGISTERED, False, 1, 0)
    assert "1 file with 1 row that" in step.text
    assert {Path(p).name for p in plan.table.inspect.files()["file_path"]} == names
    after = plan.table.to_arrow(columns=before.column_names).sort_by("id")
    assert after == before, "with one file, even the row ids are known"
    assert _ids(plan, tmp_path) == list(range(5))


def test_row_ids_of_several_files_are_new(tmp_path: Path) -> None:
    folder = healthy(tmp_path, 3)
    top: Any = ix.open(folder).metadata.next_row_id
    _lose(folder)
    plan = _plan(folder)
    (step,) = plan
    assert "Their row ids are lost" in step.text
    rows = plan.table.to_arrow("id >= 20", columns=["_row_id", "_last_updated_sequence_number"])
    assert sorted(rows["_row_id"].to_pylist()) == [top, top + 1]
    assert rows["_last_updated_sequence_number"].to_pylist() == [4, 4]
    assert plan.table.metadata.next_row_id == top + 2


def test_counts_assign_files_to_two_lost_manifests(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    first, second = manifest_paths(folder)[:2]
    first.unlink()
    second.unlink()
    plan = _plan(folder)
    (step,) = plan
    assert (step.title, step.rows_back, step.places) == (REGISTERED, 8, 2)
    assert "4 files with 8 rows" in step.text
    assert plan.rows_after == 17
    numbers = plan.table.inspect.entries.arrow()["sequence_number"].to_pylist()
    assert sorted(numbers) == [1, 1, 2, 2, 3, 4, 4]


def test_a_finding_names_ten_places_and_all_manifests_are_recovered(tmp_path: Path) -> None:
    _table(tmp_path, rows=tuple(range(1, 14)))
    for path in manifest_paths(tmp_path / "t")[1:]:
        path.unlink()
    plan = _plan(tmp_path / "t")
    assert [(s.title, s.rows_back, s.places) for s in plan] == [(REGISTERED, 78, 12)]
    assert plan.rows_after == 91


@pytest.mark.parametrize("equality", [False, True])
def test_deletes_apply_to_files_whose_sequence_numbers_are_lost(equality: bool, tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    if equality:
        with_equality_delete(folder)
    lab = ix.lab(folder)
    lab.rewrite_manifests()
    edit_json(document_path(folder), lambda d: d["refs"].pop("audited"))
    ix.lab(folder).expire_snapshots(older_than=10**15, retain_last=1)
    assert len(ix.open(folder).metadata.snapshots) == 1
    (path,) = manifest_paths(folder)
    path.unlink()
    plan = _plan(folder)
    (step,) = plan
    assert (step.title, step.rows_back) == (REGISTERED, 17)
    assert "sequence numbers of EXISTING entries are lost" in step.text
    assert ("1 equality delete file may delete rows that were written after the delete" in step.text) == equality
    assert 3 not in _ids(plan, tmp_path)


def _aborted(like: Path, rows: int, *, seconds: float = 0) -> Path:
    """Write a file as a commit that failed would leave behind, so long after another file was written."""
    path = like.with_name(f"00000-{like.name}")
    pq.write_table(pq.read_table(like).slice(0, rows), path)
    at = like.stat().st_mtime + seconds
    os.utime(path, (at, at))
    return path


@pytest.mark.parametrize("seconds", [0, -3600, 3600])
def test_a_file_of_a_failed_commit_is_never_taken(seconds: int, tmp_path: Path) -> None:
    _table(tmp_path, rows=(4, 2))
    folder = tmp_path / "t"
    lost = next(p for p in file_paths(folder) if pq.read_metadata(p).num_rows == 2)
    other = _aborted(lost, 2, seconds=seconds)
    _lose(folder)
    plan = _plan(folder)
    (step,) = plan
    if seconds:  # it was written before the commit's parent, or after the commit
        assert (step.title, step.rows_back) == (REGISTERED, 2)
        assert lost.name in step.python[0] and other.name not in step.python[0]
        assert _ids(plan, tmp_path) == list(range(6))
        return
    assert (step.title, step.certain, step.rows_lost, step.rows_back) == (REMOVED, False, 2, 0)
    assert "2 files may be among the lost ones" in step.text
    assert lost.name in step.text and other.name in step.text
    assert "system.add_files" in step.sql[0] and "table.add_files" in step.python[0]
    assert "appendFile" in step.python[1]
    assert _ids(plan, tmp_path) == list(range(4))


def test_files_of_a_manifest_of_older_snapshots_are_not_added_to_the_current_one(tmp_path: Path) -> None:
    lab = _table(tmp_path)
    lost = next(p for p in manifest_paths(tmp_path / "t"))
    lab.rewrite_manifests()
    current = {p.name for p in manifest_paths(tmp_path / "t")}
    assert lost.exists() and lost.name not in current, "its data files are live, in another manifest"
    lost.unlink()
    plan = ix.open(tmp_path / "t").check(snapshots="all").repair()
    assert [step.title for step in plan] == [AGAIN]
    for step in plan:
        assert (step.sql, step.python) == ((), ()), "add_files would list its files twice"
        assert "Only older snapshots list the lost manifests" in step.text
        older = [s.snapshot_id for s in ix.open(tmp_path / "t").snapshots[:-1]]
        assert set(step.snapshots) <= set(older) and step.snapshots[-1] == older[-1]
        needed = repr(plan).partition("Needed by ")[2]
        assert f"{older[-1]} (no branch or tag); the fault affects up to 1 row." in needed
        assert step.to_dict()["snapshots"] == list(step.snapshots)
        call = f"table.maintenance.expire_snapshots().by_ids({list(step.snapshots)}).commit()"
        assert "Or expire " in needed and call in needed and call in plan._repr_html_()
    assert _ids(plan, tmp_path) == list(range(6))


def test_older_snapshots_can_be_expired_instead(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    lab = _table(tmp_path)
    lost = _first_manifest(lab)
    lab.rewrite_manifests()
    lost.unlink()
    (step,) = ix.open(tmp_path / "t").check(snapshots="all").repair()
    assert step.expirable
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    table = catalog.register_table("db.t", ix.open(tmp_path / "t").metadata_location)
    sentence, call = step_instead(step) or ("", "")
    assert sentence == "Or expire these snapshots with PyIceberg, as no branch or tag points to them:"
    eval(call, {"table": table})
    expired = ix.open(table.metadata_location)
    assert not {s.snapshot_id for s in expired.snapshots} & set(step.snapshots)
    assert expired.check(snapshots="all").ok
    assert sorted(expired.to_pandas()["id"]) == list(range(6))
    assert len(table.scan().to_arrow()) == 6


@pytest.mark.parametrize("pointer", ["tag", "current"])
def test_snapshots_that_are_needed_cannot_be_expired(pointer: str, tmp_path: Path) -> None:
    lab = _table(tmp_path)
    lost = _first_manifest(lab)
    if pointer == "tag":
        lab.tag("v1", lab.snapshots[0])
        lab.rewrite_manifests()
    lost.unlink()
    (step,) = ix.open(tmp_path / "t").check(snapshots="all").repair()
    assert not step.expirable and step_instead(step) is None
    assert step_instead(replace(step, expirable=True, snapshots=tuple(range(11)))) == (
        "Or expire these snapshots with PyIceberg, as no branch or tag points to them:",
        "table.maintenance.expire_snapshots().by_ids(step.snapshots).commit()",
    )


def test_counts_exclude_a_file_of_a_failed_commit(tmp_path: Path) -> None:
    _table(tmp_path, rows=(4, 2))
    folder = tmp_path / "t"
    lost = next(p for p in file_paths(folder) if pq.read_metadata(p).num_rows == 2)
    _aborted(lost, 1)
    _lose(folder)
    plan = _plan(folder)
    assert [(s.title, s.rows_back) for s in plan] == [(REGISTERED, 2)]
    assert _ids(plan, tmp_path) == list(range(6))


def test_files_of_another_table_are_not_taken(tmp_path: Path) -> None:
    _table(tmp_path, rows=(4, 2))
    folder = tmp_path / "t"
    lost = next(p for p in file_paths(folder) if pq.read_metadata(p).num_rows == 2)
    other = ix.create(tmp_path / "other", {"x": "int", "y": "int", "z": "int"})
    other.append({"x": [1, 2], "y": [1, 2], "z": [1, 2]})
    shutil.copy(file_paths(tmp_path / "other")[0], folder / "data" / "other.parquet")
    (folder / "data" / "broken.parquet").write_bytes(b"PAR1" + bytes(100))
    lost.unlink()
    _lose(folder)
    plan = _plan(folder)
    assert [(s.title, s.rows_lost) for s in plan] == [(REMOVED, 2)]
    assert "may be among" not in plan.steps[0].text


def test_part_of_the_files_is_better_than_none(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    gone = next(p for p in file_paths(folder) if "k=b" in str(p) and pq.read_table(p)["id"].to_pylist() == [21])
    gone.unlink()
    _lose(folder)
    plan = _plan(folder)
    assert [(s.title, s.rows_back, s.rows_lost) for s in plan] == [(REGISTERED, 1, 0), (REMOVED, 0, 1)]
    assert "1 file with 1 row" in plan.steps[1].text
    assert 20 in _ids(plan, tmp_path)


def test_the_data_path_of_the_table_is_searched(tmp_path: Path) -> None:
    lab = _table(tmp_path, rows=(4, 2))
    lab.set_properties({"write.data.path": str(tmp_path / "t" / "elsewhere")})
    lost = next(p for p in file_paths(tmp_path / "t") if pq.read_metadata(p).num_rows == 2)
    (tmp_path / "t" / "elsewhere").mkdir()
    lost.rename(tmp_path / "t" / "elsewhere" / lost.name)
    _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    assert [(s.title, s.rows_back) for s in plan] == [(REGISTERED, 2)]
    assert _ids(plan, tmp_path) == list(range(6))


# Deletes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", one_of(2, [3, 2]))
def test_deletes_are_found_in_the_data_folder(version: int, tmp_path: Path) -> None:
    folder = healthy(tmp_path, version)
    path = _lose(folder, content=1)
    plan = _plan(folder)
    (step,) = plan
    assert (step.title, step.certain, step.rows_back, step.rows_lost) == (REGISTERED, False, 0, 0)
    assert "1 delete file with 1 delete" in step.text and path.name in step.text
    assert "newRowDelta" in step.python[0]
    assert 3 not in _ids(plan, tmp_path)


def _in_format(folder: Path, name: str, *, ids: bool = True) -> Path:
    """Replace the newest data file by one of another format, without column metrics; return its path."""
    (path,) = (p for p in file_paths(folder) if pq.read_metadata(p).num_rows == 1)
    made = path.with_suffix(f".{name}")
    at = path.stat().st_mtime
    rows = pq.read_table(path)
    if name == "orc":
        fields = [pa.field(n, rows[n].type, metadata={"iceberg.id": str(i)} if ids else {}) for i, n in NUMBERED]
        orc.write_table(pa.Table.from_arrays(rows.columns, schema=pa.schema(fields)), made)
    else:
        kinds = {"id": "long", "k": "string"}
        parts = [{"name": n, "type": ["null", kinds[n]], **({"field-id": i} if ids else {})} for i, n in NUMBERED]
        with made.open("wb") as out:
            fastavro.writer(out, {"type": "record", "name": "r", "fields": parts}, rows.to_pylist())
    path.unlink()
    os.utime(made, (at, at))  # before the commit

    def change(row: Record) -> None:
        file = row["data_file"]
        for column in ("lower_bounds", "upper_bounds", "value_counts", "null_value_counts", "column_sizes"):
            file[column] = None
        place = file["file_path"].replace(path.name, made.name)
        file.update(file_path=place, file_format=name.upper(), file_size_in_bytes=made.stat().st_size)
        file["split_offsets"] = None

    edit_manifest(folder, records(change))
    return made


NUMBERED = [(1, "id"), (2, "k")]


@pytest.mark.parametrize("name", ["orc", "avro"])
@pytest.mark.parametrize("by", [None, "k"])
def test_files_of_other_formats_are_found_without_metrics(name: str, by: str | None, tmp_path: Path) -> None:
    options: dict[str, Any] = {} if by is None else {"partition_by": by}
    _table(tmp_path, rows=(4, 1), **options)
    made = _in_format(tmp_path / "t", name)
    before = ix.open(tmp_path / "t").to_arrow().sort_by("id")
    assert len(before) == 5
    _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    step, metrics = plan
    assert (metrics.title, metrics.effective) == ("Recompute column metrics", False)
    assert (step.title, step.certain, step.rows_back, step.rows_lost) == (REGISTERED, False, 1, 0)
    assert f"`{name}`.`" in step.sql[0]
    assert not any("PyIceberg" in line for line in step.python)  # adds Parquet files only
    assert "The metrics of 1 file are lost: only Parquet metrics are read." in step.text
    (entry,) = (r for r in plan.table.inspect.files.arrow().to_pylist() if r["file_path"].endswith(made.name))
    assert (entry["file_format"].lower(), entry["record_count"]) == (name, 1)
    assert entry["file_size_in_bytes"] == made.stat().st_size
    assert plan.table.to_arrow().sort_by("id") == before
    plan.save(tmp_path / "fixed")
    assert ix.open(tmp_path / "fixed").to_arrow().sort_by("id") == before


def test_files_without_field_ids_are_not_taken(tmp_path: Path) -> None:
    _table(tmp_path, rows=(4, 1))
    _in_format(tmp_path / "t", "avro", ids=False)
    _lose(tmp_path / "t")
    assert [(s.title, s.rows_lost) for s in _plan(tmp_path / "t")] == [(REMOVED, 1)]


@pytest.mark.parametrize(
    ("keys", "taken"),
    [
        ({"delete-type": "equality", "delete-field-ids": "1"}, True),
        ({"delete-type": "equality", "delete-field-ids": "7"}, False),
        ({"delete-type": "equality", "delete-field-ids": "x, 1"}, False),
        ({"delete-type": "position"}, False),
        ({}, False),  # it may as well be a data file
    ],
)
def test_equality_deletes_are_found_by_what_their_files_say(keys: dict[str, str], taken: bool, tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    (positions,) = file_paths(folder, 1)
    at = positions.stat().st_mtime
    with_equality_delete(folder)
    positions.unlink()
    (old,) = file_paths(folder, 2)
    path = old.parent / "k=a" / old.name  # nothing else names its partition
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pq.read_table(old).replace_schema_metadata(keys), path)
    old.unlink()
    os.utime(path, (at, at))  # before the commit
    values = {"file_size_in_bytes": path.stat().st_size, "file_path": f"file://{path}"}
    edit_manifest(folder, records(lambda r: r["data_file"].update(values)), 1)
    before = ix.open(folder).to_arrow().sort_by("id")
    assert len(before) == 17
    _lose(folder, content=1)
    plan = _plan(folder)
    (step,) = plan
    assert step.title == (REGISTERED if taken else REMOVED)
    if not taken:
        assert plan.rows_after == 18
        return
    assert "The equality columns of 1 equality delete file are taken from the key-value metadata of" in step.text
    assert not step.certain
    assert "ofEqualityDeletes(1)" in step.python[0]
    (entry,) = plan.table.inspect.delete_files.arrow().to_pylist()
    assert (entry["content"], entry["equality_ids"], entry["record_count"]) == (2, [1], 1)
    assert plan.table.to_arrow().sort_by("id") == before
    assert 3 not in _ids(plan, tmp_path)


def test_an_equality_delete_file_is_never_taken_for_data(tmp_path: Path) -> None:
    _table(tmp_path, rows=(4, 1))
    folder = tmp_path / "t"
    (path,) = (p for p in file_paths(folder) if pq.read_metadata(p).num_rows == 1)
    keys = {"delete-type": "equality", "delete-field-ids": "1"}
    at = path.stat().st_mtime
    pq.write_table(pq.read_table(path).replace_schema_metadata(keys), path)
    os.utime(path, (at, at))
    _lose(folder)
    assert [s.title for s in _plan(folder)] == [REMOVED]


def test_rewritten_files_keep_the_row_ids_that_they_store(tmp_path: Path) -> None:
    folder = healthy(tmp_path, 3)
    ix.lab(folder).compact()
    before = ix.open(folder).to_arrow(columns=["id", "_row_id"]).sort_by("id")
    assert len(file_paths(folder)) == 2
    _lose(folder)
    plan = _plan(folder)
    step = next(s for s in plan if s.title == REGISTERED)
    assert "row ids are lost" not in step.text
    assert plan.table.to_arrow(columns=["id", "_row_id"]).sort_by("id") == before
    assert plan.table.check("rows").ok


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_the_files_of_a_lost_manifest_are_kept(version: int, tmp_path: Path) -> None:
    folder = healthy(tmp_path, version)
    _lose(folder, 2)  # it lists the file with deletes, which seem to be for no live file
    plan = ix.open(folder).check("files").repair()
    assert [(s.title, s.rows_back) for s in plan] == [(REGISTERED, 9)]
    assert 3 not in _ids(plan, tmp_path)
    assert plan.rows_after == 17


def test_deletes_that_another_manifest_lists_are_certain(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    (path,) = manifest_paths(folder, 1)
    newest = ix.open(folder).metadata.current_snapshot_id
    merged = path.with_name("merged-m0.avro")
    shutil.copy(path, merged)

    def existing(rows: list[Record], header: dict[str, str]) -> None:
        for row in rows:
            row.update({"status": 0, "sequence_number": 3, "file_sequence_number": 3})

    def listed(record: Record) -> None:
        record.update({
            "manifest_path": record["manifest_path"].replace(path.name, merged.name), "added_snapshot_id": newest,
            "sequence_number": 4, "added_files_count": 0, "added_rows_count": 0, "existing_files_count": 1,
            "existing_rows_count": 1,
        })  # fmt: skip

    edit_avro(root_path(folder), records(listed, lambda r: local(r["manifest_path"]) == path))
    edit_avro(merged, existing, list_path=root_path(folder))
    assert ix.open(folder).check().ok
    merged.unlink()
    plan = _plan(folder)
    (step,) = plan
    assert (step.title, step.certain, step.rows_back) == (AGAIN, True, 0)
    assert 3 not in _ids(plan, tmp_path)


def test_deletes_that_are_lost_come_back_as_rows(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    file_paths(folder, 1)[0].unlink()
    _lose(folder, content=1)
    plan = _plan(folder)
    (step,) = plan
    assert (step.title, step.rows_back, step.rows_lost) == (REMOVED, None, 0)
    assert "the rows that they had deleted come back" in step.text
    assert plan.rows_after == 18


def test_data_and_deletes_of_it_are_found_together(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    for path in [*manifest_paths(folder), *manifest_paths(folder, 1)]:
        path.unlink()
    plan = _plan(folder)
    (step,) = plan
    assert (step.title, step.rows_back, step.places) == (REGISTERED, 17, 4)
    assert 3 not in _ids(plan, tmp_path)


def test_a_manifest_without_live_files_loses_no_row(tmp_path: Path) -> None:
    lab = _table(tmp_path, rows=(3, 2))
    lab.delete("id < 3")
    before = _entries(lab)
    path = next(p for p in manifest_paths(tmp_path / "t") if _statuses(p) == [2])
    path.unlink()
    plan = _plan(tmp_path / "t")
    assert [(s.certain, s.rows_back, s.rows_lost) for s in plan] == [(True, 0, 0)]
    assert "no live files" in plan.steps[0].text
    assert _entries(plan.table) == before
    assert _ids(plan, tmp_path) == [3, 4]


def _statuses(path: Path) -> list[int]:
    with path.open("rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    return [r["status"] for r in rows]


def test_a_manifest_that_cannot_be_read_at_all_is_recovered_like_a_lost_one(tmp_path: Path) -> None:
    _table(tmp_path, rows=(3, 2))
    path = manifest_paths(tmp_path / "t")[0]
    path.write_bytes(bytes(path.stat().st_size))
    plan = _plan(tmp_path / "t")
    assert [(s.title, s.rows_back) for s in plan] == [(REGISTERED, 2)]
    assert _ids(plan, tmp_path) == list(range(5))


# Counts ---------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 4), max_size=7), st.integers(0, 7), st.integers(0, 14))
def test_what_every_choice_with_the_stated_counts_has_is_taken(rows: list[int], files: int, total: int) -> None:
    found = choose(rows, Counts(files, total))
    fits = [set(c) for c in combinations(range(len(rows)), files) if sum(rows[i] for i in c) == total]
    taken, doubtful = (set(np.flatnonzero(mask).tolist()) for mask in (found.taken, found.doubtful))
    if len(rows) < files:  # some are lost: all that there are fit, or none
        assert (taken, doubtful) == (
            (set(range(len(rows))), set()) if sum(rows) <= total else (set(), set(range(len(rows))))
        )
        assert not found.exact
    elif not fits:
        assert (taken, doubtful, found.exact) == (set(), set(range(len(rows))), False)
    else:
        assert taken == set.intersection(*fits)
        assert doubtful == set.union(*fits) - taken
        assert found.exact == (len(fits) == 1)


def test_a_search_that_takes_too_long_decides_nothing() -> None:
    found = choose([2**i for i in range(60)], Counts(30, 2**60 - 12345))
    assert not found.taken.any() and found.doubtful.all() and not found.exact


def test_counts_that_the_list_does_not_state_leave_the_rest_open(tmp_path: Path) -> None:
    lab = _table(tmp_path, 1)
    lab.rewrite_manifests()
    names = [f"{kind}_{what}_count" for kind in ("added", "existing", "deleted") for what in ("files", "rows")]
    edit_avro(root_path(tmp_path / "t"), records(lambda r: r.update(dict.fromkeys(names))))
    _lose(tmp_path / "t")
    plan = _plan(tmp_path / "t")
    assert [(s.title, s.certain, s.rows_back, s.rows_lost) for s in plan] == [
        (AGAIN, False, 6, 0), (REMOVED, False, 0, None),
    ]  # fmt: skip
    assert "do not state how many files" in plan.steps[1].text
    assert _ids(plan, tmp_path) == list(range(6))
