"""Units that a partition transform cuts a number line into: hours to years, truncated numbers and texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from iceexplore.planning.advice._axis import Axis, Floats

__all__ = ["TIMES", "Units", "number_units", "text_units", "time_units"]

#: Units of a time column, the finest first.
TIMES = ("hours", "days", "months", "years")
_CODES = {"hours": "h", "days": "D", "months": "M", "years": "Y"}


@dataclass(frozen=True)
class Units:
    """A way to cut a number line.

    Attributes
    ----------
    number
        Of values on the line the number of the unit that each is in.
    start
        Of units the place where each begins.
    """

    number: Callable[[Floats], Floats]
    start: Callable[[Floats], Floats]


def number_units(width: float) -> Units:
    """Units of a fixed width, from 0."""
    # A decimal's step is not a float's: what is a border but for rounding is one.
    return Units(lambda x: np.floor(x / width + 1e-9), lambda k: k * width)


def text_units(axis: Axis, length: int) -> Units:
    """Texts with the same beginning: so many characters after those that all bounds share."""
    return number_units(axis.base ** (axis.digits - length))


def time_units(base: str, unit: str) -> Units:
    """Hours to years of a stored date or timestamp, since 1970."""
    stored = "D" if base == "date" else "ns" if "_ns" in base else "us"
    code = _CODES[unit]

    def number(values: Floats) -> Floats:
        times = np.clip(values, -9e18, 9e18).astype(np.int64).view(f"datetime64[{stored}]")
        return np.asarray(times.astype(f"datetime64[{code}]").astype(np.int64)).astype(np.float64)

    def start(numbers: Floats) -> Floats:
        limit = np.array([-9e18, 9e18]).astype(np.int64).view(f"datetime64[{stored}]")
        least, most = limit.astype(f"datetime64[{code}]").astype(np.int64) + np.array([1, -1])
        times = np.clip(numbers, least, most).astype(np.int64).view(f"datetime64[{code}]")
        return np.asarray(times.astype(f"datetime64[{stored}]").astype(np.int64)).astype(np.float64)

    return Units(number, start)
