"""Keys of a schema's JSON that the spec does not know, kept through an evolution."""

from __future__ import annotations

from typing import Any

__all__ = ["unknown_keys", "with_unknown_keys"]

#: What a schema's JSON may have, field by field.
_KNOWN = frozenset(
    (
        "doc", "element", "element-id", "element-required", "fields", "id", "identifier-field-ids", "initial-default",
        "key", "key-id", "name", "required", "schema-id", "type", "value", "value-id", "value-required",
        "write-default",
    )
)  # fmt: skip
_WITHIN = ("fields", "type", "element", "key", "value")

#: Where an object stands: the id of a field, element or key, or, for a struct's type, what it is the type of.
Place = tuple[int | None, ...]
Unknown = dict[Place, dict[str, Any]]


def unknown_keys(json: Any) -> Unknown:
    """The unknown keys of each object of a schema, by its place."""
    out: Unknown = {}

    def collect(item: Any, above: Place) -> None:
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


def with_unknown_keys(item: Any, unknown: Unknown, above: Place = ()) -> Any:
    """A schema's JSON with the unknown keys that its fields had before."""
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
