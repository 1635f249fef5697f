"""Deletes that name old paths are written again with the paths of the live files, if only one file can be meant."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.doctor import RepairPlan
from tests.doctor.damages import (
    DAMAGES,
    Record,
    edit_avro,
    edit_manifest,
    file_paths,
    healthy,
    local,
    manifest_paths,
    records,
    root_path,
)
from tests.doctor.file_damages import edit_entry, rewrite_file

PATH, POS, ROW = 2147483546, 2147483545, 2147483544


def _damaged(folder: Path, name: str, version: int = 2) -> Path:
    made = healthy(folder, version)
    next(d for d in DAMAGES if d.name == name).damage(made)
    return made


def _delete_file(plan: RepairPlan, folder: Path) -> Path:
    plan.save(folder / "fixed")
    (path,) = file_paths(folder / "fixed", 1)
    return path


def test_a_delete_file_is_written_again_like_the_original(tmp_path: Path) -> None:
    folder = healthy(tmp_path)

    def with_row(table: pa.Table) -> pa.Table:
        kind = pa.struct([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
        field = pa.field("row", kind, metadata={"PARQUET:field_id": str(ROW)})
        return table.append_column(field, pa.array([{"id": 3}], kind))

    old = rewrite_file(folder, with_row, 1)
    next(d for d in DAMAGES if d.name == "deletes_name_the_old_place").damage(folder)
    before = pq.read_schema(old)
    plan = ix.open(folder).check().repair()
    (step,) = plan
    assert (step.title, step.certain, step.modes) == ("Rewrite position deletes", True, (44,))
    assert (
        "Replaces old data file paths in 1 position delete file with" in step.text
        and "1 row that had reappeared is deleted again" in step.text
    )
    assert plan.is_complete and plan.rows_after == 17
    path = _delete_file(plan, tmp_path)
    assert path.name != old.name, "the manifest refers to the new file, and the old one is left out"
    made = pq.read_schema(path)
    ids = [int((f.metadata or {})[b"PARQUET:field_id"]) for f in made]
    assert (made.names, ids) == (before.names, [PATH, POS, ROW])
    rows = pq.read_table(path)
    assert rows["row"].to_pylist() == [{"id": 3}]
    assert local(rows["file_path"][0].as_py()) in file_paths(tmp_path / "fixed")
    assert ix.open(tmp_path / "fixed").check("rows").ok


def test_an_avro_delete_file_stays_avro(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    (old,) = file_paths(folder, 1)
    rows: Any = pq.read_table(old).to_pylist()
    for row in rows:
        row["file_path"] = row["file_path"].replace(str(folder), "/old/place")
    path = old.with_suffix(".avro")
    fields = [("file_path", "string", PATH), ("pos", "long", POS)]
    schema: Any = {
        "type": "record", "name": "delete",
        "fields": [{"name": n, "type": t, "field-id": i} for n, t, i in fields],
    }  # fmt: skip
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), rows)

    def change(file: Record) -> None:
        file.update(
            file_path=file["file_path"].replace(old.name, path.name), file_format="AVRO", split_offsets=None,
            file_size_in_bytes=path.stat().st_size, lower_bounds=None, upper_bounds=None, referenced_data_file=None,
        )  # fmt: skip

    edit_entry(folder, change, 1)
    plan = ix.open(folder).check("files").repair()
    assert [s.title for s in plan] == ["Rewrite position deletes"]
    made = _delete_file(plan, tmp_path)
    assert made.suffix == ".avro" and made.read_bytes()[:4] == b"Obj\x01"
    with made.open("rb") as file:
        (row,) = list(fastavro.reader(file))
    assert local(str(dict(row)["file_path"])) in file_paths(tmp_path / "fixed")
    assert ix.open(tmp_path / "fixed").count() == 17


def test_an_old_path_that_may_mean_two_files_is_left_to_a_person(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    moved = []
    for number, place in enumerate(("x", "y")):  # two live files whose paths end alike
        path = manifest_paths(folder)[number]

        def change(rows: list[Record], header: dict[str, str], place: str = place) -> None:
            file = rows[0]["data_file"]
            at = local(file["file_path"])
            new = at.parents[1] / place / "k=a" / "f.parquet"
            new.parent.mkdir(parents=True)
            shutil.move(at, new)
            file["file_path"] = f"file://{new}"
            moved.append(new)

        edit_avro(path, change, list_path=root_path(folder))

    def named(table: pa.Table) -> pa.Table:
        return table.set_column(0, table.schema.field(0), pa.array(["file:///old/k=a/f.parquet"]))

    rewrite_file(folder, named, 1)
    edit_entry(folder, lambda f: f.update(referenced_data_file=None, lower_bounds=None, upper_bounds=None), 1)
    plan = ix.open(folder).check("files").repair()
    assert "Rewrite position deletes" not in [s.title for s in plan]
    left = [u for u in plan.unrepaired if u.finding.code == "delete-path"]
    assert [u.reason for u in left] == [
        "file:///old/k=a/f.parquet could be any of several live data files with that name."
    ]
    assert not plan.is_complete


def test_deletes_of_a_file_that_was_removed_stay_as_they_are(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    gone = file_paths(folder)[-1].with_name("removed.parquet")
    shutil.copy(file_paths(folder)[-1], gone)  # removed from the table, and not yet from the folder
    names = ["file:///old/place/data/removed.parquet", f"file://{gone}"]

    def more(table: pa.Table) -> pa.Table:
        live = table["file_path"].to_pylist()
        paths = pa.array([*(str(n).replace(str(folder), "/old/place") for n in live), *names])
        return pa.Table.from_arrays([paths, pa.array([*table["pos"].to_pylist(), 0, 0])], schema=table.schema)

    rewrite_file(folder, more, 1)

    def change(record: Record) -> None:
        record["data_file"].update(referenced_data_file=None, lower_bounds=None, upper_bounds=None, record_count=3)

    edit_manifest(folder, records(change), 1, recount=True)
    plan = ix.open(folder).check("files").repair()
    assert "Rewrite position deletes" in [s.title for s in plan]
    assert plan.rows_after == 17
    paths = plan.table.inspect.position_deletes()["file_path"].tolist()
    assert len(paths) == 3 and set(names) <= set(paths)


@pytest.mark.parametrize("in_footer", [False, True])
def test_a_vector_and_its_puffin_file_name_the_live_file(in_footer: bool, tmp_path: Path) -> None:
    folder = _damaged(tmp_path, "vector_names_the_old_place", 3)
    if in_footer:
        (path,) = file_paths(folder, 1)
        data = path.read_bytes()
        old, new = str(folder).encode(), b"/old/place"
        at = data.index(old)
        pad = b" " * (len(old) - len(new))  # JSON allows blanks, so that the footer keeps its length
        end = data.index(b'"', at)
        path.write_bytes(data[:at] + new + data[at + len(old) : end + 1] + pad + data[end + 1 :])
    plan = ix.open(folder).check("files").repair()
    assert [(s.title, s.certain) for s in plan] == [("Correct the data file paths of deletion vectors", True)]
    assert plan.is_complete and plan.rows_after == 17
    plan.save(tmp_path / "fixed")
    assert ix.open(tmp_path / "fixed").check("rows").ok
