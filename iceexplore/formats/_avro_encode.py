"""Encode Arrow rows as Avro records, column by column (Avro specification 1.11, "Binary Encoding").

First each column returns the number of bytes of each of its values; their sums give the start of every value, and then
each column writes its values there. No record becomes a Python object, and each byte is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyColumn, DynamicArray
from iceexplore.storage import JsonValue

__all__ = ["encode_records"]

_Ints = np.ndarray[Any, np.dtype[np.int64]]
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class _Part:
    """The values of a column: the size of each in bytes, and a function that writes them into a buffer at offsets."""

    sizes: _Ints
    write: Callable[[_Bytes, _Ints], None]


def encode_records(schema: JsonValue, rows: pa.Table) -> tuple[bytes, list[int]]:
    """Encode rows as the records of a block.

    Parameters
    ----------
    schema
        An Avro record whose fields are the columns in order: numbers, ``boolean``, ``bytes``, ``string`` (from an Arrow
        column of strings or binaries), ``fixed``, records, arrays, and unions of one of them with null.

    Returns
    -------
    tuple
        The bytes, and the start of each record, followed by the end of the last.

    Raises
    ------
    ValueError
        The rows have a null where the schema allows none, or the schema has another type or another kind of union.
    """
    arrays: list[AnyColumn] = [c.combine_chunks() for c in rows.columns]
    arrays = [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for a in arrays]
    part = _together([_part(f["type"], a) for f, a in zip(schema["fields"], arrays, strict=True)], rows.num_rows)
    ends = _starts(part.sizes)
    out = np.empty(int(ends[-1]), np.uint8)
    part.write(out, ends[:-1])
    return out.tobytes(), ends.tolist()


def _starts(sizes: _Ints) -> _Ints:
    """Return where consecutive values of these sizes start, followed by where the last one ends."""
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def _part(schema: JsonValue, array: DynamicArray) -> _Part:
    if isinstance(schema, list):
        return _union(schema, array)
    if array.null_count:
        raise ValueError("a null where the Avro schema allows none")
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "int" | "long":
            return _numbers(np.asarray(array).astype(np.int64, copy=False))
        case "boolean":
            return _fixed(np.asarray(array).astype(np.uint8).reshape(-1, 1))
        case "float" | "double":
            values = np.ascontiguousarray(np.asarray(array), "<f4" if kind == "float" else "<f8")
            return _fixed(values.view(np.uint8).reshape(len(array), values.itemsize))
        case "bytes" | "string":
            return _texts(array)
        case "fixed":
            width = array.type.byte_width
            raw = np.frombuffer(array.buffers()[1] or b"", np.uint8)
            return _fixed(raw[array.offset * width : (array.offset + len(array)) * width].reshape(len(array), width))
        case "record":
            fields = [f["type"] for f in schema["fields"]]
            return _together([_part(f, a) for f, a in zip(fields, array.flatten(), strict=True)], len(array))
        case "array":
            return _lists(schema["items"], array)
    raise ValueError(f"unsupported Avro type: {kind}")


def _union(schema: list[Any], array: DynamicArray) -> _Part:
    """Encode a union with null: one byte for the branch before each value."""
    others = [i for i, branch in enumerate(schema) if branch != "null"]
    if len(others) != 1:
        raise ValueError("a union of several types")
    there, null = 2 * others[0], 2 * (1 - others[0])
    valid = np.asarray(array.is_valid())
    inner = _part(schema[others[0]], array.drop_null() if array.null_count else array)
    sizes = np.ones(len(array), np.int64)
    sizes[valid] += inner.sizes

    def write(out: _Bytes, at: _Ints) -> None:
        out[at] = np.where(valid, there, null)
        inner.write(out, at[valid] + 1)

    return _Part(sizes, write)


def _together(parts: list[_Part], count: int) -> _Part:
    sizes = np.zeros(count, np.int64)
    for part in parts:
        sizes += part.sizes

    def write(out: _Bytes, at: _Ints) -> None:
        for part in parts:
            part.write(out, at)
            at = at + part.sizes

    return _Part(sizes, write)


def _numbers(values: _Ints) -> _Part:
    """Encode zig-zag numbers of variable length."""
    coded = ((values << 1) ^ (values >> 63)).view(np.uint64)
    sizes = np.ones(len(values), np.int64)
    most = int(coded.max()) if len(coded) else 0
    for bits in range(7, max(most.bit_length(), 1), 7):
        sizes += coded >= np.uint64(1 << bits)

    def write(out: _Bytes, at: _Ints) -> None:
        rest, left, place = coded, sizes, at
        while len(rest):
            more = left > 1
            out[place] = (rest & np.uint64(0x7F)).astype(np.uint8) | (more * 0x80).astype(np.uint8)
            rest, left, place = rest[more] >> np.uint64(7), left[more] - 1, place[more] + 1

    return _Part(sizes, write)


def _fixed(values: _Bytes) -> _Part:
    """Encode values that all have the same width."""
    count, width = values.shape

    def write(out: _Bytes, at: _Ints) -> None:
        for i in range(width):
            out[at + i] = values[:, i]

    return _Part(np.full(count, width, np.int64), write)


def _texts(array: DynamicArray) -> _Part:
    offset_type = np.int64 if pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type) else np.int32
    _, offsets_buffer, data_buffer = array.buffers()
    count = len(array)
    if not count:
        return _numbers(np.zeros(0, np.int64))
    offsets = np.frombuffer(offsets_buffer, offset_type)[array.offset : array.offset + count + 1].astype(np.int64)
    body = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets)
    prefix = _numbers(lengths)

    def write(out: _Bytes, at: _Ints) -> None:
        prefix.write(out, at)
        _scatter(out, at + prefix.sizes, body, lengths)

    return _Part(prefix.sizes + lengths, write)


def _scatter(out: _Bytes, at: _Ints, body: _Bytes, lengths: _Ints) -> None:
    """Cut ``body`` into consecutive pieces of these lengths, and write each to its offset in ``at``."""
    shift = at - (_starts(lengths)[:-1])
    out[np.repeat(shift, lengths) + np.arange(len(body))] = body


def _lists(items: JsonValue, array: DynamicArray) -> _Part:
    """Encode lists: a count and the items if there are any, then a zero."""
    offsets = np.asarray(array.offsets).astype(np.int64)
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])) if len(array) else array.values[:0]
    counts = np.diff(offsets) if len(array) else np.zeros(0, np.int64)
    some = counts > 0
    inner, prefix = _part(items, values), _numbers(counts[some])
    begins = _starts(inner.sizes)
    first = _starts(counts)
    sizes = begins[first[1:]] - begins[first[:-1]] + 1
    heads = np.zeros(len(counts), np.int64)
    heads[some] = prefix.sizes
    sizes += heads

    def write(out: _Bytes, at: _Ints) -> None:
        prefix.write(out, at[some])
        shift = at + heads - begins[first[:-1]]
        inner.write(out, np.repeat(shift, counts) + begins[:-1])
        out[at + sizes - 1] = 0

    return _Part(sizes, write)
