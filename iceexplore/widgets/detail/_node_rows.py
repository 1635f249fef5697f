"""Map rows of tables to the nodes of the tree that they represent, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, TreeNode, live_manifests
from iceexplore.manifests import CONTENT_NAMES, ContentType, Manifest, whole
from iceexplore.widgets.core._ids import ref_id
from iceexplore.widgets.grid._table import Columns, GridTable

__all__ = ["nodes_of_rows", "row_of_node"]

_MANIFESTS = {CONTENT_NAMES[k] for k in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)}


def nodes_of_rows(
    state: TableState, node: TreeNode, key: str, table: GridTable, rows: Sequence[int]
) -> list[str | None]:
    """Return the node ids of rows of a node's table, given by row number; None for rows that represent no node.

    Files of a whole snapshot are found by location in its manifests, which works for data files only.
    """
    none: list[str | None] = [None] * len(rows)
    kind, _, rest = node.id.partition(":")
    if key == "leaf":
        if kind == "manifest":
            return [f"file:{rest}:{row}" for row in rows]
        content = _some(table, rows, "content")
        return [
            f"{'manifest' if c in _MANIFESTS else 'file'}:{rest}:{row}" for c, row in zip(content, rows, strict=True)
        ]
    if key in ("snapshots", "history"):
        known = {s.snapshot_id for s in state.metadata.snapshots}
        return [f"snapshot:{int(i)}" if i in known else None for i in _some(table, rows, "snapshot_id")]
    if key == "refs":
        return [ref_id(str(name)) for name in _some(table, rows, "name")]
    if key == "metadata_log_entries":
        earlier = len(state.metadata.metadata_log)
        return [f"metadata:{row}" if row < earlier else "metadata" for row in rows]
    if kind not in ("snapshot", "root"):
        return none
    root = _root(state, int(rest))
    if root is None:
        return none
    if key == "manifests":
        places = live_manifests(root)
        return [f"manifest:{rest}:{places[row]}" if row < len(places) else None for row in rows]
    if key not in _PATHS or not len(rows):
        return none
    return _files(state, root, rest, _paths(table.some(rows, _PATHS[key]), key), rows[0] / len(table))


def row_of_node(state: TableState, node: TreeNode, key: str, table: GridTable, wanted: TreeNode) -> int | None:
    """Return the number of the row that represents a node; None if the table has none."""
    kind, _, rest = node.id.partition(":")
    name, _, own = wanted.id.partition(":")
    if key == "leaf":
        inside = f"file:{rest}:" if kind == "manifest" else None
        if wanted.parent != node.id or (inside and not wanted.id.startswith(inside)):
            return None
        return _within(int(own.rsplit(":", 1)[1]), table)
    if key in ("snapshots", "history") and name == "snapshot":
        return _first(pc.equal(_column(table, "snapshot_id"), int(own)))
    if key == "refs" and name == "ref":
        names = [ref_id(str(n)) for n in table.frame()["name"].tolist()]
        return names.index(wanted.id) if wanted.id in names else None
    if key == "metadata_log_entries" and name == "metadata":
        return _within(int(own) if own else len(state.metadata.metadata_log), table)
    if kind not in ("snapshot", "root") or not own.startswith(f"{rest}:"):
        return None
    if key == "manifests" and name == "manifest":
        root = _root(state, int(rest))
        places = [] if root is None else live_manifests(root)
        row = int(own.rsplit(":", 1)[1])
        return places.index(row) if row in places else None
    if key not in _PATHS or name != "file" or wanted.kind != "data-file":
        return None
    begin = 0
    for part in table.parts([table.names.index(column) for column in _PATHS[key]]):
        found = _first(pc.equal(_paths(part, key), wanted.location))
        if found is not None:
            return begin + found
        begin += len(part)
    return None


#: The columns with the content type and the location of files, by table, or the one column that holds both.
_PATHS = {
    "entries": ("data_file",),
    "files": ("content", "file_path"),
    "content_entries": ("content_type", "location"),
}


def _some(table: GridTable, rows: Sequence[int], name: str) -> list[Any]:
    """Return the values of a column in some rows."""
    return list(_column(table.some(rows, (name,)), name).to_pylist())


def _column(part: Columns, name: str) -> AnyArray:
    return part.column(part.names.index(name))


def _paths(part: Columns, key: str) -> AnyArray:
    """Return the locations of data files; null for other rows."""
    columns = [_column(part, name) for name in _PATHS[key]]
    if key == "entries":
        columns = [pc.struct_field(columns[0], name) for name in ("content", "file_path")]
    return pc.if_else(pc.equal(columns[0], 0), columns[1], pa.scalar(None, pa.string()))


def _files(state: TableState, root: Manifest, snapshot: str, paths: AnyArray, about: float) -> list[str | None]:
    """Return the node ids of data files by location: the entry of a live leaf or of the root that lists each.

    As tables follow the root's order, the search begins with the leaves near the rows' relative position in the table
    (``about``, 0 to 1); reading all leaves for a page could take seconds.
    """
    found: list[str | None] = [None] * len(paths)
    wanted = paths.drop_null().unique()
    if not len(wanted):
        return found
    ids: dict[str, str] = {}
    whole_root = np.flatnonzero(_is_data(root, wanted))
    for row in whole_root.tolist():
        ids.setdefault(root.entries["location"][row].as_py(), f"file:{snapshot}:{row}")
    leaves = live_manifests(root, (ContentType.DATA_MANIFEST,))
    middle = int(about * len(leaves))
    for _, row in sorted(enumerate(leaves), key=lambda leaf: abs(leaf[0] - middle)):
        if len(ids) == len(wanted):
            break
        leaf = state.reader.leaf(root, row)
        for at in np.flatnonzero(_is_data(leaf, wanted)).tolist():
            ids.setdefault(leaf.entries["location"][at].as_py(), f"file:{snapshot}:{row}:{at}")
    return [ids.get(path) if path is not None else None for path in paths.to_pylist()]


def _is_data(manifest: Manifest, paths: AnyArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    entries = manifest.entries
    data = pc.equal(entries["content_type"], int(ContentType.DATA))
    mask = whole(pc.fill_null(pc.and_(data, pc.is_in(entries["location"], value_set=paths)), False))
    return np.asarray(mask.to_numpy(zero_copy_only=False))


def _root(state: TableState, snapshot_id: int) -> Manifest | None:
    return state.root(state.metadata.snapshot(snapshot_id))


def _within(row: int, table: GridTable) -> int | None:
    return row if 0 <= row < len(table) else None


def _first(mask: pa.BooleanArray) -> int | None:
    found = np.flatnonzero(np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False)))
    return int(found[0]) if len(found) else None
