"""Convert values to text for the browser."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from iceexplore.arrow import PlainValue
from iceexplore.graph import json_safe
from iceexplore.storage import JsonValue
from iceexplore.widgets.grid._arrow_values import array_values

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["cell", "nested_value", "safe_text", "text_of", "values_of"]

_MAX_TEXT = 300


def cell(value: PlainValue) -> str | None:
    """Return a value as text of at most 300 characters; None for null. Numbers keep all digits."""
    text = text_of(value, most=_MAX_TEXT)
    if text is None:
        return None
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def text_of(value: PlainValue, *, most: int | None = None) -> str | None:
    """Return a value as text; None for null. Text beyond ``most`` characters may be cut."""
    if type(value) is str:  # fast path: nearly all cells are text or integers
        return safe_text(value)
    if type(value) is int:
        return str(value)
    if _is_missing(value):
        return None
    match value:
        case str():
            text = value
        case bool():
            return "true" if value else "false"
        case bytes():
            return "0x" + (value if most is None else value[:most]).hex()
        case dict() | list() | tuple():
            text = json.dumps(nested_value(value), ensure_ascii=False, default=str)
        case _:
            text = str(value)
    return safe_text(text)


def safe_text(text: str) -> str:
    """Return text encodable as UTF-8, with lone surrogates escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def nested_value(value: PlainValue, *, key: str = "") -> JsonValue:
    """Return a value for JSON: bytes in full, snapshot ids and integers beyond 2⁵³ as text (see `json_safe`)."""
    if type(value) is str:  # fast path: maps mostly hold text and integers
        return safe_text(value)
    if type(value) is int:
        return json_safe(value, key=key)
    match value:
        case dict():
            return {str(k): nested_value(v, key=str(k)) for k, v in value.items()}
        case list() | tuple():
            if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):  # a map, in Arrow a list of pairs
                return {str(k): nested_value(v, key=str(k)) for k, v in value}
            return [nested_value(v, key=key) for v in value]
        case bytes():
            return "0x" + value.hex()
        case _:
            return None if _is_missing(value) else json_safe(value, key=key)


def values_of(series: pd.Series[Any]) -> list[Any]:
    """Return a column's values. NaN counts as null, except in Arrow types, which distinguish the two."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(series.dtype, pd.ArrowDtype):
        return array_values(pa.array(series.array))
    values = series.tolist()
    return [None if isinstance(v, float) and math.isnan(v) else v for v in values]


def _is_missing(value: PlainValue) -> bool:
    """Return whether a value is null; NaN does not count as null."""
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT
