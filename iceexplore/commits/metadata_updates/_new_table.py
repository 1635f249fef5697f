"""Create the metadata document of a new, empty table."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from iceexplore.commits.metadata_updates._document import Json, now_or, set_properties
from iceexplore.commits.metadata_updates._upgrade import with_expressions
from iceexplore.errors import version_of
from iceexplore.metadata import parse_schema

__all__ = ["new_table_document", "no_history"]


def no_history() -> Json:
    """Return a document's keys for snapshots, refs and logs, with the values that a table without snapshots has."""
    return {
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def new_table_document(
    *,
    format_version: int,
    location: str,
    schema: Mapping[str, Any],
    partition_spec: Sequence[Mapping[str, Any]] = (),
    sort_order: Sequence[Mapping[str, Any]] = (),
    properties: Mapping[str, str] | None = None,
    table_uuid: str | None = None,
    timestamp_ms: int | None = None,
    expressions: bool = True,
) -> Json:
    """Return the metadata document of a new, empty table, with the keys in Java's order.

    Parameters
    ----------
    schema
        The schema's JSON (`schema_to_json`); the field ids in it are kept.
    partition_spec
        The JSON of the partition fields: ``source-id``, ``transform``, ``name`` and optionally ``field-id`` (by
        default numbered from 1000).
    sort_order
        The JSON of the sort fields. The sort order gets the id 1, or 0 (unsorted) if there are none.
    table_uuid
        The table's UUID; by default derived from the location, so that the same location always gives the same UUID.
    timestamp_ms
        The value of ``last-updated-ms``; by default the system clock's time.
    expressions
        Used only in v4. If true, the transforms of partition fields, except identity, are written to the document's
        list ``expressions``, and the partition fields reference them by ``expr-id``. If false, partition fields are
        written as in v3; the dialect ``v4-java`` requires this.

    Raises
    ------
    FormatError
        The schema is invalid.
    OptionError
        The format version does not exist.
    RuleError
        ``reserved-property``: a property's name is reserved, or a property's name or value is not a string.
    """
    format_version = version_of(format_version)
    written = {"type": "struct", "schema-id": 0, **{k: v for k, v in schema.items() if k not in ("type", "schema-id")}}
    last_column_id = max(parse_schema(written).by_id(), default=0)
    fields = [{"field-id": 1000 + index, **field} for index, field in enumerate(partition_spec)]
    orders = (
        [{"order-id": 1, "fields": [dict(f) for f in sort_order]}] if sort_order else [{"order-id": 0, "fields": []}]
    )
    out: Json = {
        "format-version": format_version,
        "table-uuid": table_uuid or str(uuid.uuid5(uuid.NAMESPACE_URL, location)),
        "location": location.rstrip("/") or location,
    }
    if format_version >= 2:
        out["last-sequence-number"] = 0
    out |= {"last-updated-ms": now_or(timestamp_ms), "last-column-id": last_column_id}
    if format_version == 1:
        out["schema"] = written
    out |= {"current-schema-id": 0, "schemas": [written]}
    if format_version == 1:
        out["partition-spec"] = fields
    out |= {
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": fields}],
        "last-partition-id": max([999, *(f["field-id"] for f in fields)]),
        "default-sort-order-id": orders[0]["order-id"],
        "sort-orders": orders,
        "properties": {},
        "current-snapshot-id": None if format_version >= 3 else -1,
    }
    if format_version >= 3:
        out["next-row-id"] = 0
    out |= no_history()
    if format_version == 4 and expressions:
        out, fields = with_expressions({**out, "expressions": []}, fields)
        out["partition-specs"] = [{"spec-id": 0, "fields": fields}]
    return set_properties(out, set=properties)
