"""Convert v1-v3 records to content entries, before inheritance: one function per kind of file.

A manifest list becomes a root of DATA_MANIFEST and DELETE_MANIFEST entries; a manifest becomes a leaf of DATA,
POSITION_DELETE and EQUALITY_DELETE entries. Nulls that inheritance may fill stay null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, AnyField, AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem
from iceexplore.formats import field_id
from iceexplore.manifests.model._arrow import Columns, offsets_of, whole
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, MANIFEST_STATS, PARTITION_SUMMARY, ContentType
from iceexplore.manifests.model._field_ids import ENTRY_IDS, SUMMARY_NAMES
from iceexplore.manifests.model._reader_schema import ReaderSchema

__all__ = ["entry_table", "leaf_entries", "root_entries"]

_COUNT_IDS = (504, 505, 506, 512, 513, 514)


def entry_table(rows: int, columns: Mapping[str, AnyColumn]) -> pa.Table:
    """Return a table of `ENTRY_SCHEMA`; columns that are not given are null."""
    columns = {"ordinal": pa.array(np.arange(rows, dtype=np.int64)), **columns}
    return pa.Table.from_arrays(
        [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in ENTRY_SCHEMA], schema=ENTRY_SCHEMA
    )


def leaf_entries(table: pa.Table, reader_schema: ReaderSchema, location: str) -> tuple[pa.Table, list[Problem]]:
    """Return the entries of a manifest (spec, "Manifests": ``manifest_entry`` and ``data_file``)."""
    source = Columns(table, location)
    out = {name: source.get(i, ENTRY_SCHEMA.field(name).type) for name, i in ENTRY_IDS.items()}
    # v1 has no field 134; every file is a data file.
    out["content_type"] = pc.fill_null(out["content_type"], int(ContentType.DATA))
    out["file_format"] = pc.utf8_lower(out["file_format"])
    if not reader_schema.has(4):
        # Early v2 files have only one sequence number per entry, which is both its data and its file sequence number.
        # The spec does not mention such files.
        out["file_sequence_number"] = out["sequence_number"]
    offset, size = source.get(144, pa.int64()), source.get(145, pa.int64())
    absent = pc.and_(offset.is_null(), size.is_null())
    kind = ENTRY_SCHEMA.field("deletion_vector").type
    out["deletion_vector"] = pa.StructArray.from_arrays(
        [offset, size, pa.nulls(len(source), pa.binary())], fields=list(kind), mask=absent
    )
    return entry_table(len(source), out), source.problems


def root_entries(table: pa.Table, reader_schema: ReaderSchema, location: str) -> tuple[pa.Table, list[Problem]]:
    """Return the entries of a manifest list (spec, "Manifest Lists"). ``status`` is null: the snapshot decides it."""
    source = Columns(table, location)
    rows = len(source)
    int32, int64 = pa.int32(), pa.int64()
    content = pc.fill_null(source.get(517, int32), 0)
    # v1 has no fields 515 and 516; they are read as 0 (spec, "Manifest Lists").
    sequence = pc.fill_null(source.get(515, int64), 0) if not reader_schema.has(515) else source.get(515, int64)
    lowest = pc.fill_null(source.get(516, int64), 0) if not reader_schema.has(516) else source.get(516, int64)
    counts = [source.get(i, int64) for i in _COUNT_IDS]
    path = source.get(500, pa.string())
    suffix = pc.ends_with(pc.fill_null(path, ""), ".parquet")
    summaries, problems = _summaries(source)
    out = {
        "content_type": pc.add(content, pa.scalar(int(ContentType.DATA_MANIFEST), int32)),
        "location": path,
        "file_format": pc.if_else(suffix, "parquet", "avro"),
        "snapshot_id": source.get(503, int64),
        "sequence_number": sequence,
        "file_sequence_number": sequence,
        "partition_spec_id": source.get(502, int32),
        "record_count": pc.add(pc.add(counts[0], counts[1]), counts[2]),
        "file_size_in_bytes": source.get(501, int64),
        "manifest_stats": pa.StructArray.from_arrays([*counts, lowest], fields=list(MANIFEST_STATS)),
        "partition_summaries": summaries,
        "key_metadata": source.get(519, pa.binary()),
        "first_row_id": source.get(520, int64),
    }
    return entry_table(rows, out), source.problems + problems


def _by_id(child: AnyField) -> str:
    """Return a child's name by its id, as in a reader schema: in Parquet, children still have their real names."""
    number = field_id(child)
    number = SUMMARY_NAMES.get(child.name) if number is None else number
    return child.name if number is None else f"f{number}"


def _summaries(source: Columns) -> tuple[AnyArray, list[Problem]]:
    """Return field 507, the list of field summaries, with its children matched by id."""
    kind = pa.list_(PARTITION_SUMMARY)
    index = source.table.schema.get_field_index("f507")
    if index < 0:
        return pa.nulls(len(source), kind), []
    array = whole(source.table.column(index))
    if not (pa.types.is_list(array.type) and pa.types.is_struct(array.type.value_type)):
        return source.get(507, kind), []
    items = cast(AnyListArray, array).values
    children = pa.Table.from_batches([pa.RecordBatch.from_struct_array(cast(pa.StructArray, items))])
    inner = Columns(children.rename_columns([_by_id(f) for f in items.type]), source.location)
    ids = {"contains_null": 509, "contains_nan": 518, "lower_bound": 510, "upper_bound": 511}
    arrays = [inner.get(ids[f.name], f.type) for f in PARTITION_SUMMARY]
    made = pa.StructArray.from_arrays(arrays, fields=list(PARTITION_SUMMARY))
    return build.list_array(offsets_of(cast(AnyListArray, array)), made), inner.problems
