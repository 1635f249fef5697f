"""Format values as Java does for people (``Transform.toHumanString``) and in partition paths."""

from __future__ import annotations

import base64
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

import numpy as np

from iceexplore.arrow import PlainValue
from iceexplore.metadata.types._parameters import type_base
from iceexplore.metadata.types._types import Type
from iceexplore.metadata.values import _temporal as temporal
from iceexplore.metadata.values._points import point_text

__all__ = ["day_text", "format_value", "year_text"]

_BYTES = (bytes, bytearray, memoryview)


def format_value(type_: Type, value: PlainValue) -> str:
    """Format a value as Java's ``Transform.toHumanString`` of the identity transform.

    Parameters
    ----------
    value
        A value from Arrow or `decode_value`, or the stored integer; None gives ``null``.

    Returns
    -------
    str
        Base64 for bytes, coordinates for bounds of geometries (recognized by their length, which no geometry has), ISO
        8601 for times. Never raises: a value that does not fit is formatted as it is.
    """
    if value is None:
        return "null"
    base = type_base(type_)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        ordinal = int(value)
        if base == "date":
            return day_text(ordinal)
        if base == "time":
            return _clock(ordinal) if 0 <= ordinal < temporal.DAY_MICROS else str(ordinal)
        if base in temporal.TIMESTAMP_UNITS:
            return temporal.timestamp_text(ordinal, base)
        return str(ordinal)
    return _by_value(base, value)


def _by_value(base: str, value: PlainValue) -> str:
    match value:
        case bool() | np.bool_():
            return "true" if value else "false"
        case float() | np.floating():
            return _java_float(np.float32(value) if base == "float" else np.float64(value))
        case datetime() | np.datetime64() if base in temporal.TIMESTAMP_UNITS:
            return temporal.timestamp_text(temporal.units_of(value, base), base)
        case datetime() | Decimal() | UUID():
            return str(value)
        case date() | np.datetime64():
            return day_text(temporal.days_of(value))
        case time():
            return _clock(temporal.micros_of_time(value))
    if isinstance(value, _BYTES):
        raw = bytes(value)
        point = point_text(raw) if base in ("geometry", "geography") else None
        if point is not None:
            return point
        if base == "uuid" and len(raw) == 16:
            return str(UUID(bytes=raw))
        return base64.b64encode(raw).decode()
    return str(value)


def year_text(year: int) -> str:
    """Format a year with at least four characters."""
    # Java: String.format("%04d"), whose width counts the sign.
    return f"{year:04d}"


def day_text(days: int) -> str:
    """Format days since 1970-01-01 as ISO 8601."""
    year, month, day = temporal.civil_from_days(days)
    return f"{year_text(year)}-{month:02d}-{day:02d}"


def _clock(micros: int) -> str:
    """Format a time of day as Java's ``LocalTime.toString``, without trailing zero parts."""
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02d}"
    if fraction:
        text += f".{fraction // 1000:03d}" if fraction % 1000 == 0 else f".{fraction:06d}"
    return text


def _java_float(value: PlainValue) -> str:
    """Format like Java's ``Double.toString`` and ``Float.toString``: scientific except from 0.001 to 1e7."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    magnitude = abs(value)
    if magnitude == 0 or 1e-3 <= magnitude < 1e7:
        return str(np.format_float_positional(value, unique=True, trim="0"))
    mantissa, _, exponent = np.format_float_scientific(value, unique=True, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"
