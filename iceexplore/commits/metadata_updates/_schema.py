"""Evolve the schema in a document (spec, "Schema Evolution"; Java: ``SchemaUpdate``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import NoneType
from typing import Any

from iceexplore.commits.metadata_updates._document import Json, entries, read_properties, whole_number, with_values
from iceexplore.commits.metadata_updates._name_mapping import updated_properties
from iceexplore.commits.metadata_updates._schema_builder import SchemaDraft, unknown_keys, with_unknown_keys
from iceexplore.commits.metadata_updates._schema_checks import (
    check_promotion,
    check_schema,
    default_value,
    promoted_default,
)
from iceexplore.commits.metadata_updates._upgrade import with_lists
from iceexplore.errors import FormatError, Problems, RuleError, mapping_of, texts_of
from iceexplore.metadata import (
    Schema,
    StructType,
    TableMetadata,
    Type,
    parse_table_metadata,
    schema_to_json,
)
from iceexplore.writing import checked_type, type_of

__all__ = ["evolve_schema", "first_schema", "without_history"]

#: Examples of arguments, to show in error messages.
_TYPES, _VALUES, _NAMES = "{'id': 'long', 'tags': 'list<string>'}", "{'a': 0}", "['a', 'b.c']"


def without_history(document: Mapping[str, Any]) -> TableMetadata:
    """Parse a document's schemas, specs, sort orders and properties; snapshots and logs are not parsed.

    Raises
    ------
    FormatError
        One of the parsed parts violates the spec and must be repaired before it can be evolved.
    """
    short = {
        **document, "snapshots": [], "refs": {}, "current-snapshot-id": None, "snapshot-log": [], "metadata-log": [],
        "statistics": [], "partition-statistics": [],
    }  # fmt: skip
    return parse_table_metadata(short, "table metadata", Problems(strict=True))


def evolve_schema(
    document: Mapping[str, Any],
    *,
    add: Mapping[str, str | Mapping[str, Any] | Type] | None = None,
    drop: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    update: Mapping[str, str | Mapping[str, Any] | Type] | None = None,
    move: Mapping[str, str] | None = None,
    require: Iterable[str] = (),
    make_optional: Iterable[str] = (),
    doc: Mapping[str, str | None] | None = None,
    initial_default: Mapping[str, Any] | None = None,
    write_default: Mapping[str, Any] | None = None,
    identifier: Iterable[str] | None = None,
    case_sensitive: bool = True,
) -> Json:
    """Return a document with an evolved schema, which becomes the current one.

    Existing columns are identified by their dotted paths before the evolution (``a.b``, ``points.element.x`` or
    ``points.x``), added columns by the paths in ``add``. Drops are applied first, so that a dropped name can be used
    again; moves are applied last, in the given order. If the table already has an equal schema, this schema becomes
    current. Table properties that name columns are updated: the name mapping (``schema.name-mapping.default``), and
    properties for a single column, such as ``write.metadata.metrics.column.<name>``.

    Parameters
    ----------
    add
        Types by path: ``{"note": "string", "point.z": "double", "tags": "list<string>"}``. A type can also be given as
        in a schema's JSON, for example to make a nested field required. New ids follow ``last-column-id``. To add
        a field to the structs in a list or map, use the path of the list or map and the new field's name.
    drop
        Columns and fields to drop, by path.
    rename
        New names by path. A new name is the name of the field alone, not a path.
    update
        Types to which columns are promoted, by path.
    move
        New positions by path: ``first``, ``after x`` or ``before x``, where ``x`` must be in the same struct.
    require
        Which of the added columns are required; each needs an ``initial_default`` (v3). Existing optional columns
        cannot become required.
    make_optional
        Required columns that become optional.
    doc
        Comments by path; None removes a comment.
    initial_default, write_default
        JSON single values (spec, Appendix D) by path, from v3 on. An initial default can only be given
        for an added column; it is also the write default unless a different one is given.
    identifier
        The new identifier fields, by their paths after the evolution; None keeps the current ones.
    case_sensitive
        Whether columns are identified by case-sensitive names. If not, names that differ only in case are refused.

    Raises
    ------
    RuleError
        ``schema-names``, ``reserved-columns``, ``schema-conflict``, ``schema-struct``, ``schema-map-key``,
        ``type-promotion``, ``required-columns``, ``default-values``, ``types-of-version``, ``identifier-fields``,
        ``partition-source``, ``partition-names``, ``sort-source``, ``virtual-columns``.
    OptionError
        A string is not a type, or an argument has the wrong type.
    FormatError
        The document's schemas or specs violate the spec.
    """
    added, promoted = mapping_of("add", add, _TYPES), mapping_of("update", update, _TYPES)
    renamed = mapping_of("rename", rename, "{'a': 'b'}", values=str)
    moved = mapping_of("move", move, "{'a': 'first'}", values=str)
    docs = mapping_of("doc", doc, "{'a': 'a comment'}", values=(str, NoneType))
    initial = mapping_of("initial_default", initial_default, _VALUES)
    written = mapping_of("write_default", write_default, _VALUES)
    names = {"drop": drop, "require": require, "make_optional": make_optional}
    lists = {name: texts_of(name, given, _NAMES) for name, given in names.items()}
    identifiers = None if identifier is None else texts_of("identifier", identifier, _NAMES)
    document = with_lists(document)
    metadata = without_history(document)
    old = next((s for s in metadata.schemas if s.schema_id == metadata.current_schema_id), None)
    if old is None:
        raise FormatError(
            "the current schema is not among the schemas", field="current-schema-id", code="metadata-invalid"
        )
    draft = SchemaDraft(old, whole_number(document, "last-column-id", 0), case_sensitive=case_sensitive)
    for name in lists["drop"]:
        draft.drop(name)
    for path, given in added.items():
        draft.add(path, type_of(given))
    for name, given in promoted.items():
        _update(draft, name, type_of(given), metadata)
    for name, new_name in renamed.items():
        draft.set(draft.the(name), name=new_name)
    for name, text in docs.items():
        draft.set(draft.the(name), doc=text)
    _set_defaults(draft, initial, written)
    for name in lists["make_optional"]:
        draft.set(draft.the(name), required=False)
    for name in lists["require"]:
        _require(draft, name)
    for name, where in moved.items():
        draft.move(name, where)

    new = Schema(old.schema_id, draft.apply(), old.identifier_field_ids)
    if identifiers is not None:
        new = replace(new, identifier_field_ids=_identifiers(new, identifiers, case_sensitive))
    check_schema(new, metadata, case_sensitive=case_sensitive)
    return _with_schema(document, metadata, old, new, draft)


def first_schema(document: Mapping[str, Any], given: Schema) -> Json:
    """Return the JSON of a new table's schema: the given schema, with new field ids counted from 1.

    Raises
    ------
    OptionError, RuleError
        For the same reasons as `evolve_schema`.
    """
    draft = SchemaDraft(Schema(0, ()), 0, case_sensitive=True)
    columns = draft.fresh(checked_type(StructType(given.fields)))
    assert isinstance(columns, StructType)
    names = {field.field_id: name for name, field in given.walk()}
    new = Schema(0, columns.fields)
    identifiers = (names.get(i, str(i)) for i in given.identifier_field_ids)
    new = replace(new, identifier_field_ids=_identifiers(new, identifiers, case_sensitive=True))
    check_schema(new, without_history(document), case_sensitive=True)
    return schema_to_json(new)


def _update(draft: SchemaDraft, name: str, given: Type, metadata: TableMetadata) -> None:
    field_id = draft.the(name)
    field = draft.current(field_id)
    if field.type == given:
        return
    check_promotion(draft.names[field_id], field, given, metadata)
    draft.set(field_id, type=draft.fresh(given))
    defaults = {key: getattr(field, key) for key in ("initial_default", "write_default")}
    if any(value is not None for value in defaults.values()):
        draft.set(field_id, **{key: promoted_default(v, field.type, given) for key, v in defaults.items()})


def _set_defaults(draft: SchemaDraft, initial: Mapping[str, Any], write: Mapping[str, Any]) -> None:
    for name, json in initial.items():
        field_id = draft.the(name)
        if not draft.is_added(field_id):
            raise RuleError(
                "default-values",
                f"{name!r}: initial_default can only be set when a column is added; change write_default instead",
            )
        value = default_value(name, draft.current(field_id).type, json)
        draft.set(field_id, initial_default=value, write_default=value)
    for name, json in write.items():
        field_id = draft.the(name)
        draft.set(field_id, write_default=default_value(name, draft.current(field_id).type, json))


def _require(draft: SchemaDraft, name: str) -> None:
    field_id = draft.the(name)
    field = draft.current(field_id)
    if field.required:
        return
    if not draft.is_added(field_id):
        raise RuleError(
            "required-columns", f"{name!r} is optional and cannot become required: existing rows may have no value"
        )
    if field.initial_default is None or field.write_default is None:
        raise RuleError(
            "required-columns",
            f"{name!r} cannot be added as required without defaults: existing rows "
            "have no value; give initial_default (format version 3), or add it as optional",
        )
    draft.set(field_id, required=True)


def _identifiers(schema: Schema, names: Iterable[str], case_sensitive: bool) -> tuple[int, ...]:
    ids = {name if case_sensitive else name.lower(): field.field_id for name, field in schema.walk()}
    out = []
    for name in names:
        key = name if case_sensitive else name.lower()
        if key not in ids:
            raise RuleError("identifier-fields", f"{name!r} cannot be an identifier field: the column does not exist")
        out.append(ids[key])
    return tuple(sorted(set(out)))


def _with_schema(document: Json, metadata: TableMetadata, old: Schema, new: Schema, draft: SchemaDraft) -> Json:
    schemas = entries(document, "schemas")
    same = next((s for s in metadata.schemas if _same(s, new)), None)
    if same is None:
        new = replace(new, schema_id=max(s.schema_id for s in metadata.schemas) + 1)
        json = with_unknown_keys(schema_to_json(new), unknown_keys(old.raw))
        schemas.append(json)
    else:
        new = same
        json = dict(same.raw)
    out = with_values(document, last_column_id=draft.last_column_id, schemas=schemas, current_schema_id=new.schema_id)
    if metadata.format_version == 1:
        out["schema"] = json
    properties = read_properties(document)
    changed = updated_properties(properties, draft, new)
    if changed != properties:
        out["properties"] = changed
    return out


def _same(one: Schema, other: Schema) -> bool:
    """Return whether two schemas have the same fields and identifier fields (Java: ``sameSchema``).

    The order of fields matters; schema ids are not compared.
    """
    return one.fields == other.fields and set(one.identifier_field_ids) == set(other.identifier_field_ids)
