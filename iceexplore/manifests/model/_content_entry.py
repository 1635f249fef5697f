"""The content entry: the record for every row of every manifest, in all format versions.

Names and ids are those of the V4 proposal ("Proposed Manifest Structure"). A v1-v3 manifest list becomes a root with
entries of type DATA_MANIFEST and DELETE_MANIFEST; a v1-v3 manifest entry becomes a content entry of type DATA,
POSITION_DELETE or EQUALITY_DELETE. Code above the dialects does not depend on the version.
"""

from __future__ import annotations

from enum import IntEnum
from typing import cast

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.manifests.model._arrow import whole

__all__ = ["COLUMN_FILE", "CONTENT_NAMES", "ContentType", "ENTRY_SCHEMA", "MANIFEST_STATS", "PARTITION_SUMMARY",
           "Status", "column_file_rows", "live"]  # fmt: skip


class ContentType(IntEnum):
    """Field 134, ``content_type``."""

    DATA = 0
    POSITION_DELETE = 1
    EQUALITY_DELETE = 2
    DATA_MANIFEST = 3
    DELETE_MANIFEST = 4
    MANIFEST_DV = 5


class Status(IntEnum):
    """Field 0, ``status``."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2
    REPLACED = 3  # v4-draft: this entry has a successor elsewhere in the same tree
    MODIFIED = 4  # v4-draft: live, with a changed deletion vector


#: The statuses of entries that are not live.
NOT_LIVE = pa.array([int(Status.DELETED), int(Status.REPLACED)], pa.int32())

CONTENT_NAMES = {t.value: t.name for t in ContentType}

#: 521 manifest_stats; null counts mean unknown ("assume non-zero").
MANIFEST_STATS = pa.struct(
    [
        pa.field("added_files_count", pa.int64()),
        pa.field("existing_files_count", pa.int64()),
        pa.field("deleted_files_count", pa.int64()),
        pa.field("added_rows_count", pa.int64()),
        pa.field("existing_rows_count", pa.int64()),
        pa.field("deleted_rows_count", pa.int64()),
        pa.field("min_sequence_number", pa.int64()),
    ]
)

#: 508 field_summary of a v1-v3 manifest list; bounds in single-value binary form.
PARTITION_SUMMARY = pa.struct(
    [
        pa.field("contains_null", pa.bool_()),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.binary()),
        pa.field("upper_bound", pa.binary()),
    ]
)

#: 158 column_files of the V4 draft. A column file has newer values of some columns, for every row of the data file.
COLUMN_FILE = pa.struct(
    [
        pa.field("field_ids", pa.list_(pa.int32())),
        pa.field("location", pa.string()),
        pa.field("file_format", pa.string()),  # lower case; null if an older writer left it out
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("format_version", pa.int32()),
        pa.field("key_metadata", pa.binary()),
        pa.field("split_offsets", pa.list_(pa.int64())),
    ]
)

#: The columns of content entries. Of the proposal's structs, only `version_info` (5) is flattened. `ordinal` is the row
#: in the file, to which manifest DVs refer. Inheritance (`decode/_inherit.py`) fills nulls in columns such as
#: `snapshot_id`.
ENTRY_SCHEMA = build.schema(
    [
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("content_type", pa.int32()),
        pa.field("location", pa.string()),
        pa.field("file_format", pa.string()),  # lower case: avro, orc, parquet, puffin
        pa.field("status", pa.int32()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("sequence_number", pa.int64()),
        pa.field("file_sequence_number", pa.int64()),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("sort_order_id", pa.int32()),
        pa.field("record_count", pa.int64()),
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("referenced_file", pa.string()),
        pa.field(
            "deletion_vector",
            pa.struct(
                [
                    pa.field("offset", pa.int64()),
                    pa.field("size_in_bytes", pa.int64()),
                    pa.field("inline_content", pa.binary()),
                ]
            ),
        ),
        pa.field("manifest_stats", MANIFEST_STATS),
        pa.field("partition_summaries", pa.list_(PARTITION_SUMMARY)),
        pa.field("key_metadata", pa.binary()),
        pa.field("split_offsets", pa.list_(pa.int64())),
        pa.field("equality_ids", pa.list_(pa.int32())),
        pa.field("first_row_id", pa.int64()),
        # Fields that only the V4 draft has: the format version of the file (0: before V4) and, for a manifest, two
        # bitmaps with the positions that the snapshot added to its manifest DV: of removed entries, and of entries that
        # are now listed elsewhere.
        pa.field("format_version", pa.int32()),
        pa.field("deleted_positions", pa.binary()),
        pa.field("replaced_positions", pa.binary()),
        # In a leaf, the ordinal (in the root) of the manifest DV that removes this entry; null if none does. `status`
        # remains as the leaf has it.
        pa.field("manifest_dv", pa.int64()),
        pa.field("column_files", pa.list_(COLUMN_FILE)),
        # 160 latest_column_file_snapshot_id
        pa.field("column_files_snapshot_id", pa.int64()),
    ]
)


def column_file_rows(entries: pa.Table) -> pa.Table:
    """Return the column files of entries, one per row, with the entry's row in ``entry`` and its content type."""
    lists = entries["column_files"].combine_chunks()
    rows = pc.list_parent_indices(lists)
    flat = cast("pa.StructArray", pc.list_flatten(lists))
    columns = {f.name: pc.struct_field(flat, [i]) for i, f in enumerate(COLUMN_FILE)}
    content = entries["content_type"].combine_chunks().take(rows)
    return pa.table({"entry": rows, "content_type": content, **columns})


def live(entries: pa.Table) -> pa.BooleanArray:
    """Return a mask of the live entries: EXISTING, ADDED, MODIFIED or null, and not removed by a manifest DV."""
    status, manifest_dv = entries["status"], entries["manifest_dv"]
    mask = pc.invert(pc.is_in(status, value_set=NOT_LIVE))  # a null status is in no set: live
    if manifest_dv.null_count < len(manifest_dv):
        mask = pc.and_(mask, manifest_dv.is_null())
    return cast(pa.BooleanArray, whole(mask))
