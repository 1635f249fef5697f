"""What the footer of a Parquet or ORC data file says; no column is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.formats._foreign import foreign
from iceexplore.formats._rows import field_id

if TYPE_CHECKING:
    from iceexplore.storage import Storage

__all__ = ["FooterColumn", "OrcFooter", "ParquetFooter", "read_orc_footer", "read_parquet_footer"]

CHUNK_SCHEMA = pa.schema(
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
#: A footer may claim any number of row groups times columns; a table of more cells than this is not for people.
MAX_CHUNKS = 1_000_000


@dataclass(frozen=True)
class FooterColumn:
    """A leaf column: its path, field id (None where the file has none), stored type, and what that stands for."""

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
        As the footer counts them.
    footer_size
        Bytes of the footer's Thrift structure.
    schema
        As Arrow reads it, field ids in the fields' metadata; None where Arrow has no such types.
    key_values
        Key-value metadata, undecodable bytes replaced.
    chunks
        A row for each row group and column: values, nulls, bounds as text, encodings, codec, bytes, offset.
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
    """The footer of an ORC file; ``stripes`` counts them, sizes are bytes."""

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
    """Read the footer of a Parquet file: the end of the file, no data page.

    Raises
    ------
    FormatError
        No Parquet file, or a damaged footer.
    """
    import pyarrow.parquet as pq

    with storage.open(location, kind="data-footer") as file, foreign("the Parquet footer", location):
        found = pq.read_metadata(file)
        schema: pa.Schema | None
        try:
            schema = found.schema.to_arrow_schema()
        except (pa.ArrowException, ValueError):
            schema = None
        leaves = [] if schema is None else [number for f in schema for number in _leaf_ids(f)]
        ids: list[int | None] = leaves if len(leaves) == found.num_columns else [None] * found.num_columns
        columns = tuple(_parquet_column(found.schema.column(i), ids[i]) for i in range(found.num_columns))
        return ParquetFooter(
            location=location,
            rows=found.num_rows,
            row_groups=found.num_row_groups,
            created_by=found.created_by or "",
            format_version=found.format_version,
            footer_size=found.serialized_size,
            columns=columns,
            key_values=_texts(found.metadata),
            schema=schema,
            chunks=_chunks(found, columns),
        )


def read_orc_footer(storage: Storage, location: str) -> OrcFooter:
    """Read the footer of an ORC file: the end of the file, no stripe.

    Raises
    ------
    FormatError
        No ORC file, or a damaged footer.
    """
    from pyarrow import orc

    with storage.open(location, kind="data-footer") as file, foreign("the ORC footer", location):
        found = orc.ORCFile(file)
        schema = found.schema
        return OrcFooter(
            location=location,
            rows=found.nrows,
            stripes=found.nstripes,
            writer=f"{found.writer} {found.software_version or ''}".strip(),
            file_version=str(found.file_version),
            compression=str(found.compression),
            compression_block=found.compression_size,
            row_index_stride=found.row_index_stride,
            footer_size=found.file_footer_length + found.file_postscript_length + 1,
            content_size=found.content_length,
            columns=tuple(c for f in schema for c in _orc_columns("", f)),
            key_values=_texts(dict(found.metadata or {})),
            schema=schema,
        )


def _parquet_column(column: Any, number: int | None) -> FooterColumn:
    logical = str(column.logical_type)
    return FooterColumn(column.path, number, column.physical_type, None if logical == "None" else logical)


def _orc_columns(prefix: str, column: pa.Field) -> Iterator[FooterColumn]:
    path = f"{prefix}.{column.name}" if prefix else column.name
    children = _children(column.type)
    if not children:
        yield FooterColumn(path, field_id(column), str(column.type), _attribute(column, b"iceberg.long-type"))
    for child in children:
        yield from _orc_columns(path, child)


def _attribute(column: pa.Field, key: bytes) -> str | None:
    value = (column.metadata or {}).get(key)
    return None if value is None else value.decode("utf-8", "replace")


def _children(kind: pa.DataType) -> list[pa.Field]:
    if isinstance(kind, pa.BaseExtensionType):
        return _children(kind.storage_type)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(i) for i in range(kind.num_fields)]


def _leaf_ids(column: pa.Field) -> Iterator[int | None]:
    children = _children(column.type)
    if not children:
        yield field_id(column)
    for child in children:
        yield from _leaf_ids(child)


def _texts(pairs: Mapping[Any, Any] | None) -> dict[str, str]:
    return {_text(k): _text(v) for k, v in (pairs or {}).items()}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _chunks(found: Any, columns: tuple[FooterColumn, ...]) -> pa.Table:
    rows: list[tuple[Any, ...]] = []
    for group in range(min(found.num_row_groups, MAX_CHUNKS // max(1, found.num_columns))):
        row_group = found.row_group(group)
        for index, column in enumerate(columns):
            chunk = row_group.column(index)
            stats = chunk.statistics if chunk.is_stats_set else None
            bounds = stats is not None and stats.has_min_max
            rows.append(
                (
                    group,
                    column.path,
                    column.field_id,
                    chunk.num_values,
                    stats.null_count if stats is not None and stats.has_null_count else None,
                    stats.distinct_count if stats is not None and stats.has_distinct_count else None,
                    _bound(stats, "min") if bounds else None,
                    _bound(stats, "max") if bounds else None,
                    list(chunk.encodings),
                    chunk.compression,
                    chunk.total_compressed_size,
                    chunk.total_uncompressed_size,
                    chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset,
                )
            )
    columns_of_rows = [list(c) for c in zip(*rows, strict=True)] if rows else [[]] * len(CHUNK_SCHEMA)
    return pa.table(columns_of_rows, schema=CHUNK_SCHEMA)


def _bound(stats: Any, which: str) -> str | None:
    try:
        value = getattr(stats, which)
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        value = getattr(stats, f"{which}_raw")  # a value outside its logical type, a string that is not UTF-8
    return value.hex() if isinstance(value, bytes) else None if value is None else str(value)
