"""Convert types and schemas from JSON and back (spec Appendix C, "Schemas")."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from iceexplore.errors import FormatError
from iceexplore.metadata.types._parameters import PLAIN_TYPES
from iceexplore.metadata.types._types import ListType, MapType, NestedField, PrimitiveType, Schema, StructType, Type
from iceexplore.metadata.values._defaults import default_from_json, default_to_json
from iceexplore.storage import JsonValue

__all__ = ["MAX_DEPTH", "parse_schema", "parse_type", "read_schema", "schema_to_json", "type_to_json"]

#: The maximum depth of nested types in a schema: far above that of real schemas, far below Python's recursion limit.
MAX_DEPTH = 100

_INT_MAX = 2**31 - 1

_DECIMAL = re.compile(r"decimal\s*\(\s*(\d{1,4})\s*,\s*(\d{1,4})\s*\)", re.IGNORECASE)
_FIXED = re.compile(r"fixed\s*\[\s*(\d{1,10})\s*\]", re.IGNORECASE)
_GEOMETRY = re.compile(r"geometry\s*(?:\(\s*([^)]*?)\s*\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography\s*(?:\(\s*([^,)]*?)\s*(?:,\s*(\w*)\s*)?\))?", re.IGNORECASE)

#: A function that is called with a text and the spec's key for every fault; it returns to continue reading, or raises.
Report = Callable[[str, str], None]


def _raise(text: str, key: str) -> None:
    raise FormatError(text, field=key, code="metadata-invalid")


def parse_type(json: JsonValue) -> Type:
    """Parse a type from a schema's JSON.

    Type strings are parsed without regard to case and spacing, as in Java, and kept in the spec's canonical form. A
    string that is not a type of v1 to v3 is kept as an unknown type.

    Raises
    ------
    FormatError
        The JSON is neither a string nor a well-formed struct, list or map, or is nested deeper than `MAX_DEPTH`.
    """
    return _type(json, _raise, 0)


def parse_schema(json: JsonValue) -> Schema:
    """Parse a schema object.

    Raises
    ------
    FormatError
        The JSON violates the spec; the error's field is the key.
    """
    return read_schema(json, _raise)


def read_schema(json: JsonValue, report: Report, default_id: int = 0) -> Schema:
    """Parse a schema object tolerantly: faults are passed to ``report``, valid parts are kept.

    ``default_id`` replaces a missing ``schema-id``, which is optional in v1.
    """
    if not isinstance(json, dict):
        raise FormatError(f"a schema must be an object, not {_kind(json)}", field="schema", code="metadata-invalid")
    if json.get("type") != "struct":
        report(f'a schema must have "type": "struct", found {_show(json.get("type"))}', "type")
    schema_id = json.get("schema-id")
    if schema_id is None:
        schema_id = default_id
    elif not _is_int(schema_id):
        report(f"schema-id must be an int, found {_show(schema_id)}", "schema-id")
        schema_id = default_id
    identifiers = json.get("identifier-field-ids")
    if identifiers is None:
        identifiers = []
    elif not isinstance(identifiers, list) or not all(map(_is_int, identifiers)):
        report("identifier-field-ids must be a list of ints", "identifier-field-ids")
        identifiers = [i for i in identifiers if _is_int(i)] if isinstance(identifiers, list) else []
    fields = _fields(json.get("fields"), report, 0)
    return Schema(schema_id, fields, tuple(identifiers), json)


def _type(json: JsonValue, report: Report, depth: int) -> Type:
    if depth > MAX_DEPTH:
        raise FormatError(f"types are nested deeper than {MAX_DEPTH}", field="type", code="metadata-invalid")
    if isinstance(json, str):
        return _primitive(json, report)
    kind = json.get("type") if isinstance(json, dict) else None
    if kind == "struct":
        return StructType(_fields(json.get("fields"), report, depth))
    if kind == "list":
        return ListType(_inner(json, "element", report, depth))
    if kind == "map":
        return MapType(_inner(json, "key", report, depth), _inner(json, "value", report, depth))
    report(f"a type must be a string, or a struct, list or map object, found {_show(json)}", "type")
    return PrimitiveType("?")


def _primitive(text: str, report: Report) -> PrimitiveType:
    text = text.strip()
    if text in PLAIN_TYPES:
        return PrimitiveType(text)
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= 38 or scale > precision:
            report(
                f"decimal({precision},{scale}) is impossible: the precision must be 1 to 38, the scale at most that "
                "precision",
                "type",
            )
        return PrimitiveType(f"decimal({precision},{scale})")
    if match := _FIXED.fullmatch(text):
        if int(match[1]) > _INT_MAX:
            report(f"the length of {text} does not fit in an int", "type")
        return PrimitiveType(f"fixed[{int(match[1])}]")
    if match := _GEOMETRY.fullmatch(text):
        return PrimitiveType(f"geometry({match[1]})" if match[1] else "geometry")
    if match := _GEOGRAPHY.fullmatch(text):
        crs, algorithm = match[1] or "", match[2] or ""
        if not crs and not algorithm:
            return PrimitiveType("geography")
        # With only an algorithm the spec's default CRS is filled in: a type string cannot leave it empty.
        crs = crs or "OGC:CRS84"
        return PrimitiveType(f"geography({crs}, {algorithm.lower()})" if algorithm else f"geography({crs})")
    lower = text.lower()
    return PrimitiveType(lower if lower in PLAIN_TYPES else text or "?")


def _fields(json: JsonValue, report: Report, depth: int) -> tuple[NestedField, ...]:
    if not isinstance(json, list):
        report(f"fields of a struct must be a list, found {_show(json)}", "fields")
        return ()
    found = (_field(item, report, depth) for item in json)
    return tuple(f for f in found if f is not None)


def _field(json: JsonValue, report: Report, depth: int) -> NestedField | None:
    if not isinstance(json, dict):
        report(f"a field must be an object, found {_show(json)}", "fields")
        return None
    name: Any = json.get("name")
    field_id: Any = json.get("id")
    if not _is_int(field_id):
        # Everything resolves columns by id: a field without one cannot be identified.
        report(f"field {_show(name)} has no usable id (found {_show(field_id)}): left out", "id")
        return None
    if not isinstance(name, str):
        report(f"field {field_id} has no usable name (found {_show(name)})", "name")
        name = "?"
    required = json.get("required")
    if not isinstance(required, bool):
        report(f"field {name!r} must have required true or false, found {_show(required)}", "required")
        required = False
    doc = json.get("doc")
    if doc is not None and not isinstance(doc, str):
        report(f"doc of field {name!r} must be a string, found {_show(doc)}", "doc")
        doc = None
    type_ = _type(json.get("type"), report, depth + 1)
    defaults = []
    for key in ("initial-default", "write-default"):
        try:
            defaults.append(default_from_json(type_, json.get(key)))
        except FormatError as error:
            report(f"{key} of field {name!r}: {error.reason}", key)
            defaults.append(None)
    return NestedField(field_id, name, type_, required, doc, defaults[0], defaults[1])


def _inner(json: dict[str, Any], part: str, report: Report, depth: int) -> NestedField:
    field_id: Any = json.get(f"{part}-id")
    if not _is_int(field_id):
        report(f"{part}-id must be an int, found {_show(field_id)}", f"{part}-id")
        field_id = -1
    required = True if part == "key" else json.get(f"{part}-required")
    if not isinstance(required, bool):
        report(f"{part}-required must be true or false, found {_show(required)}", f"{part}-required")
        required = False
    return NestedField(field_id, part, _type(json.get(part), report, depth + 1), required)


def type_to_json(type_: Type) -> JsonValue:
    """Return the JSON of a type, as `parse_type` reads it."""
    match type_:
        case StructType(fields):
            return {"type": "struct", "fields": [_field_to_json(f) for f in fields]}
        case ListType(element):
            return {
                "type": "list",
                "element-id": element.field_id,
                "element": type_to_json(element.type),
                "element-required": element.required,
            }
        case MapType(key, value):
            return {
                "type": "map",
                "key-id": key.field_id,
                "key": type_to_json(key.type),
                "value-id": value.field_id,
                "value": type_to_json(value.type),
                "value-required": value.required,
            }
        case PrimitiveType(name):
            # Java writes decimals with a space after the comma; both forms are canonical.
            return name.replace(",", ", ") if type_.base == "decimal" else name


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return the JSON of a schema as Java writes it; defaults that are None are left out."""
    out: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        out["identifier-field-ids"] = list(schema.identifier_field_ids)
    out["fields"] = [_field_to_json(f) for f in schema.fields]
    return out


def _field_to_json(field: NestedField) -> dict[str, Any]:
    out = {"id": field.field_id, "name": field.name, "required": field.required, "type": type_to_json(field.type)}
    if field.doc is not None:
        out["doc"] = field.doc
    if field.initial_default is not None:
        out["initial-default"] = default_to_json(field.type, field.initial_default)
    if field.write_default is not None:
        out["write-default"] = default_to_json(field.type, field.write_default)
    return out


def _is_int(value: object) -> bool:
    return type(value) is int and -_INT_MAX - 1 <= value <= _INT_MAX


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _show(value: object) -> str:
    if isinstance(value, (dict, list)):
        return _kind(value)
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
