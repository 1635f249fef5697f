"""One page of a table as text, for the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iceexplore.widgets.grid._cells import cell
from iceexplore.widgets.grid._query import MAX_COLUMNS
from iceexplore.widgets.grid._table import GridTable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["PAGE_SIZE", "page_of"]

PAGE_SIZE = 50
_MAX_NAMES = 1000


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
