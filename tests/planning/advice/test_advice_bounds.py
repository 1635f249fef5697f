"""Estimates of advice from bounds alone: never out of range, whatever the bounds; and the number line's order."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.expressions import Expression, Op, Predicate, any_of
from iceexplore.manifests import stats_type
from iceexplore.metadata import PrimitiveType, parse_transform
from iceexplore.planning.advice._axis import Axis
from iceexplore.planning.advice._columns import distinct_by_bytes
from iceexplore.planning.advice._partitioning import candidates
from iceexplore.planning.advice._ranges import wanted_of
from iceexplore.planning.advice._spread import Files, Shares, Spread, sorted_reading

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int": (pa.int32(), st.integers(-5, 5)),
    "double": (pa.float64(), st.floats()),
    "string": (pa.string(), st.text(max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "boolean": (pa.bool_(), st.booleans()),
    "decimal(9, 2)": (pa.decimal128(9, 2), st.decimals(Decimal(-9999999), Decimal(9999999), places=2)),
}
OPS: tuple[Op, ...] = ("=", "in", "!=", "not-in", "<", "<=", ">", ">=", "is-null", "not-null")
COUNTS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 100)


@st.composite
def columns(draw: st.DrawFn) -> tuple[str, pa.StructArray, Files]:
    """Statistics of a column in some files, damaged ones too."""
    name = draw(st.sampled_from(sorted(KINDS)))
    kind, values = KINDS[name]
    fields = list(stats_type(kind))
    count = draw(st.integers(1, 12))
    rows = [
        {f.name: draw(st.none() | (values if f.name in ("lower", "upper") else COUNTS)) for f in fields[:-1]}
        for _ in range(count)
    ]
    stats = pa.array(rows, pa.struct(fields))
    numbers = [draw(st.integers(0, 2**50)) for _ in range(2 * count)]
    codes = np.unique([draw(st.integers(0, 2)) for _ in range(count)], return_inverse=True)[1]
    made = Files(codes.astype(np.int64), np.array(numbers[:count], float), np.array(numbers[count:], float))
    return name, stats, made  # type: ignore[return-value]


def stored(value: Any) -> Any:
    """As a filter's literals are."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else value


@st.composite
def conditions(draw: st.DrawFn, name: str) -> Expression:
    values = KINDS[name][1].filter(lambda v: not (isinstance(v, float) and math.isnan(v)))

    def one() -> Predicate:
        op = draw(st.sampled_from(OPS))
        size = {"is-null": 0, "not-null": 0, "in": 90, "not-in": 3}.get(op, 1)
        literals = draw(st.lists(values, min_size=min(size, 1), max_size=size, unique=True))
        return Predicate(1, op, tuple(stored(v) for v in literals), "x")

    return any_of(one(), one()) if draw(st.booleans()) else one()


@given(st.data())
def test_estimates_stay_within_what_there_is(data: st.DataObject) -> None:
    name, stats, files = data.draw(columns())
    spread = Spread.of(stats)
    if spread is None:
        return
    wanted = wanted_of(data.draw(conditions(name)), spread.axis)
    assert wanted is not None
    distinct = distinct_by_bytes(stats, spread)
    assert distinct is None or distinct >= 1
    with np.errstate(over="ignore", invalid="ignore"):
        found = sorted_reading(Shares(spread, files), wanted, distinct)
        every = np.ones(len(files.rows), dtype=np.bool_)
        have = data.draw(
            st.sets(st.sampled_from(["bucket[x]", "bucket[0]", "bucket[4]", "truncate[-1]", "week", "day"]))
        )
        transforms = set(map(parse_transform, have))
        fields = list(candidates(PrimitiveType(name), spread, files, every, wanted, distinct, transforms))
    assert 0 <= found.files <= len(files.rows)
    assert 0 <= found.bytes <= files.bytes.sum() * (1 + 1e-9) + 1
    for field in fields:
        assert 0 <= field.after.files <= field.files
        assert 0 <= field.after.bytes <= files.bytes.sum() * (1 + 1e-9) + 1
        assert field.files <= 4 * len(files.rows)


@pytest.mark.parametrize("name", sorted(set(KINDS) - {"double", "boolean"}))
@given(st.data())
def test_the_line_keeps_the_order(name: str, data: st.DataObject) -> None:
    kind, values = KINDS[name]
    if name == "string":
        values = st.text(st.characters(codec="utf-8"), max_size=20)
    some = sorted(data.draw(st.lists(values, min_size=2, max_size=8)), key=_key)
    array = pa.array(some, kind)
    axis = Axis.of(array, array)
    assert axis is not None
    numbers = axis.numbers(array)
    assert (np.diff(numbers) >= 0).all()
    for value, number in zip(some, numbers.tolist(), strict=True):
        assert axis.number(stored(value)) == pytest.approx(number)


def test_texts_are_counted_in_the_letters_that_occur() -> None:
    array = pa.array([f"user-{i:04d}" for i in range(0, 10_000, 7)])
    axis = Axis.of(array, array)
    assert axis is not None
    low, high = axis.number("user-0000"), axis.number("user-9999")
    for value in (100, 2500, 5000, 9000):
        share = (axis.number(f"user-{value:04d}") - low) / (high - low)
        assert share == pytest.approx(value / 10_000, abs=0.02)


@pytest.mark.parametrize("value", ["", "a", "use", "userz", "z", "ä"])
def test_texts_with_another_prefix_than_the_bounds_are_beyond_them(value: str) -> None:
    names = [f"user-{i:02d}" for i in range(100)]
    axis = Axis.of(pa.array(names), pa.array(names))
    assert axis is not None
    low, high = axis.number(names[0]), axis.number(names[-1])
    assert (axis.number(value) < low, axis.number(value) > high) == (value < names[0], value > names[-1])
    first, last = axis.prefix(value)
    assert (first <= low and last >= high) == "user-".startswith(value)
    assert "user-".startswith(value) or first == last == axis.number(value)


def _key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
