"""Tables of a root, manifest, manifest DV or file. Only the manifests concerned are read, not the whole snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, DynamicArray, DynamicScalar, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, TreeNode, direct_places
from iceexplore.manifests import CONTENT_NAMES, ENTRY_SCHEMA, ContentType, Manifest, Status, read_manifest_dv
from iceexplore.metadata import format_transform, format_value, type_base
from iceexplore.widgets.grid._table import ListTable

__all__ = ["column_table", "leaf_table", "removed_table"]

#: Maximum number of positions that are listed, as a few bytes can encode billions.
_MAX_POSITIONS = 1_000_000
_STATUS_NAMES = {s.value: s.name for s in Status}


def leaf_table(state: TableState, node: TreeNode) -> pa.Table:
    """Return the entries of a manifest, or the rows of a root, with the most informative columns first."""
    ids = [int(part) for part in node.id.split(":")[1:]]
    if len(ids) == 1:
        manifest = _root(state, ids[0])
        partition = _root_partition(state, manifest)
    else:
        manifest = _leaf(state, ids[0], ids[1], frozenset({"entries", "partition"}))
        partition = manifest.partition()
    entries = manifest.entries
    columns: dict[str, Any] = {
        "file": _basename(entries["location"]),
        "content": _named(entries["content_type"], CONTENT_NAMES),
        "status": _named(entries["status"], _STATUS_NAMES),
    }
    if entries["manifest_dv"].null_count < len(entries):
        columns["removed_by"] = entries["manifest_dv"]
    columns |= {"record_count": entries["record_count"], "file_size_in_bytes": entries["file_size_in_bytes"]}
    if partition is not None and partition.type.num_fields:
        columns["partition"] = _named_partition(state, manifest, partition)
    for name in (
        "sequence_number", "file_sequence_number", "snapshot_id", "sort_order_id", "referenced_file",
        "deletion_vector", "manifest_stats", "equality_ids", "first_row_id", "split_offsets", "file_format", "location",
    ):  # fmt: skip
        if name in ("location", "file_format") or entries[name].null_count < len(entries):
            columns[name] = entries[name]
    return pa.table(columns)


def removed_table(state: TableState, node: TreeNode) -> pa.Table:
    """Return the ordinals that a manifest DV removes, with the entries of its leaf at these ordinals.

    Columns: ordinal, file, content, status, record_count, location; nulls for an ordinal beyond the leaf's end.

    Raises
    ------
    IceexploreError
        The vector cannot be read.
    OptionError
        The vector has more than a million positions.
    """
    ids = [int(part) for part in node.id.split(":")[1:]]
    root, row = _root(state, ids[0]), ids[-1]
    positions = read_manifest_dv(state.storage, root, row)
    if len(positions) > _MAX_POSITIONS:
        raise OptionError(f"the vector has {len(positions):,} positions, too many to list")
    ordinals = pa.array(positions, pa.int64())
    leaf = _leaf_of(state, root, row)
    names = ["content_type", "status", "record_count", "location"]
    entries = ENTRY_SCHEMA.empty_table() if leaf is None else leaf.entries
    place = pc.index_in(ordinals, value_set=entries["ordinal"].combine_chunks())
    content, status, rows, location = (entries[name].combine_chunks().take(place) for name in names)
    columns = {
        "ordinal": ordinals,
        "file": _basename(location),
        "content": _named(content, CONTENT_NAMES),
        "status": _named(status, _STATUS_NAMES),
        "record_count": rows,
        "location": location,
    }
    return pa.table(columns)


def _leaf_of(state: TableState, root: Manifest, row: int) -> Manifest | None:
    """Return the leaf of the manifest DV in a row of a root; None if the root no longer lists the leaf."""
    location = root.entries["referenced_file"][row].as_py()
    kinds, places = (root.entries[name].to_pylist() for name in ("content_type", "location"))
    for at, (kind, place) in enumerate(zip(kinds, places, strict=True)):
        if kind in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST) and place == location:
            return state.reader.leaf(root, at)
    return None


def entry_of(state: TableState, node: TreeNode) -> tuple[Manifest, int]:
    """Return the manifest of a file's node, and the file's row in it."""
    parts = [int(p) for p in node.id.split(":")[1:]]
    if len(parts) == 3:
        return _leaf(state, parts[0], parts[1], frozenset({"entries", "stats"})), parts[-1]
    return _root(state, parts[0]), parts[-1]


def column_table(state: TableState, node: TreeNode) -> ListTable:
    """Return the column metrics of a file in its manifest: sizes, counts and typed bounds, a row per column."""
    manifest, row = entry_of(state, node)
    if not 0 <= row < manifest.entries.num_rows:
        raise OptionError(f"{manifest.location} has no entry {row}")
    fields = state.metadata.all_fields()
    other = _RESERVED | {
        e.expr_id: format_transform(e.transform, e.source_ids, state.metadata) for e in state.metadata.expressions
    }
    of_row = _typed if manifest.dialect.typed_stats else _from_maps
    records: list[dict[str, Any]] = []
    for field_id, kind, values in of_row(manifest, row, {i: field.type for i, (_, field) in fields.items()}):
        name = fields[field_id][0] if field_id in fields else other.get(field_id, f"#{field_id}")
        if any(v is not None for v in values.values()):
            records.append({"id": field_id, "column": name, "type": "" if kind is None else str(kind), **values})
    names = ("id", "column", "type", "lower", "upper", "value_count", "null_count", "nan_count", "column_size")
    columns = {name: [record.get(name) for record in records] for name in names}
    return ListTable(columns, {"id", "value_count", "null_count", "nan_count", "column_size"})


_COUNTS = ("value_count", "null_count", "nan_count", "column_size")


def _typed(manifest: Manifest, row: int, types: dict[int, Any]) -> Iterator[tuple[int, Any, dict[str, Any]]]:
    """Yield each column's id, type and metrics from one row of a V4 manifest."""
    for field_id in sorted(manifest.stat_field_ids()):
        stats = manifest.stats(field_id)
        columns = {name: getattr(stats, name) for name in (*_COUNTS, "lower", "upper")}
        values = {name: None if v is None else _python(v[row]) for name, v in columns.items()}
        kind = types.get(field_id, stats.type)
        yield field_id, kind, _readable(values, kind)


