"""Expressions over columns: what a filter is, once its names are field ids and its literals stored values.

There is no ``not``: a negation is pushed down to the predicates when a filter is bound (`negated`).

Three-valued logic is SQL's: a row is selected where the expression is true. A null satisfies ``is-null`` and
``not-nan`` alone. NaN satisfies no comparison but ``!=``, ``not-in`` and ``is-nan`` (as in IEEE 754, and as Iceberg
prunes: its bounds leave NaN out; Spark alone orders NaN above every number).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from iceexplore.metadata import Type, type_base

__all__ = ["ALWAYS", "Always", "And", "Expression", "NEVER", "Op", "Or", "Predicate", "all_of", "any_of", "negated",
           "predicates"]  # fmt: skip

Op: TypeAlias = Literal[
    "<", "<=", ">", ">=", "=", "!=", "in", "not-in", "is-null", "not-null", "is-nan", "not-nan", "starts-with",
    "not-starts-with",
]  # fmt: skip

_NEGATED: dict[str, Op] = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "=", "in": "not-in", "not-in": "in",
    "is-null": "not-null", "not-null": "is-null", "is-nan": "not-nan", "not-nan": "is-nan",
    "starts-with": "not-starts-with", "not-starts-with": "starts-with",
}  # fmt: skip
_ORDERED = frozenset(("<", "<=", ">", ">="))


@dataclass(frozen=True)
class Predicate:
    """A comparison of one column.

    Attributes
    ----------
    field_id
        The column's; it may stand inside structs, not in lists or maps.
    literals
        Stored values, none null or NaN: int for int, long, date (days), time, timestamps (microseconds, of ``_ns``
        types nanoseconds; with zone in UTC); float; bool; ``Decimal``; str; bytes for fixed, binary and uuid.
        One, but for ``in`` and ``not-in`` (several, distinct) and tests for null and NaN (none).
    name
        The column's dotted name, for people; a part that has dots or backticks itself stands in backticks.
    type
        The column's.
    text
        The predicate as SQL, for people: what was written, or what was made of it.
    """

    field_id: int
    op: Op
    literals: tuple[Any, ...] = ()
    name: str = ""
    type: Type | None = None
    text: str = ""


@dataclass(frozen=True)
class Always:
    """True or false for every row."""

    value: bool


@dataclass(frozen=True)
class And:
    """All of two or more."""

    children: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """One of two or more."""

    children: tuple[Expression, ...]


Expression: TypeAlias = Predicate | Always | And | Or

ALWAYS = Always(True)
NEVER = Always(False)


def all_of(*children: Expression) -> Expression:
    """The conjunction, flat and without what is always true."""
    return _joined(And, ALWAYS, NEVER, children)


def any_of(*children: Expression) -> Expression:
    """The disjunction, flat and without what is never true."""
    return _joined(Or, NEVER, ALWAYS, children)


def _joined(kind: type[And] | type[Or], unit: Always, zero: Always, children: tuple[Expression, ...]) -> Expression:
    out: dict[Any, Expression] = {}
    for child in children:
        if child == zero:
            return zero
        for part in child.children if isinstance(child, kind) else (child,):
            if part != unit:
                out.setdefault(_key(part), part)
    parts = tuple(out.values())
    return unit if not parts else parts[0] if len(parts) == 1 else kind(parts)


def _key(expression: Expression) -> Any:
    """Equal for equal expressions, of one column at most one type: types hold defaults, which need not be hashable."""
    match expression:
        case And(children) | Or(children):
            return type(expression).__name__, tuple(map(_key, children))
        case Predicate():
            return expression.field_id, expression.op, expression.literals, str(expression.type), expression.text
    return expression


def negated(expression: Expression) -> Expression:
    """What selects the rows for which the expression is false (not those for which it is unknown).

    Of a filter, `bind_filter` negates before it simplifies. Here ``Always(False)`` is taken for a condition that is
    false of every row: where a filter became so for being unknown (``x = null``), its negation selects nothing either.

    Raises
    ------
    ValueError
        A predicate of a floating column without its type: whether NaN has to be asked for is not known.
    """
    match expression:
        case Always(value):
            return NEVER if value else ALWAYS
        case And(children):
            return any_of(*(negated(c) for c in children))
        case Or(children):
            return all_of(*(negated(c) for c in children))
    p = expression
    text = f"not ({p.text})" if p.text else ""
    out = Predicate(p.field_id, _NEGATED[p.op], p.literals, p.name, p.type, text)
    if p.op not in _ORDERED:
        return out
    if p.type is None:
        raise ValueError(f"column {p.field_id} has no type")
    if type_base(p.type) not in ("float", "double"):
        return out
    # NaN < 5 is false, so not (NaN < 5) is true, and so is not NaN >= 5.
    return any_of(out, Predicate(p.field_id, "is-nan", (), p.name, p.type, text))


def predicates(expression: Expression) -> Iterator[Predicate]:
    """The leaves, from left to right."""
    match expression:
        case And(children) | Or(children):
            for child in children:
                yield from predicates(child)
        case Predicate():
            yield expression
