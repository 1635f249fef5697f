"""V4 statistics: a struct per column with typed bounds, converted to the types of the table's schemas.

Sources: V4 proposal, "Column Stats Improvements" and layouts (a) and (b) of derived columns; for the ids, the V4 draft
and Java's ``StatsUtil``. A column is decoded only when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField, AnyListArray, Binaries, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.formats import field_id as parquet_id
from iceexplore.manifests.column_stats._maps import ColumnStats
from iceexplore.manifests.column_stats._partition import conform, from_file
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._field_ids import MAP_IDS, STATS_OFFSETS, partition_offset, partition_part, stats_of
from iceexplore.manifests.model._reader_schema import ReaderSchema, StatsColumn
from iceexplore.metadata import PrimitiveType, Type, arrow_type, decode_values, encode_values, type_base

__all__ = ["TypedStats"]

_REFUSED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError, OptionError)
#: Types whose bounds are not decoded: points and serialized variants.
_OPAQUE = frozenset({"geometry", "geography", "variant"})
_DAY_MICROS = 86_400_000_000


class TypedStats:
    """The statistics of one V4 file.

    Parameters
    ----------
    table
        The part "stats" of the decoded file.
    types
        Type by column or expression id; the statistics of other ids keep the type that they have in the file.
    rows
        The row of each entry in the file, null for an entry without statistics; None if every row is an entry.
    in_source
        By expression id, pairs of source column and partition field: the column's struct may have the expression's
        values, under the field's id (layout (b)).
    """

    def __init__(
        self,
        table: pa.Table,
        reader_schema: ReaderSchema,
        types: Mapping[int, Type],
        rows: AnyArray | None,
        in_source: Mapping[int, Sequence[tuple[int, int]]] = MappingProxyType({}),
    ) -> None:
        self._table = table
        self._types = types
        self._rows = rows
        self._in_source = in_source
        self._columns: dict[int, dict[int, StatsColumn]] = {}
        for column in reader_schema.stats:
            self._columns.setdefault(column.field_id, {})[column.offset] = column

    def __len__(self) -> int:
        return int(self._table.num_rows) if self._rows is None else len(self._rows)

    def field_ids(self) -> list[int]:
        """Return the sorted ids of columns and expressions that have any statistics."""
        own = {
            i
            for i, found in self._columns.items()
            if any(partition_part(c.offset) is None and self._any(c) for c in found.values())
        }
        parts = ("lower", "upper", "null_count")
        derived = {i for i in self._in_source if any(self._any(c) for part in parts for c in self._held(i, part))}
        return sorted(own | derived)

    def column(self, field_id: int) -> ColumnStats:
        """Return the statistics of one column or expression."""
        kind = self.column_type(field_id)
        lower, lower_raw, lower_damaged = self.values(field_id, "lower", kind)
        upper, upper_raw, upper_damaged = self.values(field_id, "upper", kind)
        return ColumnStats(
            field_id,
            kind,
            lower,
            upper,
            lower_raw,
            upper_raw,
            lower_damaged,
            upper_damaged,
            value_count=self._plain(field_id, "value_count", pa.int64()),
            null_count=self._plain(field_id, "null_count", pa.int64()),
            nan_count=self._plain(field_id, "nan_count", pa.int64()),
            column_size=pa.nulls(len(self), pa.int64()),
            average_length=self._plain(field_id, "average_length", pa.int64()),
            max_length=self._plain(field_id, "max_length", pa.int64()),
            tight_bounds=cast(pa.BooleanArray, self._plain(field_id, "tight_bounds", pa.bool_())),
        )

    def values(self, field_id: int, name: str, kind: Type | None) -> tuple[AnyArray, Binaries, pa.BooleanArray]:
        """Return ``lower``, ``upper`` or ``derived_value`` of a column: typed, as bytes, and a mask of damaged values.

        The name ``partition_1001`` means the values of partition field 1001 in the column's struct (layout (b)).
        """
        target = pa.binary() if kind is None else arrow_type(kind)
        found = self._held(field_id, name)
        if not found:
            nothing = pa.array(np.zeros(len(self), dtype=np.bool_))
            return build.nulls(len(self), target), build.nulls(len(self), pa.binary()), nothing
        typed, raw, damaged = _typed(self._taken(found[0]), found[0].logical, kind, target)
        for column in found[1:]:
            more = _typed(self._taken(column), column.logical, kind, target)
            typed = pc.coalesce(typed, more[0]) if typed.type == more[0].type else typed
            raw, damaged = pc.coalesce(raw, more[1]), pc.or_(damaged, more[2])
        return typed, raw, damaged

    def has(self, field_id: int, name: str) -> bool:
        """Return whether the file has this statistic for a column at all."""
        return bool(self._held(field_id, name))

    def _held(self, field_id: int, name: str) -> list[StatsColumn]:
        """Return the file's columns that hold a statistic: one in the struct itself, otherwise those of layout (b).

        In layout (b), the partition value of a file is the lower bound of the expression; manifests have both bounds.
        """
        own = self._columns.get(field_id, {})
        if name.startswith("partition_"):
            offset = partition_offset(int(name.removeprefix("partition_")))
            return [own[offset]] if offset in own else []
        if STATS_OFFSETS[name] in own:
            return [own[STATS_OFFSETS[name]]]
        parts = {"lower": ("value", "lower"), "upper": ("upper",), "null_count": ("null_count",)}.get(name, ())
        found = []
        for source_id, partition_id in self._in_source.get(field_id, ()):
            struct = self._columns.get(source_id, {})
            offsets = (partition_offset(partition_id, part) for part in parts)
            found += [struct[offset] for offset in offsets if offset in struct]
        return found

    def pairs(self) -> pa.Table:
        """Return the statistics as the six maps of v1-v3, as lists of pairs; V4 has no column sizes."""
        columns: dict[str, dict[int, AnyArray]] = {name: {} for name in MAP_IDS}
        for field_id in self.field_ids():
            stats = self.column(field_id)
            columns["value_counts"][field_id] = stats.value_count
            columns["null_value_counts"][field_id] = stats.null_count
            columns["nan_value_counts"][field_id] = stats.nan_count
            columns["lower_bounds"][field_id] = stats.lower_raw
            columns["upper_bounds"][field_id] = stats.upper_raw
        return pa.table({name: _pairs(len(self), columns[name], name) for name in MAP_IDS})

    def _any(self, column: StatsColumn) -> bool:
        array = self._table.column(column.column)
        return bool(array.null_count < len(array))

    def _taken(self, column: StatsColumn) -> AnyArray:
        array = whole(self._table.column(column.column))
        return array if self._rows is None else array.take(self._rows)

    def _plain(self, field_id: int, name: str, kind: pa.DataType) -> AnyArray:
        made = build.nulls(len(self), kind)
        for column in self._held(field_id, name):
            array = self._taken(column)
            try:
                made = pc.coalesce(made, array if array.type == kind else array.cast(kind))
            except _REFUSED:
                continue
        return made

    def column_type(self, field_id: int) -> Type | None:
        """Return the type of a column or expression; for one in no schema, the type of its bounds in the file."""
        if field_id in self._types:
            return self._types[field_id]
        for name in ("lower", "upper", "derived_value"):
            for found in self._held(field_id, name):
                return _type_of(from_file(whole(self._table.column(found.column)).slice(0, 0), found.logical).type)
        return None


def _typed(
    array: AnyArray, logical: object, kind: Type | None, target: pa.DataType
) -> tuple[AnyArray, Binaries, pa.BooleanArray]:
    fine = pa.array(np.zeros(len(array), dtype=np.bool_))
    base = "" if kind is None else type_base(kind)
    if pa.types.is_struct(array.type):
        array = _flat(cast(pa.StructArray, array))
    if kind is None or base in _OPAQUE:
        raw = array if pa.types.is_binary(array.type) else pa.nulls(len(array), pa.binary())
        return raw, raw, fine
    decimal = pa.types.is_decimal(target)
    if pa.types.is_binary(array.type) and not decimal:
        made, damaged = decode_values(kind, array)  # strings and binary values, or bounds in single-value form
        return made, array, damaged
    try:
        made = conform(from_file(array, logical), target)
        if base == "time":
            made, fine = _times(made)
        return made, encode_values(kind, made), fine
    except _REFUSED:
        return build.nulls(len(array), target), _as_bytes(array), pa.array(np.asarray(array.is_valid()))


def _as_bytes(array: AnyArray) -> Binaries:
    """Encode values of another type than the column's by their own type, as bytes, to display them as written."""
    own = _type_of(array.type)
    try:
        return pa.nulls(len(array), pa.binary()) if own is None else encode_values(own, array)
    except _REFUSED:
        return pa.nulls(len(array), pa.binary())


