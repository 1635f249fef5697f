"""Expressions over columns: bound filters, with field ids for names and stored values for literals.

There is no ``not``: binding a filter pushes negations down to the predicates (`negated`).

The three-valued logic is SQL's: a row is selected where the expression is true. A null satisfies only ``is-null`` and
``not-nan``. NaN satisfies only ``!=``, ``not-in`` and ``is-nan`` (as in IEEE 754 and in Iceberg's pruning, whose bounds
leave out NaN; Spark orders NaN above every number).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from iceexplore.metadata import Op, Type, type_base

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

__all__ = ["ALWAYS", "Always", "And", "Applied", "Comparison", "Computed", "Conditional", "Constant", "Expression",
           "FieldValue", "FilterLike", "NEVER", "Op", "Or", "Predicate", "ValueExpression", "all_of", "any_of",
           "columns_of", "computed", "negated", "on_value", "predicates", "value_text"]  # fmt: skip

#: A filter as users give it: SQL text (see `parse_filter`), an expression of PyIceberg, or the JSON of an expression
#: (see `expression_from_json`) as text or as the parsed object.
FilterLike: TypeAlias = "str | bool | Mapping[str, Any] | BooleanExpression"

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
        Stored values, never null or NaN: int for int, long, date (days), time, timestamps (microseconds, for ``_ns``
        types nanoseconds; in UTC with zone); float; bool; ``Decimal``; str; bytes for fixed, binary and uuid. ``in``
        and ``not-in`` have several distinct ones, tests for null and NaN have none, and other operators have one.
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


@dataclass(frozen=True)
class FieldValue:
    """The value of a column of a primitive type, which may be inside structs."""

    field_id: int
    name: str
    type: Type


@dataclass(frozen=True)
class Constant:
    """A constant; `value` is the stored form (see `Predicate.literals`), never null or NaN."""

    value: Any
    type: Type


@dataclass(frozen=True)
class Applied:
    """The result of a function that is applied to one or more values. A partition transform of a null is null.

    Attributes
    ----------
    function
        A partition transform in the spec's notation, ``bucket[16]``, or the name of a function of SQL, ``lower``.
    """

    function: str
    arguments: tuple[ValueExpression, ...]
    type: Type


@dataclass(frozen=True)
class Conditional:
    """The result of the function ``if_else``: one of two values, depending on a predicate."""

    condition: Expression
    when_true: ValueExpression
    when_false: ValueExpression
    type: Type


@dataclass(frozen=True)
class Comparison:
    """A null-safe comparison of two values. Its result is never null: null equals null, and NaN equals NaN."""

    op: Op
    left: ValueExpression
    right: ValueExpression
    type: Type


ValueExpression: TypeAlias = FieldValue | Constant | Applied | Conditional | Comparison


@dataclass(frozen=True)
class Computed:
    """A comparison of a value that is computed from columns.

    Attributes
    ----------
    predicate
        The comparison, in the three-valued logic of all predicates. Its field id is 0, and its name is the value as
        text.
    ids
        Ids of the table's expressions (V4 draft) that compute the same value: statistics with these ids describe it.
    """

    predicate: Predicate
    value: ValueExpression
    ids: tuple[int, ...] = ()


Expression: TypeAlias = Predicate | Computed | Always | And | Or

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
    """Return a key that is equal for equal expressions. Types are included as text, as they may be unhashable."""
    match expression:
        case And(children) | Or(children):
            return type(expression).__name__, tuple(map(_key, children))
        case Predicate():
            return expression.field_id, expression.op, expression.literals, str(expression.type), expression.text
        case Computed():
            return expression.value, _key(expression.predicate)
    return expression


def negated(expression: Expression) -> Expression:
    """Return an expression that selects the rows for which this one is false (not those for which it is unknown).

    A filter that is unknown for every row (``x = null``) is bound to ``Always(False)``. Negated by this function, it
    would select every row instead of none. To negate such a filter, bind it with ``not`` instead.

    Raises
    ------
    ValueError
        A predicate with ``<``, ``<=``, ``>`` or ``>=`` has no type, so it is unknown whether NaN is possible.
    """
    match expression:
        case Always(value):
            return NEVER if value else ALWAYS
        case And(children):
            return any_of(*(negated(c) for c in children))
        case Or(children):
            return all_of(*(negated(c) for c in children))
        case Computed(predicate, value, ids):
            return on_value(negated(predicate), value, ids)
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
    """Yield the predicates on columns from left to right, without comparisons of computed values."""
    match expression:
        case And(children) | Or(children):
            for child in children:
                yield from predicates(child)
        case Predicate():
            yield expression


def computed(expression: Expression) -> Iterator[Computed]:
    """Yield the comparisons of computed values from left to right, without those in conditions of ``if_else``."""
    match expression:
        case And(children) | Or(children):
            for child in children:
                yield from computed(child)
        case Computed():
            yield expression


def on_value(expression: Expression, value: ValueExpression, ids: tuple[int, ...] = ()) -> Expression:
    """Return an expression whose predicates, all on one column, are applied to ``value`` instead of that column."""
    match expression:
        case And(children):
            return all_of(*(on_value(c, value, ids) for c in children))
        case Or(children):
            return any_of(*(on_value(c, value, ids) for c in children))
        case Predicate():
            name = value_text(value)
            if isinstance(value, FieldValue):
                return replace(expression, field_id=value.field_id, name=name)
            return Computed(replace(expression, field_id=0, name=name), value, ids)
    return expression


def columns_of(expression: Expression) -> dict[int, str]:
    """Return the columns that an expression needs: their names by field id, from left to right."""
    out: dict[int, str] = {}
    _collect(expression, out)
    return out


def _collect(node: Expression | ValueExpression, out: dict[int, str]) -> None:
    match node:
        case And(children) | Or(children):
            for child in children:
                _collect(child, out)
        case Predicate() | FieldValue():
            out.setdefault(node.field_id, node.name)
        case Computed():
            _collect(node.value, out)
        case Applied():
            for argument in node.arguments:
                _collect(argument, out)
        case Conditional():
            for part in (node.condition, node.when_true, node.when_false):
                _collect(part, out)
        case Comparison():
            _collect(node.left, out)
            _collect(node.right, out)


_SIGNS = {"!=": "<>"}


def value_text(value: ValueExpression) -> str:
    """Return a value as text for display: ``lower(name)``, ``bucket(16, id)``."""
    match value:
        case FieldValue(name=name):
            return name
        case Constant(value=constant):
            return "'" + constant.replace("'", "''") + "'" if isinstance(constant, str) else str(constant)
        case Comparison(op, left, right):
            sign = " is not distinct from " if op == "=" else f" {_SIGNS.get(op, op)} "
            return f"{value_text(left)}{sign}{value_text(right)}"
        case Conditional(condition, one, other):
            terms = [p.text or p.op for p in _leaves(condition)]
            return f"if_else({' … '.join(terms) or 'true'}, {value_text(one)}, {value_text(other)})"
    function, _, width = value.function.partition("[")
    arguments = [*([width.rstrip("]")] if width else []), *map(value_text, value.arguments)]
    return f"{function}({', '.join(arguments)})"


def _leaves(expression: Expression) -> Iterator[Predicate]:
    match expression:
        case And(children) | Or(children):
            for child in children:
                yield from _leaves(child)
        case Predicate():
            yield expression
        case Computed(predicate):
            yield predicate
