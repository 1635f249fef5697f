"""Partition values in words, against what Java's ``Transform.toHumanString`` and its tests give."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.metadata import PrimitiveType, human_value, is_known_transform, parse_transform, result_type

MICROS = 1512123175038194  # 2017-12-01T10:12:55.038194


@pytest.mark.parametrize(
    ("type_", "transform", "value", "text"),
    [
        ("date", "year", 47, "2017"),
        ("date", "year", -1, "1969"),
        ("date", "month", 575, "2017-12"),
        ("date", "month", -1, "1969-12"),
        ("date", "day", 17501, "2017-12-01"),
        ("date", "day", dt.date(2017, 12, 1), "2017-12-01"),
        ("timestamptz", "day", -1, "1969-12-31"),
        ("timestamp", "hour", 420034, "2017-12-01-10"),
        ("timestamp", "hour", -1, "1969-12-31-23"),
        ("date", "identity", 17501, "2017-12-01"),
        ("date", "identity", 2**31 - 1, "5881580-07-11"),
        ("date", "identity", np.datetime64(-719529, "D"), "-001-12-31"),
        ("time", "identity", 36775038194, "10:12:55.038194"),
        ("time", "identity", dt.time(10, 12), "10:12"),
        ("time", "identity", dt.time(10, 12, 5), "10:12:05"),
        ("time", "identity", dt.time(10, 12, 0, 5000), "10:12:00.005"),
        ("timestamp", "identity", MICROS, "2017-12-01T10:12:55.038194"),
        ("timestamptz", "identity", MICROS, "2017-12-01T10:12:55.038194+00:00"),
        ("timestamptz", "identity", dt.datetime(2017, 12, 1, tzinfo=dt.UTC), "2017-12-01T00:00:00+00:00"),
        ("timestamp_ns", "identity", MICROS * 1000 + 7, "2017-12-01T10:12:55.038194007"),
        ("timestamp", "identity", dt.datetime(2017, 12, 1, 10, 12, 55, 500000), "2017-12-01T10:12:55.5"),
        ("timestamp", "identity", 2**63 - 1, "+294247-01-10T04:00:54.775807"),
        ("long", "bucket[16]", 7, "7"),
        ("string", "bucket[16]", 7, "7"),
        ("date", "bucket[16]", 7, "7"),
        ("long", "identity", -1234567890000, "-1234567890000"),
        ("decimal(9,2)", "identity", Decimal("-1.50"), "-1.50"),
        ("string", "identity", "a/b/c=d", "a/b/c=d"),
        ("string", "truncate[3]", "üüü", "üüü"),
        ("boolean", "identity", True, "true"),
        ("double", "identity", 1.0, "1.0"),
        ("double", "identity", 1e7, "1.0E7"),
        ("double", "identity", 1.5e-4, "1.5E-4"),
        ("double", "identity", 123456.789, "123456.789"),
        ("float", "identity", np.float32(0.1), "0.1"),
        ("float", "identity", float(np.float32(0.1)), "0.1"),
        ("double", "identity", float("nan"), "NaN"),
        ("double", "identity", float("-inf"), "-Infinity"),
        ("double", "identity", -0.0, "-0.0"),
        ("binary", "identity", b"\x01\x02\x03", "AQID"),
        ("fixed[3]", "identity", b"\x01\x02\x03", "AQID"),
        ("uuid", "identity", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("uuid", "identity", UUID(int=1).bytes, "00000000-0000-0000-0000-000000000001"),
        ("string", "of_the_future(3)", "x", "x"),
        ("date", "void", None, "null"),
        ("int", "identity", None, "null"),
    ],
)  # fmt: skip
def test_words(type_: str, transform: str, value: Any, text: str) -> None:
    assert human_value(PrimitiveType(type_), transform, value) == text


@given(
    st.sampled_from(["int", "date", "time", "timestamp", "timestamp_ns", "string", "uuid", "decimal(3,1)", "future"]),
    st.sampled_from(["identity", "bucket[4]", "year", "month", "day", "hour", "void", "truncate[2]", "?"]),
    st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.times() | st.datetimes()
    | st.booleans() | st.decimals(),
)  # fmt: skip
def test_any_value_has_words(type_: str, transform: str, value: Any) -> None:
    assert human_value(PrimitiveType(type_), transform, value) or value in ("", b"")


@given(st.dates())
def test_days_as_python_counts_them(day: dt.date) -> None:
    ordinal = (day - dt.date(1970, 1, 1)).days
    assert human_value(PrimitiveType("date"), "day", ordinal) == day.isoformat()


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_timestamps_as_numpy_prints_them(nanos: int) -> None:
    text = human_value(PrimitiveType("timestamp_ns"), "identity", nanos)
    assert text.partition(".")[0] == str(np.datetime64(nanos, "ns"))[:19]
    assert np.datetime64(text, "ns").astype(np.int64) == nanos


def test_what_arrow_hands_out() -> None:
    for type_, array, text in (
        ("timestamptz", pa.array([MICROS], pa.timestamp("us", "UTC")), "2017-12-01T10:12:55.038194+00:00"),
        ("timestamp_ns", pa.array([MICROS * 1000 + 1], pa.timestamp("ns")), "2017-12-01T10:12:55.038194001"),
        ("date", pa.array([17501], pa.date32()), "2017-12-01"),
        ("time", pa.array([36775038194], pa.time64("us")), "10:12:55.038194"),
    ):
        assert human_value(PrimitiveType(type_), "identity", array[0].as_py()) == text


def test_result_types() -> None:
    source = PrimitiveType("timestamp")
    found = {t: str(result_type(t, source)) for t in ("identity", "void", "bucket[3]", "truncate[3]", "year", "month",
                                                      "day", "hour", "Day", "bucket [ 7 ]", "zorder[3]")}  # fmt: skip
    assert found == {
        "identity": "timestamp", "void": "timestamp", "bucket[3]": "int", "truncate[3]": "timestamp", "year": "int",
        "month": "int", "day": "date", "hour": "int", "Day": "date", "bucket [ 7 ]": "int", "zorder[3]": "string",
    }  # fmt: skip
    assert str(result_type("identity", None)) == "unknown"
    assert str(result_type("day", None)) == "date"
    assert str(parse_transform("Bucket[16]")) == "bucket[16]"
    assert not is_known_transform("zorder[3]")
    assert not is_known_transform("bucket")
    assert is_known_transform("truncate[2]")
