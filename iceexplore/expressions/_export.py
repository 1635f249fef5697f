"""Export expressions: SQL for Spark and for display, and PyIceberg's classes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from iceexplore.arrow import PlainValue
from iceexplore.errors import OptionError
from iceexplore.expressions._model import (
    Always,
    And,
    Applied,
    Comparison,
    Computed,
    Conditional,
    Constant,
    Expression,
    FieldValue,
    Or,
    Predicate,
    ValueExpression,
)
from iceexplore.metadata import Type, format_value, type_base

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

__all__ = ["expression_pyiceberg", "expression_sql", "literal_sql", "name_sql", "path_of"]

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNS = {"!=": "<>"}
#: Words that must be quoted if they are names, in Spark's SQL (including its ``ANSI`` mode) or in filters.
_RESERVED = frozenset(
    (
        "all", "and", "anti", "any", "as", "authorization", "between", "both", "by", "case", "cast", "check",
        "collate", "column", "constraint", "create", "cross", "current_date", "current_time", "current_timestamp",
        "current_user", "distinct", "else", "end", "escape", "except", "exists", "false", "fetch", "filter", "for",
        "foreign", "from", "full", "grant", "group", "having", "ilike", "in", "inner", "intersect", "interval",
        "into", "is", "join", "lateral", "leading", "left", "like", "minus", "natural", "not", "null", "offset", "on",
        "only", "or", "order", "outer", "overlaps", "primary", "references", "right", "rlike", "select", "semi",
        "session_user", "set", "some", "table", "then", "time", "to", "trailing", "true", "union", "unique",
        "unknown", "user", "using", "when", "where", "with", "within", "date", "timestamp", "timestamp_ntz",
        "timestamp_ltz",
    )
)  # fmt: skip


def path_of(name: str) -> tuple[str, ...]:
    """Split a name in the form of `Predicate.name` into its parts. Dots inside backticks do not separate parts."""
    return tuple(part for part, _ in _parts(name))


def _parts(name: str) -> list[tuple[str, bool]]:
    """Split a name into its parts; return each part, and whether it was in backticks."""
    found = _PART.finditer(name)
    return [(m[2], False) if m[1] is None else (m[1].replace("``", "`"), True) for m in found]


def expression_sql(expression: Expression, dialect: Literal["spark", "sql"] = "spark") -> str:
    """Return an expression as the SQL of a ``WHERE`` clause.

    Parameters
    ----------
    dialect
        ``spark`` writes SQL that selects the same rows in Spark: NaN, which Spark orders above every number, is
        excluded from ``>`` and ``>=``; quotes and backslashes in strings are escaped with a backslash; UUIDs are
        strings. Types that Spark lacks (time, nanoseconds) are written nevertheless. ``sql`` writes what `parse_filter`
        reads: quotes in strings are doubled, and NaN is not excluded. In both dialects, functions are written for
        display only: partition transforms are not SQL functions, and `parse_filter` reads only some functions, of a
        single column.

    Examples
    --------
    >>> from iceexplore.planning import Predicate
    >>> expression_sql(Predicate(1, "=", (5,), "id"))
    'id = 5'
    """
    return _sql(expression, dialect, inside=False)


def _sql(expression: Expression, dialect: str, inside: bool) -> str:
    match expression:
        case Always(value):
            return "true" if value else "false"
        case And(children):
            text = " AND ".join(_sql(c, dialect, inside=True) for c in children)
            return f"({text})" if inside else text
        case Or(children):
            text = " OR ".join(_sql(c, dialect, inside=True) for c in children)
            return f"({text})" if inside else text
        case Computed(predicate, value):
            if isinstance(value, Comparison) and predicate.op == "=" and predicate.literals[0] is True:
                return f"({_value_sql(value, dialect)})"
            return _predicate(predicate, dialect, inside, _value_sql(value, dialect))
    quote = "`" if dialect == "spark" else '"'
    return _predicate(expression, dialect, inside, name_sql(expression.name, quote))


def _value_sql(value: ValueExpression, dialect: str) -> str:
    match value:
        case FieldValue(name=name):
            return name_sql(name, "`" if dialect == "spark" else '"')
        case Constant(constant, kind):
            return literal_sql(constant, kind, dialect)
        case Applied(function, arguments):
            name, _, width = function.partition("[")
            parts = [*([width.rstrip("]")] if width else []), *(_value_sql(a, dialect) for a in arguments)]
            return f"{name}({', '.join(parts)})"
        case Conditional(condition, one, other):
            when = _sql(condition, dialect, inside=False)
            return f"CASE WHEN {when} THEN {_value_sql(one, dialect)} ELSE {_value_sql(other, dialect)} END"
    left, right = _value_sql(value.left, dialect), _value_sql(value.right, dialect)
    same = f"{left} <=> {right}" if dialect == "spark" else f"{left} IS NOT DISTINCT FROM {right}"
    match value.op:
        case "=":
            return same
        case "<=" | ">=":
            return f"{left} {value.op[0]} {right} OR {same}"
    return f"{left} {value.op} {right}"


def _predicate(p: Predicate, dialect: str, inside: bool, name: str) -> str:
    values = [literal_sql(v, p.type, dialect) for v in p.literals]
    match p.op:
        case "is-null":
            return f"{name} IS NULL"
        case "not-null":
            return f"{name} IS NOT NULL"
        case "is-nan":
            return f"isnan({name})"
        case "not-nan":
            return f"NOT isnan({name})"
        case "in" | "not-in":
            return f"{name} {'NOT ' if p.op == 'not-in' else ''}IN ({', '.join(values)})"
        case "starts-with":
            return f"startswith({name}, {values[0]})"
        case "not-starts-with":
            return f"NOT startswith({name}, {values[0]})"
    text = f"{name} {_SIGNS.get(p.op, p.op)} {values[0]}"
    if dialect == "spark" and p.op in (">", ">=") and p.type is not None and type_base(p.type) in ("float", "double"):
        text += f" AND NOT isnan({name})"
        return f"({text})" if inside else text
    return text


def name_sql(name: str, quote: str = '"') -> str:
    """Convert a name in the form of `Predicate.name` to SQL. Parts are quoted if necessary."""
    return ".".join(_quoted(part, quote, always) for part, always in _parts(name))


def _quoted(part: str, quote: str, always: bool) -> str:
    if not always and _PLAIN.fullmatch(part) and part.lower() not in _RESERVED:
        return part
    return quote + part.replace(quote, quote * 2) + quote


def literal_sql(value: PlainValue, kind: Type | None, dialect: str = "spark") -> str:
    """Return a stored value as an SQL literal; without a type, its form depends on the Python class."""
    base = "" if kind is None else type_base(kind)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if math.isinf(value):
            return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE)"
        return f"{value!r}D"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, str):
        return _text(value, dialect)
    if isinstance(value, bytes):
        return f"'{UUID(bytes=value)}'" if base == "uuid" else f"X'{value.hex().upper()}'"
    if kind is None or base in ("int", "long"):
        return str(value)
    text = format_value(kind, value)
    match base:
        case "date":
            return f"DATE '{text}'"
        case "time":
            return f"TIME '{text}'"
        case "timestamp" | "timestamp_ns":
            return f"TIMESTAMP_NTZ '{text}'"
    return f"TIMESTAMP '{text}'"


def _text(value: str, dialect: str) -> str:
    if dialect != "spark":
        return "'" + value.replace("'", "''") + "'"
    plain = value.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda m: f"\\u{ord(m[0]):04x}", plain) + "'"


def expression_pyiceberg(expression: Expression) -> BooleanExpression:
    """Return an unbound expression of ``pyiceberg.expressions``, with columns by their dotted names.

    PyIceberg rejects some expressions when it binds them to a schema: prefixes of binary columns, and literals of
    ``_ns`` types. For ``NotEqualTo`` and ``NotIn``, its plans include files that contain only nulls; its scans then
    drop their rows.

    Returns
    -------
    pyiceberg.expressions.BooleanExpression

    Raises
    ------
    OptionError
        The expression compares the result of a function: PyIceberg's filters compare columns only.
    """
    from pyiceberg import expressions as ex

    match expression:
        case Always(value):
            return ex.AlwaysTrue() if value else ex.AlwaysFalse()
        case And(children) | Or(children):
            join = ex.And if isinstance(expression, And) else ex.Or
            return join(*(expression_pyiceberg(c) for c in children))
        case Computed(predicate):
            raise OptionError(f"{predicate.text}: PyIceberg's filters compare columns only, not {predicate.name}")
    p = expression
    name = ".".join(path_of(p.name))
    tests = {"is-null": ex.IsNull, "not-null": ex.NotNull, "is-nan": ex.IsNaN, "not-nan": ex.NotNaN}
    if p.op in tests:
        return tests[p.op](name)
    values = _pyiceberg_literals(p.literals, p.type)
    if p.op in ("in", "not-in"):
        return (ex.In if p.op == "in" else ex.NotIn)(name, values)
    kinds = {
        "<": ex.LessThan, "<=": ex.LessThanOrEqual, ">": ex.GreaterThan, ">=": ex.GreaterThanOrEqual, "=": ex.EqualTo,
        "!=": ex.NotEqualTo, "starts-with": ex.StartsWith, "not-starts-with": ex.NotStartsWith,
    }  # fmt: skip
    return kinds[p.op](name, values[0])


def _pyiceberg_literals(values: Sequence[Any], kind: Type | None) -> list[Any]:
    from pyiceberg.expressions import literals as li

    base = "" if kind is None else type_base(kind)
    of_type: dict[str, Any] = {
        "date": li.DateLiteral, "time": li.TimeLiteral, "timestamp": li.TimestampLiteral,
        "timestamptz": li.TimestampLiteral, "uuid": li.UUIDLiteral,
    }  # fmt: skip
    return [of_type.get(base, li.literal)(v) for v in values]
