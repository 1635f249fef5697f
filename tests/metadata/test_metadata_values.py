"""Values in single-value binary form: columns, single values, and PyIceberg as a second opinion."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from iceexplore.arrow import build
from iceexplore.errors import FormatError, OptionError
from iceexplore.metadata import PrimitiveType, arrow_type, decode_value, decode_values, encode_value, parse_type

TYPES = (
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
    "timestamptz_ns", "string", "uuid", "binary", "fixed[4]", "decimal(9,2)", "decimal(38,0)", "decimal(3,3)",
    "variant", "geometry", "geography(OGC:CRS84, karney)", "unknown", "a_type_of_the_future", "decimal(77,2)",
)  # fmt: skip


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


I32, I64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": I32,
    "long": I64,
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "date": st.dates(),
    "time": st.times(),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ns": I64.filter(lambda n: n != -(2**63)).map(lambda n: np.datetime64(n, "ns")),
    "string": st.text(),
    "uuid": st.uuids(),
    "binary": st.binary(max_size=40),
    "fixed[4]": st.binary(min_size=4, max_size=4),
    "decimal(9,2)": decimals(9, 2),
    "decimal(38,0)": decimals(38, 0),
    "decimal(38,38)": decimals(38, 38),
}
TYPED = st.sampled_from(sorted(VALUES)).flatmap(lambda n: st.tuples(st.just(n), VALUES[n]))


@given(TYPED)
def test_round_trip(pair: tuple[str, Any]) -> None:
    name, value = pair
    assert decode_value(PrimitiveType(name), encode_value(PrimitiveType(name), value)) == value


@given(TYPED)
def test_same_as_pyiceberg(pair: tuple[str, Any]) -> None:
    from pyiceberg import types
    from pyiceberg.conversions import from_bytes, to_bytes

    name, value = pair
    if name == "decimal(38,38)":  # PyIceberg rounds it to the default context's 28 digits
        return
    theirs: Any = {
        "boolean": types.BooleanType(), "int": types.IntegerType(), "long": types.LongType(),
        "float": types.FloatType(), "double": types.DoubleType(), "date": types.DateType(), "time": types.TimeType(),
        "timestamp": types.TimestampType(), "timestamptz": types.TimestamptzType(),
        "timestamp_ns": types.TimestampNanoType(), "string": types.StringType(), "uuid": types.UUIDType(),
        "binary": types.BinaryType(), "fixed[4]": types.FixedType(4), "decimal(9,2)": types.DecimalType(9, 2),
        "decimal(38,0)": types.DecimalType(38, 0),
    }[name]  # fmt: skip
    given_to_them = int(value.astype(np.int64)) if name == "timestamp_ns" else value
    encoded = to_bytes(theirs, given_to_them)
    assert encode_value(PrimitiveType(name), value) == encoded
    ours = decode_value(PrimitiveType(name), encoded)
    read = from_bytes(theirs, encoded)
    if name in ("date", "time", "timestamp", "timestamptz", "timestamp_ns"):  # they give the stored integer
        assert encode_value(PrimitiveType(name), read) == encode_value(PrimitiveType(name), ours)
    elif name == "decimal(38,0)" and len(value.as_tuple().digits) > 28:
        pass  # their decoding rounds
    else:
        assert (ours.bytes if name == "uuid" and isinstance(read, bytes) else ours) == read


def as_stored(type_: Any, value: Any) -> Any:
    """What Arrow hands out, as ``decode_value`` gives it."""
    if value is None:
        return None
    if type_.name == "uuid":
        return UUID(bytes=value)
    return value


@given(st.sampled_from(TYPES), st.lists(st.none() | st.binary(max_size=20), max_size=12), st.integers(0, 3))
def test_columns_equal_single_values(name: str, raw: list[bytes | None], cut: int) -> None:
    """Any bytes at all: the vectorised way says what the scalar one says, and neither lets a foreign error out."""
    type_ = PrimitiveType(name)
    for layout in (pa.binary(), pa.large_binary(), pa.binary_view()):
        values, bad = decode_values(type_, pa.array(raw, layout)[cut:])
        assert values.type == arrow_type(type_)
        assert len(values) == len(bad) == len(raw[cut:])
        for data, got, wrong in zip(raw[cut:], values, bad.to_pylist(), strict=True):
            assert got.is_valid == (data is not None and not wrong)
            if data is None:
                assert not wrong
                continue
            if wrong:
                with pytest.raises(FormatError) as caught:
                    decode_value(type_, data)
                assert caught.value.code == "value-undecodable"
            else:
                assert same(type_, got, decode_value(type_, data))


def same(type_: PrimitiveType, got: Any, expected: Any) -> bool:
    if isinstance(expected, (date, time, datetime, np.datetime64)):
        return encode_value(type_, got.value) == encode_value(type_, expected)
    found = as_stored(type_, got.as_py())
    return bool(found == expected or (found != found and expected != expected))


def test_every_length_of_good_values() -> None:
    """The fast ways (one length, end to end) and the slow ones give the same."""
    longs = [struct.pack("<q", i) for i in range(1000)]
    values, bad = decode_values(PrimitiveType("long"), pa.array(longs))
    assert values.to_pylist() == list(range(1000))
    assert not any(bad.to_pylist())
    mixed = [None if i % 3 == 0 else struct.pack("<i" if i % 3 == 1 else "<q", -i) for i in range(1000)]
    values, bad = decode_values(PrimitiveType("long"), pa.chunked_array([mixed[:400], mixed[400:]], pa.binary()))
    assert values.to_pylist() == [None if i % 3 == 0 else -i for i in range(1000)]
    assert not any(bad.to_pylist())


def test_bytes_under_a_null_do_not_matter() -> None:
    raw = pa.array([b"12345678", b"hidden", b"abcdefgh"])
    hidden = pa.Array.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x05"), *raw.buffers()[1:]])
    values, bad = decode_values(PrimitiveType("long"), hidden)
    assert values.to_pylist() == [struct.unpack("<q", b"12345678")[0], None, struct.unpack("<q", b"abcdefgh")[0]]
    assert bad.to_pylist() == [False, False, False]


def test_promoted_bounds() -> None:
    """The spec's table of lengths and inferred types."""
    day = struct.pack("<i", 19_000)
    cases = {
        "long": (struct.pack("<i", -5), -5),
        "double": (struct.pack("<f", 1.5), 1.5),
        "timestamp": (day, datetime(2022, 1, 8)),
        "timestamp_ns": (day, np.datetime64("2022-01-08T00:00:00.000000000")),
    }
    for name, (data, expected) in cases.items():
        assert decode_value(PrimitiveType(name), data) == expected
        values, bad = decode_values(PrimitiveType(name), pa.array([data]))
        assert not bad[0].as_py()
        assert same(PrimitiveType(name), values[0], expected)
    for name in ("timestamptz", "timestamptz_ns", "time"):
        values, bad = decode_values(PrimitiveType(name), pa.array([day]))
        assert (values.to_pylist(), bad.to_pylist()) == ([None], [True])
    far = struct.pack("<i", 2**31 - 1)
    for name in ("timestamp", "timestamp_ns"):
        assert decode_values(PrimitiveType(name), pa.array([far]))[1].to_pylist() == [True]
        with pytest.raises(FormatError):
            decode_value(PrimitiveType(name), far)


