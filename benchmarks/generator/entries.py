"""Manifest entries of generated tables: the template record, and what differs from file to file."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np

from .columns import Column, day, region, rows
from .schemas import manifest_schema
from .template import AvroTemplate, Bytes, digits, fixed, varint

__all__ = ["Layout", "data_entries", "delete_entries", "partition_summaries"]

PATH_ID, POS_ID = 2_147_483_546, 2_147_483_545  # reserved field ids of position deletes (spec)


@dataclass(frozen=True)
class Layout:
    """What an entry depends on besides the file's number."""

    format_version: int
    partitioned: bool
    columns: list[Column]
    location: str


# Marks: values in the template record wherever entries differ, each with the encoded length of what replaces
# it, and recognisable enough that `AvroTemplate` finds it exactly as often as it was put there.
_FILE, _DELETE = "987654321", "876543219"
_ROWS, _SIZE, _DAY, _OFFSET = 765_432, 98_765_432, 543_219, 87_654_321


def _mark(*key: object) -> bytes:
    return uuid.uuid5(uuid.NAMESPACE_OID, repr(key)).bytes


def _varint_mark(value: int, width: int) -> bytes:
    return varint([value], width).tobytes()


def _partition(layout: Layout, files: Any) -> tuple[list[Any], dict[str, Any], dict[str, Any], dict[str, Bytes]]:
    """Avro fields, record, marks and values of the partition."""
    if not layout.partitioned:
        return [], {}, {}, {}
    fields = [
        {"name": "ts_day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None, "field-id": 1000},
        {"name": "region", "type": ["null", "string"], "default": None, "field-id": 1001},
    ]
    marks = {"day": (_varint_mark(_DAY, 3), 1), "partition-region": (b"region-!!", 1)}
    values = {
        "day": varint(day(files), 3),
        "partition-region": np.hstack(
            [np.tile(np.frombuffer(b"region-", "u1"), (len(files), 1)), digits(region(files), 2)]
        ),
    }
    return fields, {"ts_day": _DAY, "region": "region-!!"}, marks, values


def partition_summaries(layout: Layout, files: Any) -> list[dict[str, Any]]:
    """The field summaries that a manifest list has for a manifest of these data files."""
    if not layout.partitioned:
        return []
    days, regions = day(files), region(files)
    bounds = [
        (fixed([days.min()], "<i4").tobytes(), fixed([days.max()], "<i4").tobytes()),
        (b"region-%02d" % regions.min(), b"region-%02d" % regions.max()),
    ]
    return [{"contains_null": False, "contains_nan": False, "lower_bound": lo, "upper_bound": hi} for lo, hi in bounds]


def _data_path(layout: Layout, number: str = _FILE) -> str:
    return f"{layout.location}/data/{number}-0-00001.parquet"


def _pairs(items: dict[int, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in items.items()]


def data_entries(layout: Layout, files: Any, snapshot_id: int) -> tuple[AvroTemplate, dict[str, Bytes], Any]:
    """Template, values and record counts of the data files with these numbers."""
    fields, partition, marks, values = _partition(layout, files)
    sizes: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for column in layout.columns:
        for part, made in column.statistics(files).items():
            name = f"{part}-{column.field_id}"
            values[name] = made
            if part in ("lower", "upper"):
                # A bound of one or two bytes (a boolean) is no mark: its key and length before it make one.
                mark = _mark(name)[: made.shape[1]].ljust(made.shape[1], b"~")
                (lower if part == "lower" else upper)[column.field_id] = mark
                marks[name] = (mark, 1)
            else:
                width = made.shape[1]
                mark_value = 900_000 + 97 * column.field_id if part == "size" else 8_190 - column.field_id
                (sizes if part == "size" else nulls)[column.field_id] = mark_value
                marks[name] = (_varint_mark(mark_value, width), 1)
    for column in [c for c in layout.columns if c.type == "boolean"]:
        # false and true in every file: nothing to vary, and one byte is no mark.
        for part, bounds, value in (("lower", lower, b"\0"), ("upper", upper, b"\1")):
            bounds[column.field_id] = value
            del marks[f"{part}-{column.field_id}"], values[f"{part}-{column.field_id}"]
    record_counts = rows(files)
    marks |= {
        "path": (_FILE.encode(), 1),
        "rows": (_varint_mark(_ROWS, 3), 1 + len(layout.columns)),
        "file-size": (_varint_mark(_SIZE, 4), 1),
    }
    values |= {
        "path": digits(files, 9),
        "rows": varint(record_counts, 3),
        "file-size": varint(20_000_000 + files * 104_729 % 100_000_000, 4),
    }
    record = {
        "status": 1,
        "snapshot_id": snapshot_id,
        "data_file": {
            "content": 0,
            "file_path": _data_path(layout),
            "file_format": "PARQUET",
            "partition": partition,
            "record_count": _ROWS,
            "file_size_in_bytes": _SIZE,
            "block_size_in_bytes": 67_108_864,
            "column_sizes": _pairs(sizes),
            "value_counts": _pairs({c.field_id: _ROWS for c in layout.columns}),
            "null_value_counts": _pairs(nulls),
            "nan_value_counts": _pairs({c.field_id: 0 for c in layout.columns if c.type in ("double", "float")}),
            "lower_bounds": _pairs(lower),
            "upper_bounds": _pairs(upper),
            "split_offsets": [4],
            "sort_order_id": 0,
        },
    }
    return AvroTemplate(manifest_schema(layout.format_version, fields), record, marks), values, record_counts


def delete_entries(
    layout: Layout, files: Any, numbers: Any, snapshot_id: int
) -> tuple[AvroTemplate, dict[str, Bytes], Any]:
    """The same for deletes: ``files`` are the data files they apply to, ``numbers`` the deletes' own."""
    version = layout.format_version
    fields, partition, marks, values = _partition(layout, files)
    record_counts = 100 + numbers % 8_000
    in_puffin = version >= 3
    delete_path = f"{layout.location}/data/{_DELETE}-00001-deletes.{'puffin' if in_puffin else 'parquet'}"
    rows_mark = 8_190
    data_file: dict[str, Any] = {
        "content": 1,
        "file_path": delete_path,
        "file_format": "PUFFIN" if in_puffin else "PARQUET",
        "partition": partition,
        "record_count": rows_mark,
        "file_size_in_bytes": _SIZE,
        "referenced_data_file": _data_path(layout),
    }
    if in_puffin:
        data_file |= {"content_offset": _OFFSET, "content_size_in_bytes": _ROWS}
        offsets = 2_000_000 + numbers % 100 * 20_000
        marks |= {"offset": (_varint_mark(_OFFSET, 4), 1), "length": (_varint_mark(_ROWS, 3), 1)}
        values |= {"offset": varint(offsets, 4), "length": varint(10_000 + record_counts, 3)}
    else:
        bound = _data_path(layout).encode()
        data_file |= {
            "column_sizes": _pairs({PATH_ID: 120, POS_ID: 4_000}),
            "value_counts": _pairs({PATH_ID: rows_mark, POS_ID: rows_mark}),
            "null_value_counts": _pairs({PATH_ID: 0, POS_ID: 0}),
            "nan_value_counts": [],
            "lower_bounds": _pairs({PATH_ID: bound, POS_ID: bytes(8)}),
            "upper_bounds": _pairs({PATH_ID: bound, POS_ID: (99_999).to_bytes(8, "little")}),
            "split_offsets": [4],
        }
    times = 1 if in_puffin else 3
    marks |= {
        "path": (_FILE.encode(), times),
        "delete-path": (_DELETE.encode(), 1),
        "rows": (_varint_mark(rows_mark, 2), times),
        "file-size": (_varint_mark(_SIZE, 4), 1),
    }
    values |= {
        "path": digits(files, 9),
        "delete-path": digits(numbers // 100 if in_puffin else numbers, 9),
        "rows": varint(record_counts, 2),
        "file-size": varint(4_000_000 + (numbers // 100 if in_puffin else numbers) % 1_000_000, 4),
    }
    record = {"status": 1, "snapshot_id": snapshot_id, "data_file": data_file}
    return AvroTemplate(manifest_schema(version, fields), record, marks), values, record_counts
