"""Parse untrusted JSON: the memory of its objects is estimated before they are created."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from iceexplore.storage._budget import Budget

__all__ = ["JsonValue", "json_cost", "load_json"]

#: A part of a parsed JSON document (dict, list, str, int, float, bool or None) from an untrusted source: code that uses
#: such a value must check its structure first.
JsonValue: TypeAlias = Any

#: Bytes that CPython takes, measured with 3.11 and rounded up: a list with room for a few elements, a dictionary of
#: up to five keys, a value in either (its slot, and a short string or a number), and a key that is not shared.
_LIST = 80
_DICT = 190
_VALUE = 88
_KEY = 40
#: Texts of fewer bytes need no check, because they cannot take much memory: at worst, "[]," takes 56 bytes for 3.
_HARMLESS = 1 << 20


def json_cost(text: bytes | str) -> int:
    """Return an estimate of the maximum memory of the parsed document, from counting brackets, without parsing."""
    signs = ("[", "{", ",", ":")
    if isinstance(text, str):
        lists, dicts, commas, colons = (text.count(sign) for sign in signs)
    else:
        lists, dicts, commas, colons = (text.count(sign.encode()) for sign in signs)
    # A comma precedes each value but the first, which is included in its bracket's size. Brackets and commas inside
    # strings are counted, too: metadata has few of them.
    return lists * _LIST + dicts * _DICT + (commas + 1) * _VALUE + colons * _KEY + len(text)


def load_json(text: str | bytes, budget: Budget, what: str) -> JsonValue:
    """Parse a JSON text if its objects fit the budget.

    Parameters
    ----------
    what
        What the text is, for the error's message, such as "the table metadata".

    Raises
    ------
    MemoryLimitError
        The objects do not fit.
    ValueError, RecursionError
        As `json.loads` raises them.
    """
    if len(text) > _HARMLESS:
        budget.reserve(json_cost(text), what)
    return json.loads(text)
