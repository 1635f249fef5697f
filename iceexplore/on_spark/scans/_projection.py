"""Convert a file's columns, read by name, to the table's columns, matching by field id at every depth.

Spec, "Column Projection".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import AnyField, PlainValue
from iceexplore.formats import children_of, field_id
from iceexplore.metadata import ListType, MapType, NestedField, StructType, Type, type_base
from iceexplore.on_spark.scans._literals import literal
from iceexplore.on_spark.scans._nodes import ORC, Node, collides, read_type
from iceexplore.on_spark.transport._columns import spark_type
from iceexplore.reading import arrow_field

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import types as spark_types

__all__ = ["Projection", "Unreadable", "absent", "identified_nodes", "project"]

Version = tuple[int, int]
_Maker = Callable[[Any], Any]


class Unreadable(Exception):  # noqa: N818  (never leaves the package)
    """An error for columns that plain Spark cannot read by Iceberg's rules."""


@dataclass(frozen=True)
class Projection:
    """The conversion from a file's column to a column of the table.

    Attributes
    ----------
    field
        The field of the table.
    read
        The file's column in the types in which it is read; None if the file has none.
    make
        The function that converts the file's column.
    """

    field: NestedField
    read: spark_types.StructField | None
    make: Callable[[Column], Column]


def identified_nodes(nodes: Sequence[Node], fields: Sequence[AnyField]) -> tuple[Node, ...]:
    """Return the nodes with the ids of ``fields``, the same columns after a name mapping was applied."""
    out = []
    for node, f in zip(nodes, fields, strict=True):
        children = identified_nodes(node.children, children_of(f.type))
        out.append(Node(node.name, f.type, node.physical, children, field_id(f)))
    return tuple(out)


def project(nodes: Sequence[Node], wanted: NestedField, version: Version) -> Projection | None:
    """Return the conversion from a file's columns to a field; None if the file lacks it.

    Raises
    ------
    Unreadable
        The file has the field, but plain Spark cannot convert it.
    """
    from pyspark.sql import types as t

    node = next((n for n in nodes if n.number == wanted.field_id), None)
    if node is None:
        return None
    if collides(nodes, node.name):
        raise Unreadable
    kind, make = _made(node, wanted.type, version)
    return Projection(wanted, t.StructField(node.name, kind, True), make or _same)


def _same(column: Column) -> Column:
    return column


def _made(node: Node, kind: Type, version: Version) -> tuple[spark_types.DataType, _Maker | None]:
    """Return the type to read, and the conversion to ``kind``; None for the conversion if the types are the same."""
    from pyspark.sql import types as t

    match kind:
        case StructType(fields) if pa.types.is_struct(node.kind):
            return _struct(node, fields, kind, version)
        case ListType(element) if pa.types.is_list(node.kind):
            inner, make = _made(node.children[0], element.type, version)
            return t.ArrayType(inner, True), None if make is None else _each(make)
        case MapType(key, value) if pa.types.is_map(node.kind):
            keys, key_make = _made(node.children[0], key.type, version)
            items, item_make = _made(node.children[1], value.type, version)
            return t.MapType(keys, items, True), _pairs(key_make, item_make)
    if type_base(kind) == "variant":
        names = {c.name for c in node.children}  # typed_value means a shredded variant, which Spark also reads
        if version < (4, 0) or names - {"typed_value"} != {"metadata", "value"}:
            raise Unreadable
        return t.VariantType(), None
    if node.children or isinstance(kind, (StructType, ListType, MapType)):
        raise Unreadable
    return _leaf(node, kind, version)


