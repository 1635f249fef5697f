"""Rows as they go into a data file: required fields filled under null parents, untyped columns left out."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iceexplore.errors import OptionError
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType, Type, type_base
from iceexplore.writing._required_fields import entries_of, list_of, map_of, pairs_of, with_required

__all__ = ["file_rows"]

#: Types whose columns are left out. All values of an ``unknown`` column are null, and the spec has no Parquet form for
#: it ("Parquet": omitted); Iceberg's Java fails on Parquet's own type of nulls. Variants are null here, too: pyarrow
#: writes no group with Parquet's annotation as a variant, and some readers refuse one without.
_OMITTED = frozenset(("unknown", "variant"))


def file_rows(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the columns to be written; those that the schema lacks (row lineage) stay.

    A column that a file lacks is read as null (spec, "Column Projection"), so that nothing is lost by leaving out
    columns and struct fields of the types `unknown` and `variant`.

    Raises
    ------
    OptionError
        A required field, list element or map value inside a column is null; or an `unknown` type stands where it
        cannot be left out: as an element, key or value, or as all that a struct has. Java refuses the same
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
    """Return the places of fields that are written: variants only where there is nothing else.

    Parquet has no empty groups.
    """
    bases = [None if f is None else type_base(f.type) for f in fields]
    places = [i for i, base in enumerate(bases) if base not in _OMITTED]
    places = places or [i for i, base in enumerate(bases) if base != "unknown"]
    if not places:
        raise OptionError(f"{where} has columns of type unknown only: Parquet needs at least one of another type")
    return places


def _stored(array: pa.Array, kind: Type, where: str) -> pa.Array:
    """Return an array without the struct fields that are left out, at any depth."""
    if not _has_omitted(kind):
        return array
    match kind:
        case StructType(children):
            places = _kept(children, f"struct {where!r}")
            kept = [_stored(array.field(i), children[i].type, f"{where}.{children[i].name}") for i in places]
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
        raise OptionError(f"{where!r} has the type unknown, which Parquet files cannot hold inside lists and maps")
