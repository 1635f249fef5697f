"""Bloom filters of Parquet: no value that was written is ever denied, and hostile bytes end in errors of ours."""

from __future__ import annotations

import contextlib
import datetime as dt
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.formats import ParquetLeaf, read_parquet_row_groups, read_struct
from iceexplore.metadata import PrimitiveType
from iceexplore.planning.row_groups._bloom_filter import BloomFilter, read_bloom_filter
from iceexplore.planning.row_groups._stored_values import hash_inputs
from tests.planning.row_groups.parquet_files import storage_of

FALSE_POSITIVES = 0.01


def _filters(data: bytes, kind: str) -> tuple[ParquetLeaf, list[BloomFilter]]:
    """The leaf and the Bloom filters of the only column of a file, one for each row group."""
    storage, location = storage_of(data)
    found = read_parquet_row_groups(storage, location, lambda leaves: [0])
    out = []
    for group in found.groups:
        chunk = group.chunks[0]
        assert chunk.bloom_offset is not None
        out.append(read_bloom_filter(storage, location, chunk.bloom_offset, chunk.bloom_length))
        unsaid = read_bloom_filter(storage, location, chunk.bloom_offset, None)
        assert np.array_equal(unsaid.words, out[-1].words)
    storage.close()
    return found.leaves[0], out


def _written(array: pa.Array, **how: Any) -> bytes:
    sink = pa.BufferOutputStream()
    options = {"x": {"ndv": max(8, len(array)), "fpp": FALSE_POSITIVES}}
    pq.write_table(pa.table({"x": array}), sink, bloom_filter_options=options, **how)
    return sink.getvalue().to_pybytes()


