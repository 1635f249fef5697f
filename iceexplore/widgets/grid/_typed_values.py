"""Parse filters as users type them, with operators, units and ranges, and apply them to a column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyScalar, DynamicType
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.widgets.grid._query import Filter
from iceexplore.widgets.grid._text_match import contains
from iceexplore.widgets.grid._view import Look

__all__ = ["Condition", "FilterError", "understood"]

_LEAST, _MOST = -(2**63), 2**63 - 1
_DIGITS = 25
_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d{1,9})?))?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_EPOCH = date(1970, 1, 1)
#: An operator at the beginning of what is typed.
_OPERATOR = re.compile(r"\s*(<=|>=|!=|<>|==|=|<|>|≤|≥|≠)\s*(.*)", re.DOTALL)
_SAME = {"<>": "!=", "==": "=", "≤": "<=", "≥": ">=", "≠": "!="}
#: A number and its unit.
_NUMBER = re.compile(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-zµ]*)", re.IGNORECASE | re.ASCII)
#: Text that may become a number when more is typed, and so is reported as unfinished.
_BEGUN = re.compile(r"[+-]?\.?|[+-]?(?:\d[\d,_]*\.?\d*|\.\d+)e[+-]?", re.IGNORECASE | re.ASCII)
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_PREFIXES |= {f"{prefix}i": 1024**power for power, prefix in enumerate("kmgtp", start=1)}
_BYTES = _PREFIXES | {f"{prefix}b": size for prefix, size in _PREFIXES.items()} | {"byte": 1, "bytes": 1}
_DURATIONS = {"ms": 1, "s": 1000, "sec": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATIONS |= {"": 1, "m": 60_000, "second": 1000, "seconds": 1000, "minute": 60_000, "minutes": 60_000}
_DURATIONS |= {"hour": 3_600_000, "hours": 3_600_000, "day": 86_400_000, "days": 86_400_000, "weeks": 604_800_000}


class FilterError(OptionError):
    """An error for text that cannot be compared with a column's values, shown beside the filter.

    Parameters
    ----------
    unfinished
        Whether the text may become valid when more is typed.
    """

    def __init__(self, message: str, *, unfinished: bool = False) -> None:
        super().__init__(message)
        self.unfinished = unfinished


class _Reader(NamedTuple):
    """How users type values of a column: a description, and functions from a text to a value and back."""

    what: str
    parse: Callable[[str], Any]
    shown: Callable[[Any], str] = str


@dataclass(frozen=True)
class Condition:
    """A filter on one column, after parsing.

    Attributes
    ----------
    text
        The condition in words and exact values: ``file_size_in_bytes < 1,000,000 bytes``.
    mask
        A function that returns which values fulfil the condition, given the column and, if the column's look has its
        own texts for values (`Look.texts`), these texts.
    """

    text: str
    mask: Callable[[AnyArray, AnyArray | None], pa.BooleanArray]


def understood(one: Filter, name: str, kind: DynamicType, look: Look | None = None) -> Condition:
    """Return the condition that a filter on one column means.

    An operator at the beginning of the text replaces the chosen operator. For numbers and times, ``low..high`` is a
    range that includes both ends. A text in double quotes is taken literally.

    Raises
    ------
    FilterError
        The text is not a value of the column's type, or the type does not support comparison.
    """
    if one.op in ("null", "not null"):
        is_null = one.op == "null"
        return Condition(f"{name} is {one.op}", lambda column, _: column.is_null() if is_null else column.is_valid())
    op, text = _split(one)
    name, is_written = name[:100], look is not None and look.texts is not None
    if pa.types.is_null(kind):
        return Condition(f"{name} {op} {text}", lambda column, _: pa.array(np.zeros(len(column), dtype=np.bool_)))
    if is_written or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Condition(f'{name} {op} "{text}"', _text_mask(op, text))
    is_typed = not pa.types.is_nested(kind)
    low, separator, high = text.partition("..") if is_typed and op in ("contains", "=") else (text, "", "")
    if op == "contains" and not separator:
        if look is not None and look.kind == "code":
            codes = [code for code, word in look.words.items() if text.lower() in word.lower()]
            return Condition(f'{name} contains "{text}"', _any_code(codes, text))
        if look is not None and look.unit and not text.replace(",", "").strip("-").isdecimal():
            raise FilterError(f"{text[:100]!r} is no part of a number: choose an operator other than contains")
        return Condition(f'{name} contains "{text}"', lambda column, _: contains(column, text))
    reader = _reading(kind, name, look)
    if separator:
        return _range(name, kind, reader, low, high)
    value = _value(reader, text, name)
    if isinstance(value, float) and math.isnan(value):
        return Condition(f"{name} {op} NaN", _nan_mask(op))
    day = _DATE.fullmatch(text.strip()) and pa.types.is_timestamp(kind)
    if day and op in ("=", "!="):
        bounds = ((">=", value), ("<", value + 86400 * _PER_SECOND[kind.unit]))
        words = "on" if op == "=" else "not on"
        return Condition(f"{name} {words} {text.strip()} (UTC)", _every(kind, bounds, inverted=op == "!="))
    return Condition(f"{name} {op} {reader.shown(value)}", _every(kind, ((op, value),)))


def _split(one: Filter) -> tuple[str, str]:
    """Return the operator and the text of a filter."""
    text = one.value
    stripped = text.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] == '"':
        return one.op, stripped[1:-1]
    found = _OPERATOR.fullmatch(text)
    if found is None:
        return one.op, text
    op, rest = _SAME.get(found[1], found[1]), found[2]
    if not rest.strip():
        raise FilterError(f"a value is missing after {found[1]}", unfinished=True)
    rest_stripped = rest.strip()
    is_quoted = len(rest_stripped) > 1 and rest_stripped[0] == rest_stripped[-1] == '"'
    return op, rest_stripped[1:-1] if is_quoted else rest


def _value(reader: _Reader, text: str, name: str) -> Any:  # noqa: ANN401  (a value of the column's type)
    text = text.strip()
    try:
        return reader.parse(text)
    except FilterError:
        raise
    except (ValueError, KeyError, TypeError, ArithmeticError, pa.ArrowException) as error:
        is_begun = reader.parse.__name__ == "_number" and _BEGUN.fullmatch(text.replace(",", "")) is not None
        message = f"{text[:100]!r} does not fit {name!r}, which has {reader.what}"
        raise FilterError(message, unfinished=is_begun) from error


def _range(name: str, kind: DynamicType, reader: _Reader, low: str, high: str) -> Condition:
    """Return the condition for a range, of which one end may be missing."""
    bounds: list[tuple[str, Any]] = []
    words = []
    if low.strip():
        value = _value(reader, low, name)
        bounds.append((">=", value))
        words.append(f"from {reader.shown(value)}")
    if high.strip():
        value = _value(reader, high, name)
        if _DATE.fullmatch(high.strip()) and pa.types.is_timestamp(kind):
            bounds.append(("<", value + 86400 * _PER_SECOND[kind.unit]))
            words.append(f"to the end of {high.strip()} (UTC)")
        else:
            bounds.append(("<=", value))
            words.append(f"to {reader.shown(value)}")
    if not bounds:
        raise FilterError("a range has two ends, such as 1k..10k", unfinished=True)
    return Condition(f"{name} {' '.join(words)}", _every(kind, tuple(bounds)))


# Masks ----------------------------------------------------------------------------------------------------------------

_Mask = Callable[[AnyArray, "AnyArray | None"], pa.BooleanArray]


def _text_mask(op: str, text: str) -> _Mask:
    def mask(column: AnyArray, texts: AnyArray | None) -> pa.BooleanArray:
        if texts is None:
            return _text_compared(column, op, text)
        found = pc.fill_null(_text_compared(texts, "=" if op == "!=" else op, text), False)
        if op in ("contains", "=", "!="):  # match the exact value too, such as the number of a code
            exact = contains(column, text) if op == "contains" else _equal_digits(column, text)
            found = pc.or_(found, pc.fill_null(exact, False))
        return pc.and_(column.is_valid(), pc.invert(found) if op == "!=" else found)

    return mask


def _text_compared(column: AnyArray, op: str, text: str) -> pa.BooleanArray:
    if op == "contains":
        return contains(column, text)
    if op in ("=", "!="):
        mask: pa.BooleanArray = _COMPARE[op](pc.utf8_lower(column), text.lower())
        return mask
    ordered: pa.BooleanArray = _COMPARE[op](column, text)
    return ordered


def _equal_digits(column: AnyArray, text: str) -> pa.BooleanArray:
    no: pa.BooleanArray = pa.array(np.zeros(len(column), dtype=np.bool_))
    return pc.equal(column.cast(pa.string()), text.strip()) if pa.types.is_integer(column.type) else no


def _any_code(codes: list[int], text: str) -> _Mask:
    def mask(column: AnyArray, _: AnyArray | None) -> pa.BooleanArray:
        hit: pa.BooleanArray = pc.is_in(column, value_set=pa.array(codes, pa.int64()).cast(column.type))
        return pc.or_(hit, contains(column, text))

    return mask


def _nan_mask(op: str) -> _Mask:
    """Return the mask for a comparison with NaN, which here equals itself and is neither below nor above any value."""

    def mask(column: AnyArray, _: AnyArray | None) -> pa.BooleanArray:
        if op in ("=", "!="):
            is_nan: pa.BooleanArray = pc.is_nan(column)
            return is_nan if op == "=" else pc.invert(is_nan)
        return pc.and_(column.is_valid(), False)

    return mask


def _every(kind: DynamicType, bounds: tuple[tuple[str, Any], ...], *, inverted: bool = False) -> _Mask:
    """Return the mask for values that fulfil all comparisons or, if ``inverted``, for the others that are not null."""
    is_whole = (
        pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_date32(kind)
    )

    def mask(column: AnyArray, _: AnyArray | None) -> pa.BooleanArray:
        found: pa.BooleanArray = column.is_valid()
        for op, value in bounds:
            with_what = _whole_number(value, op) if is_whole else value
            if isinstance(with_what, bool):
                found = pc.and_(found, with_what)
            else:
                found = pc.and_(found, pc.fill_null(_COMPARE[op](_comparable(column), with_what), False))
        return pc.and_(column.is_valid(), pc.invert(found)) if inverted else found

    return mask


# Values ---------------------------------------------------------------------------------------------------------------


def _reading(kind: DynamicType, name: str, look: Look | None) -> _Reader:
    """Return how users type a column's values."""
    if pa.types.is_integer(kind):
        return _integers(look)
    if pa.types.is_floating(kind):
        return _Reader("numbers", _number_of(_PREFIXES, float))
    if pa.types.is_decimal(kind):
        return _Reader("numbers", _number_of(_PREFIXES, _decimal))
    if pa.types.is_boolean(kind):
        words = {"true": True, "false": False}
        return _Reader(
            "the values true and false", lambda text: pa.scalar(words[text.lower()]), lambda v: str(v).lower()
        )
    if pa.types.is_timestamp(kind):
        what = "times, such as 2024-05-01 10:30:00"
        return _Reader(what, lambda text: _moment(text, kind.unit), lambda value: _moment_text(value, kind.unit))
    if pa.types.is_time(kind):
        return _Reader(
            "times of day, such as 10:30:00",
            lambda text: _time(text, kind.unit),
            lambda value: _clock_text(Fraction(value, _PER_SECOND[kind.unit])),
        )
    if pa.types.is_date32(kind):
        return _Reader(
            "dates, such as 2024-05-01",
            lambda text: (date.fromisoformat(text) - _EPOCH).days,
            lambda value: str(_EPOCH + timedelta(days=int(value))),
        )
    if isinstance(kind, pa.UuidType):
        what = "UUIDs, such as f79c3e09-677c-4bbd-a479-3f349cb785e7"
        return _Reader(what, lambda text: UUID(text).bytes, lambda value: str(UUID(bytes=value)))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        what = "bytes in hexadecimal, such as 0x01ff"
        return _Reader(
            what, lambda text: bytes.fromhex(text.lower().removeprefix("0x")), lambda value: "0x" + value.hex()
        )
    if pa.types.is_nested(kind):
        raise FilterError(f"{name!r} has nested values: use the operator contains")
    return _Reader(f"values of the type {str(kind)[:60]}", lambda text: pa.scalar(text).cast(kind))


