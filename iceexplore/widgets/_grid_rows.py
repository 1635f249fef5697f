"""Which rows of a table are shown, and in which order: by Arrow on columns, not value by value."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.widgets._cells import text_of
from iceexplore.widgets._grid_query import Filter, Order
from iceexplore.widgets._grid_table import Columns, GridTable

__all__ = ["rows_in_order"]

#: Elements by which lists are sorted.
_SORTED_ELEMENTS = 4
_LEAST, _MOST = -(2**63), 2**63 - 1
_DIGITS = 25
_SAMPLE = 10_000  # numbers by which is told whether many are the same
_COMPARE = {"=": pc.equal, "<": pc.less, ">": pc.greater}


def rows_in_order(table: GridTable, order: Order) -> npt.NDArray[np.int64] | None:
    """The places of the rows that pass all filters, sorted; None for every row as it stands.

    Sorting is stable; NaN and then nulls come last either way. Structs are sorted field by field, lists by their first
    four elements, other nested values by their text.

    Raises
    ------
    OptionError
        There is no such column, or its values cannot be compared so.
    """
    rows: npt.NDArray[np.int64] | None = None
    if order.filters:
        rows = np.flatnonzero(_passing(table, order.filters)).astype(np.int64)
    if order.sort is None:
        return rows
    place, direction = order.sort
    column = table.column(place)
    if rows is not None:
        column = column.take(pa.array(rows))
    keys = list(_sort_keys(column))
    if not keys:
        return rows
    sorted_by = pa.table({str(i): key for i, key in enumerate(keys)})
    ways = [(name, "ascending" if direction == "asc" else "descending") for name in sorted_by.column_names]
    places: npt.NDArray[np.int64] = pc.sort_indices(sorted_by, sort_keys=ways).to_numpy().astype(np.int64)
    return places if rows is None else rows[places]


# Filters --------------------------------------------------------------------------------------------------------------


def _passing(table: GridTable, filters: Sequence[Filter]) -> npt.NDArray[np.bool_]:
    """Which rows pass all filters."""
    everywhere = any(one.column is None for one in filters)
    wanted = range(len(table.names)) if everywhere else {one.column for one in filters if one.column is not None}
    table.check(wanted)
    masks = [np.zeros(0, dtype=np.bool_)]
    for part in table.parts(wanted):
        mask = np.ones(len(part), dtype=np.bool_)
        for one in filters:
            mask &= np.asarray(pc.fill_null(_mask(part, one), False).to_numpy(zero_copy_only=False))
        masks.append(mask)
    return np.concatenate(masks)


def _mask(part: Columns, one: Filter) -> pa.BooleanArray:
    if one.column is None:
        mask = pa.array(np.zeros(len(part), dtype=np.bool_))
        for place in range(len(part.names)):
            mask = pc.or_(mask, pc.fill_null(_contains(part.column(place), one.value), False))
        return mask
    column = part.column(one.column)
    if one.op == "null":
        return column.is_null()
    if one.op == "not null":
        return column.is_valid()
    if one.op == "contains":
        return _contains(column, one.value)
    return _compared(column, one, part.names[one.column])


def _contains(column: pa.Array, text: str) -> pa.BooleanArray:
    """Whether the text stands in a value as it is shown; in nested values: in a name or value within."""
    kind = column.type
    no = pa.array(np.zeros(len(column), dtype=np.bool_))
    if pa.types.is_null(kind):
        return no
    if pa.types.is_struct(kind):
        for child in column.flatten():
            no = pc.or_(no, pc.fill_null(_contains(child, text), False))
        return no
    if pa.types.is_map(kind):
        starts = np.asarray(column.offsets)
        hit = [pc.fill_null(_contains(part, text), False) for part in (column.keys, column.items)]
        return _any_within(column, starts, pc.or_(*hit))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _any_within(column, np.asarray(column.offsets), pc.fill_null(_contains(column.values, text), False))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        digits = text.lower().removeprefix("0x")
        try:
            wanted = bytes.fromhex(digits)
        except ValueError:
            return no
        return pc.match_substring(column.cast(pa.large_binary()), wanted)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        if not set(text) <= _written_with(kind):
            return no  # no value of the type is written so: saves making text of millions of numbers
        if pa.types.is_integer(kind):
            return _digits_contain(column, text)
        column = _as_text(column)
    return pc.match_substring(column, text, ignore_case=True)


def _digits_contain(column: pa.Array, digits: str) -> pa.BooleanArray:
    """Whether numbers have these digits: of many that are often the same, each is made text once."""
    if len(column) > _SAMPLE and len(column.slice(0, _SAMPLE).unique()) < _SAMPLE // 10:
        column = column.dictionary_encode()
        return pc.match_substring(column.dictionary.cast(pa.string()), digits).take(column.indices)
    return pc.match_substring(column.cast(pa.string()), digits)


def _written_with(kind: pa.DataType) -> set[str]:
    """Every character that the text of a value of this type may have."""
    if pa.types.is_integer(kind):
        return set("-0123456789")
    if pa.types.is_boolean(kind):
        return set("truefalsTRUEFALS")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return set("-0123456789:.+ TZtz")
    return set(string.printable)


def _any_within(column: pa.Array, offsets: npt.NDArray[Any], hit: pa.BooleanArray) -> pa.BooleanArray:
    """Per list, whether any of its elements is hit: by sums up to each offset."""
    sums = np.concatenate(([0], np.cumsum(np.asarray(hit.to_numpy(zero_copy_only=False)), dtype=np.int64)))
    return pa.array(sums[offsets[1:]] > sums[offsets[:-1]])


def _compared(column: pa.Array, one: Filter, name: str) -> pa.BooleanArray:
    kind, text = column.type, one.value.strip()
    if pa.types.is_null(kind):
        return pa.array(np.zeros(len(column), dtype=np.bool_))
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise OptionError(f"{name[:100]!r} has values of the type {str(kind)[:60]}: ask whether they contain something")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if one.op == "=":
            return pc.equal(pc.utf8_lower(column), one.value.lower())
        return _COMPARE[one.op](column, one.value)
    value = _scalar(text, kind, one, name)
    return pc.and_(column.is_valid(), value) if isinstance(value, bool) else _COMPARE[one.op](column, value)


def _whole_number(text: str, op: str) -> Any:
    """A number to compare whole numbers with; the answer itself where none of 64 bits can be equal to it."""
    value = Decimal(text)
    if value.is_nan():
        raise ValueError(text)
    if not value.is_finite() or value.adjusted() > _DIGITS:
        return (op == "<") == (value > 0) and op != "="
    whole = math.ceil(value) if op == "<" else math.floor(value)
    if op == "=" and whole != value:
        return False
    if _LEAST <= whole <= _MOST:
        return pa.scalar(whole, pa.int64())
    return (op == "<") == (value > 0) and op != "="


def _scalar(text: str, kind: pa.DataType, one: Filter, name: str) -> Any:
    """A text as a value to compare a column of this type with."""
    plain = text.replace(",", "") if pa.types.is_integer(kind) or pa.types.is_floating(kind) else text
    try:
        if pa.types.is_integer(kind):
            return _whole_number(plain, one.op)
        if pa.types.is_floating(kind):
            return pa.scalar(float(plain), pa.float64())
        if pa.types.is_boolean(kind):
            return pa.scalar({"true": True, "false": False}[plain.lower()])
        if pa.types.is_timestamp(kind):
            import pandas as pd

            when = pd.Timestamp(plain)
            if kind.tz is not None:
                when = when.tz_localize("UTC") if when.tzinfo is None else when
            return pa.scalar(when, pa.timestamp("ns", kind.tz))
        return pa.scalar(plain).cast(kind)
    except (ValueError, KeyError, TypeError, ArithmeticError, pa.ArrowException) as error:
        raise OptionError(f"{name[:100]!r} has values of the type {kind}; {text[:100]!r} is none") from error


# Sorting --------------------------------------------------------------------------------------------------------------


def _sort_keys(column: pa.Array) -> Iterator[pa.Array]:
    kind = column.type
    if pa.types.is_null(kind):
        return
    if pa.types.is_nested(kind):
        gone = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        yield pa.array(np.zeros(len(column), dtype=np.int8), mask=gone)  # null comes after what is empty
    if pa.types.is_struct(kind):
        for child in column.flatten():
            yield from _sort_keys(child)
    elif pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
        starts = np.asarray(column.offsets)
        for i in range(_SORTED_ELEMENTS):
            at = starts[:-1] + i
            yield column.values.take(pa.array(at, pa.int64(), mask=(at >= starts[1:]) | gone))
    elif pa.types.is_nested(kind):
        yield pa.array([text_of(v) for v in column.to_pylist()], pa.string())
    elif pa.types.is_fixed_size_binary(kind):
        yield column.cast(pa.binary())
    else:
        yield column


def _as_text(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([text_of(v) for v in column.to_pylist()], pa.string())
