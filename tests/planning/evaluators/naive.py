"""A predicate of one value in plain Python, SQL's nulls and IEEE 754's NaN: what pruning must never contradict."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

from hypothesis import strategies as st

from iceexplore.expressions import Op, Predicate
from iceexplore.metadata import PrimitiveType, Type

COMPARISONS: tuple[Op, ...] = ("<", "<=", ">", ">=", "=", "!=", "in", "not-in")
DAY = 86_400 * 10**6
#: Values that lie on both sides of what transforms, truncation and old writers stumble over.
POOLS: dict[str, list[Any]] = {
    "int": [-(2**31), -(2**31) + 1, -11, -10, -9, -1, 0, 1, 9, 10, 11, 99, 100, 2**31 - 1],
    "long": [-(2**63), -(2**63) + 1, -(2**40), -10, -1, 0, 1, 9, 10, 2**40, 2**63 - 1],
    "double": [float("-inf"), -1.5, -0.0, 0.0, 2.5, 1e300, float("inf"), float("nan")],
    "float": [-1.5, -0.0, 0.0, 2.5, float("inf"), float("nan")],
    "decimal(9,2)": [Decimal(x) for x in ("-9999999.99", "-1.50", "-0.01", "0.00", "0.01", "1.25", "9.99", "10.00")],
    "decimal(38,2)": [Decimal(x) for x in (f"-{'9' * 36}.99", f"{'9' * 36}.99", f"{'1' * 36}.11", "-0.01", "5.00")],
    "string": ["", "a", "ab", "abc", "abd", "b", "日", "日本語", "\U0010ffff", "\U0010ffff\U0010ffffz"],
    "binary": [b"", b"\x00", b"a", b"ab", b"a\xff", b"a\xff\xff\xff", b"\xff\xff"],
    "fixed[2]": [b"\x00\x00", b"ab", b"a\xff", b"\xff\xff"],
    "uuid": [bytes(16), bytes(15) + b"\x01", b"\x7f" + bytes(15), b"\x80" + bytes(15), b"\xff" * 16],
    "boolean": [False, True],
    "date": [-719_161, -366, -365, -32, -31, -1, 0, 1, 30, 31, 364, 365, 19_782],
    "time": [0, 1, DAY - 1],
    "timestamp": [-366 * DAY, -DAY - 1, -DAY, -DAY + 1, -3_600_000_001, -1, 0, 1, DAY - 1, DAY, 1_709_164_800_000_000],
    "timestamp_ns": [-366 * DAY * 1000, -DAY * 1000, -1001, -1000, -1, 0, 999, 1000, DAY * 1000, 17 * 10**17],
}
POOLS["timestamptz"], POOLS["timestamptz_ns"] = POOLS["timestamp"], POOLS["timestamp_ns"]


def matches(p: Predicate, value: Any) -> bool:
    """Whether a stored value satisfies a predicate."""
    nan = isinstance(value, float) and value != value
    if p.op in ("is-null", "not-null", "is-nan", "not-nan"):
        return {"is-null": value is None, "not-null": value is not None, "is-nan": nan, "not-nan": not nan}[p.op]
    if value is None:
        return False
    x = p.literals[0]
    if p.op in ("starts-with", "not-starts-with"):
        return bool(value.startswith(x)) == (p.op == "starts-with")
    if p.op in ("!=", "not-in"):
        return value not in p.literals
    if nan:
        return False
    return bool({"=": value == x, "in": value in p.literals, "<": value < x if p.op == "<" else 0,
                 "<=": value <= x if p.op == "<=" else 0, ">": value > x if p.op == ">" else 0,
                 ">=": value >= x if p.op == ">=" else 0}[p.op])  # fmt: skip


@st.composite
def predicates_of(draw: st.DrawFn, kind: str, field_id: int = 1, name: str = "x") -> Predicate:
    """A predicate of a column of this type."""
    pool = _literals(kind)
    ops: list[Op] = [*COMPARISONS, *_tests(kind)]
    if kind in ("string", "binary"):
        ops += ["starts-with", "not-starts-with"]
    op = draw(st.sampled_from(ops))
    count = (1, 1) if op not in ("in", "not-in") else (1, 12)
    if op in ("is-null", "not-null", "is-nan", "not-nan"):
        return Predicate(field_id, op, (), name, type_of(kind))
    chosen = draw(st.lists(st.sampled_from(pool), min_size=count[0], max_size=count[1], unique=True))
    return Predicate(field_id, op, tuple(chosen), name, type_of(kind))


def single_predicates(kind: str) -> Iterator[Predicate]:
    """Every predicate of a column of this type that has one literal of the pool, or none."""
    yield from (Predicate(1, op, (), "x", type_of(kind)) for op in _tests(kind))
    for value in _literals(kind):
        prefixes: tuple[Op, ...] = ("starts-with", "not-starts-with") if kind in ("string", "binary") else ()
        yield from (Predicate(1, op, (value,), "x", type_of(kind)) for op in (*COMPARISONS, *prefixes))


def list_predicates(kind: str, count: int) -> Iterator[Predicate]:
    """Some of those that have several literals, each time the same."""
    draws, pool = Random(kind), _literals(kind)
    for i in range(count):
        op: Op = "in" if i % 2 else "not-in"
        yield Predicate(1, op, tuple(draws.sample(pool, draws.randint(2, len(pool)))), "x", type_of(kind))


def _tests(kind: str) -> tuple[Op, ...]:
    return ("is-null", "not-null", "is-nan", "not-nan") if kind in ("float", "double") else ("is-null", "not-null")


def _literals(kind: str) -> list[Any]:
    return [v for v in POOLS[kind] if v == v]


def type_of(kind: str) -> Type:
    """The type of a pool."""
    return PrimitiveType(kind)
