"""Convert Arrow columns to Python values, a column at a time, without creating a scalar for each value."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, AnyListArray, AnyMapArray, DynamicScalar, PlainValue, build

__all__ = ["array_values"]


def array_values(column: AnyColumn) -> list[Any]:
    """Return the values that a DataFrame with Arrow types would hold; null is None or pandas' NA.

    Times beyond Python's calendar, which other engines may write, become text.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    try:
        return _boxed(array)
    except (ValueError, OverflowError):
        return [_one_of(array.slice(i, 1)) for i in range(len(array))]


def _boxed(array: AnyArray) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):  # pandas' types keep nanoseconds
        import pandas as pd

        return list(pd.arrays.ArrowExtensionArray(array))
    return _values(array)


def _values(array: AnyArray) -> list[Any]:
    """Return what Arrow's ``to_pylist`` returns, but without creating a scalar for every nested value."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return list(array.to_pylist())
    if pa.types.is_struct(kind) and kind.num_fields:
        names = [kind.field(i).name for i in range(kind.num_fields)]
        columns = [_values(child) for child in cast(pa.StructArray, array).flatten()]
        return _or_null(array, [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])
    if pa.types.is_map(kind):
        pairs_of = cast(AnyMapArray, array)
        ends = build.to_pylist(pairs_of.offsets)
        first, count = ends[0], ends[-1] - ends[0]
        keys, items = (_values(part.slice(first, count)) for part in (pairs_of.keys, pairs_of.items))
        pairs = list(zip(keys, items, strict=True))
        return _or_null(array, _cut(pairs, ends))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lists = cast(AnyListArray, array)
        ends = build.to_pylist(lists.offsets)
        return _or_null(array, _cut(_values(lists.values.slice(ends[0], ends[-1] - ends[0])), ends))
    return list(array.to_pylist())


def _cut(values: list[Any], ends: list[int]) -> list[list[Any]]:
    """Cut values into consecutive lists that end at these offsets."""
    return [values[low - ends[0] : high - ends[0]] for low, high in pairwise(ends)]


def _or_null(array: AnyArray, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [value if there else None for value, there in zip(values, array.is_valid().to_pylist(), strict=True)]


def _one_of(array: AnyArray) -> PlainValue:
    """Return the value of a one-element array; times beyond Python's calendar become text."""
    try:
        return _boxed(array)[0]
    except (ValueError, OverflowError):
        return _beyond(array[0])


def _beyond(scalar: DynamicScalar) -> PlainValue:
    """Return an Arrow scalar as a Python value, with times beyond Python's calendar as text."""
    import numpy as np

    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(kind):
        return {kind.field(i).name: _beyond(scalar[i]) for i in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return [(_beyond(pair[0]), _beyond(pair[1])) for pair in scalar.values]
    if pa.types.is_nested(kind):
        return [_beyond(one) for one in scalar.values]
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        pass
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)) or scalar.value == -(2**63):  # NaT in numpy
        return str(scalar.value)
    unit: Any = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
    text = str(np.datetime64(scalar.value, unit)).replace("T", " ")
    return text if getattr(kind, "tz", None) is None else f"{text}+00:00"
