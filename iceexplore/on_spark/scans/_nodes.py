"""A column of a data file, and the type in which Spark reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.formats import FIELD_ID

if TYPE_CHECKING:
    from pyspark.sql import types as spark_types

__all__ = ["Node", "ORC", "children_of", "collides", "read_type"]

#: The physical type of a leaf of an ORC file: all that there is to know is how Arrow reads it.
ORC = "ORC"


@dataclass(frozen=True)
class Node:
    """A column of a file.

    Attributes
    ----------
    kind
        As Arrow reads it.
    physical
        Parquet's type of a leaf, or `ORC`; empty for what has children.
    """

    name: str
    kind: pa.DataType
    physical: str = ""
    children: tuple[Node, ...] = ()
    number: int | None = None

    def field(self) -> pa.Field:
        """As Arrow has it, with the ids that the file has."""
        return pa.field(self.name, self.kind, metadata=None if self.number is None else {FIELD_ID: str(self.number)})


def children_of(kind: pa.DataType) -> list[pa.Field]:
    """The fields inside a type; a map's key and value."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(i) for i in range(kind.num_fields)]


def collides(nodes: Sequence[Node], name: str) -> bool:
    """Whether a column is not the only one of its name, in a session to which case does not matter."""
    return sum(n.name.casefold() == name.casefold() for n in nodes) > 1


def read_type(node: Node) -> spark_types.DataType | None:
    """The Spark type in which a leaf is read, whatever the session says; None where only a worker can."""
    from pyspark.sql import types as t

    kind, stored = node.kind, node.physical.partition("/")[0]
    if stored == ORC:
        return _orc_type(kind)
    simple = {
        ("INT32", pa.int32()): t.IntegerType(),
        ("INT32", pa.int16()): t.IntegerType(),
        ("INT32", pa.int8()): t.IntegerType(),
        ("INT64", pa.int64()): t.LongType(),
        ("BOOLEAN", pa.bool_()): t.BooleanType(),
        ("FLOAT", pa.float32()): t.FloatType(),
        ("DOUBLE", pa.float64()): t.DoubleType(),
        ("BYTE_ARRAY", pa.string()): t.StringType(),
        ("BYTE_ARRAY", pa.binary()): t.BinaryType(),
        ("INT32", pa.date32()): t.DateType(),
        ("INT64", pa.time64("us")): t.LongType(),
    }
    found: spark_types.DataType | None = simple.get((stored, kind))
    if found is not None:
        return found
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return t.DecimalType(kind.precision, kind.scale)
    if pa.types.is_fixed_size_binary(kind):
        return t.BinaryType()
    if pa.types.is_timestamp(kind) and stored == "INT64":  # INT96 depends on a session's settings
        if kind.unit == "ns":
            return t.LongType()
        return t.TimestampNTZType() if kind.tz is None else t.TimestampType()
    return None


def _orc_type(kind: pa.DataType) -> spark_types.DataType | None:
    from pyspark.sql import types as t

    simple = {
        pa.int32(): t.IntegerType(),
        pa.int64(): t.LongType(),
        pa.bool_(): t.BooleanType(),
        pa.float32(): t.FloatType(),
        pa.float64(): t.DoubleType(),
        pa.string(): t.StringType(),
        pa.binary(): t.BinaryType(),
    }
    found: spark_types.DataType | None = simple.get(kind)
    if found is None and pa.types.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale)
    return found
