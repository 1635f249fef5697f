"""Data frames as data files: checked against the schema, split by partition, written as Parquet with field ids."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits._data_files import DataFile, file_schema, write_data_files
from iceexplore.commits._sort_rows import default_order, sorted_rows
from iceexplore.commits._transforms import apply_transform
from iceexplore.commits._writer import CommitWriter
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import ListType, MapType, NestedField, Schema, StructType, Type, arrow_type, type_base
from iceexplore.planning import PartitionColumn, nearest, partition_columns

__all__ = [
    "arrow_frame",
    "columns_at",
    "files_of_frame",
    "fit_columns",
    "partition_tuples",
    "split_by_partition",
    "target_bytes",
]

#: Java: ``TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT``; here of Arrow's bytes in memory.
_TARGET_BYTES = 512 << 20


def files_of_frame(
    state: TableState, frame: Any, writer: CommitWriter, *, lineage: pa.Table | None = None
) -> EntryBatch:
    """Write a frame's rows: a Parquet file per partition, more where one would get too large.

    The rows of a partition are in the table's sort order, if it has one.

    Parameters
    ----------
    lineage
        Columns ``_row_id`` and ``_last_updated_sequence_number`` of the rows, to be written beside the frame's own
        (spec, "Row Lineage"): rows that are moved keep them.

    Raises
    ------
    OptionError
        No rows, a column that the schema lacks, a required column or value that is missing, a type that does not fit.
    """
    spec = state.metadata.spec()
    if spec is None:
        raise OptionError("the table's default partition spec is missing: files cannot be added")
    table = fit_columns(arrow_frame(frame, state.schema), state.schema, complete=True)
    if not table.num_rows:
        raise OptionError("the frame has no rows: there is nothing to add")
    if lineage is not None:
        for column in lineage.schema:
            table = table.append_column(column, lineage[column.name])
    columns = partition_columns(state.metadata, spec)
    pieces = list(split_by_partition(table, state.schema, columns))
    order = default_order(state.metadata)
    if order is not None:
        pieces = [(partition, sorted_rows(rows, state.schema, order, columns_at)) for partition, rows in pieces]
    target = target_bytes(state.metadata.properties)
    order_id = 0 if order is None else order.order_id
    made = [
        DataFile(spec, part, partition, sort_order_id=order_id)
        for partition, rows in pieces
        for part in _in_size(rows, target)
    ]
    return write_data_files(state, writer, made, columns)


def arrow_frame(frame: Any, schema: Schema) -> pa.Table:
    """A pandas data frame (without its index), a dictionary of columns, or an Arrow table, as an Arrow table.

    Parameters
    ----------
    schema
        The table's: its types help where Arrow alone cannot tell what lists and dictionaries are.

    Raises
    ------
    OptionError
        Arrow cannot hold it; the message names the column.
    """
    if isinstance(frame, pa.Table):
        return frame
    types = {f.name: f.type for f in file_schema(schema)}
    names = [str(name) for name in (frame if isinstance(frame, Mapping) else frame.columns)]
    arrays = []
    for i, name in enumerate(names):
        values = list(frame.values())[i] if isinstance(frame, Mapping) else frame.iloc[:, i]
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            arrays.append(values)
            continue
        kind = types.get(name)
        # NaN means null in pandas alone.
        plain = isinstance(frame, Mapping)
        arrays.append(_column(list(values) if plain else values, name, kind, from_pandas=not plain))
    try:
        return pa.table(arrays, names=names)
    except (pa.ArrowException, ValueError) as error:
        raise OptionError(f"the columns do not make a table: {error}") from None


def _column(values: Any, name: str, kind: pa.DataType | None, *, from_pandas: bool) -> pa.Array:
    wrong = (pa.ArrowException, TypeError, ValueError, OverflowError)
    try:
        return pa.array(values, from_pandas=from_pandas)
    except wrong as error:
        if kind is not None and not isinstance(kind, pa.BaseExtensionType):
            with contextlib.suppress(*wrong):
                return pa.array(values, kind, from_pandas=from_pandas)
        raise OptionError(f"column {name!r} has values that Arrow cannot hold: {error}") from None


def fit_columns(table: pa.Table, schema: Schema, *, complete: bool) -> pa.Table:
    """The columns of a frame by the schema's names and types, in its order.

    Parameters
    ----------
    complete
        Columns that are missing are filled: with the write default, or nulls. Otherwise they stay away.

    Raises
    ------
    OptionError
        An unknown column (the message names the nearest), a required one that is missing or has nulls, a value that
        does not fit.
    """
    names = [f.name for f in schema.fields]
    for name in table.column_names:
        if name not in names:
            raise OptionError(f"no column {name!r} in the table; {nearest(name, names)}")
        if table.column_names.count(name) > 1:
            raise OptionError(f"column {name!r} is there twice")
    wanted = file_schema(schema)
    fields, columns = [], []
    for f, stored in zip(schema.fields, wanted, strict=True):
        if f.name in table.column_names:
            column = _fit(table[f.name], f, stored.type)
        elif not complete:
            continue
        elif f.write_default is not None:
            column = pa.chunked_array([pa.repeat(pa.scalar(f.write_default, arrow_type(f.type)), table.num_rows)])
            column = column.cast(stored.type)
        elif f.required:
            raise OptionError(
                f"column {f.name!r} is required, and missing; the frame has {', '.join(table.column_names)}"
            )
        else:
            column = pa.chunked_array([pa.nulls(table.num_rows, stored.type)])
        if f.required and column.null_count:
            raise OptionError(f"column {f.name!r} is required, and has {column.null_count} nulls")
        fields.append(stored)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _fit(column: pa.ChunkedArray, field: NestedField, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    wrong = f"column {field.name!r}: {column.type} does not fit {field.type}"
    base = type_base(field.type)
    if base in ("variant", "geometry", "geography") and column.null_count < len(column):
        raise OptionError(f"{wrong}: values of this type are not written here")
    given, is_text = column.type, pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if pa.types.is_dictionary(given):
        return _fit(column.cast(given.value_type), field, kind)
    # Arrow would read numbers out of text, and lose a time zone, without a word.
    if is_text and not (pa.types.is_string(kind) or pa.types.is_temporal(kind) or base == "uuid"):
        raise OptionError(wrong)
    if pa.types.is_string(kind) and not (is_text or pa.types.is_null(given)):
        raise OptionError(wrong)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(given) and (kind.tz is None) != (given.tz is None):
        raise OptionError(f"{wrong}: one has a time zone, the other has not")
    try:
        if base == "uuid" and is_text:
            from uuid import UUID

            column = pa.chunked_array(
                [[None if v is None else UUID(v).bytes for v in column.to_pylist()]], pa.binary(16)
            )
        if isinstance(kind, pa.BaseExtensionType):
            storage = column.cast(kind.storage_type)
            chunks = [pa.ExtensionArray.from_storage(kind, c) for c in storage.chunks]
            return pa.chunked_array(chunks, kind)
        if isinstance(field.type, (StructType, ListType, MapType)):
            return pa.chunked_array([_nested(c, field.type, kind, field.name) for c in column.chunks], kind)
        return column.cast(kind)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise OptionError(f"{wrong}: {error}") from None


def _nested(array: pa.Array, kind: Type, target: pa.DataType, where: str) -> pa.Array:
    """Children by name: Arrow's cast of structs goes by place."""
    match kind:
        case StructType(fields) if pa.types.is_struct(array.type):
            given = [array.type.field(i).name for i in range(array.type.num_fields)]
            names = [f.name for f in fields]
            for name in given:
                if name not in names:
                    raise OptionError(f"column {where!r}: no field {name!r}; {nearest(name, names)}")
            children = []
            for i, f in enumerate(fields):
                to = target.field(i).type
                if f.name not in given:
                    if f.required and array.null_count < len(array):
                        raise OptionError(f"column '{where}.{f.name}' is required, and missing")
                    children.append(pa.nulls(len(array), to))
                else:
                    child = array.field(given.index(f.name))
                    children.append(_nested(child, f.type, to, f"{where}.{f.name}"))
                    if f.required and pc.any(pc.and_(children[-1].is_null(), array.is_valid())).as_py():
                        raise OptionError(f"column '{where}.{f.name}' is required, and has nulls")
            return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
        case StructType() | MapType() | ListType() if array.type == target:
            return array
        case ListType(element) if isinstance(array, (pa.ListArray, pa.LargeListArray)):
            plain = _unsliced(array.cast(pa.list_(array.type.value_type)))
            values = _nested(plain.values, element.type, target.value_type, f"{where}.element")
            return pa.ListArray.from_arrays(plain.offsets, values, type=target, mask=_mask(plain))
        case MapType(key, value) if isinstance(array, pa.MapArray):
            plain = _unsliced(array)
            keys = _nested(plain.keys, key.type, target.key_type, f"{where}.key")
            values = _nested(plain.items, value.type, target.item_type, f"{where}.value")
            # Offsets with nulls: arrays of maps are made without a mask where pyarrow is older than 20.
            offsets = pa.array(np.asarray(plain.offsets), mask=np.append(np.asarray(plain.is_null()), False))
            return pa.MapArray.from_arrays(offsets, keys, values, type=target)
        case StructType() | ListType() | MapType():
            raise OptionError(f"column {where!r}: {array.type} does not fit {kind}")
    found = _fit(pa.chunked_array([array]), NestedField(0, where, kind), target)
    return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)


