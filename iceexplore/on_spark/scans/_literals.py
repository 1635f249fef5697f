"""Convert values and filter expressions of Iceberg's types to Spark Columns.

Columns are built with functions instead of parsed from SQL, as the meaning of SQL text depends on a session's settings
(escapes in literals, reserved words, quotes).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import and_, or_
from typing import TYPE_CHECKING
from uuid import UUID

from iceexplore.arrow import PlainValue
from iceexplore.expressions import Always, And, Expression, Or, Predicate, computed, predicates
from iceexplore.metadata import Type, format_value, type_base
from iceexplore.on_spark.transport._columns import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["condition_column", "literal", "speaks"]

_FLOATS = ("float", "double")
#: Types whose values Spark accepts as plain Python values. For other types, each step of building a literal calls
#: Java, which takes a millisecond.
_PLAIN = (*_FLOATS, "boolean", "int", "long", "string")
#: Maximum number of terms of a conjunction or disjunction on one level.
_MOST_TERMS = 64
_NO_VALUES = frozenset(("variant", "geometry", "geography", "unknown"))


def literal(value: PlainValue, kind: Type, version: tuple[int, int]) -> Column:
    """Return a stored value of a primitive type as a Spark literal; None gives null.

    For the stored form see `iceexplore.planning.Predicate`.
    """
    from pyspark.sql import functions as f

    base = type_base(kind)
    target = spark_type(kind, version)
    if value is None:
        return f.lit(None).cast(target)
    match base:
        case "uuid":
            return f.lit(str(UUID(bytes=value)) if isinstance(value, bytes) else str(value))
        case "fixed" | "binary" | "geometry" | "geography":
            return f.lit(bytearray(value))
        case "date":
            return f.date_from_unix_date(f.lit(int(value)))
        case "timestamptz":
            return f.timestamp_micros(f.lit(int(value)).cast("bigint"))
        case "timestamp":
            return f.lit(str(format_value(kind, value))).cast("timestamp_ntz")
        case "string":
            return f.lit(value)
    return f.lit(value).cast(target)


def speaks(expression: Expression) -> bool:
    """Return whether Spark can evaluate an expression on its columns."""
    return all(_speaks(p) for p in predicates(expression)) and not any(computed(expression))


def _speaks(p: Predicate) -> bool:
    if p.type is None:
        return False
    base = type_base(p.type)
    if p.op in ("is-null", "not-null"):
        return base != "variant"
    if p.op in ("starts-with", "not-starts-with"):
        return base == "string"
    return base not in _NO_VALUES


def condition_column(expression: Expression, column: Callable[[int], Column], version: tuple[int, int]) -> Column:
    """Return an expression as a Spark Column that selects the same rows, NaN and null included.

    Parameters
    ----------
    column
        A function that returns a field's column by its id.
    """
    return _condition(expression, cache(column), version)


def _condition(expression: Expression, column: Callable[[int], Column], version: tuple[int, int]) -> Column:
    from pyspark.sql import functions as f

    match expression:
        case Always(value):
            return f.lit(value)
        case And(children) | Or(children):
            parts = [_condition(c, column, version) for c in children]
            while len(parts) > _MOST_TERMS:
                # Spark splits a conjunction and rebuilds it with one level of nesting per term; coalesce prevents the
                # split. Replacing null by false is safe: neither selects a row, and only predicates contain negations.
                some = [parts[at : at + _MOST_TERMS] for at in range(0, len(parts), _MOST_TERMS)]
                parts = [f.coalesce(_joined(part, isinstance(expression, And)), f.lit(False)) for part in some]
            return _joined(parts, isinstance(expression, And))
    assert isinstance(expression, Predicate)
    return _predicate(expression, column(expression.field_id), version)


def _joined(parts: list[Column], every: bool) -> Column:
    """Join all parts in a shallow tree, because Spark walks it recursively."""
    join = and_ if every else or_
    while len(parts) > 1:
        parts = [join(*parts[at : at + 2]) if at + 1 < len(parts) else parts[at] for at in range(0, len(parts), 2)]
    return parts[0]


def _is_zero(column: Column) -> Column:
    """Return a condition that is true for both zeros of a float, which are equal in Spark.

    In filters pushed down to Parquet, and in sets of many values, -0.0 is less than 0.0, not equal.
    """
    return (column >= -0.0) & (column <= 0.0)


def _predicate(p: Predicate, column: Column, version: tuple[int, int]) -> Column:
    from pyspark.sql import functions as f

    assert p.type is not None
    kind = p.type
    match p.op:
        case "is-null":
            return column.isNull()
        case "not-null":
            return column.isNotNull()
        case "is-nan":
            return f.isnan(column)
        case "not-nan":
            return ~f.isnan(column)
    # A float is compared with the literal as a double; rounding the literal would select other rows.
    plain = type_base(kind) in _PLAIN
    values = [v if plain else literal(v, kind, version) for v in p.literals]
    floats = type_base(kind) in _FLOATS
    if floats and any(v == 0 for v in values):
        others = [v for v in values if v != 0]
        match p.op:
            case "=" | "in":
                return column.isin(*others) | _is_zero(column) if others else _is_zero(column)
            case "not-in":
                return ~column.isin(*others) & (column != 0.0) if others else column != 0.0
        values = [-0.0 if p.op == ">=" else 0.0]  # `>= 0.0` and `<= -0.0` would lose the other zero
    match p.op:
        case "in":
            return column.isin(*values)
        case "not-in":
            return ~column.isin(*values)
        case "starts-with":
            return column.startswith(values[0])
        case "not-starts-with":
            return ~column.startswith(values[0])
        case "=":
            return column == values[0]
        case "!=":
            return column != values[0]
        case "<":
            return column < values[0]
        case "<=":
            return column <= values[0]
    above = column > values[0] if p.op == ">" else column >= values[0]
    # In Spark, NaN is greater than every number.
    return above & ~f.isnan(column) if floats else above
