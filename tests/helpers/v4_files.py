"""V4 manifests written by hand, by pyarrow and fastavro alone: what the reader is held against.

Field ids are those of the proposal (both tables of its text) and of the draft; nothing of the package is used.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

SYNC = b"0123456789abcdef"


@dataclass(frozen=True)
class F:
    """A field: its type is a name (``long``, ``decimal(9,2)``, ...), a list ``[element, element id]``, or fields."""

    field_id: int | None
    name: str
    type: Any
    required: bool = False


_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "uuid": pa.binary(16),
    "decimal(9,2)": pa.decimal128(9, 2),
}
_AVRO: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "uuid": {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
    "decimal(9,2)": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
}

_BOUNDS = {"lower_bound": 1, "upper_bound": 2, "derived_value": 9}
_OTHERS = {
    "tight_bounds": (3, "boolean"),
    "value_count": (4, "long"),
    "null_count": (5, "long"),
    "nan_count": (6, "long"),
    "average_uncompressed_length": (7, "int"),
    "max_uncompressed_length": (8, "int"),
}


def column_stats(column: int, kind: Any, derived: str | None = None, *, children: Any = None) -> F:
    """The struct of one column's (or expression's) statistics; ``kind`` is the type of the bounds."""
    base = 10_000 + 200 * column
    fields = [F(base + i, n, kind) for n, i in _BOUNDS.items() if n != "derived_value"]
    if derived is not None:
        fields.append(F(base + 9, "derived_value", derived))
    fields += [F(base + i, n, t) for n, (i, t) in _OTHERS.items()]
    return F(base, f"c{column}", children or fields)


def proposal(stats: Iterable[F] = (), *, table2: bool = False, partition: list[F] | None = None) -> list[F]:
    """The content entry of the V4 proposal; ``table2``: with the ids of its second table."""
    versions = [
        F(0, "status", "int", True),
        F(1, "snapshot_id", "long"),
        F(3, "sequence_number", "long"),
        F(4, "file_sequence_number", "long"),
    ]
    vector = [F(144, "offset", "long"), F(145, "size_in_bytes", "long"), F(146, "inline_content", "binary")]
    counts = [
        F(504, "added_files_count", "int"),
        F(505, "existing_files_count", "int"),
        F(506, "deleted_files_count", "int"),
        F(512, "added_rows_count", "long"),
        F(513, "existing_rows_count", "long"),
        F(514, "deleted_rows_count", "long"),
        F(516, "min_sequence_number", "long"),
    ]
    stats = list(stats)
    fields = [
        F(134, "type" if table2 else "content_type", "int", True),
        F(100, "location", "string"),
        F(101, "file_format", "string"),
        F(5, "version_info", versions),
        F(147, "deletion_vector", vector),
        F(147 if table2 else 148, "partition_spec_id", "int"),
        F(140, "sort_order_id", "int"),
        F(103, "record_count", "long"),
        F(104, "file_size_in_bytes", "long"),
        F(521, "manifest_stats", counts),
        F(143, "referenced_file", "string"),
        F(131, "key_metadata", "binary"),
        F(132, "split_offsets", ["long", 133]),
        F(135, "equality_ids", ["int", 136]),
        F(142, "first_row_id", "long"),
    ]
    if stats:
        at = F(10_000, "column_stats", stats) if table2 else F(149, "content_stats", stats)
        fields.insert(9, at)
    if partition is not None:
        fields.insert(6, F(102, "partition", partition))
    return fields


def draft(stats: Iterable[F] = (), partition: list[F] | None = None) -> list[F]:
    """The ``TrackedFile`` of the V4 draft."""
    tracking = [
        F(0, "status", "int", True),
        F(1, "snapshot_id", "long"),
        F(3, "sequence_number", "long"),
        F(4, "file_sequence_number", "long"),
        F(5, "dv_snapshot_id", "long"),
        F(142, "first_row_id", "long"),
        F(6, "deleted_positions", "binary"),
        F(7, "replaced_positions", "binary"),
    ]
    vector = [
        F(155, "location", "string", True),
        F(144, "offset", "long", True),
        F(145, "size_in_bytes", "long", True),
        F(156, "cardinality", "long", True),
        F(149, "key_metadata", "binary"),
    ]
    info = [
        F(504, "added_files_count", "int"),
        F(505, "existing_files_count", "int"),
        F(506, "deleted_files_count", "int"),
        F(520, "replaced_files_count", "int"),
        F(512, "added_rows_count", "long"),
        F(513, "existing_rows_count", "long"),
        F(514, "deleted_rows_count", "long"),
        F(521, "replaced_rows_count", "long"),
        F(516, "min_sequence_number", "long"),
        F(522, "dv", "binary"),
        F(523, "dv_cardinality", "long"),
    ]
    fields = [
        F(147, "tracking", tracking, True),
        F(134, "content_type", "int", True),
        F(157, "format_version", "int", True),
        F(100, "location", "string", True),
        F(101, "file_format", "string", True),
        F(103, "record_count", "long", True),
        F(104, "file_size_in_bytes", "long", True),
        F(141, "spec_id", "int"),
        F(140, "sort_order_id", "int"),
        F(148, "deletion_vector", vector),
        F(150, "manifest_info", info),
        F(131, "key_metadata", "binary"),
        F(132, "split_offsets", ["long", 133]),
        F(135, "equality_ids", ["int", 136]),
    ]
    stats = list(stats)
    if partition is not None:
        fields.insert(8, F(102, "partition", partition))
    if stats:
        fields.insert(8, F(146, "content_stats", stats))
    return fields


def _arrow_field(f: F, ids: bool) -> pa.Field:
    if isinstance(f.type, list) and f.type and isinstance(f.type[0], F):
        kind: pa.DataType = pa.struct([_arrow_field(c, ids) for c in f.type])
    elif isinstance(f.type, list):
        kind = pa.list_(_arrow_field(F(f.type[1], "element", f.type[0], True), ids))
    else:
        kind = _ARROW[f.type]  # type: ignore[assignment]
    metadata = {b"PARQUET:field_id": str(f.field_id).encode()} if ids and f.field_id is not None else None
    return pa.field(f.name, kind, nullable=not f.required, metadata=metadata)


def parquet(
    fields: list[F], rows: list[dict[str, Any]], *, ids: bool = True, codec: str = "zstd", **metadata: str
) -> bytes:
    """A Parquet manifest; keys of ``metadata`` have dashes for underscores."""
    schema = pa.schema([_arrow_field(f, ids) for f in fields])
    out = pa.BufferOutputStream()
    pairs = {k.replace("_", "-").encode(): v.encode() for k, v in metadata.items()}
    table = pa.Table.from_pylist(rows, schema=schema).replace_schema_metadata(pairs)
    pq.write_table(table, out, compression=codec)  # type: ignore[arg-type]
    return bytes(out.getvalue().to_pybytes())


class _Avro:
    def __init__(self, ids: bool) -> None:
        self.ids = ids
        self.names = 0
        self.known: set[str] = set()

    def type(self, kind: Any) -> Any:
        if isinstance(kind, list) and kind and isinstance(kind[0], F):
            self.names += 1
            return {"type": "record", "name": f"r{self.names}", "fields": [self.field(f) for f in kind]}
        if isinstance(kind, list):
            return {"type": "array", "items": self.type(kind[0])} | ({"element-id": kind[1]} if self.ids else {})
        if kind == "uuid" and "uuid" in self.known:
            return "uuid_fixed"
        self.known.add(kind)
        return _AVRO[kind]

    def field(self, f: F) -> dict[str, Any]:
        made = self.type(f.type)
        out: dict[str, Any] = {"name": f.name, "type": made if f.required else ["null", made]}
        if self.ids and f.field_id is not None:
            out["field-id"] = f.field_id
        return out


def avro(
    fields: list[F], rows: list[dict[str, Any]], *, ids: bool = True, codec: str = "deflate", interval: int = 64_000,
    **metadata: str,
) -> bytes:  # fmt: skip
    """An Avro manifest; keys of ``metadata`` have dashes for underscores."""
    made = _Avro(ids)
    schema = {"type": "record", "name": "entry", "fields": [made.field(f) for f in fields]}
    pairs = {k.replace("_", "-"): v for k, v in metadata.items()}
    out = io.BytesIO()
    fastavro.writer(
        out, fastavro.parse_schema(schema), [_filled(fields, r) for r in rows], codec=codec, sync_interval=interval,
        sync_marker=SYNC, metadata=pairs,
    )  # fmt: skip
    return out.getvalue()


def _filled(fields: list[F], row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    out = {}
    for f in fields:
        value = row.get(f.name)
        nested = isinstance(f.type, list) and f.type and isinstance(f.type[0], F)
        out[f.name] = _filled(f.type, value) if nested else value
    return out


WRITERS: dict[str, Callable[..., bytes]] = {"avro": avro, "parquet": parquet}


def versions(status: int = 1, snapshot: int | None = None, sequence: int | None = None) -> dict[str, Any]:
    """``version_info``."""
    return {
        "status": status,
        "snapshot_id": snapshot,
        "sequence_number": sequence,
        "file_sequence_number": sequence,
    }


def data_row(number: int, *, status: int = 1, **more: Any) -> dict[str, Any]:
    """A data file of the proposal, distinct by its number."""
    return {
        "content_type": 0,
        "location": f"s3://b/t/data/{number:05d}.parquet",
        "file_format": "parquet",
        "version_info": versions(status),
        "partition_spec_id": 0,
        "record_count": 10 + number,
        "file_size_in_bytes": 1000 + number,
        **more,
    }


def manifest_row(location: str, length: int, files: int, *, kind: int = 3, status: int = 1, **more: Any) -> Any:
    """A leaf manifest of the proposal in its root: ``files`` ADDED ones."""
    return {
        "content_type": kind,
        "location": location,
        "file_format": "PARQUET",
        "version_info": versions(status),
        "partition_spec_id": 0,
        "record_count": files,
        "file_size_in_bytes": length,
        "manifest_stats": {
            "added_files_count": files,
            "existing_files_count": 0,
            "deleted_files_count": 0,
            "added_rows_count": None,
            "existing_rows_count": None,
            "deleted_rows_count": 0,
            "min_sequence_number": 7,
        },
        **more,
    }


def dv_row(leaf: str, content: bytes | None, *, status: int = 1, **more: Any) -> Any:
    """A manifest DV of the proposal in its root."""
    return {
        "content_type": 5,
        "location": leaf,
        "file_format": "puffin",
        "version_info": versions(status, None if status == 1 else 5, None if status == 1 else 3),
        "partition_spec_id": 0,
        "record_count": 1,
        "deletion_vector": {"inline_content": content},
        "referenced_file": leaf,
        **more,
    }
