"""The field ids of v1-v3 manifests and manifest lists, and of V4 manifests, shared by all adapters.

Iceberg spec, "Manifests" and "Manifest Lists". Names are used only for files without any field ids; older Java wrote
504-506 as ``added_data_files_count`` and so on.
"""

from __future__ import annotations

from iceexplore.metadata import Dialect

__all__ = [
    "COLUMN_FILE_NAMES",
    "DRAFT_NAMES",
    "DRAFT_STRUCTS",
    "ENTRY_IDS",
    "FILE_NAMES",
    "LIST_NAMES",
    "MANIFEST_ENTRY_NAMES",
    "MAP_IDS",
    "OLD_COLUMN_FILE_NAMES",
    "PROPOSAL_NAMES",
    "PROPOSAL_STRUCTS",
    "STATS_OFFSETS",
    "STAT_COLUMNS",
    "SUMMARY_NAMES",
    "field_id",
    "partition_offset",
    "partition_part",
    "stats_of",
]

_TOP_NAMES = {
    "content_type": 134,
    "location": 100,
    "file_format": 101,
    "sort_order_id": 140,
    "record_count": 103,
    "file_size_in_bytes": 104,
    "referenced_file": 143,
    "key_metadata": 131,
    "split_offsets": 132,
    "equality_ids": 135,
    "partition": 102,
}
_COUNT_NAMES = {
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
    "min_sequence_number": 516,
}
_VERSION_NAMES = {"status": 0, "snapshot_id": 1, "sequence_number": 3, "file_sequence_number": 4}
#: Structs whose children become columns: (enclosing struct, field id) -> name.
PROPOSAL_STRUCTS: dict[tuple[str, int], str] = {
    ("0", 5): "5",
    ("0", 147): "147",
    ("0", 149): "stats",
    ("0", 10_000): "stats",
    ("0", 521): "521",
    ("0", 102): "102",
}
PROPOSAL_NAMES: dict[str, dict[str, int]] = {
    "0": {
        **_TOP_NAMES,
        "type": 134,
        "version_info": 5,
        "deletion_vector": 147,
        "partition_spec_id": 148,
        "content_stats": 149,
        "column_stats": 149,
        "manifest_stats": 521,
        "first_row_id": 142,
    },
    "5": _VERSION_NAMES,
    "147": {"offset": 144, "size_in_bytes": 145, "inline_content": 146},
    "521": _COUNT_NAMES,
}
DRAFT_STRUCTS: dict[tuple[str, int], str] = {
    ("0", 147): "147",
    ("0", 148): "148",
    ("0", 150): "150",
    ("0", 146): "stats",
    ("0", 102): "102",
}
DRAFT_NAMES: dict[str, dict[str, int]] = {
    "0": {
        **_TOP_NAMES,
        "tracking": 147,
        "format_version": 157,
        "spec_id": 141,
        "content_stats": 146,
        "deletion_vector": 148,
        "manifest_info": 150,
        "column_files": 158,
    },
    "147": {
        **_VERSION_NAMES,
        "dv_snapshot_id": 5,
        "latest_column_file_snapshot_id": 160,
        "deleted_positions": 6,
        "replaced_positions": 7,
        "first_row_id": 142,
    },
    "148": {"location": 155, "offset": 144, "size_in_bytes": 145, "cardinality": 156, "key_metadata": 149},
    "150": {
        **_COUNT_NAMES,
        "replaced_files_count": 520,
        "replaced_rows_count": 521,
        "dv": 522,
        "dv_cardinality": 523,
    },
}
#: Children of ``column_file`` (158): name -> field id. Older writers have only 161 to 164, with other meanings.
COLUMN_FILE_NAMES = {
    "format_version": 161,
    "field_ids": 162,
    "location": 164,
    "file_format": 165,
    "file_size_in_bytes": 166,
    "key_metadata": 167,
    "split_offsets": 168,
}
OLD_COLUMN_FILE_NAMES = {"field_ids": 161, "location": 163, "file_size_in_bytes": 164}
DRAFT_NAMES["158"] = COLUMN_FILE_NAMES
#: Offsets of statistics from the id of a column's struct. The proposal gives no ids to ``max_uncompressed_length`` and
#: ``derived_value``; this package chose the offsets 8 and 9.
STATS_OFFSETS = {
    "lower": 1,
    "upper": 2,
    "tight_bounds": 3,
    "value_count": 4,
    "null_count": 5,
    "nan_count": 6,
    "average_length": 7,
    "max_length": 8,
    "derived_value": 9,
}
_FIRST, _WIDTH = 10_000, 200
#: Layout (b) of the proposal stores partition values in the source column's struct, as ``partition_1001_ts_day`` (of
#: files) and ``partition_1001_ts_day_lower_bound`` and ``_upper_bound`` (of manifests), and gives them no ids. The ids
#: chosen here follow from the partition field's id, so that they never depend on other fields: 40 + 4 x (id - 1000),
#: plus 1 and 2 for the bounds, and 3 for a null count, which the proposal lacks (a missing value would mean unknown,
#: not null).
_PARTITION_FIRST, _PARTITION_WIDTH, _FIRST_FIELD = 40, 4, 1000
_PARTITION_PARTS = ("value", "lower", "upper", "null_count")
#: Java's ``StatsUtil.DATA_FIELD_ID_END``, exclusive.
MAX_STATS_COLUMN = 999_950
#: The reserved ids of ``_last_updated_sequence_number`` and ``_row_id``, by the id of the struct of their statistics.
_RESERVED = {9_000: 2_147_483_539, 9_200: 2_147_483_540}


