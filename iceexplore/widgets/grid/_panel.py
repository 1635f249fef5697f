"""Tables in a widget: sorted and filtered in Python, and shown page by page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets
from traitlets import Bunch

from iceexplore.errors import OptionError
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._escape_text import signs, signs_of_page
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait, shown
from iceexplore.widgets.grid._arranged import ArrangedTable
from iceexplore.widgets.grid._cells import safe_text
from iceexplore.widgets.grid._copy_export import MAX_CSV, cell_text, csv_chunk, row_json
from iceexplore.widgets.grid._filter_sort import conditions, rows_in_order
from iceexplore.widgets.grid._page import PAGE_SIZE, page_of, row_header
from iceexplore.widgets.grid._query import MAX_COLUMNS, GridQuery, Order
from iceexplore.widgets.grid._table import FrameTable, GridTable
from iceexplore.widgets.grid._typed_values import FilterError
from iceexplore.widgets.grid._view import TableView

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

__all__ = ["GridPanel", "GridSource"]

#: Maximum number of bytes of cached tables, in addition to the newest.
_KEPT_BYTES = 256 * 1024 * 1024


class GridSource:
    """The tables of one grid. A table is identified by its owner (a node id or any text) and its key.

    A subclass implements `frame`; the rest is optional. All methods run in the worker.

    Attributes
    ----------
    numbered
        Whether pages include row numbers, with which the browser can ask for more about a row.
    """

    numbered: bool = False

    def frame(self, of: str, table: str) -> pd.DataFrame | GridTable:
        """Return a whole table.

        Raises
        ------
        OptionError
            There is no such table.
        """
        raise NotImplementedError

    def text(self, of: str, table: str) -> dict[str, Any] | None:
        """Return content that is not a table as a dictionary with ``text``; None for a table."""
        return None

    def nodes(self, of: str, table: str, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the tree nodes that some rows, given by number, represent; None for a row without a node."""
        return [None] * len(rows)

    def row(self, of: str, table: str, node: str) -> int | None:
        """Return the number of the row that represents a node; None if there is none."""
        return None

    def docs(self, of: str, table: str) -> Mapping[str, str]:
        """Return descriptions of the columns, by name."""
        return {}

    def help(self, of: str, table: str) -> tuple[Mapping[str, list[Any]], Mapping[str, list[Any]]]:
        """Return help for columns, by name, and the open points that the help mentions, by id; see `detail_of`."""
        return {}, {}

    def unread(self, of: str, table: str) -> str:
        """Return the reason why a table may lack rows; empty if it is complete."""
        return ""

    def view(self, of: str, table: str, names: Sequence[str]) -> TableView:
        """Return how to show a table with these columns; by default all of them, the one that names the rows first."""
        head = row_header(names)
        return TableView(() if head is None else (names[head],), every=True, head=head is not None)

    def above(self, of: str, table: str) -> list[Block]:
        """Return the blocks to show above a table."""
        return []

    def none(self, of: str, table: str) -> str:
        """Return the text to show in place of rows if a table has none; empty for the usual text."""
        return ""

    def preview(self, of: str, table: str, rows: int) -> str:
        """Return the text to show if a table with so many rows is only a preview; empty if the table is complete."""
        return ""


