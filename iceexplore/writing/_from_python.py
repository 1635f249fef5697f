"""Convert Python values to Arrow arrays: nested values by the column's type, primitive values by Arrow's inference.

Nested values need the type, because Arrow cannot distinguish structs from maps given as dictionaries, or maps from
lists given as pairs. Arrow itself is not given the type, because it would silently drop unknown keys and digits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, DynamicType, build
from iceexplore.errors import OptionError, nearest
from iceexplore.metadata import ListType, MapType, NestedField, StructType, Type, arrow_type, type_base
from iceexplore.writing._fit_schema import default_of, fitted
from iceexplore.writing._foreign_frames import RowsLike
from iceexplore.writing._required_fields import list_of, map_of

__all__ = ["list_given", "plain_values", "python_column"]

#: Types of null values other than None. pandas types are recognized by name, so that pandas need not be imported.
_NUMPY_TIMES = (np.datetime64, np.timedelta64)
_PANDAS_NULLS = frozenset(("NaTType", "NAType"))
_WRONG = (pa.ArrowException, TypeError, ValueError, OverflowError)


def list_given(values: object, name: str) -> list[Any]:
    """Return the values of one column of a dictionary of columns.

    Raises
    ------
    OptionError
        The argument is a single value, or an object whose items are not rows: a string, a dictionary, a set.
    """
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, bytearray, memoryview, Mapping, Set)):
        with contextlib.suppress(TypeError):  # raised by NumPy arrays of dimension 0
            return list(values)
    raise OptionError(
        f"column {name!r} is {str(values)[:60]!r}, of type {type(values).__name__}: give a list of values, "
        "one for each row"
    )


def python_column(
    values: Sequence[Any], kind: Type | None, target: pa.DataType | None, where: str, *, from_pandas: bool
) -> AnyArray:
    """Return the values as an array, which may not have the column's Arrow type yet: `fitted` casts it.

    Parameters
    ----------
    kind, target
        The column's type, and its Arrow type in data files; None if the table has no such column.
    where
        The column's name, for messages.
    from_pandas
        Whether NaN means null.

    Raises
    ------
    OptionError
        Arrow cannot represent a value, or a value has the wrong shape for the column.
    """
    values = _with_none(values)
    try:
        match kind:
            case StructType(fields):
                return _structs(_rows(values, from_pandas), fields, target, where, from_pandas)
            case ListType(element):
                return _lists(_rows(values, from_pandas), element, target, where, from_pandas)
            case MapType(key, value):
                return _maps(_rows(values, from_pandas), key, value, target, where, from_pandas)
        return _plain(values, kind, where, from_pandas)
    except OptionError:
        raise
    except _WRONG as error:
        raise OptionError(f"column {where!r} has values that Arrow cannot represent: {error}") from None


def _with_none(values: RowsLike) -> RowsLike:
    """Return Python values with None instead of ``NaT`` and ``NA``, the nulls of pandas and NumPy; NaN is kept."""
    if not (isinstance(values, list) or (hasattr(values, "dtype") and values.dtype == object)):
        return values  # pandas and Arrow types mark their own nulls
    # There are few types but many values, so each value is checked only if one of the types has such nulls.
    kinds = {k for k in set(map(type, values)) if issubclass(k, _NUMPY_TIMES) or k.__name__ in _PANDAS_NULLS}
    if not kinds:
        return values
    return [None if type(v) in kinds and (not isinstance(v, _NUMPY_TIMES) or np.isnat(v)) else v for v in values]


def _rows(values: Iterable[Any], from_pandas: bool) -> list[Any]:
    """Return values of a nested type as Python objects, with None for nulls."""
    out = [v.as_py() if isinstance(v, pa.Scalar) else v for v in values]
    if not from_pandas:
        return out
    import pandas as pd

    return [None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in out]


def _structs(
    rows: list[Any], fields: tuple[NestedField, ...], target: DynamicType, where: str, from_pandas: bool
) -> AnyArray:
    there = [v for v in rows if v is not None]
    for v in there:
        if not isinstance(v, Mapping):
            raise _misshaped(v, "a dictionary", where)
    names = [f.name for f in fields]
    for name in dict.fromkeys(key for v in there for key in v):
        if name not in names:
            raise OptionError(f"column {where!r}: no field {name!r}; {nearest(str(name), names)}")
    made, kinds = [], []
    for i, f in enumerate(fields):
        has = np.array([v is None or f.name in v for v in rows], bool)
        if not any(f.name in v for v in there):
            continue  # filled later with its default or null
        to, place = target.field(i).type, f"{where}.{f.name}"
        child = [None if v is None else v.get(f.name) for v in rows]
        column = _whole(python_column(child, f.type, to, place, from_pandas=from_pandas))
        if f.write_default is not None and not has.all():
            column = pa.concat_arrays([fitted(column, f.type, to, place), default_of(f, to)])
            column = column.take(build.array(np.where(has, np.arange(len(rows)), len(rows))))
        made.append(column)
        kinds.append(pa.field(f.name, column.type))
    mask = pa.array([v is None for v in rows], pa.bool_())
    return pa.StructArray.from_arrays(made, fields=kinds, mask=mask) if made else _bare(mask)


def _bare(mask: pa.BooleanArray) -> AnyArray:
    """Return an array of structs without fields."""
    return pa.array([None if null else {} for null in mask.to_pylist()], pa.struct([]))


def _lists(rows: list[Any], element: NestedField, target: DynamicType, where: str, from_pandas: bool) -> AnyArray:
    there = [v for v in rows if v is not None]
    for v in there:
        if not _is_list(v):
            raise _misshaped(v, "a list", where)
    lengths = pa.array([None if v is None else len(v) for v in rows], pa.int64())
    arrays = [v for v in there if isinstance(v, np.ndarray) and v.dtype != object]
    # NumPy arrays of numbers are not converted to Python lists, because vectors may be long.
    whole = bool(arrays) and len(arrays) == len(there) and len({v.dtype for v in arrays}) == 1
    values: Any = np.concatenate(arrays) if whole and arrays[0].ndim == 1 else list(chain.from_iterable(there))
    to = target.value_type
    made = _whole(python_column(values, element.type, to, f"{where}.element", from_pandas=from_pandas))
    return list_of(lengths, made, pa.list_(made.type))


def _maps(
    rows: list[Any], key: NestedField, value: NestedField, target: DynamicType, where: str, from_pandas: bool
) -> AnyArray:
    pairs = [None if v is None else list(v.items()) if isinstance(v, Mapping) else v for v in rows]
    for v in pairs:
        if v is not None and not (_is_list(v) and all(_is_list(p) and len(p) == 2 for p in v)):
            raise _misshaped(v, "a dictionary or a list of pairs", where)
    lengths = pa.array([None if v is None else len(v) for v in pairs], pa.int64())
    flat = [p for v in pairs if v is not None for p in v]
    keys, values = (
        _whole(python_column([p[i] for p in flat], f.type, to, f"{where}.{f.name}", from_pandas=from_pandas))
        for i, f, to in ((0, key, target.key_type), (1, value, target.item_type))
    )
    if keys.null_count:
        raise OptionError(f"column {where!r} has a null key; keys of maps must not be null")
    # Without values, Arrow infers the type null, which it does not accept for the keys of maps.
    keys = fitted(keys, key.type, target.key_type, f"{where}.key")
    return map_of(lengths, keys, values, pa.map_(keys.type, values.type))


def _is_list(value: object) -> bool:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _misshaped(value: object, wanted: str, where: str) -> OptionError:
    return OptionError(f"column {where!r}: {str(value)[:60]!r} is of type {type(value).__name__}; expected {wanted}")


def _whole(array: AnyColumn) -> AnyArray:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _plain(values: Sequence[Any], kind: Type | None, where: str, from_pandas: bool) -> AnyArray:
    base = None if kind is None else type_base(kind)
    if base == "uuid":  # pyarrow accepts UUID objects only from version 22 on
        values = [v.bytes if isinstance(v, UUID) else v for v in values]
    try:
        found = plain_values(values, from_pandas=from_pandas)
    except _WRONG:
        if kind is None or base != "decimal":
            raise
        # Arrow cannot infer a type for integers beyond 64 bits, or for decimals with more digits than the first one.
        return pa.array(values, arrow_type(kind), from_pandas=from_pandas)
    if isinstance(values, list) and (pa.types.is_date(found.type) or pa.types.is_timestamp(found.type)):
        _refuse_mixed(values, found.type, where)
    return found


def plain_values(values: RowsLike, *, from_pandas: bool) -> AnyArray:
    """Convert values with `pyarrow.array`, handling the nulls of pandas and NumPy, and pandas' nanoseconds.

    If Arrow infers the type itself, it drops nanoseconds, because it treats pandas' timestamps like Python's. Arrow's
    errors are not converted.
    """
    values = _with_none(values)
    found = build.array(values, from_pandas=from_pandas)
    is_python = not hasattr(values, "dtype") or values.dtype == object
    if is_python and pa.types.is_timestamp(found.type) and any(getattr(v, "nanosecond", 0) for v in values):
        return build.array(values, pa.timestamp("ns", found.type.tz), from_pandas=from_pandas)
    return found


def _refuse_mixed(values: list[Any], found: pa.DataType, where: str) -> None:
    """Refuse dates mixed with timestamps, and timestamps with and without a zone: Arrow would drop times or zones."""
    instants = [v for v in values if isinstance(v, datetime) and v == v]  # without NaT, which is a datetime too
    if pa.types.is_date(found) and instants:
        raise OptionError(f"column {where!r} has dates and timestamps: give only one of the two")
    if len({v.tzinfo is None for v in instants}) > 1:
        raise OptionError(f"column {where!r} has timestamps with and without a time zone: give only one of the two")
