"""Values that callers give, as Arrow arrays of Iceberg's types."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
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


def test_nanoseconds_stay() -> None:
    [found] = typed_values(PrimitiveType("timestamp_ns"), [np.datetime64(_NANOS)], "x")
    assert found.value == np.datetime64(_NANOS).astype(np.int64)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("timestamp", np.datetime64(_NANOS), "more precise than the type timestamp"),
        ("date", np.datetime64("2024-05-17T01", "ns"), "more precise than the type date"),
        ("long", np.datetime64("2024-05-17", "ns"), "not a valid long"),
        ("time", np.datetime64("2024-05-17T01:02:03"), "not a valid time"),
        ("timestamp", np.datetime64("NaT"), "x: NaT is not a point in time: give None for null"),
        ("timestamp_ns", np.datetime64("NaT"), "NaT"),
    ],
)
def test_numpy_times_that_do_not_fit(kind: str, value: np.datetime64, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        typed_values(PrimitiveType(kind), [value], "x")
