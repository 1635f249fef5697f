"""Convert rows of the V4 draft (``TrackedFile``) to content entries, before inheritance.

A row may hold a file and its deletes: a data file with a deletion vector (field 148), or a manifest with a manifest DV
(field 522). Such a row becomes two entries with the ordinal of the row. ``deleted_positions`` and
``replaced_positions`` (fields 6 and 7, in ``tracking``) state what this commit added to the manifest DV, for readers of
changes; the DV itself is cumulative. The number of its positions is in a Mumbling bitmap's header; older writers state
it in field 523.
V4 draft: ``TrackedFile``, ``Tracking``, ``DeletionVector``, ``ManifestInfo``; apache/iceberg#16025.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem
from iceexplore.manifests.decode._column_files import column_files
from iceexplore.manifests.decode._v1_v3 import entry_table
from iceexplore.manifests.decode._v4_proposal import COUNT_IDS, or_null
from iceexplore.manifests.model._arrow import Columns
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, MANIFEST_STATS, ContentType, Status
from iceexplore.manifests.model._reader_schema import ReaderSchema

__all__ = ["draft_entries"]

_IDS: dict[str, int | str] = {
    "content_type": 134,
    "location": 100,
    "file_format": 101,
    "status": "147_0",
    "snapshot_id": "147_1",
    "sequence_number": "147_3",
    "file_sequence_number": "147_4",
    "partition_spec_id": 141,
    "sort_order_id": 140,
    "record_count": 103,
    "file_size_in_bytes": 104,
    "key_metadata": 131,
    "split_offsets": 132,
    "equality_ids": 135,
    "first_row_id": "147_142",
    "format_version": 157,
    "deleted_positions": "147_6",
    "replaced_positions": "147_7",
    "column_files_snapshot_id": "147_160",
}
#: Bytes of a Mumbling bitmap's header, which begins with the version 1 and the cardinality in three bytes.
_HEADER = 6


def draft_entries(table: pa.Table, reader_schema: ReaderSchema, location: str) -> tuple[pa.Table, list[Problem]]:
    """Return the entries of a root or leaf manifest of the V4 draft, in the order of its rows."""
    source = Columns(table, location)
    rows = len(source)
    files = {name: source.get(i, ENTRY_SCHEMA.field(name).type) for name, i in _IDS.items()}
    files["file_format"] = pc.utf8_lower(files["file_format"])
    counts = [source.get(f"150_{i}", pa.int64()) for i in COUNT_IDS]
    files["manifest_stats"] = or_null(counts, MANIFEST_STATS)
    files["column_files"], problems = column_files(source)
    made = entry_table(rows, files)
    parts = [made, _data_vectors(source, made), _manifest_vectors(source, made)]
    if any(len(p) for p in parts[1:]):
        made = pa.concat_tables(parts).combine_chunks()
        order = np.argsort(made["ordinal"].to_numpy(), kind="stable")
        made = made.take(build.array(order))
    return made, source.problems + problems


def _data_vectors(source: Columns, files: pa.Table) -> pa.Table:
    """Return the deletion vectors of data files (field 148)."""
    where = source.get("148_155", pa.string())
    offset, size = source.get("148_144", pa.int64()), source.get("148_145", pa.int64())
    vector = or_null([offset, size, pa.nulls(len(source), pa.binary())], ENTRY_SCHEMA.field("deletion_vector").type)
    columns: dict[str, AnyColumn] = _shared(files, source) | {
        "content_type": _constant(ContentType.POSITION_DELETE, len(source)),
        "location": where,
        "file_format": pa.repeat(pa.scalar("puffin"), len(source)),
        "record_count": source.get("148_156", pa.int64()),
        "referenced_file": files["location"],
        "deletion_vector": vector,
        "partition_spec_id": files["partition_spec_id"],
        "key_metadata": source.get("148_149", pa.binary()),
    }
    return entry_table(len(source), columns).filter(pc.or_(where.is_valid(), vector.is_valid()))


def _manifest_vectors(source: Columns, files: pa.Table) -> pa.Table:
    """Return the deletion vectors of manifests (field 522), which are always inline."""
    content = source.get("150_522", pa.binary())
    nothing = pa.nulls(len(source), pa.int64())
    columns: dict[str, AnyColumn] = _shared(files, source) | {
        "content_type": _constant(ContentType.MANIFEST_DV, len(source)),
        "location": files["location"],
        "record_count": pc.coalesce(source.get("150_523", pa.int64()), _cardinalities(content)),
        "referenced_file": files["location"],
        "deletion_vector": or_null([nothing, nothing, content], ENTRY_SCHEMA.field("deletion_vector").type),
        "partition_spec_id": files["partition_spec_id"],
    }
    return entry_table(len(source), columns).filter(content.is_valid())


def _shared(files: pa.Table, source: Columns) -> dict[str, AnyColumn]:
    """Return the columns that a vector's entry takes from its row; if the row is MODIFIED, the vector is ADDED."""
    status = files["status"]
    modified = pc.fill_null(pc.equal(status, int(Status.MODIFIED)), False)
    since = source.get("147_5", pa.int64())
    return {
        "ordinal": files["ordinal"],
        "status": pc.if_else(modified, pa.scalar(int(Status.ADDED), pa.int32()), status),
        "snapshot_id": pc.coalesce(since, files["snapshot_id"]),
        "sequence_number": files["sequence_number"],
        "file_sequence_number": files["file_sequence_number"],
    }


def _cardinalities(bitmaps: AnyArray) -> AnyArray:
    """Return the cardinalities in the headers of Mumbling bitmaps; null for other encodings, which are not decoded."""
    found = [
        int.from_bytes(data[1:4], "little")
        if data is not None and data[:1] == b"\x01" and len(data) >= _HEADER
        else None
        for data in build.to_pylist(bitmaps)
    ]
    return pa.array(found, pa.int64())


def _constant(value: int, rows: int) -> AnyArray:
    return pa.repeat(pa.scalar(int(value), pa.int32()), rows)
