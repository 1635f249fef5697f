"""Convert partition tuples: from users' dictionaries to Arrow, and from Arrow to keys that identify partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, cast
from uuid import UUID

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, PlainValue, plain_value
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, nearest
from iceexplore.expressions import read_date, read_time, read_timestamp
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
    """A partition field with its type and its source columns.

    Attributes
    ----------
    type
        The type of the field's values: the result type of its transform.
    source
        The column from which the values are computed. None if no schema in the table metadata has this column any more,
        or if the values are computed from several columns.
    sources
        All columns from which the values are computed. Empty if one of them is in no schema any more.
    """

    field: PartitionField
    type: Type
    source: NestedField | None
    sources: tuple[NestedField, ...] = ()

    @property
    def key(self) -> str:
        """Return the name of the field in Arrow structs of partition tuples: its field id as text."""
        return str(self.field.field_id)

    @property
    def transform(self) -> Transform:
        """Return the field's transform, parsed from its text in the partition spec, such as ``bucket[16]``."""
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

    Values are results of the field's transform, or None for null:

    - ``identity``: the value of the column.
    - ``truncate``: the truncated value.
    - ``bucket``: the number of the bucket.
    - ``year``, ``month``, ``day``, ``hour``: a text (``"2024"``, ``"2024-05"``, ``"2024-05-17"``, ``"2024-05-17-06"``),
      a date (not for ``hour``), a datetime, or an integer. An integer is the stored number of years, months, days or
      hours since 1970-01-01: 54 is the year 2024. (For ``year``, integers from 1000 to 9999 are refused: 2024 would be
      the year 3994, and is probably a mistake.)
    - ``void``: None. The field may also be left out.

    Parameters
    ----------
    columns
        The partition fields of one spec.
    rows
        The dictionaries, one per partition tuple.
    what
        The name of ``rows`` in error messages.

    Raises
    ------
    OptionError
        An element of ``rows`` is not a dictionary, has an unknown field or lacks a field that is not void. Or a value
        cannot be a result of the field's transform.
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
    """Convert a value that a user gave for a partition field to a value that `typed_values` accepts.

    For the transform ``month``, this converts ``"2024-05"`` to 652, the number of months since January 1970.

    Parameters
    ----------
    where
        The name of the value in error messages, such as ``partitions[0]['day']``.

    Raises
    ------
    OptionError
        The value cannot be a result of the field's transform.
    """
    if value is None:
        return None
    try:
        return column.transform.parse_value(value)
    except (ValueError, TypeError) as error:
        raise OptionError(
            f"{where} = {value!r} is not a result of the transform {column.field.transform}: {error}"
        ) from None


def typed_values(kind: Type, values: Sequence[Any], what: str) -> AnyArray:
    """Convert Python values to an Arrow array of an Iceberg type; None becomes null.

    Dates, times, timestamps, decimals and UUIDs may also be given as text. Dates, times and timestamps may also be
    integers: the number that Iceberg stores, such as the days since 1970-01-01.

    Parameters
    ----------
    what
        The name of the values in error messages.

    Raises
    ------
    OptionError
        A value does not fit the type.
    """
    if pa.types.is_null(arrow_type(kind)):
        if any(v is not None for v in values):
            raise OptionError(f"{what} has Iceberg's type 'unknown', so all its values must be None")
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
    """Convert a value to the Python type that `encode_value` expects for an Iceberg type.

    Scalars of numpy and pandas, and texts of dates, times, timestamps and UUIDs, are converted. Dates, times and
    timestamps as text become the number that Iceberg stores: for ``date``, ``"2024-05-17"`` becomes 19860. For
    ``decimal``, texts and numbers become ``Decimal``. Other values are returned unchanged.

    Parameters
    ----------
    base
        The Iceberg type without its parameters: ``decimal`` for ``decimal(9, 2)``.

    Raises
    ------
    TypeError
        The value has a wrong Python type, such as a text for ``int``. (Not all wrong types are detected here.)
    ValueError, decimal.InvalidOperation
        A text cannot be parsed, a time is more precise than the type, or the value is NaT.
    """
    if isinstance(value, datetime) and hasattr(value, "to_datetime64"):  # pandas' Timestamp, which may have nanoseconds
        value = value.to_datetime64()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.datetime64):
        return _plain_time(base, value)
    if hasattr(value, "item") and not isinstance(value, (bytes, str)):
        value = value.item()  # convert a numpy scalar to a Python value
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
            return read_date(value)
        case "time" if isinstance(value, str):
            return _micros(base, value, read_time(value))
        case "timestamp" | "timestamptz" if isinstance(value, str):
            return _micros(base, value, read_timestamp(value)[0])
        case "timestamp_ns" | "timestamptz_ns" if isinstance(value, str):
            return read_timestamp(value)[0]
    return value


