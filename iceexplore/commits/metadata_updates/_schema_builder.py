"""Collect the changes of a schema evolution by field id, then apply them together (Java: ``SchemaUpdate``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from iceexplore.errors import RuleError
from iceexplore.metadata import ListType, MapType, NestedField, PrimitiveType, Schema, StructType, Type
from iceexplore.storage import JsonValue

__all__ = [
    "SchemaDraft",
    "unknown_keys",
    "with_unknown_keys",
]

#: The keys in a schema's JSON that this library knows.
_KNOWN = frozenset(
    (
        "doc", "element", "element-id", "element-required", "fields", "id", "identifier-field-ids", "initial-default",
        "key", "key-id", "name", "required", "schema-id", "type", "value", "value-id", "value-required",
        "write-default",
    )
)  # fmt: skip
_WITHIN = ("fields", "type", "element", "key", "value")
#: Identifies a JSON object within the JSON of a schema: ``(field id,)`` for a field, ``(element id,)`` for a list and
#: ``(key id,)`` for a map. A struct has no id of its own. It is identified by the id of the JSON object that directly
#: contains it, and None: the struct that is the type of field 7 is ``(7, None)``. The schema itself is ``(None,)``.
Place = tuple[int | None, ...]
Unknown = dict[Place, dict[str, Any]]


def unknown_keys(json: JsonValue) -> Unknown:
    """Return the keys in a schema's JSON that this library does not know, with their values.

    The result maps the `Place` of each JSON object with unknown keys to a dictionary of these keys and their values.
    """
    out: Unknown = {}

    def collect(item: JsonValue, above: Place) -> None:
        if isinstance(item, list):
            for part in item:
                collect(part, above)
        elif isinstance(item, dict):
            place = _place(item, above)
            unknown = {key: value for key, value in item.items() if key not in _KNOWN}
            if unknown:
                out[place] = unknown
            for key in _WITHIN:
                collect(item.get(key), place)

    collect(json, ())
    return out


def with_unknown_keys(item: JsonValue, unknown: Unknown, above: Place = ()) -> JsonValue:
    """Copy the JSON of a new schema, and add the unknown keys of the previous schema's JSON.

    Unknown keys are keys that this library does not know. Without this step, a schema evolution would lose them. Each
    key is added to the JSON object that has the same `Place` as the object where the key was found.

    Parameters
    ----------
    item
        The JSON of the new schema. The function calls itself for the JSON values inside it.
    unknown
        The unknown keys of the previous schema, as returned by `unknown_keys`.
    above
        The `Place` of the JSON object that contains ``item``; empty if ``item`` is the schema itself.
    """
    if isinstance(item, list):
        return [with_unknown_keys(part, unknown, above) for part in item]
    if not isinstance(item, dict):
        return item
    place = _place(item, above)
    inner = {key: with_unknown_keys(value, unknown, place) if key in _WITHIN else value for key, value in item.items()}
    return {**inner, **unknown.get(place, {})}


def _place(item: dict[str, Any], above: Place) -> Place:
    for key in ("id", "element-id", "key-id"):
        if type(item.get(key)) is int:
            return (item[key],)
    return (*above[-1:], None)


class SchemaDraft:
    """The changes of one schema evolution.

    Methods identify existing columns by their full names before the evolution, and added columns by their new names.
    If the elements of a list or the values of a map are structs, the names of the structs' fields may be shortened, as
    in Java: ``points.x`` also finds ``points.element.x``, and ``prices.x`` also finds ``prices.value.x``.
    """

    def __init__(self, schema: Schema, last_column_id: int, *, case_sensitive: bool) -> None:
        self.schema = schema
        self.last_column_id = last_column_id
        self.case_sensitive = case_sensitive
        self.fields: dict[int, NestedField] = {}
        self.names: dict[int, str] = {}
        self.parents: dict[int, int | None] = {}
        self.added: dict[int | None, list[int]] = {}
        self.updates: dict[int, NestedField] = {}
        self.deletes: set[int] = set()
        self._steps: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        self._added_ids: dict[str, int] = {}
        self._moves: dict[int | None, list[tuple[int, str, int | None]]] = {}
        short: dict[str, int] = {}
        for parent, path, step, field in _walk(None, (), schema.fields):
            self.fields[field.field_id] = field
            self.names[field.field_id] = ".".join(name for name, _ in path)
            self.parents[field.field_id] = parent
            self._steps[field.field_id] = step
            self._ids.setdefault(self._key(self.names[field.field_id]), field.field_id)
            left = [name for name, kind in path[:-1] if kind == "field"] + [path[-1][0]]
            short.setdefault(self._key(".".join(left)), field.field_id)
        for name, field_id in short.items():
            self._ids.setdefault(name, field_id)

    def _key(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()

    def find(self, name: str) -> int | None:
        """Return the id of the column with this name, or None if there is none.

        Both existing and added columns are found, by their full name (``points.element.x``) or by its short form
        (``points.x``). If an existing and an added column have the same name, because the existing one is dropped, the
        id of the added column is returned.
        """
        key = self._key(name)
        return self._added_ids.get(key, self._ids.get(key))

    def find_exactly(self, name: str) -> int | None:
        """Return the id of the old schema's column with exactly this full name (case-sensitive), or None."""
        return next((i for i in self.fields if self.names[i] == name), None)

    def the(self, name: str) -> int:
        """Return the id of the column with this name; raise an error if the evolution may not change the column.

        Raises
        ------
        RuleError
            ``schema-names``: there is no such column. ``schema-conflict``: the evolution drops the column, or a column
            that contains it. ``schema-map-key``: the column is in the key of a map.
        """
        field_id = self.find(name)
        if field_id is None:
            known = ", ".join(list(self.names.values())[:20]) or "none"
            raise RuleError("schema-names", f"there is no column {name!r}; columns: {known}")
        for ancestor in self.lineage(field_id):
            if ancestor in self.deletes:
                raise RuleError(
                    "schema-conflict", f"{name!r} cannot be changed: this change drops {self.names[ancestor]!r}"
                )
        self._check_key(field_id, name)
        return field_id

    def current(self, field_id: int) -> NestedField:
        """Return the field with this id, with the changes collected so far."""
        return self.updates.get(field_id) or self.fields[field_id]

    def lineage(self, field_id: int | None) -> Iterator[int]:
        """Yield a field's id, its parent's id, and so on up to a top-level column; nothing for None."""
        while field_id is not None:
            yield field_id
            field_id = self.parents[field_id]

    def is_added(self, field_id: int) -> bool:
        """Return whether the column with this id is new, that is, not in the schema before the evolution."""
        return field_id not in self.fields

    def add(self, path: str, type_: Type) -> None:
        """Add an optional column at a path; its parent is the table, a struct, or a list or map of structs."""
        above, _, name = path.rpartition(".")
        parent = self._struct_for(path, above) if above else None
        if not name:
            raise RuleError("schema-names", f"a column needs a name; {path!r} was given")
        full = f"{self.names[parent]}.{name}" if parent is not None else name
        for known in (self.find(path), self.find(full)):
            if known is not None and known not in self.deletes:
                raise RuleError("schema-names", f"there is already a column {path!r}")
        field_id = self._next_id()
        self.parents[field_id] = parent
        self.names[field_id] = full
        self._steps[field_id] = "field"
        self.updates[field_id] = NestedField(field_id, name, self.fresh(type_))
        self.added.setdefault(parent, []).append(field_id)
        for spelled in (full, path):
            self._added_ids.setdefault(self._key(spelled), field_id)

    def _struct_for(self, path: str, above: str) -> int:
        parent = self._ids.get(self._key(above))
        if parent is None:
            raise RuleError(
                "schema-names",
                f"{path!r} cannot be added: there is no column {above!r} (to add both in one change, include "
                f"the fields of {above!r} in its type)",
            )
        match self.fields[parent].type:
            case ListType(element):
                parent = element.field_id
            case MapType(_, value):
                parent = value.field_id
        if not isinstance(self.fields[parent].type, StructType):
            raise RuleError(
                "schema-struct", f"{path!r} cannot be added: {above!r} is not a struct but {self.fields[parent].type}"
            )
        for ancestor in self.lineage(parent):
            if ancestor in self.deletes:
                raise RuleError(
                    "schema-conflict", f"{path!r} cannot be added: this change drops {self.names[ancestor]!r}"
                )
        self._check_key(parent, path)
        return parent

    def drop(self, name: str) -> None:
        """Drop a top-level column or a field of a struct."""
        field_id = self.the(name)
        self._check_field(field_id, name, "dropped")
        self.deletes.add(field_id)

    def set(self, field_id: int, **changes: Any) -> None:
        """Change attributes of a field.

        Parameters
        ----------
        **changes
            The new values of attributes of `NestedField`: ``name``, ``type``, ``required``, ``doc``,
            ``initial_default`` or ``write_default``. Of the element of a list and the value of a map, only ``type`` and
            ``required`` can change.

        Raises
        ------
        RuleError
            ``schema-struct``: the field is the element of a list or the value of a map, and ``changes`` has a different
            attribute than these two.
        """
        if "name" in changes:
            self._check_field(field_id, self.names[field_id], "renamed")
        elif not {"type", "required"} >= changes.keys():
            # Only fields of structs have a doc and defaults (spec, Appendix C).
            self._check_field(field_id, self.names[field_id], "given " + ", ".join(sorted(changes)).replace("_", " "))
        self.updates[field_id] = replace(self.current(field_id), **changes)

    def move(self, name: str, where: str) -> None:
        """Move a field within its struct; ``where`` is ``first``, ``after x`` or ``before x``."""
        field_id = self.the(name)
        self._check_field(field_id, name, "moved")
        parent = self.parents[field_id]
        place, _, other_name = where.strip().partition(" ")
        if place == "first" and not other_name:
            self._moves.setdefault(parent, []).append((field_id, "first", None))
            return
        if place not in ("after", "before") or not other_name:
            raise RuleError("schema-struct", f"{name!r} cannot move to {where!r}: use 'first', 'after x' or 'before x'")
        sibling = other_name if parent is None else f"{self.names[parent]}.{other_name}"
        other = self.the(other_name if self.find(sibling) is None else sibling)
        if other == field_id or self.parents[other] != parent:
            raise RuleError(
                "schema-struct",
                f"{name!r} can move only before or after another field of its struct, not {where!r}",
            )
        self._moves.setdefault(parent, []).append((field_id, place, other))

    def apply(self) -> tuple[NestedField, ...]:
        """Apply the collected changes, and return the top-level fields of the new schema."""
        return self._struct(self.schema.fields, None)

    def fresh(self, type_: Type) -> Type:
        """Return a copy of a type with new field ids.

        As in Java, all fields of a struct get their ids before the fields that are nested in them.
        """
        match type_:
            case StructType(fields):
                ids = [self._next_id() for _ in fields]
                return StructType(
                    tuple(replace(f, field_id=i, type=self.fresh(f.type)) for i, f in zip(ids, fields, strict=True))
                )
            case ListType(element):
                field_id = self._next_id()
                return ListType(replace(element, field_id=field_id, type=self.fresh(element.type)))
            case MapType(key, value):
                key_id, value_id = self._next_id(), self._next_id()
                return MapType(
                    replace(key, field_id=key_id, type=self.fresh(key.type)),
                    replace(value, field_id=value_id, type=self.fresh(value.type)),
                )
        return type_

    def _next_id(self) -> int:
        self.last_column_id += 1
        return self.last_column_id

    def _struct(self, fields: tuple[NestedField, ...], parent: int | None) -> tuple[NestedField, ...]:
        out = [self._field(f) for f in fields if f.field_id not in self.deletes]
        out += [self.updates[i] for i in self.added.get(parent, ())]
        for field_id, place, other in self._moves.get(parent, ()):
            moved = out.pop(_index(out, field_id))
            out.insert(0 if other is None else _index(out, other) + (place == "after"), moved)
        return tuple(out)

    def _field(self, field: NestedField) -> NestedField:
        field = self.updates.get(field.field_id, field)
        match field.type:
            case StructType(fields):
                return replace(field, type=StructType(self._struct(fields, field.field_id)))
            case ListType(element):
                return replace(field, type=ListType(self._field(element)))
            case MapType(key, value):
                return replace(field, type=MapType(key, self._field(value)))
        return field

    def _check_field(self, field_id: int, name: str, done: str) -> None:
        if self._steps[field_id] != "field":
            raise RuleError(
                "schema-struct", f"{name!r} is the {self._steps[field_id]} of a list or map: it cannot be {done}"
            )

    def _check_key(self, field_id: int, name: str) -> None:
        if any(self._steps[i] == "key" for i in self.lineage(field_id)):
            raise RuleError("schema-map-key", f"{name!r} belongs to the key of a map, which cannot change")


