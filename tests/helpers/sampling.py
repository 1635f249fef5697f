"""Parameters of which the quick run takes a part, and `make test-long` all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["one_of"]

#: The type of ``pytest.param``. It is a subclass of tuple, so it has to be checked before plain tuples.
_PARAM = type(pytest.param())


def one_of(every: int, values: Iterable[Any], first: int = 0) -> list[Any]:
    """Return the values as parameters; all but one of ``every`` of them are left to the long run.

    Parameters
    ----------
    every
        3 keeps the values at 0, 3, 6, ...
    values
        What ``pytest.mark.parametrize`` takes: tuples for several names, and ``pytest.param`` for a tuple that is one
        value.
    first
        The position of the first that is kept.
    """
    return [
        value if (at - first) % every == 0 else pytest.param(*_parts(value), marks=pytest.mark.long)
        for at, value in enumerate(values)
    ]


def _parts(value: Any) -> tuple[Any, ...]:
    if isinstance(value, _PARAM):
        return tuple(value.values)
    return value if isinstance(value, tuple) else (value,)
