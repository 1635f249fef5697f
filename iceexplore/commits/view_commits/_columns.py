"""Build the schema of a view's version from the columns that the user gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from iceexplore.commits.metadata_updates._empty_state import new_table
from iceexplore.errors import FormatError, OptionError
from iceexplore.metadata import (
    LATEST_FORMAT_VERSION,
    ListType,
    MapType,
    NestedField,
    Schema,
    StructType,
    Type,
    parse_schema,
    schema_to_json,
)
from iceexplore.writing import SchemaLike

__all__ = ["same_columns", "view_columns"]

_EXAMPLE = "{'day': 'date', 'trips': 'long'}"


def view_columns(given: SchemaLike, known: Iterable[Schema] = (), current: Schema | None = None) -> Schema:
    """Return the schema for a new version of a view, with field ids.

    A given schema that already has field ids is returned with these ids. Given columns without field ids are compared
    with the schemas ``current`` and ``known``. If one of these has the same columns and no identifier fields, the
    result is this schema. Otherwise, a column gets the field id of the column with the same name in ``current`` or, if
    it has none, in the last ``known`` schema that has one. All other columns get new field ids, higher than all ids in
    these schemas.

    Parameters
    ----------
    given
        Columns without field ids: a PyArrow schema, a data frame, an Arrow table, or types by column name (with a
        comment: ``(type, comment)``). Or a schema with field ids: an iceexplore or PyIceberg schema, or a schema's
        JSON.
    known
        The schemas in the view's metadata; empty for a new view.
    current
        The schema of the view's current version; None if there is none.

    Raises
    ------
    OptionError, RuleError
        The schema is invalid, or has no columns.
    """
    stored = _stored(given)
    if stored is not None:
        _refuse_invalid(stored)
        return stored
    docs: dict[str, str] = {}
    if isinstance(given, Mapping):
        given, docs = _without_docs(given)
    made = new_table(given, format_version=LATEST_FORMAT_VERSION, location="/view", expressions=False)
    fresh = parse_schema(made["schemas"][0])
    fields = [replace(f, doc=docs.get(f.name, f.doc)) for f in fresh.fields]
    schemas: tuple[Schema, ...] = (*known, *(() if current is None else (current,)))
    shape = [_shape(f) for f in fields]
    equal = next((s for s in reversed(schemas) if [_shape(f) for f in s.fields] == shape), None)
    if equal is not None and not equal.identifier_field_ids:
        return equal
    before = {f.name: f for s in schemas for f in s.fields}
    ids = _Ids(max((i for s in schemas for i in s.by_id()), default=0))
    return Schema(0, tuple(ids.field(f, before.get(f.name)) for f in fields))


def _shape(field: NestedField) -> NestedField:
    """Return a copy of a field with the id 0, also for nested fields, to compare fields without their ids."""
    return replace(field, field_id=0, type=_Ids(-1, fixed=0).type(field.type, None))


def same_columns(a: Schema, b: Schema) -> bool:
    """Return whether two schemas are equal, apart from their schema ids (Java: ``Schema.sameSchema``)."""
    return a.fields == b.fields and set(a.identifier_field_ids) == set(b.identifier_field_ids)


def _stored(given: SchemaLike) -> Schema | None:
    """Return the given schema if it has field ids; None if ids must be assigned to its columns."""
    if isinstance(given, Schema):
        return parse_schema(schema_to_json(given))
    if isinstance(given, Mapping) and isinstance(given.get("fields"), list):
        json: Any = {"type": "struct", "schema-id": 0, **given}
    elif type(given).__module__ == "pyiceberg.schema" and hasattr(given, "model_dump"):
        json = given.model_dump(mode="json")
    else:
        return None
    try:
        return parse_schema(json)
    except FormatError as error:
        raise OptionError(f"schema: {error.reason}") from error


def _refuse_invalid(schema: Schema) -> None:
    if not schema.fields:
        raise OptionError("schema: a view needs at least one column")
    ids = [f.field_id for _, f in schema.walk()]
    if len(set(ids)) < len(ids):
        raise OptionError("schema: two fields have the same id; to have ids assigned, give types by name: " + _EXAMPLE)
    names = [f.name for f in schema.fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"schema: two columns have the name {twice!r}")


def _without_docs(given: Mapping[Any, Any]) -> tuple[dict[Any, Any], dict[str, str]]:
    """Split columns by name, such as ``{"day": ("date", "Day of the trip")}``, into types and comments by name.

    A column without a comment, such as ``{"day": "date"}``, is only in the types.
    """
    types, docs = {}, {}
    for name, kind in given.items():
        if isinstance(kind, tuple):
            if len(kind) != 2 or not isinstance(kind[1], str):
                raise OptionError(f"schema: {name!r}: {kind!r}: give a type, or a type and a comment: ('date', 'Day')")
            types[name], docs[name] = kind
        else:
            types[name] = kind
    return types, docs


class _Ids:
    """Assigns field ids to the fields of a new schema.

    A field gets the id of the field with the same name in an earlier schema or, if there is none, a new id. New ids
    count up from ``last + 1``. If ``fixed`` is not None, every field gets the id ``fixed`` instead.
    """

    def __init__(self, last: int, fixed: int | None = None) -> None:
        self.last = last
        self.fixed = fixed
        self.taken: set[int] = set()

    def next(self, old: NestedField | None) -> int:
        """Return the id for a field of the new schema.

        ``old`` is the field with the same name in an earlier schema; None if there is none. Its id is kept, unless
        another field of the new schema already has it. Otherwise, the field gets a new id.
        """
        if self.fixed is not None:
            return self.fixed
        if old is not None and old.field_id not in self.taken:
            self.taken.add(old.field_id)
            return old.field_id
        self.last += 1
        return self.last

    def field(self, new: NestedField, old: NestedField | None) -> NestedField:
        """Return the field ``new`` with an id, and with ids for all fields nested in it.

        ``old`` is the field with the same name in an earlier schema; None if there is none. ``new`` gets its id (see
        `next`), and nested fields get the ids of fields in ``old`` (see `type`).
        """
        field_id = self.next(old)
        return replace(new, field_id=field_id, type=self.type(new.type, None if old is None else old.type))

    def type(self, new: Type, old: Type | None) -> Type:
        """Return the type ``new``, with ids for all fields nested in it; a primitive type remains unchanged.

        ``old`` is the type of the field with the same name in an earlier schema; None if there is none. If both types
        are structs, a nested field gets the id of the field with the same name in ``old``. If both are lists, the
        element gets the old element's id; if both are maps, the key and the value get the old ones' ids. All other
        nested fields get new ids.
        """
        if isinstance(new, StructType):
            before = {f.name: f for f in old.fields} if isinstance(old, StructType) else {}
            return StructType(tuple(self.field(f, before.get(f.name)) for f in new.fields))
        if isinstance(new, ListType):
            return ListType(self.field(new.element, old.element if isinstance(old, ListType) else None))
        if isinstance(new, MapType):
            key, value = (old.key, old.value) if isinstance(old, MapType) else (None, None)
            return MapType(self.field(new.key, key), self.field(new.value, value))
        return new