def _from_maps(manifest: Manifest, row: int, types: dict[int, Any]) -> Iterator[tuple[int, Any, dict[str, Any]]]:
    """Yield each column's id, type and metrics from one row of a v1-v3 manifest; other rows are not decoded."""
    found, at = manifest.row_stats(row, types)
    for stats in found:
        values = {name: _python(getattr(stats, name)[at]) for name in (*_COUNTS, "lower", "upper")}
        yield stats.field_id, stats.type, _readable(values, stats.type)


def _readable(values: dict[str, Any], kind: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return metrics with the bounds of geometries as coordinates."""
    if kind is None or type_base(kind) not in ("geometry", "geography"):
        return values
    return {k: format_value(kind, v) if isinstance(v, bytes) else v for k, v in values.items()}


#: Columns of position delete files (spec, "Reserved Field IDs").
_RESERVED = {2_147_483_546: "file_path", 2_147_483_545: "pos", 2_147_483_544: "row"}


def _root(state: TableState, snapshot_id: int) -> Manifest:
    root = state.root(state.metadata.snapshot(snapshot_id))
    if root is None:
        raise OptionError(f"snapshot {snapshot_id} of {state.name} has no manifests")
    return root


def _leaf(state: TableState, snapshot_id: int, row: int, parts: frozenset[str]) -> Manifest:
    root = _root(state, snapshot_id)
    if not 0 <= row < len(root):
        raise OptionError(f"{root.location} has no entry {row}")
    return state.reader.leaf(root, row, parts)


def _root_partition(state: TableState, root: Manifest) -> DynamicArray | None:
    """Return the partitions of files listed directly in a V4 root; null for its other rows."""
    direct = state.reader.direct(root)
    values = None if direct is None else direct.partition()
    return None if direct is None or values is None else values.take(direct_places(root, direct))


def _basename(location: AnyColumn) -> AnyArray:
    """Return the part of each location after the last slash."""
    column = location.combine_chunks() if isinstance(location, pa.ChunkedArray) else location
    parts = pc.split_pattern(column, "/", max_splits=1, reverse=True)
    last = np.asarray(parts.offsets)[1:] - 1
    gone = np.asarray(parts.is_null().to_numpy(zero_copy_only=False))
    return parts.values.take(pa.array(last, pa.int64(), mask=gone))


def _named(values: AnyColumn, names: dict[int, str]) -> AnyArray:
    """Return the names of numbers; a number without a name becomes text."""
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    dictionary = column.dictionary_encode()
    labels = [names.get(v, str(v)) for v in build.to_pylist(dictionary.dictionary)]
    return pa.DictionaryArray.from_arrays(dictionary.indices, pa.array(labels, pa.string())).cast(pa.string())


def _named_partition(state: TableState, manifest: Manifest, partition: DynamicArray) -> AnyArray:
    names = {str(f.field_id): f.name for spec in state.metadata.partition_specs for f in spec.fields}
    own = None if manifest.header.spec_id is None else state.metadata.spec(manifest.header.spec_id)
    names |= {str(f.field_id): f.name for f in own.fields} if own else {}
    fields = partition.flatten()
    return pa.StructArray.from_arrays(fields, [names.get(f.name, f.name) for f in partition.type])


def _python(value: DynamicScalar) -> PlainValue:
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # a time beyond Python's calendar
        return value.value
