"""Convert stored Parquet values to Iceberg values, and literals to the bytes that Parquet would store.

Parquet types are mapped to Iceberg types as in the Iceberg spec ("Appendix A", Parquet), including the type promotions
of its section "Schema Evolution". Files that were imported into a table rather than written by Iceberg may also have
milliseconds, nanoseconds, half floats and unsigned integers: these are converted, too. The bounds and Bloom filters of
columns with other stored types are not used.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias, cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue
from iceexplore.formats import ParquetLeaf
from iceexplore.metadata import Type, arrow_type, decimal_of, decimal_parameters, fixed_length, type_base, unscaled

__all__ = ["bound_array", "bound_reader", "hash_inputs", "stands_for"]

#: A function that converts a bound stored in a Parquet footer to a value that can be compared with the filter's
#: literals, or returns None if it cannot be used as a bound. The second argument is True for an upper bound, which is
#: rounded up, and False for a lower bound, which is rounded down. Rounding is needed if, for example, the file stores
#: nanoseconds and the column has microseconds.
BoundReader: TypeAlias = Callable[[Any, bool], Any]

_DAY_US = 86_400_000_000
_PER_SECOND = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
_TIMESTAMPS = {"timestamp": 10**6, "timestamptz": 10**6, "timestamp_ns": 10**9, "timestamptz_ns": 10**9}
#: The logical types of a Parquet byte array whose bounds are used if the Iceberg column is a string; "None" means that
#: the byte array has no logical type. If it has any other logical type, such as Decimal, its bounds are not used.
_TEXT = frozenset(("String", "Enum", "JSON", "None"))


def bound_reader(leaf: ParquetLeaf, kind: Type) -> BoundReader | None:
    """Return a function that converts the stored bounds of a Parquet leaf to values of the column's type, ``kind``.

    The function has two parameters: the stored bound, and whether it is an upper bound. Return None if the stored type
    of the leaf cannot be read as ``kind``.
    """
    base, physical, logical = type_base(kind), leaf.physical, leaf.logical.get("Type")
    match base:
        case "boolean" if physical == "BOOLEAN":
            return lambda raw, up: bool(raw)
        case "int" | "long" if logical in ("None", "Int"):
            if physical == "INT32" or (physical == "INT64" and base == "long"):
                return _unsigned(physical) if _is_unsigned(leaf) else lambda raw, up: int(raw)
        case "float" | "double":
            if logical == "Float16" and leaf.length == 2:
                return lambda raw, up: _float(struct.unpack("<e", raw)[0], up) if len(raw) == 2 else None
            if physical == "FLOAT" or (physical == "DOUBLE" and base == "double"):
                return _float
        case "decimal" if logical == "Decimal":
            return _decimal(leaf, kind)
        case "string" if physical == "BYTE_ARRAY" and logical in _TEXT:
            return _text
        case "binary" if physical == "BYTE_ARRAY":
            return lambda raw, up: bytes(raw)
        case "uuid" | "fixed" if _is_fixed(leaf, kind):
            return lambda raw, up: bytes(raw)
    times = _times(leaf, base)
    return None if times is None else lambda raw, up: _scaled(int(raw), *times, up)


def stands_for(leaf: ParquetLeaf, kind: Type) -> bool:
    """Return whether the stored type of a Parquet leaf can be read as the primitive Iceberg type ``kind``."""
    return bound_reader(leaf, kind) is not None


def bound_array(values: Sequence[Any], kind: Type) -> AnyArray:
    """Make an array of bounds that a `BoundReader` returned, to compare it with the filter's literals.

    A bound that the column's type, ``kind``, cannot represent becomes null: it is treated as unknown.
    """
    target = arrow_type(kind)
    if pa.types.is_temporal(target):
        plain = pa.int32() if pa.types.is_date32(target) else pa.int64()
        return _fitting(values, plain).view(target)
    return _fitting(values, pa.binary() if pa.types.is_fixed_size_binary(target) else target)


def hash_inputs(leaf: ParquetLeaf, kind: Type, literal: PlainValue) -> list[bytes] | None:
    """Return the bytes that Parquet hashes to add a value equal to the literal to a Bloom filter.

    These are the plain encoding of the value; for a byte array, without the length.

    Parameters
    ----------
    leaf
        The leaf of the Parquet schema that stores the column.
    kind
        The column's Iceberg type, of which ``literal`` is a value.

    Returns
    -------
    list of bytes or None
        One item for each encoding that the value may have in the file. Usually there is one; a floating-point zero has
        two, for 0.0 and -0.0. The list is empty if the file cannot store the value, such as 2⁴⁰ in 32 bits. None if the
        bytes are unknown, for example because a decimal in a byte array may have any number of leading zero bytes.
    """
    base, physical, logical = type_base(kind), leaf.physical, leaf.logical.get("Type")
    if bound_reader(leaf, kind) is None or _is_unsigned(leaf) or logical == "Float16":
        return None
    match base:
        case "int" | "long":
            return _integer(physical, literal)
        case "float" | "double":
            return _floating(physical, float(literal))
        case "string":
            return [literal.encode()]
        case "binary" | "uuid" | "fixed":
            return [cast(bytes, getattr(literal, "bytes", literal))]
        case "decimal":
            scale = int(leaf.logical["scale"])
            number = unscaled(Decimal(literal), scale)
            if decimal_of(number, scale) != literal:
                return []
            if physical == "BYTE_ARRAY":
                # The writer may have stored the number with leading zero bytes: for example, 5 as the byte 05 or as the
                # two bytes 00 05. Each form has a different hash, and it is unknown which form was stored, so the Bloom
                # filter cannot be used.
                return None
            if physical == "FIXED_LEN_BYTE_ARRAY":
                return _big_endian(number, leaf.length)
            return _integer(physical, number)
    times = _times(leaf, base)
    if times is None or times[1] != 1:
        return None
    whole, rest = divmod(int(literal), times[0])
    return [] if rest else _integer(physical, whole)


def _fitting(values: Sequence[Any], target: pa.DataType) -> AnyArray:
    try:
        return pa.array(values, target)
    except (pa.ArrowException, OverflowError, ValueError):
        return pa.array([v if v is not None and _fits(v, target) else None for v in values], target)


def _fits(value: PlainValue, target: pa.DataType) -> bool:
    try:
        return bool(pa.scalar(value, target).is_valid)
    except (pa.ArrowException, OverflowError, ValueError):
        return False


def _is_unsigned(leaf: ParquetLeaf) -> bool:
    return leaf.logical.get("Type") == "Int" and leaf.logical.get("isSigned") is False


def _is_fixed(leaf: ParquetLeaf, kind: Type) -> bool:
    wanted = 16 if type_base(kind) == "uuid" else fixed_length(kind)
    plain = leaf.logical.get("Type") in ("None", "UUID")
    return leaf.physical == "FIXED_LEN_BYTE_ARRAY" and leaf.length == wanted and plain


def _unsigned(physical: str) -> BoundReader:
    mask = (1 << (32 if physical == "INT32" else 64)) - 1
    return lambda raw, up: int(raw) & mask


def _float(raw: PlainValue, up: bool) -> float | None:
    """Return a bound as a float; None for NaN.

    If a bound is zero, the column may contain 0.0 and -0.0, whatever the sign of the bound (parquet.thrift,
    ``ColumnOrder``). The result therefore includes both: it is -0.0 for a lower bound and 0.0 for an upper bound.

    Parameters
    ----------
    up
        True for an upper bound, False for a lower bound.
    """
    value = float(raw)
    if math.isnan(value):
        return None
    return value if value else (0.0 if up else -0.0)


def _text(raw: bytes, up: bool) -> str | None:
    try:
        return bytes(raw).decode()
    except UnicodeDecodeError as error:
        # The writer cut the bound in the middle of a character's UTF-8 bytes. The text before this character is not
        # greater than the bound, so it can be used as a lower bound, but not as an upper bound.
        return None if up else bytes(raw)[: error.start].decode()


def _decimal(leaf: ParquetLeaf, kind: Type) -> BoundReader | None:
    parameters, scale = decimal_parameters(kind), leaf.logical.get("scale")
    if parameters is None or scale != parameters[1]:
        return None

    def read(raw: PlainValue, up: bool) -> Decimal:
        number = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        return decimal_of(number, int(scale))

    return read


def _times(leaf: ParquetLeaf, base: str) -> tuple[int, int] | None:
    """Return how to convert a stored number to a date, time or timestamp of the table.

    Parameters
    ----------
    leaf
        The leaf of the Parquet schema that stores the column.
    base
        The column's Iceberg type, such as ``timestamp``.

    Returns
    -------
    tuple or None
        A factor and a divisor, by which the stored number is multiplied and divided. For example, (1, 1000) converts
        nanoseconds to microseconds. None if ``base`` is not a date, time or timestamp type, or if the stored type
        cannot be converted to it.
    """
    logical, physical = leaf.logical.get("Type"), leaf.physical
    if base == "date":
        return (1, 1) if (logical, physical) == ("Date", "INT32") else None
    if (logical, physical) == ("Date", "INT32") and base in ("timestamp", "timestamp_ns"):
        return _DAY_US * _TIMESTAMPS[base] // 10**6, 1
    wanted = 10**6 if base == "time" else _TIMESTAMPS.get(base)
    stored = _PER_SECOND.get(str(leaf.logical.get("timeUnit")))
    if wanted is None or stored is None or logical != ("Time" if base == "time" else "Timestamp"):
        return None
    if physical != ("INT32" if (logical, stored) == ("Time", 1000) else "INT64"):
        return None
    return (wanted // stored, 1) if wanted >= stored else (1, stored // wanted)


def _scaled(raw: int, factor: int, divisor: int, up: bool) -> int:
    return -(-raw * factor // divisor) if up else raw * factor // divisor


def _integer(physical: str, value: int) -> list[bytes]:
    width = 4 if physical == "INT32" else 8
    fits = -(1 << (8 * width - 1)) <= value < 1 << (8 * width - 1)
    return [int(value).to_bytes(width, "little", signed=True)] if fits else []


def _big_endian(value: int, length: int) -> list[bytes]:
    try:
        return [value.to_bytes(length, "big", signed=True)]
    except OverflowError:
        return []


def _floating(physical: str, value: float) -> list[bytes]:
    form = "<f" if physical == "FLOAT" else "<d"
    if value == 0:
        return [struct.pack(form, 0.0), struct.pack(form, -0.0)]
    try:
        packed = struct.pack(form, value)
    except OverflowError:
        return []
    return [packed] if struct.unpack(form, packed)[0] == value else []
