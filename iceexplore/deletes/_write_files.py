"""Position and equality delete files, written as Parquet with field ids (Iceberg specification, "Delete Formats")."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from iceexplore.deletes._delete_files import FILE_PATH_ID, POS_ID
from iceexplore.errors import OptionError
from iceexplore.formats import FIELD_ID, field_id
from iceexplore.metadata import ListType, MapType, Schema, StructType, Type, arrow_type, fixed_length, type_base

__all__ = ["write_equality_deletes", "write_position_deletes"]


def write_position_deletes(
    paths: Sequence[str] | pa.Array, positions: Sequence[int] | pa.Array, *, compression: str = "zstd"
) -> bytes:
    """A position delete file: ``file_path`` and ``pos``, sorted by both as the spec asks, with bounds in its footer.

    Parameters
    ----------
    paths
        Data files, as their manifest entries spell them.
    positions
        Rows in them, from 0; as many as there are paths.
    compression
        As Parquet names it.

    Raises
    ------
    OptionError
        Lengths differ, a value is missing or below 0, or the same row is named twice.
    """
    files = paths if isinstance(paths, pa.Array) else pa.array(paths, pa.string())
    rows = positions if isinstance(positions, pa.Array) else pa.array(positions, pa.int64())
    if len(files) != len(rows):
        raise OptionError(f"{len(files)} paths and {len(rows)} positions")
    if files.null_count or rows.null_count:
        raise OptionError("a position delete names a file and a position; one of them is missing")
    table = pa.table(
        [files.cast(pa.string()), rows.cast(pa.int64())],
        schema=pa.schema([_field("file_path", pa.string(), FILE_PATH_ID), _field("pos", pa.int64(), POS_ID)]),
    ).sort_by([("file_path", "ascending"), ("pos", "ascending")])
    found = np.asarray(table["pos"])
    if len(found) and found.min() < 0:
        raise OptionError(f"position {found.min()} is below 0")
    twice = table.num_rows - table.group_by(["file_path", "pos"]).aggregate([]).num_rows
    if twice:
        raise OptionError(f"{twice} rows are named twice")
    return _parquet(table, compression, {"delete-type": "position"})


def write_equality_deletes(
    table: pa.Table, schema: Schema, equality_ids: Sequence[int], *, compression: str = "zstd"
) -> bytes:
    """An equality delete file: the columns of ``table`` under the names, types and ids of the table's schema.

    Parameters
    ----------
    table
        One row per delete; its columns by name, or by ``PARQUET:field_id``. It may have more columns than the
        equality ids name: they take no part in matching. Columns of structs, lists and maps are not written, nor
        are those of type ``unknown``, which no data file stores.
    schema
        A schema of the table.
    equality_ids
        Ids of the columns by whose values rows are deleted.

    Raises
    ------
    OptionError
        A column that the schema does not have, or of a type that does not fit; an equality id without a column.
    """
    by_id = {f.field_id: f for f in schema.fields}
    by_name = {f.name: f for f in schema.fields}
    fields, columns = [], []
    for given, column in zip(table.schema, table.columns, strict=True):
        number = field_id(given)
        known = by_name.get(given.name) if number is None else by_id.get(number)
        if known is None:
            raise OptionError(f"no column {given.name!r} in the schema; there are {', '.join(by_name)}")
        if type_base(known.type) == "unknown":
            if known.field_id in equality_ids:
                raise OptionError(f"column {known.name} is of type unknown: files do not store it, nor deletes")
            continue
        target = _stored(known.type, known.name)
        try:
            columns.append(column if column.type == target else column.cast(target))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise OptionError(f"column {known.name}: {column.type} does not fit {target}: {error}") from None
        fields.append(_field(known.name, target, known.field_id, required=known.required and not column.null_count))
    there = [int(f.metadata[FIELD_ID]) for f in fields]
    missing = [i for i in equality_ids if i not in there]
    if missing or not equality_ids:
        raise OptionError(f"no column with the equality id {missing[0]}" if missing else "no equality ids are given")
    made = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    said = {"delete-type": "equality", "delete-field-ids": ",".join(str(i) for i in equality_ids)}
    return _parquet(made, compression, said)


def _stored(kind: Type, name: str) -> pa.DataType:
    """The Arrow type that Parquet stores as the spec asks (Appendix A, "Parquet")."""
    if isinstance(kind, (StructType, ListType, MapType)):
        raise OptionError(f"column {name}: structs, lists and maps are not written; leave it out")
    length = fixed_length(kind)
    if length is not None:
        return pa.binary(length)
    return pa.uuid() if type_base(kind) == "uuid" else arrow_type(kind)


def _field(name: str, kind: pa.DataType, number: int, *, required: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=not required, metadata={FIELD_ID: str(number)})


def _parquet(table: pa.Table, compression: str, said: Mapping[str, str]) -> bytes:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    # without Arrow's own schema: the field ids are Parquet's, and other readers ignore the rest
    options = {"compression": compression, "store_schema": False, "store_decimal_as_integer": True}
    with pq.ParquetWriter(out, table.schema, **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(dict(said))
    return out.getvalue()
