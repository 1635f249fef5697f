"""Parse the ids of nodes and of snapshots. Snapshot ids are text here, since JavaScript numbers cannot hold them."""

from __future__ import annotations

import re
from urllib.parse import quote

__all__ = ["id_of", "ref_id", "rows_of_node", "snapshot_of_node"]

#: An int64 in decimal. It may be negative, as some writers use the full range. Only the canonical spelling matches, as
#: ids are compared as text.
_ID = re.compile(r"0|-?[1-9][0-9]{0,19}")
#: Kinds of nodes that belong to one snapshot; the node's id contains the snapshot's id after the kind.
_OF_SNAPSHOT = frozenset({"snapshot", "root", "statistics", "manifest", "file"})


def id_of(text: str) -> int | None:
    """Parse a text as a snapshot id; return None if it is not one."""
    return int(text) if _ID.fullmatch(text) else None


def ref_id(name: str) -> str:
    """Return the node id of a branch or tag; see `iceexplore.graph.TreeNode`."""
    return "ref:" + quote(name, safe="", errors="surrogatepass")


def snapshot_of_node(node_id: str) -> int | None:
    """Return the id of the snapshot to which a node belongs; None for a node of the whole table."""
    kind, _, rest = node_id.partition(":")
    return id_of(rest.partition(":")[0]) if kind in _OF_SNAPSHOT else None


def rows_of_node(node_id: str) -> tuple[int, ...] | None:
    """Return the row numbers that follow the snapshot id in a node's id; None if something else follows."""
    rows = node_id.split(":")[2:]
    return tuple(map(int, rows)) if all(row.isascii() and row.isdecimal() for row in rows) else None
