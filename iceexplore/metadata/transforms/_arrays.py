"""Apply partition transforms to columns (spec, "Partition Transforms", "Appendix B: 32-bit Hash Requirements")."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.metadata.transforms._names import result_type, transform_parts
from iceexplore.metadata.types._arrow import arrow_type
from iceexplore.metadata.types._parameters import type_base
from iceexplore.metadata.types._types import Type
from iceexplore.metadata.values._decimals import decimal_of, unscaled

__all__ = ["INSTANT_UNITS", "apply_transform", "integers_of"]

_DAY = 86_400
#: Types whose stored integer is hashed as a long (spec, "Appendix B"); for nanosecond types, the microseconds are
#: hashed.
_HASHED_AS_LONG = frozenset(("int", "long", "date", "time", "timestamp", "timestamptz"))
#: Units per second of the timestamp types.
INSTANT_UNITS = {"timestamp": 10**6, "timestamptz": 10**6, "timestamp_ns": 10**9, "timestamptz_ns": 10**9}


def apply_transform(transform: str, source: Type, values: pa.Array) -> pa.Array:
    """Return the partition values of a column's values; nulls stay null.

    Parameters
    ----------
    transform
        The transform's name in the partition spec, such as ``bucket[16]``.
    source
        The column's type; ``values`` are of its Arrow type.

    Returns
    -------
    pyarrow.Array
        An array of the Arrow type of the transform's result.

    Raises
    ------
    OptionError
        The transform is unknown or does not accept this type, or a result does not fit the result type.
    """
    name, width = transform_parts(transform)
    target = arrow_type(result_type(transform, source))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    match name:
        case "identity":
            return values
        case "void":
            return pa.nulls(len(values), target)
        case "year" | "month" | "day" | "hour":
            return _time(name, source, values).cast(target)
        case "truncate" if width:
            return _truncate(width, source, values).cast(target)
        case "bucket" if width and type_base(source) in _HASHED_AS_LONG:
            return pa.array(_hashes(integers_of(values)) % width, mask=np.asarray(values.is_null())).cast(target)
        case "bucket" if width:
            temporal = pa.types.is_temporal(values.type)
            plain = pa.array(integers_of(values), mask=np.asarray(values.is_null())) if temporal else values
            return _by_unique(plain, _bucket(width, source), target)
    raise OptionError(f"transform {transform!r} of {source} is not supported")


def integers_of(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return the stored integers of numbers, dates, times and timestamps, as int64; nulls are 0."""
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    return np.asarray(pc.fill_null(values.cast(pa.int64()), 0))


def _time(name: str, source: Type, values: pa.Array) -> pa.Array:
    base, mask = type_base(source), np.asarray(values.is_null())
    numbers = integers_of(values) if base == "date" or base in INSTANT_UNITS else None
    if numbers is None or (name == "hour" and base == "date"):
        raise OptionError(f"{name} of {source}: the transform accepts only dates and timestamps")
    if base in INSTANT_UNITS:
        if name == "hour":
            hours = numbers // (3600 * INSTANT_UNITS[base])
            if len(hours) and max(-int(hours.min()) - 1, int(hours.max())) >= 2**31:
                # The spec's "Partition Transforms": the result of hour is an int.
                raise OptionError(f"hour of a {source}: hours since 1970 do not fit in an int (about 245,000 years)")
            return pa.array(hours, mask=mask).cast(pa.int32())
        numbers = numbers // (_DAY * INSTANT_UNITS[base])
    days = numbers.astype("datetime64[D]")
    if name == "day":
        return pa.array(numbers.astype(np.int32), mask=mask).cast(pa.date32())
    unit = days.astype("datetime64[Y]" if name == "year" else "datetime64[M]")
    return pa.array(unit.astype(np.int64).astype(np.int32), mask=mask)


def _truncate(width: int, source: Type, values: pa.Array) -> pa.Array:
    match type_base(source):
        case "int" | "long":
            numbers = integers_of(values)
            cut_down = pa.array(numbers - np.mod(numbers, width), mask=np.asarray(values.is_null()))
            # Below the lowest number Java's integers wrap around (``TruncateUtil``).
            return cut_down.cast(arrow_type(source), safe=False)
        case "string":
            return pc.utf8_slice_codeunits(values, 0, width)
        case "binary":
            return pc.binary_slice(values, 0, width)
        case "decimal":
            precision, scale = values.type.precision, values.type.scale

            def cut(value: Decimal) -> Decimal:
                number = unscaled(value, scale)
                down = decimal_of(number - number % width, scale)
                if len(down.as_tuple().digits) > precision:  # Java refuses to write it (``DecimalUtil``)
                    raise OptionError(f"truncate[{width}] of {value} is {down}, which does not fit in {source}")
                return down

            return _by_unique(values, cut, values.type)
    raise OptionError(f"truncate of {source}: the transform accepts only int, long, decimal, string and binary")


def _hashes(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the hashes of longs without sign: Murmur3 (x86, 32 bits, seed 0) of their 8 little-endian bytes."""
    plain = numbers.astype(np.int64).view(np.uint64)
    found = np.zeros(len(plain), np.uint32)
    for part in (plain & np.uint64(0xFFFF_FFFF), plain >> np.uint64(32)):
        block = part.astype(np.uint32) * np.uint32(0xCC9E_2D51)
        block = ((block << np.uint32(15)) | (block >> np.uint32(17))) * np.uint32(0x1B87_3593)
        found ^= block
        found = ((found << np.uint32(13)) | (found >> np.uint32(19))) * np.uint32(5) + np.uint32(0xE654_6B64)
    found ^= np.uint32(8)
    found = (found ^ (found >> np.uint32(16))) * np.uint32(0x85EB_CA6B)
    found = (found ^ (found >> np.uint32(13))) * np.uint32(0xC2B2_AE35)
    found ^= found >> np.uint32(16)
    return (found & np.uint32(0x7FFF_FFFF)).astype(np.int64)


def _bucket(width: int, source: Type) -> Callable[[Any], int | None]:
    """Return PyIceberg's bucket function for single values; dates and times are stored integers."""
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import NestedField

    transform: BucketTransform[Any] = BucketTransform(width)
    try:
        field = {"id": 1, "name": "x", "required": False, "type": str(source)}
        apply: Callable[[Any], int | None] = transform.transform(NestedField.model_validate(field).field_type)
    except ValueError:
        raise OptionError(f"bucket of {source}: the spec defines no hash for this type") from None
    return apply


def _by_unique(values: pa.Array, apply: Callable[[Any], Any], target: pa.DataType) -> pa.Array:
    encoded = values.dictionary_encode()
    made = pa.array([None if v is None else apply(v) for v in encoded.dictionary.to_pylist()], target)
    return made.take(encoded.indices)
