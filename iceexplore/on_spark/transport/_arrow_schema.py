"""Convert Arrow schemas to Spark's, for tables that are built in Arrow: the metadata tables and the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, build
from iceexplore.arrow import compute as pc

if TYPE_CHECKING:
    from pyspark.sql import types as spark_types

__all__ = ["for_spark", "held_type", "spark_schema"]


def held_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which Spark accepts a column; see `spark_schema` for types that Spark lacks."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, held_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(held_type(kind.key_type), held_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(held_type(kind.value_type))
    if pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns"):
        return pa.int64()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return pa.string() if pa.types.is_null(kind) else kind


def for_spark(table: pa.Table) -> pa.Table:
    """Return a table converted to the types that Spark accepts."""
    schema = pa.schema([pa.field(f.name, held_type(f.type)) for f in table.schema])
    columns = [_cast(column, f.type) for column, f in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: AnyChunkedArray, target: pa.DataType) -> AnyChunkedArray:
    if column.type == target:
        return column
    return build.chunked_array([_cast_array(chunk, target) for chunk in column.chunks], target)


def _cast_array(array: AnyArray, target: pa.DataType) -> AnyArray:
    if array.type == target:
        return array
    if pa.types.is_struct(target):  # by position, as names may repeat
        children = [_cast_array(pc.struct_field(array, [i]), target.field(i).type) for i in range(target.num_fields)]
        if not children:
            return array
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    return array.cast(target)


def spark_schema(schema: pa.Schema) -> spark_types.StructType:
    """Return the Spark schema of an Arrow schema, with every column nullable.

    A timestamp with a zone is ``timestamp``, one without is ``timestamp_ntz``. Types that Spark lacks become bigint (a
    time of day, in microseconds, and timestamps in nanoseconds) or string (the type ``null``).
    """
    from pyspark.sql import types as t

    return t.StructType([t.StructField(f.name, _spark(held_type(f.type)), True) for f in schema])


def _spark(kind: pa.DataType) -> spark_types.DataType:
    from pyspark.sql import types as t

    if pa.types.is_struct(kind):
        return t.StructType([t.StructField(f.name, _spark(f.type), True) for f in kind])
    if pa.types.is_map(kind):
        return t.MapType(_spark(kind.key_type), _spark(kind.item_type), True)
    if pa.types.is_list(kind):
        return t.ArrayType(_spark(kind.value_type), True)
    if pa.types.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return t.TimestampType() if kind.tz else t.TimestampNTZType()
    names = {
        pa.bool_(): t.BooleanType,
        pa.int32(): t.IntegerType,
        pa.int64(): t.LongType,
        pa.float32(): t.FloatType,
        pa.float64(): t.DoubleType,
        pa.date32(): t.DateType,
        pa.string(): t.StringType,
        pa.binary(): t.BinaryType,
    }
    return names[kind]()
