"""Project predicates on columns to predicates on partition values (spec, "Scan Planning"), by operator and literals.

This package cannot import the classes of predicates (``expressions``, which has them, imports this package), so a
predicate is represented by its operator and literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

from iceexplore.metadata.types._types import Type

__all__ = ["Op", "Projection", "distinct", "project_ordered"]

#: The operators of predicates.
Op: TypeAlias = Literal[
    "<", "<=", ">", ">=", "=", "!=", "in", "not-in", "is-null", "not-null", "is-nan", "not-nan", "starts-with",
    "not-starts-with",
]  # fmt: skip


class Projection(NamedTuple):
    """A predicate on a partition value: its operator, its stored literals, and their type."""

    op: Op
    literals: tuple[Any, ...]
    type: Type


def distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the values without repetitions, in their order."""
    return tuple(dict.fromkeys(values))


def project_ordered(
    op: Op, literals: tuple[Any, ...], apply: Callable[[Any], Any], kind: Type, *, strict: bool
) -> Projection | None:
    """Project through an order-preserving transform of whole numbers (Java: ``ProjectionUtil.truncateLong``).

    Parameters
    ----------
    apply
        The function that transforms a literal. It is also called with the literal's neighbours, which may be outside
        the source type's range.
    kind
        The type of the resulting literals.
    strict
        See `Transform.project`.
    """
    x: Any = literals[0] if literals else None
    if strict:
        match op:
            case "<":
                return Projection("<", (apply(x),), kind)
            case "<=":
                return Projection("<", (apply(x + 1),), kind)
            case ">":
                return Projection(">", (apply(x),), kind)
            case ">=":
                return Projection(">", (apply(x - 1),), kind)
            case "!=" | "not-in":
                return Projection(op, distinct(map(apply, literals)), kind)
        return None
    match op:
        case "<":
            return Projection("<=", (apply(x - 1),), kind)
        case "<=":
            return Projection("<=", (apply(x),), kind)
        case ">":
            return Projection(">=", (apply(x + 1),), kind)
        case ">=":
            return Projection(">=", (apply(x),), kind)
        case "=" | "in":
            return Projection(op, distinct(map(apply, literals)), kind)
    return None
