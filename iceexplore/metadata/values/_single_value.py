"""Convert one value to and from binary single-value form (spec Appendix D): partition summaries, single bounds.

Whole columns of bounds use `decode_values`.
"""

from __future__ import annotations

import struct
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from iceexplore.arrow import PlainValue
from iceexplore.errors import FormatError, OptionError
from iceexplore.metadata.types._parameters import decimal_parameters, fixed_length, type_base
from iceexplore.metadata.types._types import Type
from iceexplore.metadata.values import _temporal as temporal
from iceexplore.metadata.values._decimals import decimal_of

__all__ = ["decode_value", "encode_value"]

_INTS = {"int": 4, "date": 4, "long": 8, "time": 8} | dict.fromkeys(temporal.TIMESTAMP_UNITS, 8)
#: Types whose 4-byte values predate a promotion from int, float or date (spec, "Schema Evolution").
_PROMOTED = frozenset(("long", "double", "timestamp", "timestamp_ns"))
_OPAQUE = frozenset(("binary", "fixed", "geography", "geometry", "variant"))


def decode_value(type_: Type, data: bytes) -> PlainValue:
    """Decode one value; 4-byte values of a promoted long, double, timestamp or timestamp_ns are accepted.

    Returns
    -------
    Any
        bool, int, float, Decimal, str, bytes, UUID, date, time, or datetime (``numpy.datetime64`` for nanoseconds and
        for years outside Python's range). ``variant``, geo types and unknown types stay bytes.

    Raises
    ------
    FormatError
        The bytes do not fit the type (code ``value-undecodable``).
    """
    base, length = type_base(type_), len(data)
    if base in _INTS:
        return _decode_int(type_, base, data)
    match base:
        case "boolean" if length == 1:
            return data != b"\x00"
        case "float" if length == 4:
            return struct.unpack("<f", data)[0]
        case "double" if length in (4, 8):
            return struct.unpack("<f" if length == 4 else "<d", data)[0]
        case "uuid" if length == 16:
            return UUID(bytes=data)
        case "string":
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                raise _undecodable(type_, f"the bytes are not UTF-8 ({error.reason} at {error.start})") from None
        case "decimal" if 1 <= length <= 16 and (parameters := decimal_parameters(type_)):
            number = int.from_bytes(data, "big", signed=True)
            if abs(number) < 10 ** parameters[0]:
                return decimal_of(number, parameters[1])
            raise _undecodable(type_, f"{number} has more digits than the precision")
        case "fixed" if length <= (fixed_length(type_) or 0):
            return bytes(data)
        case "boolean" | "float" | "double" | "uuid" | "decimal" | "fixed" | "unknown" | "struct" | "list" | "map":
            raise _undecodable(type_, f"it cannot be {length} bytes long")
    return bytes(data)


def _decode_int(type_: Type, base: str, data: bytes) -> PlainValue:
    if len(data) != _INTS[base] and not (len(data) == 4 and base in _PROMOTED):
        raise _undecodable(type_, f"it cannot be {len(data)} bytes long")
    value = int.from_bytes(data, "little", signed=True)
    if base == "date":
        return temporal.date_value(value)
    if base == "time":
        return temporal.time_value(value)
    if base in temporal.TIMESTAMP_UNITS:
        if len(data) == 4:  # days, from before a promotion of date
            value *= 86_400 * temporal.TIMESTAMP_UNITS[base][0]
            if not -(2**63) <= value < 2**63:
                raise _undecodable(
                    type_, "the value was written as a date, which is outside the range of the timestamp type"
                )
        return temporal.timestamp_value(value, base)
    return value


def encode_value(type_: Type, value: PlainValue) -> bytes:
    """Encode one value of a type that `decode_value` returns, or the stored integer of a date, time or timestamp.

    Raises
    ------
    OptionError
        The value does not fit the type, or the type has no binary form.
    """
    base = type_base(type_)
    try:
        if base in _INTS:
            return _stored_int(base, value).to_bytes(_INTS[base], "little", signed=True)
        match base:
            case "boolean":
                return b"\x01" if value else b"\x00"
            case "float" | "double":
                return struct.pack("<f" if base == "float" else "<d", value)
            case "string":
                return str(value).encode()
            case "uuid":
                raw: Any = (
                    value.bytes if isinstance(value, UUID) else UUID(value).bytes if isinstance(value, str) else value
                )
                if len(raw) == 16:
                    return bytes(raw)
            case "decimal":
                if (parameters := decimal_parameters(type_)) is not None:
                    return _encode_decimal(value, *parameters)
            case _ if base in _OPAQUE and isinstance(value, (bytes, bytearray, memoryview)):
                if base != "fixed" or len(value) == fixed_length(type_):
                    return bytes(value)
    except (AttributeError, OverflowError, TypeError, ValueError, InvalidOperation, struct.error) as error:
        raise OptionError(f"{value!r} cannot be stored as {type_}: {error}") from None
    raise OptionError(f"{value!r} cannot be stored as {type_}")


def _stored_int(base: str, value: PlainValue) -> int:
    if base == "date":
        return temporal.days_of(value)
    if base == "time":
        return temporal.micros_of_time(value)
    if base in temporal.TIMESTAMP_UNITS:
        return temporal.units_of(value, base)
    if isinstance(value, bool) or value != int(value):
        raise ValueError("not a whole number")
    return int(value)


def _encode_decimal(value: PlainValue, precision: int, scale: int) -> bytes:
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("not a finite number")
    # Shifted as integers: Decimal arithmetic would round to its context's 28 digits.
    shift = exponent + scale
    unscaled = int("".join(map(str, digits)))
    if shift > 38 and unscaled:  # checked before a huge power is computed
        raise ValueError(f"more than {precision} digits")
    rest = 0
    if shift >= 0:
        unscaled *= 10**shift if unscaled else 1
    else:
        unscaled, rest = divmod(unscaled, 10 ** min(-shift, 5000))
    if rest:
        raise ValueError(f"more than {scale} digits after the point")
    if unscaled >= 10**precision:
        raise ValueError(f"more than {precision} digits")
    unscaled = -unscaled if sign else unscaled
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length() + 1
    return unscaled.to_bytes((bits + 7) // 8, "big", signed=True)


def _undecodable(type_: Type, why: str) -> FormatError:
    return FormatError(f"a value of {type_} cannot be decoded: {why}", code="value-undecodable")
