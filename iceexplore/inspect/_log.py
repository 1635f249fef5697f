"""``snapshots``, ``history``, ``refs`` and ``metadata_log_entries``: tables from the metadata file alone.

Spark cannot time-travel in these (Java: ``BaseMetadataTable.TIME_TRAVEL_TABLE_TYPES``): they show the metadata file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue, build
from iceexplore.graph import TableState, json_safe
from iceexplore.inspect._shown import micros_of
from iceexplore.metadata import TableMetadata

__all__ = [
    "HISTORY_SCHEMA",
    "METADATA_LOG_SCHEMA",
    "REFS_SCHEMA",
    "SNAPSHOTS_SCHEMA",
    "build_history",
    "build_metadata_log",
    "build_refs",
    "build_snapshots",
    "rows_table",
]

_TIME = pa.timestamp("us", tz="UTC")

SNAPSHOTS_SCHEMA = build.schema(
    [
        pa.field("committed_at", _TIME),
        pa.field("snapshot_id", pa.int64()),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.string())),
    ]
)
HISTORY_SCHEMA = build.schema(
    [
        pa.field("made_current_at", _TIME),
        pa.field("snapshot_id", pa.int64()),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_()),
    ]
)
REFS_SCHEMA = build.schema(
    [
        pa.field("name", pa.string()),
        pa.field("type", pa.string()),
        pa.field("snapshot_id", pa.int64()),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)
METADATA_LOG_SCHEMA = build.schema(
    [
        pa.field("timestamp", _TIME),
        pa.field("file", pa.string()),
        pa.field("latest_snapshot_id", pa.int64()),
        pa.field("latest_schema_id", pa.int32()),
        pa.field("latest_sequence_number", pa.int64()),
    ]
)


def rows_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return records of the metadata file as a table; as they are few, it is built from Python objects."""
    columns = {field.name: [row[field.name] for row in rows] for field in schema}
    return pa.table([_column(columns[f.name], f.type) for f in schema], schema=schema)


def _column(values: list[Any], kind: pa.DataType) -> AnyArray:
    try:
        return pa.array(values, kind)
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.concat_arrays([_one(_text(value), kind) for value in values])


def _one(value: PlainValue, kind: pa.DataType) -> AnyArray:
    try:
        return pa.array([value], kind)
    except (OverflowError, pa.ArrowInvalid, pa.ArrowTypeError):  # a damaged number: only this value becomes null
        return build.nulls(1, kind)


def _text(value: PlainValue) -> PlainValue:
    """Return a value with lone surrogates, which JSON can hold and Arrow cannot, escaped."""
    match value:
        case str():
            return json_safe(value)
        case list() | tuple():
            return type(value)(map(_text, value))
        case dict():
            return {_text(k): _text(v) for k, v in value.items()}
    return value


def build_snapshots(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield every snapshot, in the metadata's order; the operation is a column and not in the summary."""
    rows = []
    for s in state.metadata.snapshots:
        summary = None if s.summary is None else [(k, v) for k, v in s.summary.items() if k != "operation"]
        rows.append(
            {
                "committed_at": micros_of(s.timestamp_ms),
                "snapshot_id": s.snapshot_id,
                "parent_id": s.parent_snapshot_id,
                "operation": s.operation,
                "manifest_list": s.root_location,
                "summary": summary,
            }
        )
    yield rows_table(rows, schema)


def _current_ancestors(metadata: TableMetadata) -> set[int]:
    parents = {s.snapshot_id: s.parent_snapshot_id for s in metadata.snapshots}
    out: set[int] = set()
    at = metadata.current_snapshot_id
    while at is not None and at in parents and at not in out:
        out.add(at)
        at = parents[at]
    return out


def build_history(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the snapshot log."""
    metadata = state.metadata
    ancestors = _current_ancestors(metadata)
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    rows = []
    for entry in metadata.snapshot_log:
        snapshot = by_id.get(entry.snapshot_id)
        rows.append(
            {
                "made_current_at": micros_of(entry.timestamp_ms),
                "snapshot_id": entry.snapshot_id,
                "parent_id": None if snapshot is None else snapshot.parent_snapshot_id,
                "is_current_ancestor": entry.snapshot_id in ancestors,
            }
        )
    yield rows_table(rows, schema)


def build_refs(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the branches and tags."""
    rows = [
        {
            "name": r.name,
            "type": r.type.upper(),
            "snapshot_id": r.snapshot_id,
            "max_reference_age_in_ms": r.max_ref_age_ms,
            "min_snapshots_to_keep": r.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": r.max_snapshot_age_ms,
        }
        for r in state.metadata.refs.values()
    ]
    yield rows_table(rows, schema)


def build_metadata_log(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield earlier metadata files and this one, each with its current snapshot according to the snapshot log."""
    metadata = state.metadata
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    files: list[tuple[int | None, str]] = [(e.timestamp_ms, e.metadata_file) for e in metadata.metadata_log]
    files.append((metadata.last_updated_ms, state.metadata_location))
    rows = []
    for ms, file in files:
        latest = None
        for entry in metadata.snapshot_log:
            if ms is not None and entry.timestamp_ms <= ms:
                latest = entry.snapshot_id
        snapshot = None if latest is None else by_id.get(latest)
        rows.append(
            {
                "timestamp": micros_of(ms),
                "file": file,
                "latest_snapshot_id": latest,
                "latest_schema_id": None if snapshot is None else snapshot.schema_id,
                "latest_sequence_number": None if snapshot is None else snapshot.sequence_number,
            }
        )
    yield rows_table(rows, schema)
