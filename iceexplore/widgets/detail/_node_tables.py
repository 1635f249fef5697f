"""The tables of a node of the tree, and its tabs."""

from __future__ import annotations

from dataclasses import dataclass

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, TreeNode, travel
from iceexplore.widgets.grid._table import ArrowTable, FrameTable, GridTable, LeafTable

__all__ = ["JSON", "MANY_ROWS", "Tab", "TableKey", "load_table", "parent_table", "table_docs", "tables_of", "tabs_of"]

#: Rows of a snapshot's manifests that are made all at once; of more only those that are looked at, for they take 1 to
#: 3 kB each.
MANY_ROWS = 50_000
#: The key of the tab that has a node's raw JSON.
JSON = "json"


@dataclass(frozen=True)
class TableKey:
    """A table of a node: what it is called in `iceexplore.inspect` or here, and on its tab."""

    key: str
    title: str


@dataclass(frozen=True)
class Tab:
    """A tab of the detail pane: a table ``key`` of the node ``of``, which need not be the one that is selected."""

    key: str
    title: str
    of: str


FILES = frozenset({"data-file", "position-delete", "equality-delete", "deletion-vector"})
_TABLES: dict[str, tuple[TableKey, ...]] = {
    "table": (
        TableKey("snapshots", "Snapshots"),
        TableKey("refs", "Refs"),
        TableKey("schemas", "Schemas"),
        TableKey("specs", "Specs"),
        TableKey("properties", "Properties"),
        TableKey("history", "History"),
    ),
    "metadata": (
        TableKey("schemas", "Schemas"),
        TableKey("specs", "Specs"),
        TableKey("sort_orders", "Sort orders"),
        TableKey("metadata_log_entries", "Metadata log"),
    ),
    "snapshot": (
        TableKey("manifests", "Manifests"),  # first: it costs no more than the tree
        TableKey("files", "Files"),
        TableKey("partitions", "Partitions"),
        TableKey("entries", "Entries"),
    ),
    "manifest-list": (TableKey("manifests", "Manifests"), TableKey("content_entries", "Content entries")),
    "root-manifest": (
        TableKey("leaf", "Entries"),  # first: it costs no more than the tree
        TableKey("manifests", "Manifests"),
        TableKey("manifest_deletion_vectors", "Manifest DVs"),
        TableKey("content_entries", "Content entries"),
    ),
    "manifest-dv": (TableKey("removed", "Removed entries"),),
    "data-manifest": (TableKey("leaf", "Entries"),),
    "delete-manifest": (TableKey("leaf", "Entries"),),
    "statistics": (TableKey("puffin_blobs", "Puffin blobs"),),
    **dict.fromkeys(FILES, (TableKey("columns", "Columns"),)),
}
#: What the columns of tables that are no metadata tables mean, where that is not said there.
_OWN_DOCS = {
    "leaf": {
        "file": "name of the file",
        "content": "kind of the entry, by name",
        "status": "status of the entry, by name",
        "removed_by": "ordinal, in the root, of the manifest DV that removes this entry (V4)",
        "referenced_file": "the only file that the delete is for",
    },
    "removed": {
        "ordinal": "place of the entry in its leaf, from 0",
        "file": "name of the file",
        "content": "kind of the entry, by name",
        "status": "status of the entry, by name",
    },
    "columns": {
        "id": "id of the field; names change, ids do not",
        "lower": "smallest value, or below it",
        "upper": "largest value, or above it",
        "null_count": "null values",
        "nan_count": "NaN values",
        "type": "type of the column",
    },
}


def tables_of(node: TreeNode) -> tuple[TableKey, ...]:
    """The tables of a node, the one to show first coming first."""
    if node.id.startswith("metadata:"):  # an earlier metadata file: known by name, not read
        return ()
    return _TABLES.get(node.kind, ())


def parent_table(node: TreeNode, parent: TreeNode | None) -> Tab | None:
    """The table in which a node is a row: of its parent, if it has one with its children."""
    if node.kind in ("snapshot", "branch", "tag"):
        key = "snapshots" if node.kind == "snapshot" else "refs"
        return Tab(key, f"In {key}", "table")
    if node.id.startswith("metadata:"):
        return Tab("metadata_log_entries", "In metadata log", "metadata")
    if node.id.startswith(("manifest:", "file:")) and parent is not None:
        table = tables_of(parent)[0]
        return Tab(table.key, f"In {table.title.lower()}", parent.id)
    return None


def tabs_of(node: TreeNode, beside: Tab | None = None) -> list[Tab]:
    """The tabs of a node: its tables, the table in which it is a row (``beside``), its JSON."""
    own = [Tab(t.key, t.title, node.id) for t in tables_of(node)]
    raw = [] if node.id.startswith("metadata:") else [Tab(JSON, "JSON", node.id)]
    return [*own, *([beside] if beside else []), *raw]


def load_table(state: TableState, node: TreeNode, key: str) -> GridTable:
    """A table of a node. Of many rows that stand in manifests only those are made that are looked at.

    Raises
    ------
    OptionError
        The node has no such table.
    """
    if key not in {t.key for t in tables_of(node)}:
        raise OptionError(f"{node.kind} {node.label!r} has no table {key!r}")
    if key == "leaf":
        from iceexplore.widgets.detail._manifest_tables import leaf_table

        return ArrowTable(leaf_table(state, node))
    if key == "removed":
        from iceexplore.widgets.detail._manifest_tables import removed_table

        return ArrowTable(removed_table(state, node))
    if key == "columns":
        from iceexplore.widgets.detail._manifest_tables import column_table

        return FrameTable(column_table(state, node))
    from iceexplore.inspect import Inspect

    table = Inspect(_state_at(state, node))[key]
    rows = table.by_leaf()
    return ArrowTable(table.arrow()) if rows is None or len(rows) <= MANY_ROWS else LeafTable(table, rows)


def table_docs(state: TableState, node: TreeNode, key: str) -> dict[str, str]:
    """What the columns of a table of a node mean, by name."""
    from iceexplore.inspect import Inspect

    if key in _OWN_DOCS:
        return {**Inspect(state)["content_entries" if key != "columns" else "column_stats"].columns, **_OWN_DOCS[key]}
    return Inspect(state)[key].columns


def _state_at(state: TableState, node: TreeNode) -> TableState:
    """The state in which the node's snapshot is shown."""
    parts = node.id.split(":")
    return travel(state, snapshot=int(parts[1])) if parts[0] in ("snapshot", "root", "statistics") else state
