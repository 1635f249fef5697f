"""Buckets of whole columns, against PyIceberg's of single values and the values of the spec's Appendix B."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import BinaryType, DateType, IntegerType, LongType, StringType, TimestampType, TimeType

from iceexplore.metadata import PrimitiveType, apply_transform, arrow_type

KINDS: dict[str, tuple[Any, int, int]] = {
    "int": (IntegerType(), -(2**31), 2**31 - 1),
    "long": (LongType(), -(2**63), 2**63 - 1),
    "date": (DateType(), -(2**31), 2**31 - 1),
    "time": (TimeType(), 0, 86_400 * 10**6 - 1),
    "timestamp": (TimestampType(), -(2**63), 2**63 - 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_as_pyiceberg(kind: str) -> None:
    theirs, low, high = KINDS[kind]
    storage = pa.int32() if kind in ("int", "date") else pa.int64()

    @given(st.lists(st.one_of(st.none(), st.integers(low, high))), st.integers(1, 2**31 - 1))
    def check(values: list[int | None], width: int) -> None:
        column = pa.array(values, storage).cast(arrow_type(PrimitiveType(kind)))
        found = apply_transform(f"bucket[{width}]", PrimitiveType(kind), column)
        bucket: BucketTransform[Any] = BucketTransform(width)
        expected = [None if v is None else bucket.transform(theirs)(v) for v in values]
        assert found.type == pa.int32() and found.to_pylist() == expected

    check()


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_bytes_as_pyiceberg(kind: str) -> None:
    theirs = StringType() if kind == "string" else BinaryType()

    @given(st.lists(st.one_of(st.none(), st.text() if kind == "string" else st.binary())), st.integers(1, 2**31 - 1))
    def check(values: list[Any], width: int) -> None:
        column = pa.array(values, arrow_type(PrimitiveType(kind)))
        found = apply_transform(f"bucket[{width}]", PrimitiveType(kind), column)
        bucket: BucketTransform[Any] = BucketTransform(width)
        assert found.to_pylist() == [None if v is None else bucket.transform(theirs)(v) for v in values]

    check()


def test_hashes_of_the_spec() -> None:
    day = dt.date(2017, 11, 16)
    at = dt.datetime(2017, 11, 16, 22, 31, 8)
    noon = dt.time(22, 31, 8)
    for kind, value, hashed in (
        ("int", 34, 2017239379),
        ("long", 34, 2017239379),
        ("date", day, -653330422),
        ("time", noon, -662762989),
        ("timestamp", at, -2047944441),
        ("string", "iceberg", 1210000089),
        ("binary", bytes(range(4)), -188683207),
    ):
        column = pa.array([value], arrow_type(PrimitiveType(kind)))
        width = 2**31 - 1
        assert apply_transform(f"bucket[{width}]", PrimitiveType(kind), column).to_pylist() == [
            (hashed & 0x7FFFFFFF) % width
        ]
