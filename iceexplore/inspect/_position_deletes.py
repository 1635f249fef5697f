"""``position_deletes``: the rows of position delete files and deletion vectors (Java: ``PositionDeletesTable``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.deletes import read_deletion_vector, read_position_deletes
from iceexplore.errors import FormatError, IceexploreError, problem
from iceexplore.formats import PUFFIN, field_id
from iceexplore.graph import TableState
from iceexplore.inspect._by_leaf import LeafMaker
from iceexplore.inspect._files import live_position_deletes
from iceexplore.inspect._partition import partition_union
from iceexplore.inspect._shown import conform, shown_type
from iceexplore.inspect._source import in_parallel
from iceexplore.manifests import Manifest, whole
from iceexplore.metadata import StructType

__all__ = ["MAX_POSITIONS", "position_deletes_maker", "position_deletes_schema"]

#: Maximum number of positions that are listed for one deletion vector: a few bytes can claim 2**60 of them.
MAX_POSITIONS = 20_000_000
#: Rows per chunk: an Arrow string array holds at most 2 GiB, and each row repeats two paths.
_BATCH = 500_000


def position_deletes_schema(state: TableState) -> pa.Schema:
    """Return the columns of ``position_deletes``."""
    union = partition_union(state.metadata)
    vector = [pa.field("content_offset", pa.int64()), pa.field("content_size_in_bytes", pa.int64())]
    return build.schema(
        [
            pa.field("file_path", pa.string()),
            pa.field("pos", pa.int64()),
            pa.field("row", shown_type(StructType(state.metadata.schema().fields))),
            *([pa.field("partition", union.type)] if union else []),
            pa.field("spec_id", pa.int32()),
            pa.field("delete_file_path", pa.string()),
            *(vector if state.metadata.has_deletion_vectors else []),
        ]
    )


def position_deletes_maker(state: TableState, schema: pa.Schema) -> LeafMaker:
    """Return the function that yields a row per deleted position; an unreadable delete file adds a `Problem`."""
    union = partition_union(state.metadata)

    def make(_root: Manifest, leaf: Manifest) -> Iterator[pa.Table]:
        rows = live_position_deletes(leaf, union)
        places = range(rows.num_rows)  # each row describes a file to read, or a part of one
        for tables in in_parallel(state, partial(_read, state, schema, rows), places):
            yield from tables

    return make


def _read(state: TableState, schema: pa.Schema, rows: pa.Table, at: int) -> list[pa.Table]:
    row = rows.slice(at, 1)
    location = row.column("location")[0].as_py() or ""
    try:
        return [_shaped(state, schema, row, batch) for batch in _positions(state, row, location)]
    except IceexploreError as error:
        state.problems.add_error(error, location)
        return []


def _positions(state: TableState, row: pa.Table, location: str) -> Iterator[pa.RecordBatch]:
    """Yield ``file_path``, ``pos`` and, if present, ``row`` of one delete file or deletion vector."""
    vector = row.column("deletion_vector")[0].as_py() or {}
    offset, size = vector.get("offset"), vector.get("size_in_bytes")
    if offset is None or size is None:
        if row.column("file_format")[0].as_py() == PUFFIN.name:
            text = "the manifest entry of a deletion vector lacks its offset or size"
            raise FormatError(text, location=location, field="content_offset")
        table = read_position_deletes(state.storage, location, row.column("file_format")[0].as_py())
        yield from table.to_batches(max_chunksize=_BATCH)
        return
    bitmap = read_deletion_vector(state.storage, location, offset, size)
    if len(bitmap) > MAX_POSITIONS:
        text = f"The deletion vector at byte {offset} has {len(bitmap)} positions, too many to list."
        state.problems.add(problem("unsupported", location, text, found=len(bitmap), expected=MAX_POSITIONS))
        return
    pos = pa.array(bitmap.to_array(), pa.uint64()).cast(pa.int64())
    path = row.column("referenced_file")[0]
    for start in range(0, len(pos), _BATCH):
        part = pos.slice(start, _BATCH)
        yield pa.RecordBatch.from_arrays([pa.repeat(path, len(part)), part], names=["file_path", "pos"])


def _shaped(state: TableState, schema: pa.Schema, row: pa.Table, batch: pa.RecordBatch) -> pa.Table:
    """Add to positions the columns that are constant for a delete file."""
    count = batch.num_rows
    columns = {"file_path": batch.column("file_path"), "pos": batch.column("pos")}
    if "row" in batch.schema.names:
        columns["row"] = _deleted_row(batch.column("row"), state, schema.field("row").type)
    same = {"spec_id": "partition_spec_id", "partition": "partition", "delete_file_path": "location"}
    for name, source in same.items():
        if name in schema.names:
            columns[name] = _repeat(whole(row.column(source)), count)
    vector = whole(row.column("deletion_vector"))
    columns["content_offset"] = _repeat(pc.struct_field(vector, "offset"), count)
    columns["content_size_in_bytes"] = _repeat(pc.struct_field(vector, "size_in_bytes"), count)
    return pa.table([columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in schema], schema=schema)


def _repeat(array: AnyArray, count: int) -> AnyArray:
    """Return the first value of an array, of any type, repeated."""
    return array.take(pa.repeat(pa.scalar(0, pa.int64()), count))


def _deleted_row(row: AnyArray, state: TableState, target: pa.StructType) -> AnyArray:
    """Return the deleted rows that a file may store, matched by field id; values that do not fit are null."""
    if not pa.types.is_struct(row.type) or not target.num_fields:  # a damaged schema may leave no columns
        return pa.nulls(len(row), target)
    by_id = {field_id(row.type.field(i)): i for i in range(row.type.num_fields)}
    children = []
    for column, field in zip(state.metadata.schema().fields, target, strict=True):
        at = by_id.get(column.field_id)
        children.append(
            pa.nulls(len(row), field.type) if at is None else conform(cast(pa.StructArray, row).field(at), field.type)
        )
    mask = row.is_null() if row.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
