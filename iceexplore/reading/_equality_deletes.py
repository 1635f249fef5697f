"""Find the rows of a data file that equality deletes remove (spec, "Equality Delete Files").

Values are equal as in Java's ``StructLikeSet``: null equals null, every NaN equals NaN, and -0.0 does not equal 0.0.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyExtensionArray, AnyField
from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError, OptionError
from iceexplore.formats import field_id
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import NestedField, StructType
from iceexplore.planning import MatchedDeletes
from iceexplore.reading._data_file import check_count, read_data_file
from iceexplore.reading.columns._convert import arrow_field
from iceexplore.reading.columns._wanted import with_ancestors
from iceexplore.storage import CACHE, in_order, is_local

__all__ = ["EqualityDeletes", "column_of", "columns_of", "equality_fields", "equality_mask"]

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
#: The number of delete files whose keys stay in memory for the next data files.
_KEPT = 16


def equality_fields(state: TableState, ids: Iterable[int]) -> dict[int, tuple[NestedField, ...]]:
    """Return the path to each column of these ids, in the state's schema or, for a dropped column, in the newest one.

    Raises
    ------
    FormatError
        No schema of the table has the column outside lists and maps.
    """
    out = {}
    schemas = [state.schema, *sorted(state.metadata.schemas, key=lambda s: -s.schema_id)]
    for number in ids:
        found = (with_ancestors(s.fields, number) for s in schemas)
        path = next((p for p in found if p is not None), None)
        if path is None:
            raise FormatError(
                f"an equality delete uses column {number}, which no schema of the table has",
                location=state.metadata_location,
                field="equality_ids",
            )
        out[number] = path
    return out


def column_of(table: pa.Table, path: Sequence[NestedField]) -> AnyArray:
    """Return a column of a table by its path of field ids; null where a struct around it is null.

    Raises
    ------
    KeyError
        The table does not have the column.
    """
    return columns_of(table, [path])[0]


def columns_of(table: pa.Table, paths: Iterable[Sequence[NestedField]]) -> list[AnyArray]:
    """Return `column_of` for each path, scanning the table's fields only once."""
    tops: dict[int | None, list[tuple[int, AnyField]]] = {}
    for at, f in enumerate(table.schema):
        tops.setdefault(field_id(f), []).append((at, f))
    out = []
    for path in paths:
        found = ((at, _place_in(f, path)) for at, f in tops.get(path[0].field_id, ()))
        at, places = next(((at, places) for at, places in found if places is not None), (-1, None))
        if places is None:
            raise KeyError(path[-1].field_id)
        array = whole(table.column(at))
        out.append(pc.struct_field(array, places) if places else array)
    return out


def _place_in(f: AnyField, path: Sequence[NestedField]) -> list[int] | None:
    """Return the child indices that lead along a path from ``f``, its first field, to its last; None if that fails."""
    if field_id(f) != path[0].field_id:
        return None
    if len(path) == 1:
        return []
    for i in range(f.type.num_fields if pa.types.is_struct(f.type) else 0):
        rest = _place_in(f.type.field(i), path[1:])
        if rest is not None:
            return [i, *rest]
    return None


@dataclass(frozen=True, eq=False)
class _Keys:
    """Distinct keys of equality deletes, for lookups column by column.

    Attributes
    ----------
    ids
        Field ids of the equality columns.
    values
        The distinct values of each column: sorted numbers, or an Arrow array.
    null
        The code of null in each column, -1 if no key has a null.
    combined
        For each column except the first, the sorted codes of the combinations up to this column: ``code of the columns
        before * width + this column's code``.
    """

    ids: tuple[int, ...]
    values: tuple[Any, ...]
    null: tuple[int, ...]
    widths: tuple[int, ...]
    combined: tuple[Codes, ...]

    @classmethod
    def of(cls, ids: tuple[int, ...], columns: Sequence[AnyArray]) -> _Keys:
        values, nulls, widths, combined = [], [], [], []
        code = np.zeros(len(columns[0]), dtype=np.int64)
        for i, column in enumerate(columns):
            plain = _comparable(column)
            distinct = _distinct(plain)
            null = len(distinct) if plain.null_count else -1
            values.append(distinct)
            nulls.append(null)
            widths.append(len(distinct) + 1)
            own = _codes(plain, distinct, null)
            if i == 0:
                code = own
                continue
            together = np.unique(code * widths[i] + own)
            combined.append(together)
            code = np.searchsorted(together, code * widths[i] + own)
        return cls(ids, tuple(values), tuple(nulls), tuple(widths), tuple(combined))

    def hit(self, columns: Sequence[AnyArray]) -> Mask:
        """Return which rows equal one of the keys."""
        code = np.zeros(0, dtype=np.int64)
        for i, column in enumerate(columns):
            own = _codes(_comparable(column), self.values[i], self.null[i])
            if i == 0:
                code = own
                continue
            mixed = code * self.widths[i] + own
            at = _place(self.combined[i - 1], mixed)
            code = np.where((code >= 0) & (own >= 0), at, -1)
        return code >= 0


