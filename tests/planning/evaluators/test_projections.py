"""Projections against brute force over every transform and type, and against the cases of Java's tests."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceexplore.expressions import Op, Predicate
from iceexplore.metadata import PrimitiveType, human_value
from iceexplore.planning.evaluators._projection import project
from tests.planning.evaluators.naive import POOLS, list_predicates, matches, predicates_of, single_predicates, type_of

TIMES = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
BUCKETED = ("int", "long", "decimal(9,2)", "decimal(38,2)", "string", "binary", "fixed[2]", "uuid", "date", "time")
PAIRS = [
    *[(k, "identity") for k in POOLS],
    *[(k, t) for k in (*BUCKETED, *TIMES) for t in ("bucket[1]", "bucket[7]")],
    *[(k, f"truncate[{w}]") for k in ("int", "long", "decimal(9,2)", "decimal(38,2)") for w in (1, 10, 64)],
    *[(k, f"truncate[{w}]") for k in ("string", "binary") for w in (1, 2, 3)],
    *[("date", t) for t in ("year", "month", "day")],
    *[(k, t) for k in TIMES for t in ("year", "month", "day", "hour")],
]


def applied(kind: str, transform: str, value: Any) -> Any:
    """The partition value by PyIceberg's transform; of numbers by the spec's words, as no width limits it."""
    from pyiceberg.transforms import parse_transform
    from pyiceberg.types import NestedField

    if value is None or transform == "identity":
        return value
    if transform.startswith("truncate") and kind in ("int", "long"):
        width = int(transform[9:-1])
        return value - value % width
    field: dict[str, Any] = {"id": 1, "name": "x", "required": False, "type": kind}
    return parse_transform(transform).transform(NestedField.model_validate(field).field_type)(value)


def whole_unit(kind: str, transform: str, value: int) -> bool:
    """Whether a time before 1970 is the first of its unit: old writers had these right."""
    return bool(applied(kind, transform, value) != applied(kind, transform, value - 1))


@pytest.mark.parametrize(("kind", "transform"), PAIRS)
def test_no_matching_value_is_projected_away(kind: str, transform: str) -> None:
    time = transform in ("year", "month", "day", "hour") and not (kind == "date" and transform == "day")
    results: list[tuple[Any, Any]] = []
    for value in [None, *POOLS[kind]]:
        result = applied(kind, transform, value)
        results.append((value, result))
        if time and value is not None and result < 0 and not whole_unit(kind, transform, value):
            results.append((value, result + 1))  # as Iceberg up to 0.10 wrote it

    for p in [*single_predicates(kind), *list_predicates(kind, settings().max_examples // 2)]:
        inclusive, strict = (project(p, transform, type_of(kind), strict=s) for s in (False, True))
        for value, result in results:
            if inclusive is not None and matches(p, value):
                assert matches(inclusive, result), (p, inclusive, value, result)
            if strict is not None and matches(strict, result):
                assert matches(p, value), (p, strict, value, result)


@pytest.mark.parametrize("transform", ["void", "zorder", "bucket", "truncate[x]", "", "BUCKET[0]"])
@settings(max_examples=10)
@given(data=st.data())
def test_what_is_not_known_says_nothing(transform: str, data: st.DataObject) -> None:
    p = data.draw(predicates_of("long"))
    assert project(p, transform, type_of("long"), strict=False) is None
    assert project(p, transform, type_of("long"), strict=True) is None


@pytest.mark.parametrize(
    ("kind", "transform"),
    [("string", "day"), ("date", "hour"), ("boolean", "bucket[2]"), ("double", "bucket[2]"), ("uuid", "truncate[2]")],
)
def test_transforms_that_do_not_take_the_type(kind: str, transform: str) -> None:
    p = Predicate(1, "=", (POOLS[kind][0],), "x", type_of(kind))
    assert project(p, transform, type_of(kind), strict=False) is None
    assert project(p, transform, type_of(kind), strict=True) is None


# TestDatesProjection, TestTimestampsProjection: (type, transform, literals, strict), then operator and expectation.
JAVA = [
    ("date", "month", ("1970-01-01",), True, "< < 1970-01", "<= < 1970-01", "> > 1970-02", ">= > 1970-01",
     "!= != 1970-01", "= -"),
    ("date", "month", ("1970-01-01", "1969-12-31"), True, "not-in not-in 1969-12 1970-01", "in -"),
    ("date", "month", ("1970-01-01",), False, "< <= 1970-01", "<= <= 1970-01", "> >= 1970-01", ">= >= 1970-01",
     "= = 1970-01", "!= -"),
    ("date", "month", ("1970-01-01", "1969-12-31"), False, "in in 1969-12 1970-01", "not-in -"),
    ("date", "month", ("2017-01-01",), True, "< < 2017-01", "<= < 2017-01", "> > 2017-01", ">= > 2016-12",
     "!= != 2017-01", "= -"),
    ("date", "month", ("1969-01-01",), True, "< < 1969-01", "<= < 1969-01", "> > 1969-02", ">= > 1969-01",
     "!= not-in 1969-01 1969-02", "= -"),
    ("date", "month", ("1969-01-01", "1969-12-31"), True, "not-in not-in 1969-01 1969-02 1969-12 1970-01"),
    ("date", "month", ("2017-12-31",), True, "< < 2017-12", "<= < 2018-01", "> > 2017-12", ">= > 2017-12"),
    ("date", "month", ("1969-12-31",), True, "< < 1969-12", "<= < 1970-01", "> > 1970-01", ">= > 1970-01",
     "!= not-in 1969-12 1970-01"),
    ("date", "month", ("2017-12-01",), False, "< <= 2017-11", "<= <= 2017-12", "> >= 2017-12", ">= >= 2017-12"),
    ("date", "month", ("1969-01-01",), False, "< <= 1969-01", "<= <= 1969-02", "> >= 1969-01", ">= >= 1969-01",
     "= in 1969-01 1969-02", "!= -"),
    ("date", "month", ("2017-12-31",), False, "< <= 2017-12", "<= <= 2017-12", "> >= 2018-01", ">= >= 2017-12"),
    ("timestamp", "day", ("1970-01-01T00:00",), True, "< < 1970-01-01", "<= < 1970-01-01", "> > 1970-01-02",
     ">= > 1970-01-01", "!= != 1970-01-01", "= -"),
    ("timestamp", "day", ("1970-01-01T00:00",), False, "< <= 1970-01-01", "<= <= 1970-01-01", "> >= 1970-01-01",
     ">= >= 1970-01-01", "= = 1970-01-01", "!= -"),
    ("timestamp", "month", ("2017-12-01T00:00",), True, "< < 2017-12", "<= < 2017-12", "> > 2017-12", ">= > 2017-11"),
    ("timestamp", "month", ("1969-01-01T00:00",), True, "< < 1969-01", "> > 1969-02", ">= > 1969-01",
     "!= not-in 1969-01 1969-02"),
    ("timestamp", "month", ("2017-12-31T23:59:59.999999",), True, "< < 2017-12", "<= < 2018-01", ">= > 2017-12"),
    ("timestamp", "month", ("1969-12-31T23:59:59.999999",), True, "< < 1969-12", "<= < 1970-01", "> > 1970-01",
     ">= > 1970-01", "!= not-in 1969-12 1970-01"),
    # TestTruncatesProjection
    ("int", "truncate[10]", (100,), True, "< < 100", "<= < 100", "> > 100", ">= > 90", "!= != 100", "= -"),
    ("int", "truncate[10]", (99,), True, "< < 90", "<= < 100", "> > 90", ">= > 90", "!= != 90"),
    ("int", "truncate[10]", (100,), False, "< <= 90", "<= <= 100", "> >= 100", ">= >= 100", "= = 100", "!= -"),
    ("long", "truncate[10]", (99,), False, "< <= 90", "<= <= 90", "> >= 100", ">= >= 90", "= = 90", "!= -"),
    ("long", "truncate[10]", (98, 99, 100), False, "in in 90 100", "not-in -"),
    ("decimal(9,2)", "truncate[10]", ("100.00",), True, "< < 100.00", "<= < 100.00", "> > 100.00", ">= > 99.90",
     "!= != 100.00", "= -"),
    ("decimal(9,2)", "truncate[10]", ("99.99",), True, "< < 99.90", "<= < 100.00", "> > 99.90", ">= > 99.90"),
    ("string", "truncate[5]", ("abcdefg",), True, "< < abcde", "<= < abcde", "> > abcde", ">= > abcde",
     "!= != abcde", "= -", "starts-with -", "not-starts-with != abcde"),
    ("string", "truncate[5]", ("abcdefg",), False, "< <= abcde", "<= <= abcde", "> >= abcde", ">= >= abcde",
     "= = abcde", "!= -", "starts-with = abcde", "not-starts-with -"),
    ("string", "truncate[5]", ("abcde",), False, "starts-with = abcde", "not-starts-with != abcde"),
    ("string", "truncate[5]", ("abc",), True, "starts-with starts-with abc", "not-starts-with not-starts-with abc"),
    # TestBucketingProjection: what has a projection at all
    ("int", "bucket[10]", (100,), False, "< -", "<= -", "> -", ">= -", "!= -"),
    ("int", "bucket[10]", (100,), True, "< -", "<= -", "> -", ">= -", "= -"),
]  # fmt: skip


@pytest.mark.parametrize("case", JAVA, ids=lambda c: f"{c[0]} {c[1]} {c[2]} {'strict' if c[3] else 'inclusive'}")
def test_cases_of_java(case: tuple[Any, ...]) -> None:
    kind, transform, literals, strict, *expected = case
    stored = tuple(stored_value(kind, x) for x in literals)
    for line in expected:
        op, wanted, *texts = line.split(" ")
        made = project(Predicate(1, op, stored, "x", type_of(kind)), transform, type_of(kind), strict=strict)
        if wanted == "-":
            assert made is None, line
            continue
        assert made is not None, line
        shown = sorted(human_value(PrimitiveType(kind), transform, v) for v in made.literals)
        # Java keeps repeated literals of a list, and has a longer prefix begin where it can only be equal.
        assert (made.op, shown) == (wanted, sorted(set(texts))), line


def stored_value(kind: str, value: Any) -> Any:
    from decimal import Decimal

    match kind:
        case "date":
            return (date.fromisoformat(value) - date(1970, 1, 1)).days
        case "timestamp":
            delta = datetime.fromisoformat(value) - datetime(1970, 1, 1)
            return (delta.days * 86_400 + delta.seconds) * 10**6 + delta.microseconds
    return Decimal(value) if kind.startswith("decimal") else value


@pytest.mark.parametrize(
    ("kind", "value", "bucket"),  # spec, Appendix B: hashes of known values
    [("int", 34, 2017239379), ("long", 34, 2017239379), ("decimal(9,2)", "14.20", -500754589),
     ("date", "2017-11-16", -653330422), ("timestamp", "2017-11-16T22:31:08", -2047944441),
     ("string", "iceberg", 1210000089), ("binary", b"\x00\x01\x02\x03", -188683207),
     ("uuid", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), 1488055340)],
)  # fmt: skip
@pytest.mark.parametrize("width", [16, 2**31 - 1])
def test_buckets_are_those_of_the_spec(kind: str, value: Any, bucket: int, width: int) -> None:
    p = Predicate(1, "=", (stored_value(kind, value),), "x", type_of(kind))
    made = project(p, f"bucket[{width}]", type_of(kind), strict=False)
    assert made is not None
    assert made.literals == ((bucket & 0x7FFFFFFF) % width,)


@given(op=st.sampled_from(["=", "<", ">=", "in", "starts-with", "not-starts-with", "!="]))
def test_short_text_is_not_cut_off(op: Op) -> None:
    """Closer than Java: what is shorter than the width is the whole value, so a tuple says all of it."""
    p = Predicate(1, op, ("ab",), "x", type_of("string"))
    for value in ("", "a", "ab", "abc", "b"):
        result = value[:3]
        inclusive, strict = (project(p, "truncate[3]", type_of("string"), strict=s) for s in (False, True))
        assert inclusive is not None
        assert strict is not None
        assert matches(p, value) == matches(inclusive, result) == matches(strict, result)
