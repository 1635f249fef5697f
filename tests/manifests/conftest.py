"""Manifests that tests need, written row by row with fastavro as other writers would write them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from iceexplore.errors import Problems
from iceexplore.formats import index_blocks, read_header
from iceexplore.manifests import ManifestReader
from iceexplore.metadata import parse_table_metadata
from iceexplore.storage import CACHE, Storage, open_source

SYNC = b"0123456789abcdef"


def field(field_id: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": field_id, **more}


def optional(field_id: int, name: str, kind: Any) -> dict[str, Any]:
    return field(field_id, name, ["null", kind], default=None)


def stat_map(field_id: int, name: str, key: int, value: Any) -> dict[str, Any]:
    pair = {
        "type": "record",
        "name": f"k{key}_v{key + 1}",
        "fields": [field(key, "key", "int"), field(key + 1, "value", value)],
    }
    return optional(field_id, name, {"type": "array", "logicalType": "map", "items": pair})


def entry_schema(partition: list[dict[str, Any]], *, version: int = 2) -> dict[str, Any]:
    """The Avro schema of a manifest, v1 to v3 (the spec's ids)."""
    data = [
        field(100, "file_path", "string"),
        field(101, "file_format", "string"),
        field(102, "partition", {"type": "record", "name": "r102", "fields": partition}),
        field(103, "record_count", "long"),
        field(104, "file_size_in_bytes", "long"),
        stat_map(108, "column_sizes", 117, "long"),
        stat_map(109, "value_counts", 119, "long"),
        stat_map(110, "null_value_counts", 121, "long"),
        stat_map(137, "nan_value_counts", 138, "long"),
        stat_map(125, "lower_bounds", 126, "bytes"),
        stat_map(128, "upper_bounds", 129, "bytes"),
        optional(131, "key_metadata", "bytes"),
        optional(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}),
        optional(140, "sort_order_id", "int"),
    ]
    top = [field(0, "status", "int"), optional(1, "snapshot_id", "long")]
    if version > 1:
        data.insert(0, field(134, "content", "int"))
        data.append(optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}))
        top += [optional(3, "sequence_number", "long"), optional(4, "file_sequence_number", "long")]
    if version > 2:
        data += [
            optional(142, "first_row_id", "long"),
            optional(143, "referenced_data_file", "string"),
            optional(144, "content_offset", "long"),
            optional(145, "content_size_in_bytes", "long"),
        ]
    top.append(field(2, "data_file", {"type": "record", "name": "r2", "fields": data}))
    return {"type": "record", "name": "manifest_entry", "fields": top}


def list_schema() -> dict[str, Any]:
    """The Avro schema of a v3 manifest list."""
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            field(509, "contains_null", "boolean"),
            optional(518, "contains_nan", "boolean"),
            optional(510, "lower_bound", "bytes"),
            optional(511, "upper_bound", "bytes"),
        ],
    }
    counts = [
        (504, "added_files_count", "int"),
        (505, "existing_files_count", "int"),
        (506, "deleted_files_count", "int"),
        (512, "added_rows_count", "long"),
        (513, "existing_rows_count", "long"),
        (514, "deleted_rows_count", "long"),
    ]
    fields = [
        field(500, "manifest_path", "string"),
        field(501, "manifest_length", "long"),
        field(502, "partition_spec_id", "int"),
        field(517, "content", "int"),
        field(515, "sequence_number", "long"),
        field(516, "min_sequence_number", "long"),
        field(503, "added_snapshot_id", "long"),
        *(optional(*c) for c in counts),
        optional(507, "partitions", {"type": "array", "items": summary, "element-id": 508}),
        optional(519, "key_metadata", "bytes"),
        optional(520, "first_row_id", "long"),
    ]
    return {"type": "record", "name": "manifest_file", "fields": fields}


def avro(schema: Any, rows: Any, *, codec: str = "deflate", interval: int = 64_000, **metadata: str) -> bytes:
    """A container file; keys of ``metadata`` have dashes for underscores."""
    out = io.BytesIO()
    pairs = {k.replace("_", "-"): v for k, v in metadata.items()}
    first = "null" if codec == "zstandard" else codec  # for Zstandard fastavro needs one more package
    fastavro.writer(out, schema, rows, codec=first, sync_interval=interval, sync_marker=SYNC, metadata=pairs)
    return out.getvalue() if first == codec else zstandard(out.getvalue())