CASES: dict[str, tuple[str, pa.DataType, Callable[[int], Any], Callable[[int], Any], dict[str, Any]]] = {
    # type of the column, Arrow type of the file, i -> value written, i -> literal
    "long": ("long", pa.int64(), lambda i: i - 500, lambda i: i - 500, {}),
    "promoted": ("long", pa.int32(), lambda i: i - 500, lambda i: i - 500, {}),
    "int": ("int", pa.int32(), lambda i: -i, lambda i: -i, {}),
    "float": ("float", pa.float32(), lambda i: i / 4, lambda i: i / 4, {}),
    "double": ("double", pa.float64(), lambda i: i / 3, lambda i: i / 3, {}),
    "wider": ("double", pa.float32(), lambda i: i / 4, lambda i: i / 4, {}),
    "string": ("string", pa.string(), lambda i: f"ü{i}", lambda i: f"ü{i}", {}),
    "binary": ("binary", pa.binary(), lambda i: b"\0" * i, lambda i: b"\0" * i, {}),
    "uuid": ("uuid", pa.binary(16), lambda i: i.to_bytes(16, "big"), lambda i: i.to_bytes(16, "big"), {}),
    "fixed": ("fixed[3]", pa.binary(3), lambda i: i.to_bytes(3, "big"), lambda i: i.to_bytes(3, "big"), {}),
    "date": ("date", pa.date32(), lambda i: dt.date.fromordinal(719163 + i), lambda i: i, {}),
    "day": ("timestamp", pa.date32(), lambda i: dt.date.fromordinal(719163 + i), lambda i: i * 86_400_000_000, {}),
    "micros": ("timestamptz", pa.timestamp("us", "UTC"), lambda i: i - 7, lambda i: i - 7, {}),
    "millis": ("timestamp", pa.timestamp("ms"), lambda i: i - 7, lambda i: (i - 7) * 1000, {}),
    "time": ("time", pa.time64("us"), lambda i: i, lambda i: i, {}),
    "small decimal": ("decimal(9,2)", pa.decimal128(9, 2), lambda i: Decimal(i) / 4, lambda i: Decimal(i) / 4, {}),
    "decimal of ints": (
        "decimal(9,2)", pa.decimal128(9, 2), lambda i: Decimal(-i) / 4, lambda i: Decimal(-i) / 4,
        {"store_decimal_as_integer": True},
    ),
    "decimal of longs": (
        "decimal(18,3)", pa.decimal128(18, 3), lambda i: Decimal(i) / 8, lambda i: Decimal(i) / 8,
        {"store_decimal_as_integer": True},
    ),
    "big decimal": ("decimal(38,0)", pa.decimal128(38), lambda i: -(10**30) - i, lambda i: Decimal(-(10**30) - i), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_was_written_is_there_and_little_else(case: str) -> None:
    name, arrow, value, literal, how = CASES[case]
    count = 1000
    written = [value(i) for i in range(count)]
    array = pa.array([Decimal(w) for w in written] if pa.types.is_decimal(arrow) else written, arrow)
    leaf, (bloom,) = _filters(_written(array, **how), name)
    kind = PrimitiveType(name)

    def has(i: int) -> bool:
        found = hash_inputs(leaf, kind, literal(i))
        assert found is not None
        return any(bloom.may_contain(x) for x in found)

    assert all(has(i) for i in range(count))
    wrong = sum(has(i) for i in range(count, 4 * count))
    assert wrong / (3 * count) < 3 * FALSE_POSITIVES


@given(st.lists(st.floats(width=32), min_size=1, max_size=30), st.sampled_from(["float", "double"]))
def test_zeros_are_one_and_nan_is_none(values: list[float], name: str) -> None:
    arrow = pa.float32() if name == "float" else pa.float64()
    leaf, (bloom,) = _filters(_written(pa.array(values, arrow)), name)
    for value in values:
        if value == value:
            found = hash_inputs(leaf, PrimitiveType(name), -value if value == 0 else value)
            assert found is not None
            assert any(bloom.may_contain(x) for x in found)


def test_literals_that_no_stored_value_reads_as() -> None:
    leaf = ParquetLeaf(("x",), (1,), 0, False, "FLOAT", {"Type": "None"}, 0)
    assert hash_inputs(leaf, PrimitiveType("double"), 0.1) == []
    assert hash_inputs(leaf, PrimitiveType("double"), 1e300) == []
    ints = replace(leaf, physical="INT32")
    assert hash_inputs(ints, PrimitiveType("long"), 1 << 31) == []
    millis = replace(leaf, physical="INT64", logical={"Type": "Timestamp", "timeUnit": "milliseconds"})
    assert hash_inputs(millis, PrimitiveType("timestamp"), 1_001) == []
    decimals = replace(ints, logical={"Type": "Decimal", "precision": 9, "scale": 2})
    assert hash_inputs(decimals, PrimitiveType("decimal(9,2)"), Decimal("0.005")) == []


def test_what_has_several_encodings_is_not_judged() -> None:
    leaf = ParquetLeaf(("x",), (1,), 0, False, "BYTE_ARRAY", {"Type": "Decimal", "precision": 9, "scale": 2}, 0)
    assert hash_inputs(leaf, PrimitiveType("decimal(9,2)"), Decimal(1)) is None
    nanos = replace(leaf, physical="INT64", logical={"Type": "Timestamp", "timeUnit": "nanoseconds"})
    assert hash_inputs(nanos, PrimitiveType("timestamp"), 1) is None
    unsigned = replace(leaf, physical="INT32", logical={"Type": "Int", "bitWidth": 32, "isSigned": False})
    assert hash_inputs(unsigned, PrimitiveType("long"), 1) is None
    half = replace(leaf, physical="FIXED_LEN_BYTE_ARRAY", logical={"Type": "Float16"}, length=2)
    assert hash_inputs(half, PrimitiveType("float"), 1.0) is None


def test_filters_of_datafusion(tmp_path: Path) -> None:
    import datafusion

    path = tmp_path / "made.parquet"
    context = datafusion.SessionContext()
    context.from_arrow(pa.table({"x": pa.array(range(0, 4000, 2), pa.int64())}), name="t")
    context.sql(
        f"COPY t TO '{path}' STORED AS PARQUET OPTIONS ('bloom_filter_on_write' 'true', 'max_row_group_size' '500')"
    ).collect()
    leaf, filters = _filters(path.read_bytes(), "long")
    assert len(filters) == 4
    hashed = [hash_inputs(leaf, PrimitiveType("long"), i) for i in range(4000)]
    answers = [[bool(x and bloom.may_contain(x[0])) for x in hashed] for bloom in filters]
    groups = pq.ParquetFile(path)
    for g, row in enumerate(answers):
        assert all(row[i] for i in build.to_pylist(groups.read_row_group(g)["x"]))
        assert sum(row) < 500 + 0.1 * 4000


# Hostile bytes


def _header(count: int) -> bytes:
    """BloomFilterHeader of this many bytes of blocks."""
    zigzag = count << 1 ^ (count >> 63)
    number = bytearray()
    while zigzag > 0x7F:
        number.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    number.append(zigzag)
    union = bytes([0x1C, 0x1C, 0x00, 0x00])
    return bytes([0x15, *number, *union, *union, *union, 0x00])


def _read(data: bytes, offset: int = 0, length: int | None = None) -> BloomFilter:
    storage, location = storage_of(data)
    try:
        return read_bloom_filter(storage, location, offset, length)
    finally:
        storage.close()


def test_the_header_that_the_tests_write_is_one() -> None:
    assert len(_read(_header(64) + bytes(64)).words) == 2


@pytest.mark.parametrize(
    "count", [0, -32, 31, 33, 1 << 31, 1 << 40, 64], ids=["none", "negative", "odd", "odd too", "2 GiB", "1 TiB", "cut"]
)
def test_claimed_sizes_are_checked_first(count: int) -> None:
    with pytest.raises(FormatError):
        _read(_header(count & (1 << 64) - 1) + bytes(32))
    with pytest.raises(FormatError):
        _read(_header(count & (1 << 64) - 1) + bytes(32), length=len(_header(count & (1 << 64) - 1)) + 32)


@pytest.mark.parametrize(("offset", "length"), [(-1, None), (10_000, None), (0, 0), (0, -5), (0, 1 << 62), (50, 100)])
def test_places_outside_the_file(offset: int, length: int | None) -> None:
    with pytest.raises(IceexploreError):
        _read(_header(64) + bytes(64), offset, length)


def test_another_algorithm_is_reported() -> None:
    union = bytes([0x1C, 0x2C, 0x00, 0x00])  # the second of the union
    other = _header(32).replace(bytes([0x1C, 0x1C, 0x00, 0x00]), union, 1)
    with pytest.raises(UnsupportedError, match="algorithm"):
        _read(other + bytes(32))


@given(st.binary(max_size=64))
def test_any_bytes(data: bytes) -> None:
    try:
        found = _read(data + bytes(40))
    except (FormatError, UnsupportedError):
        return
    assert found.words.shape[1] == 8


@given(st.integers(0, 40), st.integers(0, 255))
def test_any_changed_byte(at: int, byte: int) -> None:
    data = bytearray(_header(64) + struct.pack("<16I", *range(16)))
    data[at % len(data)] = byte
    with contextlib.suppress(FormatError, UnsupportedError):
        assert _read(bytes(data)).may_contain(b"x") in (True, False)


def test_structs_in_structs_end_somewhere() -> None:
    with pytest.raises(FormatError, match="deep"):
        read_struct(b"\x1c" * 1000)
    with pytest.raises(FormatError):
        read_struct(b"\x19\xf9" + b"\xff" * 9)
    with pytest.raises(FormatError):
        read_struct(b"\x15" + b"\xff" * 20)
    with pytest.raises(FormatError):
        read_struct(b"\x18\xff\xff\xff\x7f")