def _unsliced(array: Any) -> Any:
    """The offsets of a slice begin elsewhere, and take no mask."""
    return pa.concat_arrays([array]) if array.offset else array


def _mask(array: pa.ListArray) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None


def split_by_partition(
    table: pa.Table, schema: Schema, columns: Sequence[PartitionColumn]
) -> Iterator[tuple[pa.StructArray | None, pa.Table]]:
    """The rows of each partition, in their order, and its tuple (an array of one).

    Raises
    ------
    OptionError
        A transform that is not known, or a partition source that the table has no more.
    """
    if not columns:
        yield None, table
        return
    tuples = partition_tuples(table, schema, columns)
    code = np.zeros(table.num_rows, dtype=np.int64)
    for column in tuples:
        plain = column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column
        encoded = plain.dictionary_encode(null_encoding="encode")
        code = code * (len(encoded.dictionary) + 1) + np.asarray(encoded.indices)
        _, code = np.unique(code, return_inverse=True)
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    fields = [pa.field(c.key, t.type) for c, t in zip(columns, tuples, strict=True)]
    for rows in np.split(order, starts[1:]):
        first = pa.array(rows[:1])
        partition = pa.StructArray.from_arrays([t.take(first) for t in tuples], fields=fields)
        yield partition, table if len(starts) == 1 else table.take(pa.array(rows))


