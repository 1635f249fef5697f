"""Convert typed text, in the format of the cells, to a value for comparison with a column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyScalar
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.widgets.grid._query import Filter

__all__ = ["FilterError", "compared"]

_LEAST, _MOST = -(2**63), 2**63 - 1
_DIGITS = 25
_COMPARE = {"=": pc.equal, "<": pc.less, ">": pc.greater}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d{1,9})?))?", re.ASCII)
_EPOCH = date(1970, 1, 1)


class FilterError(OptionError):
    """An error for text that cannot be compared with a column's values, shown beside the filter."""


def compared(column: AnyArray, one: Filter, name: str) -> pa.BooleanArray:
    """Return which values are equal to, less or greater than the filter's value.

    Raises
    ------
    FilterError
        The text is not a value of the column's type, or the type has no comparison.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return pa.array(np.zeros(len(column), dtype=np.bool_))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if one.op == "=":
            return pc.equal(pc.utf8_lower(column), one.value.lower())
        return _COMPARE[one.op](column, one.value)
    what, value_of = _reading(kind, name)
    text = one.value.strip()
    try:
        value = value_of(text, one.op)
    except (ValueError, KeyError, TypeError, ArithmeticError, pa.ArrowException) as error:
        raise FilterError(f"{text[:100]!r} does not fit {name[:100]!r}, which has {what}") from error
    if isinstance(value, bool):
        return pc.and_(column.is_valid(), value)
    if isinstance(value, float) and math.isnan(value):
        return pc.is_nan(column) if one.op == "=" else pc.and_(column.is_valid(), False)
    mask: pa.BooleanArray = _COMPARE[one.op](_comparable(column), value)
    return mask


def _reading(kind: pa.DataType, name: str) -> tuple[str, Callable[[str, str], Any]]:
    """Return a description of a type's values, and a function from a text and an operator to a value."""
    if pa.types.is_integer(kind):
        return "integers", lambda text, op: _whole_number(Decimal(_plain(text)), op)
    if pa.types.is_floating(kind):
        return "numbers", lambda text, _: float(_plain(text))
    if pa.types.is_decimal(kind):
        return "numbers", lambda text, _: _decimal(_plain(text))
    if pa.types.is_boolean(kind):
        return "the values true and false", lambda text, _: pa.scalar({"true": True, "false": False}[text.lower()])
    if pa.types.is_timestamp(kind):
        return "times, such as 2024-05-01 10:30:00", lambda text, op: _whole_number(_moment(text, kind.unit), op)
    if pa.types.is_time(kind):
        return "times of day, such as 10:30:00", lambda text, op: _whole_number(_time(text, kind.unit), op)
    if pa.types.is_date32(kind):
        return "dates, such as 2024-05-01", lambda text, op: _whole_number((date.fromisoformat(text) - _EPOCH).days, op)
    if isinstance(kind, pa.UuidType):
        return "UUIDs, such as f79c3e09-677c-4bbd-a479-3f349cb785e7", lambda text, _: UUID(text).bytes
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "bytes in hexadecimal, such as 0x01ff", lambda text, _: bytes.fromhex(text.lower().removeprefix("0x"))
    if pa.types.is_nested(kind):
        raise FilterError(f"{name[:100]!r} has nested values: use the operator contains")
    return f"values of the type {str(kind)[:60]}", lambda text, _: pa.scalar(text).cast(kind)


def _comparable(column: AnyArray) -> AnyArray:
    """Return the column in the types used for comparison: times as stored integers, bytes of any length."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return column.view(pa.int64())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return column.view(pa.int32())
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(kind) else column


def _plain(text: str) -> str:
    return text.replace(",", "")


def _whole_number(value: Decimal | Fraction | int, op: str) -> pa.Int64Scalar | bool:
    """Return an integer to compare with, or a bool if the result is the same for all 64-bit integers."""
    if isinstance(value, Decimal):
        if value.is_nan():
            raise ValueError(value)
        if not value.is_finite() or value.adjusted() > _DIGITS:
            return (op == "<") == (value > 0) and op != "="
    whole = math.ceil(value) if op == "<" else math.floor(value)
    if op == "=" and whole != value:
        return False
    if _LEAST <= whole <= _MOST:
        return pa.scalar(whole, pa.int64())
    return (op == "<") == (value > 0) and op != "="


def _decimal(text: str) -> AnyScalar:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(text)
    return pa.scalar(value)


def _moment(text: str, unit: str) -> Fraction:
    """Return a time since the epoch in this unit, for any year; without an offset it is in UTC."""
    import pandas as pd

    found = pd.Timestamp(text).asm8
    if np.isnat(found):
        raise ValueError(text)
    given, _ = np.datetime_data(found.dtype)
    return Fraction(int(found.view(np.int64)) * _PER_SECOND[unit], _PER_SECOND[given])


def _time(text: str, unit: str) -> Fraction:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    hours, minutes, seconds = int(found[1]), int(found[2]), Fraction(found[3] or 0)
    if hours > 23 or minutes > 59 or seconds >= 60:
        raise ValueError(text)
    return (hours * 3600 + minutes * 60 + seconds) * _PER_SECOND[unit]
