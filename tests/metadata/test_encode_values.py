"""Columns of values in binary form: back by decode_values, and the same bytes as PyIceberg and encode_value make."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.errors import OptionError
from iceexplore.metadata import PrimitiveType, arrow_type, decode_values, encode_value, encode_values, parse_type

_INT, _LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    whole = st.integers(-(10**precision) + 1, 10**precision - 1)
    return whole.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": _INT,
    "long": _LONG,
    "float": st.floats(width=32),
    "double": st.floats(),
    "date": _INT,
    "time": st.integers(0, 86_399_999_999),
    "timestamp": _LONG,
    "timestamptz": _LONG,
    "timestamp_ns": _LONG,
    "timestamptz_ns": _LONG,
    "string": st.text(),
    "uuid": st.binary(min_size=16, max_size=16),
    "binary": st.binary(),
    "fixed[5]": st.binary(min_size=5, max_size=5),
    "decimal(9,2)": _decimals(9, 2),
    "decimal(18,0)": _decimals(18, 0),
    "decimal(38,10)": _decimals(38, 10),
    "variant": st.binary(),
    "geometry": st.binary(),
}
#: Types whose values are the integers stored.
_STORED = ("date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")


def _array(name: str, values: list[Any]) -> pa.Array:
    kind = arrow_type(PrimitiveType(name))
    if name in _STORED:
        return pa.array(values, pa.int32() if name == "date" else pa.int64()).view(kind)
    return pa.array(values, kind)


@given(st.data())
def test_decode_values_gives_back_what_was_encoded(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(VALUES)))
    values = data.draw(st.lists(st.none() | VALUES[name], max_size=8))
    array = _array(name, values)
    start = data.draw(st.integers(0, len(values)))
    for part in (array, array.slice(start)):
        raw = encode_values(PrimitiveType(name), part)
        raw.validate(full=True)
        again, damaged = decode_values(PrimitiveType(name), raw)
        assert not damaged.true_count
        assert again.type == part.type and again.is_null().equals(part.is_null())
        assert encode_values(PrimitiveType(name), again).equals(raw)  # bit for bit, also of NaN and -0.0
        if name not in ("float", "double"):
            assert again.equals(part)


@given(st.data())
def test_bytes_are_those_of_encode_value_and_pyiceberg(data: st.DataObject) -> None:
    from pyiceberg.conversions import to_bytes
    from pyiceberg.schema import Schema

    # variant and geometry bounds are opaque to PyIceberg
    name = data.draw(st.sampled_from(sorted(set(VALUES) - {"variant", "geometry"})))
    values = data.draw(st.lists(VALUES[name], min_size=1, max_size=4))
    made = encode_values(PrimitiveType(name), _array(name, values)).to_pylist()
    text = name.replace(",", ", ")
    fields = [{"id": 1, "name": "x", "required": False, "type": text}]
    kind = Schema.model_validate({"type": "struct", "fields": fields}).find_field(1).field_type
    for value, raw in zip(values, made, strict=True):
        assert raw == encode_value(PrimitiveType(name), value)
        assert raw == to_bytes(kind, value)  # it takes stored integers too


def test_unknown_has_no_binary_form_and_what_does_not_fit_is_refused() -> None:
    assert encode_values(PrimitiveType("unknown"), pa.nulls(2)).to_pylist() == [None, None]
    with pytest.raises(OptionError, match="cannot be stored as int"):
        encode_values(PrimitiveType("int"), pa.array([2**40]))
    nested = parse_type({"type": "list", "element-id": 2, "element": "int", "element-required": False})
    assert encode_values(nested, pa.array([[1]])).to_pylist() == [None]
    zoned = pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC"))
    assert encode_values(PrimitiveType("timestamptz"), zoned).to_pylist() == [
        (1_704_067_200_000_000).to_bytes(8, "little")
    ]
