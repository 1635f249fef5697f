"""Convert partition tuples: from users' dictionaries to Arrow, and to comparable keys for conflict checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, PlainValue
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, nearest
from iceexplore.metadata import (
    NestedField,
    PartitionField,
    PartitionSpec,
    TableMetadata,
    Transform,
    Type,
    arrow_type,
    decode_values,
    encode_value,
    parse_transform,
    partition_type,
    type_base,
)

__all__ = ["PartitionColumn", "partition_columns", "partition_keys", "tuples_of", "typed_values"]


@dataclass(frozen=True)
class PartitionColumn:
    """A partition field with its result type and source column.

    ``source`` is None if the column was dropped, or if the field has several source columns. ``sources`` has all of
    them; it is empty if any was dropped.
    """

    field: PartitionField
    type: Type
    source: NestedField | None
    sources: tuple[NestedField, ...] = ()

    @property
    def key(self) -> str:
        """Return the name of the field in a batch's partition struct: its field id as text."""
        return str(self.field.field_id)

    @property
    def transform(self) -> Transform:
        """Return the field's transform as an object."""
        return parse_transform(self.field.transform)


def partition_columns(metadata: TableMetadata, spec: PartitionSpec) -> list[PartitionColumn]:
    """Return the partition fields of a spec with their types and source columns."""
    columns = metadata.all_fields()
    out = []
    for field, kind in zip(spec.fields, partition_type(spec, metadata).fields, strict=True):
        sources = tuple(columns[i][1] for i in field.source_ids if i in columns)
        sources = sources if len(sources) == len(field.source_ids) else ()
        out.append(PartitionColumn(field, kind.type, sources[0] if len(sources) == 1 else None, sources))
    return out


def tuples_of(columns: Sequence[PartitionColumn], rows: Sequence[Any], what: str = "partitions") -> pa.StructArray:
    """Convert partition tuples, given as dictionaries by partition field name, to a typed struct array.

    Values are results of the transform: for ``identity`` the value itself, for ``truncate`` the truncated value, for
    ``bucket`` the bucket's number, for ``year``, ``month``, ``day`` and ``hour`` a text (``"2024"``, ``"2024-05"``,
    ``"2024-05-17"``, ``"2024-05-17-06"``), a date or a datetime. For the last four, a plain integer is the stored
    number: units since 1970. Fields with the transform ``void`` may be left out.

    Raises
    ------
    OptionError
        A field is unknown, or missing and not void, or a value has the wrong type.
    """
    names = [c.field.name for c in columns]
    values: dict[str, list[Any]] = {n: [] for n in names}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise OptionError(
                f"{what}[{i}] is {row!r}, but must be a dictionary whose keys are partition fields: {', '.join(names)}"
            )
        for key in row:
            if key not in values:
                raise OptionError(f"{what}[{i}]: no partition field {key!r}; {nearest(str(key), names)}")
        for column in columns:
            name = column.field.name
            void = column.transform.is_void
            if name not in row and not void:
                raise OptionError(f"{what}[{i}] lacks partition field {name!r}; give None for null")
            values[name].append(_stored(column, row.get(name), f"{what}[{i}][{name!r}]"))
    arrays = [typed_values(c.type, values[c.field.name], f"partition field {c.field.name}") for c in columns]
    fields = [pa.field(c.key, a.type) for c, a in zip(columns, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _stored(column: PartitionColumn, value: PlainValue, where: str) -> PlainValue:
    """Return what Iceberg stores for a user's value: for ``"2024-05"``, the number of months since 1970."""
    if value is None:
        return None
    try:
        return column.transform.parse_value(value)
    except (ValueError, TypeError) as error:
        raise OptionError(f"{where} = {value!r} is not a value of {column.field.transform}: {error}") from None


def typed_values(kind: Type, values: Sequence[Any], what: str) -> AnyArray:
    """Convert Python values to an array of the Arrow type; text is accepted for dates, times, decimals and UUIDs.

    Raises
    ------
    OptionError
        A value does not fit the type.
    """
    if pa.types.is_null(arrow_type(kind)):
        if any(v is not None for v in values):
            raise OptionError(f"{what} is of type unknown: give only None as its values")
        return pa.nulls(len(values))
    try:
        raw = [None if v is None else encode_value(kind, _plain(type_base(kind), v)) for v in values]
    except (OptionError, ValueError, TypeError, InvalidOperation) as error:
        raise OptionError(f"{what}: {error}") from None
    array, damaged = decode_values(kind, pa.array(raw, pa.binary()))
    if pc.any(damaged).as_py():
        at = damaged.to_pylist().index(True)
        raise OptionError(f"{what}: {values[at]!r} cannot be stored as {kind}")
    return array


def _plain(base: str, value: PlainValue) -> PlainValue:
    """Convert numpy scalars, and texts of dates, times, decimals and UUIDs, to Python values; reject wrong types."""
    if hasattr(value, "item") and not isinstance(value, (bytes, str)):
        value = value.item() if base not in ("timestamp_ns", "timestamptz_ns") else value  # unwrap numpy scalars
    match base:
        case "boolean" if not isinstance(value, bool):
            raise TypeError(f"{value!r} is not a boolean")
        case "string" if not isinstance(value, str):
            raise TypeError(f"{value!r} is not a string")
        case "int" | "long" | "float" | "double" if isinstance(value, (str, bool)):
            raise TypeError(f"{value!r} is not a valid {base}")
        case "decimal":
            return Decimal(str(value))
        case "uuid" if isinstance(value, str):
            return UUID(value)
        case "date" if isinstance(value, str):
            return date.fromisoformat(value)
        case "time" if isinstance(value, str):
            return time.fromisoformat(value)
        case "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns" if isinstance(value, str):
            return datetime.fromisoformat(value)
    return value


def partition_keys(
    spec_ids: AnyColumn, partition: pa.StructArray | None, metadata: TableMetadata
) -> frozenset[tuple[int, str]]:
    """Return the distinct partitions of some files, comparable between table states: spec id, and the tuple as JSON.

    Parameters
    ----------
    spec_ids, partition
        ``partition_spec_id`` and the tuples of a batch or a manifest, of equal length.
    """
    columns = {"spec": spec_ids.combine_chunks() if isinstance(spec_ids, pa.ChunkedArray) else spec_ids}
    if partition is not None:
        for i, child in enumerate(partition.type):
            columns[child.name] = pc.struct_field(partition, [i])
    table = pa.table(columns)
    grouped = table.group_by(table.column_names, use_threads=False)
    rows = grouped.aggregate([]).to_pylist() if table.num_rows else []
    fields = {s.spec_id: [str(f.field_id) for f in s.fields] for s in metadata.partition_specs}
    return frozenset(
        (row["spec"], json.dumps([_comparable(row.get(name)) for name in fields.get(row["spec"], ())])) for row in rows
    )


def _comparable(value: PlainValue) -> PlainValue:
    """Convert a partition value to one that JSON can store."""
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
