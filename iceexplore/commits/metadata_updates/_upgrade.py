"""Upgrade a document to a higher format version (spec, Appendix E; V4 proposal, "V4 Upgrade Path").

A v1 document may lack the lists ``schemas``, ``partition-specs`` and ``sort-orders``. `with_lists` adds them, because
the functions that change a document expect them.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from iceexplore.commits.metadata_updates._document import Json, entries, format_version, whole_number, with_values
from iceexplore.errors import FormatError, RuleError
from iceexplore.metadata import parse_schema, parse_transform

__all__ = ["last_field_id", "upgrade", "uses_expressions", "with_expressions", "with_lists"]

_FIRST_PARTITION_FIELD_ID = 1000
_UNSORTED = {"order-id": 0, "fields": []}


def upgrade(document: Mapping[str, Any], to: int, *, table_uuid: str | None = None, expressions: bool = True) -> Json:
    """Return a document of format version ``to``, upgraded step by step. Only the metadata file changes.

    - To 2: ``schemas``, ``partition-specs`` (with field ids) and ``sort-orders`` replace the single ``schema`` and
      ``partition-spec``; sequence numbers are set to 0. A snapshot that lists its ``manifests`` keeps this list:
      readers of v2 accept it, and a conversion would have to write a manifest list file.
    - To 3: ``next-row-id`` is set to 0; snapshots get no row ids (spec, "Row Lineage for Upgraded Tables").
    - To 4: each partition field of each spec whose transform is not identity becomes an expression with an id from the
      columns' id space. The first such id is ``max(last-column-id, every field id) + 1``, and ``last-column-id`` is
      raised to the last such id. The spec then references the expression as ``{"expr-id": ...}``, with a ``name`` if
      the spec's name for the field differs from the expression's. An identity field stays unchanged, because it is the
      column itself. `parse_table_metadata` reads equal partition specs before and after the upgrade. A document that
      already has version 4 but no ``expressions`` (dialect ``v4-java``) gets expressions, too.

    Parameters
    ----------
    table_uuid
        The UUID for a v1 table without ``table-uuid``; by default it is derived from the table's location, so that
        repeated upgrades give the same UUID.
    expressions
        Whether partition specs of version 4 reference expressions. False keeps the form of v3, as in the
        dialect ``v4-java``, because Java's reader does not know expressions.

    Raises
    ------
    RuleError
        ``format-version-rises``: ``to`` is lower than the table's version or above 4.
    """
    version = format_version(document)
    if type(to) is not int or to < version or to > 4:
        raise RuleError(
            "format-version-rises", f"the table has format version {version}; it can be upgraded up to 4, not to {to!r}"
        )
    out = dict(document)
    if version < 2 <= to:
        out = _to_2(out, table_uuid)
    if version < 3 <= to:
        out["next-row-id"] = 0
    if to == 4 and expressions and (version < 4 or not uses_expressions(out)):
        out = _to_4(out)
    out["format-version"] = to
    return out


def with_lists(document: Mapping[str, Any]) -> Json:
    """Return a v1 document with the lists that v1 may lack: schemas, partition specs, sort orders.

    Documents of later versions have these lists and are returned unchanged. Partition fields without an id get ids from
    1000 on, as in the reference implementation (spec, "Partition Evolution").
    """
    if format_version(document) > 1:
        return dict(document)
    out = dict(document)
    schemas = entries(out, "schemas")
    if not schemas:
        schemas = [{"schema-id": 0, **_object(out, "schema")}]
    if out.get("current-schema-id") is None:
        ids = [whole_number(s, "schema-id", 0) for s in schemas]
        single = out.get("schema")
        named = whole_number(single, "schema-id", 0) if isinstance(single, dict) else None
        out["current-schema-id"] = named if named in ids else max(ids)
    out["schemas"] = schemas
    specs = entries(out, "partition-specs")
    if not specs:
        specs = [{"spec-id": 0, "fields": entries(out, "partition-spec")}]
    out["partition-specs"] = [{**spec, "fields": _with_field_ids(entries(spec, "fields"))} for spec in specs]
    if out.get("default-spec-id") is None:
        out["default-spec-id"] = max(whole_number(s, "spec-id", 0) for s in specs)
    if out.get("last-partition-id") is None:
        used = [whole_number(f, "field-id", 0) for s in out["partition-specs"] for f in s["fields"]]
        out["last-partition-id"] = max([_FIRST_PARTITION_FIELD_ID - 1, *used])
    if not entries(out, "sort-orders"):
        out["sort-orders"] = [dict(_UNSORTED)]
        out["default-sort-order-id"] = 0
    elif out.get("default-sort-order-id") is None:
        out["default-sort-order-id"] = whole_number(entries(out, "sort-orders")[-1], "order-id", 0)
    return out


def _with_field_ids(fields: list[Json]) -> list[Json]:
    return [
        f if "field-id" in f or "expr-id" in f else {**f, "field-id": _FIRST_PARTITION_FIELD_ID + index}
        for index, f in enumerate(fields)
    ]


def _to_2(document: Json, table_uuid: str | None) -> Json:
    out = with_lists(document)
    out.pop("schema", None)
    out.pop("partition-spec", None)
    if not out.get("table-uuid"):
        out["table-uuid"] = table_uuid or str(uuid.uuid5(uuid.NAMESPACE_URL, str(out.get("location", ""))))
    out["last-sequence-number"] = 0
    out["snapshots"] = [s if "sequence-number" in s else {"sequence-number": 0, **s} for s in entries(out, "snapshots")]
    return out


def uses_expressions(document: Mapping[str, Any]) -> bool:
    """Return whether the document has ``expressions``, the list to which partition specs refer in the V4 proposal.

    Documents of the dialect ``v4-java`` do not have this list.
    """
    return format_version(document) >= 4 and "expressions" in document


def _to_4(document: Json) -> Json:
    out = {**document, "expressions": entries(document, "expressions")}
    specs = []
    for spec in entries(document, "partition-specs"):
        out, fields = with_expressions(out, entries(spec, "fields"))
        specs.append({**spec, "fields": fields})
    return {**out, "partition-specs": specs}


def with_expressions(document: Mapping[str, Any], fields: list[Json]) -> tuple[Json, list[Json]]:
    """Replace the fields of a partition spec by references to expressions, as in the V4 proposal.

    For each field, the document's expression with the same partition field id, transform and sources is used; if there
    is none, it is added. Identity fields, and fields that already reference an expression, stay unchanged.

    Parameters
    ----------
    document
        The table's metadata document; it is not changed.
    fields
        The fields of one partition spec, as JSON objects.

    Returns
    -------
    tuple[Json, list[Json]]
        A copy of the document with the added expressions and the new ``last-column-id``, and the list of new fields,
        such as ``{"expr-id": 7}``. A new field also has a ``name`` if the old field's name is not the expression's. The
        partition specs in the copy are unchanged: the caller puts the new fields into them.

    Raises
    ------
    FormatError
        A field has no name or transform.
    """
    known = entries(document, "expressions")
    last = last_field_id(document, known)
    out: list[Json] = []
    for field in _with_field_ids(fields):
        if "expr-id" in field or parse_transform(str(field.get("transform"))).is_identity:
            out.append(field)
            continue
        _check_field(field)
        sources: Json = {key: field[key] for key in ("source-id", "source-ids") if key in field}
        inner = {**sources, "transform": field["transform"]}
        found = next(
            (e for e in known if e.get("expr") == inner and e.get("partition-field-id") == field.get("field-id")), None
        )
        if found is None:
            last += 1
            found = {"expr-id": last, "expr": inner, "name": field["name"], "partition-field-id": field["field-id"]}
            known.append(found)
        link = {"expr-id": found["expr-id"]}
        if found.get("name") != field["name"]:
            link["name"] = field["name"]
        out.append(link)
    return with_values(document, expressions=known, last_column_id=last), out


def _check_field(field: Json) -> None:
    for key in ("name", "transform"):
        if not isinstance(field.get(key), str):
            raise FormatError(
                f"a partition field lacks {key}: no commit can be made on this table",
                field=key,
                code="metadata-invalid",
            )


def last_field_id(document: Mapping[str, Any], expressions: list[Json]) -> int:
    """Return the highest id that columns and expressions use; a new column or expression gets the next one.

    Columns and expressions share one id space. The result is the maximum of ``last-column-id``, of the ids of all
    fields in all schemas of the document, and of the ids of ``expressions``.

    Parameters
    ----------
    expressions
        The document's expressions, as JSON objects.
    """
    ids = [whole_number(document, "last-column-id", 0), *(whole_number(e, "expr-id", 0) for e in expressions)]
    for schema in entries(document, "schemas"):
        ids += parse_schema({"schema-id": 0, **schema}).by_id()
    return max(ids)


def _object(document: Mapping[str, Any], key: str) -> Json:
    found = document.get(key)
    if not isinstance(found, dict):
        raise FormatError(
            f"{key} must be an object: no commit can be made on this table", field=key, code="metadata-invalid"
        )
    return found
