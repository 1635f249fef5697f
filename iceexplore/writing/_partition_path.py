"""Folder names of partitions, as Java writes them in data file paths and in partition summaries."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import quote_plus

import pyarrow as pa

from iceexplore.arrow import AnyScalar, PlainValue
from iceexplore.arrow import compute as pc
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import TableMetadata, human_value, partition_type

__all__ = ["partition_path"]


def partition_path(batch: EntryBatch, row: int, metadata: TableMetadata) -> str:
    """Return a row's partition as in Java's paths: ``day=2024-01-01/kind=a%2Fb``; empty if unpartitioned."""
    spec = metadata.spec(batch.entries["partition_spec_id"][row].as_py())
    if spec is None or batch.partition is None:
        return ""
    parts = []
    for field, typed in zip(spec.fields, partition_type(spec, metadata).fields, strict=True):
        at = batch.partition.type.get_field_index(str(field.field_id))
        value = None if at < 0 else _stored(pc.struct_field(batch.partition.slice(row, 1), [at])[0])
        text = "null" if value is None else human_value(typed.type, field.transform, value)
        parts.append(f"{_escaped(field.name)}={_escaped(text)}")
    return "/".join(parts)


def _stored(value: AnyScalar) -> PlainValue:
    """Return a Python value, but an integer for dates, times and timestamps: Python's types end at the year 9999."""
    return cast(Any, value).value if pa.types.is_temporal(value.type) else value.as_py()


def _escaped(text: str) -> str:
    """Escape text as Java's ``URLEncoder`` does."""
    return quote_plus(text, safe="*").replace("~", "%7E")
