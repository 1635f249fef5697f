"""Expressions over columns: bound filters, with field ids for names and stored values for literals.

There is no ``not``: binding a filter pushes negations down to the predicates (`negated`).

The three-valued logic is SQL's: a row is selected where the expression is true. A null satisfies only ``is-null`` and
``not-nan``. NaN satisfies only ``!=``, ``not-in`` and ``is-nan`` (as in IEEE 754 and in Iceberg's pruning, whose bounds
leave out NaN; Spark orders NaN above every number).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from iceexplore.metadata import Op, Type, type_base

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

__all__ = ["ALWAYS", "Always", "And", "Expression", "FilterLike", "NEVER", "Op", "Or", "Predicate", "all_of", "any_of",
           "negated", "predicates"]  # fmt: skip

#: A filter as users give it: SQL text (see `parse_filter`), or an expression of PyIceberg.
FilterLike: TypeAlias = "str | BooleanExpression"

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
        Field id of the column, which may be inside structs, but not in lists or maps.
    literals
        Stored values, none null or NaN: int for int, long, date (days), time, timestamps (microseconds, for ``_ns``
        types nanoseconds; in UTC with zone); float; bool; ``Decimal``; str; bytes for fixed, binary and uuid. There is
        one, except for ``in`` and ``not-in`` (several, distinct) and tests for null and NaN (none).
    name
        Dotted name of the column, for display; a part that contains dots or backticks is in backticks.
    type
        Type of the column.
    text
        The predicate as SQL, for display: as the user wrote it, or derived from that.
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
    """A conjunction of two or more expressions."""

    children: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """A disjunction of two or more expressions."""

    children: tuple[Expression, ...]


Expression: TypeAlias = Predicate | Always | And | Or

ALWAYS = Always(True)
NEVER = Always(False)


def all_of(*children: Expression) -> Expression:
    """Return the conjunction, flattened and without parts that are always true."""
    return _joined(And, ALWAYS, NEVER, children)


def any_of(*children: Expression) -> Expression:
    """Return the disjunction, flattened and without parts that are never true."""
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


def _key(expression: Expression) -> object:
    """Return a key that is equal for equal expressions; types are compared as text, as defaults may be unhashable."""
    match expression:
        case And(children) | Or(children):
            return type(expression).__name__, tuple(map(_key, children))
        case Predicate():
            return expression.field_id, expression.op, expression.literals, str(expression.type), expression.text
    return expression


def negated(expression: Expression) -> Expression:
    """Return an expression that selects the rows for which this one is false (not those for which it is unknown).

    For a filter, `bind_filter` negates before it simplifies. This function treats ``Always(False)`` as false for every
    row: if a filter became that because it is unknown (``x = null``), its negation selects nothing either.

    Raises
    ------
    ValueError
        A predicate on a floating-point column has no type, so the treatment of NaN is unknown.
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
    # NaN < 5 is false, so its negation is true; NaN >= 5, which would replace the negation, is false.
    return any_of(out, Predicate(p.field_id, "is-nan", (), p.name, p.type, text))


def predicates(expression: Expression) -> Iterator[Predicate]:
    """Yield the predicates from left to right."""
    match expression:
        case And(children) | Or(children):
            for child in children:
                yield from predicates(child)
        case Predicate():
            yield expression
