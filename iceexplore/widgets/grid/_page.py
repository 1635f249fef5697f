"""Build one page of a table as text for the browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.widgets.grid._cells import cell
from iceexplore.widgets.grid._query import MAX_COLUMNS
from iceexplore.widgets.grid._table import GridTable
from iceexplore.widgets.grid._view import Look, TableView

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["PAGE_SIZE", "page_of", "row_header"]

PAGE_SIZE = 50
_MAX_NAMES = 1000
#: Columns whose values name a row, in order of preference.
_NAMES = ("file", "name", "column", "path", "file_path", "location")
_WHOLE_BAR = 100


def row_header(names: Sequence[str]) -> int | None:
    """Return the index of the column whose values name the rows; None if there is none."""
    return next((names.index(name) for name in _NAMES if name in names), None)


def page_of(
    table: GridTable,
    page: int,
    size: int = PAGE_SIZE,
    *,
    rows: npt.NDArray[np.int64] | None = None,
    columns: Sequence[int] | None = None,
    docs: Mapping[str, str] | None = None,
    view: TableView | None = None,
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
    view
        How values are written, and whether the first column names the rows. The table must already be arranged by this
        view.

    Returns
    -------
    dict
        ``columns``, the whole table's columns, up to a thousand (name, whether right-aligned, doc, unit of exact
        values, and ``head`` for the column that names the rows); ``shown``, the indexes of the columns on the page;
        ``rows``, the exact text of their values, or null; ``texts``, by column index, what cells show instead of the
        exact text (null to show that); ``bars``, by column index, each value as a percentage of the column's maximum,
        for columns that are known without reading a file; ``page``, its number; ``pages``, how many there are;
        ``size``, the rows of a full page; ``total``, the rows that pass the filters; and ``whole``, all rows.
    """
    view = TableView(head=False) if view is None else view
    total = len(table) if rows is None else len(rows)
    pages = max(1, -(-total // size))
    page = min(max(page, 0), pages - 1)
    at = slice(page * size, (page + 1) * size)
    count = len(table.names)
    shown = [c for c in (range(count) if columns is None else columns) if c < count][:MAX_COLUMNS]
    names: list[dict[str, Any]] = []
    for name, right in list(zip(table.names, table.right, strict=True))[:_MAX_NAMES]:
        look = view.looks.get(name)
        unit = {"unit": look.unit} if look is not None and look.unit else {}
        coded = {"right": right and (look is None or look.kind not in ("code", "text"))}  # others are aligned left
        names.append({"name": cell(name) or "", **coded, "doc": (docs or {}).get(name, ""), **unit})
    if view.head and names:
        names[0]["head"] = True
    values = table.values(at, rows, shown)
    texts: dict[str, list[str | None]] = {}
    bars: dict[str, list[int | None]] = {}
    for c, column in zip(shown, values, strict=True):
        look = view.looks.get(table.names[c])
        if look is None:
            continue
        if made := _texts(table, at, rows, look, column):
            texts[str(c)] = made
        if look.bar and (shares := _shares(column, table.kept(c))):
            bars[str(c)] = shares
    cells = [[cell(v) for v in column] for column in values]
    return {
        "columns": names,
        "shown": shown,
        "rows": [list(row) for row in zip(*cells, strict=True)],
        **({"texts": texts} if texts else {}),
        **({"bars": bars} if bars else {}),
        "page": page,
        "pages": pages,
        "size": size,
        "total": total,
        "whole": len(table),
    }


def _texts(
    table: GridTable, at: slice, rows: npt.NDArray[np.int64] | None, look: Look, column: Sequence[Any]
) -> list[str | None]:
    """Return what a column's cells show instead of their values; empty if all of them show their values."""
    if look.texts is not None:
        numbers = np.arange(len(table), dtype=np.int64)[at] if rows is None else rows[at]
        found = build.to_pylist(look.texts(table.some(numbers.tolist(), look.sources)))
        return [cell(text) for text in found]
    made = [look.text(value) for value in column]
    return made if any(text is not None for text in made) else []


def _shares(column: Sequence[Any], whole: AnyArray | None) -> list[int | None]:
    """Return each value as a percentage of the whole column's maximum; empty if that is unknown or not above 0."""
    most = None if whole is None or not len(whole) else pc.max(whole).as_py()
    if not isinstance(most, int) or most <= 0:
        return []
    return [
        None if not isinstance(value, int) else round(min(max(value, 0), most) * _WHOLE_BAR / most) for value in column
    ]
