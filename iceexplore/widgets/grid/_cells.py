"""Values as text, for the browser."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from iceexplore.graph import json_safe
from iceexplore.widgets.grid._arrow_values import array_values

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["cell", "nested_value", "safe_text", "text_of", "values_of"]

_MAX_TEXT = 300


def cell(value: Any) -> str | None:
    """A value as text, shortened to 300 characters; None for null. Numbers keep every digit."""
    text = text_of(value, most=_MAX_TEXT)
    if text is None:
        return None
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def text_of(value: Any, *, most: int | None = None) -> str | None:
    """A value as text; None for null. Of more than ``most`` characters the end may be left out."""
    if type(value) is str:  # nearly every cell is text or a whole number
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
    """Text that UTF-8 can hold: a lone surrogate as its escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def nested_value(value: Any, *, key: str = "") -> Any:
    """A value as JSON has it, bytes in full; snapshot ids and integers beyond 2⁵³ as text, as in `json_safe`."""
    if type(value) is str:  # most of what is in maps is text and whole numbers
        return safe_text(value)
    if type(value) is int:
        return json_safe(value, key=key)
    match value:
        case dict():
            return {str(k): nested_value(v, key=str(k)) for k, v in value.items()}
        case list() | tuple():
            if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):  # Arrow's map
                return {str(k): nested_value(v, key=str(k)) for k, v in value}
            return [nested_value(v, key=key) for v in value]
        case bytes():
            return "0x" + value.hex()
        case _:
            return None if _is_missing(value) else json_safe(value, key=key)


def values_of(series: pd.Series[Any]) -> list[Any]:
    """A column's values. Arrow tells NaN from null; where a column has no other null, NaN is one."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(series.dtype, pd.ArrowDtype):
        return array_values(pa.array(series.array))
    values = series.tolist()
    return [None if isinstance(v, float) and math.isnan(v) else v for v in values]


def _is_missing(value: Any) -> bool:
    """Whether it is null; NaN is a number that is none."""
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT
