"""Decimals and the integers under them, held against fractions, which round nothing."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

from hypothesis import given
from hypothesis import strategies as st

from iceexplore.metadata import decimal_of, unscaled

NUMBERS = st.integers(-(10**38) + 1, 10**38 - 1)


@given(NUMBERS, st.integers(0, 38), st.integers(0, 38))
def test_the_integer_under_a_decimal(number: int, scale: int, other: int) -> None:
    value = decimal_of(number, scale)
    assert Fraction(value) == Fraction(number, 10**scale)
    assert value.as_tuple().exponent == -scale
    found = unscaled(value, other)
    assert found == floor(Fraction(value) * 10**other)
    assert (decimal_of(found, other) == value) == ((Fraction(value) * 10**other).denominator == 1)


def test_forms_of_one_number() -> None:
    for text in ("100", "1E+2", "1.00E2", "100.000", "10.0E1"):
        assert unscaled(Decimal(text), 2) == 10_000
    assert (unscaled(Decimal("-0.015"), 2), unscaled(Decimal("0.015"), 2)) == (-2, 1)
    assert str(decimal_of(unscaled(Decimal("-0"), 2), 2)) == "0.00"
