"""Write a table of content entries as a Parquet file: every field has its id, and no Arrow schema is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa

__all__ = ["parquet_file"]

#: Entries per row group; readers hold one row group in memory at a time. Leaves of usual size have only one.
GROUP_ROWS = 100_000


def parquet_file(table: pa.Table, metadata: Mapping[str, str], codec: str | None) -> bytes:
    """Return the bytes of a Parquet file with the rows of a table.

    Parameters
    ----------
    codec
        ``zstd`` (the default), ``gzip``, ``snappy``, ``lz4``, ``none``.
    """
    import pyarrow.parquet as pq

    out = pa.BufferOutputStream()
    # No statistics: readers do not filter a manifest's rows by them. No dictionaries: the codec compresses the few
    # repeated values (formats, snapshots) as well, and each dictionary would add a page to its column.
    with pq.ParquetWriter(
        out,
        table.schema,
        compression=cast(Any, codec or "zstd"),
        compression_level=6 if codec == "gzip" else None,  # Java's and zlib's default; pyarrow's is 9 and twice as slow
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.add_key_value_metadata(dict(metadata))
        writer.write_table(table, row_group_size=GROUP_ROWS)
    return bytes(out.getvalue())
