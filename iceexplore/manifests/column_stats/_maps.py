"""Column statistics of v1 to v3: one column's values from maps by field id, without a Python object per entry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, Binaries, Int64s, build
from iceexplore.arrow import compute as pc
from iceexplore.manifests.model._arrow import as_pairs, offsets_of, whole
from iceexplore.manifests.model._field_ids import MAP_IDS
from iceexplore.metadata import Type, decode_values, type_base

__all__ = [
    "ColumnStats",
    "Contradiction",
    "MapStats",
    "OnContradiction",
    "contradictions",
    "field_ids",
    "map_columns",
    "pairs_of",
]

_Numbers: TypeAlias = npt.NDArray[Any]
Contradiction: TypeAlias = Literal["bounds", "nulls"]
#: A function that is called with a column's id, a contradiction in its statistics, and the entries that have it.
OnContradiction: TypeAlias = Callable[[int, Contradiction, _Numbers], None]

#: Maximum number of values that are decoded together, from one or more columns: if a table has many columns and few
#: values in each, a call per column costs far more than the decoding.
_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of one column, a value per entry of the manifest; null where unknown.

    Attributes
    ----------
    field_id
        The column's id.
    type
        The type used to decode the bounds; None if the column is in no schema, and its bounds stay binary.
    lower, upper
        Bounds, of the column's Arrow type.
    lower_raw, upper_raw
        Bounds as written.
    lower_damaged, upper_damaged
        True where a bound does not fit the type; such a bound is null in `lower` or `upper`.
    value_count, null_count, nan_count, column_size
        int64; column_size in bytes (v1-v3).
    average_length, max_length
        int64, uncompressed bytes of a value (V4).
    tight_bounds
        True where the bounds are values of the column (V4); null where unknown.
    """

    field_id: int
    type: Type | None
    lower: AnyArray
    upper: AnyArray
    lower_raw: Binaries
    upper_raw: Binaries
    lower_damaged: pa.BooleanArray
    upper_damaged: pa.BooleanArray
    value_count: Int64s
    null_count: Int64s
    nan_count: Int64s
    column_size: Int64s
    average_length: Int64s
    max_length: Int64s
    tight_bounds: pa.BooleanArray

    def part(self, field_id: int, start: int, rows: int) -> ColumnStats:
        """Return one column's statistics from arrays in which those of several columns are concatenated."""
        arrays: tuple[Any, ...] = (
            self.lower, self.upper, self.lower_raw, self.upper_raw, self.lower_damaged, self.upper_damaged,
            self.value_count, self.null_count, self.nan_count, self.column_size, self.average_length, self.max_length,
            self.tight_bounds,
        )  # fmt: skip
        return ColumnStats(field_id, self.type, *[array.slice(start, rows) for array in arrays])


def pairs_of(table: pa.Table) -> pa.Table:
    """Return the six maps of a decoded file's part "stats", by spec name, as lists of pairs; null if missing."""
    columns = {}
    for name, field_id in MAP_IDS.items():
        value = pa.binary() if name.endswith("bounds") else pa.int64()
        index = table.schema.get_field_index(f"f{field_id}")
        array = pa.nulls(table.num_rows) if index < 0 else whole(table.column(index))
        try:
            columns[name] = as_pairs(array, value)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError):
            columns[name] = as_pairs(pa.nulls(table.num_rows), value)  # malformed, such as keys that are not integers
    return pa.table(columns)


#: Limits for the cache of decoded statistics, which has an array per column: number of values, number of columns.
_KEPT_VALUES = 20_000
_KEPT_COLUMNS = 64


