"""Parse the parameters in type strings: precision and scale, and length."""

from __future__ import annotations

import re

from iceexplore.metadata.types._types import PrimitiveType, Type

__all__ = ["PLAIN_TYPES", "decimal_parameters", "fixed_length", "is_known_type", "is_variable_length", "type_base"]

_DECIMAL = re.compile(r"decimal\s*\(\s*(\d{1,4})\s*,\s*(\d{1,4})\s*\)")
_FIXED = re.compile(r"fixed\s*\[\s*(\d{1,10})\s*\]")

#: Primitive types of v1 to v3 without parameters.
PLAIN_TYPES = frozenset(
    (
        "binary", "boolean", "date", "double", "float", "int", "long", "string", "time", "timestamp", "timestamp_ns",
        "timestamptz", "timestamptz_ns", "unknown", "uuid", "variant",
    )
)  # fmt: skip
_WITH_PARAMETERS = frozenset(("decimal", "fixed", "geography", "geometry"))


def is_known_type(type_: Type) -> bool:
    """Return whether v1 to v3 define the type (nested fields do not count); values of other types stay bytes."""
    return not isinstance(type_, PrimitiveType) or type_.base in PLAIN_TYPES or type_.base in _WITH_PARAMETERS


def type_base(type_: Type) -> str:
    """Return a type's name without parameters (``decimal``), or ``struct``, ``list`` or ``map``."""
    if isinstance(type_, PrimitiveType):
        return type_.base
    return type(type_).__name__.removesuffix("Type").lower()


def is_variable_length(type_: Type) -> bool:
    """Return whether values of a type may differ in length, so that statistics of the length are useful."""
    return type_base(type_) in ("string", "binary", "geometry", "geography", "variant")


def decimal_parameters(type_: Type) -> tuple[int, int] | None:
    """Return precision and scale; None if the type is not a decimal that the spec allows (precision 1 to 38)."""
    match = _DECIMAL.fullmatch(type_.name) if isinstance(type_, PrimitiveType) else None
    if match is None:
        return None
    precision, scale = int(match[1]), int(match[2])
    return (precision, scale) if 1 <= precision <= 38 and scale <= precision else None


def fixed_length(type_: Type) -> int | None:
    """Return the length in bytes of a ``fixed``; None for any other type."""
    match = _FIXED.fullmatch(type_.name) if isinstance(type_, PrimitiveType) else None
    return None if match is None else int(match[1])