def partition_tuples(table: pa.Table, schema: Schema, columns: Sequence[PartitionColumn]) -> list[pa.Array]:
    """The partition values of rows, an array by partition column. Raises as `split_by_partition`."""
    out = []
    for column in columns:
        kind = arrow_type(column.type)
        if column.field.transform == "void":
            out.append(pa.nulls(table.num_rows, kind))
            continue
        if column.source is None:
            raise OptionError(f"partition field {column.field.name}: its column is in the schema no more")
        values = columns_at(table, schema, column.source.field_id)
        if values is None:
            raise OptionError(
                f"partition field {column.field.name} is made of {column.source.name}, which is not given"
            )
        out.append(apply_transform(column.field.transform, column.source.type, values).cast(kind))
    return out


def columns_at(table: pa.Table, schema: Schema, field_id: int) -> pa.Array | None:
    """The values of a column, also one inside structs, as its Arrow type; None if the table lacks it."""
    path = _path(schema.fields, field_id)
    if path is None or path[0].name not in table.column_names:
        return None
    array = table[path[0].name].combine_chunks()
    for parent, child in itertools.pairwise(path):
        assert isinstance(parent.type, StructType)
        array = pc.struct_field(array, [[f.field_id for f in parent.type.fields].index(child.field_id)])
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    return array.cast(arrow_type(path[-1].type))


def _path(fields: Sequence[NestedField], field_id: int) -> list[NestedField] | None:
    for f in fields:
        if f.field_id == field_id:
            return [f]
        if isinstance(f.type, StructType) and (rest := _path(f.type.fields, field_id)) is not None:
            return [f, *rest]
    return None


def target_bytes(properties: Mapping[str, str]) -> int:
    """About how large a file may get: ``write.target-file-size-bytes``, here of Arrow's bytes in memory."""
    text = properties.get("write.target-file-size-bytes", "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else _TARGET_BYTES


def _in_size(table: pa.Table, target: int) -> list[pa.Table]:
    """Parts of about the target size."""
    parts = max(1, min(table.num_rows, -(-table.nbytes // target)))
    cuts = np.linspace(0, table.num_rows, parts + 1).astype(int).tolist()
    return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
