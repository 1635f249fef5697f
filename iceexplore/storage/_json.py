"""JSON of strangers: what its objects would take is estimated before they are made."""

from __future__ import annotations

import json
from typing import Any

from iceexplore.storage._budget import Budget

__all__ = ["json_cost", "load_json"]

#: Bytes that CPython takes, measured (3.11), rounded up: a list with room for a few elements, a dictionary of up to
#: five keys, what a value takes in either (its slot, and a short string or a number), and a key that is no other's.
_LIST = 80
_DICT = 190
_VALUE = 88
_KEY = 40
#: Below this many bytes of text nothing can become dangerous: 56 bytes for each three of "[],".
_HARMLESS = 1 << 20


def json_cost(text: bytes | str) -> int:
    """Return the bytes that the parsed document takes at most, about: structure is counted, nothing is parsed."""
    signs = ("[", "{", ",", ":")
    if isinstance(text, str):
        lists, dicts, commas, colons = (text.count(sign) for sign in signs)
    else:
        lists, dicts, commas, colons = (text.count(sign.encode()) for sign in signs)
    # A comma comes before each value but a first one, whose place is in what its bracket takes. Signs inside strings
    # count too: in metadata they are few.
    return lists * _LIST + dicts * _DICT + (commas + 1) * _VALUE + colons * _KEY + len(text)


def load_json(text: str | bytes, budget: Budget, what: str) -> Any:
    """Parse a JSON text if what it becomes fits the budget.

    Parameters
    ----------
    what
        What the text is, for the error: "the table metadata".

    Raises
    ------
    MemoryLimitError
        It does not fit.
    ValueError, RecursionError
        As `json.loads` raises them.
    """
    if len(text) > _HARMLESS:
        budget.reserve(json_cost(text), what)
    return json.loads(text)
