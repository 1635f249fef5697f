"""The types of a schema: primitives by their spec name, and the three nested types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from iceexplore.render import card_html, card_of, card_text

__all__ = [
    "LINEAGE_FIELDS",
    "ListType",
    "MapType",
    "NestedField",
    "PrimitiveType",
    "Schema",
    "StructType",
    "Type",
    "has_nanosecond_timestamps",
]

#: The columns of row lineage that data files and column files may have, by field id (spec, "Reserved Field IDs").
LINEAGE_FIELDS = {2147483540: "_row_id", 2147483539: "_last_updated_sequence_number"}


@dataclass(frozen=True)
class PrimitiveType:
    """A primitive (or semi-structured) type by its string: ``long``, ``decimal(9,2)``, ``geometry(EPSG:4326)``.

    An unknown string is kept as it is (`is_known_type` is then false).
    """

    name: str

    @property
    def base(self) -> str:
        """The name without parameters: ``decimal`` of ``decimal(9,2)``, ``fixed`` of ``fixed[16]``."""
        return self.name.partition("(")[0].partition("[")[0].strip()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class StructType:
    """A struct: an ordered tuple of fields."""

    fields: tuple[NestedField, ...]

    def __str__(self) -> str:
        return "struct<" + ", ".join(f"{f.name}: {f.type}" for f in self.fields) + ">"


@dataclass(frozen=True)
class ListType:
    """A list; its element is a field named ``element``."""

    element: NestedField

    def __str__(self) -> str:
        return f"list<{self.element.type}>"


@dataclass(frozen=True)
class MapType:
    """A map; its fields are named ``key`` and ``value``."""

    key: NestedField
    value: NestedField

    def __str__(self) -> str:
        return f"map<{self.key.type}, {self.value.type}>"


Type = PrimitiveType | StructType | ListType | MapType


def has_nanosecond_timestamps(format_version: int) -> bool:
    """Return whether a format version has ``timestamp_ns`` and ``timestamptz_ns`` (spec, "Primitive Types")."""
    return format_version >= 3


@dataclass(frozen=True)
class NestedField:
    """A field of a schema or struct, a list's element, or a map's key or value."""

    field_id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None


@dataclass(frozen=True)
class Schema:
    """A schema of the table. ``schema_id`` is 0 where v1 metadata has none."""

    schema_id: int
    fields: tuple[NestedField, ...]
    identifier_field_ids: tuple[int, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def walk(self) -> Iterator[tuple[str, NestedField]]:
        """Yield every field, depth first, with its full dotted name (``points.element.x``)."""
        yield from _walk("", self.fields)

    def by_id(self) -> dict[int, tuple[str, NestedField]]:
        """Return full name and field by field id."""
        return {f.field_id: (name, f) for name, f in self.walk()}

    def find(self, field_id: int) -> NestedField | None:
        """Return the field with this id at any depth, None if there is none."""
        return next((f for _, f in self.walk() if f.field_id == field_id), None)

    def __repr__(self) -> str:
        return card_text(card_of(self))

    def _repr_html_(self) -> str:
        return card_html(card_of(self))


def _walk(prefix: str, fields: tuple[NestedField, ...]) -> Iterator[tuple[str, NestedField]]:
    for f in fields:
        name = f"{prefix}.{f.name}" if prefix else f.name
        yield name, f
        match f.type:
            case StructType(children):
                yield from _walk(name, children)
            case ListType(element):
                yield from _walk(name, (element,))
            case MapType(key, value):
                yield from _walk(name, (key, value))
