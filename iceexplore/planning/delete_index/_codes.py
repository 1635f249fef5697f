"""Convert values of data files and deletes to integers that can be compared.

Partition tuples become codes, which are equal if the tuples are equal. Bounds become ranks, which are in the same order
as the bounds.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyDecimalType, build
from iceexplore.arrow import compute as pc
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import TableMetadata

__all__ = ["Ints", "Mask", "equal_codes", "expand", "paired_partition_codes", "ranks"]

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_NAN = np.float64("nan").view(np.int64)


def paired_partition_codes(metadata: TableMetadata, files: EntryBatch, deletes: EntryBatch) -> tuple[Ints, Ints]:
    """Return a number for the partition of each data file, and one for the partition of each delete.

    A data file and a delete have the same number if they are in the same partition. For this, their partition spec ids
    and their partition tuples must be equal (Iceberg specification, "Scan Planning"). All partition fields are
    compared, including those with an unknown transform, and those with the void transform, whose values are null.

    A data file has the number -1 if no delete has its spec id, and a delete has -2 if no data file has its spec id. The
    two numbers differ so that such a data file and such a delete never count as being in the same partition.
    """
    specs: list[Ints] = [
        np.asarray(pc.fill_null(whole(b.entries["partition_spec_id"]), -1), np.int64) for b in (files, deletes)
    ]
    out = np.full(len(files), -1, dtype=np.int64), np.full(len(deletes), -2, dtype=np.int64)
    base = 0
    for number in np.intersect1d(specs[0], specs[1]).tolist():
        rows = [np.flatnonzero(s == number) for s in specs]
        count = len(rows[0])
        code = np.zeros(count + len(rows[1]), dtype=np.int64)
        for key in _keys(metadata, number, files, deletes):
            values = [_child(b, key).take(build.array(r)) for b, r in zip((files, deletes), rows, strict=True)]
            found = equal_codes(*values)
            code = _dense(code * (int(found.max(initial=0)) + 1) + found)
        out[0][rows[0]], out[1][rows[1]] = base + code[:count], base + code[count:]
        base += int(code.max(initial=0)) + 1
    return out


def _keys(metadata: TableMetadata, number: int, *batches: EntryBatch) -> list[str]:
    """Return the names that a spec's partition fields have in partition tuples: their field ids, as text.

    ``number`` is the spec's id. If the metadata does not have this spec, return the names of all partition fields in
    the tuples of ``batches``.
    """
    spec = metadata.spec(number)
    if spec is not None:
        return [str(f.field_id) for f in spec.fields]
    return sorted({child.name for b in batches if b.partition is not None for child in b.partition.type})


def _child(batch: EntryBatch, key: str) -> AnyArray:
    """Return the values of the partition field with the id ``key``; all are null if the batch has no such field."""
    at = -1 if batch.partition is None else batch.partition.type.get_field_index(key)
    return pa.nulls(len(batch)) if at < 0 or batch.partition is None else pc.struct_field(batch.partition, [at])


def _dense(code: Ints) -> Ints:
    """Renumber codes from 0 without gaps; equal codes stay equal.

    For example, the codes 7, 40, 7 become 0, 1, 0. `paired_partition_codes` multiplies and adds codes to combine
    several partition fields. It renumbers the result after each field, so that the numbers do not overflow.
    """
    return np.unique(code, return_inverse=True)[1].astype(np.int64, copy=False)


def equal_codes(a: AnyArray, b: AnyArray) -> Ints:
    """Assign numbers, called codes, to the values of ``a`` and of ``b``, so that equal values have equal codes.

    Return one array: the codes of the values of ``a``, then those of the values of ``b``.

    Null equals null, NaN equals NaN, and -0.0 does not equal 0.0: two floats are equal if Java's ``doubleToLongBits``
    returns the same number for both (Iceberg specification, "Scan Planning", note 3). If ``a`` and ``b`` have different
    types, such as int32 and int64, they are converted to a common type (`_common`) or, if there is none, to text.
    """
    sides = [_bits(a), _bits(b)]
    kinds = {s.type for s in sides if not pa.types.is_null(s.type)}
    if len(kinds) > 1:
        kind = _common(kinds)
        sides = [s.cast(kind or pa.string()) for s in sides]
    elif kinds:
        sides = [s.cast(next(iter(kinds))) for s in sides]
    both = pa.concat_arrays(sides)
    if pa.types.is_null(both.type):
        return np.zeros(len(both), dtype=np.int64)
    return np.asarray(both.dictionary_encode(null_encoding="encode").indices).astype(np.int64)


def _bits(values: AnyArray) -> AnyArray:
    """Convert floats to integers, so that two integers are equal exactly if Iceberg regards the floats as equal.

    The integer has the bits of the float in double precision, so that -0.0 and 0.0 get different integers. Every NaN
    gets the same integer, and null stays null. An array of another type is passed to `_plain` instead.
    """
    if pa.types.is_floating(values.type):
        null = np.asarray(values.is_null())
        plain = np.asarray(pc.fill_null(values.cast(pa.float64()), 0.0))
        return pa.array(np.where(np.isnan(plain), _NAN, plain.view(np.int64)), mask=null)
    return _plain(values)


def _plain(values: AnyArray) -> AnyArray:
    """Convert booleans and dates to integers, and fixed-size binary to binary.

    Equal partition values may have different Arrow types in two arrays. For example, one has dates, and the other has
    the days since 1970 as integers. After the conversion, they can be compared. Values of other types are returned
    unchanged.
    """
    kind = values.type
    if pa.types.is_boolean(kind):
        return values.cast(pa.uint8())
    if pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    if pa.types.is_date32(kind):
        return values.cast(pa.int32())
    return values


def _common(kinds: set[pa.DataType]) -> pa.DataType | None:
    """Return an Arrow type in which values of all given types can be compared; None if there is none.

    For example, it is int64 for int32 and int64, and None for int32 and string.
    """
    if all(pa.types.is_integer(k) for k in kinds):
        return pa.int64()
    if all(pa.types.is_floating(k) for k in kinds):
        return pa.float64()
    if all(pa.types.is_string(k) or pa.types.is_binary(k) for k in kinds):
        return pa.binary()
    if all(pa.types.is_decimal(k) for k in kinds):
        decimals = [cast(AnyDecimalType, k) for k in kinds]
        scale = max(k.scale for k in decimals)
        digits = max(k.precision - k.scale for k in decimals) + scale
        return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(min(digits, 76), scale)
    return None


def ranks(*arrays: AnyArray) -> list[Ints] | None:
    """Rank the values of all arrays together, in ascending order: the lowest value of all has rank 0.

    Equal values have the same rank, and null and NaN have the rank -1. Text is ordered by its UTF-8 bytes, as in
    Iceberg. The result has one array of ranks for each of ``arrays``. It is None if values of the arrays cannot be
    compared with each other, such as texts and numbers.
    """
    sides = [_plain(a) for a in arrays]
    kinds = {s.type for s in sides if not pa.types.is_null(s.type)}
    if not kinds:
        return [np.full(len(a), -1, dtype=np.int64) for a in arrays]
    kind = next(iter(kinds)) if len(kinds) == 1 else _common(kinds)
    if kind is None:
        return None
    kind = pa.binary() if pa.types.is_string(kind) else kind
    both = pa.concat_arrays([s.cast(kind) for s in sides])
    unknown = np.asarray(both.is_null())
    if pa.types.is_floating(kind):
        unknown = unknown | np.asarray(pc.fill_null(pc.is_nan(both), True))
    places = np.asarray(pc.rank(both, sort_keys="ascending", tiebreaker="dense")).astype(np.int64) - 1
    places[unknown] = -1
    return np.split(places, np.cumsum([len(a) for a in arrays])[:-1])


def expand(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """List the integers from each ``start`` up to, but not including, its ``stop``.

    Return two arrays with one item per integer: the index of its range, and the integer itself. For example, the ranges
    from 3 to 5 and from 8 to 9 (``start`` 3, 8 and ``stop`` 5, 9) give the indices 0, 0, 1 and the integers 3, 4, 8.
    """
    sizes = np.maximum(stop - start, 0)
    owner = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    first = np.cumsum(sizes) - sizes
    inner: Any = np.arange(len(owner), dtype=np.int64) - first[owner] + start[owner]
    return owner, inner
