"""Types, schemas and defaults from JSON and back."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from iceexplore.errors import FormatError
from iceexplore.metadata import (
    ListType,
    MapType,
    PrimitiveType,
    StructType,
    arrow_type,
    default_from_json,
    default_to_json,
    parse_schema,
    parse_type,
    schema_to_json,
    spark_type_string,
    type_to_json,
)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("long", "long"),
        ("LONG", "long"),
        ("timestamptz_ns", "timestamptz_ns"),
        ("variant", "variant"),
        ("unknown", "unknown"),
        ("decimal(9,2)", "decimal(9,2)"),
        ("decimal( 38 , 10 )", "decimal(38,10)"),
        ("Decimal(9, 2)", "decimal(9,2)"),
        ("fixed[16]", "fixed[16]"),
        ("fixed[ 16 ]", "fixed[16]"),
        ("geometry", "geometry"),
        ("geometry()", "geometry"),
        ("geometry(srid:3857)", "geometry(srid:3857)"),
        ("Geometry( EPSG:4326 )", "geometry(EPSG:4326)"),
        ("geography", "geography"),
        ("geography(srid:4269,karney)", "geography(srid:4269, karney)"),
        ("geography(srid:4269)", "geography(srid:4269)"),
        ("geography(, Spherical)", "geography(OGC:CRS84, spherical)"),
        ("interval_of_the_future(3)", "interval_of_the_future(3)"),
    ],
)
def test_type_strings(written: str, name: str) -> None:
    assert parse_type(written) == PrimitiveType(name)
    assert parse_type(type_to_json(parse_type(written))) == PrimitiveType(name)


def test_base_of_parametrised_types() -> None:
    assert [PrimitiveType(n).base for n in ("decimal(9,2)", "fixed[3]", "geometry(a)", "long")] == [
        "decimal", "fixed", "geometry", "long",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "json", [None, 3, [], {}, {"type": "union"}, {"type": "list"}, {"type": "struct"}, "decimal(40,2)", "decimal(3,4)"]
)
def test_malformed_types_are_refused(json: object) -> None:
    with pytest.raises(FormatError) as caught:
        parse_type(json)
    assert caught.value.code == "metadata-invalid"


def nested(depth: int) -> object:
    json: object = "int"
    for i in range(depth):
        json = {"type": "list", "element-id": i + 1, "element": json, "element-required": False}
    return json


def test_depth_is_limited() -> None:
    assert isinstance(parse_type(nested(100)), ListType)
    for depth in (101, 900):
        with pytest.raises(FormatError, match="nested deeper than 100"):
            parse_type(nested(depth))


SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 3,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long", "doc": "the key"},
        {
            "id": 2,
            "name": "points",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 3,
                "element-required": True,
                "element": {
                    "type": "struct",
                    "fields": [{"id": 4, "name": "x", "required": False, "type": "double", "write-default": 1.5}],
                },
            },
        },
        {
            "id": 5,
            "name": "tags",
            "required": False,
            "type": {
                "type": "map", "key-id": 6, "key": "string", "value-id": 7, "value": "decimal(9, 2)",
                "value-required": False,
            },
        },
        {"id": 8, "name": "day", "required": False, "type": "date", "initial-default": "2024-02-29"},
    ],
}  # fmt: skip


def test_schema_round_trip() -> None:
    schema = parse_schema(SCHEMA)
    assert schema_to_json(schema) == SCHEMA
    assert parse_schema(schema_to_json(schema)) == schema
    assert {i: n for i, (n, _) in schema.by_id().items()} == {
        1: "id", 2: "points", 3: "points.element", 4: "points.element.x",
        5: "tags", 6: "tags.key", 7: "tags.value", 8: "day",
    }  # fmt: skip
    field = schema.find(8)
    assert field is not None
    assert field.initial_default == date(2024, 2, 29)
    assert isinstance(schema.fields[2].type, MapType)
    assert schema.fields[2].type.key.required


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"type": "list"}, "type"),
        ({"fields": {}}, "fields"),
        ({"schema-id": "3"}, "schema-id"),
        ({"identifier-field-ids": [True]}, "identifier-field-ids"),
        ({"fields": [{"name": "a", "required": True, "type": "int"}]}, "id"),
        ({"fields": [{"id": True, "name": "a", "required": True, "type": "int"}]}, "id"),
        ({"fields": [{"id": 1, "required": True, "type": "int"}]}, "name"),
        ({"fields": [{"id": 1, "name": "a", "type": "int"}]}, "required"),
        ({"fields": [{"id": 1, "name": "a", "required": True}]}, "type"),
        ({"fields": [{"id": 1, "name": "a", "required": True, "type": "int", "initial-default": "x"}]},
         "initial-default"),
    ],
)  # fmt: skip
def test_schema_faults_name_the_key(change: dict[str, object], key: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_schema(SCHEMA | change)
    assert caught.value.field == key


DEFAULTS = [
    ("boolean", True, True),
    ("int", 34, 34),
    ("long", 2**40, 2**40),
    ("float", 1.0, 1.0),
    ("decimal(9,2)", "14.20", Decimal("14.20")),
    ("date", "2017-11-16", date(2017, 11, 16)),
    ("time", "22:31:08.123456", time(22, 31, 8, 123456)),
    ("timestamp", "2017-11-16T22:31:08.123456", datetime(2017, 11, 16, 22, 31, 8, 123456)),
    ("timestamptz", "2017-11-16T22:31:08.123456+00:00", datetime(2017, 11, 16, 22, 31, 8, 123456, UTC)),
    ("timestamp_ns", "2017-11-16T22:31:08.123456789", np.datetime64("2017-11-16T22:31:08.123456789")),
    ("timestamptz_ns", "2017-11-16T22:31:08.123456789+00:00", np.datetime64("2017-11-16T22:31:08.123456789")),
    ("string", "iceberg", "iceberg"),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
    ("fixed[4]", "000102ff", b"\x00\x01\x02\xff"),
    ("binary", "000102ff", b"\x00\x01\x02\xff"),
]


@pytest.mark.parametrize(("name", "json", "value"), DEFAULTS)
def test_defaults_of_the_specs_table(name: str, json: object, value: object) -> None:
    type_ = PrimitiveType(name)
    assert default_from_json(type_, json) == value
    assert default_to_json(type_, value) == json


def test_nested_defaults() -> None:
    struct = parse_type({"type": "struct", "fields": SCHEMA["fields"][:1]})
    assert default_from_json(struct, {"1": 1}) == {1: 1}
    assert default_from_json(struct, {}) == {}
    pairs = parse_type(SCHEMA["fields"][2]["type"])
    json = {"keys": ["a", "b"], "values": ["1.00", None]}
    assert default_from_json(pairs, json) == [("a", Decimal("1.00")), ("b", None)]
    assert default_to_json(pairs, default_from_json(pairs, json)) == json


@pytest.mark.parametrize(
    ("name", "json"),
    [
        ("int", 2**31), ("int", True), ("int", 1.5), ("long", "1"), ("boolean", 1), ("decimal(9,2)", "14.2"),
        ("decimal(4,2)", "123.45"), ("decimal(9,2)", "NaN"), ("date", "2023-02-29"), ("time", "24:00:00"),
        ("timestamp", "2017-11-16T22:31:08+00:00"), ("timestamptz", "2017-11-16T22:31:08"),
        ("timestamp", "2017-11-16 22:31:08"), ("timestamp_ns", "9999-01-01T00:00:00"), ("uuid", "no"),
        ("fixed[4]", "00"), ("binary", "0g"), ("string", 3), ("variant", {}), ("unknown", 1),
        ("geometry", "POINT (1 1)"),
        ("double", 10**400),
    ],
)  # fmt: skip
def test_defaults_that_do_not_fit(name: str, json: object) -> None:
    with pytest.raises(FormatError) as caught:
        default_from_json(PrimitiveType(name), json)
    assert caught.value.code == "value-undecodable"


def test_arrow_and_spark_types() -> None:
    schema = parse_schema(SCHEMA)
    points = pa.list_(pa.field("element", pa.struct([pa.field("x", pa.float64())]), nullable=False))
    assert arrow_type(schema.fields[1].type) == points
    assert arrow_type(schema.fields[2].type) == pa.map_(pa.string(), pa.decimal128(9, 2))
    assert spark_type_string(StructType(schema.fields)) == (
        "struct<id:bigint,points:array<struct<x:double>>,tags:map<string,decimal(9,2)>,day:date>"
    )
    expected = {
        "uuid": (pa.binary(16), "string"),
        "timestamptz": (pa.timestamp("us", "UTC"), "timestamp"),
        "timestamp": (pa.timestamp("us"), "timestamp_ntz"),
        "timestamp_ns": (pa.timestamp("ns"), "timestamp_ns"),
        "unknown": (pa.null(), "void"),
        "variant": (pa.binary(), "variant"),
        "geometry(a)": (pa.binary(), "geometry(a)"),
        "future": (pa.binary(), "future"),
        "fixed[3]": (pa.binary(), "binary"),
        "time": (pa.time64("us"), "time"),
    }
    assert {n: (arrow_type(PrimitiveType(n)), spark_type_string(PrimitiveType(n))) for n in expected} == expected
