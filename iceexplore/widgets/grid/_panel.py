"""Tables in a widget, shown as pages and sorted and filtered in Python."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from iceexplore.errors import OptionError
from iceexplore.widgets.core._escape_text import signs, signs_of_page
from iceexplore.widgets.core._table_widget import TableWidget, shown
from iceexplore.widgets.grid._cells import safe_text
from iceexplore.widgets.grid._copy_export import MAX_CSV, cell_text, csv_chunk, row_json
from iceexplore.widgets.grid._filter_sort import rows_in_order
from iceexplore.widgets.grid._page import PAGE_SIZE, page_of
from iceexplore.widgets.grid._query import GridQuery, Order
from iceexplore.widgets.grid._table import FrameTable, GridTable
from iceexplore.widgets.grid._typed_values import FilterError

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

__all__ = ["GridPart"]

#: The most bytes of cached tables, in addition to the newest.
_KEPT_BYTES = 256 * 1024 * 1024


class GridPart(TableWidget):
    """A part with tables. Each place that shows a table is a grid with a name, such as ``"detail"``.

    In the browser, ``gridView(model, {grid, label})`` of ``grid.js`` displays one. A part implements `_grid_frame` and
    optionally `_grid_nodes`, `_grid_row` and `_grid_docs`.

    Attributes
    ----------
    query
        The browser's request by grid. ``of``: the table's owner, a node id or any text; ``table``: which of its tables.
        Optional: ``n``, incremented; ``page``, from 0; ``sort``, ``[column, "asc" | "desc"]``, with the column's index
        from 0; ``filters``, up to twenty ``{"column": index or None for any, "op": "contains" | "=" | "<" | ">" |
        "null" | "not null", "value": text}``, combined by AND; ``columns``, the indexes of those to show, at most 60;
        ``node``, to get the page with this node's row instead of ``page``.
    pages
        The answer by grid: the query's ``n``, ``of``, ``table``, ``sort``, ``filters``, ``node``; and ``columns``
        ({name, right, doc}, of the whole table), ``shown`` (the indexes of those in ``rows``), ``rows`` (text of at
        most 300 characters, with visible signs for control characters; None for null), ``page``, ``pages``, ``size``,
        ``total`` rows, ``whole`` (the number without a filter) and ``nodes``, the node that each row represents, or
        None. ``text`` instead of ``rows`` is for content that is not a table (see `_grid_text`). ``none`` is shown
        instead of rows if there are none because files could not be read, ``lacks`` if some may be missing.
        ``refused`` explains an invalid filter; the page is then the one before, except for ``n``.

    Notes
    -----
    Complete data is sent by messages, which notebooks do not save: ``{"grid", "n", "want": "cell" | "row" | "csv",
    "of", "table", "sort", "filters", "row", "column"}``, with ``row`` numbered in the order shown. The answer is
    ``{"grid", "n", "text"}``; for CSV one part, with ``next``, the row to continue with or None, ``total`` rows and
    ``most``, the number of characters after which the browser stops; or ``{"grid", "n", "error"}``.
    """

    query = traitlets.Dict().tag(sync=True)
    pages = traitlets.Dict().tag(sync=True)

    def _prepare(self) -> None:
        super()._prepare()
        self._grid_tables: OrderedDict[tuple[str, str, str], GridTable] = OrderedDict()
        self._orders: dict[str, tuple[tuple[str, str, Order], npt.NDArray[np.int64] | None]] = {}
        self._lock = threading.RLock()

    def _begin(self) -> None:
        super()._begin()
        self.observe(self._on_query, "query")
        self.on_msg(self._on_message)

    def close(self) -> None:
        """Remove the widget and release its tables, as a notebook's ``Out`` still references the widget."""
        super().close()
        if hasattr(self, "_grid_tables"):
            self._grid_tables.clear()
            self._orders.clear()

    # Hooks for parts --------------------------------------------------------------------------------------------------

    def _grid_frame(self, grid: str, of: str, table: str) -> pd.DataFrame | GridTable:
        """Return a whole table. A part handles its own grids and passes others to ``super()``; runs in the worker.

        Raises
        ------
        OptionError
            There is no such table.
        """
        raise OptionError(f"{grid!r} has no table {table!r}")

    def _grid_text(self, grid: str, of: str, table: str) -> dict[str, Any] | None:
        """Return content that is not a table as a dictionary with ``text``; None for a table."""
        return None

    def _grid_nodes(self, grid: str, of: str, table: str, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the tree nodes that rows of a table represent, given by row number; None for rows without a node."""
        return [None] * len(rows)

    def _grid_row(self, grid: str, of: str, table: str, node: str) -> int | None:
        """Return the number of the row that represents a node; None if there is none."""
        return None

    def _grid_docs(self, grid: str, of: str, table: str) -> Mapping[str, str]:
        """Return descriptions of the columns, by name."""
        return {}

    def _grid_unread(self, grid: str, of: str, table: str) -> str:
        """Return the reason why a table may lack rows; empty if it is complete."""
        return ""

    # Answers ----------------------------------------------------------------------------------------------------------

    def _frame(self, grid: str, of: str, table: str) -> pd.DataFrame:
        """Return a whole table as a DataFrame."""
        return self._grid_table(grid, of, table).frame()

    def _grid_table(self, grid: str, of: str, table: str) -> GridTable:
        """Return a table; recent ones are cached, up to 256 MiB in addition to the newest."""
        at = (grid, of, table)
        with self._lock:  # used by the worker and the notebook; the second waits and finds the table
            if at not in self._grid_tables:
                made = self._grid_frame(grid, of, table)
                self._grid_tables[at] = made if isinstance(made, GridTable) else FrameTable(made)
            self._grid_tables.move_to_end(at)
            if len(self._grid_tables) == 1:
                return self._grid_tables[at]
            sizes = [one.nbytes for one in self._grid_tables.values()]
            while len(sizes) > 1 and sum(sizes[:-1]) > _KEPT_BYTES:
                self._grid_tables.popitem(last=False)
                sizes.pop(0)
            return self._grid_tables[at]

    def _forget(self, grid: str) -> None:
        """Drop a grid's cached tables, which have changed."""
        with self._lock:
            for at in [at for at in self._grid_tables if at[0] == grid]:
                del self._grid_tables[at]
            self._orders.pop(grid, None)

    def _rows(self, grid: str, query: GridQuery, table: GridTable) -> npt.NDArray[np.int64] | None:
        at = (query.of, query.table, query.order)
        with self._lock:
            found = self._orders.get(grid)
            if found is None or found[0] != at:
                found = self._orders[grid] = (at, rows_in_order(table, query.order))
            return found[1]

    def _page(self, grid: str, query: GridQuery) -> dict[str, Any]:
        """Return the answer to a query; runs in the worker."""
        text = self._grid_text(grid, query.of, query.table)
        if text is not None:
            return {**query.sent(), **signs_of_page(text)}
        table = self._grid_table(grid, query.of, query.table)
        rows = self._rows(grid, query, table)
        page = query.page
        if query.node is not None:
            place = _position(self._grid_row(grid, query.of, query.table, query.node), rows)
            page = page if place is None else place // PAGE_SIZE
        docs = self._grid_docs(grid, query.of, query.table)
        made = page_of(table, page, rows=rows, columns=query.columns, docs=docs)
        if missed := self._grid_unread(grid, query.of, query.table):
            made |= {"lacks": f"Rows may be missing: {missed}."} if made["total"] else {"none": f"No rows: {missed}."}
        first = made["page"] * made["size"]
        places = range(first, first + len(made["rows"]))
        shown_rows = list(places) if rows is None else rows[first : first + len(made["rows"])].tolist()
        nodes = list(self._grid_nodes(grid, query.of, query.table, shown_rows))
        return {**query.sent(), **signs_of_page(made), "nodes": nodes}

    @shown
    def _on_query(self, change: Any) -> None:
        old = change["old"] if isinstance(change["old"], Mapping) else {}
        for grid, raw in self.query.items():
            if raw != old.get(grid):
                self._load_page(grid, GridQuery.parse(raw))

    def _load_page(self, grid: str, query: GridQuery) -> None:
        """Read the page that a query requests, and show it."""

        def read() -> dict[str, Any] | FilterError:
            try:
                return self._page(grid, query)
            except FilterError as error:
                return error

        def show(found: dict[str, Any] | FilterError) -> None:
            if isinstance(found, FilterError):
                found = self._refused(grid, query, found)
            self._show_page(grid, found)

        self._do(f"page:{grid}", "Reading", read, show)

    def _refused(self, grid: str, query: GridQuery, error: FilterError) -> dict[str, Any]:
        """Return the page shown with the error of a filter added; raise the error if the table is not shown."""
        page = self.pages.get(grid, {})
        if "rows" not in page or (page["of"], page["table"]) != (query.of, query.table):
            raise error
        return {**page, "n": query.n, "refused": signs(str(error))}

    def _show_page(self, grid: str, page: dict[str, Any]) -> None:
        self.pages = {**self.pages, grid: page}

    # Messages ---------------------------------------------------------------------------------------------------------

    def _on_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if not isinstance(content, Mapping) or "want" not in content:
            return
        back = {"grid": content.get("grid"), "n": content.get("n")}

        def read() -> dict[str, Any]:
            try:
                return {**back, **self._whole(content)}
            except Exception as error:  # the browser waits for an answer, so errors are sent too
                return {**back, "error": safe_text(str(error)[:500])}

        self._do(f"whole:{str(back['grid'])[:100]}", "Reading", read, self.send)

    def _whole(self, content: Mapping[str, Any]) -> dict[str, Any]:
        grid, want, at = content.get("grid"), content["want"], content.get("row", 0)
        query = GridQuery.parse({key: content.get(key) for key in ("of", "table", "sort", "filters")})
        column = content.get("column", 0)
        if not isinstance(grid, str) or type(at) is not int or type(column) is not int:
            raise OptionError("grid must be text, row and column integers")
        table = self._grid_table(grid, query.of, query.table)
        rows = self._rows(grid, query, table)
        if want == "csv":
            text, following = csv_chunk(table, rows, at)
            return {
                "text": text,
                "next": following,
                "total": len(table) if rows is None else len(rows),
                "most": MAX_CSV,
            }
        place = at if rows is None else int(rows[at]) if 0 <= at < len(rows) else -1
        if want == "cell":
            return {"text": cell_text(table, place, column)}
        if want == "row":
            return {"text": row_json(table, place)}
        raise OptionError(f"want={str(want)[:40]!r}: choose cell, row or csv")


def _position(place: int | None, rows: npt.NDArray[np.int64] | None) -> int | None:
    """Return the position of a row in the order shown; None if it is not shown."""
    if place is None or rows is None:
        return place
    found = np.flatnonzero(rows == place)
    return int(found[0]) if len(found) else None
