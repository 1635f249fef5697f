"""Parse table metadata, v1 to v4, tolerantly (spec, "Table Metadata Fields" and Appendix C)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from iceexplore.errors import FormatError, Problems, UnsupportedError
from iceexplore.metadata.document import _parts as parts
from iceexplore.metadata.document._checks import check_references
from iceexplore.metadata.document._checks_history import check_history
from iceexplore.metadata.document._json_object import INT, JsonObjectReader, Reporter
from iceexplore.metadata.document._model import (
    Expression,
    PartitionSpec,
    PartitionStatisticsFile,
    Ref,
    Snapshot,
    SortOrder,
    StatisticsFile,
    TableMetadata,
)
from iceexplore.metadata.document._name_mapping import NAME_MAPPING_PROPERTY, parse_name_mapping
from iceexplore.metadata.document._relative_locations import resolved_location
from iceexplore.metadata.document._types import read_schema
from iceexplore.metadata.types._types import Schema
from iceexplore.storage import JsonValue

__all__ = ["LATEST_FORMAT_VERSION", "parse_table_metadata"]

LATEST_FORMAT_VERSION = 4
#: The first version in which locations may be relative to the table's.
_RELATIVE_FROM = 4

T = TypeVar("T")
S = TypeVar("S", StatisticsFile, PartitionStatisticsFile)

#: Keys that the spec requires, by format version. `schema` and `partition-spec` of v1 are not included: the plural
#: forms replace them (Java, and v1 tables of BigQuery and Glue, leave them out).
_REQUIRED_V1 = ("format-version", "location", "last-updated-ms", "last-column-id")
_REQUIRED_V2 = (
    *_REQUIRED_V1, "table-uuid", "last-sequence-number", "schemas", "current-schema-id", "partition-specs",
    "default-spec-id", "last-partition-id", "sort-orders", "default-sort-order-id",
)  # fmt: skip
_REQUIRED_V3 = (*_REQUIRED_V2, "next-row-id")
_REQUIRED = {
    1: _REQUIRED_V1,
    2: _REQUIRED_V2,
    3: _REQUIRED_V3,
    4: tuple(k for k in _REQUIRED_V3 if k != "location"),
}


def parse_table_metadata(document: JsonValue, location: str, problems: Problems) -> TableMetadata:
    """Parse table metadata; report violations as ``metadata-invalid``, and put a usable value in their place.

    Parameters
    ----------
    document
        The JSON as Python objects.
    location
        The metadata file's location, to which problems refer (with ``#snapshot 17`` and the like for parts).
    problems
        Collects the problems.

    Raises
    ------
    FormatError
        The document is not an object, or not table metadata.
    UnsupportedError
        The ``format-version`` is above 4.
    """
    if (error := parts.not_metadata(document, location)) is not None:
        raise error
    reporter = Reporter(problems, location)
    keys = JsonObjectReader(document, reporter, "table metadata")
    version = _format_version(keys, location)
    _report_missing(keys, version)

    schemas, current_schema_id = _schemas(keys)
    expressions = _each(keys, "expressions", parts.read_expression)
    specs, default_spec_id = _specs(keys, {e.expr_id: e for e in expressions})
    orders, default_order_id = _sort_orders(keys)
    snapshots = _each(keys, "snapshots", parts.read_snapshot)
    table_location = keys.text("location") or _table_folder(location)
    statistics = _each(keys, "statistics", parts.read_statistics)
    partition_statistics = _each(keys, "partition-statistics", parts.read_partition_statistics)
    log = _each(keys, "metadata-log", parts.read_metadata_log_entry)
    if version >= _RELATIVE_FROM:
        snapshots = tuple(_resolved(s, table_location) for s in snapshots)
        statistics = tuple(_with_path(s, table_location) for s in statistics)
        partition_statistics = tuple(_with_path(s, table_location) for s in partition_statistics)
        log = tuple(replace(e, metadata_file=resolved_location(e.metadata_file, table_location)) for e in log)
    current = keys.snapshot_id("current-snapshot-id")
    current = None if current == -1 else current
    properties = keys.string_map("properties")
    _check_name_mapping(properties, reporter)

    metadata = TableMetadata(
        format_version=version,
        table_uuid=keys.text("table-uuid"),
        location=table_location,
        last_sequence_number=_last_sequence_number(keys, [s.sequence_number for s in snapshots]),
        last_updated_ms=keys.integer("last-updated-ms"),
        last_column_id=keys.integer("last-column-id", bits=INT),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=keys.integer("last-partition-id", bits=INT),
        properties=properties,
        current_snapshot_id=current,
        snapshots=snapshots,
        snapshot_log=_each(keys, "snapshot-log", parts.read_snapshot_log_entry),
        metadata_log=log,
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        refs=_refs(keys, current),
        statistics=statistics,
        partition_statistics=partition_statistics,
        next_row_id=keys.integer("next-row-id"),
        encryption_keys=_each(keys, "encryption-keys", parts.read_encryption_key),
        expressions=expressions,
        raw=document,
    )
    check_references(metadata, reporter)
    check_history(metadata, location, reporter)
    return metadata


def _resolved(snapshot: Snapshot, table_location: str) -> Snapshot:
    """Return a snapshot with an absolute location of its root."""
    named = snapshot.manifest_list
    absolute = None if named is None else resolved_location(named, table_location)
    return replace(snapshot, manifest_list=absolute, relative_to=table_location)


def _with_path(file: S, table_location: str) -> S:
    return replace(file, statistics_path=resolved_location(file.statistics_path, table_location))


def _format_version(keys: JsonObjectReader, location: str) -> int:
    version = keys.integer("format-version")
    if version is not None and version > LATEST_FORMAT_VERSION:
        raise UnsupportedError(
            f"format-version {version} of {location} is not supported: iceexplore reads 1 to {LATEST_FORMAT_VERSION}"
        )
    if version is not None and version >= 1:
        return version
    if version is not None:
        keys.reporter.error(f"format-version cannot be {version}", "format-version")
    # Infer the version from the keys that each version introduced.
    if "next-row-id" in keys.json:
        return 3
    return 2 if "last-sequence-number" in keys.json else 1


def _report_missing(keys: JsonObjectReader, version: int) -> None:
    """Report all missing required keys as one problem."""
    missing = [key for key in _REQUIRED[version] if keys.json.get(key) is None]
    if version == 1:
        for one, several in (("schema", "schemas"), ("partition-spec", "partition-specs")):
            if keys.json.get(one) is None and keys.json.get(several) is None:
                missing.append(one)
        if "schema" not in keys.json and "schemas" in keys.json and keys.json.get("current-schema-id") is None:
            missing.append("current-schema-id")
    if missing:
        plural = "s" if len(missing) > 1 else ""
        keys.reporter.error(
            f"table metadata v{version} lacks the required key{plural} {', '.join(missing)}", ", ".join(missing)
        )


def _each(keys: JsonObjectReader, key: str, read: Callable[[Any, Reporter], T | None]) -> tuple[T, ...]:
    found = (read(item, keys.reporter) for item in keys.items(key))
    return tuple(item for item in found if item is not None)


def _schemas(keys: JsonObjectReader) -> tuple[tuple[Schema, ...], int]:
    current = keys.integer("current-schema-id", bits=INT)
    schemas = [_schema(item, i, keys.reporter) for i, item in enumerate(keys.items("schemas"))]
    found = [s for s in schemas if s is not None]
    if current is None or not found:
        # v1 may have only `schema`, or also `schemas` without current-schema-id.
        single = keys.json.get("schema")
        schema = None if single is None else _schema(single, 0, keys.reporter)
        if schema is not None:
            if not any(s.schema_id == schema.schema_id for s in found):
                found.append(schema)
            current = schema.schema_id if current is None else current
    if current is None:
        current = max((s.schema_id for s in found), default=0)
    return tuple(found), current


def _schema(json: JsonValue, default_id: int, reporter: Reporter) -> Schema | None:
    schema_id = json.get("schema-id") if isinstance(json, dict) else None
    part = reporter.at(f"schema {schema_id if type(schema_id) is int else default_id}")
    try:
        return read_schema(json, part.error, default_id)
    except FormatError as error:
        if reporter.problems is not None and reporter.problems.strict:
            raise
        part.error(f"a schema cannot be read: {error.reason}", error.field or "schemas")
        return None


def _specs(keys: JsonObjectReader, expressions: dict[int, Expression]) -> tuple[tuple[PartitionSpec, ...], int]:
    default = keys.integer("default-spec-id", bits=INT)
    if keys.json.get("partition-specs") is not None:
        specs = [
            parts.read_spec(item, keys.reporter.at(f"spec {i}"), i, expressions)
            for i, item in enumerate(keys.items("partition-specs"))
        ]
        if default is None:  # optional in v1: use the newest
            default = max((s.spec_id for s in specs), default=0)
        return tuple(specs), default
    single = keys.json.get("partition-spec")
    if single is None:
        return (PartitionSpec(0, ()),), 0 if default is None else default
    return (parts.read_spec(single, keys.reporter.at("spec 0"), 0, expressions),), 0 if default is None else default


def _sort_orders(keys: JsonObjectReader) -> tuple[tuple[SortOrder, ...], int]:
    default = keys.integer("default-sort-order-id", bits=INT)
    orders = _each(keys, "sort-orders", parts.read_sort_order)
    if not orders:
        orders = (SortOrder(0, ()),)
    if default is None:
        default = orders[0].order_id if len(orders) == 1 else 0
    return orders, default


def _refs(keys: JsonObjectReader, current: int | None) -> dict[str, Ref]:
    refs = {}
    for name, json in keys.object("refs").items():
        ref = parts.read_ref(name, json, keys.reporter)
        if ref is not None:
            refs[name] = ref
    if current is not None and "main" not in refs:
        # Spec: "There is always a main branch reference pointing to the current-snapshot-id".
        refs = {"main": Ref("main", "branch", current), **refs}
    return refs


def _last_sequence_number(keys: JsonObjectReader, numbers: list[int]) -> int:
    found = keys.integer("last-sequence-number")
    return max(numbers, default=0) if found is None else found


def _table_folder(location: str) -> str:
    """Return the folder above ``metadata/``, which replaces the location if v4 or damaged metadata has none."""
    folder = location.rpartition("/")[0]
    return folder.rpartition("/")[0] if folder.endswith("/metadata") else folder


def _check_name_mapping(properties: dict[str, str], reporter: Reporter) -> None:
    text = properties.get(NAME_MAPPING_PROPERTY)
    if text is None:
        return
    try:
        parse_name_mapping(text)
    except FormatError as error:
        # Only a warning, because only data files without field ids need the mapping.
        reporter.warning(error.reason, NAME_MAPPING_PROPERTY)
