"""The tables of a node of the tree, in any state of a table: that of the widget, or one that a simulation made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iceexplore.graph import DeletedRows, TableState, TreeNode, deleted_rows
from iceexplore.widgets.core._error_messages import unread
from iceexplore.widgets.detail._node_rows import nodes_of_rows
from iceexplore.widgets.detail._node_tables import JSON, load_table, state_at, table_docs
from iceexplore.widgets.detail._table_help import table_help
from iceexplore.widgets.detail._table_views import view_of
from iceexplore.widgets.grid._table import GridTable
from iceexplore.widgets.grid._view import TableView

__all__ = ["NodeOfState"]


@dataclass(frozen=True)
class NodeOfState:
    """A node in a state of the table, with its tables by key, for a `GridSource`.

    The changes of a snapshot are not among its tables: `iceexplore.widgets.changes` has them.
    """

    state: TableState
    node: TreeNode

    def table(self, key: str) -> GridTable:
        """Return a table; raise OptionError if the node has no such table."""
        return load_table(self.state, self.node, key)

    def text(self, key: str) -> dict[str, Any] | None:
        """Return the node's JSON; None for the key of a table."""
        if key != JSON:
            return None
        from iceexplore.widgets.detail._raw_json import raw_json

        return {"text": raw_json(self.state, self.node)}

    def nodes(self, key: str, table: GridTable, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the ids of the nodes that rows of a table represent."""
        return nodes_of_rows(self.state, self.node, key, table, rows)

    def deletes(self) -> DeletedRows:
        """Return the deleted rows of the data files of the node's snapshot."""
        return deleted_rows(state_at(self.state, self.node))

    def view(self, key: str, names: Sequence[str], deletes: Callable[[], DeletedRows]) -> TableView:
        """Return how to show a table: essential columns first."""
        return view_of(self.state, key, names, deletes)

    def unread(self, key: str) -> str:
        """Return the reason why rows may be missing, such as an unreadable manifest."""
        kind, _, rest = self.node.id.partition(":")
        if kind not in ("snapshot", "root", "manifest"):
            return ""
        snapshot, _, row = rest.partition(":")
        chosen = self.state.metadata.snapshot(int(snapshot))
        return unread(self.state, chosen, int(row) if row else None, leaves=key != "manifests")

    def docs(self, key: str) -> Mapping[str, str]:
        """Return what the spec says about the columns of a table."""
        return table_docs(self.state, self.node, key)

    def help(self, key: str) -> tuple[Mapping[str, list[Any]], Mapping[str, list[Any]]]:
        """Return help for the columns of a table of entries, and the open points that it mentions."""
        return table_help(self.state, self.node, key)
