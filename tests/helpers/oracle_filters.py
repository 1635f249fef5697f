"""Random filters: trees of this module's own, their meaning row by row, as SQL text and as PyIceberg's expressions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from hypothesis import strategies as st

from iceexplore.metadata import Schema, StructType, type_base

#: ("and" | "or", [...]), ("not", x), (op, column, literals...)
Tree: TypeAlias = tuple[Any, ...]

UTC = dt.UTC
#: Longer than the 16 characters that bounds keep by default, so that many bounds are equal or cut.
PREFIX = "a common prefix of "
DAYS = [dt.date(2023, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1970, 1, 1)]
TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1),
         dt.datetime(2024, 2, 29, 13, 30, 5), dt.datetime(2025, 6, 1, 1)]  # fmt: skip
POOLS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [*range(-3, 8), 2**31 - 1, -(2**31)],
    "long": [*range(-3, 12), 2**40, -(2**63), 2**63 - 1],
    "float": [0.0, -0.0, 1.5, -1.5, 2.0, 0.25, float("nan"), float("inf")],
    "double": [0.0, -0.0, 1.5, -1.5, 2.0, 0.1, float("nan"), float("-inf")],
    "decimal": [Decimal(x) for x in ("0.00", "1.00", "1.25", "-1.25", "99.99", "9999999.99", "-9999999.99")],
    "date": DAYS,
    "timestamp": TIMES,
    "timestamptz": [t.replace(tzinfo=UTC) for t in TIMES],
    "time": [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999_999)],
    "string": ["", "b", PREFIX, *(PREFIX + x for x in ("a", "ab", "b", "\u00e9", "\U0001f600", "z" * 20))],
    "binary": [b"", b"\0", b"\0\1", b"\xff", b"\xff" * 20, b"abc"],
    "fixed": [b"\0\0\0", b"abc", b"\xff\xff\xff"],
    "uuid": [bytes(16), b"\x80" + bytes(15), b"\xff" * 16, bytes(range(16))],
}


def value_of(kind: Any) -> st.SearchStrategy[Any]:
    """A value of a column's type, None now and then."""
    if isinstance(kind, StructType):
        return st.none() | st.fixed_dictionaries({f.name: value_of(f.type) for f in kind.fields})
    return st.none() | st.sampled_from(POOLS[type_base(kind)]) | st.sampled_from(POOLS[type_base(kind)])


def columns_of(schema: Schema) -> dict[str, str]:
    """What a filter may name: dotted names and base types."""
    out: dict[str, str] = {}
    for name, f in schema.walk():
        if not isinstance(f.type, StructType) and type_base(f.type) in POOLS:
            out[name] = type_base(f.type)
    return out


