"""``manifests`` and ``all_manifests``: the entries of manifest lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, live_manifests, partition_ranges
from iceexplore.inspect._source import every_root
from iceexplore.manifests import ContentType, Manifest, whole
from iceexplore.metadata import TableMetadata, decode_values, human_value, result_type

__all__ = ["ALL_MANIFESTS_SCHEMA", "MANIFESTS_SCHEMA", "build_all_manifests", "build_manifests"]

_COUNTS = ("added", "existing", "deleted")
_SUMMARY = pa.struct(
    [
        pa.field("contains_null", pa.bool_()),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
    ]
)
MANIFESTS_SCHEMA = build.schema(
    [
        pa.field("content", pa.int32()),
        pa.field("path", pa.string()),
        pa.field("length", pa.int64()),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("added_snapshot_id", pa.int64()),
        *[pa.field(f"{what}_{kind}_files_count", pa.int32()) for kind in ("data", "delete") for what in _COUNTS],
        pa.field("partition_summaries", pa.list_(_SUMMARY)),
    ]
)
ALL_MANIFESTS_SCHEMA = pa.schema(
    [*MANIFESTS_SCHEMA, pa.field("reference_snapshot_id", pa.int64()), pa.field("key_metadata", pa.binary())]
)


def build_manifests(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the manifests of the state's snapshot."""
    root = state.root()
    if root is not None:
        yield pa.Table.from_arrays(_columns(root, state.metadata), schema=schema)


def build_all_manifests(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the manifests of every snapshot, once for each snapshot that refers to them."""
    for snapshot, root in every_root(state):
        rows = _rows(root)
        own = pa.repeat(pa.scalar(snapshot.snapshot_id, pa.int64()), rows.num_rows)
        keys = whole(rows.column("key_metadata"))
        yield pa.Table.from_arrays([*_columns(root, state.metadata), own, keys], schema=schema)


def _rows(root: Manifest) -> pa.Table:
    """Return the live manifests among a root's entries."""
    return root.entries.take(pa.array(live_manifests(root), pa.int64()))


def _columns(root: Manifest, metadata: TableMetadata) -> list[AnyArray]:
    """Return the columns of ``manifests``; counts are those of the manifest as written, regardless of manifest DVs."""
    rows = _rows(root)

    def own(name: str) -> AnyArray:
        return whole(rows.column(name))

    deletes = pc.equal(own("content_type"), int(ContentType.DELETE_MANIFEST))
    stats = own("manifest_stats")
    counts = []
    for wanted in (pc.invert(deletes), deletes):
        for what in _COUNTS:
            count = pc.struct_field(stats, f"{what}_files_count")
            counts.append(pc.if_else(wanted, count, pa.scalar(0, pa.int64())).cast(pa.int32(), safe=False))
    return [
        deletes.cast(pa.int32()),
        own("location"),
        own("file_size_in_bytes"),
        own("partition_spec_id"),
        own("snapshot_id"),
        *counts,
        _aggregated(root, rows, metadata) if root.stat_field_ids() else _summaries(rows, metadata),
    ]


def _aggregated(root: Manifest, rows: pa.Table, metadata: TableMetadata) -> AnyArray:
    """Return partition summaries, rebuilt from a V4 root's statistics of its manifests."""
    columns = ["partition_summaries", "manifest_stats", "partition_spec_id"]
    places = pa.array(live_manifests(root), pa.int64())
    made = partition_ranges(root, places, rows.select(columns).to_pylist(), metadata)
    return pa.array(made, pa.list_(_SUMMARY))


def _summaries(rows: pa.Table, metadata: TableMetadata) -> AnyArray:
    """Return partition summaries; bounds are text as from Java's ``Transform.toHumanString``, ``null`` if missing."""
    lists = whole(rows.column("partition_summaries"))
    items = cast(AnyListArray, lists).flatten()
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    starts = np.cumsum(lengths) - lengths
    position = np.arange(len(items)) - np.repeat(starts, lengths)  # index of each summary's field in its spec
    spec_ids = np.repeat(np.asarray(pc.fill_null(whole(rows.column("partition_spec_id")), -1)), lengths)
    bounds: dict[str, Any] = {}
    for name in ("lower_bound", "upper_bound"):
        raw = pc.struct_field(items, name)
        texts = np.full(len(items), None, dtype=object)  # Python values: one per manifest and field, not per file
        for spec_id in np.unique(spec_ids):
            for at in np.unique(position[spec_ids == spec_id]):
                here = (spec_ids == spec_id) & (position == at)
                texts[here] = _texts(raw.filter(pa.array(here)), metadata, int(spec_id), int(at))
        bounds[name] = pa.array(texts, pa.string())
    children = [pc.struct_field(items, "contains_null"), pc.struct_field(items, "contains_nan"), *bounds.values()]
    made = pa.StructArray.from_arrays(children, fields=list(_SUMMARY))
    offsets = pa.array(np.concatenate([starts, [len(items)]]).astype(np.int32))
    mask = lists.is_null() if lists.null_count else None
    return build.list_array(offsets, made, type=pa.list_(_SUMMARY), mask=mask)


def _texts(raw: AnyArray, metadata: TableMetadata, spec_id: int, position: int) -> list[str | None]:
    spec = next((s for s in metadata.partition_specs if s.spec_id == spec_id), None)
    if spec is None or position >= len(spec.fields):
        return [None] * len(raw)
    field = spec.fields[position]
    source = metadata.schema().find(field.source_id) if field.source_ids else None
    # Types come from the current schema only, as in Java, which prints bounds of other columns as null.
    kind = result_type(field.transform, None if source is None else source.type)
    values, _ = decode_values(kind, raw)
    if not pa.types.is_temporal(values.type):
        return [human_value(kind, field.transform, v) for v in values.to_pylist()]
    # Python's dates only cover the years 1 to 9999, so format the stored integer.
    numbers = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return [human_value(kind, field.transform, v) for v in numbers.to_pylist()]
