"""``partitions``: the live files of a snapshot, added up by partition (Java: ``PartitionsTable``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import TableState
from iceexplore.inspect._files import live_rows
from iceexplore.inspect._partition import PartitionUnion, partition_union
from iceexplore.inspect._shown import micros_of
from iceexplore.inspect._source import ALL, snapshot_leaves
from iceexplore.manifests import ContentType, whole

__all__ = ["build_partitions", "partitions_schema"]

_NEVER = np.iinfo(np.int64).min
_ROW = pa.schema(
    [
        pa.field("content_type", pa.int32()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("record_count", pa.int64()),
        pa.field("file_size_in_bytes", pa.int64()),
    ]
)


def partitions_schema(state: TableState) -> pa.Schema:
    """The columns of ``partitions``."""
    union = partition_union(state.metadata)
    by = [pa.field("partition", union.type), pa.field("spec_id", pa.int32())] if union else []
    return pa.schema(
        [
            *by,
            pa.field("record_count", pa.int64()),
            pa.field("file_count", pa.int32()),
            pa.field("total_data_file_size_in_bytes", pa.int64()),
            pa.field("position_delete_record_count", pa.int64()),
            pa.field("position_delete_file_count", pa.int32()),
            pa.field("equality_delete_record_count", pa.int64()),
            pa.field("equality_delete_file_count", pa.int32()),
            pa.field("last_updated_at", pa.timestamp("us", tz="UTC")),
            pa.field("last_updated_snapshot_id", pa.int64()),
        ]
    )


def build_partitions(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """One row per partition that has a live file."""
    union = partition_union(state.metadata)
    tables = []
    for _, leaf in snapshot_leaves(state, ALL, ("entries", "partition")):
        if not len(leaf):
            continue
        made = leaf.entries.select(_ROW.names)
        made = made.append_column("width", _widths(whole(made.column("partition_spec_id")), union, state))
        made = made.append_column("partition", union.struct(leaf) if union else pa.nulls(len(leaf)))
        mask = live_rows(leaf)
        tables.append(made if mask is None else made.filter(mask))
    rows = pa.concat_tables(tables) if tables else None
    if rows is not None and rows.num_rows:
        yield _grouped(rows.combine_chunks(), union, state, schema)


def _widths(spec_ids: pa.Array, union: PartitionUnion, state: TableState) -> pa.Array:
    """How many of the partition fields each entry's spec has: one number a manifest below V4."""
    encoded = spec_ids.dictionary_encode(null_encoding="encode")
    widths = [
        union.width(None if spec_id is None else state.metadata.spec(spec_id))
        for spec_id in encoded.dictionary.to_pylist()
    ]
    return pa.array(widths, pa.int32()).take(encoded.indices)


def _codes(array: pa.Array) -> np.ndarray:
    """A number for each distinct value; null is one of them."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.int64)
    encoded = array.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _groups(rows: pa.Table, union: PartitionUnion) -> tuple[np.ndarray, np.ndarray]:
    """The group of each row, and one row of each group."""
    group = np.asarray(whole(rows.column("width"))).astype(np.int64)
    first = np.unique(group, return_index=True)[1]
    if union:
        for child in whole(rows.column("partition")).flatten():
            codes = _codes(child)
            _, first, group = np.unique(group * (int(codes.max()) + 1) + codes, return_index=True, return_inverse=True)
    _, group = np.unique(group, return_inverse=True)
    return group, first


def _grouped(rows: pa.Table, union: PartitionUnion, state: TableState, schema: pa.Schema) -> pa.Table:
    group, first = _groups(rows, union)
    count = len(first)

    def column(name: str) -> np.ndarray:
        return np.asarray(pc.fill_null(whole(rows.column(name)), 0))

    def total(values: np.ndarray, where: np.ndarray, kind: pa.DataType) -> pa.Array:
        out = np.zeros(count, dtype=np.int64)
        np.add.at(out, group[where], values[where])
        return pa.array(out).cast(kind, safe=False)

    content, records, ones = column("content_type"), column("record_count"), np.ones(len(rows), dtype=np.int64)
    sums = []
    for kind in (ContentType.DATA, ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE):
        where = content == int(kind)
        sums += [total(records, where, pa.int64()), total(ones, where, pa.int32())]
        if kind == ContentType.DATA:
            sums.append(total(column("file_size_in_bytes"), where, pa.int64()))
    at, snapshot, spec = _last_updates(rows, group, count, state)
    by = [whole(rows.column("partition")).take(pa.array(first)), spec] if union else []
    return pa.Table.from_arrays([*by, *sums, at, snapshot], schema=schema)


def _last_updates(rows: pa.Table, group: np.ndarray, count: int, state: TableState) -> tuple[Any, Any, Any]:
    """Time, snapshot and spec of the newest entry of each group; null (spec 0) where all its snapshots are expired."""
    times = {s.snapshot_id: micros_of(s.timestamp_ms) for s in state.metadata.snapshots}
    snapshots = np.asarray(pc.fill_null(whole(rows.column("snapshot_id")), -1))
    ids, place = np.unique(snapshots, return_inverse=True)
    known = [times.get(int(i)) for i in ids]
    micros = np.array([_NEVER if t is None else t for t in known], dtype=np.int64)[place]
    order = np.lexsort((np.arange(len(group)), micros, group))
    # the last of each group in this order has the greatest time; the first of those with that time is Java's
    ends = np.flatnonzero(np.append(group[order][1:] != group[order][:-1], True))
    best = order[ends]
    same = micros == micros[best][group]
    newest = np.full(count, len(group), dtype=np.int64)
    np.minimum.at(newest, group[same], np.flatnonzero(same))
    never = micros[newest] == _NEVER
    at = pa.array(micros[newest], pa.int64(), mask=never).cast(pa.timestamp("us", tz="UTC"))
    specs = np.asarray(pc.fill_null(whole(rows.column("partition_spec_id")), 0))[newest]
    return at, pa.array(snapshots[newest], pa.int64(), mask=never), pa.array(np.where(never, 0, specs), pa.int32())
