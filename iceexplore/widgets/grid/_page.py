"""Build one page of a table as text for the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iceexplore.widgets.grid._cells import cell
from iceexplore.widgets.grid._query import MAX_COLUMNS
from iceexplore.widgets.grid._table import GridTable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PAGE_SIZE", "page_of", "row_header"]

PAGE_SIZE = 50
_MAX_NAMES = 1000
#: Columns that name a row, the preferred first.
_NAMES = ("file", "name", "column", "path", "file_path", "location")


def row_header(names: Sequence[str]) -> int | None:
    """Return the index of the column that names a metadata table's rows; None if there is none."""
    return next((names.index(name) for name in _NAMES if name in names), None)


def page_of(
    table: GridTable,
    page: int,
    size: int = PAGE_SIZE,
    *,
    rows: npt.NDArray[np.int64] | None = None,
    columns: Sequence[int] | None = None,
    docs: Mapping[str, str] | None = None,
    head: int | None = None,
) -> dict[str, Any]:
    """Return one page of a table, JSON-safe.

    Parameters
    ----------
    page
        The number of the page, from 0; beyond the end, the last page is returned.
    rows
        The row numbers, in order; None for all rows.
    columns
        The indexes of the columns; None for the first sixty.
    docs
        Descriptions of columns, by name.
    head
        The index of the column that names the rows.

    Returns
    -------
    dict
        ``columns`` (name, right-aligned or not, doc, and ``head`` for the one that names the rows) of the whole table,
        up to a thousand; ``shown``, the indexes of those on the page; ``rows``, their text or null; ``page``,
        ``pages``, ``size``, ``total`` rows and ``whole`` (the number of rows without a filter).
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
    if head is not None and head < len(names):
        names[head]["head"] = True
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
