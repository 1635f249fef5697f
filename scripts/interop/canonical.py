"""Rows in one comparable form, whatever library read them.

Used on both sides: by the builder, which needs iceexplore, and by the readers, which run in an environment without it.
Only the standard library and PyArrow may be imported here.
"""

from __future__ import annotations

import base64
import json
import struct
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

__all__ = ["from_json_value", "plain", "rows_of", "to_json_value"]

_EPOCH = datetime(1970, 1, 1)


def plain(type_: Any, value: Any) -> Any:
    """Return a value of an Iceberg type as JSON holds it, equal for equal values.

    Parameters
    ----------
    type_
        A primitive type's name, or ``["list", T]``, ``["map", K, V]`` or ``["struct", [name, T], ...]``.
    value
        What a library gave for it.
    """
    if value is None:
        return None
    if isinstance(type_, list):
        return _nested(type_, value)
    if type_ == "boolean":
        return bool(value)
    if type_ in ("int", "long"):
        return str(int(value))
    if type_ == "float":
        return repr(struct.unpack("f", struct.pack("f", float(value)))[0])
    if type_ == "double":
        return repr(float(value))
    if type_.startswith("decimal"):
        scale = int(type_.split(",")[1].strip(" )"))
        # not `quantize`: 38 digits are more than the default context holds
        sign, digits, exponent = Decimal(value).as_tuple()
        number = int("".join(map(str, digits))) * 10 ** (scale + int(exponent)) * (-1 if sign else 1)
        return f"{number}e-{scale}"
    if type_ == "date":
        return (value.date() if isinstance(value, datetime) else date.fromisoformat(str(value))).isoformat()
    if type_ == "time":
        return _time(value)
    if type_.startswith("timestamp"):
        return _timestamp(value)
    if type_ == "uuid":
        return uuid.UUID(bytes=bytes(value)).hex if isinstance(value, bytes | bytearray) else uuid.UUID(str(value)).hex
    if type_ == "binary" or type_.startswith("fixed"):
        return bytes(value).hex()
    return value.decode() if isinstance(value, bytes) else str(value)


def _nested(type_: list[Any], value: Any) -> Any:
    if type_[0] == "list":
        return [plain(type_[1], one) for one in value]
    if type_[0] == "map":
        pairs = value.items() if isinstance(value, dict) else [_pair(one) for one in value]
        found = [[plain(type_[1], key), plain(type_[2], one)] for key, one in pairs]
        return sorted(found, key=json.dumps)
    return [plain(inner, value[name]) for name, inner in type_[1:]]


def _pair(entry: Any) -> Any:
    """A map's entry: a pair, or a struct of key and value."""
    return (entry["key"], entry["value"]) if isinstance(entry, dict) else entry


def _time(value: Any) -> str:
    if isinstance(value, int):  # chDB's Time has seconds
        value = timedelta(seconds=value)
    if isinstance(value, timedelta):
        value = (datetime.min + value).time()
    if not isinstance(value, time):
        value = time.fromisoformat(str(value))
    return str(value.isoformat(timespec="microseconds"))


def _timestamp(value: Any) -> str:
    """Nanoseconds since 1970."""
    nanoseconds = getattr(value, "value", None)  # pandas' timestamps; of another unit than ns it is scaled
    if nanoseconds is not None and getattr(value, "unit", "ns") == "ns":
        return str(nanoseconds)
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    rest = getattr(value, "nanosecond", 0)
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    since = value - _EPOCH
    return str((since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000 + rest)


def rows_of(table: Any, columns: list[list[Any]]) -> list[str]:
    """Return a PyArrow table's rows, each as JSON text, sorted: the order of rows means nothing.

    Parameters
    ----------
    table
        The table.
    columns
        Pairs of name and type, in the order of the text.
    """
    lists = [table.column(name).to_pylist() for name, _ in columns]
    types = [type_ for _, type_ in columns]
    return sorted(
        json.dumps([plain(t, v) for t, v in zip(types, row, strict=True)]) for row in zip(*lists, strict=True)
    )


def to_json_value(value: Any) -> Any:
    """Return a filter's literal as JSON: a kind and a text, or the value itself."""
    for kind, of in (("decimal", Decimal), ("uuid", uuid.UUID), ("datetime", datetime), ("date", date), ("time", time)):
        if isinstance(value, of):
            return [kind, value.isoformat() if isinstance(value, datetime | date | time) else str(value)]
    return ["bytes", base64.b64encode(value).decode()] if isinstance(value, bytes) else value


def from_json_value(value: Any) -> Any:
    """Return the literal that `to_json_value` was given."""
    if not isinstance(value, list):
        return value
    kind, text = value
    makers: dict[str, Any] = {
        "decimal": Decimal, "uuid": uuid.UUID, "datetime": datetime.fromisoformat, "date": date.fromisoformat,
        "time": time.fromisoformat, "bytes": base64.b64decode,
    }  # fmt: skip
    return makers[kind](text)
