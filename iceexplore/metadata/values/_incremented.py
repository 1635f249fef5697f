"""Increment a truncated text or bytes value, so that it is an upper bound of all values that begin with it."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["incremented"]

T = TypeVar("T", str, bytes)


def incremented(value: T) -> T | None:
    """Return the lowest value, no longer than ``value``, that is above all values that begin with ``value``.

    This is the upper bound that writers store for a value that they truncate: ``abce`` for ``abcd``. A last character
    or byte that cannot be incremented is dropped, and the one before it is incremented instead. The result is None if
    none can be incremented. Code points of surrogates, which no text can contain, are skipped, as in Java's
    ``UnicodeUtil.truncateStringMax``; for bytes, compare ``BinaryUtil.truncateBinaryMax``.
    """
    if isinstance(value, bytes):
        for i in range(len(value) - 1, -1, -1):
            if value[i] < 0xFF:
                return value[:i] + bytes([value[i] + 1])
        return None
    for i in range(len(value) - 1, -1, -1):
        code = ord(value[i]) + 1
        if code <= 0x10FFFF:
            return value[:i] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)
    return None
