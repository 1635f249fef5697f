"""Apply partition transforms to single stored values (spec, "Partition Transforms"), without overflow."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from iceexplore.metadata.transforms._names import transform_parts
from iceexplore.metadata.types._parameters import decimal_parameters, type_base
from iceexplore.metadata.types._types import Type
from iceexplore.metadata.values._decimals import decimal_of, unscaled

__all__ = ["transform_of", "wrapped_result"]

_DAY = 86_400
_INSTANTS = {"timestamp": 10**6, "timestamptz": 10**6, "timestamp_ns": 10**9, "timestamptz_ns": 10**9}


@lru_cache(maxsize=256)
def transform_of(transform: str, source: Type) -> Callable[[Any], Any] | None:
    """Return a function from a stored value (days, microseconds, ...) to the transform's stored result.

    None where the transform is unknown, does not accept the type, or has no hash for it. Numbers beyond the type's
    range are accepted: the successor of the greatest value can be truncated, too.
    """
    name, width = transform_parts(transform)
    base = type_base(source)
    match name:
        case "identity":
            return lambda value: value
        case "truncate" if width:
            return _truncate(width, base, source)
        case "bucket" if width:
            return _bucket(width, source)
        case "year" | "month" | "day" | "hour" if base in _INSTANTS:
            unit = _INSTANTS[base]
            if name == "hour":
                return lambda value: value // (3600 * unit)
            days = _of_days(name)
            return lambda value: days(value // (_DAY * unit))
        case "year" | "month" | "day" if base == "date":
            return _of_days(name)
    return None


def _of_days(name: str) -> Callable[[int], int]:
    if name == "day":
        return lambda days: days
    return _year if name == "year" else _month


def _month(days: int) -> int:
    """Return the months since 1970-01 (Hinnant, "chrono-compatible date algorithms")."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    return (era * 400 + year_of_era - 1970) * 12 + (5 * day_of_year + 2) // 153 + 2  # the year begins in March


def _year(days: int) -> int:
    return _month(days) // 12


def _truncate(width: int, base: str, source: Type) -> Callable[[Any], Any] | None:
    match base:
        case "int" | "long":
            return lambda value: value - value % width
        case "string" | "binary" | "fixed":
            return lambda value: value[:width]
        case "decimal":
            parameters = decimal_parameters(source)
            if parameters is None:
                return None
            scale = parameters[1]

            def cut(value: Decimal) -> Decimal:
                number = unscaled(value, scale)
                return decimal_of(number - number % width, scale)

            return cut
    return None


def wrapped_result(transform: str, source: Type) -> int | None:
    """Return about the greatest result of Java's ``truncate`` for the least values, which overflow (``TruncateUtil``).

    None where nothing overflows because the width divides the least value, and for other transforms and types.
    """
    name, width = transform_parts(transform)
    bits = {"int": 32, "long": 64}.get(type_base(source))
    if name != "truncate" or not width or bits is None:
        return None
    lowest = -(1 << (bits - 1))
    over = lowest % width
    return lowest - over + (1 << bits) if over else None


def _bucket(width: int, source: Type) -> Callable[[Any], Any] | None:
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import BinaryType, NestedField

    transform: BucketTransform[Any] = BucketTransform(width)
    parameters = decimal_parameters(source)
    if parameters is not None:
        # The unscaled value's minimal bytes are hashed, at the column's scale, not the literal's.
        scale, hashed = parameters[1], transform.transform(BinaryType())

        def of_decimal(value: Decimal) -> Any:
            number = unscaled(value, scale)
            bits = (number if number >= 0 else ~number).bit_length()
            return hashed(number.to_bytes(bits // 8 + 1, "big", signed=True))

        return of_decimal
    try:
        field = {"id": 1, "name": "x", "required": False, "type": str(source)}
        found: Callable[[Any], Any] = transform.transform(NestedField.model_validate(field).field_type)
    except ValueError:
        return None  # the spec defines no hash for this type
    return found
