"""Data-file formats: detect Avro, Parquet and ORC by content, and read them within memory limits."""

from __future__ import annotations

from iceexplore.formats._avro import (
    AVRO_MAGIC,
    AvroHeader,
    Block,
    BlockIndex,
    block_bytes,
    container,
    decompress_block,
    header_bytes,
    index_blocks,
    is_bare,
    json_texts,
    read_header,
)
from iceexplore.formats._avro_encode import encode_records
from iceexplore.formats._avro_rows import AVRO_LOGICAL_TYPES, Records, avro_batches, record_limit
from iceexplore.formats._fields import FIELD_ID, children_of, field_id, plain_field
from iceexplore.formats._footers import FooterColumn, OrcFooter, ParquetFooter, read_orc_footer, read_parquet_footer
from iceexplore.formats._foreign import foreign
from iceexplore.formats._parquet_chunks import check_chunks
from iceexplore.formats._parquet_rows import BATCH_ROWS, ParquetRows
from iceexplore.formats._parquet_size import KeptChunks, StreamLimit, batch_rows, chunk_sizes, whole_bytes
from iceexplore.formats._rewrite_avro import read_avro, rewritten_avro
from iceexplore.formats._rewrite_parquet import read_parquet, rewritten_parquet
from iceexplore.formats._row_groups import (
    ChunkBounds,
    ParquetLeaf,
    ParquetRowGroup,
    RowGroups,
    read_parquet_row_groups,
)
from iceexplore.formats._rows import Rows, open_rows, read_rows
from iceexplore.formats._sniff import HEAD_BYTES, sniff, sniff_file
from iceexplore.formats._thrift import ThriftStruct, read_struct

__all__ = [
    "AVRO_LOGICAL_TYPES",
    "AVRO_MAGIC",
    "AvroHeader",
    "BATCH_ROWS",
    "Block",
    "BlockIndex",
    "ChunkBounds",
    "FIELD_ID",
    "FooterColumn",
    "HEAD_BYTES",
    "KeptChunks",
    "OrcFooter",
    "ParquetFooter",
    "ParquetLeaf",
    "ParquetRowGroup",
    "ParquetRows",
    "Records",
    "RowGroups",
    "Rows",
    "StreamLimit",
    "ThriftStruct",
    "avro_batches",
    "batch_rows",
    "block_bytes",
    "check_chunks",
    "children_of",
    "chunk_sizes",
    "container",
    "decompress_block",
    "encode_records",
    "field_id",
    "foreign",
    "header_bytes",
    "index_blocks",
    "is_bare",
    "json_texts",
    "open_rows",
    "plain_field",
    "read_avro",
    "read_header",
    "read_orc_footer",
    "read_parquet",
    "read_parquet_footer",
    "read_parquet_row_groups",
    "read_rows",
    "read_struct",
    "record_limit",
    "rewritten_avro",
    "rewritten_parquet",
    "sniff",
    "sniff_file",
    "whole_bytes",
]
