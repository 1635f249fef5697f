"""The rows of a data file as the table's schema sees them, its deletes applied (spec, "Column Projection")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits._data_files import file_schema
from iceexplore.deletes import read_equality_deletes
from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats import FIELD_ID, MAX_TABLE_BYTES, field_id, foreign, read_rows
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import (
    ListType,
    MapType,
    NestedField,
    Schema,
    StructType,
    Type,
    arrow_type,
    name_mapping,
    type_base,
)
from iceexplore.planning import partition_columns

__all__ = ["LAST_UPDATED_ID", "ROW_ID_ID", "equality_mask", "read_data"]

#: Reserved columns of row lineage (spec, "Reserved Field IDs").
ROW_ID_ID = 2147483540
LAST_UPDATED_ID = 2147483539


def read_data(state: TableState, file: EntryBatch, *, lineage: bool, limit: int = MAX_TABLE_BYTES) -> pa.Table:
    """All rows of a data file, in the columns and stored types of the current schema.

    Parameters
    ----------
    file
        The file's entry, a batch of one.
    lineage
        Add ``_row_id`` and ``_last_updated_sequence_number`` (spec, "Row Lineage"): as the file has them, or else by
        its ``first_row_id`` and its data sequence number.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        It cannot be read.
    """
    entry = file.entries.to_pylist()[0]
    location = entry["location"]
    table = read_rows(state.storage, location, kind="data-file", limit=limit, said=entry["file_format"])
    if table.num_rows != entry["record_count"]:
        raise FormatError(
            f"the file has {table.num_rows} rows, its entry says {entry['record_count']}",
            location=location,
            code="count-mismatch",
        )
    ids = [field_id(f) for f in table.schema]
    if all(i is None for i in ids):
        ids = _ids_by_name(state, table)
    constants = _constants(state, file)
    fields, columns = [], []
    for name, f in state.schema.walk():
        if type_base(f.type) == "variant":
            raise UnsupportedError(f"column {name!r} is a variant, and data with such columns is not rewritten here")
    for f, to in zip(state.schema.fields, file_schema(state.schema), strict=True):
        with foreign(f"column {f.name}", location):
            if f.field_id in ids:
                array = table.column(ids.index(f.field_id)).combine_chunks()
                column = _projected(array, f.type, to.type)
            else:
                value = constants.get(f.field_id, f.initial_default)
                column = _constant(value, f, to.type, table.num_rows)
        fields.append(to)
        columns.append(column)
    if lineage:
        for number, name, default in (
            (ROW_ID_ID, "_row_id", _row_ids(entry, table.num_rows)),
            (
                LAST_UPDATED_ID,
                "_last_updated_sequence_number",
                _constant_long(entry["sequence_number"], table.num_rows),
            ),
        ):
            column = default
            if number in ids:  # null there means: as it would be without the column
                column = pc.coalesce(table.column(ids.index(number)).combine_chunks().cast(pa.int64()), default)
            fields.append(pa.field(name, pa.int64(), metadata={FIELD_ID: str(number)}))
            columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _row_ids(entry: Mapping[str, Any], rows: int) -> pa.Array:
    first = entry["first_row_id"]
    return pa.nulls(rows, pa.int64()) if first is None else pa.array(np.arange(first, first + rows, dtype=np.int64))


def _constant_long(value: int | None, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), rows)


def _constant(value: Any, f: NestedField, target: pa.DataType, rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(rows, target)
    one = value if isinstance(value, pa.Scalar) else pa.scalar(value, arrow_type(f.type))
    array = pa.repeat(one.cast(arrow_type(f.type)), rows)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array.cast(target.storage_type))
    return array.cast(target)


def _constants(state: TableState, file: EntryBatch) -> dict[int, Any]:
    """Values that the partition gives for columns which the file lacks (files that were migrated from Hive)."""
    spec = state.metadata.spec(file.entries["partition_spec_id"][0].as_py())
    if spec is None or file.partition is None:
        return {}
    out = {}
    for column in partition_columns(state.metadata, spec):
        at = file.partition.type.get_field_index(column.key)
        if column.field.transform == "identity" and column.source is not None and at >= 0:
            value = pc.struct_field(file.partition, [at])[0]
            if value.is_valid:
                out[column.source.field_id] = value
    return out


def _ids_by_name(state: TableState, table: pa.Table) -> list[int | None]:
    mapping = name_mapping(state.metadata)
    if mapping is None:
        by_name = {f.name: f.field_id for f in state.schema.fields}
    else:
        by_name = {name: m["field-id"] for m in mapping for name in m.get("names", ()) if m.get("field-id") is not None}
    return [by_name.get(name) for name in table.column_names]


def _projected(array: pa.Array, kind: Type, target: pa.DataType) -> pa.Array:
    """A column in the schema's type: children by field id (by name where the file has none), promotions applied."""
    match kind:
        case StructType(fields) if pa.types.is_struct(array.type):
            given = [array.type.field(i) for i in range(array.type.num_fields)]
            numbers = [field_id(g) for g in given]
            plain = all(n is None for n in numbers)
            children = []
            for i, f in enumerate(fields):
                names = [g.name for g in given]
                at = names.index(f.name) if plain and f.name in names else -1
                at = numbers.index(f.field_id) if f.field_id in numbers else at
                to = target.field(i).type
                found = None if at < 0 else _projected(array.field(at), f.type, to)
                children.append(_constant(f.initial_default, f, to, len(array)) if found is None else found)
            return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
        case ListType(element) if pa.types.is_list(array.type):
            full = _unsliced(array)
            values = _projected(full.values, element.type, target.value_type)
            return pa.ListArray.from_arrays(full.offsets, values, type=target, mask=_null_mask(full))
        case MapType(key, value) if pa.types.is_map(array.type):
            full = _unsliced(array)
            keys = _projected(full.keys, key.type, target.key_type)
            items = _projected(full.items, value.type, target.item_type)
            made = pa.MapArray.from_arrays(full.offsets, keys, items, type=target)
            mask = _null_mask(full)
            return made if mask is None else pc.if_else(mask, pa.scalar(None, target), made)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array.cast(target.storage_type))
    if array.type == target:
        return array
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target) and array.type.unit == "ns":
        return array.cast(target, safe=False)  # INT96 and ORC come as nanoseconds
    return array.cast(target)


