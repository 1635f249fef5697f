"""Parse types in user notation: ``long``, ``decimal(10, 2)``, ``list<string>``, ``struct<a: int, b: string>``.

Spark's names are accepted too: ``bigint``, ``smallint``, ``array<...>``, ``timestamp_ntz``, ``varchar(10)``. One name
is ambiguous: ``timestamp`` is Iceberg's, without a time zone (Spark's ``timestamp`` is Iceberg's ``timestamptz``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from iceexplore.errors import FormatError, OptionError
from iceexplore.metadata import (
    PLAIN_TYPES,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    decimal_parameters,
    fixed_length,
    parse_type,
    type_base,
)
from iceexplore.writing._foreign_schemas import foreign_type

__all__ = ["checked_type", "type_of"]

#: The maximum nesting, the same as for reading schemas.
_MAX_DEPTH = 100

_ALIASES = {
    "bigint": "long",
    "bool": "boolean",
    "byte": "int",
    "integer": "int",
    "real": "float",
    "short": "int",
    "smallint": "int",
    "text": "string",
    "timestamp_ltz": "timestamptz",
    "timestamp_ntz": "timestamp",
    "tinyint": "int",
    "void": "unknown",
}
_WORD = re.compile(r"\s*([A-Za-z_]\w*)")
_PARAMETERS = re.compile(r"\s*(\([^()]*\)|\[[^\[\]]*\])")
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s:`<>,()\[\]]+))")


def type_of(given: object) -> Type:
    """Return the type for a string, a type's JSON, or a type object (also PyArrow's or PyIceberg's); ids are ignored.

    In a string every field, element and value is optional; JSON can make them required.

    Raises
    ------
    OptionError
        The argument is not a type; the message shows where parsing stopped.
    """
    if isinstance(given, (PrimitiveType, StructType, ListType, MapType)):
        return given
    try:
        if isinstance(given, Mapping):
            return checked_type(parse_type(dict(given)))
        foreign = foreign_type(given)
        if foreign is not None:
            return checked_type(foreign)
        parser = _Parser(given)
        found = parser.type(0)
        parser.end()
        return checked_type(found)
    except FormatError as error:
        raise OptionError(f"{given!r} is not a type: {error.reason}") from None


class _Parser:
    def __init__(self, text: object) -> None:
        if not isinstance(text, str):
            raise OptionError(f"{text!r} is not a type: give a string such as 'decimal(10, 2)' or 'list<string>'")
        self.text = text
        self.at = 0

    def type(self, depth: int) -> Type:
        if depth > _MAX_DEPTH:
            raise OptionError(f"types are nested deeper than {_MAX_DEPTH}")
        word = self._match(_WORD, "a type")[1].lower()
        if word in ("list", "array"):
            self._expect("<")
            element = self.type(depth + 1)
            self._expect(">")
            return ListType(NestedField(0, "element", element))
        if word == "map":
            self._expect("<")
            key = self.type(depth + 1)
            self._expect(",")
            value = self.type(depth + 1)
            self._expect(">")
            return MapType(NestedField(0, "key", key, True), NestedField(0, "value", value))
        if word == "struct":
            return self._struct(depth)
        parameters = _PARAMETERS.match(self.text, self.at)
        if parameters:
            self.at = parameters.end()
        if word in ("varchar", "char"):
            return PrimitiveType("string")
        name = _ALIASES.get(word, word)
        return parse_type(name + (parameters[1] if parameters else ""))

    def _struct(self, depth: int) -> StructType:
        self._expect("<")
        fields: list[NestedField] = []
        while not self._next(">"):
            if fields:
                self._expect(",")
            name = self._match(_NAME, "a field's name")
            self._expect(":")
            fields.append(NestedField(0, (name[1] or "").replace("``", "`") or name[2], self.type(depth + 1)))
        return StructType(tuple(fields))

    def end(self) -> None:
        if self.text[self.at :].strip():
            raise self._error("end of string")

    def _match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self._error(what)
        self.at = found.end()
        return found

    def _next(self, mark: str) -> bool:
        rest = self.text[self.at :]
        found = rest.lstrip().startswith(mark)
        if found:
            self.at += len(rest) - len(rest.lstrip()) + len(mark)
        return found

    def _expect(self, mark: str) -> None:
        if not self._next(mark):
            raise self._error(repr(mark))

    def _error(self, what: str) -> OptionError:
        return OptionError(f"{self.text!r} is not a type: expected {what} at character {self.at + 1}")


def checked_type(type_: Type) -> Type:
    """Return the type if all of its primitive types are in the spec and data files can contain it.

    Raises
    ------
    OptionError
        A type is unknown, or data files cannot contain it.
    """
    match type_:
        case StructType(()):
            raise OptionError("a struct needs at least one field: Parquet has no empty groups")
        case StructType(fields):
            for field in fields:
                checked_type(field.type)
        case ListType(element):
            checked_type(element.type)
        case MapType(key, value):
            checked_type(key.type)
            checked_type(value.type)
        case PrimitiveType(name):
            match type_base(type_):
                case "decimal":
                    known = decimal_parameters(type_) is not None
                case "fixed":
                    length = fixed_length(type_)
                    if length == 0:
                        raise OptionError(
                            f"{name!r}: the length must be at least 1; Parquet has no empty fixed-length values"
                        )
                    known = length is not None
                case "geometry" | "geography":
                    known = True
                case _:
                    known = name in PLAIN_TYPES
            if not known:
                raise OptionError(
                    f"{name!r} is not a type; choose one of {', '.join(sorted(PLAIN_TYPES))}, decimal(precision, "
                    "scale), fixed[length], geometry, geography, list, map and struct"
                )
    return type_