def filters(schema: Schema) -> st.SearchStrategy[Tree]:
    """Filters of a schema's columns."""
    columns = columns_of(schema)

    @st.composite
    def predicate(draw: st.DrawFn) -> Tree:
        name = draw(st.sampled_from(sorted(columns)))
        base = columns[name]
        literals = st.sampled_from([x for x in POOLS[base] if not isinstance(x, float) or abs(x) < 100])
        ops = ["<", "<=", ">", ">=", "=", "=", "!=", "in", "not in", "between", "is null", "is not null"]
        ops += ["is nan", "is not nan"] if base in ("float", "double") else []
        ops += ["like", "not like", "like"] if base == "string" else []
        op = draw(st.sampled_from(ops))
        count = {"in": 3, "not in": 2, "between": 2}.get(op, 0 if op.startswith("is") else 1)
        given = [draw(literals) for _ in range(count)]
        if op.endswith("like"):
            given = [given[0][: draw(st.integers(0, 30))]]
        return (op, name, *given)

    def joined(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        several = st.lists(children, min_size=2, max_size=3)
        return st.tuples(st.sampled_from(["and", "or"]), several) | st.tuples(st.just("not"), children)

    return st.recursive(predicate(), joined, max_leaves=4)


def truth(tree: Tree, row: Mapping[str, Any]) -> bool | None:
    """The filter's value of a row in SQL's three-valued logic; NaN as in IEEE 754."""
    op: str = tree[0]
    if op in ("and", "or"):
        truths = [truth(child, row) for child in tree[1]]
        decided = op == "or"
        return bool(decided) if decided in truths else None if None in truths else not decided
    if op == "not":
        inner = truth(tree[1], row)
        return None if inner is None else not inner
    value: Any = row
    for part in tree[1].split("."):
        value = None if value is None else value[part]
    if op in ("is null", "is not null"):
        return bool((value is None) == (op == "is null"))
    if op in ("is nan", "is not nan"):
        nan = value is not None and value != value
        return bool(nan) == (op == "is nan")
    if value is None:
        return None
    x = tree[2]
    match op:
        case "=" | "in":
            return bool(any(value == x for x in tree[2:]))
        case "!=" | "not in":
            return bool(all(value != x for x in tree[2:]))
        case "between":
            return bool(x <= value <= tree[3])
        case "like" | "not like":
            return bool(value.startswith(x)) == (op == "like")
        case "<":
            return bool(value < x)
        case "<=":
            return bool(value <= x)
        case ">":
            return bool(value > x)
    return bool(value >= x)


def to_sql(tree: Tree) -> str:
    """The filter as text."""
    op: str = tree[0]
    if op in ("and", "or"):
        return f" {op} ".join(f"({to_sql(child)})" for child in tree[1])
    if op == "not":
        return f"not ({to_sql(tree[1])})"
    name = tree[1]
    literals = [_literal(x) for x in tree[2:]]
    if op in ("in", "not in"):
        return f"{name} {op} ({', '.join(literals)})"
    if op == "between":
        return f"{name} between {literals[0]} and {literals[1]}"
    if op in ("like", "not like"):
        return f"{name} {op} '{tree[2]}%'"
    return f"{name} {op} {literals[0]}" if literals else f"{name} {op}"


def _literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return f"x'{value.hex()}'"
        case str():
            return f"'{value}'"
        case dt.datetime():
            return f"timestamp '{value.isoformat(' ')}'"
        case dt.date():
            return f"date '{value.isoformat()}'"
        case dt.time():
            return f"time '{value.isoformat()}'"
    return repr(value) if isinstance(value, float) else str(value)


def to_pyiceberg(tree: Tree, columns: Mapping[str, str]) -> Any:
    """The filter as an expression of PyIceberg's, whose ``not`` is its own."""
    from pyiceberg import expressions as e

    op: str = tree[0]
    if op in ("and", "or"):
        return (e.And if op == "and" else e.Or)(*(to_pyiceberg(child, columns) for child in tree[1]))
    if op == "not":
        return e.Not(to_pyiceberg(tree[1], columns))
    name = tree[1]
    given = [_plain(x, columns[name]) for x in tree[2:]]
    one = {
        "<": e.LessThan, "<=": e.LessThanOrEqual, ">": e.GreaterThan, ">=": e.GreaterThanOrEqual, "=": e.EqualTo,
        "!=": e.NotEqualTo, "like": e.StartsWith, "not like": e.NotStartsWith,
    }  # fmt: skip
    none: dict[str, Any] = {"is null": e.IsNull, "is not null": e.NotNull, "is nan": e.IsNaN, "is not nan": e.NotNaN}
    if op in none:
        return none[op](name)
    if op in ("in", "not in"):
        return (e.In if op == "in" else e.NotIn)(name, set(given))
    if op == "between":
        return e.And(e.GreaterThanOrEqual(name, given[0]), e.LessThanOrEqual(name, given[1]))
    return one[op](name, given[0])


def _plain(value: Any, base: str) -> Any:
    """A value as PyIceberg's literals take it."""
    if base == "uuid":
        from uuid import UUID

        return UUID(bytes=value)
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value
