"""Write data files as Parquet with field ids, with column metrics computed from their data."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyExtensionArray, AnyField, AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.formats import FIELD_ID, field_id
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, concat_batches
from iceexplore.metadata import (
    ListType,
    MapType,
    NestedField,
    PartitionSpec,
    Schema,
    StructType,
    Type,
    arrow_type,
    fixed_length,
    is_variable_length,
    type_base,
)
from iceexplore.planning import PartitionColumn
from iceexplore.writing._column_metrics import StatColumn, bounds_of, stat_columns, stats_arrays
from iceexplore.writing._partition_path import partition_path
from iceexplore.writing._required_fields import file_rows, pairs_of
from iceexplore.writing._sink import FileSink
from iceexplore.writing._virtual_columns import metrics_of_values, virtual_columns

__all__ = ["DataFile", "column_values", "file_schema", "parquet_path", "write_column_file", "write_data_files"]

#: pyarrow's ``FileMetaData``; ``Any``, because pyarrow's type stubs lack some attributes of column statistics.
_Footer: TypeAlias = Any

#: The longest folder name in bytes that file systems allow, and the length of the prefix that is kept of a longer one.
_LONGEST_NAME, _SHORT_NAME = 255, 120


@dataclass(frozen=True)
class DataFile:
    """A data file to write: rows of `file_schema`, all in one partition.

    Attributes
    ----------
    partition
        The partition tuple, an array of length 1; None if the spec has no fields.
    sequence_number
        The data sequence number to keep; None to inherit the commit's.
    sort_order_id
        The id of the sort order of the rows; 0 if they are unsorted.
    """

    spec: PartitionSpec
    table: pa.Table
    partition: pa.StructArray | None
    sequence_number: int | None = None
    sort_order_id: int = 0


def file_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of data files: Parquet's types (spec, Appendix A), with field ids at every depth."""
    return pa.schema([_field(f) for f in schema.fields])


def _field(f: NestedField) -> AnyField:
    return pa.field(f.name, _stored(f.type), nullable=not f.required, metadata={FIELD_ID: str(f.field_id)})


def _stored(kind: Type) -> pa.DataType:
    match kind:
        case StructType(fields):
            return pa.struct([_field(f) for f in fields])
        case ListType(element):
            return pa.list_(_field(element))
        case MapType(key, value):
            return build.map_(_field(key), _field(value))
    length = fixed_length(kind)
    if length is not None:
        return pa.binary(length)
    if type_base(kind) == "variant":
        # Parquet format, "Variant": a group of two binaries.
        return pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("metadata", "value")])
    return pa.uuid() if type_base(kind) == "uuid" else arrow_type(kind)


def write_data_files(
    state: TableState, sink: FileSink, files: Sequence[DataFile], columns: Sequence[PartitionColumn]
) -> EntryBatch:
    """Write data files, and return their entries with metrics computed from their data.

    Parameters
    ----------
    columns
        The partition columns of the files' spec.
    """
    wanted = stat_columns(state.metadata, state.schema)
    virtual = virtual_columns(state.metadata, state.schema)
    every = [*wanted, *(v.column for v in virtual)]
    codec = _codec(state)
    batches = []
    for file in files:
        data, info = _parquet(file_rows(file.table, state.schema), codec, _with_nan(file.table, wanted, state.schema))
        stats = _stats(file.table, wanted, info, state.schema)
        for v in virtual:
            values = v.of(column_values(file.table, v.source))
            stats[v.column.field.field_id] = metrics_of_values(v.column, values)
        folder = _folder(state, file)
        location = sink.new_location("data", ".parquet", folder=folder)
        sink.write(location, data, kind="data-file")
        row = {
            "content_type": int(ContentType.DATA),
            "location": location,
            "file_format": "parquet",
            "partition_spec_id": file.spec.spec_id,
            "sort_order_id": file.sort_order_id,
            "record_count": file.table.num_rows,
            "file_size_in_bytes": len(data),
            "split_offsets": _split_offsets(info),
            "sequence_number": file.sequence_number,
        }
        batches.append(EntryBatch.of_rows([row], stats=stats_arrays(every, [stats]), partition=file.partition))
    return concat_batches(batches)


