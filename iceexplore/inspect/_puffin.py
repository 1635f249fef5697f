"""``puffin_blobs``: the blobs of the table's statistics and deletion-vector files, from the Puffin footers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.deletes import read_puffin_footer
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.inspect._by_leaf import ByLeaf
from iceexplore.inspect._content import (
    MANIFEST_VECTORS_SCHEMA,
    build_manifest_vectors,
    deletion_vectors_maker,
    deletion_vectors_schema,
)
from iceexplore.inspect._log import rows_table
from iceexplore.inspect._source import DELETES, in_parallel

__all__ = ["BLOB_FIELDS", "PUFFIN_BLOBS_SCHEMA", "VECTORS", "build_puffin_blobs"]

#: The columns that come from a Puffin file's footer alone, without the table.
BLOB_FIELDS = (
    pa.field("snapshot_id", pa.int64()),
    pa.field("sequence_number", pa.int64()),
    pa.field("offset", pa.int64()),
    pa.field("length", pa.int64()),
    pa.field("compression_codec", pa.string()),
    pa.field("ndv", pa.int64()),
    pa.field("cardinality", pa.int64()),
    pa.field("referenced_data_file", pa.string()),
    pa.field("properties", pa.map_(pa.string(), pa.string())),
)
PUFFIN_BLOBS_SCHEMA = build.schema(
    [
        pa.field("file_path", pa.string()),
        pa.field("used_as", pa.string()),
        pa.field("ordinal", pa.int64()),
        pa.field("type", pa.string()),
        pa.field("fields", pa.list_(pa.int32())),
        pa.field("columns", pa.list_(pa.string())),
        *BLOB_FIELDS,
    ]
)


#: The live deletion vectors of the snapshot.
VECTORS = ByLeaf(deletion_vectors_maker, contents=DELETES, parts=("entries", "partition"))


def is_bare(state: TableState, location: str) -> bool:
    """Return whether a file of vectors is in Delta's own format, which has no footer and no blobs."""
    return state.opened.is_delta and location.endswith(".bin")


def build_puffin_blobs(state: TableState, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the blobs of the metadata's statistics files and the snapshot's deletion-vector files; reads footers."""
    files: list[tuple[str, str, int | None]] = [
        (file.statistics_path, "statistics", file.file_size_in_bytes) for file in state.metadata.statistics
    ]
    places: dict[str, str] = {}
    for table in build_manifest_vectors(state, MANIFEST_VECTORS_SCHEMA):
        found = build.to_pylist(pc.unique(table.column("file_path")).drop_null())
        places |= dict.fromkeys(found, "manifest deletion vectors")
    for table in VECTORS.build(state, deletion_vectors_schema(state)):
        found = build.to_pylist(pc.unique(table.column("file_path")))
        places |= dict.fromkeys((place for place in found if not is_bare(state, place)), "deletion vectors")
    files += [(place, used_as, None) for place, used_as in places.items()]
    yield from in_parallel(state, lambda file: _blobs(state, schema, *file), files)


def _blobs(state: TableState, schema: pa.Schema, location: str, used_as: str, size: int | None) -> pa.Table:
    try:
        file = read_puffin_footer(state.storage, location, size)
    except IceexploreError as error:
        state.problems.add_error(error, location)
        return schema.empty_table()
    for item in file.problems:
        state.problems.add(item)
    names = state.metadata.all_fields()
    rows: list[dict[str, Any]] = [
        {
            "file_path": location,
            "used_as": used_as,
            "ordinal": blob.ordinal,
            "type": blob.type,
            "fields": list(blob.fields),
            "columns": [names[i][0] if i in names else None for i in blob.fields],
            "snapshot_id": blob.snapshot_id,
            "sequence_number": blob.sequence_number,
            "offset": blob.offset,
            "length": blob.length,
            "compression_codec": blob.compression_codec,
            "ndv": blob.ndv,
            "cardinality": blob.cardinality,
            "referenced_data_file": blob.referenced_data_file,
            "properties": list(blob.properties.items()),
        }
        for blob in file.blobs
    ]
    return rows_table(rows, schema)