def _times(array: AnyArray) -> tuple[AnyArray, pa.BooleanArray]:
    """Replace times outside of a day by null, because Arrow cannot print them; also return a mask of these."""
    micros = pc.fill_null(array.cast(pa.int64()), 0)
    bad = pc.or_(pc.less(micros, 0), pc.greater_equal(micros, _DAY_MICROS))
    return (pc.if_else(bad, pa.scalar(None, array.type), array), bad) if bad.true_count else (array, bad)


def _flat(array: pa.StructArray) -> AnyArray:
    """Return struct bounds as bytes: x, y, z, m of a point (spec, Appendix D). Null for any other struct."""
    nothing = pa.nulls(len(array), pa.binary())
    ordinates = {_ordinate(child): values for child, values in zip(array.type, array.flatten(), strict=True)}
    if not all(pa.types.is_float64(values.type) for values in ordinates.values()) or not {0, 1} <= ordinates.keys():
        return nothing
    x, y, z, m = (ordinates.get(n, pa.nulls(len(array), pa.float64())) for n in range(4))
    there = np.asarray(pc.and_(x.is_valid(), y.is_valid()))
    widths = np.where(there, 16, 0)
    widths = np.where(there & np.asarray(z.is_valid()), 24, widths)
    widths = np.where(there & np.asarray(m.is_valid()), 32, widths)  # m without z: z is written as NaN
    cells = np.stack([np.asarray(pc.fill_null(a, float("nan")), dtype="<f8") for a in (x, y, z, m)], axis=1)
    kept = np.arange(32)[None, :] < widths[:, None]
    data = np.ascontiguousarray(cells).view(np.uint8).reshape(len(array), 32)[kept]
    offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int32)
    valid = pa.array(there).buffers()[1] if len(there) else None
    return pa.Array.from_buffers(pa.binary(), len(array), [valid, build.py_buffer(offsets), build.py_buffer(data)])


