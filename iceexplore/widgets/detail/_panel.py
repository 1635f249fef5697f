"""The details of the selected node: kind, fields, problems and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.graph import TreeNode
from iceexplore.widgets.core._error_messages import unread
from iceexplore.widgets.core._static_html import detail_html
from iceexplore.widgets.core._table_widget import shown
from iceexplore.widgets.detail._detail import detail_of
from iceexplore.widgets.detail._node_rows import nodes_of_rows, row_of_node
from iceexplore.widgets.detail._node_tables import JSON, Tab, load_table, parent_table, table_docs, tables_of, tabs_of
from iceexplore.widgets.grid._panel import GridPart
from iceexplore.widgets.grid._query import GridQuery
from iceexplore.widgets.grid._table import GridTable
from iceexplore.widgets.tree._panel import TreePart

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DetailPart"]

_GRID = "detail"


class DetailPart(TreePart, GridPart):
    """The details of the tree's selected node, and its tables (grid ``"detail"``).

    The table shown may also be one in which the node is a row. When a row that represents a node is opened, its table
    stays: the browser sets the node in ``selection`` and in ``query``.

    Attributes
    ----------
    detail
        See `iceexplore.widgets.detail._detail.detail_of`.
    """

    detail = traitlets.Dict().tag(sync=True)
    _known_problems = 0  # the number when the details were built

    def _first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        return super()._first(selection) | {"detail": self._detail_of(self._forest.node(selection["node"]))}

    def _begin(self) -> None:
        super()._begin()
        self._first_page(self.selected)

    @property
    def selected_table(self) -> pd.DataFrame | None:
        """The whole table whose page is shown, as a DataFrame; None if the selected node has none."""
        page = self.pages.get(_GRID, {})
        tab = self._tab(page)
        if tab is not None and tab.key != JSON:
            return self._frame(_GRID, tab.of, tab.key)
        node = self.selected
        keys = tables_of(node)
        return self._frame(_GRID, node.id, keys[0].key) if keys else None

    def _on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        super()._on_selected(old, new)
        wanted = new["node"]
        if old["node"] == wanted and self.detail.get("id") == wanted:
            return
        page = self.pages.get(_GRID, {})
        asked = self.query.get(_GRID)
        query: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {}
        waiting = _number(query) > _number(page)
        answered = all(query.get(key) == page.get(key) for key in ("of", "table", "node"))
        opened = query.get("node") == wanted and (waiting or answered)  # opened from a row, whose page the query wants
        before = query if opened else page if page.get("of") not in (None, old["node"]) else {}

        def read() -> tuple[TreeNode, Tab | None, dict[str, Any]]:
            node = self._forest.node(wanted)
            kept = self._table_with(node, before)
            return node, kept, self._detail_of(node, kept)

        def show(read: tuple[TreeNode, Tab | None, dict[str, Any]]) -> None:
            node, kept, self.detail = read
            if kept is None:
                self._first_page(node)
            elif not (opened and waiting):
                self._turn_to(kept, wanted)

        self._do("detail", "Reading", read, show)

    @shown
    def _on_cancelled(self, change: Any) -> None:
        super()._on_cancelled(change)
        described = self.detail.get("id", self.selection["node"])
        if described != self.selection["node"]:  # restore the node described, so that the other can be selected again
            self.select(described)

    def _no_kernel_html(self) -> str:
        return super()._no_kernel_html() + detail_html(self.detail, self.pages.get(_GRID, {}))

    def _detail_of(self, node: TreeNode, kept: Tab | None = None) -> dict[str, Any]:
        self._known_problems = len(self._state.problems)
        parent = self._forest.node(node.parent) if node.id.startswith(("manifest:", "file:")) and node.parent else None
        own = parent_table(node, parent)
        return detail_of(node, self._state, kept or own)

    def _turn_to(self, tab: Tab, node: str) -> None:
        """Show the page of a table with the row of a node, in the latest requested order."""
        page, asked = self.pages.get(_GRID, {}), self.query.get(_GRID, {})
        newest = asked if _number(asked) > _number(page) else _again(page)
        if (newest.get("of"), newest.get("table")) == (tab.of, tab.key):  # else another was requested meanwhile
            self._load_page(_GRID, GridQuery.parse({**newest, "node": node}))

    def _table_with(self, node: TreeNode, page: Mapping[str, Any]) -> Tab | None:
        """Return the tab of the table shown if a node is a row of it, else None."""
        of, key = page.get("of"), page.get("table")
        if not isinstance(of, str) or not isinstance(key, str) or of == node.id:
            return None
        title = next((t.title for t in tables_of(self._forest.node(of)) if t.key == key), None)
        if title is None or self._grid_row(_GRID, of, key, node.id) is None:
            return None
        return Tab(key, f"In {title.lower()}", of)

    def _show_page(self, grid: str, page: dict[str, Any]) -> None:
        """Show a page, and with the node's details the problems found while it was read."""
        super()._show_page(grid, page)
        node = self.detail.get("id", "")
        if grid != _GRID or not node or len(self._state.problems) == self._known_problems:
            return

        def show(detail: dict[str, Any]) -> None:
            if self.detail.get("id") == node:
                self.detail = {**detail, "tables": self.detail["tables"]}

        self._do("problems of a node", "Reading", lambda: self._detail_of(self._forest.node(node)), show)

    def _tab(self, page: Mapping[str, Any]) -> Tab | None:
        """Return the tab of the selected node to which a page belongs; None if there is none."""
        for tab in self.detail.get("tables", ()):
            if (tab["of"], tab["key"]) == (page.get("of"), page.get("table")):
                return Tab(tab["key"], tab["title"], tab["of"])
        return None

    def _first_page(self, node: TreeNode) -> None:
        tabs = tabs_of(node)
        if tabs:
            self._load_page(_GRID, GridQuery(tabs[0].of, tabs[0].key, n=_number(self.query.get(_GRID))))
        elif _GRID in self.pages:
            self.pages = {name: page for name, page in self.pages.items() if name != _GRID}

    # The grid ---------------------------------------------------------------------------------------------------------

    def _grid_frame(self, grid: str, of: str, table: str) -> pd.DataFrame | GridTable:
        if grid == _GRID:
            return load_table(self._state, self._forest.node(of), table)
        return super()._grid_frame(grid, of, table)

    def _grid_text(self, grid: str, of: str, table: str) -> dict[str, Any] | None:
        if grid == _GRID and table == JSON:
            from iceexplore.widgets.detail._raw_json import raw_json

            return {"text": raw_json(self._state, self._forest.node(of))}
        return super()._grid_text(grid, of, table)

    def _grid_nodes(self, grid: str, of: str, table: str, rows: Sequence[int]) -> Sequence[str | None]:
        if grid == _GRID:
            return nodes_of_rows(self._state, self._forest.node(of), table, self._grid_table(grid, of, table), rows)
        return super()._grid_nodes(grid, of, table, rows)

    def _grid_row(self, grid: str, of: str, table: str, node: str) -> int | None:
        if grid == _GRID:
            whole = self._grid_table(grid, of, table)
            return row_of_node(self._state, self._forest.node(of), table, whole, self._forest.node(node))
        return super()._grid_row(grid, of, table, node)

    def _grid_unread(self, grid: str, of: str, table: str) -> str:
        if grid != _GRID:
            return super()._grid_unread(grid, of, table)
        kind, _, rest = of.partition(":")
        if kind not in ("snapshot", "root", "manifest"):
            return ""
        snapshot, _, row = rest.partition(":")
        return unread(self._state, self._snapshot_of(snapshot), int(row) if row else None, leaves=table != "manifests")

    def _grid_docs(self, grid: str, of: str, table: str) -> Mapping[str, str]:
        if grid == _GRID:
            return table_docs(self._state, self._forest.node(of), table)
        return super()._grid_docs(grid, of, table)


def _number(query: Any) -> int:
    n = query.get("n", 0) if isinstance(query, Mapping) else 0
    return n if isinstance(n, int) else 0


def _again(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query of the page shown."""
    kept = {key: page[key] for key in ("n", "of", "table", "sort", "filters") if key in page}
    return {**kept, "columns": page["shown"]} if page.get("shown") else kept
