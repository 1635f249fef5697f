"""Values as they show: texts of uuids and bytes made in bulk agree with Python's own."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.inspect._position_deletes import _deleted_row
from iceexplore.inspect._shown import as_text, binary_hex, conform, micros_of, shown, shown_type
from iceexplore.metadata import ListType, MapType, NestedField, PrimitiveType, StructType


@given(st.lists(st.none() | st.binary(max_size=20)), st.integers(0, 3))
def test_hex(values: list[bytes | None], start: int) -> None:
    expected = [None if v is None else v.hex() for v in values]
    for kind in (pa.binary(), pa.large_binary()):
        made = binary_hex(pa.array(values, kind).slice(start))
        made.validate(full=True)
        assert made.to_pylist() == expected[start:]


@given(st.lists(st.none() | st.uuids()), st.integers(0, 3))
def test_uuid(values: list[uuid.UUID | None], start: int) -> None:
    array = pa.array([None if v is None else v.bytes for v in values], pa.binary(16)).slice(start)
    made = shown(array)
    made.validate(full=True)
    assert made.to_pylist() == [None if v is None else str(v) for v in values][start:]


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([1, None], pa.int64(), ["1", None]),
        ([True], pa.bool_(), ["true"]),
        ([1.5], pa.float64(), ["1.5"]),
        ([Decimal("-0.05")], pa.decimal128(9, 2), ["-0.05"]),
        ([date(2024, 2, 29)], pa.date32(), ["2024-02-29"]),
        ([datetime(2024, 2, 29, 1, 2, 3, 4)], pa.timestamp("us"), ["2024-02-29 01:02:03.000004"]),
        ([datetime(1969, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC"), ["1969-01-01 00:00:00.000000Z", None]),
        ([b"\x00\xff"], pa.binary(), ["00ff"]),
        (["x"], pa.string(), ["x"]),
        ([None], pa.null(), [None]),
    ],
    ids=str,
)
def test_text(values: list[Any], kind: pa.DataType, texts: list[str | None]) -> None:
    assert as_text(pa.array(values, kind)).to_pylist() == texts


def test_conform_never_fails() -> None:
    assert conform(pa.array([1]), pa.int32()).type == pa.int32()
    assert conform(pa.array([2**40]), pa.int32()).to_pylist() == [None]
    assert conform(pa.array([b"\xff"]), pa.string()).to_pylist() == ["ff"]
    assert conform(pa.array(["x"]), pa.date32()).to_pylist() == [None]


def test_types() -> None:
    uid, text = PrimitiveType("uuid"), PrimitiveType("string")
    nested = StructType(
        (
            NestedField(1, "u", uid, True),
            NestedField(2, "l", ListType(NestedField(3, "element", uid))),
            NestedField(4, "m", MapType(NestedField(5, "key", text), NestedField(6, "value", uid))),
        )
    )
    kind = shown_type(nested)
    assert kind.field("u").type == pa.string()  # type: ignore[arg-type]
    assert kind.field("l").type.value_type == pa.string()  # type: ignore[arg-type]
    assert kind.field("m").type.item_type == pa.string()  # type: ignore[arg-type]


def test_times_out_of_range_are_null() -> None:
    assert micros_of(1_700_000_000_000) == 1_700_000_000_000_000
    assert micros_of(2**62) is None
    assert micros_of(None) is None


def test_deleted_rows_of_a_table_whose_schema_is_lost_are_null() -> None:
    kept = pa.array([{"a": 1}, {"a": 2}], pa.struct([pa.field("a", pa.int64())]))
    with contextlib.closing(ix.empty({"id": "long"})) as t:
        state = t.state
        lost = dataclasses.replace(state.metadata, schemas=())
        assert _deleted_row(kept, dataclasses.replace(state, metadata=lost), pa.struct([])).to_pylist() == [None, None]
