"""Parse transforms of columns as users write them: ``day(ts)``, ``bucket(16, id)``, ``bucket[16](id)``."""

from __future__ import annotations

import re

from iceexplore.errors import OptionError, RuleError
from iceexplore.metadata.transforms._sources import column_names
from iceexplore.metadata.types._types import Schema

__all__ = ["parse_term", "resolve_term"]

_PART = r"(?:`((?:[^`]|``)*)`|([^.`]+))"
_QUOTED = re.compile(rf"{_PART}(?:\.{_PART})*")
_CALL = re.compile(r"\s*(\w+)\s*(?:\[\s*(\d{1,10})\s*\])?\s*\((.*)\)\s*", re.DOTALL)
_SINGULAR = {"years": "year", "months": "month", "days": "day", "hours": "hour", "date": "day", "date_hour": "hour"}
_NO_WIDTH = frozenset(("day", "hour", "identity", "month", "void", "year"))
_INT_MAX = 2**31 - 1


def parse_term(text: str) -> tuple[str, str]:
    """Return the spec's transform and the column's name: ``("bucket[16]", "id")``. A bare column is identity.

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
        return "identity", _name(text)
    name = _SINGULAR.get(call[1].lower(), call[1].lower())
    arguments = [part.strip() for part in _split(call[3])]
    widths = [call[2]] if call[2] else [a for a in arguments if a.isascii() and a.isdecimal()]
    columns = arguments if call[2] else [a for a in arguments if a not in widths]
    needs_width = name in ("bucket", "truncate")
    if (needs_width or name in _NO_WIDTH) and (len(columns), len(widths)) == (1, int(needs_width)) and columns[0]:
        width = int(widths[0]) if widths else None
        if width is None or 0 < width <= _INT_MAX:
            return (name if width is None else f"{name}[{width}]"), _name(columns[0])
    raise OptionError(
        f"{text!r} is not a transform of one column; valid: identity, year, month, day, hour, void (column), "
        "bucket (count, column), truncate (width, column)"
    )


def resolve_term(text: str, schema: Schema, *, rule: str = "partition-source") -> tuple[str, int, str]:
    """Return the transform, the column's id and its full name.

    Raises
    ------
    OptionError
        The text cannot be parsed.
    RuleError
        Rule ``rule``: there is no such column.
    """
    transform, name = parse_term(text)
    names = column_names(schema)
    if name not in names:
        raise RuleError(rule, f"{text!r}: there is no column {name!r}; valid: {', '.join(list(names)[:20])}")
    return transform, names[name], name


def _split(text: str) -> list[str]:
    """Split at commas outside backticks."""
    return [part.strip() for part in re.findall(r"(?:`(?:[^`]|``)*`|[^,])+", text)]


def _name(text: str) -> str:
    if _QUOTED.fullmatch(text.strip()) is None:
        return text.strip()  # an unpaired backtick is part of the name
    parts = re.findall(_PART, text.strip())
    return ".".join((quoted.replace("``", "`") or plain) for quoted, plain in parts)
