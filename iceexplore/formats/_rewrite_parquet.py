"""Rewrite a Parquet file with other values, but with the original's key-values, codecs, encodings and statistics."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa

from iceexplore.formats._parquet_size import KeptChunks, chunk_sizes, whole_bytes
from iceexplore.storage import DATA_RATIO, Budget

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["read_parquet", "rewritten_parquet"]

#: Encodings that a writer may choose for a column's values. A chunk also lists those of its levels and dictionary
#: indices, which the writer does not choose.
_CHOSEN = ("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
_DICTIONARY = ("PLAIN_DICTIONARY", "RLE_DICTIONARY")
_VERSIONS = ("1.0", "2.4", "2.6")


def read_parquet(data: bytes, location: str) -> tuple[Any, pa.Table]:
    """Return the file, for `rewritten_parquet`, and its rows.

    Raises
    ------
    FormatError
        A footer or page header is damaged.
    MemoryLimitError
        The rows exceed the memory limit.
    """
    import pyarrow.parquet as pq

    kept = KeptChunks(io.BytesIO(data), location)
    file = pq.ParquetFile(cast("IO[bytes]", kept), page_checksum_verification=True)
    kept.opened()
    about = file.metadata
    sizes = [(g, int(about.row_group(g).total_byte_size)) for g in range(about.num_row_groups)]
    with Budget(location, len(data), ratio=DATA_RATIO) as budget:
        found = chunk_sizes(kept, sizes, None, max(0, about.num_rows), location, nested=True)
        budget.reserve(whole_bytes(found or ()), "the rows")
        return file, file.read()


def rewritten_parquet(file: pq.ParquetFile, table: pa.Table) -> bytes:
    """Return a Parquet file with these rows, written like another file.

    Parameters
    ----------
    file
        The ``ParquetFile`` of the original. Each column's codec, dictionary, encoding and statistics are taken from the
        first row group; the size of row groups is kept too.
    table
        Rows of the same schema.
    """
    import pyarrow.parquet as pq

    metadata: Any = file.metadata  # untyped, because the type stubs declare its keys as strings, but they are bytes
    # This includes Arrow's own schema if the writer stored one: it is copied byte for byte, not generated again.
    key_values = dict(metadata.metadata or {})
    table = table.replace_schema_metadata(None)
    options = _columns(file)
    physical = {file.schema.column(i).physical_type for i in range(len(file.schema))}
    decimals = {
        file.schema.column(i).physical_type
        for i in range(len(file.schema))
        if file.schema.column(i).logical_type.type == "DECIMAL"
    }
    out = io.BytesIO()
    with pq.ParquetWriter(
        out,
        table.schema,
        version=metadata.format_version if metadata.format_version in _VERSIONS else "2.6",
        store_schema=False,
        store_decimal_as_integer=bool(decimals & {"INT32", "INT64"}),
        use_deprecated_int96_timestamps="INT96" in physical,
        use_compliant_nested_type=False,  # keep the file's names inside lists
        **options,
    ) as writer:
        writer.add_key_value_metadata(key_values)
        # If the original has one empty row group, write one; if it has none, write none.
        if table.num_rows or metadata.num_row_groups:
            rows = max((metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)), default=0)
            writer.write_table(table, row_group_size=max(rows, 1))
    return out.getvalue()


def _columns(file: pq.ParquetFile) -> dict[str, Any]:
    """Return how each column of the first row group was written, as options of a writer."""
    metadata = file.metadata
    if not metadata.num_row_groups:
        return {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    group = metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    codecs = {c.path_in_schema: "NONE" if c.compression == "UNCOMPRESSED" else c.compression for c in columns}
    dictionary = [c.path_in_schema for c in columns if set(c.encodings) & set(_DICTIONARY)]
    chosen = {c.path_in_schema: e for c in columns for e in _CHOSEN if e in c.encodings}
    encodings = {name: e for name, e in chosen.items() if name not in dictionary}
    # pyarrow's statistics crash the process for a chunk whose type differs from its column's (seen in 26.0).
    with_statistics = [
        c.path_in_schema
        for i, c in enumerate(columns)
        if c.physical_type == file.schema.column(i).physical_type and c.is_stats_set
    ]
    return {
        "compression": codecs,
        "use_dictionary": dictionary or False,
        **({"column_encoding": encodings} if encodings else {}),
        "write_statistics": with_statistics or False,
        "write_page_index": any(c.has_offset_index for c in columns),
    }