def _leaf(node: Node, kind: Type, version: Version) -> tuple[spark_types.DataType, _Maker | None]:
    from pyspark.sql import types as t

    found, target, base = read_type(node), spark_type(kind, version), type_base(kind)
    if found is None:
        raise Unreadable
    if base == "uuid":
        if not isinstance(found, t.BinaryType):
            raise Unreadable
        return found, _uuid
    if base == "time" and node.physical == ORC and isinstance(found, t.LongType):
        return found, None  # microseconds (spec, "ORC")
    if base in ("time", "timestamp_ns", "timestamptz_ns"):
        unit = {"time": "us", "timestamp_ns": "ns", "timestamptz_ns": "ns"}[base]
        if getattr(node.kind, "unit", None) != unit or pa.types.is_time(node.kind) != (base == "time"):
            raise Unreadable
        return found, None
    if isinstance(found, t.LongType) and node.kind != pa.int64():
        raise Unreadable  # Spark reads times and nanosecond timestamps as longs, but the table has a different type
    if found == target:
        return found, None
    promotions: list[tuple[type, type]] = [
        (t.IntegerType, t.LongType), (t.FloatType, t.DoubleType), (t.DateType, t.TimestampNTZType),
        (t.StringType, t.BinaryType), (t.BinaryType, t.StringType),
    ]  # fmt: skip
    wider = (
        isinstance(found, t.DecimalType)
        and isinstance(target, t.DecimalType)
        and found.scale == target.scale
        and found.precision <= target.precision
    )
    if not wider and not any(isinstance(found, a) and isinstance(target, b) for a, b in promotions):
        raise Unreadable
    return found, lambda column: column.cast(target)


def _uuid(column: Column) -> Column:
    from pyspark.sql import functions as f

    text = f.lower(f.hex(column))
    parts = [f.substring(text, at, length) for at, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    return f.when(column.isNotNull(), f.concat_ws("-", *parts))


def _each(make: _Maker) -> _Maker:
    from pyspark.sql import functions as f

    return lambda column: f.transform(column, make)


def _pairs(keys: _Maker | None, items: _Maker | None) -> _Maker | None:
    from pyspark.sql import functions as f

    if keys is None and items is None:
        return None
    if keys is None:
        return lambda column: f.transform_values(column, lambda k, v: (items or _same)(v))
    return lambda column: f.map_from_arrays(
        f.transform(f.map_keys(column), keys), f.transform(f.map_values(column), items or _same)
    )


def _struct(
    node: Node, fields: Sequence[NestedField], kind: Type, version: Version
) -> tuple[spark_types.DataType, _Maker | None]:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    read: list[spark_types.StructField] = []
    steps: list[tuple[str, NestedField, _Maker | None]] = []
    same = True
    for field in fields:
        found = project(node.children, field, version)
        if found is None:
            steps.append(("", field, None))
            same = False
            continue
        assert found.read is not None
        read.append(found.read)
        steps.append((found.read.name, field, found.make))
        same = same and found.make is _same and found.read.name == field.name
    if not read:
        read.append(_witness(node, version))
    if same:
        return t.StructType(read), None
    target = spark_type(kind, version)

    def make(column: Column) -> Column:
        children = []
        for name, field, step in steps:
            child = step(column.getField(name)) if step is not None else absent(field, version)
            children.append(child.alias(field.name))
        return f.when(column.isNotNull(), f.struct(*children)).otherwise(f.lit(None).cast(target))

    return t.StructType(read), make


def _witness(node: Node, version: Version) -> spark_types.StructField:
    """Return any leaf of a struct if none of its fields is read, to determine whether the struct is null."""
    from pyspark.sql import types as t

    for child in node.children:
        kind = None if child.children else read_type(child)
        if kind is not None and not collides(node.children, child.name):
            return t.StructField(child.name, kind, True)
    raise Unreadable


def absent(field: NestedField, version: Version) -> Column:
    """Return the value of a field that neither the file nor the partition provides: its initial default, or null.

    Raises
    ------
    Unreadable
        The default is not a primitive value.
    """
    from pyspark.sql import functions as f

    if field.initial_default is None:
        if isinstance(field.type, StructType) and _has_default(field.type):
            raise Unreadable
        return f.lit(None).cast(spark_type(field.type, version))
    if isinstance(field.type, (StructType, ListType, MapType)):
        raise Unreadable
    return literal(_stored(field), field.type, version)


def _stored(field: NestedField) -> PlainValue:
    """Return a field's initial default in its stored form, a number for dates and times."""
    kind = arrow_field(field).type
    if not pa.types.is_temporal(kind):
        return field.initial_default
    return pa.scalar(field.initial_default, kind).cast(pa.int32() if kind.bit_width == 32 else pa.int64()).as_py()


def _has_default(kind: StructType) -> bool:
    return any(
        f.initial_default is not None or (isinstance(f.type, StructType) and _has_default(f.type)) for f in kind.fields
    )