def stats_of(field_id: int) -> tuple[int, int] | None:
    """Return column id and offset of a field in ``content_stats`` (offset 0: a column's struct); None for other ids."""
    if _FIRST <= field_id < _FIRST + _WIDTH * MAX_STATS_COLUMN:
        return (field_id - _FIRST) // _WIDTH, (field_id - _FIRST) % _WIDTH
    base = field_id - field_id % _WIDTH
    return (_RESERVED[base], field_id - base) if base in _RESERVED else None


def partition_offset(field_id: int, part: str = "value") -> int | None:
    """Return the offset of a partition field's value in its source column's struct, in layout (b).

    Parameters
    ----------
    part
        ``value``, ``lower``, ``upper`` or ``null_count``.

    Returns
    -------
    int or None
        None for field ids below 1000 or above 1039, for which a struct has no room.
    """
    offset = _PARTITION_FIRST + _PARTITION_WIDTH * (field_id - _FIRST_FIELD)
    return offset + _PARTITION_PARTS.index(part) if _PARTITION_FIRST <= offset < _WIDTH else None


def partition_part(offset: int) -> tuple[int, str] | None:
    """Return the partition field's id and the part that an offset means in layout (b); None for other statistics."""
    if not _PARTITION_FIRST <= offset < _WIDTH:
        return None
    number, part = divmod(offset - _PARTITION_FIRST, _PARTITION_WIDTH)
    return _FIRST_FIELD + number, _PARTITION_PARTS[part]


#: Statistics maps: name -> field id.
MAP_IDS = {
    "column_sizes": 108,
    "value_counts": 109,
    "null_value_counts": 110,
    "nan_value_counts": 137,
    "lower_bounds": 125,
    "upper_bounds": 128,
}
#: Columns of the part "stats" (111 ``distinct_counts`` is deprecated and only skipped).
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
#: Field ids by name, for files without ids: manifest list, field summaries, manifest, data file.
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
#: Names in ``data_file`` of columns of `ENTRY_SCHEMA`, where they differ.
_FILE_COLUMNS = {
    "location": "file_path",
    "content_type": "content",
    "referenced_file": "referenced_data_file",
    "offset": "content_offset",
    "size_in_bytes": "content_size_in_bytes",
}
#: Names in manifest lists of columns of `ENTRY_SCHEMA`, where they differ.
_LIST_COLUMNS = {
    "location": "manifest_path",
    "file_size_in_bytes": "manifest_length",
    "snapshot_id": "added_snapshot_id",
    "content_type": "content",
}


def field_id(dialect: Dialect, name: str, *, manifest: bool = False, vector: bool = False) -> int | None:
    """Return the id of a field of an entry, by its name in the dialect or in `ENTRY_SCHEMA`; None if it has none.

    Parameters
    ----------
    manifest
        Whether the entry describes a manifest.
    vector
        Whether the field belongs to a deletion vector.
    """
    if not dialect.has_root_manifest:
        if manifest:
            return LIST_NAMES.get(_LIST_COLUMNS.get(name, name))
        return {**FILE_NAMES, **MANIFEST_ENTRY_NAMES}.get(_FILE_COLUMNS.get(name, name))
    if name == "partition" and not dialect.is_draft:
        return None  # the proposal derives it from statistics, and readers only tolerate the stored field
    names = DRAFT_NAMES if dialect.is_draft else PROPOSAL_NAMES
    own, *structs = ("0", "147", "150", "148") if dialect.is_draft else ("0", "5", "521", "147")
    order = [structs[-1], own, *structs] if vector else [own, *structs]
    if dialect.is_draft:
        name = {"partition_spec_id": "spec_id", "manifest_stats": "manifest_info"}.get(name, name)
    return next((names[struct][name] for struct in order if name in names[struct]), None)
