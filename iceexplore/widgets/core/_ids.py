"""Ids of snapshots as text, which is what a browser can hold of them, and nodes' ids taken apart."""

from __future__ import annotations

import re
from urllib.parse import quote

__all__ = ["id_of", "ref_id", "rows_of_node", "snapshot_of_node"]

#: An int64 in digits. Some writers draw ids from all of its range, so it may be negative. It has one spelling: ids are
#: compared as text.
_ID = re.compile(r"0|-?[1-9][0-9]{0,19}")
#: Kinds of nodes that are of one snapshot: their ids go on with its own.
_OF_SNAPSHOT = frozenset({"snapshot", "root", "statistics", "manifest", "file"})


def id_of(text: str) -> int | None:
    """A snapshot's id; None where the text is none."""
    return int(text) if _ID.fullmatch(text) else None


def ref_id(name: str) -> str:
    """The node of a branch or tag: see `iceexplore.graph.TreeNode`."""
    return "ref:" + quote(name, safe="", errors="surrogatepass")


def snapshot_of_node(node_id: str) -> int | None:
    """The snapshot of which a node is a part; None for one that is of the whole table."""
    kind, _, rest = node_id.partition(":")
    return id_of(rest.partition(":")[0]) if kind in _OF_SNAPSHOT else None


def rows_of_node(node_id: str) -> tuple[int, ...] | None:
    """What comes after the snapshot in a node's id: the rows that lead to it; None where that is no row."""
    rows = node_id.split(":")[2:]
    return tuple(map(int, rows)) if all(row.isascii() and row.isdecimal() for row in rows) else None
