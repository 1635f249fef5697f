"""The parts of table metadata: specs, sort orders, snapshots, refs, logs, statistics (spec Appendix C)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iceexplore.errors import FormatError
from iceexplore.metadata.document._json_object import INT, JsonObjectReader, Reporter, shown
from iceexplore.metadata.document._model import (
    BlobMetadata,
    Expression,
    MetadataLogEntry,
    PartitionField,
    PartitionSpec,
    PartitionStatisticsFile,
    Ref,
    Snapshot,
    SnapshotLogEntry,
    SortField,
    SortOrder,
    StatisticsFile,
)
from iceexplore.storage import JsonValue

__all__ = ["parse_sort_order", "parse_spec"]

#: v1 did not write partition field ids; the reference implementation counts from here (spec, "Partition Evolution").
FIRST_PARTITION_FIELD_ID = 1000


def parse_spec(json: JsonValue, spec_id: int = 0) -> PartitionSpec:
    """Parse a partition spec: the object, or only its list of fields (v1's ``partition-spec``, manifest headers).

    Raises
    ------
    FormatError
        The JSON violates the spec.
    """
    return read_spec(json, Reporter(None, ""), spec_id)


def parse_sort_order(json: JsonValue) -> SortOrder:
    """Parse a sort order object.

    Raises
    ------
    FormatError
        The JSON violates the spec.
    """
    return read_sort_order(json, Reporter(None, ""))


def read_spec(
    json: JsonValue, reporter: Reporter, spec_id: int, expressions: Mapping[int, Expression] | None = None
) -> PartitionSpec:
    """Parse a spec, reporting faults; ``spec_id`` replaces a missing one."""
    raw = json
    if isinstance(json, list):
        json = {"fields": json}
    keys = JsonObjectReader(json, reporter, "partition spec")
    found = keys.integer("spec-id", bits=INT)
    fields: dict[int, PartitionField] = {}
    for index, item in enumerate(keys.items("fields", required=True)):
        field = _partition_field(JsonObjectReader(item, reporter, "partition field"), index, expressions or {})
        if field is None:
            continue
        if field.field_id in fields:
            # Partition tuples are keyed by field id, so they cannot hold a second field with the same id.
            reporter.error(f"partition field id {field.field_id} is used again, for {field.name!r}", "field-id")
            continue
        fields[field.field_id] = field
    return PartitionSpec(spec_id if found is None else found, tuple(fields.values()), raw)


def _partition_field(
    keys: JsonObjectReader, index: int, expressions: Mapping[int, Expression]
) -> PartitionField | None:
    if "expr-id" in keys.json:  # V4 proposal: a spec references expressions of the table
        expression = expressions.get(keys.integer("expr-id", bits=INT) or -1)
        if expression is None:
            keys.reporter.error(f"a partition field references expression {shown(keys.json['expr-id'])}, "
                                "which the table does not have", "expr-id")  # fmt: skip
            return None
        field_id = expression.partition_field_id
        name = keys.text("name") or expression.name or f"expr_{expression.expr_id}"
        return PartitionField(
            FIRST_PARTITION_FIELD_ID + index if field_id is None else field_id,
            name,
            expression.transform,
            expression.source_ids,
        )
    field_id = keys.integer("field-id", bits=INT)
    given = keys.text("name", required=True)
    return PartitionField(
        FIRST_PARTITION_FIELD_ID + index if field_id is None else field_id,
        "?" if given is None else given,
        keys.text("transform", required=True) or "?",
        _source_ids(keys),
    )


def _source_ids(keys: JsonObjectReader) -> tuple[int, ...]:
    """Return the ids in ``source-ids``, which a multi-argument transform has, or the one in ``source-id``."""
    several = keys.integers("source-ids")
    if several:
        return several
    one = keys.integer("source-id", bits=INT, required=True)
    # No column has the id -1: it keeps a field without a source visible.
    return (-1 if one is None else one,)


def read_expression(json: JsonValue, reporter: Reporter) -> Expression | None:
    """Parse an expression of the V4 proposal; its name and partition field id may be in ``expr`` or beside it."""
    keys = JsonObjectReader(json, reporter, "expression")
    expr_id = keys.integer("expr-id", bits=INT, required=True)
    if expr_id is None:
        return None
    inner = JsonObjectReader(json.get("expr") or {}, reporter, "expr")
    transform = inner.text("transform") or inner.text("function") or "?"
    partition_field_id = keys.integer("partition-field-id", bits=INT)
    if partition_field_id is None:
        partition_field_id = inner.integer("partition-field-id", bits=INT)
    name = keys.text("name") or inner.text("name")
    return Expression(expr_id, transform, _source_ids(inner), name, partition_field_id, json)


def read_sort_order(json: JsonValue, reporter: Reporter) -> SortOrder:
    """Parse a sort order, reporting faults."""
    keys = JsonObjectReader(json, reporter, "sort order")
    order_id = keys.integer("order-id", bits=INT, required=True)
    fields = []
    for item in keys.items("fields", required=True):
        field = JsonObjectReader(item, reporter, "sort field")
        transform = field.text("transform", required=True) or "?"
        direction = (field.text("direction", required=True) or "asc").lower()
        null_order = (field.text("null-order", required=True) or "nulls-first").lower()
        if direction not in ("asc", "desc"):
            reporter.error(f"direction of a sort field must be asc or desc, found {shown(direction)}", "direction")
        if null_order not in ("nulls-first", "nulls-last"):
            reporter.error(f"null-order of a sort field must be nulls-first or nulls-last, found {shown(null_order)}",
                           "null-order")  # fmt: skip
        fields.append(SortField(transform, _source_ids(field), direction, null_order))
    return SortOrder(0 if order_id is None else order_id, tuple(fields))


def read_snapshot(json: JsonValue, reporter: Reporter) -> Snapshot | None:
    """Parse a snapshot; None where it has no id."""
    keys = JsonObjectReader(json, reporter, "snapshot")
    snapshot_id = keys.snapshot_id("snapshot-id", required=True)
    if snapshot_id is None:
        return None
    keys = JsonObjectReader(json, reporter.at(f"snapshot {snapshot_id}"), f"snapshot {snapshot_id}")
    parent = keys.snapshot_id("parent-snapshot-id")
    timestamp = keys.integer("timestamp-ms", required=True)
    # The V4 draft has the root manifest in `root-manifest`.
    manifest_list = keys.text("manifest-list") or keys.text("root-manifest")
    manifests = None
    if "manifests" in keys.json and manifest_list is None:
        listed = keys.items("manifests")
        manifests = tuple(m for m in listed if isinstance(m, str))
        if len(manifests) < len(listed):
            keys.reporter.error(f"manifests of {keys.what} must be a list of strings", "manifests")
    elif manifest_list is None:
        keys.reporter.error(f"{keys.what} has neither manifest-list nor manifests: it cannot be read", "manifest-list")
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=None if parent == -1 else parent,
        # Absent means 0: the snapshot was written in v1, and the table may have been upgraded since (spec, Appendix E).
        sequence_number=keys.integer("sequence-number") or 0,
        timestamp_ms=timestamp or 0,
        manifest_list=manifest_list,
        manifests=manifests,
        summary=keys.string_map("summary") if keys.json.get("summary") is not None else None,
        schema_id=keys.integer("schema-id", bits=INT),
        first_row_id=keys.integer("first-row-id"),
        added_rows=keys.integer("added-rows"),
        key_id=keys.text("key-id"),
        raw=json,
    )


def read_ref(name: str, json: JsonValue, reporter: Reporter) -> Ref | None:
    """Parse a ref; None where it has no snapshot id."""
    keys = JsonObjectReader(json, reporter.at(f"ref {name}"), f"ref {name!r}")
    if name == "main" and keys.json.get("snapshot-id") == -1:
        return None  # some writers write this for "no snapshot" in an empty table
    snapshot_id = keys.snapshot_id("snapshot-id", required=True)
    kind = keys.text("type", required=True)
    kind = None if kind is None else kind.lower()
    if kind not in ("branch", "tag", None):
        keys.reporter.error(f"type of {keys.what} must be branch or tag, found {shown(kind)}", "type")
    if snapshot_id is None:
        return None
    return Ref(
        name,
        "tag" if kind == "tag" else "branch",
        snapshot_id,
        keys.integer("min-snapshots-to-keep", bits=INT),
        keys.integer("max-snapshot-age-ms"),
        keys.integer("max-ref-age-ms"),
    )


def read_snapshot_log_entry(json: JsonValue, reporter: Reporter) -> SnapshotLogEntry | None:
    """Parse an entry of ``snapshot-log``."""
    keys = JsonObjectReader(json, reporter, "snapshot-log entry")
    timestamp, snapshot_id = keys.integer("timestamp-ms", required=True), keys.snapshot_id("snapshot-id", required=True)
    return None if timestamp is None or snapshot_id is None else SnapshotLogEntry(timestamp, snapshot_id)


def read_metadata_log_entry(json: JsonValue, reporter: Reporter) -> MetadataLogEntry | None:
    """Parse an entry of ``metadata-log``."""
    keys = JsonObjectReader(json, reporter, "metadata-log entry")
    timestamp, file = keys.integer("timestamp-ms", required=True), keys.text("metadata-file", required=True)
    return None if timestamp is None or file is None else MetadataLogEntry(timestamp, file)


def read_statistics(json: JsonValue, reporter: Reporter) -> StatisticsFile | None:
    """Parse an entry of ``statistics``."""
    keys = JsonObjectReader(json, reporter, "statistics file")
    snapshot_id, path = keys.snapshot_id("snapshot-id", required=True), keys.text("statistics-path", required=True)
    size = keys.integer("file-size-in-bytes", required=True)
    footer = keys.integer("file-footer-size-in-bytes", required=True)
    blobs = [_blob(JsonObjectReader(b, reporter, "blob metadata")) for b in keys.items("blob-metadata", required=True)]
    if snapshot_id is None or path is None:
        return None
    return StatisticsFile(snapshot_id, path, size or 0, footer or 0, tuple(blobs), json)


def _blob(keys: JsonObjectReader) -> BlobMetadata:
    return BlobMetadata(
        keys.text("type", required=True) or "?",
        keys.snapshot_id("snapshot-id", required=True) or 0,
        keys.integer("sequence-number", required=True) or 0,
        keys.integers("fields", required=True),
        keys.string_map("properties"),
    )


def read_partition_statistics(json: JsonValue, reporter: Reporter) -> PartitionStatisticsFile | None:
    """Parse an entry of ``partition-statistics``."""
    keys = JsonObjectReader(json, reporter, "partition statistics file")
    snapshot_id, path = keys.snapshot_id("snapshot-id", required=True), keys.text("statistics-path", required=True)
    size = keys.integer("file-size-in-bytes", required=True)
    if snapshot_id is None or path is None:
        return None
    return PartitionStatisticsFile(snapshot_id, path, size or 0, json)


def read_encryption_key(json: JsonValue, reporter: Reporter) -> Mapping[str, Any] | None:
    """Check an entry of ``encryption-keys``; return it as written."""
    keys = JsonObjectReader(json, reporter, "encryption key")
    keys.text("key-id", required=True)
    keys.text("encrypted-key-metadata", required=True)
    return keys.json or None


def not_metadata(document: JsonValue, location: str) -> FormatError | None:
    """Return the error for a document that cannot be shown as a table, None if it can."""

    def error(text: str) -> FormatError:
        return FormatError(text, location=location, code="metadata-invalid")

    if not isinstance(document, dict):
        return error(f"table metadata must be a JSON object, found {shown(document)}")
    if "view-uuid" in document or "current-version-id" in document:
        return error("this is the metadata of a view, not of a table")
    if "function-uuid" in document:
        return error("this is the metadata of a function, not of a table")
    if "format-version" in document:
        return None
    # BigQuery's v0.metadata.json has neither version nor schema, and is the metadata of an empty table.
    if any(key in document for key in ("schema", "schemas", "snapshots", "current-snapshot-id", "partition-spec")):
        return None
    if isinstance(document.get("metadata"), dict):
        return error("this looks like a catalog's response: the table metadata is under its key 'metadata'")
    return error("not table metadata: it has neither format-version nor a schema or snapshots")