def write_column_file(
    state: TableState, sink: FileSink, table: pa.Table
) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """Write newer values of some columns for all rows of a data file (V4 draft).

    Parameters
    ----------
    table
        The columns, with field ids; columns that the schema lacks are those of row lineage.

    Returns
    -------
    tuple
        The file's record for the manifest (a struct of type `COLUMN_FILE`), and its columns' metrics by field id.

    Raises
    ------
    OptionError
        A column's type cannot be written.
    """
    wanted = [c for c in stat_columns(state.metadata, state.schema) if c.path[0] in table.column_names]
    rows = file_rows(table, state.schema)
    if lost := [name for name in table.column_names if name not in rows.column_names]:
        raise OptionError(f"column {lost[0]!r} has a type that is not written to files: it cannot be updated")
    data, info = _parquet(rows, _codec(state), _with_nan(table, wanted, state.schema))
    location = sink.new_location("columns", ".parquet", folder="data")
    sink.write(location, data, kind="data-file")
    record = {
        "field_ids": [field_id(f) for f in rows.schema],
        "location": location,
        "file_format": "parquet",
        "file_size_in_bytes": len(data),
        "format_version": state.metadata.format_version,
        "split_offsets": _split_offsets(info),
    }
    return record, _stats(table, wanted, info, state.schema)


def _folder(state: TableState, file: DataFile) -> str:
    if file.partition is None:
        return "data"
    one = EntryBatch.of_rows([{"partition_spec_id": file.spec.spec_id}], partition=file.partition)
    return "/".join(["data", *map(_folder_name, partition_path(one, 0, state.metadata).split("/"))])


def _folder_name(name: str) -> str:
    """Return a partition folder's name as Java writes it, or a prefix of it and a hash if it is too long.

    ``=`` is replaced in the prefix, so that readers do not take the shortened name for a partition value.
    """
    if len(name) <= _LONGEST_NAME:  # escaped, so one byte per character
        return name
    begin = re.sub("%.?$", "", name[:_SHORT_NAME].replace("=", "-"))
    return f"{begin}-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _codec(state: TableState) -> str:
    """Return ``write.parquet.compression-codec``; Zstandard if it is missing or pyarrow does not support the codec."""
    name = state.metadata.properties.get("write.parquet.compression-codec", "zstd").lower()
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(name, name) if name in _CODECS else "zstd"


_CODECS = ("brotli", "gzip", "lz4", "lz4_raw", "snappy", "uncompressed", "zstd")


def _with_nan(table: pa.Table, columns: Sequence[StatColumn], schema: Schema) -> set[str]:
    """Return the columns with NaN, by Parquet path; columns in lists and maps have no bounds and are skipped."""
    floating = [c for c in columns if not c.repeated and type_base(c.type) in ("double", "float")]
    return {parquet_path(c, schema) for c in floating if pc.any(pc.is_nan(column_values(table, c))).as_py()}


def _parquet(table: pa.Table, codec: str, with_nan: Collection[str]) -> tuple[bytes, Any]:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    # Columns with NaN get no Parquet statistics. pyarrow would write the bounds of the other values, and parquet-java,
    # which itself writes no bounds in that case, would take them for the bounds of all values: Spark, in which NaN is
    # above every number, would miss rows.
    bounded: bool | list[str] = [p for p in _leaf_paths(table.schema) if p not in with_nan] if with_nan else True
    try:
        # Without Arrow's own schema, because other readers use Parquet's types and field ids.
        with pq.ParquetWriter(
            out,
            table.schema,
            compression=cast(Any, codec),
            store_schema=False,
            store_decimal_as_integer=True,
            write_statistics=bounded,
            write_page_checksum=True,
        ) as writer:
            writer.write_table(table, row_group_size=1 << 20)
    except pa.ArrowNotImplementedError as error:
        raise OptionError(f"pyarrow cannot write this schema as Parquet: {error}") from None
    return out.getvalue(), pq.read_metadata(io.BytesIO(out.getvalue()))


def _leaf_paths(fields: Iterable[AnyField], above: str = "") -> Iterator[str]:
    for f in fields:
        if pa.types.is_struct(f.type):
            yield from _leaf_paths(f.type, f"{above}{f.name}.")
        elif pa.types.is_map(f.type):
            pair = (f.type.key_field.with_name("key"), f.type.item_field.with_name("value"))
            yield from _leaf_paths(pair, f"{above}{f.name}.key_value.")
        elif pa.types.is_list(f.type):
            yield from _leaf_paths([f.type.value_field.with_name("element")], f"{above}{f.name}.list.")
        else:
            yield f"{above}{f.name}"