def test_decimals_of_padded_and_minimal_length() -> None:
    type_ = PrimitiveType("decimal(9,2)")
    data = [b"\x05", b"\x00\x05", b"\x00" * 15 + b"\x05", b"\xff", b"\xff" * 16, b"\x7f\xff\xff\xff", b"", b"\x00" * 17]
    values, bad = decode_values(type_, pa.array(data))
    assert values.to_pylist() == [Decimal("0.05")] * 3 + [Decimal("-0.01")] * 2 + [None] * 3
    assert bad.to_pylist() == [False] * 5 + [True] * 3


@pytest.mark.parametrize("precision", [1, 9, 18, 19, 37, 38])
def test_decimal_limits(precision: int) -> None:
    type_ = PrimitiveType(f"decimal({precision},0)")
    limit = 10**precision
    good = [limit - 1, 1 - limit, 0, -1]
    data = [n.to_bytes(16, "big", signed=True) for n in [*good, limit, -limit]]
    values, bad = decode_values(type_, pa.array(data))
    assert [int(v) for v in build.to_pylist(values)[:4]] == good
    assert bad.to_pylist() == [False] * 4 + [True] * 2


def test_damaged_strings() -> None:
    values, bad = decode_values(PrimitiveType("string"), pa.array([b"a", b"\xff", None, "ü".encode(), b"\xc3"]))
    assert values.to_pylist() == ["a", None, None, "ü", None]
    assert bad.to_pylist() == [False, True, False, False, True]


def test_fixed_bounds_may_be_shorter() -> None:
    values, bad = decode_values(PrimitiveType("fixed[4]"), pa.array([b"ab", b"abcd", b"abcde"]))
    assert values.to_pylist() == [b"ab", b"abcd", None]
    assert bad.to_pylist() == [False, False, True]


def test_nested_types_have_no_binary_form() -> None:
    type_ = parse_type({"type": "list", "element-id": 1, "element": "int", "element-required": False})
    values, bad = decode_values(type_, pa.array([b"x", None]))
    assert values.type == arrow_type(type_)
    assert (values.to_pylist(), bad.to_pylist()) == ([None, None], [True, False])
    with pytest.raises(FormatError):
        decode_value(type_, b"x")


def test_empty_columns() -> None:
    for name in TYPES:
        values, bad = decode_values(PrimitiveType(name), pa.array([], pa.binary()))
        assert (len(values), len(bad), values.type) == (0, 0, arrow_type(PrimitiveType(name)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int", 2**31), ("int", "x"), ("int", 1.5), ("int", True), ("long", None), ("uuid", "no"), ("uuid", b"1"),
        ("fixed[4]", b"123"), ("binary", "text"), ("decimal(3,1)", Decimal("1.25")), ("decimal(3,1)", 1000),
        ("decimal(3,1)", Decimal("NaN")), ("decimal(3,1)", Decimal("1E+999999")), ("string", "\ud800"),
        ("float", 1e300), ("unknown", 1), ("future", 1), ("date", "2024-01-01"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_stored(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=name.partition("(")[0].partition("[")[0]):
        encode_value(PrimitiveType(name), value)


def test_pandas_timestamps_keep_their_nanoseconds() -> None:
    pd = pytest.importorskip("pandas")
    stamp = pd.Timestamp("2024-01-01T00:00:00.123456789", tz="UTC")
    assert encode_value(PrimitiveType("timestamptz_ns"), stamp) == struct.pack("<q", stamp.value)
