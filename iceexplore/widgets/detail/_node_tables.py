"""The tables of a node of the tree, and its tabs."""

from __future__ import annotations

from dataclasses import dataclass

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, TreeNode, travel
from iceexplore.widgets.changes._tables import CHANGES, COLUMN_DOCS, compared_key
from iceexplore.widgets.grid._table import ArrowTable, GridTable, LeafTable

__all__ = [
    "JSON",
    "MANY_ROWS",
    "Tab",
    "TableKey",
    "load_table",
    "parent_table",
    "state_at",
    "table_docs",
    "tables_of",
    "tabs_of",
]

#: Maximum number of rows from a snapshot's manifests that are built at once. In a larger table, rows are built only
#: when they are viewed, as each takes 1 to 3 kB.
MANY_ROWS = 50_000
#: The key of the tab with a node's raw JSON.
JSON = "json"


@dataclass(frozen=True)
class TableKey:
    """A table of a node: its key, in `iceexplore.inspect` or this module, and the title of its tab."""

    key: str
    title: str


@dataclass(frozen=True)
class Tab:
    """A tab of the detail pane: the table ``key`` of the node ``of``, which may not be the selected one."""

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
        TableKey(CHANGES, "Changes"),  # shown first if the changes are cheap to count
        TableKey("manifests", "Manifests"),  # needs no files that the tree has not read
        TableKey("files", "Files"),
        TableKey("partitions", "Partitions"),
        TableKey("entries", "Entries"),
    ),
    "manifest-list": (TableKey("manifests", "Manifests"), TableKey("content_entries", "Content entries")),
    "root-manifest": (
        TableKey("leaf", "Entries"),  # first, as it needs no files that the tree has not read
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
#: Descriptions of columns in tables that are not metadata tables, unless `iceexplore.inspect` has them.
_OWN_DOCS = {
    CHANGES: COLUMN_DOCS,
    "leaf": {
        "file": "name of the file",
        "content": "kind of the entry, by name",
        "status": "status of the entry, by name",
        "removed_by": "ordinal, in the root, of the manifest DV that removes this entry (V4)",
        "referenced_file": "the only file to which the delete applies",
    },
    "removed": {
        "ordinal": "position of the entry in its leaf, from 0",
        "file": "name of the file",
        "content": "kind of the entry, by name",
        "status": "status of the entry, by name",
    },
    "columns": {
        "id": "field id; names may change, ids do not",
        "lower": "lower bound: at most the smallest value",
        "upper": "upper bound: at least the largest value",
        "null_count": "null values",
        "nan_count": "NaN values",
        "type": "type of the column",
    },
}
#: Descriptions of columns that the grid adds to metadata tables.
_MORE_DOCS = {
    "deleted_rows": "rows deleted by the file's deletion vector, or by position delete files for this file alone",
    "snapshot_id": "snapshot that added the file",
}


def tables_of(node: TreeNode) -> tuple[TableKey, ...]:
    """Return the tables of a node, the default one first."""
    if node.id.startswith("metadata:"):  # an earlier metadata file, of which only the location is known
        return ()
    return _TABLES.get(node.kind, ())


def parent_table(node: TreeNode, parent: TreeNode | None) -> Tab | None:
    """Return the table in which a node is a row; None if there is none."""
    if node.kind in ("snapshot", "branch", "tag"):
        key = "snapshots" if node.kind == "snapshot" else "refs"
        return Tab(key, f"↑ {key.capitalize()}", "table")
    if node.id.startswith("metadata:"):
        return Tab("metadata_log_entries", "↑ Metadata log", "metadata")
    if node.id.startswith(("manifest:", "file:")) and parent is not None:
        table = tables_of(parent)[0]
        return Tab(table.key, f"↑ {table.title}", parent.id)
    return None


def tabs_of(node: TreeNode, beside: Tab | None = None, against: str = "") -> list[Tab]:
    """Return the tabs of a node: its tables, the table in which it is a row (``beside``), and its JSON.

    If the node is a snapshot that is compared with the snapshot ``against``, the first tab is that of the comparison.
    """
    own = [Tab(t.key, t.title, node.id) for t in tables_of(node)]
    if against and node.kind == "snapshot":
        own.insert(0, Tab(compared_key(against), "Compared", node.id))
    raw = [] if node.id.startswith("metadata:") else [Tab(JSON, "JSON", node.id)]
    return [*own, *([beside] if beside else []), *raw]


def load_table(state: TableState, node: TreeNode, key: str) -> GridTable:
    """Return a table of a node. If it has many rows from manifests, rows are built only when they are viewed.

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

        return column_table(state, node)
    from iceexplore.inspect import Inspect

    table = Inspect(state_at(state, node))[key]
    rows = table.by_leaf(("snapshot_id",) if key == "files" else ())
    if rows is None:
        return ArrowTable(table.arrow())
    few = rows.if_few(MANY_ROWS)
    if few is None:
        return LeafTable(table, rows)
    return ArrowTable(few, table.schema.names)


def table_docs(state: TableState, node: TreeNode, key: str) -> dict[str, str]:
    """Return the descriptions of a table's columns, by name."""
    from iceexplore.inspect import Inspect

    inspect = Inspect(state)
    if key in _OWN_DOCS:
        return {**inspect["content_entries" if key != "columns" else "column_stats"].columns, **_OWN_DOCS[key]}
    more = {**inspect["files"].columns, **_MORE_DOCS} if key in ("files", "entries") else _MORE_DOCS
    return {**more, **inspect[key].columns}


def state_at(state: TableState, node: TreeNode) -> TableState:
    """Return the table's state at the snapshot of a snapshot, root or statistics node; for other nodes, ``state``."""
    parts = node.id.split(":")
    return travel(state, snapshot=int(parts[1])) if parts[0] in ("snapshot", "root", "statistics") else state
