"""``content_entries``, ``column_files``, ``column_stats`` and two tables of deletion vectors, which Spark lacks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, direct_places, live_manifests, removed_counts, vector_rows
from iceexplore.inspect._by_leaf import LeafMaker
from iceexplore.inspect._definitions import expression_text
from iceexplore.inspect._files import live_position_deletes, live_rows
from iceexplore.inspect._partition import PartitionUnion, partition_union
from iceexplore.inspect._shown import as_text
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, Manifest, column_file_rows, whole
from iceexplore.metadata import LINEAGE_FIELDS, Type, format_value, type_base

__all__ = [
    "COLUMN_FILES_SCHEMA",
    "COLUMN_STATS_SCHEMA",
    "MANIFEST_VECTORS_SCHEMA",
    "build_manifest_vectors",
    "column_files_maker",
    "column_stats_maker",
    "content_entries_maker",
    "content_entries_schema",
    "count_content_entries",
    "deletion_vectors_maker",
    "deletion_vectors_schema",
]

COLUMN_STATS_SCHEMA = build.schema(
    [
        pa.field("content", pa.int32()),
        pa.field("file_path", pa.string()),
        pa.field("field_id", pa.int32()),
        pa.field("column", pa.string()),
        pa.field("type", pa.string()),
        pa.field("column_size", pa.int64()),
        pa.field("value_count", pa.int64()),
        pa.field("null_value_count", pa.int64()),
        pa.field("nan_value_count", pa.int64()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
        pa.field("lower_bound_bytes", pa.binary()),
        pa.field("upper_bound_bytes", pa.binary()),
    ]
)


def content_entries_schema(state: TableState) -> pa.Schema:
    """Return the columns of ``content_entries``."""
    union = partition_union(state.metadata)
    return pa.schema(
        [
            pa.field("manifest", pa.string()),
            *[pa.field(f.name, f.type) for f in ENTRY_SCHEMA],
            *([pa.field("partition", union.type)] if union else []),
        ]
    )


def content_entries_maker(state: TableState, schema: pa.Schema) -> LeafMaker:
    """Return the function that yields ``content_entries``: a row for each row of the root and of every live leaf.

    Entries of all format versions have the same columns. ``status`` is as written; if a manifest DV removes the entry
    of a leaf, ``manifest_dv`` is the ordinal of the root's row that has this manifest DV.
    """
    union = partition_union(state.metadata)

    def make(root: Manifest, manifest: Manifest) -> Iterator[pa.Table]:
        if not count_content_entries(root, manifest):
            return
        place = pa.repeat(pa.scalar(manifest.location, pa.string()), len(manifest))
        own: list[AnyColumn] = [manifest.entries.column(f.name) for f in ENTRY_SCHEMA]
        if union:
            own.append(_own_partition(state, manifest, union) if manifest.is_root else union.struct(manifest))
        yield pa.Table.from_arrays([place, *own], schema=schema)

    return make


def count_content_entries(_root: Manifest, manifest: Manifest) -> int:
    """Count the rows that `content_entries_maker` yields; the root's own files count once, as rows of the root."""
    return len(manifest) if manifest.is_root or manifest.root_row is not None else 0


def _own_partition(state: TableState, root: Manifest, union: PartitionUnion) -> pa.StructArray:
    """Return the partitions of a V4 root's own files; null for the root's other rows."""
    direct = state.reader.direct(root)
    if direct is None:
        return pa.nulls(len(root), union.type)
    return union.struct(direct).take(direct_places(root, direct))


#: Columns of ``column_files``.
COLUMN_FILES_SCHEMA = build.schema(
    [
        pa.field("file_path", pa.string()),
        pa.field("column_file_path", pa.string()),
        pa.field("field_ids", pa.list_(pa.int32())),
        pa.field("columns", pa.list_(pa.string())),
        pa.field("file_format", pa.string()),
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("snapshot_id", pa.int64()),
    ]
)


def column_files_maker(state: TableState, schema: pa.Schema) -> LeafMaker:
    """Return the function that yields a row per column file of a live data file (V4 draft), the newest last."""
    names = {i: name for i, (name, _) in state.metadata.all_fields().items()}
    names = {**LINEAGE_FIELDS, **names}

    def make(_root: Manifest, leaf: Manifest) -> Iterator[pa.Table]:
        rows = live_rows(leaf)
        entries = leaf.entries if rows is None else leaf.entries.filter(rows)
        held = entries["column_files"]
        if held.null_count == len(held):
            return
        found = column_file_rows(entries)
        of_file = found["entry"]
        columns = [
            None if ids is None else [names.get(i, f"#{i}") for i in ids] for ids in build.to_pylist(found["field_ids"])
        ]
        arrays: list[AnyColumn] = [
            entries["location"].take(of_file),
            found["location"],
            found["field_ids"],
            pa.array(columns, pa.list_(pa.string())),
            found["file_format"],
            found["file_size_in_bytes"],
            entries["column_files_snapshot_id"].take(of_file),
        ]
        yield pa.Table.from_arrays(arrays, schema=schema)

    return make


def deletion_vectors_schema(state: TableState) -> pa.Schema:
    """Return the columns of ``deletion_vectors``."""
    union = partition_union(state.metadata)
    return build.schema(
        [
            pa.field("referenced_data_file", pa.string()),
            pa.field("cardinality", pa.int64()),
            pa.field("file_path", pa.string()),
            pa.field("content_offset", pa.int64()),
            pa.field("content_size_in_bytes", pa.int64()),
            pa.field("snapshot_id", pa.int64()),
            pa.field("sequence_number", pa.int64()),
            pa.field("spec_id", pa.int32()),
            *([pa.field("partition", union.type)] if union else []),
        ]
    )


