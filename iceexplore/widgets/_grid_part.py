"""Tables in a widget: pages of data frames, sorted and filtered in Python."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.errors import OptionError
from iceexplore.widgets._cells import page_of
from iceexplore.widgets._face import Face, shown

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GridPart"]

_KEPT_FRAMES = 4


class GridPart(Face):
    """A part with tables. Each place that shows one is a grid with a name: ``"detail"``, ``"problems"``.

    Attributes
    ----------
    query
        What the browser asks: ``n`` (counted up), ``grid``, ``of`` (what the table is of, a node's id), ``table``
        (which of its tables), ``page`` (from 0).
    pages
        By grid the page shown, with the query's ``n``, ``of`` and ``table``: see `iceexplore.widgets._cells.page_of`.
    """

    query = traitlets.Dict().tag(sync=True)
    pages = traitlets.Dict().tag(sync=True)

    def _prepare(self) -> None:
        super()._prepare()
        self._frames: OrderedDict[tuple[str, str, str], pd.DataFrame] = OrderedDict()
        self._lock = threading.Lock()

    def _begin(self) -> None:
        super()._begin()
        self.observe(self._on_query, "query")

    def _grid_frame(self, grid: str, of: str, table: str) -> pd.DataFrame:
        """A whole table. A part answers for its own grids, and leaves others to the next; runs in the worker.

        Raises
        ------
        OptionError
            There is no such table.
        """
        raise OptionError(f"there is no table {table!r} in {grid!r}")

    def _frame(self, grid: str, of: str, table: str) -> pd.DataFrame:
        """A table; the last few are kept."""
        at = (grid, of, table)
        with self._lock:  # asked by the worker and by the notebook: whoever is second waits, and finds it
            if at not in self._frames:
                self._frames[at] = self._grid_frame(grid, of, table)
            self._frames.move_to_end(at)
            while len(self._frames) > _KEPT_FRAMES:
                self._frames.popitem(last=False)
            return self._frames[at]

    @shown
    def _on_query(self, change: Any) -> None:
        query = self.query
        texts = [query.get(key) for key in ("grid", "of", "table")]
        page = query.get("page", 0)
        if not all(isinstance(t, str) for t in texts) or isinstance(page, bool) or not isinstance(page, int):
            raise OptionError(f"query={str(query)[:200]}: give n, grid, of, table (text) and page (a number from 0)")
        self._load_page(query)

    def _load_page(self, query: Mapping[str, Any]) -> None:
        """Show a page, as a query asks."""
        grid, of, table = (str(query[key]) for key in ("grid", "of", "table"))
        asked = {"n": query.get("n", 0), "of": of, "table": table}

        def read() -> dict[str, Any]:
            return {**asked, **page_of(self._frame(grid, of, table), query.get("page", 0))}

        def show(page: dict[str, Any]) -> None:
            self.pages = {**self.pages, grid: page}

        self._do(f"page:{grid}", "Reading", read, show)
