"""Bounds of geometries: texts of points, and boxes in manifests of the V4 draft."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.manifests import EntryBatch, stats_type, write_manifest
from iceexplore.metadata import PrimitiveType, format_value, parse_schema

NAN = float("nan")
WKB_POINT = struct.pack("<BIdd", 1, 1, 1.0, 2.0)


def point(*ordinates: float) -> bytes:
    return struct.pack(f"<{len(ordinates)}d", *ordinates)


def test_points_as_text() -> None:
    kind = PrimitiveType("geometry")
    assert format_value(kind, point(-5, 2.5)) == "x -5.0, y 2.5"
    assert format_value(kind, point(1, 2, 3)) == "x 1.0, y 2.0, z 3.0"
    assert format_value(kind, point(1, 2, NAN, 4)) == "x 1.0, y 2.0, m 4.0"
    assert format_value(kind, WKB_POINT) == "AQEAAAAAAAAAAADwPwAAAAAAAABA"
    assert format_value(PrimitiveType("binary"), point(1, 2)) == "AAAAAAAA8D8AAAAAAAAAQA=="


#: The second box of the geography crosses the antimeridian.
BOXES = [(point(-5, 2), point(7, 40)), (point(170, -10), point(-170, 10)), None]


def _table() -> tuple[Any, EntryBatch]:
    fields = [
        {"id": i, "name": name, "type": name, "required": False} for i, name in ((1, "geometry"), (2, "geography"))
    ]
    t = ix.sample("trips")
    schema = parse_schema({"type": "struct", "schema-id": 99, "fields": fields})
    metadata = replace(t.state.metadata, schemas=(schema,), current_schema_id=99, partition_specs=(), format_version=4)
    kind = stats_type(pa.binary())
    boxes = [
        {"lower": None if b is None else b[0], "upper": None if b is None else b[1], "value_count": 3, "null_count": 0}
        for b in BOXES
    ]
    stats = pa.array([{**b, "tight_bounds": True} for b in boxes], kind)
    rows = [
        {
            "content_type": 0,
            "status": 1,
            "location": f"f{i}",
            "file_format": "parquet",
            "record_count": 3,
            "file_size_in_bytes": 9,
        }
        for i in range(3)
    ]
    return metadata, EntryBatch.of_rows(rows, stats={1: stats, 2: stats})


def _id(field: Any) -> int:
    return int(field.metadata[b"PARQUET:field_id"])


@pytest.mark.parametrize("name", ["geometry", "geography"])
def test_the_draft_has_boxes_as_structs(name: str) -> None:
    metadata, batch = _table()
    written = write_manifest(
        batch, content="data", metadata=metadata, spec_id=None, dialect="v4-draft", manifest_format="parquet"
    )
    table = pq.read_table(pa.BufferReader(written))
    stats: Any = table.schema.field("content_stats").type.field(name)
    base = 10_200 if name == "geometry" else 10_400
    assert _id(stats) == base
    box = {f.name: f for f in stats.type}
    assert set(box) == {"geo_lower", "geo_upper", "value_count", "null_value_count"}
    assert (_id(box["geo_lower"]), _id(box["geo_upper"])) == (base + 1, base + 2)
    for side, first in (("geo_lower", 10), ("geo_upper", 14)):
        found = [(f.name, _id(f) - base, f.nullable) for f in box[side].type]
        assert found == [("x", first, False), ("y", first + 1, False)]
    rows: list[Any] = table["content_stats"].to_pylist()
    values = [row[name] for row in rows]
    assert values[0]["geo_lower"] == {"x": -5.0, "y": 2.0}
    assert (values[1]["geo_lower"]["x"], values[1]["geo_upper"]["x"]) == (170.0, -170.0)
    assert (values[2]["geo_lower"], values[2]["geo_upper"]) == (None, None)
