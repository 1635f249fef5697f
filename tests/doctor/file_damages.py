"""Ways to damage data files, delete files and what manifest entries state about them."""

from __future__ import annotations

import json
import shutil
import struct
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

import iceexplore as ix
from iceexplore.deletes import DELETION_VECTOR, NewBlob, encode_deletion_vector, write_puffin
from tests.doctor.damages import (
    Record,
    damage,
    document_path,
    edit_avro,
    edit_json,
    edit_manifest,
    file_paths,
    local,
    manifest_paths,
    records,
    root_path,
)

# Files ----------------------------------------------------------------------------------------------------------------


def rewrite_file(folder: Path, change: Callable[[pa.Table], pa.Table], content: int = 0) -> Path:
    """Change the rows or columns of the first data or delete file; its size in the manifest stays right."""
    path = file_paths(folder, content)[0]
    pq.write_table(change(pq.read_table(path)), path)
    restate_size(folder, path, content)
    return path


def restate_size(folder: Path, path: Path, content: int = 0) -> None:
    """Correct a file's size in its manifest entry; a Parquet file's split offsets, too."""

    def change(record: Record) -> None:
        file = record["data_file"]
        file["file_size_in_bytes"] = path.stat().st_size
        if file["split_offsets"]:
            groups = pq.ParquetFile(path).metadata
            offsets = [groups.row_group(i).column(0) for i in range(groups.num_row_groups)]
            file["split_offsets"] = [c.dictionary_page_offset or c.data_page_offset for c in offsets]

    of = next(p for p in manifest_paths(folder, int(content > 0)) if _has(p, path))
    edit_avro(of, records(change, lambda r: local(r["data_file"]["file_path"]) == path), list_path=root_path(folder))


def _has(manifest: Path, path: Path) -> bool:
    with manifest.open("rb") as file:
        return any(local(r["data_file"]["file_path"]) == path for r in fastavro.reader(file))


def document_of(folder: Path) -> Record:
    """Return the table's current metadata file, parsed."""
    found: Record = json.loads(document_path(folder).read_text())
    return found


def edit_entry(folder: Path, change: Callable[[Record], None], content: int = 0) -> str:
    """Change the data file of the first entry; return the place."""
    path = edit_manifest(folder, records(lambda r: change(r["data_file"])), content)
    return f"{path.name}#entry"


def with_equality_delete(folder: Path) -> None:
    """Replace the table's position delete file by an equality delete file of the same commit and partition."""
    path = file_paths(folder, 1)[0]
    column = pa.field("id", pa.int64(), False, {"PARQUET:field_id": "1"})
    made = path.with_name("equality.parquet")
    pq.write_table(pa.table([pa.array([3])], schema=pa.schema([column])), made)

    def change(file: Record) -> None:
        names = ("lower_bounds", "upper_bounds", "value_counts", "null_value_counts", "column_sizes", "split_offsets")
        file.update(dict.fromkeys(names))
        place = file["file_path"].replace(path.name, made.name)
        file.update(
            content=2, equality_ids=[1], file_path=place, file_size_in_bytes=made.stat().st_size,
            record_count=1, referenced_data_file=None,
        )  # fmt: skip

    edit_entry(folder, change, 1)


# Data files -----------------------------------------------------------------------------------------------------------


@damage(7, "file-missing", "fail")
def live_file_gone_after_expiry(folder: Path) -> str:
    def expire(document: Record) -> None:
        gone = document["snapshots"].pop(0)["snapshot-id"]
        document["snapshot-log"] = [e for e in document["snapshot-log"] if e["snapshot-id"] != gone]

    edit_json(document_path(folder), expire)
    file_paths(folder)[-1].unlink()
    return "#entry"


@damage(38, "partition-untrue", "wrong", level="rows")
def rows_of_another_partition(folder: Path) -> str:
    return edit_entry(folder, lambda file: file.update({"partition": {"k": "b"}}))


@damage(42, "data-no-field-ids", "wrong", level="files")
def data_file_without_field_ids(folder: Path) -> str:
    rewrite_file(
        folder, lambda t: t.replace_schema_metadata(None).cast(pa.schema([(f.name, f.type) for f in t.schema]))
    )
    return "#entry"


@damage(63, "bounds-untrue", "wrong", level="rows")
def bounds_of_one_row_group(folder: Path) -> str:
    def change(file: Record) -> None:
        for one in file["upper_bounds"]:
            one["value"] = (1).to_bytes(8, "little") if one["key"] == 1 else one["value"]

    path = manifest_paths(folder)[-1]
    edit_avro(path, records(lambda r: change(r["data_file"])), list_path=root_path(folder))
    return f"{path.name}#entry"


