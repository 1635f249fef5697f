"""The Avro schemas of manifests and manifest lists, v1 to v3, as Iceberg's Java writes them.

Field order, ids and optionality follow ``V1Metadata``, ``V2Metadata`` and ``V3Metadata`` (apache/iceberg, package
``org.apache.iceberg``); maps with keys that are no strings are arrays of ``k<key id>_v<value id>`` records with the
logical type ``map`` (spec, "Appendix A: Avro").
"""

from __future__ import annotations

from typing import Any

__all__ = ["manifest_list_schema", "manifest_schema"]

Avro = Any


def _required(field_id: int, name: str, avro: Avro) -> dict[str, Any]:
    return {"name": name, "type": avro, "field-id": field_id}


def _optional(field_id: int, name: str, avro: Avro) -> dict[str, Any]:
    return {"name": name, "type": ["null", avro], "default": None, "field-id": field_id}


def _record(name: str, fields: list[dict[str, Any]]) -> Avro:
    return {"type": "record", "name": name, "fields": fields}


def _map(key_id: int, value_id: int, value: str) -> Avro:
    pair = _record(f"k{key_id}_v{value_id}", [_required(key_id, "key", "int"), _required(value_id, "value", value)])
    return {"type": "array", "items": pair, "logicalType": "map"}


def _list(element_id: int, element: Avro) -> Avro:
    return {"type": "array", "items": element, "element-id": element_id}


def manifest_schema(format_version: int, partition: list[dict[str, Any]]) -> Avro:
    """The schema of a manifest entry.

    Parameters
    ----------
    format_version
        1, 2 or 3.
    partition
        The Avro fields of the partition record; empty for an unpartitioned table.
    """
    v1, v3 = format_version == 1, format_version >= 3
    data_file = [
        *([] if v1 else [_required(134, "content", "int")]),
        _required(100, "file_path", "string"),
        _required(101, "file_format", "string"),
        _required(102, "partition", _record("r102", partition)),
        _required(103, "record_count", "long"),
        _required(104, "file_size_in_bytes", "long"),
        *([_required(105, "block_size_in_bytes", "long")] if v1 else []),
        _optional(108, "column_sizes", _map(117, 118, "long")),
        _optional(109, "value_counts", _map(119, 120, "long")),
        _optional(110, "null_value_counts", _map(121, 122, "long")),
        _optional(137, "nan_value_counts", _map(138, 139, "long")),
        _optional(125, "lower_bounds", _map(126, 127, "bytes")),
        _optional(128, "upper_bounds", _map(129, 130, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", _list(133, "long")),
        *([] if v1 else [_optional(135, "equality_ids", _list(136, "int"))]),
        _optional(140, "sort_order_id", "int"),
        *([_optional(142, "first_row_id", "long")] if v3 else []),
        *([] if v1 else [_optional(143, "referenced_data_file", "string")]),
        *([_optional(144, "content_offset", "long"), _optional(145, "content_size_in_bytes", "long")] if v3 else []),
    ]
    head = [_required(0, "status", "int")]
    if v1:
        head.append(_required(1, "snapshot_id", "long"))
    else:
        head.append(_optional(1, "snapshot_id", "long"))
        head.append(_optional(3, "sequence_number", "long"))
        head.append(_optional(4, "file_sequence_number", "long"))
    return _record("manifest_entry", [*head, _required(2, "data_file", _record("r2", data_file))])


def manifest_list_schema(format_version: int) -> Avro:
    """The schema of a manifest list's entry."""
    v1 = format_version == 1
    count = _optional if v1 else _required
    summary = _record(
        "r508",
        [
            _required(509, "contains_null", "boolean"),
            _optional(518, "contains_nan", "boolean"),
            _optional(510, "lower_bound", "bytes"),
            _optional(511, "upper_bound", "bytes"),
        ],
    )
    sequence = [
        _required(517, "content", "int"),
        _required(515, "sequence_number", "long"),
        _required(516, "min_sequence_number", "long"),
    ]
    return _record(
        "manifest_file",
        [
            _required(500, "manifest_path", "string"),
            _required(501, "manifest_length", "long"),
            _required(502, "partition_spec_id", "int"),
            *([] if v1 else sequence),
            _required(503, "added_snapshot_id", "long"),
            count(504, "added_files_count", "int"),
            count(505, "existing_files_count", "int"),
            count(506, "deleted_files_count", "int"),
            count(512, "added_rows_count", "long"),
            count(513, "existing_rows_count", "long"),
            count(514, "deleted_rows_count", "long"),
            _optional(507, "partitions", _list(508, summary)),
            _optional(519, "key_metadata", "bytes"),
            *([_optional(520, "first_row_id", "long")] if format_version >= 3 else []),
        ],
    )
