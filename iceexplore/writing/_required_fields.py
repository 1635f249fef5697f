"""Prepare columns for Parquet: refuse or fill nulls in required nested fields, and leave out unsupported types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyExtensionArray, AnyListArray, AnyMapArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType, Type, type_base

__all__ = [
    "entries_of",
    "file_rows",
    "list_of",
    "map_of",
    "pairs_of",
    "with_required",
]

#: Types whose columns are not written. All values of an ``unknown`` column are null, and the spec has no Parquet form
#: for it (it is "omitted" according to "Parquet"); Iceberg's Java library fails on Parquet's null type. Variants are
#: always null, too: pyarrow cannot write Parquet's variant annotation, and some readers refuse a variant without it.
_OMITTED = frozenset(("unknown", "variant"))


def file_rows(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the columns to write; columns that the schema lacks (row lineage) are kept.

    A column that a file lacks is read as null (spec, "Column Projection"), so leaving out columns and struct fields of
    the types `unknown` and `variant` loses nothing.

    Raises
    ------
    OptionError
        A required field, list element or map value inside a column is null; or an `unknown` type is used where it
        cannot be left out: as an element, key or value, or as the only field of a struct. Java refuses the same
        (``TypeToMessageType``).
    """
    by_name = {f.name: f for f in schema.fields}
    kept = _kept([by_name.get(name) for name in table.column_names], "the table")
    fields, columns = [], []
    for i in kept:
        field, column = table.schema.field(i), table.column(i)
        f = by_name.get(field.name)
        if f is not None:
            chunks = [_stored(with_required(c, f.type, f.name), f.type, f.name) for c in column.chunks]
            if chunks:
                field, column = field.with_type(chunks[0].type), pa.chunked_array(chunks)
        fields.append(field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _kept(fields: Sequence[NestedField | None], where: str) -> list[int]:
    """Return the indices of the fields to write.

    Variants are written only if there are no other fields, because Parquet has no empty groups.
    """
    bases = [None if f is None else type_base(f.type) for f in fields]
    places = [i for i, base in enumerate(bases) if base not in _OMITTED]
    places = places or [i for i, base in enumerate(bases) if base != "unknown"]
    if not places:
        raise OptionError(
            f"{where} has only columns of type unknown: Parquet needs at least one column of another type"
        )
    return places


def _stored(array: AnyArray, kind: Type, where: str) -> AnyArray:
    """Return an array without the struct fields that are not written, at any depth."""
    if not _has_omitted(kind):
        return array
    match kind:
        case StructType(children):
            places = _kept(children, f"struct {where!r}")
            kept = [
                _stored(cast(pa.StructArray, array).field(i), children[i].type, f"{where}.{children[i].name}")
                for i in places
            ]
            fields = [array.type.field(i).with_type(child.type) for i, child in zip(places, kept, strict=True)]
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(kept, fields=fields, mask=mask)
        case ListType(element):
            _refuse_unknown(element, f"{where}.element")
            lengths, values = entries_of(array)
            values = _stored(values, element.type, f"{where}.element")
            return list_of(lengths, values, pa.list_(array.type.value_field.with_type(values.type)))
        case MapType(key, value):
            _refuse_unknown(key, f"{where}.key")
            _refuse_unknown(value, f"{where}.value")
            lengths, keys, values = pairs_of(array)
            keys, values = _stored(keys, key.type, f"{where}.key"), _stored(values, value.type, f"{where}.value")
            fields = [array.type.key_field.with_type(keys.type), array.type.item_field.with_type(values.type)]
            return map_of(lengths, keys, values, pa.map_(*fields))
    return array


def _has_omitted(kind: Type) -> bool:
    match kind:
        case StructType(fields):
            return any(type_base(f.type) in _OMITTED or _has_omitted(f.type) for f in fields)
        case ListType(element):
            return type_base(element.type) == "unknown" or _has_omitted(element.type)
        case MapType(key, value):
            return any(type_base(f.type) == "unknown" or _has_omitted(f.type) for f in (key, value))
    return False


def _refuse_unknown(field: NestedField, where: str) -> None:
    if type_base(field.type) == "unknown":
        raise OptionError(f"{where!r} has type unknown, which Parquet files cannot contain inside lists and maps")


_MOST_ELEMENTS = 2**31 - 1


def with_required(array: AnyArray, kind: Type, where: str) -> AnyArray:
    """Return a column whose required fields are never null: under a null parent they get arbitrary values.

    The Parquet writer and Arrow's casts check fields that are declared non-null without regard to their parents. Values
    under a null parent are not written, so they do not matter.

    Raises
    ------
    OptionError
        A required field, list element or map value is null although its parent is not.
    """
    if not _has_required(kind):
        return array
    match kind:
        case StructType(fields):
            children = []
            for i, f in enumerate(fields):
                child = with_required(cast(pa.StructArray, array).field(i), f.type, f"{where}.{f.name}")
                if f.required and child.null_count:
                    missing = pc.and_(child.is_null(), array.is_valid())
                    if missing.true_count:
                        raise _null(f"{where}.{f.name}", missing.true_count)
                    child = _never_null(child)
                children.append(child)
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)
        case ListType(element):
            lengths, values = entries_of(array)
            if element.required and values.null_count:
                raise _null(f"{where}.element", values.null_count)
            return list_of(lengths, with_required(values, element.type, f"{where}.element"), array.type)
        case MapType(key, value):
            lengths, keys, values = pairs_of(array)
            if value.required and values.null_count:
                raise _null(f"{where}.value", values.null_count)
            keys = with_required(keys, key.type, f"{where}.key")
            return map_of(lengths, keys, with_required(values, value.type, f"{where}.value"), array.type)
        case _ if type_base(kind) == "variant" and pa.types.is_struct(array.type):
            parts = [_never_null(cast(pa.StructArray, array).field(i)) for i in range(array.type.num_fields)]
            return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=array.is_null())
    return array