class _Keyed:
    """Lists of pairs, one list per row, for lookups by key."""

    #: Number of lookups by linear search. After these, the pairs are sorted, which pays off in manifests with many
    #: columns.
    _FEW = 16

    def __init__(self, pairs: AnyListArray) -> None:
        self._pairs = pairs
        offsets = np.asarray(pairs.offsets)
        low, high = int(offsets[0]) if len(offsets) else 0, int(offsets[-1]) if len(offsets) else 0
        keys, values = cast(pa.StructArray, pairs.values).flatten()
        keys, self._values = keys.slice(low, high - low), values.slice(low, high - low)
        if keys.null_count:
            keys = pc.fill_null(keys, -1)
        self._offsets = offsets - low
        self._numbers = np.asarray(keys)
        self._in_order: tuple[_Numbers, _Numbers] | None = None
        self._asked = 0
        # Usually every row has the same keys; a value's position can then be computed without a search.
        rows, width = len(pairs), len(self._numbers) // max(len(pairs), 1)
        self._width: int | None = None
        if rows and not pairs.null_count and np.array_equal(self._offsets, np.arange(rows + 1) * width):
            grid = self._numbers.reshape(rows, width)
            if bool((grid == grid[:1]).all()):
                self._width = width
                self._at = {key: n for n, key in enumerate(grid[0].tolist())}  # of duplicate keys the last one wins

    def one(self, field_id: int) -> AnyArray:
        """Return the value of a key in each row's list."""
        return self.many([field_id])

    def many(self, field_ids: Sequence[int]) -> AnyArray:
        """Return the values of some keys in each row's list: first those of the first key for all rows, and so on."""
        if not field_ids:
            return self._values[:0]
        if len(field_ids) > 1 and not len(self._numbers):  # an empty map in every row, as is usual for NaN counts
            places = np.full(len(field_ids) * len(self._pairs), -1, dtype=np.int64)
        elif self._width is not None:  # the same keys in every row
            first = np.array([self._at.get(field_id, -1) for field_id in field_ids], dtype=np.int64)
            steps = np.arange(len(self._pairs), dtype=np.int64) * self._width
            places = np.where(first[:, None] < 0, -1, first[:, None] + steps).reshape(-1)
        else:
            found = [self._places(field_id) for field_id in field_ids]
            places = found[0] if len(found) == 1 else np.concatenate(found)
        missing = places < 0
        return self._values.take(build.array(places, mask=missing if bool(missing.any()) else None))

    def _places(self, field_id: int) -> _Numbers:
        """Return the position of a key's value for each row; -1 where the row's list lacks the key."""
        rows = len(self._pairs)
        hits = self._hits(field_id)
        offsets = self._offsets
        # Exactly one value in every row: saves the search for each value's row.
        if (
            len(hits) == rows
            and not self._pairs.null_count
            and bool(np.all((offsets[:-1] <= hits) & (hits < offsets[1:])))
        ):
            return hits
        of = np.searchsorted(offsets, hits, side="right") - 1
        places = np.full(rows, -1, dtype=np.int64)
        places[of] = hits  # of duplicate keys the last one wins, as in a map
        if self._pairs.null_count:
            places[np.asarray(self._pairs.is_null())] = -1
        return places

    def _hits(self, field_id: int) -> _Numbers:
        """Return all positions of a key in the concatenated lists, ascending."""
        self._asked += 1
        if self._in_order is None and self._asked > self._FEW:
            places = np.argsort(self._numbers, kind="stable")
            self._in_order = self._numbers[places], places
        if self._in_order is None:
            return np.flatnonzero(self._numbers == field_id)
        numbers, places = self._in_order
        try:
            key = np.asarray(field_id, dtype=numbers.dtype)  # with another type, searchsorted would convert all
        except OverflowError:
            return places[:0]
        return places[np.searchsorted(numbers, key, "left") : np.searchsorted(numbers, key, "right")]