@damage(62, "value-undecodable", "wrong")
def bound_of_the_wrong_length(folder: Path) -> str:
    def change(file: Record) -> None:
        for one in file["lower_bounds"]:
            one["value"] = b"\x00" * 3 if one["key"] == 1 else one["value"]

    return edit_entry(folder, change)


@damage(64, "metrics-missing", "slow")
def metrics_of_one_file_lost(folder: Path) -> str:
    names = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    return edit_entry(folder, lambda file: file.update(dict.fromkeys(names)))


@damage(61, "bounds-untrue", "wrong", level="rows")
def uuid_bounds_in_the_wrong_byte_order(folder: Path) -> str:
    shutil.rmtree(folder)
    lab = ix.create(folder, {"id": "long", "u": "uuid"})
    lab.append({"id": [1, 2], "u": [uuid.UUID(int=n << 96 | 1).bytes for n in (1, 2)]})

    def change(file: Record) -> None:
        for side in ("lower_bounds", "upper_bounds"):
            for one in file[side]:
                one["value"] = one["value"][::-1] if one["key"] == 2 else one["value"]

    return edit_entry(folder, change)


@damage(65, "row-ids-reassigned", "wrong", version=3, level="files")
def row_ids_lost_by_a_compaction(folder: Path) -> str:
    ix.lab(folder).compact()
    rewrite_file(folder, lambda t: t.select(["id", "k"]))
    return "#entry"


# Position and equality deletes ----------------------------------------------------------------------------------------


def _spelled(folder: Path, change: Callable[[str], str]) -> str:
    def named(t: pa.Table) -> pa.Table:
        names = [change(str(name)) for name in t["file_path"].to_pylist()]
        return t.set_column(0, t.schema.field(0), pa.array(names))

    rewrite_file(folder, named, 1)

    def bounds(file: Record) -> None:
        for side in ("lower_bounds", "upper_bounds"):
            for one in file[side] or ():
                one["value"] = change(one["value"].decode()).encode() if one["key"] == 2147483546 else one["value"]
        if file.get("referenced_data_file"):
            file["referenced_data_file"] = change(file["referenced_data_file"])

    return edit_entry(folder, bounds, 1)


@damage(44, "delete-path", "wrong", level="files")
def deletes_spell_another_scheme(folder: Path) -> str:
    def other(name: str) -> str:
        return name.removeprefix("file://") if name.startswith("file://") else f"file://{name}"

    return _spelled(folder, other)


@damage(44, "delete-path", "wrong")
def deletes_name_the_old_place(folder: Path) -> str:
    return _spelled(folder, lambda name: name.replace(str(folder), "/old/place"))


@damage(44, "delete-path", "wrong", level="files")
def deletes_name_the_old_place_without_a_reference(folder: Path) -> str:
    edit_entry(folder, lambda file: file.update({"referenced_data_file": None}), 1)
    return _spelled(folder, lambda name: name.replace(str(folder), "/old/place"))


@damage(44, "delete-path", "wrong", version=3)
def vector_names_the_old_place(folder: Path) -> str:
    def change(file: Record) -> None:
        file["referenced_data_file"] = file["referenced_data_file"].replace(str(folder), "/old/place")

    return edit_entry(folder, change, 1)


@damage(45, "delete-dangling", "untidy", level="files")
def deletes_name_no_file(folder: Path) -> str:
    return _spelled(folder, lambda name: f"{name.rpartition('/')[0]}/other.parquet")


@damage(49, "equality-ids-invalid", "fail")
def equality_ids_empty(folder: Path) -> str:
    with_equality_delete(folder)
    return edit_entry(folder, lambda file: file.update({"equality_ids": []}), 1)


@damage(49, "equality-ids-invalid", "fail")
def equality_column_unknown(folder: Path) -> str:
    with_equality_delete(folder)
    return edit_entry(folder, lambda file: file.update({"equality_ids": [77]}), 1)


@damage(45, "delete-dangling", "untidy")
def equality_deletes_older_than_the_data(folder: Path) -> str:
    with_equality_delete(folder)

    def older(rows: list[Record], header: dict[str, str]) -> None:
        for row in rows:
            row.update({"status": 0, "sequence_number": 1, "file_sequence_number": 1})

    path = edit_manifest(folder, older, 1, recount=True)
    edit_avro(root_path(folder), records(lambda r: r.update({"min_sequence_number": 1}), lambda r: r["content"] == 1))
    return path.name


