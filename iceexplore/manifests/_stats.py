"""Statistics per column: one column's values out of the maps by field id, without a Python object per entry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.manifests._columns import as_pairs, offsets_of, whole
from iceexplore.manifests._fields import MAP_IDS
from iceexplore.metadata import Type, decode_values

__all__ = ["ColumnStats", "column_stats", "field_ids", "map_columns", "pairs_of"]


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of one column, a value per entry of the manifest; null where there is none.

    Attributes
    ----------
    field_id
        The column's id.
    type
        The type by which bounds were decoded; None if the column is in no schema (then they stay binary).
    lower, upper
        Bounds, of the column's Arrow type.
    lower_raw, upper_raw
        Bounds as written.
    lower_damaged, upper_damaged
        Where a bound does not fit the type; it is null in `lower` or `upper`.
    value_count, null_count, nan_count, column_size
        int64; column_size in bytes (v1-v3).
    average_length, max_length
        int64, uncompressed bytes of a value (V4).
    tight_bounds
        Whether the bounds are values of the column (V4); null where it is not said.
    """

    field_id: int
    type: Type | None
    lower: pa.Array
    upper: pa.Array
    lower_raw: pa.BinaryArray
    upper_raw: pa.BinaryArray
    lower_damaged: pa.BooleanArray
    upper_damaged: pa.BooleanArray
    value_count: pa.Int64Array
    null_count: pa.Int64Array
    nan_count: pa.Int64Array
    column_size: pa.Int64Array
    average_length: pa.Int64Array
    max_length: pa.Int64Array
    tight_bounds: pa.BooleanArray


def pairs_of(table: pa.Table) -> pa.Table:
    """The part "stats" of a decoded file: the six maps by their spec names, as lists of pairs; missing ones null."""
    columns = {}
    for name, field_id in MAP_IDS.items():
        value = pa.binary() if name.endswith("bounds") else pa.int64()
        index = table.schema.get_field_index(f"f{field_id}")
        array = pa.nulls(table.num_rows) if index < 0 else whole(table.column(index))
        try:
            columns[name] = as_pairs(array, value)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError):
            columns[name] = as_pairs(pa.nulls(table.num_rows), value)  # keys that are no ints, say: no statistics
    return pa.table(columns)


def _one(pairs: pa.ListArray, field_id: int) -> pa.Array:
    """The value under a key in each row's list."""
    offsets = np.asarray(pairs.offsets)
    low, high = int(offsets[0]) if len(offsets) else 0, int(offsets[-1]) if len(offsets) else 0
    keys, values = pairs.values.flatten()
    keys, values = keys.slice(low, high - low), values.slice(low, high - low)
    if keys.null_count:
        keys = pc.fill_null(keys, -1)
    numbers = np.asarray(keys)
    # The usual case is the same keys in every row: then a value's place is known without a search.
    rows_n, width = len(pairs), len(numbers) // max(len(pairs), 1)
    if rows_n and not pairs.null_count and np.array_equal(offsets, low + np.arange(rows_n + 1) * width):
        grid = numbers.reshape(rows_n, width)
        if bool((grid == grid[:1]).all()):
            found = np.flatnonzero(grid[0] == field_id)
            if not len(found):
                return pa.nulls(rows_n, values.type)
            return values.take(pa.array(np.arange(found[-1], len(numbers), width)))
    hits = np.flatnonzero(numbers == field_id)
    # One value in every row, whatever else is there: it is worth not searching which row a value is in.
    places = hits + low
    if (
        len(hits) == len(pairs)
        and not pairs.null_count
        and bool(np.all((offsets[:-1] <= places) & (places < offsets[1:])))
    ):
        return values.take(pa.array(hits))
    rows = np.searchsorted(offsets, places, side="right") - 1
    at = np.full(len(pairs), -1, dtype=np.int64)
    at[rows] = hits  # a key given twice: the last one counts, as in a map
    return values.take(pa.array(at, mask=(at < 0) | np.asarray(pairs.is_null())))


def column_stats(pairs: pa.Table, field_id: int, kind: Type | None) -> ColumnStats:
    """The statistics of one column from the part "stats"."""
    one = {name: _one(whole(pairs.column(name)), field_id) for name in MAP_IDS}
    low, high = one["lower_bounds"], one["upper_bounds"]
    if kind is None:
        fine = pa.array(np.zeros(len(low), dtype=np.bool_))
        lower, lower_damaged, upper, upper_damaged = low, fine, high, fine
    else:
        lower, lower_damaged = decode_values(kind, low)
        upper, upper_damaged = decode_values(kind, high)
    return ColumnStats(
        field_id,
        kind,
        lower,
        upper,
        low,
        high,
        lower_damaged,
        upper_damaged,
        one["value_counts"],
        one["null_value_counts"],
        one["nan_value_counts"],
        one["column_sizes"],
        pa.nulls(len(low), pa.int64()),
        pa.nulls(len(low), pa.int64()),
        pa.nulls(len(low), pa.bool_()),
    )


def field_ids(pairs: pa.Table) -> list[int]:
    """The ids that have any statistic, sorted."""
    found: set[int] = set()
    for column in pairs.columns:
        keys = pc.struct_field(whole(column).flatten(), 0)
        found.update(k for k in keys.unique().to_pylist() if k is not None)
    return sorted(found)


def map_columns(pairs: pa.Table) -> pa.Table:
    """The six maps as Arrow maps, as written (a key may be there twice)."""
    columns = {}
    for name, column in zip(pairs.column_names, pairs.columns, strict=True):
        array = whole(column)
        value = array.type.value_type.field("value").type
        kind = pa.map_(pa.int32(), value)
        items = pc.struct_field(array.values, 1)
        keys = pc.fill_null(pc.struct_field(array.values, 0), -1)  # a map's key is never null in Arrow
        columns[name] = pa.MapArray.from_arrays(offsets_of(array), keys, items, type=kind)
    return pa.table(columns)
