"""The field ids of v1-v3 manifests and manifest lists: one table, for every adapter.

Iceberg spec, "Manifests" and "Manifest Lists". Names count only where a file carries no ids at all; older Java wrote
504-506 as ``added_data_files_count`` and so on.
"""

from __future__ import annotations

__all__ = [
    "ENTRY_IDS",
    "FILE_NAMES",
    "LIST_NAMES",
    "MANIFEST_ENTRY_NAMES",
    "MAP_IDS",
    "STAT_COLUMNS",
    "SUMMARY_NAMES",
]

#: Statistics: content-entry name -> column.
MAP_IDS = {
    "column_sizes": 108,
    "value_counts": 109,
    "null_value_counts": 110,
    "nan_value_counts": 137,
    "lower_bounds": 125,
    "upper_bounds": 128,
}
#: Columns of the part "stats" (111 ``distinct_counts`` is deprecated, and only skipped over).
STAT_COLUMNS = frozenset(f"f{i}" for i in (*MAP_IDS.values(), 111))

#: ``manifest_entry`` and ``data_file``: column of `ENTRY_SCHEMA` -> field id.
ENTRY_IDS = {
    "status": 0,
    "snapshot_id": 1,
    "sequence_number": 3,
    "file_sequence_number": 4,
    "content_type": 134,
    "location": 100,
    "file_format": 101,
    "record_count": 103,
    "file_size_in_bytes": 104,
    "key_metadata": 131,
    "split_offsets": 132,
    "equality_ids": 135,
    "sort_order_id": 140,
    "first_row_id": 142,
    "referenced_file": 143,
}

#: Field ids by name, for files that carry none: of a manifest list, its field summaries, a manifest, its files.
LIST_NAMES = {
    "manifest_path": 500,
    "manifest_length": 501,
    "partition_spec_id": 502,
    "content": 517,
    "sequence_number": 515,
    "min_sequence_number": 516,
    "added_snapshot_id": 503,
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "added_data_files_count": 504,
    "existing_data_files_count": 505,
    "deleted_data_files_count": 506,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
    "partitions": 507,
    "key_metadata": 519,
    "first_row_id": 520,
}
MANIFEST_ENTRY_NAMES = {"status": 0, "snapshot_id": 1, "sequence_number": 3, "file_sequence_number": 4, "data_file": 2}
FILE_NAMES = {
    "content": 134,
    "file_path": 100,
    "file_format": 101,
    "partition": 102,
    "record_count": 103,
    "file_size_in_bytes": 104,
    **MAP_IDS,
    "distinct_counts": 111,
    "key_metadata": 131,
    "split_offsets": 132,
    "equality_ids": 135,
    "sort_order_id": 140,
    "first_row_id": 142,
    "referenced_data_file": 143,
    "content_offset": 144,
    "content_size_in_bytes": 145,
}
SUMMARY_NAMES = {"contains_null": 509, "contains_nan": 518, "lower_bound": 510, "upper_bound": 511}
