"""Convert Arrow scalars to Python values, also where Python's calendar ends."""

from __future__ import annotations

from typing import Any, cast

from iceexplore.arrow._types import AnyScalar, PlainValue

__all__ = ["plain_value"]


def plain_value(value: AnyScalar) -> PlainValue:
    """Convert an Arrow scalar to a Python value.

    A date or timestamp that Python cannot represent, such as one after the year 9999, becomes the number that Iceberg
    stores.
    """
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # Python cannot represent this date or time
        return cast(Any, value).value
