"""Encode typed Arrow arrays to columns of binary single values, without a Python object per value (spec Appendix D)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, Binaries, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.metadata.types._arrow import arrow_type
from iceexplore.metadata.types._parameters import decimal_parameters, type_base
from iceexplore.metadata.types._types import Type

__all__ = ["encode_values"]

#: The little-endian numpy types in which fixed-width types are stored.
_NUMBERS = {"date": "<i4", "double": "<f8", "float": "<f4", "int": "<i4", "long": "<i8"} | dict.fromkeys(
    ("time", "timestamp", "timestamp_ns", "timestamptz", "timestamptz_ns"), "<i8"
)


def encode_values(type_: Type, array: AnyColumn) -> Binaries:
    """Encode a column of values in binary single-value form; the inverse of `decode_values`.

    Parameters
    ----------
    type_
        The column's type. ``variant``, ``geometry``, ``geography``, ``fixed``, ``binary`` and unknown types are taken
        as bytes; ``unknown`` and nested types have no binary form, so all their values are null.
    array
        Values of `arrow_type`, or of a type that Arrow casts to it without loss (for example days as integers).

    Raises
    ------
    OptionError
        The values do not fit the type.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    base, target = type_base(type_), arrow_type(type_)
    if pa.types.is_null(target) or pa.types.is_nested(target):
        return pa.nulls(len(array), pa.binary())
    if array.type != target:
        try:
            array = array.cast(target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise OptionError(f"values of {array.type} cannot be stored as {type_}: {error}") from None
    if base == "decimal" and decimal_parameters(type_) is not None:
        return _decimals(array)
    if base == "boolean":
        numbers = np.asarray(pc.fill_null(array, False)).astype(np.uint8)
        return _rows(numbers.reshape(-1, 1), array)
    if base in _NUMBERS:
        dtype = _NUMBERS[base]
        plain = array.view({"<i4": pa.int32(), "<i8": pa.int64()}.get(dtype, target))
        numbers = np.ascontiguousarray(np.asarray(pc.fill_null(plain, 0)), dtype=dtype)
        return _rows(numbers.view(np.uint8).reshape(len(array), np.dtype(dtype).itemsize), array)
    return array.cast(pa.binary())


def _rows(cells: npt.NDArray[np.uint8], array: AnyArray) -> Binaries:
    """Return fixed-length values from rows of bytes, null where ``array`` is."""
    offsets = (np.arange(len(cells) + 1) * cells.shape[1]).astype(np.int32)
    return _binary(offsets, cells, array)


def _binary(offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8], array: AnyArray) -> Binaries:
    valid = array.is_valid().buffers()[1] if array.null_count else None
    buffers = [valid, build.py_buffer(offsets), build.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)


def _decimals(array: AnyArray) -> Binaries:
    """Encode Arrow's 16 little-endian bytes as the minimal big-endian two's complement, as Java does."""
    count = len(array)
    if count == 0:
        return pa.array([], pa.binary())
    held = build.frombuffer(array.buffers()[1], np.uint8, count * 16, array.offset * 16).reshape(count, 16)
    cells = held[:, ::-1]
    negative = cells[:, 0] >= 0x80
    sign = np.where(negative, np.uint8(0xFF), np.uint8(0))
    telling = cells != sign[:, None]
    first = np.where(telling.any(axis=1), telling.argmax(axis=1), 15)
    # Keep one more byte where the first significant byte alone would change the number's sign.
    wrong = (cells[np.arange(count), first] >= 0x80) != negative
    first = first - wrong
    if array.null_count:
        first = np.where(np.asarray(array.is_valid()), first, 16)
    offsets = np.concatenate([[0], np.cumsum(16 - first)]).astype(np.int32)
    return _binary(offsets, cells[np.arange(16) >= first[:, None]], array)
