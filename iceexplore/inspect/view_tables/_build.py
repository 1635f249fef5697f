"""Build a view's metadata tables from its metadata file and, for the list of metadata files, from its folder."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.inspect._log import rows_table
from iceexplore.inspect._shown import micros_of
from iceexplore.storage import list_versions, same_location
from iceexplore.views import Representation, ViewMetadata, ViewState, ViewVersion, view_clock

__all__ = [
    "METADATA_LOG",
    "PROPERTIES",
    "REPRESENTATIONS",
    "SCHEMAS",
    "VERSIONS",
    "VERSION_LOG",
    "build_metadata_log",
    "build_properties",
    "build_representations",
    "build_schemas",
    "build_version_log",
    "build_versions",
    "version_rows",
]

_TIME = pa.timestamp("us", tz="UTC")
_NAMES = pa.list_(pa.string())

VERSIONS = build.schema(
    [
        pa.field("version_id", pa.int64()),
        pa.field("created_at", _TIME),
        pa.field("is_current", pa.bool_()),
        pa.field("operation", pa.string()),
        pa.field("engine", pa.string()),
        pa.field("dialects", _NAMES),
        pa.field("schema_id", pa.int64()),
        pa.field("default_catalog", pa.string()),
        pa.field("default_namespace", _NAMES),
        pa.field("parent_id", pa.int64()),
        pa.field("storage_table", _NAMES),
        pa.field("summary", pa.map_(pa.string(), pa.string())),
    ]
)
VERSION_LOG = build.schema(
    [
        pa.field("made_current_at", _TIME),
        pa.field("version_id", pa.int64()),
        pa.field("is_rollback", pa.bool_()),
        pa.field("is_expired", pa.bool_()),
    ]
)
REPRESENTATIONS = build.schema(
    [
        pa.field("version_id", pa.int64()),
        pa.field("type", pa.string()),
        pa.field("dialect", pa.string()),
        pa.field("sql", pa.string()),
        pa.field("default_catalog", pa.string()),
        pa.field("default_namespace", _NAMES),
        pa.field("schema_id", pa.int64()),
        pa.field("field_aliases", _NAMES),
        pa.field("field_docs", _NAMES),
    ]
)
SCHEMAS = build.schema(
    [
        pa.field("schema_id", pa.int64()),
        pa.field("is_current", pa.bool_()),
        pa.field("field_id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("type", pa.string()),
        pa.field("required", pa.bool_()),
        pa.field("doc", pa.string()),
    ]
)
PROPERTIES = build.schema([pa.field("key", pa.string()), pa.field("value", pa.string())])
METADATA_LOG = build.schema(
    [
        pa.field("number", pa.int64()),
        pa.field("file", pa.string()),
        pa.field("size_in_bytes", pa.int64()),
        pa.field("modified_at", _TIME),
        pa.field("is_open", pa.bool_()),
    ]
)


def _schema_id(version: ViewVersion, representation: Representation | None = None) -> int | None:
    """Return a version's schema id; in early drafts, a representation may have a schema id of its own."""
    if version.schema_id is None and representation is not None:
        return representation.schema_id
    return next(iter(version.schema_ids()), None)


def build_versions(state: ViewState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield every version, in the metadata's order."""
    yield version_rows(state.metadata, schema)


def version_rows(metadata: ViewMetadata, schema: pa.Schema = VERSIONS) -> pa.Table:
    """Return every version in a view's metadata, in the order of the metadata."""
    rows = [
        {
            "version_id": v.version_id,
            "created_at": micros_of(v.timestamp_ms),
            "is_current": v.version_id == metadata.current_version_id,
            "operation": v.operation,
            "engine": v.engine,
            "dialects": list(v.dialects),
            "schema_id": _schema_id(v),
            "default_catalog": v.catalog_of(),
            "default_namespace": v.namespace_of(),
            "parent_id": v.parent_version_id,
            "storage_table": v.storage_table,
            "summary": list(v.summary.items()),
        }
        for v in metadata.versions
    ]
    return rows_table(rows, schema)


def build_version_log(state: ViewState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the version log in chronological order; without a log, the versions by time of creation."""
    known = {v.version_id for v in state.metadata.versions}
    seen = set[int]()
    rows = []
    for entry in view_clock(state.metadata)[0]:
        rows.append(
            {
                "made_current_at": micros_of(entry.timestamp_ms),
                "version_id": entry.version_id,
                "is_rollback": entry.version_id in seen,
                "is_expired": entry.version_id not in known,
            }
        )
        seen.add(entry.version_id)
    yield rows_table(rows, schema)


def build_representations(state: ViewState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield every representation of every version."""
    rows = [
        {
            "version_id": v.version_id,
            "type": r.type,
            "dialect": r.dialect,
            "sql": r.sql,
            "default_catalog": v.catalog_of(r),
            "default_namespace": v.namespace_of(r),
            "schema_id": _schema_id(v, r),
            "field_aliases": r.field_aliases,
            "field_docs": r.field_docs,
        }
        for v in state.metadata.versions
        for r in v.representations
    ]
    yield rows_table(rows, schema)


def build_schemas(state: ViewState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield every field of every schema, as stored; ``is_current`` marks the schema of the shown version."""
    shown = state.metadata.stored_schema(state.version)
    rows = [
        {
            "schema_id": one.schema_id,
            "is_current": one is shown,
            "field_id": f.field_id,
            "name": name,
            "type": str(f.type),
            "required": f.required,
            "doc": f.doc,
        }
        for one in state.metadata.schemas
        for name, f in one.walk()
    ]
    yield rows_table(rows, schema)


def build_properties(state: ViewState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the view's properties, sorted by key."""
    yield rows_table([{"key": k, "value": v} for k, v in sorted(state.metadata.properties.items())], schema)


def build_metadata_log(state: ViewState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the view's metadata files by number; ``is_open`` is true for the one that is shown."""
    rows = [
        {
            "number": f.number,
            "file": f.location,
            "size_in_bytes": f.size,
            "modified_at": micros_of(f.modified_ms),
            "is_open": same_location(f.location, state.metadata_location),
        }
        for f in list_versions(state.opened)
    ]
    yield rows_table(rows, schema)
