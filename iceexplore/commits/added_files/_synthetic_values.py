"""Convert int64 numbers to values of a column's type; greater numbers give greater values.

`line_of` returns the range of numbers that give plausible values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.metadata import INSTANT_UNITS, Type, arrow_type, decimal_parameters, fixed_length, type_base

__all__ = ["DAY", "LETTERS", "Numbers", "line_of", "values_on"]

Numbers = np.ndarray[Any, np.dtype[np.int64]]
DAY = 86_400
#: The length of generated strings, whose lowercase letters encode a number in base 26: they sort like the numbers.
LETTERS = 8
_EIGHT_BYTES = 1 << 62


def line_of(kind: Type, field_id: int, now_ms: int) -> tuple[int, int]:
    """Return the lowest and highest int64 number that `values_on` converts to a plausible value of a column.

    For int, long, float and double, the highest number depends on the field id, so that columns differ. Dates and
    timestamps are from the 30 days before ``now_ms``, which is in milliseconds since 1970.
    """
    base = type_base(kind)
    span = 10 ** (3 + field_id % 5)
    today = now_ms // 86_400_000
    match base:
        case "boolean":
            return 0, 1
        case "int" | "long" | "float" | "double":
            return 0, span
        case "date":
            return today - 30, today
        case "time":
            return 0, DAY * 10**6 - 1
        case "decimal":
            precision, _ = decimal_parameters(kind) or (1, 0)
            return 0, 10 ** min(precision, 9) - 1
        case "string":
            return 0, 26**LETTERS - 1
        case "fixed":
            return 0, min(_EIGHT_BYTES, 256 ** min(fixed_length(kind) or 1, 8)) - 1
        case _ if base in INSTANT_UNITS:
            unit = INSTANT_UNITS[base]
            return (today - 30) * DAY * unit, now_ms * (unit // 1000)
    return 0, _EIGHT_BYTES - 1


def values_on(kind: Type, numbers: Numbers, prefix: AnyArray | None = None) -> AnyArray:
    """Convert each number to a value of the type (see `line_of`); greater numbers give greater values.

    Parameters
    ----------
    prefix
        For strings and binaries: a prefix for each value, which is put before the text or bytes that encode the number.
        None if there is no prefix.
    """
    from iceexplore.arrow import compute as pc

    base, target = type_base(kind), arrow_type(kind)
    if pa.types.is_binary(target) and base != "fixed":
        # This covers all types that Arrow stores as binary, including types that the spec does not define.
        base = "binary"
    match base:
        case "boolean":
            return build.array(numbers > 0)
        case "float" | "double":
            return build.array((numbers / 8).astype(np.float32 if base == "float" else np.float64))
        case "int" | "date":
            return pa.array(numbers.astype(np.int32)).cast(target)
        case "decimal":
            return _decimals(numbers, target)
        case "string":
            words = _words(numbers)
            return words if prefix is None else pc.binary_join_element_wise(prefix, words, "")
        case "binary":
            tails = _fixed_bytes(numbers, 8).cast(pa.binary())
            return tails if prefix is None else pc.binary_join_element_wise(prefix, tails, b"")
        case "fixed":
            return _fixed_bytes(numbers, fixed_length(kind) or 1).cast(pa.binary())
        case "uuid":
            return _fixed_bytes(numbers, 16)
    return pa.array(numbers).cast(target)


def _decimals(numbers: Numbers, target: pa.DataType) -> AnyArray:
    """Return decimals with these unscaled values; Arrow stores each as two 64-bit words, the lower one first."""
    both = np.empty((len(numbers), 2), dtype=np.int64)
    both[:, 0] = numbers
    both[:, 1] = numbers >> 63
    return pa.Array.from_buffers(target, len(numbers), [None, pa.py_buffer(both.tobytes())])


def _words(numbers: Numbers) -> AnyArray:
    letters = np.empty((len(numbers), LETTERS), dtype=np.uint8)
    rest = numbers.copy()
    for i in range(LETTERS - 1, -1, -1):
        rest, digit = np.divmod(rest, 26)
        letters[:, i] = digit + ord("a")
    offsets = np.arange(0, (len(numbers) + 1) * LETTERS, LETTERS, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets.tobytes()), pa.py_buffer(letters.tobytes()))


def _fixed_bytes(numbers: Numbers, length: int) -> AnyArray:
    """Convert each number, which must not be negative, to ``length`` big-endian bytes, which sort like the numbers.

    If ``length`` is greater than 8, zeros are appended. If it is less than 8, numbers must fit in ``length`` bytes; for
    example, numbers must be below 65,536 if ``length`` is 2. Greater numbers lose their highest bytes.
    """
    raw = numbers.astype(">i8").view(np.uint8).reshape(len(numbers), 8)
    if length < 8:
        out = raw[:, 8 - length :]
    else:
        out = np.zeros((len(numbers), length), dtype=np.uint8)
        out[:, :8] = raw
    kind = pa.binary(length)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(out).tobytes())])