def deletion_vectors_maker(state: TableState, schema: pa.Schema) -> LeafMaker:
    """Return the function that yields a row per live deletion vector, from its manifest entry; reads no blobs."""
    union = partition_union(state.metadata)

    def make(_root: Manifest, leaf: Manifest) -> Iterator[pa.Table]:
        rows = live_position_deletes(leaf, union)
        vector = pc.struct_field(rows.column("deletion_vector"), "offset")
        rows = rows.filter(pc.is_valid(vector))
        vector = rows.column("deletion_vector")
        columns = [
            rows.column("referenced_file"),
            rows.column("record_count"),
            rows.column("location"),
            pc.struct_field(vector, "offset"),
            pc.struct_field(vector, "size_in_bytes"),
            rows.column("snapshot_id"),
            rows.column("sequence_number"),
            rows.column("partition_spec_id"),
            *([rows.column("partition")] if "partition" in rows.column_names else []),
        ]
        yield pa.Table.from_arrays(columns, schema=schema)

    return make


MANIFEST_VECTORS_SCHEMA = build.schema(
    [
        pa.field("manifest", pa.string()),
        pa.field("cardinality", pa.int64()),
        pa.field("storage", pa.string()),
        pa.field("file_path", pa.string()),
        pa.field("content_offset", pa.int64()),
        pa.field("content_size_in_bytes", pa.int64()),
        pa.field("status", pa.int32()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("sequence_number", pa.int64()),
        pa.field("ordinal", pa.int64()),
    ]
)


def build_manifest_vectors(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the manifest DVs in the snapshot's root (V4), including replaced ones (status 2). Reads the root."""
    root = state.root()
    if root is None:
        return
    places = vector_rows(root)
    rows = root.entries.take(pa.array(places, pa.int64()))

    def own(name: str) -> AnyArray:
        return whole(rows.column(name))

    vector = own("deletion_vector")
    attached = pc.not_equal(own("content_type"), int(ContentType.MANIFEST_DV))
    inline = pc.struct_field(vector, "inline_content")
    is_inline = pc.is_valid(inline)
    size = pc.coalesce(pc.binary_length(inline).cast(pa.int64()), pc.struct_field(vector, "size_in_bytes"))
    columns = [
        # The location of the leaf. An attached vector is part of the leaf's own entry. A vector with an entry of its
        # own has the leaf as its referenced file or, if inline, as its location.
        pc.if_else(attached, own("location"), pc.coalesce(own("referenced_file"), own("location"))),
        pa.array(removed_counts(root, places), pa.int64()),
        pc.if_else(is_inline, "inline", "puffin"),
        pc.if_else(is_inline, pa.scalar(None, pa.string()), own("location")),
        pc.if_else(is_inline, pa.scalar(None, pa.int64()), pc.struct_field(vector, "offset")),
        size,
        own("status"),
        own("snapshot_id"),
        own("sequence_number"),
        own("ordinal"),
    ]
    yield pa.Table.from_arrays(columns, schema=schema)


def column_stats_maker(state: TableState, schema: pa.Schema) -> LeafMaker:
    """Return the function that yields a row per live file and column with statistics.

    Bounds are given as text (binary in hexadecimal) and as written. In V4, there are also rows for each live manifest
    (content 3 and 4), with the aggregated statistics in its root entry; they describe the manifest as written,
    regardless of manifest DVs. Statistics of an expression have its id and text.
    """
    fields = state.metadata.all_fields()
    expressions = {e.expr_id: e for e in state.metadata.expressions}

    def make(_root: Manifest, leaf: Manifest) -> Iterator[pa.Table]:
        shown = _live_manifest_rows(leaf) if leaf.is_root else live_rows(leaf)
        content = whole(leaf.entries.column("content_type"))
        path = whole(leaf.entries.column("location"))
        for field_id in leaf.stat_field_ids():
            s = leaf.stats(field_id)
            name, field = fields.get(field_id, (None, None))
            if name is None and field_id in expressions:
                name = expression_text(expressions[field_id], state.metadata)
            kind = s.type if field is None else field.type
            counts = [s.column_size, s.value_count, s.null_count, s.nan_count]
            arrays = [
                content,
                path,
                _same(field_id, pa.int32(), len(leaf)),
                _same(name, pa.string(), len(leaf)),
                _same(None if kind is None else str(kind), pa.string(), len(leaf)),
                *counts,
                _bound_text(s.lower, kind),
                _bound_text(s.upper, kind),
                s.lower_raw,
                s.upper_raw,
            ]
            made = pa.Table.from_arrays(arrays, schema=schema)
            here = _any_valid([*counts, s.lower_raw, s.upper_raw])
            yield made.filter(here if shown is None else pc.and_(here, shown))

    return make


def _bound_text(bounds: AnyArray, kind: Type | None) -> AnyArray:
    """Return bounds as text; bounds of geometries are coordinates."""
    if kind is None or type_base(kind) not in ("geometry", "geography"):
        return as_text(bounds)
    return pa.array([None if b is None else format_value(kind, b) for b in build.to_pylist(bounds)], pa.string())


def _same(value: object, kind: pa.DataType, count: int) -> AnyArray:
    return build.repeat(pa.scalar(value, kind), count)


def _live_manifest_rows(root: Manifest) -> AnyArray:
    mask = np.zeros(len(root), dtype=np.bool_)
    mask[live_manifests(root)] = True
    return pa.array(mask)


def _any_valid(arrays: list[AnyArray]) -> AnyArray:
    """Return a mask of the rows in which at least one of the arrays has a value."""
    out = pc.is_valid(arrays[0])
    for array in arrays[1:]:
        out = pc.or_(out, pc.is_valid(array))
    return out