def _has_required(kind: Type) -> bool:
    match kind:
        case StructType(fields):
            return any(f.required or _has_required(f.type) for f in fields)
        case ListType(element):
            return element.required or _has_required(element.type)
        case MapType(key, value):
            return value.required or _has_required(key.type) or _has_required(value.type)
    return type_base(kind) == "variant"  # a variant has two required parts


def _null(where: str, count: int) -> OptionError:
    return OptionError(f"column {where!r} is required but has {count} nulls")


def _never_null(array: AnyArray) -> AnyArray:
    """Return the array without its validity bitmap: the underlying values replace the nulls."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _never_null(cast(AnyExtensionArray, array).storage))
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            [cast(pa.StructArray, array).field(i) for i in range(kind.num_fields)], fields=list(kind)
        )
    if pa.types.is_list(kind):
        lengths, values = entries_of(array)
        return list_of(pc.fill_null(lengths, 0), values, kind)
    if pa.types.is_map(kind):
        lengths, keys, values = pairs_of(array)
        return map_of(pc.fill_null(lengths, 0), keys, values, kind)
    buffers = [None, *array.buffers()[1:]]
    return pa.Array.from_buffers(kind, len(array), buffers, null_count=0, offset=array.offset)


def entries_of(array: Any) -> tuple[AnyArray, AnyArray]:  # noqa: ANN401  a list array of any class
    """Return the length of each list (null for a null list), and the elements of all lists.

    Elements under null lists or outside a slice are left out.
    """
    return pc.list_value_length(array), array.flatten()


def pairs_of(array: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the size of each map (null for a null map), and the keys and values of all maps, like `entries_of`."""
    full = pa.concat_arrays([cast(AnyMapArray, array)])  # without the entries outside a slice
    sizes, null = np.diff(np.asarray(full.offsets)), np.asarray(full.is_null())
    keys, values = full.keys, full.items
    if sizes[null].any():
        there = pa.array(np.repeat(~null, sizes))
        keys, values = keys.filter(there), values.filter(there)
    return pa.array(sizes, mask=null), keys, values


def list_of(lengths: AnyArray, values: AnyArray, kind: pa.DataType) -> AnyListArray:
    """Return lists of the given lengths, made of consecutive values."""
    mask = lengths.is_null() if lengths.null_count else None
    return build.list_array(_offsets(lengths), values, type=kind, mask=mask)


def map_of(lengths: AnyArray, keys: AnyArray, values: AnyArray, kind: pa.DataType) -> AnyMapArray:
    """Return maps of the given sizes, made of consecutive keys and values."""
    # Mark null maps in the offsets, because pyarrow before 20 accepts no mask when creating map arrays.
    offsets = pa.array(np.asarray(_offsets(lengths)), mask=np.append(np.asarray(lengths.is_null()), False))
    return build.map_array(offsets, keys, values, type=kind)


def _offsets(lengths: AnyArray) -> AnyArray:
    ends = np.cumsum(np.asarray(pc.fill_null(lengths, 0)), dtype=np.int64)
    if len(ends) and ends[-1] > _MOST_ELEMENTS:
        raise OptionError(
            f"the lists or maps of one column have {ends[-1]:,} elements, but the limit is {_MOST_ELEMENTS:,}: write "
            "fewer rows at once"
        )
    return pa.array(np.concatenate([[0], ends]).astype(np.int32))
