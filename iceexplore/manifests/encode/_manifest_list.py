"""Manifest lists of v1, v2, v3 and of Java's v4: ``manifest_file`` records (spec, "Manifest Lists")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, RuleError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._checks import required
from iceexplore.manifests.encode._fields import Pair, field, nested, table_of
from iceexplore.manifests.model._arrow import offsets_of, whole
from iceexplore.manifests.model._content_entry import ContentType

__all__ = ["list_metadata", "list_table"]

_COUNTS = (
    (504, "added_files_count", "Added entry count", pa.int32()),
    (505, "existing_files_count", "Existing entry count", pa.int32()),
    (506, "deleted_files_count", "Deleted entry count", pa.int32()),
    (512, "added_rows_count", "Added rows count", pa.int64()),
    (513, "existing_rows_count", "Existing rows count", pa.int64()),
    (514, "deleted_rows_count", "Deleted rows count", pa.int64()),
)


def list_table(
    batch: EntryBatch, *, dialect: str, snapshot_id: int, sequence_number: int, first_row_id: int | None
) -> pa.Table:
    """Return the records of a manifest list.

    Parameters
    ----------
    snapshot_id, sequence_number
        The commit's numbers, for manifests whose ``snapshot_id``, ``sequence_number`` or ``min_sequence_number`` is
        null.
    first_row_id
        v3 and later: the next row id. Data manifests without a ``first_row_id`` get one, in order, each reserving ids
        for its existing and added rows (like Java's ``ManifestListWriter.V3Writer``).

    Raises
    ------
    RuleError
        Delete manifests in v1 (rule deletes-need-v2).
    OptionError
        Rows that are not manifests, or a required value that is null; from v2 on, counts are required too.
    """
    entries, rows = batch.entries, len(batch)
    kind = whole(entries["content_type"])
    kinds = set(kind.unique().to_pylist())
    if not kinds <= {int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)}:
        raise OptionError(f"a manifest list holds manifests (content types 3, 4), not {sorted(kinds, key=str)}")
    if dialect == "v1" and int(ContentType.DELETE_MANIFEST) in kinds:
        raise RuleError("deletes-need-v2", "A v1 manifest list cannot hold delete manifests; upgrade the table first")
    int32, int64 = pa.int32(), pa.int64()
    stats = whole(entries["manifest_stats"])
    pairs: list[Pair] = [
        (
            field(500, "manifest_path", pa.string(), required=True, doc="Location URI with FS scheme"),
            required(entries, "location"),
        ),
        (
            field(501, "manifest_length", int64, required=True, doc="Total file size in bytes"),
            required(entries, "file_size_in_bytes"),
        ),
        (
            field(502, "partition_spec_id", int32, required=True, doc="Spec ID used to write"),
            required(entries, "partition_spec_id"),
        ),
    ]
    later = dialect != "v1"
    if later:
        lowest = pc.struct_field(stats, "min_sequence_number")
        pairs += [
            (
                field(517, "content", int32, required=True, doc="Contents of the manifest: 0=data, 1=deletes"),
                pc.subtract(kind, pa.scalar(int(ContentType.DATA_MANIFEST), int32)),
            ),
            (
                field(515, "sequence_number", int64, required=True, doc="Sequence number when the manifest was added"),
                pc.fill_null(whole(entries["sequence_number"]), sequence_number),
            ),
            (
                field(516, "min_sequence_number", int64, required=True, doc="Lowest sequence number in the manifest"),
                pc.fill_null(lowest, sequence_number),
            ),
        ]
    pairs.append(
        (
            field(503, "added_snapshot_id", int64, required=True, doc="Snapshot ID that added the manifest"),
            pc.fill_null(whole(entries["snapshot_id"]), snapshot_id),
        )
    )
    counts = [
        (field(i, n, t, required=later, doc=doc), _count(cast(pa.StructArray, stats), n, t, later))
        for i, n, doc, t in _COUNTS
    ]
    summaries = _summaries(cast(AnyListArray, whole(entries["partition_summaries"])))
    # v1 has the summaries before the row counts (V1Metadata.MANIFEST_LIST_SCHEMA).
    pairs += [*counts, summaries] if later else [*counts[:3], summaries, *counts[3:]]
    key = field(519, "key_metadata", pa.binary(), doc="Encryption key metadata blob")
    pairs.append((key, whole(entries["key_metadata"])))
    if dialect not in ("v1", "v2"):
        doc = "Starting row ID to assign to new rows in ADDED data files"
        pairs.append((field(520, "first_row_id", int64, doc=doc), _row_ids(batch, first_row_id)))
    assert all(len(a) == rows for _, a in pairs)
    return table_of(pairs)


def _count(stats: pa.StructArray, name: str, kind: pa.DataType, needed: bool) -> AnyArray:
    column = pc.struct_field(stats, name)
    if needed and column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise OptionError(f"row {row} has no {name}, which v2 and later require: read the manifest and count")
    return column.cast(kind)


def _summaries(lists: AnyListArray) -> Pair:
    """Return field 507, ``partitions``. ``contains_null`` is required: if unknown, it is written as true."""
    children = cast(pa.StructArray, lists.values).flatten()
    docs = (
        (509, "contains_null", "True if any file has a null partition value"),
        (518, "contains_nan", "True if any file has a nan partition value"),
        (510, "lower_bound", "Partition lower bound for all files"),
        (511, "upper_bound", "Partition upper bound for all files"),
    )
    pairs: list[Pair] = []
    for (field_id, name, doc), array in zip(docs, children, strict=True):
        needed = field_id == 509
        values = pc.fill_null(array, True) if needed else array
        pairs.append((field(field_id, name, array.type, required=needed, doc=doc), values))
    records = nested(pairs, len(lists.values))
    kind = pa.list_(field(508, "element", records.type, required=True))
    made = build.list_array(offsets_of(lists), records).cast(kind)
    return field(507, "partitions", kind, doc="Summary for each partition"), made


def _row_ids(batch: EntryBatch, first_row_id: int | None) -> AnyArray:
    given = whole(batch.entries["first_row_id"])
    is_data = pc.equal(whole(batch.entries["content_type"]), int(ContentType.DATA_MANIFEST))
    if first_row_id is None:
        return pc.if_else(is_data, given, pa.scalar(None, pa.int64()))
    unset = np.asarray(pc.and_(is_data, given.is_null()))
    stats = whole(batch.entries["manifest_stats"])
    held = [np.asarray(pc.fill_null(pc.struct_field(stats, n), 0)) for n in ("existing_rows_count", "added_rows_count")]
    room = np.where(unset, held[0] + held[1], 0)
    starts = pa.array(np.cumsum(room) - room + np.int64(first_row_id), mask=~unset)
    return pc.coalesce(pc.if_else(is_data, given, pa.scalar(None, pa.int64())), starts)


def list_metadata(
    dialect: str, snapshot_id: int, parent_snapshot_id: int | None, sequence_number: int, first_row_id: int | None
) -> Mapping[str, str]:
    """Return the key-value metadata of a manifest list as Java writes it (with the word ``null`` for None)."""
    pairs = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
    }
    if dialect != "v1":
        pairs["sequence-number"] = str(sequence_number)
    if dialect not in ("v1", "v2"):
        pairs["first-row-id"] = "null" if first_row_id is None else str(first_row_id)
    return pairs | {"format-version": {"v1": "1", "v2": "2", "v3": "3"}.get(dialect, "4")}
