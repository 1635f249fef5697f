"""The help of the columns in tables of entries: what each is, and the field of the spec that it shows."""

from __future__ import annotations

from typing import Any

from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState, TreeNode
from iceexplore.metadata import Dialect
from iceexplore.widgets.core._ids import rows_of_node, snapshot_of_node
from iceexplore.widgets.detail._field_docs import ENTRY_KINDS, column_meaning, help_sent
from iceexplore.widgets.detail._node_tables import FILES, table_docs

__all__ = ["dialect_of_node", "table_help"]

_MANIFESTS = ("data-manifest", "delete-manifest")
#: The tables whose rows are entries, with the kinds of their entries. Columns of other tables show no manifest fields.
_KINDS: dict[str, frozenset[str]] = {
    "leaf": ENTRY_KINDS,
    "removed": FILES,
    "content_entries": ENTRY_KINDS,
    "entries": FILES,
    "files": FILES,
    "manifests": frozenset(_MANIFESTS),
}


def dialect_of_node(state: TableState | None, node: TreeNode, *, own: bool = False) -> Dialect | None:
    """Return the dialect of the root or manifest list under which a node is listed; None if it cannot be read.

    Parameters
    ----------
    own
        Whether to return a manifest's own dialect instead, which is an older one if it was written before an upgrade.
    """
    snapshot, rows = snapshot_of_node(node.id), rows_of_node(node.id)
    if state is None or snapshot is None:
        return None
    try:
        root = state.root(state.metadata.snapshot(snapshot))
        if root is None or not (own and rows and node.kind in _MANIFESTS):
            return None if root is None else root.dialect
        return state.reader.leaf(root, rows[0], frozenset({"entries"})).dialect
    except IceexploreError:
        return None


def table_help(state: TableState, node: TreeNode, key: str) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return help for a table's columns, by name, and the open points that it mentions, by id; see `help_sent`.

    Both are empty for a table whose rows are not entries.
    """
    kinds = _KINDS.get(key)
    if kinds is None:
        return {}, {}
    dialect = dialect_of_node(state, node, own=key == "leaf")
    opened: dict[str, list[Any]] = {}
    found: dict[str, list[Any]] = {}
    for name, doc in table_docs(state, node, key).items():
        meant, points = column_meaning(name, doc, FILES if node.kind in _MANIFESTS else kinds, dialect)
        found[name] = help_sent(meant, points, opened)
    return found, opened
