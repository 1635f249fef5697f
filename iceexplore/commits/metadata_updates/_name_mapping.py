"""When a schema evolves, update table properties that refer to columns (Java: ``MappingUtil``, ``PropertyUtil``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from iceexplore.commits.metadata_updates._schema_builder import SchemaDraft
from iceexplore.errors import FormatError
from iceexplore.metadata import ListType, MapType, Schema, StructType, Type, parse_name_mapping

__all__ = ["updated_properties"]

_NAME_MAPPING = "schema.name-mapping.default"
#: Prefixes of properties for single columns; the prefix is followed by the full name of the column.
_COLUMN_PROPERTIES = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.stats-enabled.column.",
)

Mapped = list[dict[str, Any]]


def updated_properties(properties: Mapping[str, Any], draft: SchemaDraft, schema: Schema) -> dict[str, Any]:
    """Return the table properties after a schema evolution.

    The name mapping gets the new names of renamed columns and the names of added columns. It keeps old names, because
    existing files may use them; but a name that now belongs to a different column is removed from the column that had
    it before. Properties for single columns are renamed or removed together with the columns. A name mapping
    that cannot be parsed stays unchanged, as in Java.
    """
    names = {field.field_id: name for name, field in schema.walk()}
    out: dict[str, Any] = {}
    for key, value in properties.items():
        prefix = next((p for p in _COLUMN_PROPERTIES if key.startswith(p)), None)
        old = None if prefix is None else draft.find_exactly(key.removeprefix(prefix))
        if old is None or prefix is None:
            out[key] = value
        elif old in names:
            out[prefix + names[old]] = value
    if isinstance(out.get(_NAME_MAPPING), str):
        try:
            mapped = parse_name_mapping(out[_NAME_MAPPING])
        except FormatError:
            return out
        out[_NAME_MAPPING] = json.dumps(_with_added(_updated(mapped, draft), draft, None))
    return out


def _updated(fields: Mapped, draft: SchemaDraft) -> Mapped:
    done = []
    for field in fields:
        field_id = field.get("field-id")
        names = list(field["names"])
        update = draft.updates.get(field_id) if field_id is not None else None
        if update is not None and update.name not in names:
            names.append(update.name)
        nested = _updated(field.get("fields", []), draft)
        if field_id is not None:
            nested = _with_added(nested, draft, field_id)
        done.append(_mapped(field_id, names, nested))
    taken = {u.name: i for i in (f.get("field-id") for f in done) if i is not None and (u := draft.updates.get(i))}
    return _without(done, taken)


def _with_added(fields: Mapped, draft: SchemaDraft, parent: int | None) -> Mapped:
    new = [draft.updates[i] for i in draft.added.get(parent, ())]
    kept = _without(fields, {f.name: f.field_id for f in new})
    return kept + [_mapped(f.field_id, [f.name], _created(f.type)) for f in new]


def _without(fields: Mapped, taken: Mapping[str, int]) -> Mapped:
    return [
        _mapped(
            f.get("field-id"),
            [n for n in f["names"] if taken.get(n, f.get("field-id")) == f.get("field-id")],
            f.get("fields", []),
        )
        for f in fields
    ]


def _created(type_: Type) -> Mapped:
    match type_:
        case StructType(fields):
            inner = fields
        case ListType(element):
            inner = (element,)
        case MapType(key, value):
            inner = (key, value)
        case _:
            inner = ()
    return [_mapped(f.field_id, [f.name], _created(f.type)) for f in inner]


def _mapped(field_id: int | None, names: list[str], fields: Mapped) -> dict[str, Any]:
    out: dict[str, Any] = {} if field_id is None else {"field-id": field_id}
    out["names"] = names
    if fields:
        out["fields"] = fields
    return out
