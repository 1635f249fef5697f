"""Partition transforms by name, and their result types (spec, "Partition Transforms")."""

from __future__ import annotations

import re

from iceexplore.metadata.document._model import PartitionSpec, TableMetadata
from iceexplore.metadata.types._types import NestedField, PrimitiveType, StructType, Type

__all__ = ["is_known_transform", "partition_type", "result_type", "transform_parts"]

_WIDTH = re.compile(r"(bucket|truncate)\s*\[\s*(\d{1,10})\s*\]")
_PLAIN = frozenset(("day", "hour", "identity", "month", "void", "year"))


def transform_parts(transform: str) -> tuple[str, int | None]:
    """Return name and width, ``("bucket", 16)`` for ``bucket[16]``; an unknown transform unchanged and None."""
    lower = transform.strip().lower()
    if match := _WIDTH.fullmatch(lower):
        return match[1], int(match[2])
    return (lower, None) if lower in _PLAIN else (transform, None)


def is_known_transform(transform: str) -> bool:
    """Return whether the spec (v1 to v3) defines this transform."""
    name, width = transform_parts(transform)
    return width is not None or name in _PLAIN


def result_type(transform: str, source: Type | None) -> Type:
    """Return the type of a transform's result.

    ``source`` is None where the source column is in no schema any more: then identity, truncate and void return
    ``unknown``, as in Java (``PartitionSpec.resultType``). An unknown transform returns ``string`` (Java:
    ``UnknownTransform``). ``day`` is a date, also where the writer stored an int (spec, note 1).
    """
    match transform_parts(transform)[0]:
        case "bucket" | "year" | "month" | "hour":
            return PrimitiveType("int")
        case "day":
            return PrimitiveType("date")
        case "identity" | "truncate" | "void":
            return PrimitiveType("unknown") if source is None else source
        case _:
            return PrimitiveType("string")


def partition_type(spec: PartitionSpec, metadata: TableMetadata) -> StructType:
    """Return the struct type of a spec's partition tuples, with the result types of its transforms.

    Source columns are looked up in every schema of the table, the current one first: a spec outlives its columns.
    """
    columns = metadata.all_fields()
    fields = []
    for f in spec.fields:
        column = columns.get(f.source_id) if f.source_ids else None
        fields.append(NestedField(f.field_id, f.name, result_type(f.transform, column[1].type if column else None)))
    return StructType(tuple(fields))
