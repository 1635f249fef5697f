"""Types and schemas of other libraries: PyArrow's (and what has an Arrow schema, as data frames have), PyIceberg's."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

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

__all__ = ["foreign_type", "given_schema"]

#: Arrow's types of one Iceberg type each. Unsigned ones become what holds all of their values.
_SAME = {
    pa.bool_(): "boolean", pa.int8(): "int", pa.int16(): "int", pa.int32(): "int", pa.uint8(): "int",
    pa.uint16(): "int", pa.int64(): "long", pa.uint32(): "long", pa.float16(): "float", pa.float32(): "float",
    pa.float64(): "double", pa.date32(): "date", pa.date64(): "date", pa.time32("s"): "time", pa.time32("ms"): "time",
    pa.time64("us"): "time", pa.string(): "string", pa.large_string(): "string", pa.string_view(): "string",
    pa.binary(): "binary", pa.large_binary(): "binary", pa.binary_view(): "binary", pa.null(): "unknown",
}  # fmt: skip
#: Arrow's extension types that Iceberg has; of others the values' own type would say less than is meant.
_EXTENSIONS = {"arrow.uuid": "uuid", "geoarrow.wkb": "geometry"}
_INSTEAD = {
    "uint64": "'long' or 'decimal(20, 0)'",
    "time64[ns]": "'time', which has microseconds",
}


def given_schema(given: Any, format_version: int) -> Schema | None:
    """The schema that is given as an object, or None if it is not of a kind that is known here.

    Ids in it are its own: new ones are to be given. Names of its columns are not taken apart at dots.

    Parameters
    ----------
    given
        A schema of ours, of PyIceberg or of PyArrow; an Arrow table; a pandas data frame, whose index is left out;
        anything with ``__arrow_c_schema__`` or ``__arrow_c_stream__``; a lazy frame, which is not computed for it.
    format_version
        Below 3 pandas' nanoseconds, which it has unless told otherwise, become microseconds.

    Raises
    ------
    OptionError
        A column is of a type that Iceberg does not have.
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


def foreign_type(given: Any) -> Type | None:
    """The type that one of PyArrow's or PyIceberg's means, or None if it is neither.

    Raises
    ------
    OptionError
        Iceberg does not have it.
    """
    if isinstance(given, pa.DataType):
        return _type(given, "type")
    if _is_of(given, "pyiceberg.types", "IcebergType"):
        return parse_type(given.model_dump(mode="json"))
    return None


def _is_of(given: Any, module: str, name: str) -> bool:
    """Whether it is of this class, of a library that only who gives its objects has loaded."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(given, kind)


def _arrow_schema(given: Any) -> pa.Schema | None:
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
        raise OptionError(f"schema: Arrow has no types for what is given as {type(given).__name__}: {error}") from None
    return None


def _check_index(frame: Any) -> None:
    named = [name for name in frame.index.names if name is not None]
    if named:
        raise OptionError(f"{named[0]!r} is in the data frame's index, which is left out: give frame.reset_index()")


def _fields(fields: Iterable[pa.Field], above: str, *, micros: bool = False) -> Iterable[NestedField]:
    for field in fields:
        said = (field.metadata or {}).get(b"doc")  # where PyIceberg has it
        doc = None if said is None else said.decode(errors="replace")
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
        element = _type(kind.value_type, name + ".element", micros=micros)
        return ListType(NestedField(0, "element", element, not kind.value_field.nullable))
    found = _primitive(kind, micros=micros)
    if found is None:
        instead = f"; say which is meant, such as {_INSTEAD[str(kind)]}" if str(kind) in _INSTEAD else ""
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
