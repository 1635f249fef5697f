"""A table of content entries as a Parquet file: field ids on every field, no Arrow schema beside them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

__all__ = ["parquet_file"]

#: Entries in a row group: what a reader has in memory at a time. Real leaves are one group.
GROUP_ROWS = 100_000


def parquet_file(table: pa.Table, metadata: Mapping[str, str], codec: str | None) -> bytes:
    """The file's bytes.

    Parameters
    ----------
    codec
        ``zstd`` (the default), ``gzip``, ``snappy``, ``lz4``, ``none``.
    """
    import pyarrow.parquet as pq

    out = pa.BufferOutputStream()
    # No statistics: nobody looks for a manifest's rows by them. No dictionaries: of the few repeated values (formats,
    # snapshots) the codec makes as little, and each would cost a page of its own in every column.
    with pq.ParquetWriter(
        out,
        table.schema,
        compression=codec or "zstd",
        compression_level=6 if codec == "gzip" else None,  # Java's and zlib's own; pyarrow takes 9, at twice the time
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.add_key_value_metadata(dict(metadata))
        writer.write_table(table, row_group_size=GROUP_ROWS)
    return bytes(out.getvalue())
