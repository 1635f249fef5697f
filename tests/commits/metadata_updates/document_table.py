"""Documents for tests, and two readers that must accept every document we make: our own and PyIceberg's."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from iceexplore.commits import add_snapshot, new_table_document, next_document, snapshot_json
from iceexplore.errors import Problems
from iceexplore.metadata import TableMetadata, parse_schema, parse_table_metadata, schema_to_json

Json = dict[str, Any]

LOCATION = "s3://bucket/db/t"
START_MS = 1_700_000_000_000
SCHEMA: Json = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "ts", "required": False, "type": "timestamp"},
        {"id": 3, "name": "s", "required": False, "type": "string", "doc": "text"},
    ],
}
DAY = {"source-id": 2, "transform": "day", "name": "ts_day"}
IDENTITY = {"source-id": 3, "transform": "identity", "name": "s"}


def metadata_of(document: Json) -> TableMetadata:
    """The document as read by us: no problem may be met."""
    problems = Problems()
    metadata = parse_table_metadata(json.loads(json.dumps(document)), f"{LOCATION}/metadata/v9.metadata.json", problems)
    assert not problems, list(problems)
    return metadata


def pyiceberg_of(document: Json) -> Any:
    """The document as read by PyIceberg (v1 to v3)."""
    from pyiceberg.table.metadata import TableMetadataUtil

    return TableMetadataUtil.parse_obj(json.loads(json.dumps(document)))


def checked(document: Json) -> Json:
    """The document, which both readers accept."""
    metadata_of(document)
    if document["format-version"] < 4:
        pyiceberg_of(document)
    return document


def pure(change: Callable[..., Any], document: Json, /, **arguments: Any) -> Any:
    """What a change returns; it may not have touched its arguments."""
    before, given = copy.deepcopy(document), copy.deepcopy(arguments)
    made = change(document, **arguments)
    assert json.dumps(document) == json.dumps(before)
    assert arguments == given
    return made


def table(version: int, spec: tuple[Json, ...] = (DAY,), **more: Any) -> Json:
    """An empty table."""
    more.setdefault("schema", SCHEMA)
    return new_table_document(
        format_version=version, location=LOCATION, partition_spec=spec, timestamp_ms=START_MS, **more
    )


def snapshot(document: Json, snapshot_id: int, **more: Any) -> Json:
    """A snapshot that can be added to the document, a child of the current one."""
    version = document["format-version"]
    current = document.get("current-snapshot-id")
    given: Json = {
        "format_version": version,
        "snapshot_id": snapshot_id,
        "parent_snapshot_id": None if current in (None, -1) else current,
        "timestamp_ms": document["last-updated-ms"] + 1000,
        "operation": "append",
        "root_location": f"{LOCATION}/metadata/snap-{snapshot_id}.avro",
        "root_manifest": version == 4,
        "sequence_number": document.get("last-sequence-number", 0) + 1,
        "schema_id": 0,
    }
    if version >= 3:
        given |= {"first_row_id": document["next-row-id"], "added_rows": 10}
    return snapshot_json(**(given | more))


def committed(document: Json, snapshot_id: int, ref: str | None = "main", **more: Any) -> Json:
    """The document after a commit, as the next metadata file has it."""
    new = add_snapshot(document, snapshot=snapshot(document, snapshot_id, **more), ref=ref)
    return next_document(new, previous_location=f"{LOCATION}/metadata/{snapshot_id}.json",
                         timestamp_ms=document["last-updated-ms"] + 1000)  # fmt: skip


def history(version: int, count: int = 3, **more: Any) -> Json:
    """A table with snapshots 1, 2, ... a second apart."""
    document = table(version, **more)
    for snapshot_id in range(1, count + 1):
        document = committed(document, snapshot_id)
    return document


def old_v1(*, field_ids: bool = True) -> Json:
    """A v1 document as it was before `schemas`, `partition-specs`, `sort-orders` and `refs`.

    The oldest have no ids of partition fields; PyIceberg does not read those.
    """
    fields: list[Json] = [{"name": "ts_day", "transform": "day", "source-id": 2}]
    if field_ids:
        fields[0]["field-id"] = 1000
    return {
        "format-version": 1,
        "location": LOCATION,
        "last-updated-ms": START_MS,
        "last-column-id": 3,
        "schema": {"type": "struct", "fields": SCHEMA["fields"]},
        "partition-spec": fields,
        "properties": {"owner": "x"},
        "current-snapshot-id": -1,
        "snapshots": [],
        "snapshot-log": [],
        "x-vendor": {"a": 1},
    }


def schema_json(text_of_fields: list[Json]) -> Json:
    """A schema's JSON, normalised."""
    return schema_to_json(parse_schema({"type": "struct", "schema-id": 0, "fields": text_of_fields}))
