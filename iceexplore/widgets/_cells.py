"""A page of a data frame as text, for a table in the browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from iceexplore.graph import json_safe

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PAGE_SIZE", "cell", "page_of"]

PAGE_SIZE = 50
_MAX_TEXT = 300
_MAX_COLUMNS = 60


def cell(value: Any) -> str | None:
    """A value as text, shortened; None for null. Numbers keep every digit."""
    if _is_missing(value):
        return None
    text = _text(value)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return "0x" + value[: _MAX_TEXT // 2].hex()
        case dict() | list() | tuple():
            return json.dumps(json_safe(value), ensure_ascii=False, default=str)
        case _:
            return str(value)


def page_of(frame: pd.DataFrame, page: int, size: int = PAGE_SIZE) -> dict[str, Any]:
    """One page of a frame, JSON-safe: columns, rows of text, and where the page stands.

    A page past the end is the last one.
    """
    import pandas as pd

    total = len(frame)
    pages = max(1, -(-total // size))
    page = min(max(page, 0), pages - 1)
    part = frame.iloc[page * size : (page + 1) * size]
    columns, values = [], []
    for i, name in enumerate(frame.columns[:_MAX_COLUMNS]):
        column = part.iloc[:, i]
        kind = column.dtype
        right = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
        columns.append({"name": cell(str(name)) or "", "right": bool(right)})
        values.append([cell(v) for v in column.tolist()])
    rows = [list(row) for row in zip(*values, strict=True)]
    return {"columns": columns, "rows": rows, "page": page, "pages": pages, "size": size, "total": total}


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return value is None or bool(pd.api.types.is_scalar(value) and pd.isna(value))
