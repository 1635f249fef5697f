"""Values that callers give, as Arrow arrays of Iceberg's types."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import numpy as np
import pandas as pd
import pytest

from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.metadata import PrimitiveType
from iceexplore.planning import typed_values

_NANOS = "2024-05-17T01:02:03.123456789"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("timestamp", np.datetime64("2024-05-17T01:02:03.123456000", "ns"), datetime(2024, 5, 17, 1, 2, 3, 123456)),
        ("timestamp", np.datetime64("2024-05-17"), datetime(2024, 5, 17)),
        ("date", np.datetime64("2024-05-17", "ns"), date(2024, 5, 17)),
        ("date", np.datetime64("2024-05-17"), date(2024, 5, 17)),
    ],
)
def test_numpy_times(kind: str, value: np.datetime64, expected: object) -> None:
    assert build.to_pylist(typed_values(PrimitiveType(kind), [value, None], "x")) == [expected, None]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("date", "2024-05-17", date(2024, 5, 17)),
        ("time", "01:02:03.5", time(1, 2, 3, 500_000)),
        ("timestamp", "2024-05-17T01:02", datetime(2024, 5, 17, 1, 2)),
        ("timestamp", "2024-05-17 01:02:03.123456000", datetime(2024, 5, 17, 1, 2, 3, 123456)),
        ("timestamptz", "2024-05-17T01:02:03+02:00", datetime(2024, 5, 16, 23, 2, 3, tzinfo=UTC)),
        ("timestamp", pd.Timestamp("2024-05-17"), datetime(2024, 5, 17)),
        ("timestamptz", pd.Timestamp("2024-05-17T02:00+02:00"), datetime(2024, 5, 17, tzinfo=UTC)),
        ("date", pd.Timestamp("2024-05-17"), date(2024, 5, 17)),
        ("timestamp", np.array(np.datetime64("2024-05-17", "ns")), datetime(2024, 5, 17)),
        ("long", np.array(5), 5),
    ],
)
def test_times_of_text_pandas_and_numpy(kind: str, value: object, expected: object) -> None:
    assert build.to_pylist(typed_values(PrimitiveType(kind), [value, None], "x")) == [expected, None]


@pytest.mark.parametrize("value", [np.datetime64(_NANOS), pd.Timestamp(_NANOS), _NANOS, f"{_NANOS}Z"])
def test_nanoseconds_stay(value: object) -> None:
    [found] = typed_values(PrimitiveType("timestamp_ns"), [value], "x")
    assert found.value == np.datetime64(_NANOS).astype(np.int64)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("timestamp", np.datetime64(_NANOS), "more precise than the type timestamp"),
        ("date", np.datetime64("2024-05-17T01", "ns"), "more precise than the type date"),
        ("long", np.datetime64("2024-05-17", "ns"), "not a valid long"),
        ("time", np.datetime64("2024-05-17T01:02:03"), "not a valid time"),
        ("timestamp", np.datetime64("NaT"), "x: NaT is not a point in time: use None for null"),
        ("timestamp_ns", np.datetime64("NaT"), "NaT"),
        ("timestamp", pd.Timestamp(_NANOS), "more precise than the type timestamp"),
        ("timestamp", pd.NaT, "x: NaT is not a point in time"),
        ("timestamp", _NANOS, "more precise than the type timestamp"),
        ("time", "01:02:03.1234567", "more precise than the type time"),
        ("date", "2024-02-30", "2024-02-30"),
        ("timestamp", "yesterday", "'yesterday' is not a timestamp like"),
    ],
)
def test_times_that_do_not_fit(kind: str, value: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        typed_values(PrimitiveType(kind), [value], "x")
