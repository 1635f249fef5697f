"""Position and equality delete files, in any format of data files (Iceberg specification, "Delete Formats")."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, AnyField, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError
from iceexplore.formats import FIELD_ID, field_id, foreign, read_rows
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType, Type, arrow_type

if TYPE_CHECKING:
    from iceexplore.storage import Storage

__all__ = ["FILE_PATH_ID", "POS_ID", "ROW_ID", "column_of", "read_equality_deletes", "read_position_deletes"]

#: Reserved field ids of the columns of a position delete file.
FILE_PATH_ID = 2147483546
POS_ID = 2147483545
ROW_ID = 2147483544


def read_position_deletes(storage: Storage, location: str, file_format: str | None = None) -> pa.Table:
    """Read a position delete file into a table of rows; for files with very many rows use `read_positions`.

    Parameters
    ----------
    file_format
        The format according to the manifest, for error messages; the content determines the actual format.

    Returns
    -------
    pyarrow.Table
        ``file_path`` (string), ``pos`` (int64), and ``row`` (struct, as in the file) if the file has it. Rows
        without a path or position delete nothing and are left out.

    Raises
    ------
    FormatError
        The file is not in a format of data files, is damaged, or lacks the column ``file_path`` or ``pos``.
    """
    table = read_rows(storage, location, kind="delete-file", stated=file_format)
    path = column_of(table.schema, FILE_PATH_ID, "file_path", location)
    pos = column_of(table.schema, POS_ID, "pos", location)
    columns: dict[str, tuple[int, pa.DataType]] = {"file_path": (path, pa.string()), "pos": (pos, pa.int64())}
    with foreign("the position delete file", location):
        out = build.table({name: table.column(i).cast(kind) for name, (i, kind) in columns.items()})
        row = _find(table.schema, ROW_ID, "row")
        if row is not None:
            out = out.append_column(pa.field("row", table.schema.field(row).type), table.column(row))
        if out.column(0).null_count or out.column(1).null_count:
            out = out.filter(pc.and_(pc.is_valid(out.column(0)), pc.is_valid(out.column(1))))
    return out


def read_equality_deletes(storage: Storage, location: str, file_format: str | None, schema: Schema) -> pa.Table:
    """Read an equality delete file. Its columns get names and types from a schema of the table.

    Parameters
    ----------
    file_format
        The format according to the manifest, for error messages; the content determines the actual format.
    schema
        The source of the columns' names and types. Columns are matched by field id at every depth; by name only if the
        file has no field ids.

    Returns
    -------
    pyarrow.Table
        Every column of the file, in its order; ``PARQUET:field_id`` in a field's metadata is its field id. A column
        that the schema does not have (dropped since) keeps the file's name and type.

    Raises
    ------
    FormatError
        The file is not in a format of data files, is damaged, or has values that do not fit the schema's types.
    """
    table = read_rows(storage, location, kind="delete-file", stated=file_format)
    by_id = {f.field_id: f for f in schema.fields}
    by_name = {f.name: f for f in schema.fields}
    no_ids = all(field_id(f) is None for f in table.schema)
    fields: list[AnyField] = []
    columns: list[AnyChunkedArray] = []
    for field, column in zip(table.schema, table.columns, strict=True):
        number = field_id(field)
        known = by_name.get(field.name) if no_ids else by_id.get(number) if number is not None else None
        if known is None:
            fields.append(field)
            columns.append(column)
            continue
        target = _target(known.type, field.type)
        metadata = {FIELD_ID: str(known.field_id)}
        fields.append(pa.field(known.name, target, metadata=metadata))
        with foreign(f"column {known.name}", location):
            columns.append(_fit(column, field.type, target))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _find(schema: pa.Schema, number: int, name: str) -> int | None:
    ids = [field_id(f) for f in schema]
    if number in ids:
        return ids.index(number)
    # Match by name only if the file has no ids: otherwise, a column with this name but another id is a different one.
    if all(i is None for i in ids) and name in schema.names:
        return int(schema.names.index(name))
    return None


def column_of(schema: pa.Schema, number: int, name: str, location: str) -> int:
    """Return the index of a position delete file's column, by field id, or by name if the file has no ids.

    Raises `FormatError` if the column is missing.
    """
    found = _find(schema, number, name)
    if found is None:
        raise FormatError(
            f"not a position delete file: no column {name} (id {number}) in {', '.join(schema.names[:20])}",
            location=location,
            field=name,
        )
    return found


def _target(wanted: Type, found: pa.DataType) -> pa.DataType:
    """Return the Arrow type for a column: the children that the file has, with the schema's names and types."""
    match wanted:
        case StructType(fields) if pa.types.is_struct(found):
            by_id = {f.field_id: f for f in fields}
            return pa.struct([_child(found.field(i), by_id) for i in range(found.num_fields)])
        case ListType(element) if pa.types.is_list(found):
            return pa.list_(_child(found.value_field, {element.field_id: element}))
        case MapType(key, value) if pa.types.is_map(found):
            by_id = {key.field_id: key, value.field_id: value}
            return build.map_(_child(found.key_field, by_id), _child(found.item_field, by_id))
        case StructType() | ListType() | MapType():
            return found
    return arrow_type(wanted)


def _child(field: AnyField, by_id: dict[int, NestedField]) -> AnyField:
    number = field_id(field)
    known = by_id.get(number) if number is not None else None
    if known is None:
        return field
    return pa.field(known.name, _target(known.type, field.type), field.nullable, {FIELD_ID: str(number)})


def _fit(column: AnyChunkedArray, found: pa.DataType, target: pa.DataType) -> AnyChunkedArray:
    if found == target:
        return column
    chunks = [_fit_array(chunk, target) for chunk in column.chunks]
    return build.chunked_array(chunks, type=target)


def _fit_array(array: AnyArray, target: pa.DataType) -> AnyArray:
    """Cast an array, matching children by position: Arrow's cast matches them by name, which fails after a rename."""
    if pa.types.is_struct(target):
        children = [
            _fit_array(cast(pa.StructArray, array).field(i), cast(pa.StructArray, target).field(i).type)
            for i in range(target.num_fields)
        ]
        fields = [target.field(i) for i in range(target.num_fields)]
        mask = array.is_null()
        return pa.StructArray.from_arrays([_shifted(c, array) for c in children], fields=fields, mask=mask)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type):
        # Arrow reads timestamps of ORC and INT96 as nanoseconds. The table's own unit may be microseconds: then the
        # file's nanoseconds are multiples of 1,000, and an unsafe cast loses nothing.
        return array.cast(target, safe=False) if array.type.unit == "ns" else array.cast(target)
    return array.cast(target)


def _shifted(child: AnyArray, parent: AnyArray) -> AnyArray:
    """Cut a child to its parent's length; ``StructArray.field`` has already applied the parent's offset."""
    return child if len(child) == len(parent) else child.slice(0, len(parent))