def zstandard(data: bytes) -> bytes:
    """An uncompressed container file, compressed."""
    header = read_header(data, "")
    out = bytearray(data[: header.end].replace(b"\x14avro.codec\x08null", b"\x14avro.codec\x12" + b"zstandard"))
    for block in index_blocks(data, header, "").blocks:
        body = pa.compress(data[block.start : block.stop], codec="zstd", asbytes=True)
        for number in (block.count, len(body)):
            fastavro.schemaless_writer(stream := io.BytesIO(), "long", number)
            out += stream.getvalue()
        out += body + header.sync
    return bytes(out)


def entry(number: int, **changes: Any) -> dict[str, Any]:
    """A manifest entry, distinct by its number; keys of the entry and of its data file alike."""
    data = {
        "content": 0,
        "file_path": f"file-{number:05d}.parquet",
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 10 + number,
        "file_size_in_bytes": 1000 + number,
        "value_counts": [{"key": 1, "value": 10 + number}, {"key": 2, "value": number}],
        "lower_bounds": [{"key": 1, "value": number.to_bytes(8, "little")}, {"key": 2, "value": b"a%05d" % number}],
        "upper_bounds": [{"key": 1, "value": (number + 5).to_bytes(8, "little")}],
    }
    top: dict[str, Any] = {"status": 1, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
    for key, value in changes.items():
        (top if key in top else data)[key] = value
    return {**top, "data_file": data}


def listed(path: str, **changes: Any) -> dict[str, Any]:
    """A row of a manifest list."""
    return {
        "manifest_path": path,
        "manifest_length": 0,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 7,
        "min_sequence_number": 3,
        "added_snapshot_id": 77,
        **changes,
    }


SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
    ],
}


class TableFolder:
    """A table folder that is made file by file; manifests are rows, the metadata file comes last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "metadata").mkdir(parents=True)
        self.document: dict[str, Any] = {
            "format-version": 3,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": str(folder),
            "last-sequence-number": 7,
            "last-updated-ms": 1_600_000_000_000,
            "last-column-id": 2,
            "schemas": [SCHEMA],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "next-row-id": 1000,
            "current-snapshot-id": 77,
            "snapshots": [],
        }
        self.storage: Storage | None = None

    def write(self, name: str, data: bytes) -> str:
        """Write a file of the metadata folder; its location."""
        path = self.folder / "metadata" / name
        path.write_bytes(data)
        return str(path)

    def manifest(self, name: str, rows: Any, *, schema: Any = None, **more: Any) -> str:
        """Write a manifest."""
        return self.write(name, avro(schema or entry_schema([]), rows, **{"format_version": "2"} | more))

    def snapshot(self, *rows: dict[str, Any], **more: Any) -> None:
        """Write a manifest list and make it the (only) snapshot; lengths are filled in where 0."""
        for row in rows:
            path = Path(row["manifest_path"])
            if row["manifest_length"] == 0 and path.exists():
                row["manifest_length"] = path.stat().st_size
        location = self.write("snap-77.avro", avro(list_schema(), rows, format_version="3"))
        snapshot = {"snapshot-id": 77, "sequence-number": 7, "timestamp-ms": 1_600_000_000_000}
        self.document["snapshots"] = [
            {**snapshot, "manifest-list": location, "first-row-id": 0, "added-rows": 100, "summary": {}, **more}
        ]

    def reader(self, *, strict: bool = False) -> ManifestReader:
        """Write the metadata file, and open all."""
        self.write("v1.metadata.json", json.dumps(self.document).encode())
        opened = open_source(str(self.folder))
        self.storage = opened.storage
        metadata = parse_table_metadata(opened.document, opened.metadata_location, Problems())
        return ManifestReader(opened.storage, metadata, Problems(strict=strict))

    def reads(self, kind: str) -> list[str]:
        """File names that were read since the table was opened."""
        assert self.storage is not None
        return [Path(r.location).name for r in self.storage.reads if r.kind == kind]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[TableFolder]:
    """An empty v3 table, to be filled."""
    CACHE.clear()
    made = TableFolder(tmp_path / "t")
    yield made
    if made.storage is not None:
        made.storage.close()


@pytest.fixture(scope="session")
def make() -> Callable[[str], Any]:
    """The functions of this file by name (test modules cannot import each other)."""
    return globals().__getitem__