class MapStats:
    """The statistics of v1 to v3, stored as six maps by field id, column by column."""

    def __init__(self, pairs: pa.Table, on_contradiction: OnContradiction | None = None) -> None:
        self._on_contradiction = on_contradiction
        self._keyed = {name: _Keyed(cast(AnyListArray, whole(pairs.column(name)))) for name in MAP_IDS}
        self._rows = int(pairs.num_rows)
        self._made: dict[int, ColumnStats] = {}

    def column(self, field_id: int, kind: Type | None) -> ColumnStats:
        """Return the statistics of one column with bounds of this type."""
        return next(self.columns({field_id: kind}))

    def keeps(self, field_ids: Collection[int]) -> bool:
        """Return whether the statistics of these columns are few enough to be cached."""
        return len(field_ids) <= _KEPT_COLUMNS and self._rows * len(field_ids) <= _KEPT_VALUES

    def columns(self, kinds: Mapping[int, Type | None]) -> Iterator[ColumnStats]:
        """Yield the statistics of columns, given their bounds' types; columns of one type are decoded together."""
        # Cache statistics of small manifests, because every table of every snapshot that lists a manifest uses them
        # again.
        small = self.keeps(kinds)
        left: dict[int, Type | None] = {}
        for field_id, kind in kinds.items():
            made = self._made.get(field_id)
            if made is not None and made.type == kind:
                yield made
            else:
                left[field_id] = kind
        for ids, all_of in self.blocks(left):
            for n, field_id in enumerate(ids):
                stats = all_of.part(field_id, n * self._rows, self._rows)
                if small:
                    self._made[field_id] = stats
                yield stats

    def blocks(self, kinds: Mapping[int, Type | None]) -> Iterator[tuple[Sequence[int], ColumnStats]]:
        """Yield statistics with several columns of one type concatenated in each array.

        With a hundred thousand columns, one array per column would take seconds. ``field_id`` of the statistics is that
        of the first column.
        """
        by_kind: dict[Type | None, list[int]] = {}
        for field_id, kind in kinds.items():
            by_kind.setdefault(kind, []).append(field_id)
        step = max(1, _AT_ONCE // max(1, self._rows))
        for kind, ids in by_kind.items():
            for at in range(0, len(ids), step):
                some = ids[at : at + step]
                yield some, self._together(some, kind)

    def _together(self, ids: Sequence[int], kind: Type | None) -> ColumnStats:
        one = {name: keyed.many(ids) for name, keyed in self._keyed.items()}
        low, high = one["lower_bounds"], one["upper_bounds"]
        if kind is None:
            fine = pa.array(np.zeros(len(low), dtype=np.bool_))
            lower, lower_damaged, upper, upper_damaged = low, fine, high, fine
        else:
            lower, lower_damaged = decode_values(kind, low)
            upper, upper_damaged = decode_values(kind, high)
        bounds = (lower, upper, low, high, lower_damaged, upper_damaged)
        counts = [one[name] for name in ("value_counts", "null_value_counts", "nan_value_counts", "column_sizes")]
        rows = self._rows
        if self._on_contradiction is not None:
            for what, mask in contradictions(kind, lower, upper, counts[1], counts[0]):
                places = np.flatnonzero(mask)
                columns, firsts = np.unique(places // rows, return_index=True)
                for column, entries in zip(columns.tolist(), np.split(places % rows, firsts[1:]), strict=True):
                    self._on_contradiction(ids[column], what, entries)
        none, unsaid = pa.nulls(len(low), pa.int64()), pa.nulls(len(low), pa.bool_())
        every: list[Any] = [*bounds, *counts, none, none, unsaid]
        return ColumnStats(ids[0], kind, *every)


def contradictions(
    kind: Type | None, lower: AnyArray, upper: AnyArray, nulls: AnyArray, values: AnyArray
) -> Iterator[tuple[Contradiction, _Numbers]]:
    """Yield contradictions in statistics of concatenated columns of one type, with masks of where they occur."""
    # Java orders UUIDs differently; bounds of the other types named here are not values of the type.
    ordered = kind is not None and type_base(kind) not in ("uuid", "geometry", "geography", "variant", "unknown")
    pairs: list[tuple[Contradiction, AnyArray, AnyArray]] = [("nulls", nulls, values)]
    if ordered:
        pairs.append(("bounds", lower, upper))
    for what, less, more in pairs:
        if less.null_count == len(less) or more.null_count == len(more):
            continue
        above = pc.greater(less, more)
        if above.true_count:
            yield what, np.asarray(pc.fill_null(above, False))


def field_ids(pairs: pa.Table) -> list[int]:
    """Return the sorted ids that have any statistics."""
    found: set[int] = set()
    for column in pairs.columns:
        keys = pc.struct_field(cast(AnyListArray, whole(column)).flatten(), 0)
        found.update(k for k in keys.unique().to_pylist() if k is not None)
    return sorted(found)


def map_columns(pairs: pa.Table) -> pa.Table:
    """Return the six maps as Arrow maps, as written (keys may be duplicate)."""
    columns = {}
    for name, column in zip(pairs.column_names, pairs.columns, strict=True):
        array = whole(column)
        value = array.type.value_type.field("value").type
        kind = pa.map_(pa.int32(), value)
        items = pc.struct_field(cast(AnyListArray, array).values, 1)
        keys = pc.fill_null(
            pc.struct_field(cast(AnyListArray, array).values, 0), -1
        )  # Arrow maps cannot have null keys
        columns[name] = build.map_array(offsets_of(cast(AnyListArray, array)), keys, items, type=kind)
    return pa.table(columns)