def _comparable(array: AnyArray) -> AnyArray:
    """Return values in a form in which they are equal exactly if the keys are: integers for fixed-width types."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _comparable(cast(AnyExtensionArray, array).storage)
    if pa.types.is_floating(kind):
        numbers = array.cast(pa.float64())
        bits = np.asarray(numbers.fill_null(0.0)).copy()
        bits[np.isnan(bits)] = np.nan
        return pa.array(bits.view(np.int64), mask=np.asarray(array.is_null()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return array.cast(pa.int64())
    if pa.types.is_date32(kind):
        return array.view(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return array.view(pa.int64())
    if pa.types.is_nested(kind):
        raise OptionError(f"rows cannot be compared by a column of type {kind}: use columns of primitive types")
    return array


def _distinct(array: AnyArray) -> npt.NDArray[Any] | AnyArray:
    unique = array.drop_null().unique()
    return np.sort(np.asarray(unique)) if pa.types.is_int64(array.type) else unique


def _codes(array: AnyArray, distinct: npt.NDArray[Any] | AnyArray, null: int) -> Codes:
    """Return the index of each value among the distinct ones; the code ``null`` for nulls, -1 for all other values."""
    if isinstance(distinct, np.ndarray):
        out = _place(distinct, np.asarray(array.fill_null(0)))
    elif len(distinct):
        out = np.array(pc.index_in(array, value_set=distinct).fill_null(-1), dtype=np.int64)
    else:
        out = np.full(len(array), -1, dtype=np.int64)
    out[np.asarray(array.is_null())] = null
    return out


def _place(ordered: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> Codes:
    if not len(ordered):
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[at] == wanted, at, -1)


class EqualityDeletes:
    """The equality deletes of a scan; delete files are read when a data file needs them, and cached.

    Parameters
    ----------
    matched
        The deletes that apply to the scan's data files.
    """

    def __init__(self, state: TableState, matched: MatchedDeletes) -> None:
        self._state = state
        self._matched = matched
        self._sets: OrderedDict[tuple[int, ...], list[tuple[tuple[int, ...], _Keys]]] = OrderedDict()

    def numbers(self, row: int) -> tuple[int, ...]:
        """Return the numbers (rows of `MatchedDeletes.deletes`) of the equality deletes that apply to a data file."""
        return tuple(self._matched.equality[row].as_py() or ()) if len(self._matched) else ()

    def ids(self, numbers: Sequence[int]) -> frozenset[int]:
        """Return the field ids of the equality columns of these deletes."""
        return frozenset(i for n in numbers for i in self._entry(n)["equality_ids"] or ())

    def mask(self, numbers: tuple[int, ...], table: pa.Table, paths: Mapping[int, tuple[NestedField, ...]]) -> Mask:
        """Return which rows of a table these deletes remove.

        Parameters
        ----------
        table
            The columns of `ids`, with field ids in the metadata.
        paths
            Result of `equality_fields`.
        """
        gone = np.zeros(table.num_rows, dtype=bool)
        for ids, keys in self._keys(numbers, paths):
            gone |= keys.hit([column_of(table, paths[i]) for i in ids])
        return gone

    def _keys(
        self, numbers: tuple[int, ...], paths: Mapping[int, tuple[NestedField, ...]]
    ) -> list[tuple[tuple[int, ...], _Keys]]:
        kept = self._sets.get(numbers)
        if kept is None:
            wanted: list[tuple[int, tuple[int, ...]]] = []
            for n in numbers:
                entry = self._entry(n)
                ids = tuple(sorted(set(entry["equality_ids"] or ())))
                if not ids:
                    raise FormatError(
                        "an equality delete without equality columns", location=entry["location"], field="equality_ids"
                    )
                wanted.append((n, ids))
            by_ids: dict[tuple[int, ...], list[pa.Table]] = {}
            for (_, ids), table in zip(wanted, self._read(wanted, paths), strict=True):
                by_ids.setdefault(ids, []).append(table)
            kept = []
            for ids, tables in by_ids.items():
                both = pa.concat_tables(tables)
                if both.num_rows:
                    kept.append((ids, _Keys.of(ids, [column.combine_chunks() for column in both.columns])))
            self._sets[numbers] = kept
            while len(self._sets) > _KEPT:
                self._sets.popitem(last=False)
        return kept

    def _read(
        self, wanted: list[tuple[int, tuple[int, ...]]], paths: Mapping[int, tuple[NestedField, ...]]
    ) -> Iterator[pa.Table]:
        """Return the keys of some deletes in order; several remote files are read in parallel."""

        def read(one: tuple[int, tuple[int, ...]]) -> pa.Table:
            return self.values(*one, paths)

        storage = self._state.storage
        if len(wanted) < 2 or is_local(storage.folder):
            return map(read, wanted)
        return in_order(read, wanted, width=min(len(wanted), storage.readers), name="iceexplore-deletes")

    def _entry(self, number: int) -> dict[str, Any]:
        row: dict[str, Any] = self._matched.deletes.entries.slice(number, 1).to_pylist()[0]
        return row

    def values(self, number: int, ids: tuple[int, ...], paths: Mapping[int, tuple[NestedField, ...]]) -> pa.Table:
        """Return the keys of one delete: one column per field id, in the schema's types, named by the id.

        Raises
        ------
        FormatError, UnsupportedError, FileMissingError
            The delete file cannot be read.
        """
        entry = self._entry(number)
        state, location = self._state, entry["location"]
        types = tuple(str(paths[i][-1].type) for i in ids)
        key = (state.storage.key(location), location, state.storage.fingerprint(location), "equality", ids, types)
        one = EntryBatch(self._matched.deletes.entries.slice(number, 1))
        table: pa.Table = CACHE.get_or_load(
            key, lambda: _read_values(state, one, ids, paths), lambda table: table.nbytes
        )
        # Check after caching: a table that finds the keys in the cache must report the problem, too.
        check_count(state, entry, table.num_rows)
        return table


def _read_values(
    state: TableState, file: EntryBatch, ids: tuple[int, ...], paths: Mapping[int, tuple[NestedField, ...]]
) -> pa.Table:
    """Read the keys of a delete file: one column per field id, in the schema's types."""
    fields = [_alone(paths[i]) for i in ids]
    schema = pa.schema([pa.field(str(i), arrow_field(paths[i][-1]).type) for i in ids])
    tables = [schema.empty_table()]
    for table in read_data_file(state, file, fields, kind="delete-file", required=True):
        columns = [column_of(table.select([at]), paths[i]) for at, i in enumerate(ids)]
        tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables).combine_chunks()


def _alone(path: tuple[NestedField, ...]) -> NestedField:
    """Return the top-level field of a path, with structs reduced to the path's fields."""
    f = path[-1]
    for around in reversed(path[:-1]):
        f = NestedField(around.field_id, around.name, StructType((f,)), around.required)
    return f


def equality_mask(state: TableState, table: pa.Table, matched: MatchedDeletes, row: int) -> Mask:
    """Return which rows of a table the equality deletes of a data file remove.

    Parameters
    ----------
    table
        Rows of the data file, with every equality column of the deletes (field ids in the metadata).
    matched, row
        The deletes of some data files, and the row number of this file among them.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        A delete file cannot be read.
    """
    deletes = EqualityDeletes(state, matched)
    numbers = deletes.numbers(row)
    return deletes.mask(numbers, table, equality_fields(state, deletes.ids(numbers)))
