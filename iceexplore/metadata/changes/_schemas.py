"""Compare two schemas by field id: a renamed column does not count as dropped and added."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iceexplore.metadata.types._parameters import decimal_parameters, type_base
from iceexplore.metadata.types._types import ListType, MapType, NestedField, PrimitiveType, Schema, StructType, Type

__all__ = ["SchemaChange", "is_promotion", "schema_changes"]

Kind = Literal[
    "added", "default", "doc", "dropped", "identifier", "moved", "optional", "renamed", "required", "retyped"
]

_PROMOTIONS = {("int", "long"), ("float", "double"), ("date", "timestamp"), ("date", "timestamp_ns")}


@dataclass(frozen=True)
class SchemaChange:
    """A change of a field.

    Attributes
    ----------
    kind
        ``added``, ``dropped``, ``renamed``, ``retyped``, ``moved``, ``required`` or ``optional`` (its new state),
        ``doc``, ``default`` or ``identifier``.
    field_id
        The id of the field.
    name
        The field's full name in the newer schema, or in the older one if it was dropped.
    old, new
        The values before and after: names, types, docs, defaults or neighbours.
    text
        A sentence for the user.
    """

    kind: Kind
    field_id: int
    name: str
    old: Any
    new: Any
    text: str


def is_promotion(old: Type, new: Type) -> bool:
    """Return whether the spec allows this type promotion (spec, "Schema Evolution"; v3 adds date and unknown)."""
    if not isinstance(old, PrimitiveType):
        return False
    if old.name == "unknown" or (old.base, type_base(new)) in _PROMOTIONS:
        return True
    before, after = decimal_parameters(old), decimal_parameters(new)
    return before is not None and after is not None and before[1] == after[1] and before[0] < after[0]


def schema_changes(old: Schema, new: Schema) -> list[SchemaChange]:
    """Return the changes from one schema to another, in the newer schema's field order, then dropped fields.

    Changes of the identifier fields come last.

    For an added or dropped struct, list or map only the outermost field is reported.
    """
    before, after = old.by_id(), new.by_id()
    moved = _moved(old, new, before, after)
    changes: list[SchemaChange] = []
    added = _outermost(new, set(after) - set(before))
    for field_id, (name, field) in after.items():
        if field_id not in before:
            if field_id in added:
                text = f"{name} added, {field.type}{', required' if field.required else ''}"
                changes.append(SchemaChange("added", field_id, name, None, field, text))
            continue
        changes += _field_changes(name, before[field_id][1], field)
        if field_id in moved:
            was, now = moved[field_id]
            changes.append(SchemaChange("moved", field_id, name, was, now, f"{name} moved from {was} to {now}"))
    dropped = _outermost(old, set(before) - set(after))
    for field_id in before:
        if field_id in dropped:
            name, field = before[field_id]
            changes.append(SchemaChange("dropped", field_id, name, field, None, f"{name} dropped, was {field.type}"))
    return changes + _identifier_changes(old, new, before, after)


def _field_changes(name: str, old: NestedField, new: NestedField) -> list[SchemaChange]:
    out: list[SchemaChange] = []

    def change(kind: Kind, was: object, now: object, text: str) -> None:
        out.append(SchemaChange(kind, new.field_id, name, was, now, text))

    if old.name != new.name:
        change("renamed", old.name, new.name, f"{old.name} renamed to {name}")
    if not _same_shape(old.type, new.type):
        how = "promoted" if is_promotion(old.type, new.type) else "changed (not a promotion that the spec allows)"
        change("retyped", old.type, new.type, f"{name} {how} from {old.type} to {new.type}")
    if old.required != new.required:
        kind: Kind = "required" if new.required else "optional"
        change(kind, old.required, new.required, f"{name} became {kind}")
    if old.doc != new.doc:
        change("doc", old.doc, new.doc, f"{name} documented: {new.doc!r}" if new.doc else f"{name} lost its doc")
    for attribute, label in (("initial_default", "initial default"), ("write_default", "write default")):
        was, now = getattr(old, attribute), getattr(new, attribute)
        if was != now:
            change("default", was, now, f"{label} of {name} changed from {was} to {now}")
    return out


def _same_shape(old: Type, new: Type) -> bool:
    """Return whether two primitives are equal, or two nested types of the same kind; fields are compared separately."""
    if isinstance(old, PrimitiveType) or isinstance(new, PrimitiveType):
        return old == new
    return type(old) is type(new)


def _outermost(schema: Schema, ids: set[int]) -> set[int]:
    """Return the ids whose parent is not among them."""
    parents = _parents(schema)
    return {i for i in ids if parents.get(i) not in ids}


def _parents(schema: Schema) -> dict[int, int | None]:
    return {child: parent for parent, children in _siblings(schema).items() for child in children}


def _siblings(schema: Schema) -> dict[int | None, list[int]]:
    """Return the child field ids of each struct, list and map, by its field id; None is the schema itself."""
    out: dict[int | None, list[int]] = {None: [f.field_id for f in schema.fields]}
    for _, field in schema.walk():
        match field.type:
            case StructType(fields):
                out[field.field_id] = [f.field_id for f in fields]
            case ListType(element):
                out[field.field_id] = [element.field_id]
            case MapType(key, value):
                out[field.field_id] = [key.field_id, value.field_id]
    return out


def _moved(
    old: Schema, new: Schema, before: dict[int, tuple[str, NestedField]], after: dict[int, tuple[str, NestedField]]
) -> dict[int, tuple[str, str]]:
    """Return the fewest fields whose moves explain the new order, each with its old and new position as text."""
    was, now = _siblings(old), _siblings(new)
    old_parent, new_parent = _parents(old), _parents(new)
    out: dict[int, tuple[str, str]] = {}
    for field_id in after:
        if field_id in before and old_parent[field_id] != new_parent[field_id]:
            out[field_id] = (_inside(old_parent[field_id], before), _inside(new_parent[field_id], after))
    for parent in was.keys() & now.keys():
        common = [i for i in now[parent] if i in set(was[parent])]
        place = {i: n for n, i in enumerate(was[parent])}
        staying = _longest_rising([place[i] for i in common])
        for index, field_id in enumerate(common):
            if index not in staying:
                out[field_id] = (
                    _after(was[parent], field_id, before),
                    _after(now[parent], field_id, after),
                )
    return out


def _inside(parent: int | None, fields: dict[int, tuple[str, NestedField]]) -> str:
    return "the top level" if parent is None else f"inside {fields[parent][0]}"


def _after(siblings: Sequence[int], field_id: int, fields: dict[int, tuple[str, NestedField]]) -> str:
    index = siblings.index(field_id)
    return "first" if index == 0 else f"after {fields[siblings[index - 1]][1].name}"


def _longest_rising(values: Sequence[int]) -> set[int]:
    """Return the indices of a longest increasing subsequence."""
    tails: list[int] = []
    tail_index: list[int] = []
    previous: list[int] = []
    for index, value in enumerate(values):
        at = bisect_left(tails, value)
        previous.append(tail_index[at - 1] if at else -1)
        if at == len(tails):
            tails.append(value)
            tail_index.append(index)
        else:
            tails[at], tail_index[at] = value, index
    out: set[int] = set()
    index = tail_index[-1] if tail_index else -1
    while index >= 0:
        out.add(index)
        index = previous[index]
    return out


def _identifier_changes(
    old: Schema, new: Schema, before: dict[int, tuple[str, NestedField]], after: dict[int, tuple[str, NestedField]]
) -> list[SchemaChange]:
    was, now = set(old.identifier_field_ids), set(new.identifier_field_ids)
    out = []
    for field_id in sorted(was ^ now):
        name = (after.get(field_id) or before.get(field_id) or (f"#{field_id}", None))[0]
        text = f"{name} {'became an identifier field' if field_id in now else 'is no longer an identifier field'}"
        out.append(SchemaChange("identifier", field_id, name, field_id in was, field_id in now, text))
    return out
