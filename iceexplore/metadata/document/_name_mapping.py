"""The name mapping: field ids for data files without any (spec, "Name Mapping Serialization")."""

from __future__ import annotations

import json
from typing import Any

from iceexplore.errors import FormatError
from iceexplore.metadata.document._model import TableMetadata
from iceexplore.metadata.document._types import MAX_DEPTH
from iceexplore.storage import JsonValue

__all__ = ["NAME_MAPPING_PROPERTY", "name_mapping", "parse_name_mapping"]

NAME_MAPPING_PROPERTY = "schema.name-mapping.default"


def name_mapping(metadata: TableMetadata) -> list[dict[str, Any]] | None:
    """Return the default name mapping as the spec's JSON (``names``, ``field-id``, ``fields``); None if there is none.

    An invalid mapping counts as none: parsing the metadata has reported it.
    """
    text = metadata.properties.get(NAME_MAPPING_PROPERTY)
    if text is None:
        return None
    try:
        document = _load(text)
        # Some writers wrap the list in an object, as if it were a struct: the intent is clear.
        return _mappings(document.get("fields") if isinstance(document, dict) else document, 0)
    except FormatError:
        return None


def parse_name_mapping(text: str) -> list[dict[str, Any]]:
    """Parse the property's value strictly by the spec.

    Raises
    ------
    FormatError
        The text is not a valid name mapping.
    """
    return _mappings(_load(text), 0)


def _load(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"it is not JSON ({type(error).__name__})") from None


def _mappings(items: JsonValue, depth: int) -> list[dict[str, Any]]:
    if not isinstance(items, list):
        raise _invalid("field mappings must be a list")
    if depth > MAX_DEPTH:
        raise _invalid(f"it is nested deeper than {MAX_DEPTH}")
    out = []
    for item in items:
        if not isinstance(item, dict):
            raise _invalid("a field mapping must be an object")
        names, field_id = item.get("names", []), item.get("field-id")
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise _invalid("names must be a list of strings")
        # A mapping without an id is valid: the field is known, but not mapped.
        if field_id is not None and type(field_id) is not int:
            raise _invalid("field-id must be an int")
        mapping: dict[str, Any] = {"names": names}
        if field_id is not None:
            mapping["field-id"] = field_id
        if item.get("fields"):
            mapping["fields"] = _mappings(item["fields"], depth + 1)
        out.append(mapping)
    return out


def _invalid(why: str) -> FormatError:
    return FormatError(f"invalid name mapping: {why}", field=NAME_MAPPING_PROPERTY, code="metadata-invalid")
