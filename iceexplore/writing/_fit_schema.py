"""Columns of a frame as the table has them: by name at every depth, in its types, with defaults filled in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.errors import OptionError, nearest
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType, Type, arrow_type, type_base
from iceexplore.writing._fit_values import fit_values, plain_array
from iceexplore.writing._parquet import file_schema
from iceexplore.writing._required_fields import entries_of, list_of, map_of, pairs_of, with_required

__all__ = ["default_of", "fit_columns", "fitted"]

_LISTS = (pa.ListArray, pa.LargeListArray, pa.ListViewArray, pa.LargeListViewArray, pa.FixedSizeListArray)


def fit_columns(table: pa.Table, schema: Schema, *, complete: bool) -> pa.Table:
    """The columns of a frame by the schema's names and types, in its order.

    Parameters
    ----------
    complete
        Columns that are missing are filled: with the write default, or nulls. Otherwise they stay away. Fields that a
        struct lacks are always filled.

    Raises
    ------
    OptionError
        An unknown column (the message names the nearest), a required one that is missing or has nulls, a value that
        does not fit.
    """
    known = {f.name: None for f in schema.fields}
    given: set[str] = set()
    for name in table.column_names:  # asked once: Arrow makes the list anew each time
        if name not in known:
            raise OptionError(f"no column {name!r} in the table; {nearest(name, list(known))}")
        if name in given:
            raise OptionError(f"column {name!r} is there twice")
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
                f"column {f.name!r} is required, and missing; the frame has {', '.join(table.column_names)}"
            )
        else:
            column = _fit(pa.chunked_array([pa.nulls(table.num_rows)]), f, stored.type)
        if f.required and column.null_count:
            raise OptionError(f"column {f.name!r} is required, and has {column.null_count} nulls")
        fields.append(stored)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _fit(column: pa.ChunkedArray, f: NestedField, kind: pa.DataType) -> pa.ChunkedArray:
    def fit(part: pa.ChunkedArray) -> pa.ChunkedArray:
        # One chunk at least: a type that does not fit is refused without a row, too.
        chunks = part.chunks or [pa.nulls(0, part.type)]
        return pa.chunked_array([with_required(fitted(c, f.type, kind, f.name), f.type, f.name) for c in chunks], kind)

    try:
        return fit(column)
    except OptionError as error:
        row = _first_wrong(column, fit)
        raise error if row is None else OptionError(f"{error} (row {row}, counted from 0)") from None


def _first_wrong(column: pa.ChunkedArray, fit: Any) -> int | None:
    """The first row that does not fit, found by halves; None if the type is refused whatever the values are."""

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


def fitted(array: pa.Array, kind: Type, target: pa.DataType, where: str) -> pa.Array:
    """Values of any type as `file_schema` has it; what is under a null parent may be null.

    Raises
    ------
    OptionError
        As `fit_columns`.
    """
    array = plain_array(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    match kind:
        case StructType(fields) if pa.types.is_struct(array.type):
            return _struct(array, fields, target, where)
        case ListType(element) if isinstance(array, _LISTS):
            lengths, values = entries_of(array)
            return list_of(lengths, fitted(values, element.type, target.value_type, f"{where}.element"), target)
        case MapType(key, value) if isinstance(array, pa.MapArray):
            lengths, keys, values = pairs_of(array)
            keys = fitted(keys, key.type, target.key_type, f"{where}.key")
            return map_of(lengths, keys, fitted(values, value.type, target.item_type, f"{where}.value"), target)
        case StructType() | ListType() | MapType():
            raise OptionError(f"column {where!r}: {array.type} does not fit {kind}")
    return fit_values(array, kind, target, where)


def _struct(array: pa.StructArray, fields: tuple[NestedField, ...], target: pa.DataType, where: str) -> pa.Array:
    """Children by name: Arrow's cast of structs goes by place."""
    given = [array.type.field(i).name for i in range(array.type.num_fields)]
    names = [f.name for f in fields]
    for name in given:
        if name not in names:
            raise OptionError(f"column {where!r}: no field {name!r}; {nearest(name, names)}")
    values = array.flatten()  # null where the struct is: nobody looks at what is there
    children = []
    for i, f in enumerate(fields):
        to = target.field(i).type
        if f.name in given:
            children.append(fitted(values[given.index(f.name)], f.type, to, f"{where}.{f.name}"))
        elif f.write_default is not None:
            # The spec's "Default values": a field that the writer does not supply has its write default.
            children.append(repeated(default_of(f, to), len(array)))
        elif f.required and array.null_count < len(array):
            raise OptionError(f"column '{where}.{f.name}' is required, and missing")
        else:
            children.append(pa.nulls(len(array), to))
    # Without fields only the mask has the length.
    mask = array.is_null() if array.null_count or not children else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def default_of(f: NestedField, target: pa.DataType) -> pa.Array:
    """A field's write default, as an array of one."""
    plain = pa.array([_named(f.type, f.write_default)], arrow_type(f.type))
    return with_required(fitted(plain, f.type, target, f.name), f.type, f.name)


def _named(kind: Type, value: Any) -> Any:
    """A default as Arrow takes it: structs by name; what they do not say is the default of the field itself."""
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


def repeated(one: pa.Array, rows: int) -> pa.Array:
    """An array of one, so many times."""
    return one.take(pa.array(np.zeros(rows, np.int64)))
