"""Write a table of content entries as an Avro container file, in chunks of rows (fastavro).

fastavro gets the stored values: days, microseconds, bytes of decimals. No Python date or Decimal is involved, so values
beyond their range (the year 10000) are written like any other.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField, AnyListArray, build
from iceexplore.manifests.encode._fields import id_of
from iceexplore.manifests.model._arrow import whole
from iceexplore.storage import JsonValue

__all__ = [
    "avro_file",
]

_PLAIN: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
}


def avro_name(name: str) -> str:
    """Return a name that Avro allows (``AvroSchemaUtil.sanitize``)."""
    text = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_x{ord(m[0]):X}", name)
    return f"_{text}" if text[:1].isdigit() or not text else text


def decimal_bytes(precision: int) -> int:
    """Return the number of bytes that hold every decimal of this precision in two's complement."""
    return (int(10**precision).bit_length() + 8) // 8


def avro_schema(schema: pa.Schema, name: str) -> dict[str, Any]:
    """Return the Avro schema of a table's columns. The record is called ``name``, nested ones ``r`` plus their id."""
    return {"type": "record", "name": name, "fields": _Maker().fields(list(schema))}


class _Maker:
    def __init__(self) -> None:
        self.named: set[str] = set()

    def fields(self, fields: list[AnyField]) -> list[dict[str, Any]]:
        out = []
        for field in fields:
            kind = self.kind(field)
            made: dict[str, Any] = {"name": avro_name(field.name), "type": ["null", kind] if field.nullable else kind}
            doc = (field.metadata or {}).get(b"doc")
            if doc is not None:
                made["doc"] = doc.decode()
            if field.nullable:
                made["default"] = None
            if made["name"] != field.name:
                made["iceberg-field-name"] = field.name
            out.append(made | {"field-id": id_of(field)})
        return out

    def kind(self, field: AnyField) -> JsonValue:
        arrow, field_id = field.type, id_of(field)
        if arrow in _PLAIN:
            return _PLAIN[arrow]
        if pa.types.is_struct(arrow):
            return {"type": "record", "name": f"r{field_id}", "fields": self.fields(list(arrow))}
        if pa.types.is_map(arrow):
            key, value = arrow.key_field, arrow.item_field
            pair = {
                "type": "record",
                "name": f"k{id_of(key)}_v{id_of(value)}",
                "fields": self.fields([key, value]),
            }
            return {"type": "array", "items": pair, "logicalType": "map"}
        if pa.types.is_list(arrow):
            return {"type": "array", "items": self.kind(arrow.value_field), "element-id": id_of(arrow.value_field)}
        if pa.types.is_timestamp(arrow) and arrow.unit in ("us", "ns"):
            logical = "timestamp-micros" if arrow.unit == "us" else "timestamp-nanos"
            return {"type": "long", "logicalType": logical, "adjust-to-utc": arrow.tz is not None}
        if pa.types.is_decimal128(arrow):
            name = f"decimal_{arrow.precision}_{arrow.scale}"
            more = {"logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale}
            return self.fixed(name, decimal_bytes(arrow.precision), **more)
        if pa.types.is_fixed_size_binary(arrow):
            if (field.metadata or {}).get(b"logical") == b"uuid":
                return self.fixed("uuid_fixed", arrow.byte_width, logicalType="uuid")
            return self.fixed(f"fixed_{arrow.byte_width}", arrow.byte_width)
        raise ValueError(f"{arrow} has no Avro type")  # this would be a bug: all types come from this package

    def fixed(self, name: str, size: int, **more: Any) -> JsonValue:
        if name in self.named:  # Avro defines a named type once and then refers to it
            return name
        self.named.add(name)
        return {"type": "fixed", "name": name, "size": size, **more}


#: Number of rows that are held as Python objects at a time.
CHUNK_ROWS = 2_000
#: Java's level for deflate (``Avro.GZIP_COMPRESSION_LEVEL_DEFAULT``).
DEFLATE_LEVEL = 9
_CODECS = {"gzip": "deflate", "uncompressed": "null", "zstd": "zstandard", "none": "null"}


def avro_file(table: pa.Table, name: str, metadata: Mapping[str, str], codec: str | None) -> bytes:
    """Return the bytes of an Avro file with the rows of a table.

    Parameters
    ----------
    name
        The name of the records: ``manifest_entry``, ``manifest_file``, ...
    codec
        ``deflate`` (the default; or ``gzip``, as in table properties), ``zstd``, ``snappy``, ``none``.
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
    )
    return out.getvalue()


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    names = [avro_name(name) for name in table.column_names]
    for start in range(0, len(table), CHUNK_ROWS):
        chunk = table.slice(start, CHUNK_ROWS)
        columns = [_field(f, whole(column)) for f, column in zip(chunk.schema, chunk.columns, strict=True)]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


def _field(field: AnyField, array: AnyArray) -> list[Any]:
    """Return a field's values. If a list may be null, each list comes with the name of its branch of the Avro union.

    Without the name, fastavro compares each list, with all its items, with both branches, which doubles the time.
    """
    values = _values(array)
    if field.nullable and (pa.types.is_list(field.type) or pa.types.is_map(field.type)):
        return [None if value is None else ("array", value) for value in values]
    return values


def _values(array: AnyArray) -> list[Any]:
    """Return an array's values in the form that fastavro writes."""
    kind = array.type
    if pa.types.is_struct(kind):
        return _records(cast(pa.StructArray, array))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _lists(cast(AnyListArray, array))
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
    rows = zip(*map(_field, array.type, array.flatten()), strict=True)
    if not array.null_count and len(names) == 2:  # as in maps, which have many pairs
        one, other = names
        return [{one: a, other: b} for a, b in rows]
    if not array.null_count:
        return [dict(zip(names, row, strict=True)) for row in rows]
    there = np.asarray(array.is_valid()).tolist()
    return [dict(zip(names, row, strict=True)) if ok else None for ok, row in zip(there, rows, strict=True)]


def _lists(array: AnyListArray) -> list[Any]:
    offsets = np.asarray(array.offsets)
    inner = array.values.slice(offsets[0], offsets[-1] - offsets[0]) if len(offsets) else array.values
    values = _values(inner)
    ends = (offsets - offsets[0]).tolist()
    there = np.asarray(array.is_valid()).tolist()
    return [values[ends[i] : ends[i + 1]] if ok else None for i, ok in enumerate(there)]


def _decimals(array: AnyArray) -> list[Any]:
    size = decimal_bytes(array.type.precision)
    held = build.to_pylist(array.view(pa.binary(16)))
    return [None if v is None else v[size - 1 :: -1] for v in held]  # big-endian, in the type's fixed length
