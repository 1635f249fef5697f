"""Convert types and schemas of PyArrow, PyIceberg and objects with an Arrow schema to Iceberg's."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa

from iceexplore.arrow import AnyField, AnyListType
from iceexplore.errors import OptionError
from iceexplore.metadata import (
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    Schema,
    StructType,
    Type,
    has_nanosecond_timestamps,
    parse_schema,
    parse_type,
)
from iceexplore.writing._foreign_frames import collected, is_lazy

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SchemaLike", "foreign_type", "given_schema"]

#: A schema as users give it: an object that `given_schema` accepts, or a mapping from column names to types.
SchemaLike: TypeAlias = Any

#: Arrow types with one equivalent in Iceberg. Unsigned types map to a type that contains all of their values.
_SAME = {
    pa.bool_(): "boolean", pa.int8(): "int", pa.int16(): "int", pa.int32(): "int", pa.uint8(): "int",
    pa.uint16(): "int", pa.int64(): "long", pa.uint32(): "long", pa.float16(): "float", pa.float32(): "float",
    pa.float64(): "double", pa.date32(): "date", pa.date64(): "date", pa.time32("s"): "time", pa.time32("ms"): "time",
    pa.time64("us"): "time", pa.string(): "string", pa.large_string(): "string", pa.string_view(): "string",
    pa.binary(): "binary", pa.large_binary(): "binary", pa.binary_view(): "binary", pa.null(): "unknown",
}  # fmt: skip
#: Arrow extension types with an equivalent in Iceberg. Others are refused: the storage type would lose the meaning.
_EXTENSIONS = {"arrow.uuid": "uuid", "geoarrow.wkb": "geometry"}
_INSTEAD = {
    "uint64": "'long' or 'decimal(20, 0)'",
    "time64[ns]": "'time', which has microseconds",
}


def given_schema(given: SchemaLike, format_version: int) -> Schema | None:
    """Return the schema of an object; None if this kind of object is not supported.

    The schema's field ids are placeholders; callers assign the real ones. A dot in a column name is part of the name.

    Parameters
    ----------
    given
        An iceexplore, PyIceberg or PyArrow schema; an Arrow table; a pandas data frame, without its index; any object
        with ``__arrow_c_schema__`` or ``__arrow_c_stream__``; a lazy frame, which is not computed.
    format_version
        In versions below 3, which have no nanoseconds, timestamps of pandas get a type with microseconds.

    Raises
    ------
    OptionError
        A column has a type without an equivalent in Iceberg.
    """
    if isinstance(given, Schema):
        return given
    if _is_of(given, "pyiceberg.schema", "Schema"):
        return parse_schema(given.model_dump(mode="json"))
    arrow = _arrow_schema(given)
    if arrow is None:
        return None
    is_pandas = _is_of(given, "pandas", "DataFrame")
    return Schema(0, tuple(_fields(arrow, "", micros=is_pandas and not has_nanosecond_timestamps(format_version))))


def foreign_type(given: SchemaLike) -> Type | None:
    """Return the equivalent of a PyArrow or PyIceberg type; None if it is neither.

    Raises
    ------
    OptionError
        Iceberg has no equivalent.
    """
    if isinstance(given, pa.DataType):
        return _type(given, "type")
    if _is_of(given, "pyiceberg.types", "IcebergType"):
        return parse_type(given.model_dump(mode="json"))
    return None


def _is_of(given: object, module: str, name: str) -> bool:
    """Return whether this is an instance of the class, without importing the class's library."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(given, kind)


def _arrow_schema(given: SchemaLike) -> pa.Schema | None:
    if isinstance(given, pa.Schema):
        return given
    is_pandas = _is_of(given, "pandas", "DataFrame")
    if is_pandas:
        _check_index(given)
    try:
        if is_pandas:
            return pa.Schema.from_pandas(given, preserve_index=False)
        if is_lazy(given):
            planned = given.collect_schema()
            given = planned if hasattr(planned, "__arrow_c_schema__") else collected(given.head(0))
        if hasattr(given, "__arrow_c_schema__"):
            return pa.schema(given)
        if hasattr(given, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(given).schema
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise OptionError(f"schema: the {type(given).__name__} has columns without an Arrow type: {error}") from None
    return None


def _check_index(frame: pd.DataFrame) -> None:
    named = [name for name in frame.index.names if name is not None]
    if named:
        raise OptionError(f"{named[0]!r} is in the data frame's index, which is left out: give frame.reset_index()")


def _fields(fields: Iterable[AnyField], above: str, *, micros: bool = False) -> Iterable[NestedField]:
    for field in fields:
        comment = (field.metadata or {}).get(b"doc")  # where PyIceberg stores docs
        doc = None if comment is None else comment.decode(errors="replace")
        yield NestedField(0, field.name, _type(field.type, above + field.name, micros=micros), not field.nullable, doc)


def _type(kind: pa.DataType, name: str, *, micros: bool = False) -> Type:
    is_ = pa.types
    if is_.is_dictionary(kind) or is_.is_run_end_encoded(kind):
        return _type(kind.value_type, name, micros=micros)
    if is_.is_struct(kind):
        return StructType(tuple(_fields(kind.fields, name + ".", micros=micros)))
    if is_.is_map(kind):
        key = NestedField(0, "key", _type(kind.key_type, name + ".key", micros=micros), True)
        value = _type(kind.item_type, name + ".value", micros=micros)
        return MapType(key, NestedField(0, "value", value, not kind.item_field.nullable))
    if hasattr(kind, "value_field"):  # lists of all kinds
        element = _type(cast(AnyListType, kind).value_type, name + ".element", micros=micros)
        return ListType(NestedField(0, "element", element, not kind.value_field.nullable))
    found = _primitive(kind, micros=micros)
    if found is None:
        instead = f"; give another type, such as {_INSTEAD[str(kind)]}" if str(kind) in _INSTEAD else ""
        raise OptionError(f"{name!r}: Iceberg has no type for Arrow's {kind}{instead}")
    return PrimitiveType(found)


def _primitive(kind: pa.DataType, *, micros: bool) -> str | None:
    is_ = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _EXTENSIONS.get(kind.extension_name)
    if is_.is_timestamp(kind):
        zone = "timestamp" if kind.tz is None else "timestamptz"
        return zone + ("_ns" if kind.unit == "ns" and not micros else "")
    if is_.is_decimal(kind):
        fits = 0 <= kind.scale <= kind.precision <= 38
        return f"decimal({kind.precision},{kind.scale})" if fits else None
    if is_.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    return _SAME.get(kind)
