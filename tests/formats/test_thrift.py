"""Thrift's compact protocol: what is encoded is read, and what is damaged is refused."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.errors import FormatError
from iceexplore.formats._thrift import read_struct
from tests.helpers.varints import varint, zigzag

_I64 = st.integers(-(2**63), 2**63 - 1)


def encoded(struct: dict[int, Any]) -> bytes:
    """Bools, integers, bytes, structs and lists of structs by field number, as Thrift's own writer does."""
    out, last = b"", 0
    for field, value in sorted(struct.items()):
        kind, data = _value(value)
        step = field - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + varint(field << 1)
        out, last = out + data, field
    return out + b"\0"


def _value(value: Any) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return (1 if value else 2), b""
    if isinstance(value, int):
        return 6, zigzag(value)
    if isinstance(value, bytes):
        return 8, varint(len(value)) + value
    if isinstance(value, dict):
        return 12, encoded(value)
    count = len(value)
    head = bytes([count << 4 | 12]) if count < 15 else b"\xfc" + varint(count)
    return 9, head + b"".join(map(encoded, value))


def read(value: Any) -> Any:
    """What is read of a value: bytes are skipped."""
    if isinstance(value, dict):
        return {field: read(one) for field, one in value.items()}
    if isinstance(value, list):
        return [read(one) for one in value]
    return None if isinstance(value, bytes) else value


def structs(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.integers(1, 2**15 - 1), values, max_size=6)


VALUES = st.recursive(
    st.booleans() | _I64 | st.binary(max_size=300),
    lambda inner: structs(inner) | st.lists(structs(inner), max_size=20),
    max_leaves=12,
)


@given(structs(VALUES), st.binary(max_size=3))
def test_what_is_encoded_is_read(struct: dict[int, Any], rest: bytes) -> None:
    data = encoded(struct)
    assert read_struct(data + rest) == (read(struct), len(data))


@given(structs(VALUES).filter(bool), st.data())
def test_a_part_is_refused(struct: dict[int, Any], draw: st.DataObject) -> None:
    data = encoded(struct)
    part = data[: draw.draw(st.integers(0, len(data) - 1))]
    with pytest.raises(FormatError, match="remain"):
        read_struct(part)


@given(st.binary(max_size=100))
def test_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        _, end = read_struct(data)
    except FormatError as error:
        end = -1 if error.offset is None else error.offset
    assert 0 <= end <= len(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x16" + b"\x80" * 10 + b"\x00\x00", "more than 10 bytes"),
        (b"\x1d\x00", "unknown Thrift type 13"),
        (b"\x1c" * 20, "nested too deeply"),
        (b"\x19\xfc\xff\xff\xff\xff\x0f", "4,294,967,295 elements"),
        (b"\x18\xff\xff\xff\xff\x0f", "4,294,967,295 bytes"),
    ],
)
def test_what_is_invalid_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        read_struct(data)


def test_a_footer_is_as_arrow_reads_it() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": range(100), "b": ["x"] * 100}), file, row_group_size=30)
    data = file.getvalue()
    length = int.from_bytes(data[-8:-4], "little")
    footer, size = read_struct(data[-8 - length : -8])
    about = pq.read_metadata(file)
    assert size == length and footer[3] == about.num_rows
    for number, group in enumerate(footer[4]):
        assert group[3] == about.row_group(number).num_rows
        sizes = [chunk[3][7] for chunk in group[1]]
        assert sizes == [about.row_group(number).column(i).total_compressed_size for i in range(2)]