def _ordinate(child: AnyField) -> int:
    """Return 0 to 3 for x, y, z, m, by the offset of a field's id: 10 to 13 in lower bounds, 14 to 17 in upper."""
    number = parquet_id(child)
    if number is None and child.name[:1] == "f" and child.name[1:].isdigit():
        number = int(child.name[1:])  # Avro: columns are named by their ids
    found = None if number is None else stats_of(number)
    return (found[1] - 10) % 4 if found is not None and 10 <= found[1] <= 17 else -1


def _pairs(rows: int, columns: Mapping[int, AnyArray], name: str) -> AnyListArray:
    """Return columns by id as one list of (id, value) per row, without null values; null if a row has no value."""
    value = pa.binary() if name.endswith("bounds") else pa.int64()
    kind = pa.list_(pa.struct([pa.field("key", pa.int32()), pa.field("value", value)]))
    if not columns:
        return pa.nulls(rows, kind)
    ids = np.array(list(columns), dtype=np.int32)
    there = np.stack([np.asarray(a.is_valid()) for a in columns.values()], axis=1)
    # Row by row, sorted by id: with the columns concatenated, the value of column j in row i is at j * rows + i.
    at_row, at_column = np.nonzero(there)
    values = pa.chunked_array(list(columns.values()), value).take(pa.array(at_column * rows + at_row))
    counts = there.sum(axis=1)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), mask=np.append(counts == 0, False))
    items = pa.StructArray.from_arrays([pa.array(ids[at_column]), whole(values)], fields=list(kind.value_type))
    return build.list_array(offsets, items)


_ARROW_NAMES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_date32, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_string, "string"),
    (pa.types.is_binary, "binary"),
)


def _type_of(kind: pa.DataType) -> Type | None:
    """Return the Iceberg type with this Arrow type; None if there is none."""
    if pa.types.is_timestamp(kind):
        return PrimitiveType(f"timestamp{'tz' if kind.tz else ''}{'_ns' if kind.unit == 'ns' else ''}")
    if pa.types.is_decimal128(kind):
        return PrimitiveType(f"decimal({kind.precision},{kind.scale})")
    if pa.types.is_fixed_size_binary(kind):
        return PrimitiveType(f"fixed[{kind.byte_width}]")
    return next((PrimitiveType(name) for test, name in _ARROW_NAMES if test(kind)), None)
