"""Identify a data file's columns by their field ids, or by a name mapping (spec, "Column Projection")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyField, build
from iceexplore.errors import Problem, problem
from iceexplore.formats import FIELD_ID, children_of, field_id
from iceexplore.graph import TableState
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType, Type, name_mapping

__all__ = ["Naming", "has_all", "has_ids", "identified", "is_by_name", "naming_of", "no_ids_problem"]

Mapping = dict[str, Any]
#: Metadata key of a field whose id comes from its name instead of the file.
_BY_NAME = b"iceexplore:by-name"
_NAME_MAPPING = "schema.name-mapping.default"


@dataclass(frozen=True)
class Naming:
    """The mapping that gives field ids to columns without one.

    Attributes
    ----------
    mapping
        The mapping in the spec's JSON form.
    given
        Whether the table's metadata has this mapping, which then applies to every column without an id. A mapping that
        is derived from the schema instead applies only to columns of which no sibling has an id.
    """

    mapping: list[Mapping]
    given: bool


def naming_of(state: TableState) -> Naming:
    """Return the table's name mapping, or one derived from the schema's names.

    If the mapping gives a column the id of a field that has a different parent in the schemas, it would assign a
    column's values to a different column. Such a mapping (Hive numbers nested fields in a different order) is ignored,
    and a problem is added.
    """
    mapping = name_mapping(state.metadata)
    if mapping is not None:
        wrong = _misfit(mapping, _parents(state.metadata.schemas), None)
        if wrong is None:
            return Naming(mapping, given=True)
        text = "The name mapping contradicts the schema: files without field ids are read by the schema's names."
        state.problems.add(
            problem(
                "metadata-invalid", state.metadata_location, text, field=_NAME_MAPPING, found=wrong, severity="warning"
            )
        )
    return Naming(_mapping_of(state.schema.fields), given=False)


def _parents(schemas: Iterable[Schema]) -> dict[int, int | None]:
    """Return the id of the parent field by field id."""
    out: dict[int, int | None] = {}

    def walk(fields: Iterable[NestedField], parent: int | None) -> None:
        for f in fields:
            out[f.field_id] = parent
            walk(_nested(f.type), f.field_id)

    for schema in schemas:
        walk(schema.fields, None)
    return out


def _misfit(mapping: Iterable[Mapping], parents: dict[int, int | None], parent: int | None) -> str | None:
    """Return a name of the mapping whose id has a different parent in the schemas; None if there is none."""
    for m in mapping:
        number = m.get("field-id")
        name = (m.get("names") or ["?"])[0]
        if number is not None and parents.get(number, parent) != parent:
            return f"{name} as {number}"
        inner = _misfit(m.get("fields", ()), parents, number) if number is not None else None
        if inner is not None:
            return f"{name}.{inner}"
    return None


def _mapping_of(fields: Iterable[NestedField]) -> list[Mapping]:
    out = []
    for f in fields:
        one: Mapping = {"names": [f.name], "field-id": f.field_id}
        children = _mapping_of(_nested(f.type))
        out.append({**one, "fields": children} if children else one)
    return out


def _nested(kind: Type) -> tuple[NestedField, ...]:
    match kind:
        case StructType(fields):
            return fields
        case ListType(element):
            return (element,)
        case MapType(key, value):
            return (key, value)
    return ()


def has_ids(fields: Iterable[AnyField]) -> bool:
    """Return whether any field, at any depth, has an id."""
    return any(field_id(f) is not None or has_ids(children_of(f.type)) for f in fields)


def no_ids_problem(location: str) -> Problem:
    """Return the problem to report for a file without field ids in a table without a name mapping."""
    text = "The data file has no field ids, and the table no name mapping: columns are read by their names."
    return problem("data-no-field-ids", location, text, field=_NAME_MAPPING)


def has_all(found: AnyField, wanted: NestedField) -> bool:
    """Return whether a field's structs contain every wanted field."""
    if not isinstance(wanted.type, StructType):
        return True
    children = {field_id(c): c for c in children_of(found.type)}
    return all(f.field_id in children and has_all(children[f.field_id], f) for f in wanted.type.fields)


def is_by_name(f: AnyField) -> bool:
    """Return whether a field of `identified` got its id from its name."""
    return _BY_NAME in (f.metadata or {})


def identified(fields: Sequence[AnyField], naming: Naming) -> list[AnyField]:
    """Return the fields of a file, with ids from the file or from their names where possible."""
    return _identified(fields, naming.mapping, naming.given)


def _identified(fields: Sequence[AnyField], mapping: Sequence[Mapping], given: bool) -> list[AnyField]:
    own = [field_id(f) for f in fields]
    names = {name: m for m in reversed(mapping) for name in m.get("names", ())}
    by_id = {m["field-id"]: m for m in mapping if m.get("field-id") is not None}
    taken = {i for i in own if i is not None}
    lends = given or not taken
    out = []
    for f, own_id in zip(fields, own, strict=True):
        number = own_id
        known = names.get(f.name) if number is None else by_id.get(number)
        if number is None and lends and known is not None and known.get("field-id") not in taken:
            number = known.get("field-id")
        kind = _typed(f.type, (known or {}).get("fields", ()), given)
        about = None if number is None else {FIELD_ID: str(number)}
        if about is not None and number != own_id:
            about[_BY_NAME] = ""
        out.append(pa.field(f.name, kind, f.nullable, about))
    return out


def _typed(kind: pa.DataType, mapping: Sequence[Mapping], given: bool) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_identified(children_of(kind), mapping, given))
    # Elements of lists and maps are found by position; in a mapping their names are those of the spec.
    if pa.types.is_map(kind):
        key = _inner(kind.key_field, mapping, "key", given).with_nullable(False)
        return build.map_(key, _inner(kind.item_field, mapping, "value", given))
    if pa.types.is_list(kind):
        return pa.list_(_inner(kind.value_field, mapping, "element", given))
    return kind


def _inner(f: AnyField, mapping: Sequence[Mapping], name: str, given: bool) -> AnyField:
    known = next((m for m in mapping if name in m.get("names", ())), None)
    kind = _typed(f.type, (known or {}).get("fields", ()), given)
    return pa.field(f.name, kind, f.nullable, f.metadata)