def _integers(look: Look | None) -> _Reader:
    """Return how users type integers: with prefixes such as k, with units of size or duration, or as names of codes."""
    if look is not None and look.kind == "code":
        codes = {word.lower(): code for code, word in look.words.items()}
        plain = _number_of(_PREFIXES, _exact)
        return _Reader(
            f"the codes {', '.join(look.words.values())}",
            lambda text: codes[text.lower()] if text.lower() in codes else plain(text),
            lambda value: look.words.get(int(value), str(value)),
        )
    if look is not None and look.kind == "bytes":
        return _Reader(
            "sizes, such as 500, 64 MiB or 1 GB", _number_of(_BYTES, _exact), lambda v: f"{_digits(v)} bytes"
        )
    if look is not None and look.kind == "ms":
        return _Reader(
            "durations, such as 5 d, 2 h or 500 ms", _number_of(_DURATIONS, _exact), lambda v: f"{_digits(v)} ms"
        )
    return _Reader("integers, such as 500 or 10k", _number_of(_PREFIXES, _exact), _digits)


def _digits(value: Decimal | int) -> str:
    if isinstance(value, Decimal) and not value.is_finite():
        return str(value)
    if isinstance(value, Decimal) and value.adjusted() > _DIGITS:
        return str(value)
    return f"{int(value):,}" if value == int(value) else f"{value:,}"


