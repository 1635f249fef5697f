"""Check users' arguments before any work starts; an error names the argument and what it accepts."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from iceexplore.errors._exceptions import OptionError

__all__ = [
    "Unchecked",
    "items_of",
    "known_arguments",
    "mapping_of",
    "nearest",
    "seconds_of",
    "text_of",
    "texts_of",
    "version_of",
    "whole_number",
    "whole_number_of",
    "whole_numbers_of",
]

#: A user's argument, which may have any type: the function that receives it raises an error if the type is wrong.
Unchecked: TypeAlias = Any


def text_of(name: str, given: object, what: str) -> str:
    """Return the argument if it is a string that is not empty; otherwise raise an error that asks for ``what``."""
    if not isinstance(given, str) or not given:
        raise OptionError(f"{name}={given!r}: expected {what}, as a string")
    return given


def items_of(name: str, given: object, example: str) -> tuple[Any, ...]:
    """Return an iterable as a tuple; a single string counts as one item."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise OptionError(f"{name}={given!r}: expected, for example, {example}")
    return tuple(given)


def texts_of(name: str, given: object, example: str) -> tuple[str, ...]:
    """Return strings as a tuple; a single string counts as one item and is not split into letters."""
    found = items_of(name, given, example)
    for item in found:
        if not isinstance(item, str):
            raise OptionError(f"{name}: {item!r} is not a string; expected, for example, {example}")
    return found


def mapping_of(
    name: str, given: object, example: str, *, keys: type = str, values: type | tuple[type, ...] = object
) -> dict[str, Any]:
    """Return a mapping as a dictionary, by default with string keys; None gives an empty one."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OptionError(f"{name} is of type {_kind(given)}: expected a dictionary such as {example}")
    for key, value in given.items():
        if not isinstance(key, keys) or not isinstance(value, values):
            raise OptionError(f"{name}: {{{key!r}: {value!r}}} has a wrong type; expected, for example, {example}")
    return dict(given)


def whole_number_of(name: str, given: Unchecked, least: int | None = None) -> int:
    """Return an integer, converting NumPy's types; refuse booleans and fractions."""
    try:
        found = None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least):
        raise OptionError(f"{name}={given!r}: expected a whole number{'' if least is None else f', at least {least}'}")
    return found


def seconds_of(name: str, given: object) -> float:
    """Return a time limit: a number of seconds above 0."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not given > 0:
        raise OptionError(f"{name}={given!r}: give a number of seconds above 0, or None")
    return float(given)


def whole_numbers_of(name: str, given: object) -> tuple[int, ...]:
    """Return integers as a tuple; refuse a string."""
    return tuple(whole_number_of(name, item) for item in items_of(name, given, "[1, 2]"))


def version_of(given: object) -> int:
    """Return a format version: 1, 2, 3 or 4."""
    try:
        version = whole_number_of("format_version", given)
    except OptionError:
        version = 0
    if version not in (1, 2, 3, 4):
        raise OptionError(f"format_version={given!r}: expected 1, 2, 3 or 4")
    return version


def known_arguments(
    what: str,
    given: Iterable[str],
    function: Callable[..., Any],
    hidden: Collection[str] = (),
    *more: Callable[..., Any],
) -> None:
    """Refuse argument names that neither ``function`` nor any of ``more`` accepts, before they are passed on.

    Parameters
    ----------
    hidden
        Parameters that the functions have, but that users may not pass.
    """
    named = (name for taker in (function, *more) for name in inspect.signature(taker).parameters)
    known = [name for name in dict.fromkeys(named) if name not in hidden]
    for name in given:
        if name not in known:
            raise OptionError(f"{what} has no argument {name!r}; {nearest(name, known)}")


def nearest(name: str, names: Sequence[str]) -> str:
    """Return a hint for an unknown name: the nearest valid names or, if none is near, the first 20 valid ones."""
    close = get_close_matches(name, names, 3, 0.5)
    return f"nearest: {', '.join(close)}" if close else f"valid: {', '.join(names[:20]) or 'none'}"


def whole_number(name: str, value: object, *, least: int = 0) -> int:
    """Return an argument that must be an integer of at least ``least``; raise `OptionError` otherwise."""
    number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if number is None or number < least:
        raise OptionError(f"{name}={repr(value)[:60]}: expected a whole number, at least {least}")
    return number


def _kind(given: object) -> str:
    kind = type(given)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
