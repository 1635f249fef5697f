"""Read the footers of Parquet and ORC data files, without reading any column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import AnyField, build
from iceexplore.formats._fields import field_id
from iceexplore.formats._foreign import foreign
from iceexplore.formats._helper import orc_footer, parquet_footer

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile, Storage

__all__ = ["FooterColumn", "OrcFooter", "ParquetFooter", "read_orc_footer", "read_parquet_footer"]

CHUNK_SCHEMA = build.schema(
    [
        pa.field("row_group", pa.int32()),
        pa.field("column", pa.string()),
        pa.field("field_id", pa.int32()),
        pa.field("num_values", pa.int64()),
        pa.field("null_count", pa.int64()),
        pa.field("distinct_count", pa.int64()),
        pa.field("min", pa.string()),
        pa.field("max", pa.string()),
        pa.field("encodings", pa.list_(pa.string())),
        pa.field("compression", pa.string()),
        pa.field("compressed_bytes", pa.int64()),
        pa.field("uncompressed_bytes", pa.int64()),
        pa.field("offset", pa.int64()),
    ]
)
#: Maximum number of column chunks to list: a footer may claim any number of them.
MAX_CHUNKS = 1_000_000


@dataclass(frozen=True)
class FooterColumn:
    """A leaf column: its path, field id (None if the file has none), physical and logical type."""

    path: str
    field_id: int | None
    physical_type: str
    logical_type: str | None


@dataclass(frozen=True)
class ParquetFooter:
    """The footer of a Parquet file.

    Attributes
    ----------
    rows, row_groups
        The counts in the footer.
    footer_size
        Size in bytes of the footer's Thrift structure.
    schema
        Arrow's schema, with field ids in the fields' metadata; None if Arrow lacks a type.
    key_values
        Key-value metadata, undecodable bytes replaced.
    chunks
        One row for each column of each row group: values, nulls, bounds as text, encodings, codec, bytes, offset.
    """

    location: str
    rows: int
    row_groups: int
    created_by: str
    format_version: str
    footer_size: int
    columns: tuple[FooterColumn, ...]
    key_values: Mapping[str, str]
    schema: pa.Schema | None = field(repr=False)
    chunks: pa.Table = field(repr=False)


@dataclass(frozen=True)
class OrcFooter:
    """The footer of an ORC file; ``stripes`` is the number of stripes, sizes are in bytes."""

    location: str
    rows: int
    stripes: int
    writer: str
    file_version: str
    compression: str
    compression_block: int
    row_index_stride: int
    footer_size: int
    content_size: int
    columns: tuple[FooterColumn, ...]
    key_values: Mapping[str, str]
    schema: pa.Schema = field(repr=False)


def read_parquet_footer(storage: Storage, location: str) -> ParquetFooter:
    """Read the footer of a Parquet file; only the end of the file is read.

    Raises
    ------
    FormatError
        Not a Parquet file, or the footer is damaged.
    """
    info, schema = parquet_footer(storage, location, MAX_CHUNKS)
    with foreign("the Parquet footer", location):
        known = schema if info.pop("has_schema") else None
        leaves = [] if known is None else [number for f in known for number in _leaf_ids(f)]
        found = info.pop("columns")
        ids: list[int | None] = leaves if len(leaves) == len(found) else [None] * len(found)
        columns = tuple(
            FooterColumn(path, number, physical, None if logical == "None" else logical)
            for number, (path, physical, logical) in zip(ids, found, strict=True)
        )
        chunks = _chunks(info.pop("chunks"), columns)
    return ParquetFooter(location=location, columns=columns, schema=known, chunks=chunks, **info)


def read_orc_footer(storage: Storage, location: str, *, file: RangeFile | None = None) -> OrcFooter:
    """Read the footer of an ORC file; only the end of the file is read.

    Parameters
    ----------
    file
        The file if it is open already; it stays open.

    Raises
    ------
    FormatError
        Not an ORC file, or the footer is damaged.
    """
    info, schema = orc_footer(storage, location, file)
    with foreign("the ORC footer", location):
        columns = tuple(c for f in schema for c in _orc_columns("", f))
    return OrcFooter(location=location, columns=columns, schema=schema, **info)


def _orc_columns(prefix: str, column: AnyField) -> Iterator[FooterColumn]:
    path = f"{prefix}.{column.name}" if prefix else column.name
    children = _children(column.type)
    if not children:
        yield FooterColumn(path, field_id(column), str(column.type), _attribute(column, b"iceberg.long-type"))
    for child in children:
        yield from _orc_columns(path, child)


def _attribute(column: AnyField, key: bytes) -> str | None:
    value = (column.metadata or {}).get(key)
    return None if value is None else value.decode("utf-8", "replace")


def _children(kind: pa.DataType) -> list[AnyField]:
    if isinstance(kind, pa.BaseExtensionType):
        return _children(kind.storage_type)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(i) for i in range(kind.num_fields)]


def _leaf_ids(column: AnyField) -> Iterator[int | None]:
    children = _children(column.type)
    if not children:
        yield field_id(column)
    for child in children:
        yield from _leaf_ids(child)


def _chunks(rows: list[list[Any]], columns: tuple[FooterColumn, ...]) -> pa.Table:
    if not rows:
        return CHUNK_SCHEMA.empty_table()
    group, index, *rest = (list(values) for values in zip(*rows, strict=True))
    paths = [columns[i].path for i in index]
    ids = [columns[i].field_id for i in index]
    return build.table([group, paths, ids, *rest], schema=CHUNK_SCHEMA)
