"""Decimals by the integers under them: Python's own arithmetic rounds to 28 digits, and the spec's have up to 38."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["decimal_of", "unscaled"]


def unscaled(value: Decimal, scale: int) -> int:
    """The integer under a finite decimal at a scale, rounded down where the decimal is finer.

    ``decimal_of`` of it is the decimal itself if, and only if, the scale has room for it.
    """
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    shift = int(exponent) + scale
    power: int = 10 ** abs(shift)
    return number * power if shift >= 0 else number // power


def decimal_of(number: int, scale: int) -> Decimal:
    """The decimal over an integer."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
