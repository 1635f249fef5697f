"""Decimals as unscaled integers, because Python's decimal arithmetic rounds to 28 digits and the spec allows 38."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["decimal_of", "unscaled"]


def unscaled(value: Decimal, scale: int) -> int:
    """Return a finite decimal's unscaled integer at a scale, rounded down if the decimal has more digits.

    ``decimal_of`` of the result equals the decimal if and only if nothing was rounded.
    """
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    shift = int(exponent) + scale
    power: int = 10 ** abs(shift)
    return number * power if shift >= 0 else number // power


def decimal_of(number: int, scale: int) -> Decimal:
    """Return the decimal with an unscaled integer and a scale."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
