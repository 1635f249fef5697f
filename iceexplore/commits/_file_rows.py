"""Rows as they go into a data file: required fields filled under null parents, and no variants."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iceexplore.commits._required import with_required
from iceexplore.metadata import NestedField, Schema, StructType, Type, type_base

__all__ = ["file_rows"]


def file_rows(table: pa.Table, schema: Schema) -> pa.Table:
    """The columns to be written; those that the schema lacks (of the rows' lineage) stay.

    Variants are left out, from structs too: all of them are null, and a column that a file lacks is null (spec,
    "Column Projection"). A group without Parquet's annotation as a variant, which pyarrow does not write, is refused
    by some readers.

    Raises
    ------
    OptionError
        A required field, list element or map value inside a column is null.
    """
    by_name = {f.name: f for f in schema.fields}
    kept = _kept([by_name.get(name) for name in table.column_names])
    fields, columns = [], []
    for i in kept:
        field, column = table.schema.field(i), table.column(i)
        f = by_name.get(field.name)
        if f is not None:
            chunks = [_without_variants(with_required(c, f.type, f.name), f.type) for c in column.chunks]
            if chunks:
                field, column = field.with_type(chunks[0].type), pa.chunked_array(chunks)
        fields.append(field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _kept(fields: Sequence[NestedField | None]) -> list[int]:
    """Places of those that are no variants; all of them if there are no others: Parquet has no empty groups."""
    places = [i for i, f in enumerate(fields) if f is None or type_base(f.type) != "variant"]
    return places or list(range(len(fields)))


def _without_variants(array: pa.Array, kind: Type) -> pa.Array:
    if not isinstance(kind, StructType):
        return array
    fields, children = [], []
    for i in _kept(kind.fields):
        child = _without_variants(array.field(i), kind.fields[i].type)
        fields.append(array.type.field(i).with_type(child.type))
        children.append(child)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