class GridPanel(Panel):
    """The panel for a widget's tables. Each part of the widget that shows tables is a named grid, such as ``"detail"``.

    In the browser, ``gridView(model, {grid, label})`` of ``grid.js`` displays a grid. Other panels add their own grids
    (`add`).

    Attributes
    ----------
    query
        The browser's last request for each grid. ``of``: the table's owner, a node id or any text; ``table``: the key
        of one of the owner's tables. Optional: ``n``, incremented; ``page``, from 0; ``sort``, ``[column, "asc" |
        "desc"]``, with the column's index from 0; ``filters``, up to twenty ``{"column": index or None for any, "op":
        one of `OPERATORS`, "value": text}``, combined by AND, see `understood`; ``columns``, the indexes of the columns
        to show, at most 60; ``node``, to get the page with this node's row instead of ``page``.
    pages
        The answer for each grid. It repeats the query's ``n``, ``of``, ``table``, ``sort``, ``filters`` and ``node``,
        and has what `page_of` returns; texts have at most 300 characters and visible signs for control characters.
        ``nodes`` has the node that each row represents, or None. Where they apply, there are also: ``above``, blocks to
        show above the table; ``text`` in place of ``rows``, content that is not a table (`GridSource.text`);
        ``understood``, what each filter was taken to mean; ``none``, a text in place of rows if there are none;
        ``lacks``, a text about rows that may be missing because files could not be read; ``numbers``, the row numbers
        (`GridSource.numbered`); ``help``, by column index, and ``open``, as in
        `iceexplore.widgets.detail._detail.detail_of`; and ``preview``, a text for a table that is only a preview. If a
        filter is invalid, the previous page is sent again with the new ``n``, with ``refused``, which explains the
        error, and with ``unfinished``, whether the filter may become valid when more is typed.

    Notes
    -----
    To copy or export uncut data, the browser sends a message, which notebooks do not save: ``{"grid", "n", "want":
    "cell" | "row" | "csv", "of", "table", "sort", "filters", "row", "column"}``, with ``row`` counted in the order
    shown. The answer is the message ``{"grid", "n", "text"}``, or ``{"grid", "n", "error"}``. For CSV, ``text`` is one
    part, and the message also has ``next``, the row with which to continue (None at the end), ``total``, the number of
    rows, and ``most``, the number of characters after which the browser stops.
    """

    query = SyncedTrait(traitlets.Dict())
    pages = SyncedTrait(traitlets.Dict())

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._sources: dict[str, GridSource] = {}
        self._on_page: dict[str, Callable[[], None]] = {}
        self._tables: OrderedDict[tuple[str, str, str], GridTable] = OrderedDict()
        #: The columns that the user has hidden and added, by grid and table key; they apply to every owner of such a
        #: table.
        self._chosen: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {}
        self._orders: dict[str, tuple[tuple[str, str, Order], npt.NDArray[np.int64] | None]] = {}
        self._lock = threading.RLock()

    def begin(self) -> None:
        """Begin to answer queries and messages."""
        self.host.observe(self._on_query, "query")
        self.host.on_message(self._on_message)

    def close(self) -> None:
        """Release the tables."""
        self._tables.clear()
        self._orders.clear()

    # For other panels -------------------------------------------------------------------------------------------------

    def add(self, grid: str, source: GridSource, on_page: Callable[[], None] = lambda: None) -> None:
        """Add a grid with its tables, and a function to call whenever one of its pages has been shown."""
        self._sources[grid], self._on_page[grid] = source, on_page

    def frame(self, grid: str, of: str, table: str) -> pd.DataFrame:
        """Return a whole table as a DataFrame."""
        return self.table(grid, of, table).frame()

    def table(self, grid: str, of: str, table: str) -> GridTable:
        """Return a table arranged as it is shown. Recent tables are cached: the newest, and up to 256 MiB of others.

        Raises
        ------
        OptionError
            There is no such table.
        """
        at = (grid, of, table)
        with self._lock:  # the worker and the notebook may both ask for a table; the second waits and finds it
            if at not in self._tables:
                source = self._source(grid, table)
                made = source.frame(of, table)
                base = made if isinstance(made, GridTable) else FrameTable(made)
                view = source.view(of, table, base.names)
                is_arranged = view.arrange(base.names) == list(range(len(base.names)))
                self._tables[at] = base if is_arranged else ArrangedTable(base, view)
            self._tables.move_to_end(at)
            if len(self._tables) == 1:
                return self._tables[at]
            sizes = [one.nbytes for one in self._tables.values()]
            while len(sizes) > 1 and sum(sizes[:-1]) > _KEPT_BYTES:
                self._tables.popitem(last=False)
                sizes.pop(0)
            return self._tables[at]

    def forget(self, grid: str) -> None:
        """Drop a grid's cached tables because they have changed."""
        with self._lock:
            for at in [at for at in self._tables if at[0] == grid]:
                del self._tables[at]
            self._orders.pop(grid, None)

    def load(
        self,
        grid: str,
        query: GridQuery,
        names: Sequence[str] | None = None,
        choose: Callable[[], str] | None = None,
    ) -> None:
        """Read the page that a query requests, and show it.

        Parameters
        ----------
        choose
            A function that the worker calls to choose the table's key, which replaces the query's.
        names
            The columns to which the query's indexes refer, if it was written for a different table. Columns that this
            table lacks are dropped from the query.
        """

        def read() -> dict[str, Any] | FilterError:
            try:
                asked = query if choose is None else replace(query, table=choose())
                if names is not None and self._source(grid, query.table).text(query.of, query.table) is None:
                    asked = query.renumbered(names, self.table(grid, query.of, query.table).names)
                return self._page(grid, asked)
            except FilterError as error:
                return error

        def show(found: dict[str, Any] | FilterError) -> None:
            if isinstance(found, FilterError):
                found = self._refused(grid, query, found)
            self.pages = {**self.pages, grid: found}
            self._on_page[grid]()

        self.host.run(f"page:{grid}", "Reading", read, show)

    def remove_page(self, grid: str) -> None:
        """Remove the page shown."""
        if grid in self.pages:
            self.pages = {name: page for name, page in self.pages.items() if name != grid}

    # Answers ----------------------------------------------------------------------------------------------------------

    def _source(self, grid: str, table: str) -> GridSource:
        source = self._sources.get(grid)
        if source is None:
            raise OptionError(f"{grid!r} has no table {table!r}")
        return source

    def _rows(self, grid: str, query: GridQuery, table: GridTable) -> npt.NDArray[np.int64] | None:
        at = (query.of, query.table, query.order)
        with self._lock:
            found = self._orders.get(grid)
            if found is None or found[0] != at:
                looks = self._source(grid, query.table).view(query.of, query.table, table.names).looks
                found = self._orders[grid] = (at, rows_in_order(table, query.order, looks))
            return found[1]

    def _page(self, grid: str, query: GridQuery) -> dict[str, Any]:
        """Return the answer to a query; runs in the worker."""
        of, key = query.of, query.table
        source = self._source(grid, key)
        text = source.text(of, key)
        if text is not None:
            above = source.above(of, key)
            return {**query.sent(), **signs_of_page({**text, "above": above} if above else text)}
        table = self.table(grid, of, key)
        rows = self._rows(grid, query, table)
        page = query.page
        if query.node is not None:
            place = _position(source.row(of, key, query.node), rows)
            page = page if place is None else place // PAGE_SIZE
        view = source.view(of, key, table.names)
        columns = self._columns(grid, query, table.names, view.essential(table.names))
        made = page_of(table, page, rows=rows, columns=columns, docs=source.docs(of, key), view=view)
        if query.order.filters:
            meant = conditions(table, query.order.filters, view.looks)
            made["understood"] = ["" if one is None else one.text for one in meant]
        helps, opened = source.help(of, key)
        names = [table.names[c] for c in made["shown"]]
        if helped := {str(c): helps[name] for c, name in zip(made["shown"], names, strict=True) if name in helps}:
            points = {id_ for _, _, _, *ids in helped.values() for some in ids for id_ in some}
            made |= {"help": helped, "open": {id_: point for id_, point in opened.items() if id_ in points}}
        if preview := source.preview(of, key, len(table)):
            made["preview"] = preview
        if above := source.above(of, key):
            made["above"] = above
        if not len(table) and (none := source.none(of, key)):
            made["none"] = none
        if missed := source.unread(of, key):
            made |= {"lacks": f"Rows may be missing: {missed}."} if made["total"] else {"none": f"No rows: {missed}."}
        first = made["page"] * made["size"]
        places = range(first, first + len(made["rows"]))
        shown_rows = list(places) if rows is None else rows[first : first + len(made["rows"])].tolist()
        if source.numbered:
            made["numbers"] = shown_rows
        nodes = list(source.nodes(of, key, shown_rows))
        return {**query.sent(), **signs_of_page(made), "nodes": nodes}

    def _columns(self, grid: str, query: GridQuery, names: Sequence[str], first: Sequence[int]) -> list[int]:
        """Return the indexes of the columns to show: the query's, or else ``first`` with the user's last choices."""
        usual = [names[c] for c in first]
        if query.columns is not None:
            wanted = [names[c] for c in query.columns if c < len(names)]
            hidden, added = frozenset(usual).difference(wanted), frozenset(wanted).difference(usual)
            # Choices about columns that this table lacks are not changed.
            before = self._chosen.get((grid, query.table), (frozenset(), frozenset()))
            self._chosen[grid, query.table] = (
                hidden | before[0].difference(names),
                added | before[1].difference(names),
            )
            return list(query.columns)
        hidden, added = self._chosen.get((grid, query.table), (frozenset(), frozenset()))
        chosen = {c for c in first if names[c] not in hidden} | {c for c, name in enumerate(names) if name in added}
        return sorted(chosen or first)[:MAX_COLUMNS]

    @shown
    def _on_query(self, change: Bunch) -> None:
        old = change["old"] if isinstance(change["old"], Mapping) else {}
        for grid, raw in self.query.items():
            if raw != old.get(grid):
                self.load(grid, GridQuery.parse(raw))

    def _refused(self, grid: str, query: GridQuery, error: FilterError) -> dict[str, Any]:
        """Return the page now shown, with a filter's error added; raise the error if that page shows another table."""
        page = self.pages.get(grid, {})
        if "rows" not in page or (page["of"], page["table"]) != (query.of, query.table):
            raise error
        return {**page, "n": query.n, "refused": signs(str(error)), "unfinished": error.unfinished}

    # Messages ---------------------------------------------------------------------------------------------------------

    def _on_message(self, content: object) -> None:
        if not isinstance(content, Mapping) or "want" not in content:
            return
        back = {"grid": content.get("grid"), "n": content.get("n")}

        def read() -> dict[str, Any]:
            try:
                return {**back, **self._whole(content)}
            except Exception as error:  # the browser waits for an answer, so errors are sent too
                return {**back, "error": safe_text(str(error)[:500])}

        self.host.run(f"whole:{str(back['grid'])[:100]}", "Reading", read, self.host.send)

    def _whole(self, content: Mapping[str, Any]) -> dict[str, Any]:
        grid, want, at = content.get("grid"), content["want"], content.get("row", 0)
        query = GridQuery.parse({key: content.get(key) for key in ("of", "table", "sort", "filters")})
        column = content.get("column", 0)
        if not isinstance(grid, str) or type(at) is not int or type(column) is not int:
            raise OptionError("grid must be text, row and column integers")
        table = self.table(grid, query.of, query.table)
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
    """Return the position of a row, given by number, in the order shown; None if it is filtered out."""
    if place is None or rows is None:
        return place
    found = np.flatnonzero(rows == place)
    return int(found[0]) if len(found) else None
