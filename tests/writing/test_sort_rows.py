"""Rows in sort order, against comparisons one by one."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.writing._frames import columns_at
from iceexplore.writing._sort import default_order, order_keys, sorted_rows

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "string": (pa.string(), st.text(max_size=3)),
    "binary": (pa.binary(), st.binary(max_size=3)),
    "fixed": (pa.binary(2), st.binary(min_size=2, max_size=2)),
    "boolean": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(9, 2), st.decimals(-100, 100, places=2)),
    "date": (pa.date32(), st.dates()),
}


def total_order(bits: int) -> tuple[int, int]:
    """The place of a double, by its bits, in IEEE 754's totalOrder: sign and magnitude."""
    magnitude = bits & (2**63 - 1)
    return (0, -magnitude) if bits >> 63 else (1, magnitude)


def bits_of(x: float) -> int:
    """A double's bits."""
    (found,) = struct.unpack("<Q", struct.pack("<d", x))
    return int(found)


BITS = st.one_of(st.none(), st.integers(0, 2**64 - 1), st.floats().map(bits_of))


@given(st.lists(BITS), st.booleans(), st.booleans())
def test_doubles_are_in_total_order(bits: list[int | None], descending: bool, nulls_last: bool) -> None:
    plain = np.array([b or 0 for b in bits], np.uint64).view(np.float64)
    values = pa.array(plain, mask=np.array([b is None for b in bits], dtype=bool))
    first, second = order_keys(values, descending=descending, nulls_last=nulls_last)
    rows = np.lexsort((second, first))
    there = [i for i, b in enumerate(bits) if b is not None]
    there.sort(key=lambda i: total_order(bits[i] or 0), reverse=descending)
    nulls = [i for i, b in enumerate(bits) if b is None]
    expected = [*there, *nulls] if nulls_last else [*nulls, *there]
    # Equal ones may change places among themselves when descending.
    assert [bits[i] for i in rows] == [bits[i] for i in expected]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("descending", [False, True])
def test_values_are_in_their_order(kind: str, descending: bool) -> None:
    type_, strategy = VALUES[kind]

    @given(st.lists(st.one_of(st.none(), strategy), max_size=8))
    def check(values: list[Any]) -> None:
        first, second = order_keys(pa.array(values, type_), descending=descending, nulls_last=True)
        found = [values[i] for i in np.lexsort((second, first))]
        there = [v for v in values if v is not None]
        there.sort(key=lambda v: v.encode("utf-8", "surrogatepass") if isinstance(v, str) else v, reverse=descending)
        assert found == [*there, *[None] * (len(values) - len(there))]

    check()


def test_several_fields_and_transforms() -> None:
    table = ix.empty({"id": "long", "s": "string", "at": "struct<x: int>"}, format_version=2)
    table.set_sort_order("truncate(1, s) desc nulls first", "at.x", "id desc")
    order = default_order(table.metadata)
    assert order is not None
    rows = pa.table(
        {
            "id": [1, 2, 3, 4, 5],
            "s": ["aa", "b", "ab", None, "ac"],
            "at": [{"x": 2}, {"x": 1}, {"x": None}, {"x": 9}, {"x": 2}],
        },
        schema=build.schema([("id", pa.int64()), ("s", pa.string()), ("at", pa.struct([("x", pa.int32())]))]),
    )
    assert sorted_rows(rows, table.schema, order, columns_at)["id"].to_pylist() == [4, 2, 3, 5, 1]
    assert sorted_rows(rows.slice(3, 1), table.schema, order, columns_at)["id"].to_pylist() == [4]
    with pytest.raises(OptionError, match="which is not in the schema"):
        sorted_rows(rows.drop_columns(["s"]), table.schema, order, columns_at)
