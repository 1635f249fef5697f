"""Convert default values from the JSON single-value serialization (spec Appendix D) to Python and back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

import numpy as np

from iceexplore.arrow import PlainValue
from iceexplore.errors import FormatError
from iceexplore.metadata.types._parameters import decimal_parameters, fixed_length, type_base
from iceexplore.metadata.types._types import ListType, MapType, NestedField, StructType, Type
from iceexplore.metadata.values import _temporal as temporal
from iceexplore.storage import JsonValue

__all__ = ["default_from_json", "default_to_json"]

#: Types whose defaults must be null (spec, "Default values").
_NULL_ONLY = frozenset(("geography", "geometry", "unknown", "variant"))
_INT_BITS = {"int": 31, "long": 63}


def default_from_json(type_: Type, json: JsonValue) -> PlainValue:
    """Return the Python value of a default.

    Structs become dictionaries by field id, maps lists of pairs, ``fixed`` and ``binary`` bytes, nanosecond timestamps
    ``numpy.datetime64``. Null is None. A value of an unknown type stays as it is.

    Raises
    ------
    FormatError
        The JSON does not fit the type (code ``value-undecodable``).
    """
    if json is None:
        return None
    match type_:
        case StructType(fields):
            return _struct(fields, json)
        case ListType(element):
            if not isinstance(json, list):
                raise _misfit(type_, json)
            return [default_from_json(element.type, item) for item in json]
        case MapType(key, value):
            keys, values = (json.get("keys"), json.get("values")) if isinstance(json, dict) else (None, None)
            if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
                raise _misfit(type_, json)
            return [
                (default_from_json(key.type, k), default_from_json(value.type, v))
                for k, v in zip(keys, values, strict=True)
            ]
    return _primitive(type_, json)


def _struct(fields: Iterable[NestedField], json: JsonValue) -> dict[int, Any]:
    if not isinstance(json, dict):
        raise FormatError("the default of a struct must be an object by field id", code="value-undecodable")
    by_id = {str(f.field_id): f for f in fields}
    unknown = [key for key in json if key not in by_id]
    if unknown:
        raise FormatError(f"the default has the unknown field id {unknown[0]}", code="value-undecodable")
    return {by_id[key].field_id: default_from_json(by_id[key].type, item) for key, item in json.items()}


def _primitive(type_: Type, json: JsonValue) -> PlainValue:
    base = type_base(type_)
    if base in _NULL_ONLY:
        raise FormatError(f"a {base} must default to null", code="value-undecodable")
    match json:
        case bool():
            if base == "boolean":
                return json
        case int() | float():
            if base in ("float", "double"):
                try:
                    return float(json)
                except OverflowError:
                    raise _misfit(type_, json) from None
            bits = _INT_BITS.get(base)
            if bits and isinstance(json, int) and -(1 << bits) <= json < 1 << bits:
                return json
        case str():
            return _from_text(type_, base, json)
    if base in _TEXT or base in ("boolean", "int", "long", "float", "double"):
        raise _misfit(type_, json)
    return json


_TEXT = frozenset(("binary", "date", "decimal", "fixed", "string", "time", "uuid", *temporal.TIMESTAMP_UNITS))


def _from_text(type_: Type, base: str, text: str) -> PlainValue:
    try:
        match base:
            case "string":
                return text
            case "decimal":
                return _decimal(type_, text)
            case "date":
                return temporal.date_value(temporal.parse_date(text))
            case "time":
                return temporal.time_value(temporal.parse_time(text))
            case "uuid":
                return UUID(text)
            case "binary":
                return bytes.fromhex(text)
            case "fixed":
                value = bytes.fromhex(text)
                if len(value) == fixed_length(type_):
                    return value
            case _ if base in temporal.TIMESTAMP_UNITS:
                return temporal.timestamp_value(temporal.parse_timestamp(text, base), base)
            case "boolean" | "int" | "long" | "float" | "double":
                pass
            case _:
                return text
    except FormatError:
        raise
    except (ValueError, InvalidOperation):
        pass
    raise _misfit(type_, text)


def _decimal(type_: Type, text: str) -> Decimal:
    parameters = decimal_parameters(type_)
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    if parameters is None or not isinstance(exponent, int) or -exponent != parameters[1]:
        raise _misfit(type_, text)
    if len(value.as_tuple().digits) > parameters[0]:
        raise _misfit(type_, text)
    return value


def default_to_json(type_: Type, value: PlainValue) -> JsonValue:
    """Return the JSON of a default; the inverse of `default_from_json`."""
    if value is None:
        return None
    match type_:
        case StructType(fields):
            types = {f.field_id: f.type for f in fields}
            return {str(i): default_to_json(types[i], item) for i, item in value.items()}
        case ListType(element):
            return [default_to_json(element.type, item) for item in value]
        case MapType(key, val):
            return {
                "keys": [default_to_json(key.type, k) for k, _ in value],
                "values": [default_to_json(val.type, v) for _, v in value],
            }
    match type_base(type_):
        case "decimal":
            return str(value)
        case "date":
            return str(np.datetime64(temporal.days_of(value), "D"))
        case "time":
            return value.isoformat()
        case "uuid":
            return str(value)
        case "binary" | "fixed":
            return bytes(value).hex()
        case base if base in temporal.TIMESTAMP_UNITS:
            return temporal.timestamp_text(temporal.units_of(value, base), base)
        case _:
            return value


def _misfit(type_: Type, json: JsonValue) -> FormatError:
    shown = repr(json) if not isinstance(json, float) or math.isfinite(json) else str(json)
    return FormatError(f"{shown[:60]} is not a value of type {type_}", code="value-undecodable")
