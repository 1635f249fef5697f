"""Arrow fields with their Iceberg field ids, for writing Parquet and Avro."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField, AnyListType, AnyMapType, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.formats import FIELD_ID

__all__ = ["Pair", "field", "id_of", "list_of", "map_of", "nested", "retyped", "table_of"]

Pair: TypeAlias = "tuple[AnyField, AnyArray]"


def field(
    field_id: int, name: str, kind: pa.DataType, *, required: bool = False, doc: str = "", **more: str
) -> AnyField:
    """Return a field with an id; ``doc`` and ``more`` (such as an Avro ``logical`` type) are for Avro schemas."""
    metadata = {FIELD_ID: str(field_id).encode()}
    metadata |= {key.encode(): value.encode() for key, value in ({"doc": doc} | more).items() if value}
    return pa.field(name, kind, nullable=not required, metadata=metadata)


def id_of(field: AnyField) -> int | None:
    """Return the id of a field built by `field`."""
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def retyped(field: AnyField, array: AnyArray) -> Pair:
    """Return an array with its field, which gets the array's type: a struct's type is only known once it is built."""
    return field.with_type(array.type), array


def list_of(element_id: int, kind: pa.DataType) -> AnyListType:
    """Return a list type whose elements are required and have an id."""
    return pa.list_(field(element_id, "element", kind, required=True))


def map_of(key_id: int, value_id: int, value: pa.DataType) -> AnyMapType:
    """Return a map type with int keys, as statistics are stored below V4."""
    return pa.map_(field(key_id, "key", pa.int32(), required=True), field(value_id, "value", value, required=True))


def nested(pairs: Sequence[Pair], rows: int, absent: pa.BooleanArray | None = None) -> pa.StructArray:
    """Return a struct of these children, null where ``absent`` is true.

    Raises
    ------
    OptionError
        A required child is null in a record that is not null itself.
    """
    if not pairs:
        return cast(pa.StructArray, pa.array([{}] * rows, pa.struct([])))
    arrays = [a if f.nullable or not a.null_count else _filled(f, a, absent) for f, a in pairs]
    return pa.StructArray.from_arrays(arrays, fields=[f for f, _ in pairs], mask=absent)


def _filled(field: AnyField, array: AnyArray, absent: pa.BooleanArray | None) -> AnyArray:
    """Return the values of a required child; in records that are null, they are zero or empty."""
    lacking = array.is_null() if absent is None else pc.and_not(array.is_null(), absent)
    if pc.any(lacking).as_py():
        row = pc.index(lacking, True).as_py()
        raise OptionError(f"row {row} has no {field.name}, which the format requires")
    kind = array.type
    zero: object = "" if pa.types.is_string(kind) else b"" if pa.types.is_binary(kind) else 0
    return pc.fill_null(array, build.scalar(zero, kind))


def table_of(pairs: Iterable[Pair]) -> pa.Table:
    """Return a table of these columns."""
    fields, arrays = zip(*pairs, strict=True)
    return pa.Table.from_arrays(list(arrays), schema=pa.schema(list(fields)))
