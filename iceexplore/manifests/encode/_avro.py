"""A table of content entries as an Avro container file, row by row, a chunk of rows at a time (fastavro).

The values handed to fastavro are those stored: days, microseconds, bytes of decimals. So no Python date or Decimal is
made, and a value beyond what they hold (the year 10000) is written like any other.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.manifests.encode._write_avro_schema import avro_name, avro_schema, decimal_bytes
from iceexplore.manifests.model._arrow import whole

__all__ = ["avro_file"]

#: Rows that are Python objects at a time.
CHUNK_ROWS = 2_000
#: Java's level for deflate (``Avro.GZIP_COMPRESSION_LEVEL_DEFAULT``).
DEFLATE_LEVEL = 9

_CODECS = {"gzip": "deflate", "uncompressed": "null", "zstd": "zstandard", "none": "null"}


def avro_file(table: pa.Table, name: str, metadata: Mapping[str, str], codec: str | None) -> bytes:
    """The file's bytes.

    Parameters
    ----------
    name
        Of the records: ``manifest_entry``, ``manifest_file``, ...
    codec
        ``deflate`` (the default; or ``gzip``, as table properties call it), ``zstd``, ``snappy``, ``none``.
    """
    import fastavro

    chosen = _CODECS.get(codec or "deflate", codec or "deflate")
    out = io.BytesIO()
    fastavro.writer(
        out,
        avro_schema(table.schema, name),
        _rows(table),
        codec=chosen,
        metadata=dict(metadata),
        codec_compression_level=DEFLATE_LEVEL if chosen == "deflate" else None,
        disable_tuple_notation=True,
    )
    return out.getvalue()


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    names = [avro_name(name) for name in table.column_names]
    for start in range(0, len(table), CHUNK_ROWS):
        chunk = table.slice(start, CHUNK_ROWS)
        columns = [_values(whole(column)) for column in chunk.columns]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


def _values(array: pa.Array) -> list[Any]:
    """An array's values as fastavro writes them."""
    kind = array.type
    if pa.types.is_struct(kind):
        return _records(array)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _lists(array)
    if pa.types.is_decimal(kind):
        return _decimals(array)
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    if pa.types.is_integer(array.type) and not array.null_count:
        return list(np.asarray(array).tolist())
    return list(array.to_pylist())


def _records(array: pa.StructArray) -> list[Any]:
    if not array.type.num_fields:
        return [{}] * len(array)
    names = [avro_name(child.name) for child in array.type]
    rows = zip(*map(_values, array.flatten()), strict=True)
    if not array.null_count:
        return [dict(zip(names, row, strict=True)) for row in rows]
    there = np.asarray(array.is_valid()).tolist()
    return [dict(zip(names, row, strict=True)) if ok else None for ok, row in zip(there, rows, strict=True)]


def _lists(array: pa.ListArray) -> list[Any]:
    offsets = np.asarray(array.offsets)
    inner = array.values.slice(offsets[0], offsets[-1] - offsets[0]) if len(offsets) else array.values
    values = _values(inner)
    ends = (offsets - offsets[0]).tolist()
    there = np.asarray(array.is_valid()).tolist()
    return [values[ends[i] : ends[i + 1]] if ok else None for i, ok in enumerate(there)]


def _decimals(array: pa.Array) -> list[Any]:
    size = decimal_bytes(array.type.precision)
    held = array.view(pa.binary(16)).to_pylist()
    return [None if v is None else v[size - 1 :: -1] for v in held]  # little-endian, to the fixed length of the type