def _number_of(units: dict[str, int], make: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a function that parses a number with one of these units, in upper or lower case."""

    def _number(text: str) -> Any:  # noqa: ANN401  (what `make` returns)
        plain = text.replace(",", "")
        found = _NUMBER.fullmatch(plain)
        if found is None or not found[2] or _BEGUN.fullmatch(plain):
            return make(plain)
        size = units.get(found[2].lower())
        if size is None:
            known = ", ".join(unit for unit in units if unit)
            raise FilterError(f"{found[2][:40]!r} is not a unit here: use one of {known}")
        value = Decimal(found[1].replace("_", "")) * size
        return make(str(value))

    return _number


def _comparable(column: AnyArray) -> AnyArray:
    """Return the column in a type for comparison: times as their stored integers, fixed-size bytes as variable-size."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return column.view(pa.int64())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return column.view(pa.int32())
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(kind) else column


def _whole_number(value: Decimal | Fraction | int, op: str) -> pa.Int64Scalar | bool:
    """Return the integer with which to compare, or a bool if all 64-bit integers give the same result."""
    if isinstance(value, Decimal) and (not value.is_finite() or value.adjusted() > _DIGITS):
        return _beyond(op, above=value > 0)
    whole = math.ceil(value) if op in ("<", ">=") else math.floor(value)
    if op in ("=", "!=") and whole != value:
        return op == "!="
    return pa.scalar(whole, pa.int64()) if _LEAST <= whole <= _MOST else _beyond(op, above=value > 0)


def _beyond(op: str, *, above: bool) -> bool:
    """Return the result of comparing any value with a number that is above, or below, all values."""
    return op == "!=" or (op != "=" and op.startswith("<") == above)


def _exact(text: str) -> Decimal:
    value = Decimal(text)
    if value.is_nan():
        raise ValueError(text)
    return value


def _decimal(text: str) -> AnyScalar:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(text)
    return pa.scalar(value)


def _moment(text: str, unit: str) -> Fraction:
    """Return the time since the epoch in this unit, for any year. A text without an offset is in UTC."""
    import pandas as pd

    found = pd.Timestamp(text).asm8
    if np.isnat(found):
        raise ValueError(text)
    given, _ = np.datetime_data(found.dtype)
    return Fraction(int(found.view(np.int64)) * _PER_SECOND[unit], _PER_SECOND[given])


def _moment_text(value: Fraction, unit: str) -> str:
    seconds = value / _PER_SECOND[unit]
    try:
        day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=math.floor(seconds))
    except OverflowError:
        return f"{seconds} s since 1970"
    part = seconds - math.floor(seconds)
    return f"{day:%Y-%m-%d %H:%M:%S}{_fraction(part)} UTC"


def _fraction(part: Fraction) -> str:
    return f".{int(part * 10**9):09d}".rstrip("0") if part else ""


def _clock_text(seconds: Fraction) -> str:
    whole = math.floor(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{_fraction(seconds - whole)}"


def _time(text: str, unit: str) -> Fraction:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    hours, minutes, seconds = int(found[1]), int(found[2]), Fraction(found[3] or 0)
    if hours > 23 or minutes > 59 or seconds >= 60:
        raise ValueError(text)
    return (hours * 3600 + minutes * 60 + seconds) * _PER_SECOND[unit]
