"""Manifests of v1, v2, v3 and of Java's v4: ``manifest_entry`` with a ``data_file``, with Java's columns and order.

Iceberg spec, "Manifests"; ``V1Metadata`` to ``V4Metadata`` (``entrySchema``, ``fileType``) in Java.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyMapType, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, RuleError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._checks import required, sequence_numbers, statuses
from iceexplore.manifests.encode._fields import Pair, field, list_of, map_of, nested, retyped, table_of
from iceexplore.manifests.encode._partition_tuple import tuple_fields
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ContentType
from iceexplore.metadata import PartitionSpec, PrimitiveType, TableMetadata, Type, encode_values, schema_to_json

__all__ = [
    "entry_metadata",
    "entry_table",
    "spec_fields_json",
]

#: Field id, name, child of the statistics, ids of key and value, doc; in the order in which Java writes them.
_MAPS = (
    (108, "column_sizes", "column_size", 117, 118, "Map of column id to total size on disk"),
    (109, "value_counts", "value_count", 119, 120, "Map of column id to total count, including null and NaN"),
    (110, "null_value_counts", "null_count", 121, 122, "Map of column id to null value count"),
    (137, "nan_value_counts", "nan_count", 138, 139, "Map of column id to number of NaN values in the column"),
    (125, "lower_bounds", "lower", 126, 127, "Map of column id to lower bound"),
    (128, "upper_bounds", "upper", 129, 130, "Map of column id to upper bound"),
)


def stat_maps(stats: Mapping[int, pa.StructArray], types: Mapping[int, Type], rows: int) -> list[Pair]:
    """Return the six map columns; null in rows without any value.

    Value lengths and ``tight_bounds`` cannot be stored below V4. Bounds of a column in no schema were read as binary
    and are written unchanged.
    """
    pairs = []
    for field_id, name, child, key_id, value_id, doc in _MAPS:
        is_bound = child in ("lower", "upper")
        kind = map_of(key_id, value_id, pa.binary() if is_bound else pa.int64())
        columns = {}
        for column_id in sorted(stats):
            array = pc.struct_field(stats[column_id], child)
            if is_bound and array.null_count < rows:
                array = encode_values(types.get(column_id, PrimitiveType("binary")), array)
            if array.null_count < rows:
                columns[column_id] = array
        pairs.append((field(field_id, name, kind, doc=doc), _map(columns, kind, rows)))
    return pairs


def _map(columns: Mapping[int, AnyArray], kind: AnyMapType, rows: int) -> AnyArray:
    if not columns:
        return pa.nulls(rows, kind)
    there = np.stack([np.asarray(a.is_valid()) for a in columns.values()], axis=1)  # rows × columns
    places = np.arange(len(columns))[None, :] * rows + np.arange(rows)[:, None]
    items = pa.concat_arrays(list(columns.values())).take(pa.array(places[there]))
    keys = np.broadcast_to(np.array(list(columns), np.int32), there.shape)[there]
    counts = there.sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return build.map_array(pa.array(offsets, mask=np.append(counts == 0, False)), pa.array(keys), items, type=kind)


#: Java's ``V1Metadata.DataFileWrapper.DEFAULT_BLOCK_SIZE``; readers ignore it.
_BLOCK_SIZE = 64 * 1024 * 1024


def entry_table(
    batch: EntryBatch,
    *,
    metadata: TableMetadata,
    spec: PartitionSpec,
    dialect: str,
    snapshot_id: int | None,
    empty_partition: bool,
) -> pa.Table:
    """Return the records of a manifest.

    Parameters
    ----------
    snapshot_id
        Replaces null snapshot ids, which v1 does not allow.
    empty_partition
        Write an empty ``partition`` record for an unpartitioned spec: possible in Avro, not in Parquet.

    Raises
    ------
    RuleError
        Delete files in v1, deletion vectors below v3 (rule deletes-need-v2).
    OptionError
        Manifests among the rows, rows of another spec, or a required value that is null.
    """
    entries = batch.entries
    _check_content(batch, spec, dialect)
    ids = whole(entries["snapshot_id"])
    if snapshot_id is not None:
        ids = pc.fill_null(ids, snapshot_id)
    elif dialect == "v1" and ids.null_count:
        raise OptionError("v1 manifests require the snapshot id of every entry: pass snapshot_id=")
    pairs: list[Pair] = [
        (field(0, "status", pa.int32(), required=True), statuses(entries)),
        # The spec requires snapshot_id in v1, although Java writes it as optional there, too; since v2 it is inherited.
        (field(1, "snapshot_id", pa.int64(), required=dialect == "v1"), ids),
    ]
    if dialect != "v1":
        sequence_numbers(entries)
        pairs += [
            (field(3, "sequence_number", pa.int64()), whole(entries["sequence_number"])),
            (field(4, "file_sequence_number", pa.int64()), whole(entries["file_sequence_number"])),
        ]
    data = nested(_data_file(batch, metadata, spec, dialect, empty_partition), len(batch))
    pairs.append(retyped(field(2, "data_file", data.type, required=True), data))
    return table_of(pairs)


def _check_content(batch: EntryBatch, spec: PartitionSpec, dialect: str) -> None:
    entries = batch.entries
    kinds = set(entries["content_type"].unique().to_pylist())
    if not kinds <= {0, 1, 2}:
        raise OptionError(f"a manifest of {dialect} holds files (content types 0, 1, 2), not {sorted(kinds, key=str)}")
    if dialect == "v1" and kinds - {int(ContentType.DATA)}:
        raise RuleError("deletes-need-v2", "A v1 manifest cannot hold delete files; upgrade the table first")
    if dialect in ("v1", "v2") and entries["deletion_vector"].null_count < len(batch):
        raise RuleError("deletes-need-v2", f"A {dialect} manifest cannot hold deletion vectors; upgrade to version 3")
    others = {s for s in entries["partition_spec_id"].unique().to_pylist() if s not in (None, spec.spec_id)}
    if others:
        raise OptionError(
            f"rows of spec {sorted(others)} in a manifest of spec {spec.spec_id}: write a manifest for each spec"
        )


def _data_file(
    batch: EntryBatch, metadata: TableMetadata, spec: PartitionSpec, dialect: str, empty_partition: bool
) -> list[Pair]:
    """Return the children of ``data_file``, in the order of Java's ``fileType``."""
    entries, rows = batch.entries, len(batch)
    int64, text, binary = pa.int64(), pa.string(), pa.binary()
    kind = whole(entries["content_type"])
    pairs: list[Pair] = []
    if dialect != "v1":
        doc = "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"
        pairs.append((field(134, "content", pa.int32(), required=True, doc=doc), kind))
    formats = pc.utf8_upper(required(entries, "file_format"))  # spelled as in Java's FileFormat
    pairs += [
        (
            field(100, "file_path", text, required=True, doc="Location URI with FS scheme"),
            required(entries, "location"),
        ),
        (
            field(101, "file_format", text, required=True, doc="File format name: avro, orc, or parquet"),
            formats,
        ),
    ]
    if spec.fields or empty_partition:
        tuples = nested(tuple_fields(batch, spec.fields, metadata), rows)
        doc = "" if dialect == "v1" else "Partition data tuple, schema based on the partition spec"
        pairs.append((field(102, "partition", tuples.type, required=True, doc=doc), tuples))
    pairs += [
        (
            field(103, "record_count", int64, required=True, doc="Number of records in the file"),
            required(entries, "record_count"),
        ),
        (
            field(104, "file_size_in_bytes", int64, required=True, doc="Total file size in bytes"),
            required(entries, "file_size_in_bytes"),
        ),
    ]
    if dialect == "v1":
        block = pa.repeat(pa.scalar(_BLOCK_SIZE, int64), rows)
        pairs.append((field(105, "block_size_in_bytes", int64, required=True), block))
    types = {i: f.type for i, (_, f) in metadata.all_fields().items()}
    expressions = {e.expr_id for e in metadata.expressions}
    pairs += stat_maps({i: a for i, a in batch.stats.items() if i not in expressions}, types, rows)
    offsets = field(132, "split_offsets", list_of(133, int64), doc="Splittable offsets")
    pairs += [
        (
            field(131, "key_metadata", binary, doc="Encryption key metadata blob"),
            whole(entries["key_metadata"]),
        ),
        (offsets, whole(entries["split_offsets"]).cast(offsets.type)),
    ]
    if dialect != "v1":
        ids = field(135, "equality_ids", list_of(136, pa.int32()), doc="Equality comparison field IDs")
        pairs.append((ids, whole(entries["equality_ids"]).cast(ids.type)))
    pairs.append((field(140, "sort_order_id", pa.int32(), doc="Sort order ID"), whole(entries["sort_order_id"])))
    if dialect == "v1":
        return pairs
    is_data, is_position = pc.equal(kind, 0), pc.equal(kind, 1)
    if dialect != "v2":
        doc = "The first row ID assigned to the first row in the data file"
        pairs.append((field(142, "first_row_id", int64, doc=doc), _only(is_data, whole(entries["first_row_id"]))))
    doc = "Fully qualified location (URI with FS scheme) of a data file that all deletes reference"
    referenced = _only(is_position, whole(entries["referenced_file"]))
    pairs.append((field(143, "referenced_data_file", text, doc=doc), referenced))
    if dialect != "v2":
        vector = whole(entries["deletion_vector"])
        doc = "The offset in the file where the content starts"
        pairs.append((field(144, "content_offset", int64, doc=doc), pc.struct_field(vector, "offset")))
        doc = "The length of referenced content stored in the file"
        pairs.append((field(145, "content_size_in_bytes", int64, doc=doc), pc.struct_field(vector, "size_in_bytes")))
    return pairs


