"""Arrow types and texts in which the metadata tables show values, as Spark does; works on whole Arrow arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField, build
from iceexplore.arrow import compute as pc
from iceexplore.metadata import ListType, MapType, NestedField, StructType, Type, arrow_type

__all__ = ["as_text", "binary_hex", "conform", "micros_of", "shown", "shown_type"]

_UUID = pa.binary(16)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def shown_type(kind: Type) -> pa.DataType:
    """Return the Arrow type in which values are shown: that of `arrow_type`, but string for uuid, as in Spark."""
    match kind:
        case StructType(fields):
            return pa.struct([_field(f) for f in fields])
        case ListType(element):
            return pa.list_(_field(element))
        case MapType(key, value):
            return pa.map_(shown_type(key.type), shown_type(value.type))
    found = arrow_type(kind)
    return pa.string() if found == _UUID else found


def _field(field: NestedField) -> AnyField:
    return pa.field(field.name, shown_type(field.type))


def shown(array: AnyArray) -> AnyArray:
    """Return values as they are shown: a uuid as text, all others unchanged."""
    return _uuid_text(array) if array.type == _UUID else array


def conform(array: AnyArray, target: pa.DataType) -> AnyArray:
    """Cast an array to another type; values that cannot be cast become text for a string type, otherwise nulls."""
    array = shown(array)
    if array.type == target:
        return array
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return as_text(array) if pa.types.is_string(target) else build.nulls(len(array), target)


def as_text(array: AnyArray) -> AnyArray:
    """Return any array of primitives as strings; binary as hexadecimal digits."""
    array = shown(array)
    if pa.types.is_string(array.type):
        return array
    if pa.types.is_binary(array.type) or pa.types.is_fixed_size_binary(array.type):
        return binary_hex(array.cast(pa.binary()))
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        plain = array.cast(pa.timestamp(array.type.unit)).cast(pa.string())  # avoids the need for a time zone database
        return pc.binary_join_element_wise(plain, "Z", "")
    try:
        return array.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(array), pa.string())


def micros_of(ms: int | None) -> int | None:
    """Return milliseconds as microseconds; None for a time that does not fit into 64 bits."""
    return None if ms is None or abs(ms) >= 2**63 // 1000 else ms * 1000


def _buffers(array: AnyArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and bytes of a large binary array."""
    _, offsets, data = array.buffers()
    if offsets is None or len(array) == 0:
        return np.zeros(len(array) + 1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    ends = build.frombuffer(offsets, dtype=np.int64, count=len(array) + 1, offset=array.offset * 8)
    return ends, np.empty(0, np.uint8) if data is None else build.frombuffer(data, dtype=np.uint8)


def _digits(cells: np.ndarray) -> np.ndarray:
    """Return two hexadecimal digits for each byte, along the last axis."""
    return np.stack([_HEX[cells >> 4], _HEX[cells & 15]], axis=-1).reshape(*cells.shape[:-1], -1)


def binary_hex(array: AnyArray) -> AnyArray:
    """Return binary values as hexadecimal digits."""
    array = array.cast(pa.large_binary())
    ends, data = _buffers(array)
    digits = _digits(data[ends[0] : ends[-1]])
    valid = None if not array.null_count else pa.array(np.asarray(array.is_valid())).buffers()[1]
    offsets = build.py_buffer(np.ascontiguousarray((ends - ends[0]) * 2))
    made = pa.LargeStringArray.from_buffers(len(array), offsets, build.py_buffer(np.ascontiguousarray(digits)), valid)
    return made.cast(pa.string())


def _uuid_text(array: AnyArray) -> AnyArray:
    count = len(array)
    if not count:
        return pa.array([], pa.string())
    cells = build.frombuffer(array.buffers()[1], dtype=np.uint8)[array.offset * 16 : (array.offset + count) * 16]
    digits = _digits(cells.reshape(count, 16))
    text = np.full((count, 36), ord("-"), dtype=np.uint8)
    for start, end, at in ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24)):
        text[:, at : at + end - start] = digits[:, start:end]
    offsets = build.py_buffer(np.arange(count + 1, dtype=np.int64) * 36)
    valid = None if not array.null_count else pa.array(np.asarray(array.is_valid())).buffers()[1]
    return pa.LargeStringArray.from_buffers(count, offsets, build.py_buffer(text), valid).cast(pa.string())
