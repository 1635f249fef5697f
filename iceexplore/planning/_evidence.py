"""What bounds and counts prove of a predicate: surely no row matches, surely every row does, or neither.

The rules are Iceberg's ``InclusiveMetricsEvaluator`` and ``StrictMetricsEvaluator``, columnar: a value per file. A null
count or bound is unknown and proves nothing. A null matches ``!=``, ``not in`` and ``not like``, and no other
comparison; so does NaN.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Evidence", "Predicate", "comparable", "may_match", "must_match", "satisfied"]

Mask: TypeAlias = pa.BooleanArray


@dataclass(frozen=True)
class Predicate:
    """A comparison of one column: ``op`` is one of ``<  <=  >  >=  =  !=  in  not-in  is-null  not-null  is-nan
    not-nan  starts-with  not-starts-with``; literals are Iceberg's stored values (days, microseconds, ...)."""

    field_id: int
    op: str
    literals: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """Bounds and counts of a column, a value per file; None as a whole where nothing is known."""

    lower: pa.Array
    upper: pa.Array
    value_count: pa.Array
    null_count: pa.Array
    nan_count: pa.Array

    @classmethod
    def of(cls, stats: pa.StructArray) -> Evidence:
        """From a column of `EntryBatch.stats`."""
        names = ("lower", "upper", "value_count", "null_count", "nan_count")
        return cls(*(pc.struct_field(stats, [stats.type.get_field_index(n)]) for n in names))

    @property
    def floating(self) -> bool:
        """Whether values may be NaN."""
        return bool(pa.types.is_floating(self.lower.type))

    def known_bounds(self) -> tuple[pa.Array, pa.Array]:
        """Bounds in a form that compares; NaN bounds (old ORC files have them) are unknown."""
        low, high = comparable(self.lower), comparable(self.upper)
        if self.floating:
            low, high = (pc.if_else(pc.is_nan(b), pa.scalar(None, b.type), b) for b in (low, high))
        return low, high

    def all_null(self) -> Mask:
        """Surely every value is null."""
        return _sure(pc.equal(self.value_count, self.null_count))

    def all_nan(self) -> Mask:
        """Surely every value is NaN."""
        return _sure(pc.equal(self.value_count, self.nan_count)) if self.floating else _sure(self.null_count, False)

    def no_null(self) -> Mask:
        """Surely no value is null."""
        return _sure(pc.equal(self.null_count, 0))

    def no_nan(self) -> Mask:
        """Surely no value is NaN."""
        return _sure(pc.equal(self.nan_count, 0)) if self.floating else pc.invert(_sure(self.null_count, False))


def comparable(values: pa.Array) -> pa.Array:
    """The values as a type that Arrow compares."""
    if pa.types.is_boolean(values.type):
        return values.cast(pa.uint8())
    if pa.types.is_fixed_size_binary(values.type):
        return values.cast(pa.binary())
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_temporal(values.type) else values


def _sure(mask: pa.Array, value: bool | None = None) -> Mask:
    """Unknown is false; or one value for all."""
    if value is not None:
        return pa.repeat(pa.scalar(value), len(mask))
    return pc.fill_null(mask, False)


def _literal(value: Any, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_uint8(kind):
        value = int(value)
    if pa.types.is_binary(kind) and hasattr(value, "bytes"):
        value = value.bytes  # a UUID
    if pa.types.is_decimal(kind):
        return pa.scalar(value)  # its own scale: the comparison finds a common one
    return pa.scalar(value, kind)


def _literals(predicate: Predicate, values: pa.Array) -> list[pa.Scalar]:
    return [_literal(v, values.type) for v in predicate.literals]


def _any(masks: Iterable[Mask], like: pa.Array) -> Mask:
    out = _sure(like, False)
    for mask in masks:
        out = pc.or_(out, mask)
    return out


def may_match(p: Predicate, e: Evidence) -> Mask:
    """False only where surely no row matches."""
    match p.op:
        case "is-null":
            return pc.invert(e.no_null())
        case "not-null":
            return pc.invert(e.all_null())
        case "is-nan":
            return pc.invert(pc.or_(e.no_nan(), e.all_null()))
        case "not-nan":
            return pc.invert(e.all_nan())
        case "!=" | "not-in":
            return _sure(e.null_count, True)
    low, high = e.known_bounds()
    literals = _literals(p, low)
    if p.op == "not-starts-with":
        prefix = literals[0].as_py()
        inside = pc.and_(_starts(low, prefix), _starts(high, prefix))
        return pc.invert(pc.and_(inside, e.no_null()))
    nothing = pc.or_(e.all_null(), e.all_nan())
    out = [nothing]
    match p.op:
        case "<":
            out.append(_sure(pc.greater_equal(low, literals[0])))
        case "<=":
            out.append(_sure(pc.greater(low, literals[0])))
        case ">":
            out.append(_sure(pc.less_equal(high, literals[0])))
        case ">=":
            out.append(_sure(pc.less(high, literals[0])))
        case "=" | "in":
            outside = [pc.or_(_sure(pc.greater(low, x)), _sure(pc.less(high, x))) for x in literals]
            out.append(pc.invert(_any((pc.invert(o) for o in outside), low)))
        case "starts-with":
            out.append(_apart(low, high, literals[0].as_py()))
    return pc.invert(_any(out, low))


def must_match(p: Predicate, e: Evidence) -> Mask:
    """True only where surely every row matches."""
    match p.op:
        case "is-null":
            return e.all_null()
        case "not-null":
            return e.no_null()
        case "is-nan":
            return e.all_nan()
        case "not-nan":
            return pc.or_(e.no_nan(), e.all_null())
    low, high = e.known_bounds()
    literals = _literals(p, low)
    nothing = pc.or_(e.all_null(), e.all_nan())
    match p.op:
        case "!=" | "not-in":
            apart = [pc.or_(_sure(pc.greater(low, x)), _sure(pc.less(high, x))) for x in literals]
            return pc.or_(nothing, pc.invert(_any((pc.invert(a) for a in apart), low)))
        case "not-starts-with":
            return pc.or_(nothing, _apart(low, high, literals[0].as_py()))
        case "<":
            found = pc.less(high, literals[0])
        case "<=":
            found = pc.less_equal(high, literals[0])
        case ">":
            found = pc.greater(low, literals[0])
        case ">=":
            found = pc.greater_equal(low, literals[0])
        case "=" | "in":
            found = _any((pc.and_(_sure(pc.equal(low, x)), _sure(pc.equal(high, x))) for x in literals), low)
        case _:  # starts-with
            prefix = literals[0].as_py()
            found = pc.and_(_starts(low, prefix), _starts(high, prefix))
    return pc.and_(_sure(found), pc.and_(e.no_null(), e.no_nan()))


def satisfied(p: Predicate, values: pa.Array) -> Mask:
    """Whether each value itself satisfies the predicate."""
    floating = pa.types.is_floating(values.type)
    nan = _sure(pc.is_nan(values)) if floating else _sure(values, False)
    null = values.is_null()
    match p.op:
        case "is-null":
            return null
        case "not-null":
            return pc.invert(null)
        case "is-nan":
            return nan
        case "not-nan":
            return pc.invert(nan)
    plain = comparable(values)
    literals = _literals(p, plain)
    match p.op:
        case "=" | "in":
            return _any((_sure(pc.equal(plain, x)) for x in literals), plain)
        case "!=" | "not-in":
            return pc.invert(_any((_sure(pc.equal(plain, x)) for x in literals), plain))
        case "starts-with":
            return _starts(plain, literals[0].as_py())
        case "not-starts-with":
            return pc.invert(_starts(plain, literals[0].as_py()))
    compare = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}[p.op]
    return pc.and_(_sure(compare(plain, literals[0])), pc.invert(nan))


def _starts(values: pa.Array, prefix: Any) -> Mask:
    return _sure(pc.starts_with(values, prefix))


def _apart(low: pa.Array, high: pa.Array, prefix: Any) -> Mask:
    """No value between the bounds begins with the prefix."""
    cut = pc.utf8_slice_codeunits if pa.types.is_string(low.type) else pc.binary_slice
    x = pa.scalar(prefix, low.type)
    return pc.or_(_sure(pc.greater(cut(low, 0, len(prefix)), x)), _sure(pc.less(cut(high, 0, len(prefix)), x)))
