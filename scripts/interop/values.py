"""A few telling values of each type: nulls, limits, signs, times before 1970, text beyond ASCII."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pandas as pd

__all__ = ["NESTED", "TRANSFORMS", "V3_VALUES", "VALUES"]

_TIMES = [
    datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1966, 6, 15, 7, 8, 9),
    datetime(2024, 2, 29, 12, 30, 0, 1), datetime(2101, 7, 8),
]  # fmt: skip

#: By type as `ix.create` takes it.
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [0, 1, -1, 2**31 - 1, -(2**31), 42],
    "long": [0, 1, -1, 2**63 - 1, -(2**63), 42],
    "float": [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf")],
    "double": [0.0, -0.0, 1.5, -2.25, 1e300, float("inf"), float("-inf")],
    "decimal(9, 2)": [Decimal("0.00"), Decimal("9999999.99"), Decimal("-9999999.99"), Decimal("1.50")],
    "decimal(18, 3)": [Decimal("0.000"), Decimal("123456789012345.678"), Decimal("-1.001")],
    "decimal(38, 10)": [Decimal("0"), Decimal("1234567890123456789012345678.0123456789"), Decimal("-1.5")],
    "date": [date(1970, 1, 1), date(1969, 12, 31), date(1966, 6, 15), date(2024, 2, 29), date(2101, 7, 8)],
    "time": [time(0), time(23, 59, 59, 999_999), time(12, 30)],
    "timestamp": list(_TIMES),
    "timestamptz": [at.replace(tzinfo=UTC) for at in _TIMES],
    "string": ["", "a", "Ångström", "😀 smile", "a'b\"c", "a/b=c%2F d", "\uffff beyond", "null"],
    "uuid": [UUID(int=0), UUID(int=2**128 - 1), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")],
    "fixed[4]": [b"\0\0\0\0", b"\xff\xff\xff\xff", b"abcd"],
    "binary": [b"", b"\0", b"\xff\xfe", b"abc"],
}

V3_VALUES: dict[str, list[Any]] = {
    "timestamp_ns": [pd.Timestamp(0), pd.Timestamp(-1), pd.Timestamp("2024-02-29 12:30:00.000000001")],
    "timestamptz_ns": [pd.Timestamp(0, tz="UTC"), pd.Timestamp(-1, tz="UTC"), pd.Timestamp(123_456_789, tz="UTC")],
    "unknown": [None],
}

#: Types as `ix.create` takes them, as `canonical` does, and values.
NESTED: list[tuple[str, list[Any], list[Any]]] = [
    ("list<int>", ["list", "int"], [[], [1], [1, None, 3]]),
    ("map<string, long>", ["map", "string", "long"], [[], [("a", 1)], [("b", None), ("😀", -1)]]),
    (
        "struct<a: int, b: string>", ["struct", ["a", "int"], ["b", "string"]],
        [{"a": 1, "b": "x"}, {"a": None, "b": ""}, {"a": -1, "b": None}],
    ),
    (
        "list<struct<x: double, tags: list<string>>>",
        ["list", ["struct", ["x", "double"], ["tags", ["list", "string"]]]],
        [[], [{"x": 1.5, "tags": ["p", None]}], [{"x": None, "tags": []}, None]],
    ),
    (
        "map<int, struct<d: date, l: list<decimal(9, 2)>>>",
        ["map", "int", ["struct", ["d", "date"], ["l", ["list", "decimal(9, 2)"]]]],
        [[], [(7, {"d": date(1969, 12, 31), "l": [Decimal("1.50"), None]})]],
    ),
    ("struct<s: struct<t: timestamptz>>", ["struct", ["s", ["struct", ["t", "timestamptz"]]]],
     [{"s": {"t": _TIMES[1].replace(tzinfo=UTC)}}, {"s": None}]),
]  # fmt: skip

_ALL = [*VALUES, *V3_VALUES]
_DATES = ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
_NO_BUCKET = ("boolean", "float", "double", "unknown")
#: Which types each transform takes (spec, "Partition Transforms").
TRANSFORMS: dict[str, Callable[[str], bool]] = {
    "{}": lambda type_: type_ != "unknown",
    "bucket(4, {})": lambda type_: type_ not in _NO_BUCKET,
    "truncate(3, {})": lambda type_: type_ in ("int", "long", "string", "binary") or type_.startswith("decimal"),
    "year({})": lambda type_: type_ in _DATES,
    "month({})": lambda type_: type_ in _DATES,
    "day({})": lambda type_: type_ in _DATES,
    "hour({})": lambda type_: type_ in _DATES and type_ != "date",
    "void({})": lambda type_: True,
}
