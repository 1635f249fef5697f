"""``partitions``: the live files of a snapshot, summed by partition (Java: ``PartitionsTable``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState
from iceexplore.inspect._by_leaf import ByLeaf, LeafMaker
from iceexplore.inspect._files import live_rows
from iceexplore.inspect._partition import PartitionUnion, partition_union
from iceexplore.inspect._shown import micros_of
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, Manifest, whole

__all__ = ["PARTITION_ROWS", "build_partitions", "partition_rows_schema", "partitions_schema"]

_NEVER = np.iinfo(np.int64).min
_OF_ENTRIES = ("content_type", "snapshot_id", "partition_spec_id", "record_count", "file_size_in_bytes")


def partitions_schema(state: TableState) -> pa.Schema:
    """Return the columns of ``partitions``."""
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


def partition_rows_schema(state: TableState) -> pa.Schema:
    """Return the columns of the rows to aggregate, one row per live file.

    ``micros`` is the commit time of the snapshot in the file's entry, null if it has expired. ``width`` is the number
    of partition fields that the file's spec has: files with equal partitions and different widths are grouped
    separately.
    """
    union = partition_union(state.metadata)
    return pa.schema(
        [
            *(ENTRY_SCHEMA.field(name) for name in _OF_ENTRIES),
            pa.field("micros", pa.int64()),
            pa.field("width", pa.int32()),
            *([pa.field("partition", union.type)] if union else []),
        ]
    )


def partition_rows_maker(state: TableState, schema: pa.Schema) -> LeafMaker:
    """Return the function that yields the rows of `partition_rows_schema`."""
    union = partition_union(state.metadata)
    times = {s.snapshot_id: micros_of(s.timestamp_ms) for s in state.metadata.snapshots}

    def make(_root: Manifest, leaf: Manifest) -> Iterator[pa.Table]:
        own = [whole(leaf.entries.column(name)) for name in _OF_ENTRIES]
        snapshots = own[1].dictionary_encode()
        known = pa.array([times.get(i) for i in build.to_pylist(snapshots.dictionary)], pa.int64())
        own += [known.take(snapshots.indices), _widths(own[2], union, state)]
        made = pa.Table.from_arrays([*own, *([union.struct(leaf)] if union else [])], schema=schema)
        mask = live_rows(leaf)
        yield made if mask is None else made.filter(mask)

    return make


#: The rows from which ``partitions`` computes its sums.
PARTITION_ROWS = ByLeaf(partition_rows_maker, parts=("entries", "partition"))


def build_partitions(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield one row per partition with at least one live file."""
    union = partition_union(state.metadata)
    tables = list(PARTITION_ROWS.build(state, partition_rows_schema(state)))
    rows = pa.concat_tables(tables) if tables else None
    if rows is not None and rows.num_rows:
        yield _grouped(rows.combine_chunks(), union, schema)


def _widths(spec_ids: AnyArray, union: PartitionUnion, state: TableState) -> AnyArray:
    """Return the number of partition fields in each entry's spec, which may differ within a manifest from V4 on."""
    encoded = spec_ids.dictionary_encode(null_encoding="encode")
    widths = [
        union.width(None if spec_id is None else state.metadata.spec(spec_id))
        for spec_id in encoded.dictionary.to_pylist()
    ]
    return pa.array(widths, pa.int32()).take(encoded.indices)


def _codes(array: AnyArray) -> np.ndarray:
    """Return a number for each value, equal for equal values; null counts as a value."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.int64)
    encoded = array.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _groups(rows: pa.Table, union: PartitionUnion) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's group, and one row of each group."""
    group = np.asarray(whole(rows.column("width"))).astype(np.int64)
    first = np.unique(group, return_index=True)[1]
    if union:
        for child in cast(pa.StructArray, whole(rows.column("partition"))).flatten():
            codes = _codes(child)
            _, first, group = np.unique(group * (int(codes.max()) + 1) + codes, return_index=True, return_inverse=True)
    _, group = np.unique(group, return_inverse=True)
    return group, first


def _grouped(rows: pa.Table, union: PartitionUnion, schema: pa.Schema) -> pa.Table:
    group, first = _groups(rows, union)
    count = len(first)

    def column(name: str) -> np.ndarray:
        return np.asarray(pc.fill_null(whole(rows.column(name)), 0))

    def total(values: np.ndarray, where: np.ndarray, kind: pa.DataType) -> AnyArray:
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
    at, snapshot, spec = _last_updates(rows, group, count)
    by = [whole(rows.column("partition")).take(pa.array(first)), spec] if union else []
    return pa.Table.from_arrays([*by, *sums, at, snapshot], schema=schema)


def _last_updates(rows: pa.Table, group: np.ndarray, count: int) -> tuple[Any, Any, Any]:
    """Return the commit time, snapshot and spec of each group's newest entry.

    If all snapshots of the group have expired, time and snapshot are null, and the spec is 0.
    """
    snapshots = np.asarray(pc.fill_null(whole(rows.column("snapshot_id")), -1))
    micros = np.asarray(pc.fill_null(whole(rows.column("micros")), _NEVER))
    order = np.lexsort((np.arange(len(group)), micros, group))
    # In this order, the last entry of a group has the latest time. If several entries have it, Java uses the first one.
    ends = np.flatnonzero(np.append(group[order][1:] != group[order][:-1], True))
    best = order[ends]
    same = micros == micros[best][group]
    newest = np.full(count, len(group), dtype=np.int64)
    np.minimum.at(newest, group[same], np.flatnonzero(same))
    never = micros[newest] == _NEVER
    at = pa.array(micros[newest], pa.int64(), mask=never).cast(pa.timestamp("us", tz="UTC"))
    specs = np.asarray(pc.fill_null(whole(rows.column("partition_spec_id")), 0))[newest]
    return at, pa.array(snapshots[newest], pa.int64(), mask=never), pa.array(np.where(never, 0, specs), pa.int32())
