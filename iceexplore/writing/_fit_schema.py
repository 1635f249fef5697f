"""Convert a frame's columns to the table's: matched by name at every depth, cast to its types, defaults filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast
from uuid import UUID

import numpy as np
import pyarrow as pa

from iceexplore.arrow import (
    AnyArray,
    AnyChunkedArray,
    AnyDecimalType,
    AnyDictionaryArray,
    AnyExtensionArray,
    AnyListType,
    AnyMapType,
    PlainValue,
    build,
)
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, nearest
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType, Type, arrow_type, type_base
from iceexplore.writing._parquet import file_schema
from iceexplore.writing._required_fields import entries_of, list_of, map_of, pairs_of, with_required

__all__ = [
    "default_of",
    "fit_columns",
    "fitted",
]

_DAY_MICROS = 86_400_000_000
#: Precision of Arrow's widest decimal: integers and decimals are cast to it before their range is checked.
_WIDEST = 76
_Test = Callable[[pa.DataType], bool]


def _any_of(*tests: _Test) -> _Test:
    return lambda kind: any(test(kind) for test in tests)


_TEXT = _any_of(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = _any_of(
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary
)  # fmt: skip
_NUMBER = _any_of(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_INSTANT = _any_of(pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer, _TEXT)
#: The types from which a column accepts values, by the name of its own type without parameters. Arrow would cast much
#: more: text to numbers, numbers to booleans, dates to integers.
_TAKES: dict[str, _Test] = {
    "boolean": pa.types.is_boolean,
    "int": _NUMBER,
    "long": _NUMBER,
    "float": _NUMBER,
    "double": _NUMBER,
    "decimal": _NUMBER,
    "date": _INSTANT,
    "time": _any_of(pa.types.is_time, pa.types.is_integer),
    "timestamp": _INSTANT,
    "timestamptz": _INSTANT,
    "timestamp_ns": _INSTANT,
    "timestamptz_ns": _INSTANT,
    "string": _TEXT,
    "uuid": _any_of(_TEXT, _BYTES),
    "binary": _BYTES,
    "fixed": _BYTES,
}


def plain_array(array: AnyArray) -> AnyArray:
    """Return the array without encodings of its values: extension types, dictionaries, run-end encoding."""
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            array = cast(AnyExtensionArray, array).storage
        elif pa.types.is_dictionary(array.type):
            array = cast(AnyDictionaryArray, array).dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


def fit_values(array: AnyArray, kind: Type, target: pa.DataType, where: str) -> AnyArray:
    """Return values cast to a primitive type.

    Parameters
    ----------
    array
        An array as returned by `plain_array`.
    target
        The Arrow type of ``kind`` in data files.
    where
        The column's name, for messages.

    Raises
    ------
    OptionError
        The array's type is not accepted, or a value is invalid for ``kind``.
    """
    base, given = type_base(kind), array.type
    if pa.types.is_null(given):
        return build.nulls(len(array), target)
    wrong = f"column {where!r}: {given} does not fit {kind}"
    takes = _TAKES.get(base)
    if takes is None:
        if array.null_count < len(array):
            raise OptionError(f"{wrong}: writing values of this type is not supported")
        return build.nulls(len(array), target)
    if not takes(given):
        raise OptionError(wrong)
    zone = pa.types.is_timestamp(given) and given.tz is not None
    if pa.types.is_timestamp(given) and zone != base.startswith("timestamptz"):
        raise OptionError(f"{wrong}: only one of the two types has a time zone")
    try:
        if isinstance(target, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(target, _cast(array, base, target.storage_type))
        return _cast(array, base, target)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise OptionError(f"{wrong}: {error}") from None


def _cast(array: AnyArray, base: str, target: pa.DataType) -> AnyArray:
    """Cast with Arrow, and raise a ValueError if Arrow would silently lose a value."""
    given = array.type
    if _TEXT(given):
        array = array.cast(pa.string())
        array.validate(full=True)  # the cast alone would accept bytes that are not UTF-8
    match base:
        case "uuid" if _TEXT(given):
            return pa.array([None if v is None else UUID(v).bytes for v in array.to_pylist()], target)
        case "decimal":
            return _decimal(array, target)
        case "float" | "double":
            made = array.cast(target)
            inside = pc.is_finite(array) if pa.types.is_floating(given) else array.is_valid()
            return _all(array, made, pc.or_(pc.invert(inside), pc.is_finite(made)), "is out of range")
        case "date" if pa.types.is_timestamp(given):
            made = array.cast(target)
            return _all(array, made, pc.equal(made.cast(given), array), "has a time of day")
        case "time":
            made = array.cast(target)
            micros = made.cast(pa.int64())
            inside = pc.and_(pc.greater_equal(micros, 0), pc.less(micros, _DAY_MICROS))
            return _all(
                micros,
                made,
                inside,
                f"microseconds after midnight is not a time of day: expected 0 to {_DAY_MICROS - 1}",
            )
    return array.cast(target)


def _decimal(array: AnyArray, target: pa.DataType) -> AnyArray:
    if pa.types.is_floating(array.type):
        return array.cast(target)  # rounded, because floats are rarely exact decimal fractions
    return array.cast(pa.decimal256(_WIDEST, cast(AnyDecimalType, target).scale)).cast(target)


def _all(array: AnyArray, made: AnyArray, fine: AnyArray, what: str) -> AnyArray:
    """Return the converted array if all values (other than null) are valid; else raise a ValueError."""
    wrong = array.filter(pc.invert(fine))
    if len(wrong) > wrong.null_count:
        raise ValueError(f"{wrong.drop_null().cast(pa.string())[0].as_py()} {what}")
    return made


_LISTS = (pa.ListArray, pa.LargeListArray, pa.ListViewArray, pa.LargeListViewArray, pa.FixedSizeListArray)


def fit_columns(table: pa.Table, schema: Schema, *, complete: bool) -> pa.Table:
    """Return a frame's columns with the schema's names and types, in its order.

    Parameters
    ----------
    complete
        Fill missing columns with the write default, or nulls; otherwise they are left out. Missing fields of a struct
        are always filled.

    Raises
    ------
    OptionError
        A column is unknown (the message suggests the nearest name), a required one is missing or has nulls, or a value
        does not fit.
    """
    known = {f.name: None for f in schema.fields}
    given: set[str] = set()
    for name in table.column_names:  # read once: Arrow creates a new list each time
        if name not in known:
            raise OptionError(f"no column {name!r} in the table; {nearest(name, list(known))}")
        if name in given:
            raise OptionError(f"column {name!r} is given twice")
        given.add(name)
    wanted = file_schema(schema)
    fields, columns = [], []
    for f, stored in zip(schema.fields, wanted, strict=True):
        if f.name in given:
            column = _fit(table[f.name], f, stored.type)
        elif not complete:
            continue
        elif f.write_default is not None:
            column = pa.chunked_array([repeated(default_of(f, stored.type), table.num_rows)])
        elif f.required:
            raise OptionError(
                f"column {f.name!r} is required but missing; the frame has {', '.join(table.column_names)}"
            )
        else:
            column = _fit(pa.chunked_array([pa.nulls(table.num_rows)]), f, stored.type)
        if f.required and column.null_count:
            raise OptionError(f"column {f.name!r} is required but has {column.null_count} nulls")
        fields.append(stored)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _fit(column: AnyChunkedArray, f: NestedField, kind: pa.DataType) -> AnyChunkedArray:
    def fit(part: AnyChunkedArray) -> AnyChunkedArray:
        # At least one chunk, so that a type that does not fit is refused even without rows.
        chunks = part.chunks or [pa.nulls(0, part.type)]
        return build.chunked_array(
            [with_required(fitted(c, f.type, kind, f.name), f.type, f.name) for c in chunks], kind
        )

    try:
        return fit(column)
    except OptionError as error:
        row = _first_wrong(column, fit)
        raise error if row is None else OptionError(f"{error} (row {row}, counted from 0)") from None


def _first_wrong(column: AnyChunkedArray, fit: Callable[[AnyChunkedArray], object]) -> int | None:
    """Return the first row that does not fit, found by bisection; None if the type itself does not fit."""

    def fails(first: int, rows: int) -> bool:
        try:
            fit(column.slice(first, rows))
        except OptionError:
            return True
        return False

    if fails(0, 0):
        return None
    low, high = 0, len(column)
    while high - low > 1:
        half = (low + high) // 2
        low, high = (low, half) if fails(low, half - low) else (half, high)
    return low


def fitted(array: AnyArray, kind: Type, target: pa.DataType, where: str) -> AnyArray:
    """Return values converted to ``target``, the Arrow type that `file_schema` gives the column, at any nesting depth.

    Values of required fields may still be null if their parent is null.

    Raises
    ------
    OptionError
        For the same reasons as `fit_columns`.
    """
    array = plain_array(array)
    if pa.types.is_null(array.type):
        return build.nulls(len(array), target)
    match kind:
        case StructType(fields) if pa.types.is_struct(array.type):
            return _struct(cast(pa.StructArray, array), fields, target, where)
        case ListType(element) if isinstance(array, _LISTS):
            lengths, values = entries_of(array)
            return list_of(
                lengths, fitted(values, element.type, cast(AnyListType, target).value_type, f"{where}.element"), target
            )
        case MapType(key, value) if isinstance(array, pa.MapArray):
            lengths, keys, values = pairs_of(array)
            keys = fitted(keys, key.type, cast(AnyMapType, target).key_type, f"{where}.key")
            return map_of(
                lengths, keys, fitted(values, value.type, cast(AnyMapType, target).item_type, f"{where}.value"), target
            )
        case StructType() | ListType() | MapType():
            raise OptionError(f"column {where!r}: {array.type} does not fit {kind}")
    return fit_values(array, kind, target, where)


def _struct(array: pa.StructArray, fields: tuple[NestedField, ...], target: pa.DataType, where: str) -> AnyArray:
    """Convert a struct, matching its fields by name, because Arrow's cast matches them by position."""
    given = [array.type.field(i).name for i in range(array.type.num_fields)]
    names = [f.name for f in fields]
    for name in given:
        if name not in names:
            raise OptionError(f"column {where!r}: no field {name!r}; {nearest(name, names)}")
    values = array.flatten()  # null where the struct is null
    children = []
    for i, f in enumerate(fields):
        to = target.field(i).type
        if f.name in given:
            children.append(fitted(values[given.index(f.name)], f.type, to, f"{where}.{f.name}"))
        elif f.write_default is not None:
            # Spec, "Default values": a field that the writer does not supply has its write default.
            children.append(repeated(default_of(f, to), len(array)))
        elif f.required and array.null_count < len(array):
            raise OptionError(f"column '{where}.{f.name}' is required but missing")
        else:
            children.append(pa.nulls(len(array), to))
    # Without child arrays, the mask is needed to give the new array its length.
    mask = array.is_null() if array.null_count or not children else None
    return pa.StructArray.from_arrays(children, fields=list(cast(pa.StructType, target)), mask=mask)


def default_of(f: NestedField, target: pa.DataType) -> AnyArray:
    """Return a field's write default as an array of one value."""
    plain = pa.array([_named(f.type, f.write_default)], arrow_type(f.type))
    return with_required(fitted(plain, f.type, target, f.name), f.type, f.name)


def _named(kind: Type, value: PlainValue) -> PlainValue:
    """Return a default in the form that Arrow accepts: structs by field name, with the defaults of missing fields."""
    if value is None:
        return None
    match kind:
        case StructType(fields):
            return {f.name: _named(f.type, value.get(f.field_id, f.write_default)) for f in fields}
        case ListType(element):
            return [_named(element.type, v) for v in value]
        case MapType(key, item):
            return [(_named(key.type, k), _named(item.type, v)) for k, v in value]
    return value.bytes if type_base(kind) == "uuid" else value


def repeated(one: AnyArray, rows: int) -> AnyArray:
    """Return an array of one value, repeated."""
    return one.take(build.array(np.zeros(rows, np.int64)))