def _split_offsets(info: _Footer) -> list[int] | None:
    """Return where each row group begins, at the first page of its first column; None if the file has no columns."""
    offsets = []
    for i in range(info.num_row_groups):
        if not info.num_columns:
            return None
        first = info.row_group(i).column(0)
        pages = [first.data_page_offset] + ([first.dictionary_page_offset] if first.has_dictionary_page else [])
        offsets.append(min(pages))
    return sorted(offsets)


def _stats(table: pa.Table, wanted: Sequence[StatColumn], info: _Footer, schema: Schema) -> dict[int, dict[str, Any]]:
    by_path: dict[str, int] = {}
    for i, column in enumerate(wanted):
        by_path[parquet_path(column, schema)] = i
    found: dict[int, dict[str, Any]] = {}
    for group in range(info.num_row_groups):
        for j in range(info.num_columns):
            chunk = info.row_group(group).column(j)
            if chunk.path_in_schema not in by_path:
                continue  # a column without metrics, such as one of row lineage
            column = wanted[by_path[chunk.path_in_schema]]
            here = found.setdefault(column.field.field_id, {"column_size": 0})
            here["column_size"] += chunk.total_compressed_size
            if column.mode == "none":
                continue
            here["value_count"] = here.get("value_count", 0) + chunk.num_values
            if chunk.is_stats_set and chunk.statistics.has_null_count:
                here["null_count"] = here.get("null_count", 0) + chunk.statistics.null_count
    for column in wanted:
        here = found.get(column.field.field_id, {})
        if not here or column.mode == "none":
            continue
        values = column_values(table, column)
        low, high, nan = bounds_of(column, values)
        here |= {"nan_count": nan, "null_count": here.get("null_count", values.null_count)}
        if column.bounded and low.is_valid:
            here |= {"lower": low, "upper": high}
            exact = column.cut is None or pc.max(_lengths(values)).as_py() <= column.cut
            here["tight_bounds"] = exact
        sized = column.mode != "counts" and is_variable_length(column.type)
        if (valid := len(values) - values.null_count) and sized:
            lengths = _lengths(values)
            here["average_length"] = round(pc.sum(lengths).as_py() / valid)
            here["max_length"] = pc.max(lengths).as_py()
    return found


def _lengths(values: AnyArray) -> AnyArray:
    """Return the uncompressed size of each value in bytes."""
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return pc.binary_length(values)
    width = max(1, values.type.bit_width // 8) if not pa.types.is_null(values.type) else 0
    return pc.if_else(values.is_valid(), width, None)


def parquet_path(column: StatColumn, schema: Schema) -> str:
    """Return the column's path in Parquet, in which lists and maps have an additional level."""
    path, fields = [], list(schema.fields)
    kind: Type | None = None
    for name in column.path:
        if isinstance(kind, ListType):
            path += ["list", "element"]
            kind = kind.element.type
        elif isinstance(kind, MapType):
            path += ["key_value", name]
            kind = kind.key.type if name == "key" else kind.value.type
        else:
            found = next(f for f in (kind.fields if isinstance(kind, StructType) else fields) if f.name == name)
            path.append(name)
            kind = found.type
    return ".".join(path)


def column_values(table: pa.Table, column: StatColumn) -> AnyArray:
    """Return a leaf column's values in its Arrow type; inside lists and maps, the values of all rows concatenated."""
    array: AnyArray = table[column.path[0]].combine_chunks()
    for name in column.path[1:]:
        kind = array.type
        if pa.types.is_struct(kind):
            array = pc.struct_field(array, [next(i for i, f in enumerate(kind) if f.name == name)])
        elif pa.types.is_map(kind):
            _, keys, values = pairs_of(array)
            array = keys if name == "key" else values
        else:
            array = cast(AnyListArray, array).flatten()
    if isinstance(array.type, pa.BaseExtensionType):
        array = cast(AnyExtensionArray, array).storage
    return array.cast(arrow_type(column.type))
