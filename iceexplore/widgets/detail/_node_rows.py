"""Map rows of tables to the nodes of the tree that they represent, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, TreeNode, live_manifests
from iceexplore.manifests import CONTENT_NAMES, ContentType, Manifest, whole
from iceexplore.widgets.core._ids import ref_id
from iceexplore.widgets.grid._table import Columns, GridTable

__all__ = ["nodes_of_rows", "row_of_node"]

_FILE_KINDS = (ContentType.DATA, ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
_FILES = pa.array([int(kind) for kind in _FILE_KINDS], pa.int32())
_MANIFESTS = {CONTENT_NAMES[k] for k in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)}


def nodes_of_rows(
    state: TableState, node: TreeNode, key: str, table: GridTable, rows: Sequence[int]
) -> list[str | None]:
    """Return the node ids of rows of a node's table, given by row number; None for rows that represent no node.

    Files of a whole snapshot are found by location in its manifests, deletion vectors also by offset.
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
    if key == "puffin_blobs":
        return _blob_nodes(state, int(rest.partition(":")[0]), table, rows)
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
    keys = _keys(*_places(table.some(rows, _PATHS[key]), key))
    found = _files(state, root, rest, keys, rows[0] / len(table))
    if key != "content_entries":
        return found
    # The entries of the root itself: manifests, and in V4 their deletion vectors.
    lists, ordinals, contents = (_some(table, rows, name) for name in ("manifest", "ordinal", "content_type"))
    for i, (place, ordinal, content) in enumerate(zip(lists, ordinals, contents, strict=True)):
        if place == root.location and ordinal is not None and content not in _FILE_KINDS:
            is_manifest = CONTENT_NAMES.get(content) in _MANIFESTS
            found[i] = f"{'manifest' if is_manifest else 'file'}:{rest}:{ordinal}"
    return found


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
    if key == "puffin_blobs":
        blobs = _blob_nodes(state, int(rest.partition(":")[0]), table, range(len(table)))
        return blobs.index(wanted.id) if wanted.id in blobs else None
    if key == "metadata_log_entries" and name == "metadata":
        return _within(int(own) if own else len(state.metadata.metadata_log), table)
    if kind not in ("snapshot", "root") or not own.startswith(f"{rest}:"):
        return None
    if key == "manifests" and name == "manifest":
        root = _root(state, int(rest))
        places = [] if root is None else live_manifests(root)
        row = int(own.rsplit(":", 1)[1])
        return places.index(row) if row in places else None
    if key == "content_entries" and own.count(":") == 1:
        listed = pc.equal(_column(table, "manifest"), _location(state, int(rest)))
        return _first(pc.and_(listed, pc.equal(_column(table, "ordinal"), int(own.rsplit(":", 1)[1]))))
    if key not in _PATHS or name != "file":
        return None
    offset = (wanted.fields.get("deletion_vector") or {}).get("offset")
    begin = 0
    for part in table.parts([table.names.index(column) for column in _PATHS[key]]):
        content, location, offsets = _places(part, key)
        mask = pc.and_(_is_file(content), pc.equal(location, wanted.location))
        if wanted.kind != "data-file" and offset is not None:
            mask = pc.and_(mask, pc.equal(offsets, offset))
        found = _first(mask)
        if found is not None:
            return begin + found
        begin += len(part)
    return None


#: The columns with the content type, location and offset of files, by table, or the one column that holds them.
_PATHS = {
    "entries": ("data_file",),
    "files": ("content", "file_path", "content_offset"),
    "content_entries": ("content_type", "location", "deletion_vector"),
}
#: A file's location and, for a deletion vector, which shares its file with others, its offset there.
_Place: TypeAlias = tuple[str, int | None]


def _some(table: GridTable, rows: Sequence[int], name: str) -> list[Any]:
    """Return the values of a column in some rows."""
    return list(_column(table.some(rows, (name,)), name).to_pylist())


def _column(part: Columns, name: str) -> AnyArray:
    return part.column(part.names.index(name))