def _only(mask: pa.BooleanArray, array: AnyArray) -> AnyArray:
    return pc.if_else(mask, array, build.scalar(None, array.type))


def spec_fields_json(spec: PartitionSpec) -> str:
    """Return a spec's fields as Java writes them to manifests (``PartitionSpecParser.toJsonFields``)."""
    fields = []
    for f in spec.fields:
        source = {"source-id": f.source_id} if len(f.source_ids) == 1 else {"source-ids": list(f.source_ids)}
        fields.append({"name": f.name, "transform": f.transform, **source, "field-id": f.field_id})
    return json.dumps(fields, separators=(",", ":"))


def entry_metadata(metadata: TableMetadata, spec: PartitionSpec, dialect: str, content: str) -> Mapping[str, str]:
    """Return the key-value metadata of a manifest (spec, "Manifests"); in v1 without ``content``."""
    schema = metadata.schema()
    pairs = {
        "schema": json.dumps(schema_to_json(schema), separators=(",", ":")),
        "schema-id": str(schema.schema_id),
        "partition-spec": spec_fields_json(spec),
        "partition-spec-id": str(spec.spec_id),
        "format-version": {"v1": "1", "v2": "2", "v3": "3"}.get(dialect, "4"),
    }
    if dialect != "v1":
        pairs["content"] = "data" if content == "data" else "deletes"
    return pairs
