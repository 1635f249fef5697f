"""Columns of data files, and the types in which Spark reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import AnyField
from iceexplore.formats import FIELD_ID

if TYPE_CHECKING:
    from pyspark.sql import types as spark_types

__all__ = ["Node", "ORC", "collides", "read_type"]

#: Used as the physical type of leaves of ORC files, of which only the Arrow type is known.
ORC = "ORC"


@dataclass(frozen=True)
class Node:
    """A column of a file.

    Attributes
    ----------
    kind
        The type in which Arrow reads it.
    physical
        The Parquet type of a leaf, or `ORC`; empty for nested columns.
    """

    name: str
    kind: pa.DataType
    physical: str = ""
    children: tuple[Node, ...] = ()
    number: int | None = None

    def field(self) -> AnyField:
        """Return the column as an Arrow field, with the file's field id."""
        return pa.field(self.name, self.kind, metadata=None if self.number is None else {FIELD_ID: str(self.number)})


def collides(nodes: Sequence[Node], name: str) -> bool:
    """Return whether several columns have this name, compared without case."""
    return sum(n.name.casefold() == name.casefold() for n in nodes) > 1


def read_type(node: Node) -> spark_types.DataType | None:
    """Return the Spark type in which a leaf is read under any session settings; None if only a worker can read it."""
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