@damage(69, "deletes-dropped", "wrong")
def deletes_dropped_by_a_compaction(folder: Path) -> str:
    with_equality_delete(folder)

    def compaction(document: Record) -> None:
        summary = document["snapshots"][-1]["summary"]
        summary["operation"] = "replace"
        gone = ("total-delete-files", "total-position-deletes", "total-equality-deletes")
        summary.update(dict.fromkeys(gone, "0"))
        document["snapshots"][-1]["summary"] = summary

    edit_json(document_path(folder), compaction)
    newest = document_of(folder)["current-snapshot-id"]

    def started(rows: list[Record], header: dict[str, str]) -> None:
        for row in rows:
            row["sequence_number"] = 1

    edit_manifest(folder, started)
    edit_avro(root_path(folder), records(lambda r: r.update({"min_sequence_number": 1})))

    def dropped(rows: list[Record], header: dict[str, str]) -> None:
        for row in rows:
            row.update({"status": 2, "snapshot_id": newest, "sequence_number": 3, "file_sequence_number": 3})

    return edit_manifest(folder, dropped, 1, recount=True).name


# Deletion vectors -----------------------------------------------------------------------------------------------------


@damage(48, "delete-scope", "wrong", version=3, level="files")
def vector_names_no_file(folder: Path) -> str:
    return edit_entry(folder, lambda file: file.update({"referenced_data_file": None}), 1)


@damage(48, "entry-invalid", "fail", version=3)
def vector_without_an_offset(folder: Path) -> str:
    return edit_entry(folder, lambda file: file.update({"content_offset": None}), 1)


@damage(48, "entry-invalid", "fail", version=3)
def vector_without_a_size(folder: Path) -> str:
    return edit_entry(folder, lambda file: file.update({"content_size_in_bytes": None}), 1)


def _vector(folder: Path) -> tuple[Path, Record]:
    """Return the Puffin file of the first deletion vector, and its entry."""
    with manifest_paths(folder, 1)[0].open("rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    return local(rows[0]["data_file"]["file_path"]), rows[0]["data_file"]


def _puffin(folder: Path, change: Callable[[bytearray, int], None]) -> str:
    """Change the bytes of the Puffin file; the change is given where the blob begins."""
    path, entry = _vector(folder)
    data = bytearray(path.read_bytes())
    change(data, entry["content_offset"])
    path.write_bytes(data)
    return "#entry"


@damage(48, "file-corrupt", "fail", version=3, level="files")
def vector_with_another_crc(folder: Path) -> str:
    def change(data: bytearray, at: int) -> None:
        size = struct.unpack(">i", data[at : at + 4])[0]
        data[at + 4 + size] ^= 0xFF

    return _puffin(folder, change)


@damage(48, "file-corrupt", "fail", version=3, level="files")
def vector_with_another_magic(folder: Path) -> str:
    def change(data: bytearray, at: int) -> None:
        data[at + 4] ^= 0xFF

    return _puffin(folder, change)


@damage(48, "file-corrupt", "fail", version=3, level="files")
def vector_in_no_puffin_file(folder: Path) -> str:
    def change(data: bytearray, at: int) -> None:
        data[:4] = data[-4:] = b"XXXX"

    return _puffin(folder, change)


@damage(48, "puffin-bare-vector", "fail", version=3, level="files")
def vector_without_a_puffin_file(folder: Path) -> str:
    path, entry = _vector(folder)
    data = path.read_bytes()
    at, size = entry["content_offset"], entry["content_size_in_bytes"]
    path.write_bytes(data[at : at + size])
    edit_entry(folder, lambda file: file.update({"content_offset": 0, "file_size_in_bytes": size}), 1)
    return "#entry"


@damage(48, "count-mismatch", "wrong", version=3, level="files")
def vector_of_another_cardinality(folder: Path) -> str:
    edit_manifest(folder, records(lambda r: r["data_file"].update({"record_count": 2})), 1, recount=True)
    edit_json(
        document_path(folder),
        lambda d: d["snapshots"][-1]["summary"].update({"total-position-deletes": "2"}),
    )
    return "#entry"


def _new_vector(folder: Path, blob: bytes, count: int) -> str:
    """Replace the table's deletion vector by other bytes, in a Puffin file whose footer fits them."""
    path, entry = _vector(folder)
    made = NewBlob(
        DELETION_VECTOR, blob, (2147483645,),
        properties={"referenced-data-file": entry["referenced_data_file"], "cardinality": str(count)},
    )  # fmt: skip
    data, [(at, size)] = write_puffin([made])
    path.write_bytes(data)

    def change(file: Record) -> None:
        file.update({"content_offset": at, "content_size_in_bytes": size, "file_size_in_bytes": len(data)})

    return edit_entry(folder, change, 1)


@damage(48, "delete-position", "wrong", version=3, level="files")
def vector_past_the_rows(folder: Path) -> str:
    return _new_vector(folder, encode_deletion_vector(BitMap64([999])), 1)


@damage(48, "file-corrupt", "fail", version=3, level="files")
def vector_that_claims_more_bitmaps_than_it_has(folder: Path) -> str:
    body = b"\xd1\xd3\x39\x64" + struct.pack("<Q", 2**31)
    return _new_vector(folder, struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body)), 1)