Path = tuple[tuple[str, str], ...]


def _walk(
    parent: int | None, path: Path, fields: tuple[NestedField, ...], step: str = "field"
) -> Iterator[tuple[int | None, Path, str, NestedField]]:
    """Yield the given fields and all fields nested in them, each after the field that contains it.

    Each item is a tuple of four: the id of the containing field (None for a top-level column), the field's path, its
    role and the field itself. The role is ``field`` for a top-level column or a field of a struct, and ``element``,
    ``key`` or ``value`` for a part of a list or map.

    A path has a pair for each part of the field's full name. For ``points.element.x`` these parts are ``points``,
    ``element`` and ``x``. The first item of the pair is the part itself. The second item is ``element`` or ``value`` if
    users may leave out this part (as in ``points.x``), and ``field`` if they may not.

    Parameters
    ----------
    parent, path
        The id and the path of the field that contains ``fields``; None and an empty path for top-level columns.
    fields
        The fields to start with, such as the top-level columns of a schema.
    step
        The role of ``fields``.
    """
    for field in fields:
        # The names `element` and `value` may be omitted in a path only if the element or value is a struct.
        optional = step != "field" and step != "key" and isinstance(field.type, StructType)
        here = (*path, (field.name, step if optional else "field"))
        yield parent, here, step, field
        match field.type:
            case StructType(children):
                yield from _walk(field.field_id, here, children)
            case ListType(element):
                yield from _walk(field.field_id, here, (element,), "element")
            case MapType(key, value):
                yield from _walk(field.field_id, here, (key,), "key")
                yield from _walk(field.field_id, here, (value,), "value")
            case PrimitiveType():
                pass


def _index(fields: list[NestedField], field_id: int) -> int:
    return next(i for i, f in enumerate(fields) if f.field_id == field_id)
