"""Parse transforms of columns as users write them: ``day(ts)``, ``bucket(16, id)``, ``bucket[16](id)``."""

from __future__ import annotations

import re

from iceexplore.errors import OptionError, RuleError
from iceexplore.metadata.transforms._functions import SQL_FUNCTIONS
from iceexplore.metadata.transforms._identity import IdentityTransform
from iceexplore.metadata.transforms._registry import TRANSFORMS, parse_transform, transform_class
from iceexplore.metadata.transforms._transform import Transform, WidthTransform
from iceexplore.metadata.types._types import Schema

__all__ = ["parse_term", "resolve_function", "resolve_term"]

_PART = r"(?:`((?:[^`]|``)*)`|([^.`]+))"
_QUOTED = re.compile(rf"{_PART}(?:\.{_PART})*")
_CALL = re.compile(r"\s*(\w+)\s*(?:\[\s*(\d{1,10})\s*\])?\s*\((.*)\)\s*", re.DOTALL)
_INT_MAX = 2**31 - 1


def parse_term(text: str) -> tuple[Transform, tuple[str, ...]]:
    """Return the transform and the names of its columns: ``bucket[16]`` and ``id``. A bare column means identity.

    Backticks around a name, or around each of its parts, are removed.

    Raises
    ------
    OptionError
        The text is neither a column nor a transform of the spec.
    """
    call = _CALL.fullmatch(text)
    if call is None:
        if not text.strip():
            raise OptionError(f"{text!r} is neither a column nor a transform like 'day(ts)' or 'bucket(16, id)'")
        return IdentityTransform(), (_name(text),)
    cls = transform_class(call[1])
    arguments = [part.strip() for part in _split(call[3])]
    widths = [call[2]] if call[2] else [a for a in arguments if a.isascii() and a.isdecimal()]
    columns = arguments if call[2] else [a for a in arguments if a not in widths]
    if cls is not None and columns and all(columns) and (len(columns) == 1 or cls.takes_several):
        names = tuple(_name(column) for column in columns)
        if not issubclass(cls, WidthTransform) and not widths:
            return cls(), names
        if issubclass(cls, WidthTransform) and len(widths) == 1 and 0 < int(widths[0]) <= _INT_MAX:
            return cls(int(widths[0])), names
    raise OptionError(f"{text!r} is not a transform of a column; valid: {_valid()}")


def _valid() -> str:
    plain = ", ".join(cls.name for cls in TRANSFORMS if cls.width_name is None)
    wide = [
        f"{cls.name} ({cls.width_name}, column{', ...' if cls.takes_several else ''})"
        for cls in TRANSFORMS
        if cls.width_name is not None
    ]
    return ", ".join([f"{plain} (column)", *wide])


def resolve_term(text: str, schema: Schema, *, rule: str = "partition-source") -> tuple[str, tuple[int, ...], str]:
    """Return the transform in the spec's notation, the ids of its columns, and their full names joined by underscores.

    Raises
    ------
    OptionError
        The text cannot be parsed.
    RuleError
        There is no such column, or one is named twice; the error has the rule ``rule``.
    """
    transform, columns = parse_term(text)
    names = {full: field.field_id for full, field in schema.walk()}
    for name in columns:
        if name not in names:
            raise RuleError(rule, f"{text!r}: there is no column {name!r}; valid: {', '.join(list(names)[:20])}")
    if len(set(columns)) < len(columns):
        raise RuleError(rule, f"{text!r} names a column twice")
    return str(transform), tuple(names[name] for name in columns), "_".join(columns)


def resolve_function(text: str, schema: Schema, *, rule: str) -> tuple[str, int, str]:
    """Parse a function of one column; return its name as in expressions, the column's id, and a name for the results.

    The function is a partition transform (``"bucket(16, id)"``) or one of `SQL_FUNCTIONS` (``"lower(name)"``).

    Raises
    ------
    OptionError
        The text cannot be parsed, or is only a column.
    RuleError
        There is no such column; the error has the rule ``rule``.
    """
    call = _CALL.fullmatch(text)
    if call is not None and call[2] is None and call[1].lower() in SQL_FUNCTIONS:
        name = call[1].lower()
        arguments = _split(call[3])
        if name == "coalesce" or len(arguments) != 1 or not arguments[0] or _CALL.fullmatch(arguments[0]):
            raise OptionError(f"{text!r}: a virtual column is a function of one column, such as lower(name)")
        _, sources, column = resolve_term(arguments[0], schema, rule=rule)
        return name, sources[0], f"{name}_{column}"
    transform, sources, column = resolve_term(text, schema, rule=rule)
    parsed = parse_transform(transform)
    if parsed.is_identity or parsed.is_void or len(sources) != 1:
        functions = ", ".join(name for name in SQL_FUNCTIONS if name != "coalesce")
        raise OptionError(
            f"{text!r} is no virtual column: give a function of one column, such as lower(name) or bucket(16, id); "
            f"valid: partition transforms, {functions}"
        )
    return transform, sources[0], parsed.default_name(column)


def _split(text: str) -> list[str]:
    """Split at commas outside backticks."""
    return [part.strip() for part in re.findall(r"(?:`(?:[^`]|``)*`|[^,])+", text)]


def _name(text: str) -> str:
    if _QUOTED.fullmatch(text.strip()) is None:
        return text.strip()  # an unpaired backtick is part of the name
    parts = re.findall(_PART, text.strip())
    return ".".join((quoted.replace("``", "`") or plain) for quoted, plain in parts)
