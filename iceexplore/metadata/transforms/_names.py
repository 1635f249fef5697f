"""Partition transforms by name, and the types of what they yield (spec, "Partition Transforms")."""

from __future__ import annotations

import re

from iceexplore.metadata.document._model import PartitionSpec, TableMetadata
from iceexplore.metadata.types._types import NestedField, PrimitiveType, StructType, Type

__all__ = ["is_known_transform", "partition_type", "result_type", "transform_parts"]

_WIDTH = re.compile(r"(bucket|truncate)\s*\[\s*(\d{1,10})\s*\]")
_PLAIN = frozenset(("day", "hour", "identity", "month", "void", "year"))


def transform_parts(transform: str) -> tuple[str, int | None]:
    """Name in lower case and parameter: ``("bucket", 16)`` of ``bucket[16]``; an unknown one as it is and None."""
    lower = transform.strip().lower()
    if match := _WIDTH.fullmatch(lower):
        return match[1], int(match[2])
    return (lower, None) if lower in _PLAIN else (transform, None)


def is_known_transform(transform: str) -> bool:
    """Whether the spec (v1 to v3) defines this transform."""
    name, width = transform_parts(transform)
    return width is not None or name in _PLAIN


def result_type(transform: str, source: Type | None) -> Type:
    """The type of a transform's result.

    ``source`` is None where the source column is in no schema any more: then identity, truncate and void yield
    ``unknown``, as Java has it (``PartitionSpec.resultType``). A transform that is not known yields ``string``
    (Java: ``UnknownTransform``). ``day`` is a date, also where the writer stored an int (spec, note 1).
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
    """The struct of a spec's partition tuples: its fields' ids and names, their transforms' result types.

    Source columns are looked up in every schema of the table, the current one first: a spec outlives its columns.
    """
    columns = metadata.all_fields()
    fields = []
    for f in spec.fields:
        column = columns.get(f.source_id) if f.source_ids else None
        fields.append(NestedField(f.field_id, f.name, result_type(f.transform, column[1].type if column else None)))
    return StructType(tuple(fields))
