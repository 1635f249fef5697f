"""Encode rows as numbers: equal rows have equal codes, for columns of any type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import (
    AnyArray,
    AnyColumn,
    AnyDictionaryArray,
    AnyExtensionArray,
    AnyListArray,
    AnyMapArray,
    DynamicArray,
    build,
)
from iceexplore.arrow import compute as pc

__all__ = ["column_codes", "row_codes"]

Codes = npt.NDArray[np.int64]


def row_codes(columns: Iterable[AnyColumn], rows: int) -> Codes:
    """Return a code per row: two rows have the same code if and only if all their values are equal.

    Null equals null and NaN equals NaN; 0.0 and -0.0 differ (as in Java's ``Objects.equals``, with which Iceberg's
    changelog compares rows). Lists and maps are equal if their items are, in order.

    Returns
    -------
    numpy.ndarray
        int64, from 0 without gaps, in arbitrary order.
    """
    code = np.zeros(rows, dtype=np.int64)
    for column in columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        code = _mixed(code, column_codes(array))
    return code


def column_codes(array: AnyArray) -> Codes:
    """Return the codes of one column; see `row_codes`."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return column_codes(cast(AnyExtensionArray, array).storage)
    if pa.types.is_dictionary(kind):
        return column_codes(cast(AnyDictionaryArray, array).dictionary_decode())
    if pa.types.is_struct(kind):
        there: Codes = np.asarray(array.is_valid()).astype(np.int64)
        # `flatten` makes the children of a null struct null: values stored under it are ignored.
        children = cast(pa.StructArray, array).flatten()
        return row_codes([pa.array(there), *children], len(array))
    if pa.types.is_map(kind):
        entries = cast(AnyMapArray, array if not array.offset else pa.concat_arrays([array]))
        items = row_codes([entries.keys, entries.items], len(entries.keys))
        return _list_codes(entries, items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_codes(array, column_codes(cast(AnyListArray, array).values))
    if pa.types.is_fixed_size_list(kind):
        return column_codes(array.cast(pa.list_(kind.value_type)))
    indices = array.dictionary_encode(null_encoding="encode").indices
    return np.asarray(indices).astype(np.int64)


def _list_codes(array: DynamicArray, items: Codes) -> Codes:
    """Return codes of lists from the codes of their items: the bytes of the items' codes represent a list."""
    raw = np.ascontiguousarray(items, dtype=np.int64)
    starts = np.asarray(array.offsets).astype(np.int64)
    lengths = np.where(np.asarray(array.is_valid()), np.diff(starts), 0)
    # Copy each list's items to a new buffer: lists may share items or leave gaps between them, so that the original one
    # cannot be used.
    taken = np.repeat(starts[:-1] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) + np.arange(lengths.sum())
    data = raw[taken].tobytes()
    offsets = np.concatenate([[0], np.cumsum(lengths)]) * raw.itemsize
    mask = pc.invert(array.is_valid())
    binary = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(array), [None, build.py_buffer(offsets.astype(np.int64)), build.py_buffer(data)]
    )
    return _mixed(column_codes(binary), np.asarray(mask).astype(np.int64))


def _mixed(a: Codes, b: Codes) -> Codes:
    if not len(a):
        return a
    size = int(b.max()) + 1
    # Both codes are below the number of rows, so their product fits into 64 bits.
    made: Codes = np.unique(a * size + b, return_inverse=True)[1].astype(np.int64)
    return made