def _unsliced(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array]) if array.offset else array


def _null_mask(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None


def equality_mask(
    state: TableState, table: pa.Table, sequence: int | None, deletes: Sequence[Mapping[str, Any]], schema: Schema
) -> np.ndarray[Any, Any]:
    """Which rows equality deletes remove; null equals null (spec, "Equality Delete Files").

    Parameters
    ----------
    table
        Rows of a data file, from `read_data`.
    sequence
        The file's data sequence number; deletes at or below it do not apply.
    deletes
        Entries of equality delete files that reach the file's partition.
    """
    gone = np.zeros(table.num_rows, dtype=bool)
    by_id = {field_id(f): i for i, f in enumerate(table.schema)}
    for entry in deletes:
        if (entry["sequence_number"] or 0) <= (sequence or 0):
            continue
        values = read_equality_deletes(state.storage, entry["location"], entry["file_format"], schema)
        places = {field_id(f): i for i, f in enumerate(values.schema)}
        code = np.zeros(table.num_rows + values.num_rows, dtype=np.int64)
        for number in entry["equality_ids"] or ():
            if number not in places:
                raise FormatError(f"the file lacks its equality column {number}", location=entry["location"])
            theirs = values.column(places[number]).combine_chunks()
            # A column dropped since is in no row here: what it held cannot be looked at, and so matches as null.
            ours = table.column(by_id[number]).combine_chunks() if number in by_id else pa.nulls(table.num_rows)
            code = _coded(code, ours, theirs)
        gone |= np.isin(code[: table.num_rows], code[table.num_rows :])
    return gone


def _coded(code: np.ndarray[Any, Any], ours: pa.Array, theirs: pa.Array) -> np.ndarray[Any, Any]:
    if isinstance(ours.type, pa.BaseExtensionType):
        ours = ours.storage
    kind = theirs.type if pa.types.is_null(ours.type) else ours.type
    if pa.types.is_fixed_size_binary(kind):
        kind = pa.binary()
    both = pa.concat_arrays([ours.cast(kind), theirs.cast(kind)]).dictionary_encode(null_encoding="encode")
    mixed = code * (len(both.dictionary) + 1) + np.asarray(both.indices)
    return np.asarray(np.unique(mixed, return_inverse=True)[1])