def _places(part: Columns, key: str) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the content types, locations and offsets of a table's rows."""
    if key == "entries":
        file = _column(part, "data_file")
        content, location, offset = (pc.struct_field(file, name) for name in _PATHS["files"])
        return content, location, offset
    content, location, offset = (_column(part, name) for name in _PATHS[key])
    return content, location, pc.struct_field(offset, "offset") if pa.types.is_struct(offset.type) else offset


def _is_file(content: AnyColumn) -> AnyColumn:
    return pc.is_in(content, value_set=_FILES.cast(content.type))


def _keys(content: AnyColumn, location: AnyColumn, offset: AnyColumn) -> list[_Place | None]:
    """Return the `_Place` of each file; None for rows that are not files."""
    kinds, places, offsets = (build.to_pylist(column) for column in (content, location, offset))
    return [
        None if kind not in _FILE_KINDS or place is None else (place, None if kind == ContentType.DATA else at)
        for kind, place, at in zip(kinds, places, offsets, strict=True)
    ]


def _files(
    state: TableState, root: Manifest, snapshot: str, keys: Sequence[_Place | None], about: float
) -> list[str | None]:
    """Return the node ids of the files at these places; each id names the file's entry, in the root or in a live leaf.

    As tables follow the root's order, the search begins with the leaves near the rows' relative position in the table
    (``about``, 0 to 1); reading all leaves for a page could take seconds.
    """
    wanted = {key for key in keys if key is not None}
    if not wanted:
        return [None] * len(keys)
    locations = pa.array(sorted({location for location, _ in wanted}), pa.string())
    ids: dict[_Place, str] = {}

    def look(manifest: Manifest, at: str) -> None:
        entries = manifest.entries
        mask = pc.and_(_is_file(entries["content_type"]), pc.is_in(entries["location"], value_set=locations))
        rows = np.flatnonzero(np.asarray(whole(pc.fill_null(mask, False)).to_numpy(zero_copy_only=False)))
        found = entries.select(["content_type", "location", "deletion_vector"]).take(pa.array(rows, pa.int64()))
        columns = (found["content_type"], found["location"], pc.struct_field(found["deletion_vector"], "offset"))
        for row, key in zip(rows.tolist(), _keys(*columns), strict=True):
            if key in wanted:
                ids.setdefault(key, f"file:{at}:{row}")

    look(root, snapshot)
    leaves = live_manifests(root)
    middle = int(about * len(leaves))
    for _, row in sorted(enumerate(leaves), key=lambda leaf: abs(leaf[0] - middle)):
        if len(ids) == len(wanted):
            break
        look(state.reader.leaf(root, row), f"{snapshot}:{row}")
    return [None if key is None else ids.get(key) for key in keys]


def _blob_nodes(state: TableState, snapshot_id: int, table: GridTable, rows: Sequence[int]) -> list[str | None]:
    """Return the nodes of blobs of Puffin files: the statistics file, or the deletion vector."""
    files = [s.statistics_path for s in state.metadata.statistics if s.snapshot_id == snapshot_id]
    places, offsets, uses = (_some(table, rows, name) for name in ("file_path", "offset", "used_as"))
    keys = [
        None if use == "statistics" else (place, offset)
        for place, offset, use in zip(places, offsets, uses, strict=True)
    ]
    root = _root(state, snapshot_id)
    found = [None] * len(keys) if root is None else _files(state, root, str(snapshot_id), keys, 0.0)
    return [
        f"statistics:{snapshot_id}:{files.index(place)}" if use == "statistics" and place in files else node
        for place, use, node in zip(places, uses, found, strict=True)
    ]


def _location(state: TableState, snapshot_id: int) -> str:
    root = _root(state, snapshot_id)
    return "" if root is None else root.location


def _root(state: TableState, snapshot_id: int) -> Manifest | None:
    return state.root(state.metadata.snapshot(snapshot_id))


def _within(row: int, table: GridTable) -> int | None:
    return row if 0 <= row < len(table) else None


def _first(mask: AnyColumn) -> int | None:
    found = np.flatnonzero(np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False)))
    return int(found[0]) if len(found) else None
