"""Map Iceberg types to Arrow types."""

from __future__ import annotations

import pyarrow as pa

from iceexplore.arrow import AnyField, build
from iceexplore.metadata.types._parameters import decimal_parameters
from iceexplore.metadata.types._types import ListType, MapType, NestedField, StructType, Type

__all__ = ["arrow_type"]

_PRIMITIVES: dict[str, pa.DataType] = {
    "unknown": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "string": pa.string(),
    "uuid": pa.binary(16),
    "binary": pa.binary(),
    # Older Iceberg truncates bounds of `fixed` like those of `binary`: a fixed-size array could not hold them.
    "fixed": pa.binary(),
}


def arrow_type(type_: Type) -> pa.DataType:
    """Return the Arrow type that holds values of an Iceberg type.

    ``uuid`` is 16 fixed bytes; ``fixed``, ``variant``, ``geometry``, ``geography``, impossible decimals, and types that
    the spec does not define are binary; the type ``unknown`` is null.
    """
    match type_:
        case StructType(fields):
            return pa.struct([_field(f) for f in fields])
        case ListType(element):
            return pa.list_(_field(element))
        case MapType(key, value):
            return build.map_(_field(key), _field(value))
    if parameters := decimal_parameters(type_):
        return pa.decimal128(*parameters)
    return _PRIMITIVES.get(type_.base, pa.binary())


def _field(field: NestedField) -> AnyField:
    return pa.field(field.name, arrow_type(field.type), nullable=not field.required)
