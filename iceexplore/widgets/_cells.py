"""A page of a table as text, for the browser."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iceexplore.graph import json_safe
from iceexplore.widgets._arrow_values import array_values
from iceexplore.widgets._grid_query import MAX_COLUMNS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from iceexplore.widgets._grid_table import GridTable

__all__ = ["PAGE_SIZE", "cell", "nested_value", "page_of", "safe_text", "text_of", "values_of"]

PAGE_SIZE = 50
_MAX_TEXT = 300
_MAX_NAMES = 1000


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


def page_of(
    table: GridTable,
    page: int,
    size: int = PAGE_SIZE,
    *,
    rows: npt.NDArray[np.int64] | None = None,
    columns: Sequence[int] | None = None,
    docs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """One page of a table, JSON-safe.

    Parameters
    ----------
    page
        From 0; past the end is the last one.
    rows
        The places of the rows, in order; None: every row.
    columns
        The places of the columns; None: the first sixty.
    docs
        What columns mean, by name.

    Returns
    -------
    dict
        ``columns`` (name, right: aligned so, doc) of the whole table up to a thousand, ``shown`` the places of those
        that the page has, ``rows`` their text or null, ``page``, ``pages``, ``size``, ``total`` rows and ``whole``
        (rows without a filter).
    """
    total = len(table) if rows is None else len(rows)
    pages = max(1, -(-total // size))
    page = min(max(page, 0), pages - 1)
    at = slice(page * size, (page + 1) * size)
    count = len(table.names)
    shown = [c for c in (range(count) if columns is None else columns) if c < count][:MAX_COLUMNS]
    names = [
        {"name": cell(name) or "", "right": right, "doc": (docs or {}).get(name, "")}
        for name, right in list(zip(table.names, table.right, strict=True))[:_MAX_NAMES]
    ]
    values = [[cell(v) for v in column] for column in table.values(at, rows, shown)]
    return {
        "columns": names,
        "shown": shown,
        "rows": [list(row) for row in zip(*values, strict=True)],
        "page": page,
        "pages": pages,
        "size": size,
        "total": total,
        "whole": len(table),
    }


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
