"""Convert filters that Spark pushes down to the data source, if iceexplore would select exactly the same rows.

Spark evaluates all other filters itself, after reading.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from iceexplore.arrow import PlainValue
from iceexplore.expressions import Expression, Op, Predicate, any_of
from iceexplore.metadata import NestedField, StructType, decimal_of, decimal_parameters, type_base, unscaled
from iceexplore.reading import METADATA_COLUMNS, Output

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter as SparkFilter

__all__ = ["taken_filter"]

_COMPARISONS: Mapping[str, Op] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_INTEGERS = {"int": 32, "long": 64}
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_RESERVED = frozenset(f.field_id for f in METADATA_COLUMNS)


def taken_filter(pushed: SparkFilter, outputs: Sequence[Output]) -> Expression | None:
    """Return a filter of ``pyspark.sql.datasource`` as an expression; None if Spark has to evaluate it.

    In Spark, NaN is greater than every number and equal to itself, and 0.0 equals -0.0. For floating-point columns, the
    expression therefore includes NaN where Spark's comparison does; comparisons with NaN or zero are left to Spark.

    Parameters
    ----------
    outputs
        The columns that Spark sees.
    """
    negated = type(pushed).__name__ == "Not"
    inner = pushed.child if negated else pushed
    field = _field(inner.attribute, outputs)
    return None if field is None else _meaning(inner, field, negated)


def _field(attribute: Sequence[str], outputs: Sequence[Output]) -> NestedField | None:
    """Return the column that Spark names (a column of the result, then fields of structs); None if not usable."""
    found = next((o.field for o in outputs if o.name == attribute[0]), None)
    if found is None or found.field_id in _RESERVED:
        return None
    for name in attribute[1:]:
        children = found.type.fields if isinstance(found.type, StructType) else ()
        found = next((f for f in children if f.name == name), None)
        if found is None:
            return None
    return found


def _meaning(pushed: SparkFilter, field: NestedField, negated: bool) -> Expression | None:
    kind, base = type(pushed).__name__, type_base(field.type)
    if kind in ("IsNull", "IsNotNull"):
        return _predicate(field, "is-null" if (kind == "IsNull") != negated else "not-null")
    if kind == "StringStartsWith":
        value = _literal(field, pushed.value)
        if base != "string" or not isinstance(value, str):
            return None
        return _predicate(field, "not-starts-with" if negated else "starts-with", value)
    if kind == "In":
        values = [_literal(field, v) for v in pushed.value]
        if not values or any(v is None for v in values):
            return None
        return _predicate(field, "not-in" if negated else "in", *dict.fromkeys(values))
    op = _COMPARISONS.get(kind)
    value = None if op is None else _literal(field, pushed.value)
    if op is None or value is None or (negated and op != "=") or (base == "boolean" and op != "="):
        return None
    if negated:
        other = _predicate(field, "!=", value)
        return any_of(other, _predicate(field, "is-null")) if kind == "EqualNullSafe" else other
    made = _predicate(field, op, value)
    if base in ("float", "double") and op in (">", ">="):
        return any_of(made, _predicate(field, "is-nan"))
    return made


def _predicate(field: NestedField, op: Op, *literals: Any) -> Predicate:
    shown = ", ".join(map(repr, literals))
    text = f"{field.name} {op}{f' {shown}' if shown else ''}"
    return Predicate(field.field_id, op, literals, field.name, field.type, text)


def _literal(field: NestedField, value: PlainValue) -> PlainValue:
    """Return the stored value of a literal; None if its type differs or Spark compares such values differently."""
    base = type_base(field.type)
    if base == "boolean":
        return value if isinstance(value, bool) else None
    if base in _INTEGERS:
        fits = isinstance(value, int) and not isinstance(value, bool)
        return value if fits and -(1 << (_INTEGERS[base] - 1)) <= value < 1 << (_INTEGERS[base] - 1) else None
    if base in ("float", "double"):
        return value if isinstance(value, float) and value == value and value != 0.0 else None
    if base == "string":
        return value if isinstance(value, str) else None
    if base == "date":
        plain = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        return (value - _EPOCH.date()).days if plain else None
    if base == "timestamp":
        return (value - _EPOCH) // _MICROSECOND if isinstance(value, dt.datetime) and value.tzinfo is None else None
    if base == "timestamptz":
        aware = isinstance(value, dt.datetime) and value.tzinfo is not None
        return (value - _EPOCH_UTC) // _MICROSECOND if aware else None
    parameters = decimal_parameters(field.type)
    if parameters is not None and isinstance(value, Decimal) and value.is_finite():
        precision, scale = parameters
        exact = decimal_of(unscaled(value, scale), scale)
        return exact if exact == value and len(exact.as_tuple().digits) <= precision else None
    return None
