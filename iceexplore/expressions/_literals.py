"""Locate a literal among the values that a column can hold.

Every comparison is exact: the literal is not rounded to the column's type. If the column cannot have the literal as a
value (``1.005`` for a ``decimal(9,2)``, ``3000000000`` for an int), comparisons with the literal become comparisons
with the nearest values below and above it. SQL's own conversions apply where they define the meaning:

- A number is converted to the nearest double before it is compared with a ``double`` or ``float``. Values of a
  ``float`` column are then compared as doubles, as in Spark: no float equals ``0.1``, while ``0.1F`` and
  ``cast(0.1 as float)`` are floats.
- In a comparison of a date with a timestamp, the date means its midnight.
- In a comparison with a timestamp with zone, a timestamp without zone is in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

import numpy as np

from iceexplore.arrow import PlainValue
from iceexplore.expressions._temporal_literals import DAY, read_date, read_time, read_timestamp
from iceexplore.expressions._unbound import Value
from iceexplore.metadata import Type, decimal_parameters, fixed_length, type_base

__all__ = ["COMPARABLE", "Cut", "locate"]

#: Types whose values can be compared with literals.
COMPARABLE = frozenset(
    (
        "binary", "boolean", "date", "decimal", "double", "fixed", "float", "int", "long", "string", "time",
        "timestamp", "timestamp_ns", "timestamptz", "timestamptz_ns", "uuid",
    )
)  # fmt: skip
_RANGES = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_DOUBLE_MAX = float(np.finfo(np.float64).max)
_KINDS = {"text": "text", "bytes": "binary literal", "float": "number", "stored": "number", "infinity": "number"}
_NAN = "NaN cannot be compared: write isnan(x)"


@dataclass(frozen=True, slots=True)
class Cut:
    """The position of a literal among the values that a column can have.

    If the literal is one of them, ``exact`` is True, and ``below`` and ``above`` are this value. Otherwise, they are
    the nearest values below and above the literal, or None if there is none.
    """

    below: Any
    above: Any
    exact: bool = False


def locate(value: Value, kind: Type) -> Cut:
    """Locate a literal other than null among the values of a type.

    Raises
    ------
    ValueError
        The literal cannot be compared with the type; the message says why, and what to write.
    """
    base = type_base(kind)
    if value.kind == "nan":
        raise ValueError(_NAN)
    match base:
        case "int" | "long":
            return _whole(_number(value), *_RANGES[base])
        case "decimal":
            return _decimal(_number(value), kind)
        case "float" | "double":
            return _floating(value, base == "float")
        case "date":
            return _ratio(*_days(value), *_RANGES["int"])
        case "time":
            nanos = value.value * 1000 if value.kind == "stored" else _temporal(value, "time", read_time, "'14:30:00'")
            return _ratio(nanos, 1000, 0, DAY // 1000 - 1)
        case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            unit = 1 if base.endswith("_ns") else 1000
            nanos = value.value * unit if value.kind == "stored" else _nanos(value, zoned="tz" in base)
            return _ratio(nanos, unit, *_RANGES["long"])
        case "string":
            return _at(_text(value))
        case "boolean":
            return _at(_boolean(value))
        case "uuid" | "binary" | "fixed":
            return _at(_bytes(value, 16 if base == "uuid" else fixed_length(kind), base))
    raise ValueError(f"values of type {base} cannot be compared: use is null or is not null")


def _at(value: PlainValue) -> Cut:
    return Cut(value, value, True)


def _only(value: Value, example: str, *kinds: str) -> PlainValue:
    if value.kind not in kinds:
        raise ValueError(f"a {_KINDS.get(value.kind, value.kind)} cannot be compared with it; write {example}")
    return value.value


def _number(value: Value) -> Decimal:
    """Return a literal as a number, which may be infinite. Raises `ValueError` for any other literal."""
    if value.kind == "text":
        try:
            found = Decimal(value.value.strip())
        except InvalidOperation:
            raise ValueError(f"{value.value!r} is not a number") from None
        if found.is_nan():
            raise ValueError(_NAN)
        return found
    found = _only(value, "a number like 5", "number", "float", "stored", "infinity")
    if value.kind == "infinity":
        return Decimal(found) * Decimal("Infinity")
    return found if isinstance(found, Decimal) else Decimal(repr(found))


def _whole(value: Decimal, low: int, high: int) -> Cut:
    if value > high:
        return Cut(high, None)
    if value < low:
        return Cut(None, low)
    floor = math.floor(value)
    return _at(floor) if value == floor else Cut(floor, floor + 1)


def _ratio(count: int, size: int, low: int, high: int) -> Cut:
    """Locate ``count / size`` among the integers of a range."""
    floor, rest = divmod(count, size)
    if floor > high or (floor == high and rest):
        return Cut(high, None)
    if floor < low:
        return Cut(None, low)
    return Cut(floor, floor + 1) if rest else _at(floor)


def _decimal(value: Decimal, kind: Type) -> Cut:
    parameters = decimal_parameters(kind)
    if parameters is None:
        raise ValueError(f"{kind} is not a decimal type that the spec allows")
    precision, scale = parameters
    limit = 10**precision - 1
    # Change only the exponent, because Decimal's own arithmetic rounds to the context's precision.
    cut = _whole(_shifted(value, scale), -limit, limit)
    below, above = (None if n is None else _shifted(Decimal(n), -scale) for n in (cut.below, cut.above))
    return Cut(below, above, cut.exact)


def _shifted(value: Decimal, places: int) -> Decimal:
    sign, digits, exponent = value.as_tuple()
    return value if isinstance(exponent, str) else Decimal((sign, digits, exponent + places))


def _floating(value: Value, single: bool) -> Cut:
    number = _number(value)
    double = float(number) + 0.0  # -0.0 equals 0.0
    if math.isinf(double) and number.is_finite():
        double = math.copysign(_DOUBLE_MAX, double)
        below, above = (double, math.inf) if double > 0 else (-math.inf, double)
        if not single:
            return Cut(below, above)
    if not single:
        return _at(double)
    with np.errstate(over="ignore"):
        near = np.float32(double)
    if float(near) == double or (value.kind == "float" and np.isfinite(near)):
        return _at(float(near) + 0.0)
    up = float(near) > double
    other = float(np.nextafter(near, np.float32(-math.inf if up else math.inf)))
    return Cut(other, float(near)) if up else Cut(float(near), other)


def _days(value: Value) -> tuple[int, int]:
    """Return a date or timestamp as a number of units since 1970-01-01, and the number of these units per day."""
    if value.kind == "stored":
        return value.value, 1
    if value.kind in ("timestamp", "timestamptz"):
        return value.value, DAY
    if value.kind == "text":
        try:
            return read_date(value.value), 1
        except ValueError as error:
            reason = str(error)
        try:
            read_timestamp(value.value)
        except ValueError:
            raise ValueError(reason) from None
        raise ValueError("a date has no time: write only the date, or timestamp '...' to compare with its midnight")
    return _only(value, "date '2024-05-17'", "date"), 1


def _temporal(value: Value, kind: str, read: Callable[[str], int], example: str) -> int:
    found = _only(value, f"{kind} {example}", kind, "text")
    return read(found) if value.kind == "text" else int(found)


def _nanos(value: Value, zoned: bool) -> int:
    if value.kind == "date":
        return int(value.value) * DAY
    found, given = _only(value, "timestamp '2024-05-17 14:30:00'", "timestamp", "timestamptz", "text"), value.kind
    if given == "text":
        found, with_zone = read_timestamp(found)
        given = "timestamptz" if with_zone else "timestamp"
    if given == "timestamptz" and not zoned:
        raise ValueError("the column has no time zone: write the timestamp without one")
    return int(found)


def _text(value: Value) -> str:
    found = str(_only(value, "'abc'", "text"))
    if not found.isascii() and any("\ud800" <= c <= "\udfff" for c in found):
        raise ValueError("the string contains a lone surrogate, which UTF-8 cannot encode")
    return found


def _boolean(value: Value) -> bool:
    if value.kind == "text" and value.value.strip().lower() in ("true", "false"):
        return bool(value.value.strip().lower() == "true")
    return bool(_only(value, "true or false", "boolean"))


def _bytes(value: Value, length: int | None, base: str) -> bytes:
    if value.kind == "text" and base == "uuid":
        try:
            return UUID(value.value.strip()).bytes
        except ValueError:
            raise ValueError(f"{value.value!r} is not a UUID") from None
    example = "'f79c3e09-677c-4bbd-a479-3f349cb785e7'" if base == "uuid" else "x'00ff'"
    found = bytes(_only(value, example, "bytes", "uuid"))
    if length is not None and len(found) != length:
        raise ValueError(f"the column's values have {length} bytes, but the literal has {len(found)}")
    return found
