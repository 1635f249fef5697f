"""Convert columns read by this library to the types in which Iceberg's runtime shows them to Spark.

As in Iceberg's ``TypeToSparkType``, ``uuid`` is a string, ``fixed`` binary, ``timestamp`` without zone
``timestamp_ntz``, ``unknown`` void, ``variant`` a variant (from Spark 4.0 on). Types that Iceberg's runtime refuses
because Spark has no equivalent keep their stored form: ``time`` is bigint (microseconds), ``timestamp_ns`` and
``timestamptz_ns`` are bigint (nanoseconds since 1970, UTC), ``geometry`` and ``geography`` binary (WKB). All columns
are declared nullable, as damaged files have nulls where the schema forbids them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListType, AnyMapType, DynamicArray, build
from iceexplore.arrow import compute as pc
from iceexplore.metadata import ListType, MapType, NestedField, StructType, Type, type_base
from iceexplore.reading import Output, arrow_field

if TYPE_CHECKING:
    from pyspark.sql import types as spark_types

__all__ = ["SparkColumns", "spark_type"]

#: Spark's types by Iceberg's; all others are binary.
_NAMES = {
    "unknown": "NullType",
    "boolean": "BooleanType",
    "int": "IntegerType",
    "long": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "date": "DateType",
    "time": "LongType",
    "timestamp": "TimestampNTZType",
    "timestamptz": "TimestampType",
    "timestamp_ns": "LongType",
    "timestamptz_ns": "LongType",
    "string": "StringType",
    "uuid": "StringType",
}
_LONGS = frozenset(("time", "timestamp_ns", "timestamptz_ns"))
#: Spark's own Arrow form of a variant (pyspark.sql.pandas.types).
_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)
_HEX = np.frombuffer("".join(f"{i:02x}" for i in range(256)).encode("ascii"), np.uint8).reshape(256, 2)
_DIGITS = [i for i in range(36) if i not in (8, 13, 18, 23)]

_Maker: TypeAlias = "Callable[[AnyArray], AnyArray]"


def spark_type(kind: Type, version: tuple[int, int]) -> spark_types.DataType:
    """Return the Spark type of an Iceberg type; see the module's docstring.

    Parameters
    ----------
    version
        Spark's version, major and minor.
    """
    from pyspark.sql import types as t

    match kind:
        case StructType(fields):
            return t.StructType([_spark_field(f.name, f, version) for f in fields])
        case ListType(element):
            return t.ArrayType(spark_type(element.type, version), True)
        case MapType(key, value):
            return t.MapType(spark_type(key.type, version), spark_type(value.type, version), True)
    base = type_base(kind)
    if base == "variant":
        if version >= (4, 0):
            return t.VariantType()
        return t.StructType([t.StructField(n, t.BinaryType(), True) for n in ("metadata", "value")])
    held = arrow_field(NestedField(0, "x", kind)).type
    if pa.types.is_decimal(held):
        return t.DecimalType(held.precision, held.scale)
    return getattr(t, _NAMES.get(base, "BinaryType"))()


def _spark_field(name: str, field: NestedField, version: tuple[int, int]) -> spark_types.StructField:
    from pyspark.sql import types as t

    return t.StructField(name, spark_type(field.type, version), True, {"comment": field.doc} if field.doc else None)


class SparkColumns:
    """Columns of a table, converted to Spark's types.

    Parameters
    ----------
    outputs
        The columns to read, from `iceexplore.reading.outputs_of`.
    version
        Spark's version, major and minor.
    """

    def __init__(self, outputs: Sequence[Output], version: tuple[int, int]) -> None:
        self.outputs = list(outputs)
        self.version = version

    @cached_property
    def schema(self) -> spark_types.StructType:
        """The Spark schema. Imports PySpark."""
        from pyspark.sql import types as t

        return t.StructType([_spark_field(o.name, o.field, self.version) for o in self.outputs])

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the tables that `of` returns."""
        fields = [pa.field(o.name, kind) for o, (kind, _) in zip(self.outputs, self._steps, strict=True)]
        return pa.schema(fields)

    def of(self, table: pa.Table) -> pa.Table:
        """Convert rows from `iceexplore.reading.TaskReader` to Spark's types."""
        columns = []
        for column, (kind, make) in zip(table.columns, self._steps, strict=True):
            if make is not None:
                column = build.chunked_array([make(chunk) for chunk in column.chunks], kind)
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=self.arrow_schema)

    @cached_property
    def _steps(self) -> list[tuple[pa.DataType, _Maker | None]]:
        return [_step(o.field.type, arrow_field(o.field).type, self.version >= (4, 0)) for o in self.outputs]


