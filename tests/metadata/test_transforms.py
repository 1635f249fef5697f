"""The parts of every transform agree: arrays with single values, texts with numbers, results with sources."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.metadata import (
    TRANSFORM_PATTERN,
    TRANSFORMS,
    PrimitiveType,
    TimeTransform,
    Transform,
    arrow_type,
    integers_of,
    parse_transform,
)
from iceexplore.metadata.transforms._terms import parse_term

KNOWN: list[Transform] = [
    parse_transform(f"{cls.name}[{width}]" if cls.width_name else cls.name)
    for cls in TRANSFORMS
    for width in (1, 7, 64)
]
KNOWN = list(dict.fromkeys(KNOWN))
#: Stored values of each type, and the greatest magnitude of whole numbers.
SOURCES: dict[str, Any] = {
    "int": st.integers(-(2**31) + 64, 2**31 - 1),
    "long": st.integers(-(2**63) + 64, 2**63 - 1),
    "date": st.integers(-100_000_000, 100_000_000),  # a preimage of months is limited to 300,000 years
    "time": st.integers(0, 86_400 * 10**6 - 1),
    "timestamp": st.integers(-(2**61), 2**61),
    "timestamptz": st.integers(-(2**61), 2**61),
    "timestamp_ns": st.integers(-(2**61), 2**61),
    "decimal(9,2)": st.integers(-(10**8), 10**8).map(lambda n: Decimal(n).scaleb(-2)),
    "string": st.text(st.characters(codec="utf-8"), max_size=9),
    "binary": st.binary(max_size=9),
}
PAIRS = [(kind, t) for kind in SOURCES for t in KNOWN if t.accepts(PrimitiveType(kind)) and not t.is_void]
TIMES = [t for t in KNOWN if isinstance(t, TimeTransform)]


def column(kind: str, values: list[Any]) -> pa.Array:
    """An array of stored values."""
    target = arrow_type(PrimitiveType(kind))
    if pa.types.is_date32(target):
        return pa.array(values, pa.int32()).cast(target)
    return pa.array(values, pa.int64()).cast(target) if pa.types.is_temporal(target) else pa.array(values, target)


def stored(array: pa.Array) -> list[Any]:
    """Return the stored values of an array."""
    if pa.types.is_temporal(array.type):
        return [
            n if valid else None
            for n, valid in zip(integers_of(array).tolist(), array.is_valid().to_pylist(), strict=True)
        ]
    values: list[Any] = array.to_pylist()
    return values


@pytest.mark.parametrize(("kind", "transform"), PAIRS, ids=str)
@given(data=st.data())
def test_arrays_and_single_values_agree(kind: str, transform: Transform, data: st.DataObject) -> None:
    source = PrimitiveType(kind)
    values = data.draw(st.lists(st.none() | SOURCES[kind], max_size=5))
    apply = transform.scalar_function(source)
    assert apply is not None
    made = transform.apply(source, column(kind, values))
    assert made.type == arrow_type(transform.result_type(source))
    assert stored(made) == [None if v is None else apply(v) for v in values]


@pytest.mark.parametrize(("kind", "transform"), PAIRS, ids=str)
@given(data=st.data())
def test_a_preimage_is_all_values_with_that_result(kind: str, transform: Transform, data: st.DataObject) -> None:
    source = PrimitiveType(kind)
    value = data.draw(SOURCES[kind])
    result = transform.apply(source, column(kind, [value]))
    found = transform.preimage(source, result)
    apply = transform.scalar_function(source)
    assert apply is not None
    if found is None:
        assert pa.types.is_integer(result.type), "values are found by trying"
        return
    if found.low is not None and found.high is not None:
        number = int(value.scaleb(2)) if isinstance(value, Decimal) else value
        low, high = int(found.low[0]), int(found.high[0])
        assert low <= number <= high
        made = [Decimal(n).scaleb(-2) if isinstance(value, Decimal) else n for n in (low - 1, low, high, high + 1)]
        same = [apply(x) == apply(value) for x in made]
        clipped = kind in ("int", "long") and high in (2**31 - 1, 2**63 - 1)
        assert same[:3] == [False, True, True]
        assert clipped or not same[3]
    if found.exact is not None and found.exact[0].is_valid:
        assert stored(found.exact) == [value]
    if found.prefix is not None:
        assert value.startswith(found.prefix[0].as_py())
    assert found.low is not None or found.exact is not None or found.prefix is not None


@pytest.mark.parametrize("transform", TIMES, ids=str)
@given(year=st.integers(1000, 9999), seconds=st.integers(0, 365 * 86_400 - 1))
def test_texts_of_units_are_read_again(transform: TimeTransform, year: int, seconds: int) -> None:
    source = PrimitiveType("timestamp")
    instant = (int(np.datetime64(f"{year}-01-01", "s").astype(np.int64)) + seconds) * 10**6
    number = int(transform.numbers(source, np.array([instant]))[0])
    text = transform.to_human_string(transform.result_type(source), number)
    parsed = transform.parse_value(text)
    assert (parsed if isinstance(parsed, int) else np.datetime64(parsed, "D").astype(int)) == number


@pytest.mark.parametrize("transform", KNOWN, ids=str)
def test_texts_of_transforms(transform: Transform) -> None:
    assert parse_transform(str(transform)) == transform
    assert parse_transform(f" {str(transform).upper()} ") == transform
    assert hash(parse_transform(str(transform))) == hash(transform)
    assert pickle.loads(pickle.dumps(transform)) == transform
    assert parse_term(transform.to_sql("x")) == (transform, ("x",))
    assert TRANSFORM_PATTERN.fullmatch(str(transform))
    assert transform.default_name("x").startswith("x")


def test_names_are_used_once() -> None:
    names = [name for cls in TRANSFORMS for name in {cls.name, *cls.aliases}]
    assert len(names) == len(set(names))
    assert all(cls.spark_name is None or cls.spark_name in cls.aliases for cls in TRANSFORMS)


STRANGE = ("bucket[x]", "bucket[-4]", "bucket", "bucket[²]", "", "truncate[9999999999999999999999]", "zorder", "day[3]")


@pytest.mark.parametrize("text", STRANGE)
def test_unknown_transforms_keep_their_text(text: str) -> None:
    found = parse_transform(text)
    assert not found.is_known
    assert str(found) == text
    assert found != parse_transform("other")
    assert found.scalar_function(PrimitiveType("long")) is None
    assert found.preimage(PrimitiveType("long"), pa.array([1])) is None
    assert not TRANSFORM_PATTERN.fullmatch(text)
    assert found.to_sql("x") == f"{text}(x)"


def refines(new: str, old: str, source: str = "long") -> bool:
    return parse_transform(new).refines(parse_transform(old), PrimitiveType(source))


def test_what_makes_what_redundant() -> None:
    assert refines("day", "month")
    assert refines("hour", "day")
    assert refines("month", "year")
    assert not refines("month", "day")
    assert not refines("day", "day")
    assert refines("bucket[32]", "bucket[16]")
    assert not refines("bucket[24]", "bucket[16]")
    assert refines("truncate[10]", "truncate[100]")
    assert not refines("truncate[10]", "truncate[100]", "string")
    assert refines("truncate[12]", "truncate[3]", "string")
    assert refines("identity", "bucket[4]")
    assert not refines("identity", "identity")
    assert not refines("day", "bucket[4]")
    for strange in (*STRANGE, "bucket[0]"):
        assert not refines("bucket[4]", strange)
        assert not refines(strange, "bucket[4]")
