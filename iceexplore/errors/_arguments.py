"""Arguments as people give them: what is of another kind is refused by the argument's name, before anything is done."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from iceexplore.errors._exceptions import OptionError

__all__ = [
    "items_of",
    "known_arguments",
    "mapping_of",
    "nearest",
    "text_of",
    "texts_of",
    "version_of",
    "whole_number",
    "whole_number_of",
    "whole_numbers_of",
]


def text_of(name: str, given: Any, what: str) -> str:
    """A text that is not empty; ``what`` says what it is for."""
    if not isinstance(given, str) or not given:
        raise OptionError(f"{name}={given!r}: {what} is wanted, a text")
    return given


def items_of(name: str, given: Any, example: str) -> tuple[Any, ...]:
    """Several things, or one text alone."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise OptionError(f"{name}={given!r}: give such as {example}")
    return tuple(given)


def texts_of(name: str, given: Any, example: str) -> tuple[str, ...]:
    """Several texts, or one alone: a text is never taken for its letters."""
    found = items_of(name, given, example)
    for item in found:
        if not isinstance(item, str):
            raise OptionError(f"{name}: {item!r} is no text; give such as {example}")
    return found


def mapping_of(
    name: str, given: Any, example: str, *, keys: type = str, values: type | tuple[type, ...] = object
) -> dict[str, Any]:
    """A dictionary, by default by texts; None is an empty one."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OptionError(f"{name} is given as {_kind(given)}: a dictionary is wanted, such as {example}")
    for key, value in given.items():
        if not isinstance(key, keys) or not isinstance(value, values):
            raise OptionError(f"{name}: {{{key!r}: {value!r}}} is not of the kind that is wanted, such as {example}")
    return dict(given)


def whole_number_of(name: str, given: Any, least: int | None = None) -> int:
    """A whole number, NumPy's too; no boolean and no fraction."""
    try:
        found = None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least):
        raise OptionError(f"{name}={given!r}: a whole number{'' if least is None else f' from {least}'} is wanted")
    return found


def whole_numbers_of(name: str, given: Any) -> tuple[int, ...]:
    """Several whole numbers."""
    return tuple(whole_number_of(name, item) for item in items_of(name, given, "[1, 2]"))


def version_of(given: Any) -> int:
    """A format version."""
    try:
        version = whole_number_of("format_version", given)
    except OptionError:
        version = 0
    if version not in (1, 2, 3, 4):
        raise OptionError(f"format_version={given!r}: 1, 2, 3 or 4")
    return version


def known_arguments(
    what: str,
    given: Iterable[str],
    function: Callable[..., Any],
    hidden: Collection[str] = (),
    *more: Callable[..., Any],
) -> None:
    """Refuse names that a function (or another, ``more``) does not take, where another passes on what it is given.

    Parameters
    ----------
    hidden
        Arguments of the function that are not the user's to give.
    """
    named = (name for taker in (function, *more) for name in inspect.signature(taker).parameters)
    known = [name for name in dict.fromkeys(named) if name not in hidden]
    for name in given:
        if name not in known:
            raise OptionError(f"{what} has no argument {name!r}; {nearest(name, known)}")


def nearest(name: str, names: Sequence[str]) -> str:
    """Name the nearest of some names, or the first of them, for a message about one that is not among them."""
    close = get_close_matches(name, names, 3, 0.5)
    return f"nearest: {', '.join(close)}" if close else f"there are {', '.join(names[:20]) or 'none'}"


def whole_number(name: str, value: Any, *, least: int = 0) -> int:
    """An argument that counts something; `OptionError` says what it takes."""
    number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if number is None or number < least:
        raise OptionError(f"{name}={repr(value)[:60]}: give a whole number from {least}")
    return number


def _kind(given: Any) -> str:
    kind = type(given)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
