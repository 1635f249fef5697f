"""The details of the selected node: kind, fields, problems and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import traitlets

from iceexplore.errors import OptionError
from iceexplore.graph import DeletedRows, TreeNode
from iceexplore.widgets.changes._tables import CHANGES, ChangeTables, is_changes
from iceexplore.widgets.core._blocks import Block
from iceexplore.widgets.core._ids import snapshot_of_node
from iceexplore.widgets.core._panel import Panel, PanelHost, SyncedTrait
from iceexplore.widgets.core._static_html import detail_html
from iceexplore.widgets.detail._detail import detail_of
from iceexplore.widgets.detail._node_of_state import NodeOfState
from iceexplore.widgets.detail._node_rows import row_of_node
from iceexplore.widgets.detail._node_tables import JSON, Tab, parent_table, tables_of, tabs_of
from iceexplore.widgets.detail._table_views import view_of
from iceexplore.widgets.grid._panel import GridPanel, GridSource
from iceexplore.widgets.grid._query import GridQuery
from iceexplore.widgets.grid._table import GridTable
from iceexplore.widgets.grid._view import TableView
from iceexplore.widgets.tree._panel import TreePanel

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DetailPanel"]

_GRID = "detail"


class DetailPanel(Panel):
    """The details of the tree's selected node, and its tables (grid ``"detail"``).

    The table shown may also be one in which the node is a row. When a row that represents a node is opened, the table
    stays: the browser sets the node in ``selection`` and in ``query``.

    Attributes
    ----------
    detail
        See `iceexplore.widgets.detail._detail.detail_of`.
    details_hidden
        Whether the details are hidden, so that the tree takes their room. None means the last choice in the browser's
        session; without one, the details are shown.
    """

    detail = SyncedTrait(traitlets.Dict())
    details_hidden = SyncedTrait(traitlets.Bool(None, allow_none=True))

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self._tree = host.panel(TreePanel)
        self._grid = host.panel(GridPanel)
        self.tables = NodeTables(host, self._tree, self._grid)
        self._grid.add(_GRID, self.tables, self._on_page)
        self._known = (0, 0)  # the numbers of problems and of files read when the details were built

    def first(self, selection: Mapping[str, str]) -> dict[str, Any]:
        """Return the details of the selected node."""
        return {"detail": self.detail_of(self._tree.forest.node(selection["node"]))}

    def begin(self) -> None:
        """Show the first table of the selected node."""
        self._first_page(self._tree.selected)

    @property
    def selected_table(self) -> pd.DataFrame | None:
        """The table below the selected node's details, complete, as a DataFrame; None if the node has no table."""
        page = self._grid.pages.get(_GRID, {})
        tab = self._tab(page)
        if tab is not None and tab.key != JSON:
            return self._grid.frame(_GRID, tab.of, tab.key)
        node = self._tree.selected
        keys = tables_of(node)
        return self._grid.frame(_GRID, node.id, keys[0].key) if keys else None

    def on_selected(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Show the selected node's details, and one of its tables or the one in which it is a row."""
        wanted = new["node"]
        same_pair = old["against"] == new["against"]
        if old["node"] == wanted and same_pair and self.detail.get("id") == wanted:
            return
        page = self._grid.pages.get(_GRID, {})
        asked = self._grid.query.get(_GRID)
        query: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {}
        waiting = _number(query) > _number(page)
        answered = all(query.get(key) == page.get(key) for key in ("of", "table", "node"))
        opened = query.get("node") == wanted and (waiting or answered)  # opened from a row of the queried page
        before = query if opened else page if page.get("of") not in (None, old["node"]) else {}
        latest = _latest(page, query if waiting else {})

        def read() -> tuple[TreeNode, Tab | None, dict[str, Any]]:
            node = self._tree.forest.node(wanted)
            kept = self._table_with(node, before)
            return node, kept, self.detail_of(node, kept)

        def show(read: tuple[TreeNode, Tab | None, dict[str, Any]]) -> None:
            node, kept, self.detail = read
            if kept is None and waiting and query.get("of") == wanted:
                return  # the browser requested one of the node's tables together with the node
            if kept is None:
                keeps = latest.get("of") == old["node"] and same_pair
                self._first_page(node, latest if keeps else {})
            elif not (opened and waiting):
                self._turn_to(kept, wanted)

        self.host.run("detail", "Reading", read, show)

    def on_read(self) -> None:
        """Show what was found: problems, and whether recorded numbers were counted."""
        self._on_page()

    def on_cancelled(self, selection: Mapping[str, str]) -> None:
        """Select the node whose details are shown, so that the one whose reading was cancelled can be selected anew."""
        selected = self.host.selection["node"]
        described = self.detail.get("id", selected)
        if described != selected:
            self.host.select(described)

    def no_kernel_html(self) -> str:
        """Return the details and the page shown as HTML."""
        return detail_html(self.detail, self._grid.pages.get(_GRID, {}))

    def detail_of(self, node: TreeNode, kept: Tab | None = None) -> dict[str, Any]:
        """Return a node's details, with a tab for a table in which the node is a row: ``kept``, or the parent's."""
        self._known = self._now()
        parent = (
            self._tree.forest.node(node.parent) if node.id.startswith(("manifest:", "file:")) and node.parent else None
        )
        own = parent_table(node, parent)
        return detail_of(node, self.host.state, kept or own, self._against(node))

    def _against(self, node: TreeNode) -> str:
        """Return the id of the snapshot with which a node's snapshot is compared; empty for none."""
        chosen = self.host.selection
        pair = (chosen["snapshot"], chosen["against"])
        other = {f"snapshot:{pair[0]}": pair[1], f"snapshot:{pair[1]}": pair[0]}.get(node.id, "")
        return other if all(pair) and pair[0] != pair[1] else ""

    def _turn_to(self, tab: Tab, node: str) -> None:
        """Show the page of a table that contains a node's row, in the order requested last."""
        page, asked = self._grid.pages.get(_GRID, {}), self._grid.query.get(_GRID, {})
        newest = asked if _number(asked) > _number(page) else _again(page)
        if (newest.get("of"), newest.get("table")) == (tab.of, tab.key):  # else another was requested meanwhile
            self._grid.load(_GRID, GridQuery.parse({**newest, "node": node}))

    def _table_with(self, node: TreeNode, page: Mapping[str, Any]) -> Tab | None:
        """Return a tab for the table that is shown if a node is one of its rows, otherwise None."""
        of, key = page.get("of"), page.get("table")
        if not isinstance(of, str) or not isinstance(key, str) or of == node.id:
            return None
        listed = self._tree.forest.node(of)
        title = next((t.title for t in tabs_of(listed, against=self._against(listed)) if t.key == key), None)
        if title is None or self.tables.row(of, key, node.id) is None:
            return None
        return Tab(key, f"↑ {title}", of)

    def _on_page(self) -> None:
        """Update the details shown with what was found while the page shown was read."""
        node = self.detail.get("id", "")
        if not node or self._known == self._now():
            return

        def show(detail: dict[str, Any]) -> None:
            if self.detail.get("id") == node:
                self.detail = {**detail, "tables": self.detail["tables"]}

        self.host.run_silently("details", lambda: self.detail_of(self._tree.forest.node(node)), show)

    def _now(self) -> tuple[int, int]:
        return len(self.host.state.problems), len(self.host.state.reader.seen)

    def _tab(self, page: Mapping[str, Any]) -> Tab | None:
        """Return the tab of the selected node to which a page belongs; None if there is none."""
        for tab in self.detail.get("tables", ()):
            if (tab["of"], tab["key"]) == (page.get("of"), page.get("table")):
                return Tab(tab["key"], tab["title"], tab["of"])
        return None

    def _first_page(self, node: TreeNode, before: Mapping[str, Any] | None = None) -> None:
        """Show a table of a node, by default the first.

        If ``before`` is a query for a table of a node of the same kind, show the same table of this node, in its order.
        """
        tabs = tabs_of(node, against=self._against(node))
        if not tabs:
            self._grid.remove_page(_GRID)
            return
        n = _number(self._grid.query.get(_GRID))
        kind, alike = node.id.partition(":")[0], before or {}
        same = next((t for t in tabs if t.of == node.id and t.key == alike.get("table")), None)
        if same is None or str(alike.get("of")).partition(":")[0] != kind:
            first = GridQuery(tabs[0].of, tabs[0].key, n=n)
            choose = partial(self.tables.first_table, node) if first.table == CHANGES else None
            self._grid.load(_GRID, first, choose=choose)
            return
        query = {**alike, "of": node.id, "n": n}
        if kind not in ("snapshot", "root"):
            query["filters"] = []  # they filtered the rows of a different file or manifest
        names = [column["name"] for column in self._grid.pages.get(_GRID, {}).get("columns", ())]
        self._grid.load(_GRID, GridQuery.parse(query), names)


class NodeTables(GridSource):
    """The tables of tree nodes, for a grid whose tables' owners are node ids.

    Parameters
    ----------
    host, tree, grid
        The widget, and its panels with the nodes and with the tables.
    """

    def __init__(self, host: PanelHost, tree: TreePanel, grid: GridPanel) -> None:
        self._host, self._tree, self._grid = host, tree, grid
        self.changes = ChangeTables(host.state)
        self._deletes: tuple[str, DeletedRows] | None = None  # of the last snapshot whose files were shown

    def first_table(self, node: TreeNode) -> str:
        """Return the table of a snapshot to show without a request: its changes where these are cheap to count."""
        return CHANGES if self.changes.cheap(_snapshot(node.id)) else "manifests"

    def _at(self, node: str) -> NodeOfState:
        return NodeOfState(self._host.state, self._tree.forest.node(node))

    def frame(self, of: str, table: str) -> pd.DataFrame | GridTable:
        """Return a table of a node."""
        if is_changes(table):
            return self.changes.table(_snapshot(of), table)
        return self._at(of).table(table)

    def text(self, of: str, table: str) -> dict[str, Any] | None:
        """Return a node's JSON."""
        return self._at(of).text(table) if table == JSON else None

    def nodes(self, of: str, table: str, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the nodes that rows represent."""
        if is_changes(table):
            return self.changes.nodes(_snapshot(of), table, rows)
        return self._at(of).nodes(table, self._grid.table(_GRID, of, table), rows)

    def view(self, of: str, table: str, names: Sequence[str]) -> TableView:
        """Return how to show a table: essential columns first."""
        return view_of(self._host.state, table, names, partial(self._deleted_rows, of))

    def _deleted_rows(self, of: str) -> DeletedRows:
        if self._deletes is None or self._deletes[0] != of:
            self._deletes = (of, self._at(of).deletes())
        return self._deletes[1]

    def row(self, of: str, table: str, node: str) -> int | None:
        """Return the row that represents a node."""
        if is_changes(table):
            return self.changes.row(_snapshot(of), table, node)
        whole = self._grid.table(_GRID, of, table)
        return row_of_node(self._host.state, self._at(of).node, table, whole, self._at(node).node)

    def unread(self, of: str, table: str) -> str:
        """Return the reason why rows may be missing, such as an unreadable manifest."""
        if is_changes(table):
            return self.changes.missing(_snapshot(of), table)
        return self._at(of).unread(table)

    def docs(self, of: str, table: str) -> Mapping[str, str]:
        """Return what the spec says about the columns."""
        return self._at(of).docs(CHANGES if is_changes(table) else table)

    def help(self, of: str, table: str) -> tuple[Mapping[str, list[Any]], Mapping[str, list[Any]]]:
        """Return help for the columns of a table of entries, and the open points that it mentions."""
        return ({}, {}) if is_changes(table) else self._at(of).help(table)

    def above(self, of: str, table: str) -> list[Block]:
        """Return the sums to show above a table of changes; nothing for other tables."""
        return self.changes.above(_snapshot(of), table) if is_changes(table) else []

    def none(self, of: str, table: str) -> str:
        """Return the text for a table of changes without rows; empty for other tables."""
        return "No files were added or removed." if is_changes(table) else ""


def _snapshot(node: str) -> int:
    """Return the snapshot id of a snapshot's node.

    Raises
    ------
    OptionError
        The node is not a snapshot, so it has no changes.
    """
    found = snapshot_of_node(node)
    if found is None or not node.startswith("snapshot:"):
        raise OptionError(f"{node[:80]!r} has no changes: only snapshots have changes")
    return found


def _number(query: object) -> int:
    n = query.get("n", 0) if isinstance(query, Mapping) else 0
    return n if isinstance(n, int) else 0


def _again(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query of the page shown."""
    kept = {key: page[key] for key in ("n", "of", "table", "sort", "filters") if key in page}
    return {**kept, "columns": page["shown"]} if page.get("shown") else kept


def _latest(page: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the latest query: that of the page shown, or one that was requested since.

    Columns are left out, because the grid remembers them; the sort order and filters are left out of a query for a
    table other than the one shown.
    """
    query = {**asked} if asked else _again(page)
    if not (query.get("of") and query.get("table")):
        return {}
    if (query["of"], query["table"]) != (page.get("of"), page.get("table")):
        return {"of": query["of"], "table": query["table"]}
    return {key: query[key] for key in ("of", "table", "sort", "filters") if query.get(key)}
