"""Manifests of the V4 proposal: content entries, the same record in leaf and root ("V4 content entry structure")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._checks import required, sequence_numbers, statuses
from iceexplore.manifests.encode._content_stats import content_stats
from iceexplore.manifests.encode._fields import Pair, field, list_of, nested, retyped, table_of
from iceexplore.manifests.encode._partition_tuple import tuple_fields
from iceexplore.manifests.encode._stat_columns import specs_of
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ContentType
from iceexplore.metadata import TableMetadata

__all__ = ["proposal_metadata", "proposal_table", "stats_pairs", "tuple_pair"]

_int32, _int64 = pa.int32(), pa.int64()
_STATS_IDS = (504, 505, 506, 512, 513, 514, 516)


def proposal_table(
    batch: EntryBatch, *, metadata: TableMetadata, spec_id: int | None, storage: str, snapshot_id: int | None
) -> pa.Table:
    """Return the records of a manifest; see `content_stats` for ``storage``.

    An inline manifest DV has no file: if its location is null, its manifest's location is written.

    Raises
    ------
    OptionError
        A required value is null, or a value does not fit its type.
    UnsupportedError
        ``storage="source"`` has no place for a partition value.
    """
    entries = batch.entries
    sequence_numbers(entries)
    if spec_id is not None and entries["partition_spec_id"].null_count:
        batch = batch.with_columns(partition_spec_id=pc.fill_null(entries["partition_spec_id"], spec_id))
        entries = batch.entries
    inline = pc.equal(whole(entries["content_type"]), int(ContentType.MANIFEST_DV))
    where = pc.if_else(inline, whole(entries["referenced_file"]), pa.scalar(None, pa.string()))
    batch = batch.with_columns(
        location=pc.coalesce(whole(entries["location"]), where),
        file_format=pc.coalesce(
            whole(entries["file_format"]), pc.if_else(inline, pa.scalar("puffin"), pa.scalar(None, pa.string()))
        ),
    )
    if snapshot_id is not None:
        batch = batch.with_columns(snapshot_id=pc.fill_null(entries["snapshot_id"], snapshot_id))
    entries, rows = batch.entries, len(batch)
    version: list[Pair] = [
        (field(0, "status", _int32, required=True), statuses(entries)),
        (field(1, "snapshot_id", _int64), whole(entries["snapshot_id"])),
        (field(3, "sequence_number", _int64), whole(entries["sequence_number"])),
        (field(4, "file_sequence_number", _int64), whole(entries["file_sequence_number"])),
    ]
    version_info = nested(version, rows)
    vector = _vector(cast(pa.StructArray, whole(entries["deletion_vector"])))
    pairs: list[Pair | None] = [
        (field(134, "content_type", _int32, required=True), required(entries, "content_type")),
        (field(100, "location", pa.string(), required=True), required(entries, "location")),
        (field(101, "file_format", pa.string(), required=True), required(entries, "file_format")),
        retyped(field(5, "version_info", version_info.type), version_info),
        retyped(field(147, "deletion_vector", vector.type), vector),
        (field(148, "partition_spec_id", _int32, required=True), required(entries, "partition_spec_id")),
        tuple_pair(batch, metadata) if storage == "tuple" else None,
        (field(140, "sort_order_id", _int32), whole(entries["sort_order_id"])),
        (field(103, "record_count", _int64, required=True), required(entries, "record_count")),
        (field(104, "file_size_in_bytes", _int64), whole(entries["file_size_in_bytes"])),
        content_stats(batch, metadata, storage),
        _manifest_stats(batch),
        (field(143, "referenced_file", pa.string()), whole(entries["referenced_file"])),
        (field(131, "key_metadata", pa.binary()), whole(entries["key_metadata"])),
        _list(entries, 132, "split_offsets", 133, _int64),
        _list(entries, 135, "equality_ids", 136, _int32),
        (field(142, "first_row_id", _int64), whole(entries["first_row_id"])),
    ]
    return table_of(pair for pair in pairs if pair is not None)


def _list(entries: pa.Table, field_id: int, name: str, element_id: int, kind: pa.DataType) -> Pair:
    made = list_of(element_id, kind)
    return field(field_id, name, made), whole(entries[name]).cast(made)


def _vector(held: pa.StructArray) -> pa.StructArray:
    children = [
        (field(144, "offset", _int64), pc.struct_field(held, "offset")),
        (field(145, "size_in_bytes", _int64), pc.struct_field(held, "size_in_bytes")),
        (field(146, "inline_content", pa.binary()), pc.struct_field(held, "inline_content")),
    ]
    return nested(children, len(held), held.is_null())


def stats_pairs(held: pa.StructArray) -> list[Pair]:
    """Return fields 504 to 516 of ``manifest_stats``; file counts are 32-bit, as in a manifest list."""
    pairs: list[Pair] = []
    for field_id, child in zip(_STATS_IDS, held.type, strict=True):
        kind = _int32 if field_id in (504, 505, 506) else _int64
        pairs.append((field(field_id, child.name, kind), pc.struct_field(held, child.name).cast(kind)))
    return pairs


def _manifest_stats(batch: EntryBatch) -> Pair | None:
    """Return field 521, ``manifest_stats``, which only entries of manifests have; None if no entry has it."""
    held = whole(batch.entries["manifest_stats"])
    if held.null_count == len(batch):
        return None
    made = nested(stats_pairs(cast(pa.StructArray, held)), len(batch), held.is_null())
    return retyped(field(521, "manifest_stats", made.type), made)


def tuple_pair(batch: EntryBatch, metadata: TableMetadata) -> Pair | None:
    """Return field 102, the partition tuple with the fields of all specs of the rows; None if no spec has fields."""
    fields = {f.field_id: f for spec in specs_of(batch, metadata) for f in spec.fields}
    if not fields:
        return None
    absent = None if batch.partition is None else batch.partition.is_null()
    made = nested(tuple_fields(batch, fields.values(), metadata), len(batch), absent)
    return retyped(field(102, "partition", made.type), made)


def proposal_metadata(content: str) -> Mapping[str, str]:
    """Return the key-value metadata, without schema and spec ("V4 Manifest Key Value Metadata")."""
    return {"format-version": "4", "content": content}
