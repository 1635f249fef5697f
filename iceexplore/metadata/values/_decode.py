"""Decode columns of binary single values to typed Arrow arrays, without a Python object per value (spec Appendix D)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.metadata.types._arrow import arrow_type
from iceexplore.metadata.types._parameters import decimal_parameters, fixed_length, type_base
from iceexplore.metadata.types._types import Type
from iceexplore.metadata.values._temporal import DAY_MICROS, TIMESTAMP_UNITS

__all__ = ["decode_values"]

_Bools = npt.NDArray[np.bool_]


class _Raw:
    """A binary array as numpy arrays: the bytes, and each value's start, length and validity."""

    def __init__(self, array: AnyArray) -> None:
        self.array = array
        self.count = len(array)
        _, offsets, data = array.buffers()
        if self.count == 0 or offsets is None:
            ends: Any = np.zeros(self.count + 1, dtype=np.int64)
        else:
            ends = build.frombuffer(offsets, dtype=np.int64, count=self.count + 1, offset=array.offset * 8)
        self.starts = ends[:-1]
        self.lengths = np.diff(ends)
        self.data = build.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        if array.null_count:
            self.there: _Bools = np.asarray(array.is_valid())
            # The bytes under a null are undefined, and so is their length.
            self.lengths = np.where(self.there, self.lengths, 0)
        else:
            self.there = np.ones(self.count, dtype=np.bool_)

    def matrix(self, rows: _Bools, width: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of the marked values, each ``width`` long, as one row per value."""
        starts = self.starts[rows]
        count = len(starts)
        if count == 0:
            return np.empty((0, width), np.uint8)
        # Values of one length that are adjacent (the usual case) are a view of the buffer.
        if starts[-1] - starts[0] == (count - 1) * width and bool(np.all(np.diff(starts) == width)):
            cells = self.data[starts[0] : starts[0] + count * width].reshape(count, width)
        else:
            cells = self.data[starts[:, None] + np.arange(width)]
        return cells

    def numbers(self, rows: _Bools, dtype: str) -> npt.NDArray[Any]:
        """Return the marked values as little-endian numbers."""
        width = np.dtype(dtype).itemsize
        return np.ascontiguousarray(self.matrix(rows, width)).reshape(-1).view(dtype)


def decode_values(type_: Type, raw: AnyColumn) -> tuple[AnyArray, pa.BooleanArray]:
    """Decode a column of values in binary single-value form.

    Parameters
    ----------
    type_
        The column's current type. 4-byte values of a long, double, timestamp or timestamp_ns predate a promotion
        and are widened (spec, "Schema Evolution").
    raw
        Binary values of any Arrow binary layout, or a chunked array of them.

    Returns
    -------
    tuple
        An array of `arrow_type`, and a boolean array that marks the values that do not fit the type, which are null in
        the first. Bounds of ``variant``, ``geometry`` and ``geography`` (serialized variants, points) stay binary.
        Never raises for invalid bytes.
    """
    if isinstance(raw, pa.ChunkedArray):
        raw = raw.combine_chunks()
    target = arrow_type(type_)
    base = type_base(type_)
    if base == "string":
        return _strings(raw)
    if base == "fixed" or (pa.types.is_binary(target) and not pa.types.is_fixed_size_binary(target)):
        return _binary(type_, raw.cast(pa.binary()))
    source = _Raw(raw.cast(pa.large_binary()))
    decoder = _DECODERS.get(base)
    if base == "decimal":
        return _decimals(type_, source)
    if decoder is None:  # unknown and nested types have no binary form (spec Appendix D)
        return build.nulls(source.count, target), pa.array(source.there)
    values, good = decoder(source, base)
    if not isinstance(values, pa.Array):
        values = pa.array(values, mask=None if good.all() else ~good)
    if values.type != target:
        values = values.cast(target) if pa.types.is_fixed_size_binary(target) else values.view(target)
    return values, pa.array(source.there & ~good)


def _ints(source: _Raw, base: str) -> tuple[npt.NDArray[Any], _Bools]:
    width = 4 if base in ("int", "date") else 8
    good = source.there & (source.lengths == width)
    dtype = f"<i{width}"
    if bool(good.all()):
        values = source.numbers(good, dtype)
    else:
        values = np.zeros(source.count, dtype=dtype)
        values[good] = source.numbers(good, dtype)
        old = source.there & (source.lengths == 4)
        if base in ("long", "timestamp", "timestamp_ns") and old.any():
            narrow = source.numbers(old, "<i4").astype("<i8")
            scale = 1 if base == "long" else 86_400 * TIMESTAMP_UNITS[base][0]
            fits = np.abs(narrow) <= (2**63 - 1) // scale
            values[np.flatnonzero(old)[fits]] = narrow[fits] * scale
            good = good.copy()
            good[np.flatnonzero(old)[fits]] = True
    if base == "time":
        good = good & (values >= 0) & (values < DAY_MICROS)
    return values, good


def _floats(source: _Raw, base: str) -> tuple[npt.NDArray[Any], _Bools]:
    width = 4 if base == "float" else 8
    good = source.there & (source.lengths == width)
    if bool(good.all()):
        return source.numbers(good, f"<f{width}"), good
    values = np.zeros(source.count, dtype=f"<f{width}")
    values[good] = source.numbers(good, f"<f{width}")
    if base == "double":
        old = source.there & (source.lengths == 4)
        values[old] = source.numbers(old, "<f4")
        good = good | old
    return values, good


def _booleans(source: _Raw, base: str) -> tuple[npt.NDArray[Any], _Bools]:
    good = source.there & (source.lengths == 1)
    values = np.zeros(source.count, dtype=np.bool_)
    values[good] = source.matrix(good, 1)[:, 0] != 0
    return values, good


def _uuids(source: _Raw, base: str) -> tuple[AnyArray, _Bools]:
    good = source.there & (source.lengths == 16)
    cells = np.zeros((source.count, 16), dtype=np.uint8)
    cells[good] = source.matrix(good, 16)
    return _fixed_array(pa.binary(16), cells, good), good


_DECODERS: dict[str, Callable[[_Raw, str], tuple[Any, _Bools]]] = {
    "boolean": _booleans,
    "date": _ints,
    "double": _floats,
    "float": _floats,
    "int": _ints,
    "long": _ints,
    "time": _ints,
    "uuid": _uuids,
} | dict.fromkeys(TIMESTAMP_UNITS, _ints)


def _decimals(type_: Type, source: _Raw) -> tuple[AnyArray, pa.BooleanArray]:
    """Decode big-endian two's complement of up to 16 bytes to Arrow's 16 little-endian bytes."""
    target = arrow_type(type_)
    parameters = decimal_parameters(type_)
    assert parameters is not None  # impossible decimals are handled as binary
    wide = np.zeros((source.count, 16), dtype=np.uint8)
    good = np.zeros(source.count, dtype=np.bool_)
    for length in np.unique(source.lengths[source.there]):
        if not 1 <= length <= 16:
            continue
        rows = source.there & (source.lengths == length)
        cells = source.matrix(rows, int(length))
        sign = np.where(cells[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
        wide[rows] = np.concatenate([np.broadcast_to(sign, (len(cells), 16 - length)), cells], axis=1)
        good |= rows
    little = np.ascontiguousarray(wide[:, ::-1])
    halves = little.view("<u8")
    low, high = halves[:, 0], halves[:, 1].view("<i8")
    limit = 10 ** parameters[0]
    good &= _less(high, low, limit) & ~_less(high, low, -limit + 1)
    return _fixed_array(target, little, good), pa.array(source.there & ~good)


def _less(high: npt.NDArray[Any], low: npt.NDArray[Any], limit: int) -> _Bools:
    """Return whether each 128-bit number is below ``limit``."""
    top, bottom = np.int64(limit >> 64), np.uint64(limit & (2**64 - 1))
    below: _Bools = (high < top) | ((high == top) & (low < bottom))
    return below


def _fixed_array(target: pa.DataType, cells: npt.NDArray[np.uint8], good: _Bools) -> AnyArray:
    """Return an array of 16-byte values, null where they are invalid."""
    valid = None if good.all() else pa.array(good).buffers()[1]
    return pa.Array.from_buffers(target, len(cells), [valid, build.py_buffer(np.ascontiguousarray(cells))])


def _strings(raw: AnyArray) -> tuple[AnyArray, pa.BooleanArray]:
    raw = raw.cast(pa.binary())
    try:
        return raw.cast(pa.string()), pa.array(np.zeros(len(raw), dtype=np.bool_))
    except pa.ArrowInvalid:
        pass
    # This is reached only for a damaged column, whose values are then checked one by one.
    bad = np.fromiter((not _is_utf8(v) for v in raw.to_pylist()), dtype=np.bool_, count=len(raw))
    cleaned = pc.if_else(pa.array(bad), pa.scalar(None, pa.binary()), raw)
    return cleaned.cast(pa.string()), pa.array(bad)


def _is_utf8(value: bytes | None) -> bool:
    if value is None:
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _binary(type_: Type, raw: AnyArray) -> tuple[AnyArray, pa.BooleanArray]:
    length = fixed_length(type_)
    impossible = type_base(type_) == "decimal"  # with an invalid precision
    if length is None and not impossible:
        return raw, pa.array(np.zeros(len(raw), dtype=np.bool_))
    there = np.asarray(raw.is_valid())
    # A bound may be truncated, so a shorter value is valid; a longer one is not.
    limit = -1 if length is None else length
    sizes = np.asarray(pc.fill_null(pc.binary_length(raw), 0))
    bad = there & (sizes > limit)
    if not bad.any():
        return raw, pa.array(bad)
    return pc.if_else(pa.array(bad), pa.scalar(None, pa.binary()), raw), pa.array(bad)
