"""Convert PyIceberg's expressions to conditions, with a text in SQL for error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iceexplore.errors import OptionError
from iceexplore.expressions._tokens import Place
from iceexplore.expressions._unbound import (
    Both,
    Compare,
    Condition,
    Either,
    Member,
    Name,
    Negation,
    Prefix,
    Test,
    Value,
)

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.expressions.literals import Literal

__all__ = ["conditions_of"]

#: Maximum depth of alternating And, Or and Not.
MAX_DEPTH = 64

_COMPARISONS = {
    "EqualTo": "=", "NotEqualTo": "!=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}  # fmt: skip
_TESTS = {"IsNull": ("null", False), "NotNull": ("null", True), "IsNaN": ("nan", False), "NotNaN": ("nan", True)}


def conditions_of(where: BooleanExpression) -> Condition:
    """Convert a PyIceberg expression to a condition.

    The result has the meaning of the same filter in SQL: a null satisfies neither ``NotEqualTo`` nor ``NotIn``.
    PyIceberg's own scans return the same rows.

    Raises
    ------
    OptionError
        The argument is not an unbound expression of PyIceberg, or is nested too deeply.
    """
    from pyiceberg.expressions import BooleanExpression

    if not isinstance(where, BooleanExpression):
        raise OptionError(f"where={where!r}: give text or an expression of pyiceberg.expressions")
    return _condition(where, 0)


def _condition(where: BooleanExpression, depth: int) -> Condition:
    name = type(where).__name__
    if depth > MAX_DEPTH:
        raise OptionError(f"the expression is nested deeper than {MAX_DEPTH}: simplify it")
    match name:
        case "AlwaysTrue" | "AlwaysFalse":
            return Value("boolean", name == "AlwaysTrue", _place(str(name == "AlwaysTrue").lower()))
        case "And" | "Or":
            parts = tuple(_condition(p, depth + 1) for p in _flat(where, name))
            at = _place(name.lower())
            return Both(parts, at) if name == "And" else Either(parts, at)
        case "Not":
            return Negation(_condition(where.child, depth + 1), _place("not"))
    if not hasattr(where, "term") or name.startswith("Bound"):
        raise OptionError(f"where={where!r}: give an unbound expression of pyiceberg.expressions")
    return _leaf(where, name)


def _flat(where: BooleanExpression, name: str) -> list[Any]:
    """Return the operands of a chain of ``And`` or ``Or`` from left to right, however they are nested."""
    out, stack = [], [where]
    while stack:
        node = stack.pop()
        if type(node).__name__ == name:
            stack += (node.right, node.left)
        else:
            out.append(node)
    return out


def _leaf(where: BooleanExpression, name: str) -> Condition:
    column = where.term.name
    parts = tuple(column.split("."))
    if name in _TESTS:
        what, negated = _TESTS[name]
        at = Place(f"{column} is {'not ' if negated else ''}{what}", 0, len(column))
        return Test(Name(parts, (False,) * len(parts), at), what, negated, _whole(at))  # type: ignore[arg-type]
    literals = sorted(where.literals, key=str) if name in ("In", "NotIn") else [where.literal]
    texts = [_text(x) for x in literals]
    negated = name.startswith("Not")
    if name in ("In", "NotIn"):
        before, after = f"{column} {'not ' if negated else ''}in (", ")"
    elif name in ("StartsWith", "NotStartsWith"):
        before, after = f"{'not ' if negated else ''}startswith({column}, ", ")"
    elif name in _COMPARISONS:
        before, after = f"{column} {_COMPARISONS[name]} ", ""
    else:
        raise OptionError(f"where={where!r}: {name} expressions are not supported")
    text = before + ", ".join(texts) + after
    start = before.index(column)
    operand = Name(parts, (False,) * len(parts), Place(text, start, start + len(column)))
    values, begin = [], len(before)
    for literal, shown in zip(literals, texts, strict=True):
        values.append(_value(literal, Place(text, begin, begin + len(shown))))
        begin += len(shown) + 2
    whole = _place(text)
    if name in ("In", "NotIn"):
        return Member(operand, tuple(values), negated, whole)
    if name in _COMPARISONS:
        return Compare(_COMPARISONS[name], operand, values[0], whole)
    return Prefix(operand, values[0], negated, whole)


def _place(text: str) -> Place:
    return Place(text, 0, len(text))


def _whole(at: Place) -> Place:
    return _place(at.text)


def _text(literal: Literal[Any]) -> str:
    value = literal.value
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).lower()


def _value(literal: Literal[Any], at: Place) -> Value:
    value = literal.value
    match type(literal).__name__:
        case "LongLiteral":
            return Value("stored", value, at)
        case "DateLiteral":
            return Value("date", value, at)
        case "TimeLiteral":
            return Value("time", value * 1000, at)
        case "TimestampLiteral":
            return Value("timestamp", value * 1000, at)
        case "UUIDLiteral":
            return Value("uuid", bytes(value), at)
    match value:
        case bool():
            return Value("boolean", value, at)
        case float():
            return (
                Value("infinity", 1 if value > 0 else -1, at)
                if abs(value) == float("inf")
                else Value("float", value, at)
            )
        case str():
            return Value("text", value, at)
        case bytes():
            return Value("bytes", value, at)
    from decimal import Decimal

    if isinstance(value, Decimal):
        return Value("number", value, at)
    raise OptionError(f"literal {literal!r} is not supported")
