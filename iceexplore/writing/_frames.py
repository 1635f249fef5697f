"""Write data frames to data files: fitted to the schema, split by partition, as Parquet with field ids."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyExtensionArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import NestedField, Schema, StructType, arrow_type
from iceexplore.planning import PartitionColumn, partition_columns
from iceexplore.writing._fit_schema import fit_columns
from iceexplore.writing._foreign_frames import RowsLike, foreign_frame
from iceexplore.writing._from_python import list_given, python_column
from iceexplore.writing._parquet import DataFile, file_schema, write_data_files
from iceexplore.writing._sink import FileSink
from iceexplore.writing._sort import default_order, sorted_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "arrow_frame",
    "columns_at",
    "files_of_frame",
    "fit_columns",
    "partition_tuples",
    "split_by_partition",
    "target_bytes",
]

#: The default target file size, as in Java (``TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT``).
_TARGET_BYTES = 512 << 20


def files_of_frame(
    state: TableState, frame: RowsLike, sink: FileSink, *, lineage: pa.Table | None = None
) -> EntryBatch:
    """Write a frame's rows to one Parquet file per partition, or several if one would get too large.

    The rows of a partition are in the table's sort order, if it has one.

    Parameters
    ----------
    lineage
        Columns ``_row_id`` and ``_last_updated_sequence_number`` of the rows, written in addition to the frame's own
        columns, so that moved rows keep their values (spec, "Row Lineage").

    Raises
    ------
    OptionError
        There are no rows, a column is unknown, a required column or value is missing, or a type does not fit.
    """
    spec = state.metadata.spec()
    if spec is None:
        raise OptionError("the table's default partition spec is missing: files cannot be added")
    table = fit_columns(arrow_frame(frame, state.schema), state.schema, complete=True)
    if not table.num_rows:
        raise OptionError("nothing to add: the frame has no rows")
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
    return write_data_files(state, sink, made, columns)


def arrow_frame(frame: RowsLike, schema: Schema) -> pa.Table:
    """Return a pandas data frame (without its index), a dictionary of columns or an Arrow object as an Arrow table.

    Parameters
    ----------
    schema
        The table's schema, whose types determine how lists and dictionaries are converted.

    Raises
    ------
    OptionError
        Arrow cannot represent a column, which the message names; or a column of the table is in the index.
    """
    frame = foreign_frame(frame)
    if isinstance(frame, pa.Table):
        return frame
    types = {f.name: (f.type, to.type) for f, to in zip(schema.fields, file_schema(schema), strict=True)}
    names = [str(name) for name in (frame if isinstance(frame, Mapping) else frame.columns)]
    # NaN means null only in pandas.
    from_pandas = not isinstance(frame, Mapping)
    if from_pandas:
        _check_index(frame, names, types)
    arrays = []
    for i, name in enumerate(names):
        values = frame.iloc[:, i] if from_pandas else list(frame.values())[i]
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            arrays.append(values)
            continue
        kind, to = types.get(name, (None, None))
        if not from_pandas:
            values = list_given(values, name)
        elif values.dtype == object:
            values = list(values)
        else:
            kind = None  # not needed: columns of pandas' own or Arrow's types convert directly
        arrays.append(python_column(values, kind, to, name, from_pandas=from_pandas))
    try:
        return pa.table(arrays, names=names)
    except (pa.ArrowException, ValueError) as error:
        raise OptionError(f"the columns cannot be combined into a table: {error}") from None


def _check_index(frame: pd.DataFrame, names: Sequence[str], columns: Collection[str]) -> None:
    """Refuse an index with the name of a column, because without the index the column would be all null."""
    lost = [name for name in frame.index.names if name in columns and name not in names]
    if lost:
        raise OptionError(f"{lost[0]!r} is in the data frame's index, which is left out: give frame.reset_index()")


def split_by_partition(
    table: pa.Table, schema: Schema, columns: Sequence[PartitionColumn]
) -> Iterator[tuple[pa.StructArray | None, pa.Table]]:
    """Yield each partition's tuple (an array of length 1, or None if unpartitioned) and its rows, in their order.

    Raises
    ------
    OptionError
        A transform is unknown, or the table no longer has a partition source.
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
        first = build.array(rows[:1])
        partition = pa.StructArray.from_arrays([t.take(first) for t in tuples], fields=fields)
        yield partition, table if len(starts) == 1 else table.take(build.array(rows))


def partition_tuples(table: pa.Table, schema: Schema, columns: Sequence[PartitionColumn]) -> list[AnyArray]:
    """Return partition values of rows, an array per column. Raises the same errors as `split_by_partition`."""
    out = []
    for column in columns:
        kind = arrow_type(column.type)
        if column.transform.is_void:
            out.append(build.nulls(table.num_rows, kind))
            continue
        if not column.sources:
            raise OptionError(f"partition field {column.field.name}: the schema no longer has its source column")
        given = []
        for source in column.sources:
            values = columns_at(table, schema, source.field_id)
            if values is None:
                raise OptionError(
                    f"partition field {column.field.name} needs its source column {source.name}, which is not given"
                )
            given.append(values)
        out.append(column.transform.apply_several([s.type for s in column.sources], given).cast(kind))
    return out


def columns_at(table: pa.Table, schema: Schema, field_id: int) -> AnyArray | None:
    """Return the values of a column, possibly inside structs, in its Arrow type; None if the table does not have it."""
    path = _path(schema.fields, field_id)
    if path is None or path[0].name not in table.column_names:
        return None
    array = table[path[0].name].combine_chunks()
    for parent, child in itertools.pairwise(path):
        assert isinstance(parent.type, StructType)
        array = pc.struct_field(array, [[f.field_id for f in parent.type.fields].index(child.field_id)])
    if isinstance(array.type, pa.BaseExtensionType):
        array = cast(AnyExtensionArray, array).storage
    return array.cast(arrow_type(path[-1].type))


def _path(fields: Sequence[NestedField], field_id: int) -> list[NestedField] | None:
    for f in fields:
        if f.field_id == field_id:
            return [f]
        if isinstance(f.type, StructType) and (rest := _path(f.type.fields, field_id)) is not None:
            return [f, *rest]
    return None


def target_bytes(properties: Mapping[str, str]) -> int:
    """Return ``write.target-file-size-bytes``; it is compared with the size of rows in memory (Arrow), not in files."""
    text = properties.get("write.target-file-size-bytes", "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else _TARGET_BYTES


def _in_size(table: pa.Table, target: int) -> list[pa.Table]:
    """Split rows into parts of about the target size."""
    parts = max(1, min(table.num_rows, -(-table.nbytes // target)))
    cuts = np.linspace(0, table.num_rows, parts + 1).astype(int).tolist()
    return [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