def _step(kind: Type, found: pa.DataType, variants: bool) -> tuple[pa.DataType, _Maker | None]:
    """Return the Arrow type that Spark accepts, and the conversion to it; None if the type stays the same."""
    match kind:
        case StructType(fields):
            return _struct_step(fields, found, variants)
        case ListType(element):
            to, make = _step(element.type, cast(AnyListType, found).value_type, variants)
            if make is None:
                return found, None
            return pa.list_(pa.field("element", to)), _list_maker(to, make)
        case MapType(key, value):
            key_type, key_make = _step(key.type, cast(AnyMapType, found).key_type, variants)
            item_type, item_make = _step(value.type, cast(AnyMapType, found).item_type, variants)
            if key_make is None and item_make is None:
                return found, None
            made = pa.map_(key_type, item_type)
            return made, _map_maker(made, key_make or _same, item_make or _same)
    base = type_base(kind)
    if base == "uuid":
        return pa.string(), _uuid_text
    if base in _LONGS:
        return pa.int64(), lambda array: array.cast(pa.int64())
    if base == "variant":
        return (_VARIANT, _variant) if variants else (found, None)
    if pa.types.is_fixed_size_binary(found):
        return pa.binary(), lambda array: array.cast(pa.binary())
    return found, None


def _same(array: AnyArray) -> AnyArray:
    return array


def _struct_step(
    fields: Sequence[NestedField], found: pa.DataType, variants: bool
) -> tuple[pa.DataType, _Maker | None]:
    steps = [_step(f.type, found.field(i).type, variants) for i, f in enumerate(fields)]
    if all(make is None for _, make in steps):
        return found, None
    to = pa.struct([pa.field(f.name, kind) for f, (kind, _) in zip(fields, steps, strict=True)])

    def make(array: AnyArray) -> AnyArray:
        children = [(step or _same)(pc.struct_field(array, [i])) for i, (_, step) in enumerate(steps)]
        return pa.StructArray.from_arrays(children, fields=list(to), mask=_mask(array))

    return to, make


def _list_maker(to: pa.DataType, inner: _Maker) -> _Maker:
    target = pa.list_(pa.field("element", to))

    def make(array: AnyArray) -> AnyArray:
        full = _unsliced(array)
        return pa.ListArray.from_arrays(full.offsets, inner(full.values), type=target, mask=_mask(full))

    return make


def _map_maker(target: pa.DataType, keys: _Maker, items: _Maker) -> _Maker:
    def make(array: AnyArray) -> AnyArray:
        full = _unsliced(array)
        made = build.map_array(full.offsets, keys(full.keys), items(full.items), type=target)
        mask = _mask(full)
        return made if mask is None else pc.if_else(mask, pa.scalar(None, target), made)

    return make


def _uuid_text(array: AnyArray) -> AnyArray:
    rows = len(array)
    if not rows:
        return pa.array([], pa.string())
    raw = build.frombuffer(array.buffers()[1], np.uint8)[array.offset * 16 : (array.offset + rows) * 16].reshape(
        rows, 16
    )
    text = np.full((rows, 36), ord("-"), np.uint8)
    text[:, _DIGITS] = _HEX[raw].reshape(rows, 32)
    offsets = np.arange(rows + 1, dtype=np.int32) * 36
    made = pa.StringArray.from_buffers(rows, build.py_buffer(offsets), build.py_buffer(text))
    return made if not array.null_count else pc.if_else(array.is_valid(), made, pa.scalar(None, pa.string()))


def _variant(array: AnyArray) -> AnyArray:
    mask = _mask(array)
    # Both parts of a null variant are filled, as Spark declares them non-nullable.
    parts = [pc.fill_null(pc.struct_field(array, name), b"") for name in ("value", "metadata")]
    return pa.StructArray.from_arrays(parts, fields=list(_VARIANT), mask=mask)


def _unsliced(array: AnyArray) -> DynamicArray:
    return pa.concat_arrays([array]) if array.offset else array


def _mask(array: AnyArray) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None
