"""Parameters of which the quick run takes a part, and `make test-long` all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["one_of"]


def one_of(every: int, values: Iterable[Any], first: int = 0) -> list[Any]:
    """Return the values as parameters; all but one of ``every`` of them are left to the long run.

    Parameters
    ----------
    every
        3 keeps the values at 0, 3, 6, ...
    values
        What ``pytest.mark.parametrize`` takes, tuples for several names.
    first
        The position of the first that is kept.
    """
    return [
        value
        if (at - first) % every == 0
        else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long)
        for at, value in enumerate(values)
    ]
