"""Format specs, sort orders and types in Spark's syntax."""

from __future__ import annotations

import re

from iceexplore.metadata.document._model import PartitionSpec, SortOrder, TableMetadata
from iceexplore.metadata.transforms._registry import parse_transform
from iceexplore.metadata.types._parameters import type_base
from iceexplore.metadata.types._types import ListType, MapType, Schema, StructType, Type

__all__ = ["format_sort_order", "format_spec", "format_transform", "spark_type_string"]

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_SPARK_TYPES = {
    "fixed": "binary",
    "long": "bigint",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "unknown": "void",
    "uuid": "string",
}


def format_spec(spec: PartitionSpec, names: Schema | TableMetadata) -> str:
    """Format a partition spec as in Spark's ``PARTITIONED BY``: ``days(ts), bucket(16, id)``, or ``unpartitioned``.

    Column names come from one schema, or from all schemas of a table (an old spec's columns may have been dropped).
    """
    if not spec.fields:
        return "unpartitioned"
    return ", ".join(format_transform(f.transform, f.source_ids, names) for f in spec.fields)


def format_sort_order(order: SortOrder, names: Schema | TableMetadata) -> str:
    """Format a sort order as in Spark's ``WRITE ORDERED BY``: ``ts DESC NULLS LAST``, or ``unsorted``."""
    if not order.fields:
        return "unsorted"
    return ", ".join(
        f"{format_transform(f.transform, f.source_ids, names)} {f.direction.upper()} "
        f"{f.null_order.replace('-', ' ').upper()}"
        for f in order.fields
    )


def format_transform(transform: str, source_ids: tuple[int, ...], names: Schema | TableMetadata) -> str:
    """Format a transform: ``ts``, ``days(ts)``, ``bucket(16, id)``; ``#7`` for a column id without a name."""
    by_id = names.by_id() if isinstance(names, Schema) else names.all_fields()
    columns = ", ".join(_quoted(by_id[i][0]) if i in by_id else f"#{i}" for i in source_ids) or "?"
    return parse_transform(transform).to_sql(columns)


def spark_type_string(type_: Type) -> str:
    """Format a type as Spark does (``DataType.simpleString``); types that Spark lacks keep Iceberg's name."""
    match type_:
        case StructType(fields):
            return "struct<" + ",".join(f"{f.name}:{spark_type_string(f.type)}" for f in fields) + ">"
        case ListType(element):
            return f"array<{spark_type_string(element.type)}>"
        case MapType(key, value):
            return f"map<{spark_type_string(key.type)},{spark_type_string(value.type)}>"
    return _SPARK_TYPES.get(type_base(type_), str(type_))


def _quoted(name: str) -> str:
    """Put each part of a name that is not a plain identifier between backticks."""
    return ".".join(p if _PLAIN_NAME.fullmatch(p) else "`" + p.replace("`", "``") + "`" for p in name.split("."))
