"""Write position and equality delete files as Parquet with field ids (Iceberg specification, "Delete Formats")."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField
from iceexplore.deletes._delete_files import FILE_PATH_ID, POS_ID
from iceexplore.errors import OptionError
from iceexplore.formats import FIELD_ID, field_id
from iceexplore.metadata import ListType, MapType, Schema, StructType, Type, arrow_type, fixed_length, type_base

__all__ = ["write_equality_deletes", "write_position_deletes"]


def write_position_deletes(
    paths: Sequence[str] | AnyArray, positions: Sequence[int] | AnyArray, *, compression: str = "zstd"
) -> bytes:
    """Return the bytes of a position delete file, sorted by path and position as the spec requires.

    The footer has lower and upper bounds of both columns.

    Parameters
    ----------
    paths
        Data file paths, exactly as in their manifest entries.
    positions
        Row positions from 0, one for each path.
    compression
        Parquet's name of the codec.

    Raises
    ------
    OptionError
        Lengths differ, a value is missing or negative, or a row occurs twice.
    """
    files = paths if isinstance(paths, pa.Array) else pa.array(paths, pa.string())
    rows = positions if isinstance(positions, pa.Array) else pa.array(positions, pa.int64())
    if len(files) != len(rows):
        raise OptionError(f"{len(files)} paths but {len(rows)} positions: give one position per path")
    if files.null_count or rows.null_count:
        raise OptionError("a position delete needs a file and a position; one of them is missing")
    table = pa.table(
        [files.cast(pa.string()), rows.cast(pa.int64())],
        schema=pa.schema([_field("file_path", pa.string(), FILE_PATH_ID), _field("pos", pa.int64(), POS_ID)]),
    ).sort_by([("file_path", "ascending"), ("pos", "ascending")])
    found = np.asarray(table["pos"])
    if len(found) and found.min() < 0:
        raise OptionError(f"position {found.min()} is below 0")
    twice = table.num_rows - table.group_by(["file_path", "pos"], use_threads=False).aggregate([]).num_rows
    if twice:
        raise OptionError(f"{twice} rows occur twice: give each pair of path and position once")
    return _parquet(table, compression, {"delete-type": "position"})


def write_equality_deletes(
    table: pa.Table, schema: Schema, equality_ids: Sequence[int], *, compression: str = "zstd"
) -> bytes:
    """Return the bytes of an equality delete file: the columns of ``table`` with names, types and ids from the schema.

    Parameters
    ----------
    table
        One row for each combination of values to delete. Its columns are found in the schema by ``PARQUET:field_id``,
        or by name if they have no id. Columns other than those of the equality ids are written, but not used to match
        rows. Structs, lists and maps are refused; columns of type ``unknown``, which no data file stores, are left out.
    schema
        A schema of the table.
    equality_ids
        Field ids of the columns to match rows by.

    Raises
    ------
    OptionError
        A column is not in the schema or has a wrong type, an equality id has no column, or no equality id is given.
    """
    by_id = {f.field_id: f for f in schema.fields}
    by_name = {f.name: f for f in schema.fields}
    fields, columns = [], []
    for given, column in zip(table.schema, table.columns, strict=True):
        number = field_id(given)
        known = by_name.get(given.name) if number is None else by_id.get(number)
        if known is None:
            raise OptionError(f"no column {given.name!r} in the schema; valid: {', '.join(by_name)}")
        if type_base(known.type) == "unknown":
            if known.field_id in equality_ids:
                raise OptionError(f"column {known.name} is of type unknown, which data and delete files do not store")
            continue
        target = _stored(known.type, known.name)
        try:
            columns.append(column if column.type == target else column.cast(target))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise OptionError(f"column {known.name}: {column.type} does not fit {target}: {error}") from None
        fields.append(_field(known.name, target, known.field_id, required=known.required and not column.null_count))
    there = [int((f.metadata or {})[FIELD_ID]) for f in fields]
    missing = [i for i in equality_ids if i not in there]
    if missing or not equality_ids:
        raise OptionError(f"no column with the equality id {missing[0]}" if missing else "no equality ids given")
    made = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    key_values = {"delete-type": "equality", "delete-field-ids": ",".join(str(i) for i in equality_ids)}
    return _parquet(made, compression, key_values)


def _stored(kind: Type, name: str) -> pa.DataType:
    """Return the Arrow type that pyarrow writes to Parquet as the spec requires (Appendix A, "Parquet")."""
    if isinstance(kind, (StructType, ListType, MapType)):
        raise OptionError(f"column {name}: structs, lists and maps cannot be written; leave the column out")
    length = fixed_length(kind)
    if length is not None:
        return pa.binary(length)
    return pa.uuid() if type_base(kind) == "uuid" else arrow_type(kind)


def _field(name: str, kind: pa.DataType, number: int, *, required: bool = True) -> AnyField:
    return pa.field(name, kind, nullable=not required, metadata={FIELD_ID: str(number)})


def _parquet(table: pa.Table, compression: str, key_values: Mapping[str, str]) -> bytes:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    # Do not store Arrow's own schema: other readers ignore it, and the field ids are in the Parquet schema.
    options: dict[str, Any] = {"compression": compression, "store_schema": False, "store_decimal_as_integer": True}
    with pq.ParquetWriter(out, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(dict(key_values))
    return out.getvalue()
