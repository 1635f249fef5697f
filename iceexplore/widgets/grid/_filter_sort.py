"""Filter and sort the rows of a table, with Arrow on whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.widgets.grid._cells import text_of
from iceexplore.widgets.grid._query import Filter, Order
from iceexplore.widgets.grid._table import Columns, GridTable
from iceexplore.widgets.grid._text_match import contains
from iceexplore.widgets.grid._typed_values import Condition, understood
from iceexplore.widgets.grid._view import Look

__all__ = ["conditions", "rows_in_order"]

#: The number of leading elements by which lists are sorted.
_SORTED_ELEMENTS = 4


def conditions(
    table: GridTable, filters: Sequence[Filter], looks: Mapping[str, Look] | None = None
) -> list[Condition | None]:
    """Return the condition that each filter means; None for a filter on any column. Reads no file.

    Raises
    ------
    OptionError
        There is no such column.
    FilterError
        A filter's text is not a value of its column, or the column does not support the comparison.
    """
    found: list[Condition | None] = []
    for one in filters:
        if one.column is None:
            found.append(None)
            continue
        table.check([one.column])
        name = table.names[one.column]
        found.append(understood(one, name, table.kind(one.column), (looks or {}).get(name)))
    return found


def rows_in_order(
    table: GridTable, order: Order, looks: Mapping[str, Look] | None = None
) -> npt.NDArray[np.int64] | None:
    """Return the numbers of the rows that pass all filters, sorted; None for all rows in their original order.

    Sorting is stable; NaN and then nulls come last in both directions. Structs are sorted field by field, lists by
    their first four elements, other nested values by their text.

    Raises
    ------
    OptionError
        There is no such column.
    FilterError
        A filter's text is not a value of its column, or the column does not support the comparison.
    """
    rows: npt.NDArray[np.int64] | None = None
    if order.filters:
        rows = np.flatnonzero(_passing(table, order.filters, looks or {})).astype(np.int64)
    if order.sort is None:
        return rows
    place, direction = order.sort
    column = table.column(place)
    if rows is not None:
        column = column.take(build.array(rows))
    keys = list(_sort_keys(column))
    if not keys:
        return rows
    sorted_by = pa.table({str(i): key for i, key in enumerate(keys)})
    ways = [(name, "ascending" if direction == "asc" else "descending") for name in sorted_by.column_names]
    places: npt.NDArray[np.int64] = pc.sort_indices(sorted_by, sort_keys=ways).to_numpy().astype(np.int64)
    return places if rows is None else rows[places]


# Filters --------------------------------------------------------------------------------------------------------------


def _passing(table: GridTable, filters: Sequence[Filter], looks: Mapping[str, Look]) -> npt.NDArray[np.bool_]:
    """Return which rows pass all filters."""
    understood_filters = conditions(table, filters, looks)
    everywhere = any(one.column is None for one in filters)
    own = {one.column for one in filters if one.column is not None}
    written = {c: look for c in own if (look := looks.get(table.names[c])) is not None and look.texts is not None}
    sources = {table.names.index(name) for look in written.values() for name in look.sources}
    wanted = range(len(table.names)) if everywhere else own | sources
    masks = [np.zeros(0, dtype=np.bool_)]
    for part in table.parts(wanted):
        mask = np.ones(len(part), dtype=np.bool_)
        for one, condition in zip(filters, understood_filters, strict=True):
            found = _mask(part, one, condition, written.get(-1 if one.column is None else one.column))
            mask &= np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False))
        masks.append(mask)
    return np.concatenate(masks)


def _mask(part: Columns, one: Filter, condition: Condition | None, written: Look | None) -> pa.BooleanArray:
    if one.column is None or condition is None:
        mask = pa.array(np.zeros(len(part), dtype=np.bool_))
        for place in range(len(part.names)):
            mask = pc.or_(mask, pc.fill_null(contains(part.column(place), one.value), False))
        return mask
    texts = None if written is None or written.texts is None else written.texts(part)
    return condition.mask(part.column(one.column), texts)


# Sorting --------------------------------------------------------------------------------------------------------------


def _sort_keys(column: AnyArray) -> Iterator[AnyArray]:
    kind = column.type
    if pa.types.is_null(kind):
        return
    if pa.types.is_nested(kind):
        gone = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        yield pa.array(np.zeros(len(column), dtype=np.int8), mask=gone)  # null sorts after empty values
    if pa.types.is_struct(kind):
        for child in cast(pa.StructArray, column).flatten():
            yield from _sort_keys(child)
    elif pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
        starts = np.asarray(cast(AnyListArray, column).offsets)
        for i in range(_SORTED_ELEMENTS):
            at = starts[:-1] + i
            yield from _sort_keys(
                cast(AnyListArray, column).values.take(pa.array(at, pa.int64(), mask=(at >= starts[1:]) | gone))
            )
    elif pa.types.is_nested(kind):
        yield pa.array([text_of(v) for v in column.to_pylist()], pa.string())
    elif isinstance(column, pa.ExtensionArray):
        yield from _sort_keys(column.storage)
    elif pa.types.is_fixed_size_binary(kind):
        yield column.cast(pa.binary())
    else:
        yield column
