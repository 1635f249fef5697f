"""Project a predicate on a column to a partition field derived from that column (spec, "Scan Planning").

The inclusive projection is true for the partition of every row that satisfies the predicate: where it is false, no row
matches. The strict projection is false for the partition of every row that does not: where it is true, all rows match.
They follow Iceberg's ``Transform.project`` and ``projectStrict``, and are tighter where a transform keeps the whole
value: the day of a date, and text or bytes not longer than the width of a truncation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iceexplore.expressions import Op, Predicate
from iceexplore.metadata import (
    PrimitiveType,
    Type,
    decimal_of,
    decimal_parameters,
    transform_of,
    transform_parts,
    type_base,
    unscaled,
)

__all__ = ["project"]

_INT = PrimitiveType("int")


def project(p: Predicate, transform: str, source: Type, *, strict: bool) -> Predicate | None:
    """Return the predicate on the partition value that a predicate on the source column implies, or is implied by.

    Parameters
    ----------
    transform
        Transform in the spec's notation. An unknown transform and ``void`` have no projection.
    source
        The column type in which the literals are stored.
    strict
        False: the result holds for the tuple of every matching row. True: it holds only for tuples whose rows all
        match.

    Returns
    -------
    Predicate or None
        A predicate with the field id and name of ``p`` and the type of its literals: the source's, or ``int`` for
        buckets and times. None if nothing can be derived.
    """
    name, width = transform_parts(transform)
    base = type_base(source)
    apply = None if name == "void" else transform_of(transform, source)
    if apply is None:
        return None
    whole = name == "identity" or (name == "day" and base == "date")
    if p.op in ("is-null", "not-null") or whole:
        return _of(p, p.op, p.literals, source if whole else _INT)
    if p.op in ("is-nan", "not-nan"):
        return None  # floating-point columns have only identity partition fields
    if name == "bucket":
        wanted = ("!=", "not-in") if strict else ("=", "in")
        return _of(p, p.op, _distinct(map(apply, p.literals)), _INT) if p.op in wanted else None
    if name == "truncate" and base in ("string", "binary", "fixed"):
        return _prefix(p, width or 0, source, strict)
    if base == "decimal":
        return _decimal(p, source, width or 1, strict)
    out = _ordered(p, apply, strict, source if name == "truncate" else _INT)
    if out is None:
        return None
    return _within(out, source) if name == "truncate" else _before_1970(out, strict)


def _of(p: Predicate, op: Op, literals: Any, kind: Type) -> Predicate:
    return Predicate(p.field_id, op, tuple(literals), p.name, kind)


def _distinct(values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _ordered(p: Predicate, apply: Callable[[Any], Any], strict: bool, kind: Type) -> Predicate | None:
    """Project on an order-preserving transform of integers (Java: ``ProjectionUtil.truncateLong``)."""
    x: Any = p.literals[0] if p.literals else None
    if strict:
        match p.op:
            case "<":
                return _of(p, "<", (apply(x),), kind)
            case "<=":
                return _of(p, "<", (apply(x + 1),), kind)
            case ">":
                return _of(p, ">", (apply(x),), kind)
            case ">=":
                return _of(p, ">", (apply(x - 1),), kind)
            case "!=" | "not-in":
                return _of(p, p.op, _distinct(map(apply, p.literals)), kind)
        return None
    match p.op:
        case "<":
            return _of(p, "<=", (apply(x - 1),), kind)
        case "<=":
            return _of(p, "<=", (apply(x),), kind)
        case ">":
            return _of(p, ">=", (apply(x + 1),), kind)
        case ">=":
            return _of(p, ">=", (apply(x),), kind)
        case "=" | "in":
            return _of(p, p.op, _distinct(map(apply, p.literals)), kind)
    return None


def _decimal(p: Predicate, source: Type, width: int, strict: bool) -> Predicate | None:
    """Project via the unscaled integers of decimals, because Python's decimal arithmetic rounds to 28 digits."""
    parameters = decimal_parameters(source)
    if parameters is None:
        return None
    scale = parameters[1]
    numbers = [unscaled(v, scale) for v in p.literals]
    if any(decimal_of(n, scale) != v for n, v in zip(numbers, p.literals, strict=True)):
        return None  # finer than the column's scale: the next value is not one step away
    out = _ordered(_of(p, p.op, numbers, source), lambda n: n - n % width, strict, source)
    if out is None or any(abs(n) >= 10**38 for n in out.literals):
        return None
    return _of(out, out.op, (decimal_of(n, scale) for n in out.literals), source)


def _prefix(p: Predicate, width: int, source: Type, strict: bool) -> Predicate | None:
    """Project on truncated text (in code points) or bytes: a result shorter than the width is the whole value."""
    x = p.literals[0] if p.literals else ""
    cut, short, fits = x[:width], len(x) < width, len(x) <= width
    match p.op:
        case "starts-with":
            if short:
                return _of(p, "starts-with", (x,), source)
            return _of(p, "=", (cut,), source) if fits or not strict else None
        case "not-starts-with":
            if short:
                return _of(p, "not-starts-with", (x,), source)
            return _of(p, "!=", (cut,), source) if fits or strict else None
        case "=" | "in":
            if strict:
                whole = [v for v in p.literals if len(v) < width]
                return _of(p, "in", whole, source) if whole else None
            return _of(p, p.op, _distinct(v[:width] for v in p.literals), source)
        case "!=" | "not-in":
            if strict:
                return _of(p, p.op, _distinct(v[:width] for v in p.literals), source)
            whole = [v for v in p.literals if len(v) < width]
            return _of(p, "not-in", whole, source) if whole else None
        case "<":
            # A prefix is never above its value: below x exactly as the value is, if x itself is not cut off.
            return _of(p, "<" if strict or fits else "<=", (cut,), source)
        case "<=":
            if strict:
                return _of(p, "<=" if short else "<", (cut,), source)
            return _of(p, "<=", (cut,), source)
        case ">":
            return _of(p, ">" if strict or short else ">=", (cut,), source)
        case ">=":
            return _of(p, ">=" if not strict or fits else ">", (cut,), source)
    return None


def _within(p: Predicate, source: Type) -> Predicate | None:
    """Drop the projection if truncation goes below the type's lowest value, where Java's integers wrap around.

    Partition values that wrapped around are ignored; see `believed`.
    """
    lowest = -(2**31) if type_base(source) == "int" else -(2**63)
    return None if any(v < lowest for v in p.literals) else p


def _before_1970(p: Predicate, strict: bool) -> Predicate:
    """Widen a projection for old files: Iceberg up to 0.10 wrote times before 1970 one unit too high.

    It did so unless the time was a whole unit. Java: ``ProjectionUtil.fixInclusiveTimeProjection`` and
    ``fixStrictTimeProjection``.
    """
    x: Any = p.literals[0] if p.literals else 0
    match p.op:
        case "<" | "<=" if not strict and x < 0:
            return _of(p, p.op, (x + 1,), _INT)
        case ">" | ">=" if strict and x <= 0:
            return _of(p, p.op, (x + 1,), _INT)
        case "=" | "in" | "!=" | "not-in" if any(v < 0 for v in p.literals):
            wide = _distinct(v + more for v in p.literals for more in ((0, 1) if v < 0 else (0,)))
            return _of(p, "in" if p.op in ("=", "in") else "not-in", wide, _INT)
    return p
