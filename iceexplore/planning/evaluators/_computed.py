"""Compute the values of expressions, such as ``day(ts)``, on rows, with Arrow's compute functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import Applied, Conditional, Constant, Expression, FieldValue, ValueExpression
from iceexplore.metadata import Type, apply_function, arrow_type, type_base
from iceexplore.planning.evaluators._column_metrics import Mask, comparable, known

__all__ = ["compute"]

_LOCAL_TIMES = frozenset(("date", "timestamp", "timestamp_ns"))
_INSTANTS = frozenset(("timestamptz", "timestamptz_ns"))


def compute(
    value: ValueExpression,
    rows: int,
    column: Callable[[int, Type], AnyArray],
    selects: Callable[[Expression], Mask],
) -> AnyArray:
    """Compute the value of an expression in each row.

    Parameters
    ----------
    rows
        The number of rows.
    column
        A function that returns a column's values, given its field id and the type to return them in.
    selects
        A function that returns a mask of the rows in which the condition of a `Conditional` is true.

    Returns
    -------
    pyarrow.Array
        One value per row, of the Arrow type for the expression's Iceberg type (see `arrow_type`).
    """
    match value:
        case FieldValue(field_id, _, kind):
            return column(field_id, kind)
        case Constant(constant, kind):
            return build.repeat(_scalar(constant, kind), rows)
        case Applied(function, arguments):
            parts = [compute(a, rows, column, selects) for a in arguments]
            return apply_function(function, [a.type for a in arguments], parts)
        case Conditional(condition, one, other):
            first, second = (compute(v, rows, column, selects) for v in (one, other))
            return pc.if_else(pa.array(selects(condition)), first, second)
    left, right = (compute(v, rows, column, selects) for v in (value.left, value.right))
    return pa.array(_compared(value.op, left, right, value.left.type, value.right.type))


def _scalar(constant: object, kind: Type) -> pa.Scalar[pa.DataType]:
    """Convert a constant of type ``kind`` to an Arrow scalar.

    A date, a time or a timestamp is given as the integer that Iceberg stores for it: for a date, the days since
    1970-01-01.
    """
    wanted = arrow_type(kind)
    if pa.types.is_temporal(wanted):
        plain = pa.int32() if pa.types.is_date32(wanted) else pa.int64()
        return build.scalar(constant, plain).cast(wanted)
    return build.scalar(constant, wanted)


def _compared(op: str, left: AnyArray, right: AnyArray, one: Type, other: Type) -> Mask:
    """Return the result of the comparison ``left op right`` in each row.

    Unlike in SQL, the result is never null: null equals only null, and NaN equals only NaN. Null and NaN are neither
    less nor greater than any value.

    Parameters
    ----------
    op
        ``=``, ``<``, ``<=``, ``>`` or ``>=``.
    one, other
        The Iceberg types of ``left`` and ``right``.
    """
    a, b = _aligned(left, right, one, other)
    null = np.asarray(a.is_null()) & np.asarray(b.is_null())
    nan = np.zeros(len(a), np.bool_)
    if pa.types.is_floating(a.type):
        nan = known(pc.is_nan(a)) & known(pc.is_nan(b))
    same: Mask = null | nan | known(pc.equal(a, b))
    match op:
        case "=":
            return same
        case "<" | "<=":
            found = known(pc.less(a, b))
        case _:
            found = known(pc.greater(a, b))
    return found | same if op in ("<=", ">=") else found


def _aligned(left: AnyArray, right: AnyArray, one: Type, other: Type) -> tuple[AnyArray, AnyArray]:
    """Convert two arrays to a common type, in which Arrow can compare their values.

    ``one`` and ``other`` are the Iceberg types of ``left`` and ``right``; one of them can be promoted to the other.
    Float becomes double. If the two types differ and are types of dates or timestamps, both become nanoseconds since
    1970. For all other types, see `comparable`: int and long, for example, become int64.
    """
    bases = {type_base(one), type_base(other)}
    if len(bases) > 1 and (bases <= _LOCAL_TIMES or bases <= _INSTANTS):
        return _nanoseconds(left), _nanoseconds(right)
    if bases & {"float", "double"}:
        return left.cast(pa.float64(), safe=False), right.cast(pa.float64(), safe=False)
    return comparable(left), comparable(right)


def _nanoseconds(values: AnyArray) -> AnyArray:
    """Convert dates or timestamps to nanoseconds since 1970, as decimals.

    In int64, the nanoseconds would overflow for dates and microsecond timestamps after the year 2262.
    """
    unit = 86_400_000_000_000 if pa.types.is_date32(values.type) else 1 if values.type.unit == "ns" else 1000
    count = comparable(values).cast(pa.decimal128(19, 0))
    return pc.multiply(count, build.scalar(unit, pa.decimal128(15, 0)))
