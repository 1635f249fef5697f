"""Delta's schema as an Iceberg schema, with the ids of its column mapping, and the name mapping of its data files.

Delta's PROTOCOL.md, "Schema Serialization Format" and "Column Mapping": each column has an id, and a physical name
by which statistics and partition values are keyed. Elements of lists and maps have ids only in some tables
(``delta.columnMapping.nested.ids``); in the others, they get the next free ids.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from iceexplore.delta._actions import whole_number
from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.storage import JsonValue

__all__ = ["DeltaSchema", "delta_schema"]

#: Iceberg types by Delta type.
_TYPES = {
    "string": "string", "long": "long", "integer": "int", "short": "int", "byte": "int", "float": "float",
    "double": "double", "boolean": "boolean", "binary": "binary", "date": "date", "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp", "variant": "variant", "void": "unknown",
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_ID, _PHYSICAL = "delta.columnMapping.id", "delta.columnMapping.physicalName"
_NESTED = "delta.columnMapping.nested.ids"
#: A type as in table metadata, and the name mapping of its nested fields.
_Converted: TypeAlias = tuple[Any, list[dict[str, Any]]]
_DEEPEST = 100
_LARGEST_ID = 2_147_483_447


@dataclass(frozen=True)
class DeltaSchema:
    """The Iceberg schema of a Delta table, with the names that Delta uses for its columns.

    Attributes
    ----------
    fields
        The fields of the Iceberg schema, as in table metadata.
    mapping
        A name mapping (Iceberg spec, "Column Projection") to the physical names in data files.
    columns
        Id and physical name of each top-level column by its name.
    last_id
        The highest id.
    """

    fields: list[dict[str, Any]]
    mapping: list[dict[str, Any]]
    columns: dict[str, tuple[int, str]]
    last_id: int


def delta_schema(text: JsonValue, last_id: int, where: str) -> DeltaSchema:
    """Convert the ``schemaString`` of a ``metaData`` action.

    Parameters
    ----------
    last_id
        The highest id that the table has given to a column; elements without an id get the ids after it.

    Raises
    ------
    FormatError
        ``text`` is not the JSON of a struct, or columns have no ids.
    UnsupportedError
        A type has no counterpart in Iceberg.
    """
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("fields"), list):
        raise FormatError("schemaString is not the JSON of a struct", location=where, field="metaData.schemaString")
    made = _Converter(where, last_id)
    fields, mapping = made.struct(found["fields"], 0)
    columns = {f["name"]: (f["id"], m["names"][0]) for f, m in zip(fields, mapping, strict=True) if m["names"]}
    return DeltaSchema(fields, mapping, columns, made.last_id)


class _Converter:
    def __init__(self, where: str, last_id: int) -> None:
        self.where = where
        self.last_id = last_id

    def struct(self, items: list[JsonValue], depth: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        if depth > _DEEPEST:
            raise self._wrong("the schema is nested too deeply")
        fields: list[dict[str, Any]] = []
        mapping: list[dict[str, Any]] = []
        for item in items:
            name = item.get("name") if isinstance(item, dict) else None
            if not isinstance(item, dict) or not isinstance(name, str):
                raise self._wrong("a column has no name")
            about = _object(item.get("metadata"))
            column_id = whole_number(about.get(_ID))
            if column_id is None or column_id > _LARGEST_ID:
                raise self._wrong(f"column {name!r} has no valid {_ID}, which adaptiveMetadata requires")
            self.last_id = max(self.last_id, column_id)
            physical = about.get(_PHYSICAL)
            physical = physical if isinstance(physical, str) else name
            kind, inside = self.type(item.get("type"), physical, _object(about.get(_NESTED)), depth)
            field = {"id": column_id, "name": name, "required": item.get("nullable") is False, "type": kind}
            comment = about.get("comment")
            fields.append({**field, "doc": comment} if isinstance(comment, str) else field)
            mapping.append({"field-id": column_id, "names": [physical], **({"fields": inside} if inside else {})})
        return fields, mapping

    def type(self, kind: JsonValue, path: str, nested: dict[str, Any], depth: int) -> _Converted:
        """Return the Iceberg type, and the name mapping of its nested fields."""
        if isinstance(kind, str):
            match = _DECIMAL.fullmatch(kind)
            if match is not None:
                return f"decimal({int(match[1])}, {int(match[2])})", []
            if kind == "decimal":
                return "decimal(10, 0)", []
            if kind.startswith(("char(", "varchar(")):
                return "string", []
            if kind in _TYPES:
                return _TYPES[kind], []
        what = kind.get("type") if isinstance(kind, dict) else None
        if what == "struct" and isinstance(kind.get("fields"), list):
            fields, mapping = self.struct(kind["fields"], depth + 1)
            return {"type": "struct", "fields": fields}, mapping
        if what == "array":
            return self._list(kind, path, nested, depth)
        if what == "map":
            return self._map(kind, path, nested, depth)
        raise UnsupportedError(f"{self.where}: Iceberg has no type for Delta's {kind!r}")

    def _list(self, kind: dict[str, Any], path: str, nested: dict[str, Any], depth: int) -> _Converted:
        inner, inside = self._part(kind.get("elementType"), f"{path}.element", nested, depth)
        made = {
            "type": "list", "element-id": inner["field-id"], "element-required": kind.get("containsNull") is False,
            "element": inside,
        }  # fmt: skip
        return made, [inner]

    def _map(self, kind: dict[str, Any], path: str, nested: dict[str, Any], depth: int) -> _Converted:
        key, key_type = self._part(kind.get("keyType"), f"{path}.key", nested, depth)
        value, value_type = self._part(kind.get("valueType"), f"{path}.value", nested, depth)
        made = {
            "type": "map", "key-id": key["field-id"], "key": key_type, "value-id": value["field-id"],
            "value-required": kind.get("valueContainsNull") is False, "value": value_type,
        }  # fmt: skip
        return made, [key, value]

    def _part(self, kind: JsonValue, path: str, nested: dict[str, Any], depth: int) -> tuple[dict[str, Any], Any]:
        """Return the name mapping and the type of a list element, map key or map value."""
        if depth > _DEEPEST:
            raise self._wrong("the schema is nested too deeply")
        part_id = whole_number(nested.get(path))
        if part_id is None or part_id > _LARGEST_ID:
            part_id = self.last_id + 1
        self.last_id = max(self.last_id, part_id)
        made, inside = self.type(kind, path, nested, depth + 1)
        mapping = {"field-id": part_id, "names": [path.rpartition(".")[2]]}
        return ({**mapping, "fields": inside} if inside else mapping), made

    def _wrong(self, text: str) -> FormatError:
        return FormatError(text, location=self.where, field="metaData.schemaString")


def _object(value: JsonValue) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