def _micros(base: str, text: str, nanos: int) -> int:
    if nanos % 1000:
        raise ValueError(f"{text!r} is more precise than the type {base}")
    return nanos // 1000


#: For each Iceberg type of dates or timestamps, the unit of the stored numbers, as NumPy abbreviates it.
_UNITS = {"date": "D", "timestamp": "us", "timestamptz": "us", "timestamp_ns": "ns", "timestamptz_ns": "ns"}


def _plain_time(base: str, value: np.datetime64) -> PlainValue:
    """Convert a numpy datetime64 to a Python date or datetime.

    For ``timestamp_ns`` and ``timestamptz_ns``, return a datetime64 in nanoseconds, because Python's datetime has only
    microseconds.

    The value is first converted to the unit of the Iceberg type. Otherwise, ``value.item()`` would return a number of
    nanoseconds for a datetime64 in nanoseconds, and for ``timestamp``, `encode_value` would take this number for
    microseconds.

    Parameters
    ----------
    base
        The Iceberg type, such as ``date`` or ``timestamptz``.

    Raises
    ------
    TypeError
        The Iceberg type is not a type of dates or timestamps.
    ValueError
        The value is NaT (numpy's missing time), or more precise than the type: a time of day for ``date``.
    """
    if base not in _UNITS:
        raise TypeError(f"{value!r} is not a valid {base}")
    if np.isnat(value):
        raise ValueError("NaT is not a point in time: use None for null")
    exact = value.astype(f"datetime64[{_UNITS[base]}]")
    if exact != value:
        raise ValueError(f"{value!r} is more precise than the type {base}")
    return cast(PlainValue, exact if _UNITS[base] == "ns" else exact.item())


def partition_keys(
    spec_ids: AnyColumn, partition: pa.StructArray | None, metadata: TableMetadata
) -> frozenset[tuple[int, str]]:
    """Return a key for each distinct partition of the given files.

    A key is a tuple of the spec id and the partition values, as the text of a JSON list: ``(0, '["2024-05-17", 3]')``.
    The same partition has the same key in all snapshots of a table, so keys from different snapshots can be compared.

    Parameters
    ----------
    spec_ids, partition
        The spec id and the partition tuple of each file; ``partition`` is None if all files are unpartitioned.
    metadata
        The table metadata with the partition specs.
    """
    columns = {"spec": spec_ids.combine_chunks() if isinstance(spec_ids, pa.ChunkedArray) else spec_ids}
    if partition is not None:
        for i, child in enumerate(partition.type):
            columns[child.name] = pc.struct_field(partition, [i])
    table = pa.table(columns)
    grouped = table.group_by(table.column_names, use_threads=False)
    distinct = grouped.aggregate([]) if table.num_rows else table
    values = {name: [plain_value(v) for v in distinct[name]] for name in distinct.column_names}
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    fields = {s.spec_id: [str(f.field_id) for f in s.fields] for s in metadata.partition_specs}
    return frozenset(
        (row["spec"], json.dumps([_comparable(row.get(name)) for name in fields.get(row["spec"], ())])) for row in rows
    )


def _comparable(value: PlainValue) -> PlainValue:
    """Convert a partition value to one that JSON can store, for a key that identifies the partition.

    Bytes become hexadecimal text. Other values that JSON lacks, such as dates and decimals, become their ``str``.
    """
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
