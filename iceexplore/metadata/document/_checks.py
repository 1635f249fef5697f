"""Check one metadata file for contradictions: ids that reference nothing, duplicate ids.

Only definite faults are reported. These are valid: expired snapshots in the log or statistics, snapshots without a
schema id, unknown transforms and properties, specs whose source column was dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from iceexplore.metadata.document._json_object import Reporter
from iceexplore.metadata.document._model import TableMetadata
from iceexplore.metadata.types._parameters import is_known_type, type_base
from iceexplore.metadata.types._types import NestedField, StructType

__all__ = ["check_references"]


def check_references(metadata: TableMetadata, reporter: Reporter) -> None:
    """Report ids that reference nothing, and duplicate ids."""
    _check_named(metadata, reporter)
    _check_refs(metadata, reporter)
    for schema in metadata.schemas:
        # The id -1 replaces a missing one, which has been reported.
        for field_id, count in _repeated(f.field_id for _, f in schema.walk() if f.field_id != -1):
            names = [name for name, f in schema.walk() if f.field_id == field_id]
            reporter.at(f"schema {schema.schema_id}").error(
                f"field id {field_id} occurs {count} times in schema {schema.schema_id}: {', '.join(names)}", "id"
            )
        for name, f in schema.walk():
            if not is_known_type(f.type) and str(f.type) != "?":  # "?" replaces a missing type, which has been reported
                reporter.at(f"schema {schema.schema_id}").unsupported(
                    f"column {name!r} has type {str(f.type)[:60]!r}, which is unknown: its values cannot be read, and "
                    "its bounds are shown as bytes",
                    "type",
                )
            _check_field(name, f, reporter.at(f"schema {schema.schema_id}"))
    for snapshot_id, count in _repeated(s.snapshot_id for s in metadata.snapshots):
        reporter.at(f"snapshot {snapshot_id}").error(f"snapshot id {snapshot_id} occurs {count} times", "snapshot-id")
    schema_ids = {s.schema_id for s in metadata.schemas}
    for snapshot in metadata.snapshots if schema_ids else ():
        if snapshot.schema_id is not None and snapshot.schema_id not in schema_ids:
            reporter.at(f"snapshot {snapshot.snapshot_id}").error(
                f"schema-id of snapshot {snapshot.snapshot_id} is {snapshot.schema_id}, which is not among the "
                f"schemas: {_listed(schema_ids)}; it is shown with the table's current schema",
                "schema-id",
            )
    for key, ids in (
        ("schema-id", [s.schema_id for s in metadata.schemas]),
        ("spec-id", [s.spec_id for s in metadata.partition_specs]),
        ("order-id", [o.order_id for o in metadata.sort_orders]),
    ):
        for found, count in _repeated(ids):
            reporter.error(f"{key} {found} occurs {count} times", key)


def _check_field(name: str, field: NestedField, reporter: Reporter) -> None:
    """Report contradictions in a column's declaration (spec, "Primitive Types", "Default values")."""
    if field.required and type_base(field.type) == "unknown":
        reporter.error(f"column {name!r} is required, but all values of its type, unknown, are null", "required")
    if isinstance(field.type, StructType):
        for key, default in (("initial-default", field.initial_default), ("write-default", field.write_default)):
            if default:
                reporter.error(
                    f"{key} of column {name!r} has values: a struct's default must be null or {{}}; its fields have "
                    "their own defaults",
                    key,
                )


def _check_named(metadata: TableMetadata, reporter: Reporter) -> None:
    named = (
        ("current-schema-id", metadata.current_schema_id, {s.schema_id for s in metadata.schemas}, "schemas"),
        ("default-spec-id", metadata.default_spec_id, {s.spec_id for s in metadata.partition_specs}, "partition specs"),
        (
            "default-sort-order-id",
            metadata.default_sort_order_id,
            # Sort order 0 means unsorted, whether it is listed or not (spec, "Sorting").
            {0, *(o.order_id for o in metadata.sort_orders)},
            "sort orders",
        ),
        ("current-snapshot-id", metadata.current_snapshot_id, {s.snapshot_id for s in metadata.snapshots}, "snapshots"),
    )
    for key, value, known, what in named:
        # A missing list has been reported already, or the document is a stub without one.
        if metadata.raw.get(key) is not None and value is not None and value not in known:
            reporter.error(f"{key} is {value}, which is not among the {what}: {_listed(known)}", key)


def _check_refs(metadata: TableMetadata, reporter: Reporter) -> None:
    known = {s.snapshot_id for s in metadata.snapshots}
    written = metadata.raw.get("refs")
    logged = metadata.snapshot_log and metadata.snapshot_log[-1].snapshot_id in known
    if metadata.current_snapshot_id is None and "main" not in metadata.refs and logged:
        # Java empties the log when it removes the main branch.
        reporter.error(
            f"current-snapshot-id is missing, but the snapshot-log ends with {metadata.snapshot_log[-1].snapshot_id}: "
            "the table is read as empty",
            "current-snapshot-id",
        )
    for name, ref in metadata.refs.items():
        if not isinstance(written, dict) or name not in written:
            continue  # `main` was filled in; the current snapshot has been checked
        if ref.snapshot_id not in known:
            reporter.at(f"ref {name}").error(
                f"{ref.type} {name!r} references the unknown snapshot {ref.snapshot_id}", "snapshot-id"
            )
        if name == "main" and ref.snapshot_id != metadata.current_snapshot_id:
            reporter.at(f"ref {name}").error(
                f"branch 'main' references snapshot {ref.snapshot_id}, but current-snapshot-id is "
                f"{'null' if metadata.current_snapshot_id is None else metadata.current_snapshot_id}",
                "current-snapshot-id",
            )


def _repeated(ids: Iterable[int]) -> list[tuple[int, int]]:
    return [(value, count) for value, count in Counter(ids).items() if count > 1]


def _listed(ids: set[int]) -> str:
    some = sorted(ids)
    return (", ".join(map(str, some[:10])) + (", ..." if len(some) > 10 else "")) or "none"
