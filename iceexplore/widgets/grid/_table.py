"""The tables of a grid: from a DataFrame, lists, an Arrow table, or manifests whose rows are built when viewed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, AnyDictionaryArray, DynamicType, build
from iceexplore.errors import OptionError
from iceexplore.graph import to_frame
from iceexplore.widgets.grid._arrow_values import array_values
from iceexplore.widgets.grid._cells import text_of, values_of

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.inspect import LeafRows, MetadataTable

__all__ = ["ArrowTable", "Columns", "FrameTable", "GridTable", "LeafTable", "ListTable"]

#: Up to this number, columns that are requested together are cached: filtering or sorting by a column is often
#: repeated.
_FEW = 4
#: If more rows than this must be built to return a few, the rows that are likely to be viewed next are built and
#: cached too; otherwise, exporting a sorted CSV would build all rows again for each of its parts.
_MOST_MADE = 20_000
#: Maximum number of bytes of the rows that are built and cached ahead.
_AHEAD_BYTES = 256 << 20
#: The approximate number of bytes of a row without the columns of statistics.
_PLAIN_ROW_BYTES = 400
#: Maximum number of bytes of cached columns, in addition to the latest.
_KEPT_BYTES = 256 << 20


class Columns(ABC):
    """Rows with access to whole columns.

    Attributes
    ----------
    names
        The names of the columns.
    """

    names: tuple[str, ...]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def _column(self, place: int) -> AnyArray: ...

    def column(self, place: int) -> AnyArray:
        """Return a column as one Arrow array; objects of mixed types become text.

        Raises
        ------
        OptionError
            There is no such column.
        """
        self.check([place])
        return self._column(place)

    def kind(self, place: int) -> DynamicType:
        """Return the type of a column."""
        return self.column(place).type

    def check(self, places: Iterable[int]) -> None:
        """Raise an `OptionError` if a column does not exist."""
        for place in places:
            if not 0 <= place < len(self.names):
                raise OptionError(f"the table has {len(self.names)} columns, so there is no column {place}")


class GridTable(Columns):
    """A table of a grid.

    Attributes
    ----------
    right
        Whether each column is numeric, and so right-aligned.
    """

    right: tuple[bool, ...]

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The approximate memory of the table, in bytes."""

    def kept(self, place: int) -> AnyArray | None:
        """Return a whole column if no file has to be read for it, else None."""
        return self.column(place)

    @abstractmethod
    def rows(self, at: slice, order: npt.NDArray[np.int64] | None = None) -> pd.DataFrame:
        """Return a slice of the rows with all columns, in the table's order or in ``order`` (row numbers)."""

    @abstractmethod
    def values(self, at: slice, order: npt.NDArray[np.int64] | None, columns: Sequence[int]) -> list[list[Any]]:
        """Return the values of some columns, given by index, in a slice of the rows; see `rows`."""

    @abstractmethod
    def some(self, rows: Sequence[int], columns: Sequence[str]) -> Columns:
        """Return some rows, given by number, with at least these columns."""

    @abstractmethod
    def parts(self, columns: Collection[int]) -> Iterator[Columns]:
        """Yield all rows in parts, with at least these columns."""

    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """Return the whole table, even if it is large."""


class FrameTable(GridTable):
    """A table from a DataFrame."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self.names = tuple(map(str, frame.columns))
        self.right = _numbers(frame.dtypes)

    def __len__(self) -> int:
        return len(self._frame)

    @cached_property
    def nbytes(self) -> int:
        """The approximate memory in bytes, with a rough estimate for Python objects."""
        columns = [self._frame.iloc[:, i] for i in range(self._frame.shape[1])]
        return sum(c.array.nbytes * (8 if c.dtype.kind == "O" and c.dtype.name == "object" else 1) for c in columns)

    def _column(self, place: int) -> AnyArray:
        series = self._frame.iloc[:, place]
        try:
            made = pa.array(series, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError):
            made = pa.array([text_of(v) for v in values_of(series)], pa.string())
        return _plain(made)

    def rows(self, at: slice, order: npt.NDArray[np.int64] | None = None) -> pd.DataFrame:
        """Return a slice of the rows."""
        if order is None and at.start == 0 and at.stop >= len(self._frame):
            return self._frame
        return self._frame.iloc[at if order is None else order[at]]

    def values(self, at: slice, order: npt.NDArray[np.int64] | None, columns: Sequence[int]) -> list[list[Any]]:
        """Return the values of some columns."""
        part = self.rows(at, order)
        return [values_of(part.iloc[:, place]) for place in columns]

    def some(self, rows: Sequence[int], columns: Sequence[str]) -> Columns:
        """Return some rows with all columns."""
        return FrameTable(self._frame.iloc[list(rows)])

    def parts(self, columns: Collection[int]) -> Iterator[Columns]:
        """Yield the table itself as the only part."""
        yield self

    def frame(self) -> pd.DataFrame:
        """Return the DataFrame."""
        return self._frame


class ListTable(GridTable):
    """A table from lists of values of any types, converted to a DataFrame only by methods that need one.

    Parameters
    ----------
    columns
        The values by name; None is null.
    numbers
        The names of the columns that hold integers.
    """

    def __init__(self, columns: Mapping[str, list[Any]], numbers: Collection[str]) -> None:
        self._columns = columns
        self._numbers = numbers
        self.names = tuple(columns)
        self.right = tuple(name in numbers for name in columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    @property
    def nbytes(self) -> int:
        """A rough size of the values."""
        return 64 * len(self) * len(self.names)

    def _column(self, place: int) -> AnyArray:
        name = self.names[place]
        return pa.array(self._columns[name], pa.int64()) if name in self._numbers else self._whole.column(place)

    def rows(self, at: slice, order: npt.NDArray[np.int64] | None = None) -> pd.DataFrame:
        """Return a slice of the rows."""
        return self._whole.rows(at, order)

    def values(self, at: slice, order: npt.NDArray[np.int64] | None, columns: Sequence[int]) -> list[list[Any]]:
        """Return the values of some columns. NaN counts as null, as in a DataFrame."""
        found = [self._columns[self.names[place]] for place in columns]
        chosen = [column[at] if order is None else [column[row] for row in order[at].tolist()] for column in found]
        return [[None if isinstance(v, float) and v != v else v for v in column] for column in chosen]

    def some(self, rows: Sequence[int], columns: Sequence[str]) -> Columns:
        """Return some rows with all columns."""
        return self._whole.some(rows, columns)

    def parts(self, columns: Collection[int]) -> Iterator[Columns]:
        """Yield the table itself as the only part."""
        yield self

    def frame(self) -> pd.DataFrame:
        """Return the whole table."""
        return self._whole.frame()

    @cached_property
    def _whole(self) -> FrameTable:
        import pandas as pd

        columns: dict[str, Any] = {
            name: pd.array(values, dtype="Int64") if name in self._numbers else pd.Series(values, dtype=object)
            for name, values in self._columns.items()
        }
        return FrameTable(pd.DataFrame(columns, copy=False))


class ArrowTable(GridTable):
    """A table from an Arrow table, converted to a DataFrame only on request.

    Parameters
    ----------
    frame
        The columns that `frame` returns; None for all.
    """

    def __init__(self, table: pa.Table, frame: Sequence[str] | None = None) -> None:
        self._table = table
        self._frame = frame
        self.names = tuple(table.column_names)
        self.right = tuple(map(_is_number, table.schema.types))

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @property
    def nbytes(self) -> int:
        """The memory of the Arrow table in bytes; its DataFrame shares this memory."""
        return int(self._table.nbytes)

    def _column(self, place: int) -> AnyArray:
        return _plain(self._table.column(place))

    def kind(self, place: int) -> DynamicType:
        """Return the type of a column."""
        return _plain(self._table.column(place).slice(0, 0)).type

    def rows(self, at: slice, order: npt.NDArray[np.int64] | None = None) -> pd.DataFrame:
        """Return a slice of the rows."""
        return self._whole.rows(at, order)

    def values(self, at: slice, order: npt.NDArray[np.int64] | None, columns: Sequence[int]) -> list[list[Any]]:
        """Return the values of some columns."""
        return _values_of(self._table, at, order, columns)

    def some(self, rows: Sequence[int], columns: Sequence[str]) -> Columns:
        """Return some rows with these columns."""
        return ArrowTable(self._table.select(list(columns)).take(pa.array(rows, pa.int64())))

    def parts(self, columns: Collection[int]) -> Iterator[Columns]:
        """Yield the table itself as the only part."""
        yield self

    def frame(self) -> pd.DataFrame:
        """Return the whole table."""
        return self._whole.frame() if self._frame is None else self._whole.frame()[list(self._frame)]

    @cached_property
    def _whole(self) -> FrameTable:
        return FrameTable(to_frame(self._table))


class LeafTable(GridTable):
    """A metadata table whose rows are built manifest by manifest. Only `frame` builds and caches the whole table."""

    def __init__(self, table: MetadataTable, rows: LeafRows) -> None:
        self._table = table
        self._rows = rows
        self._count = len(rows)  # now: counting reads manifests, which may fail
        self._whole: FrameTable | None = None
        self._columns: dict[int, AnyArray] = {}
        self._ahead = _Ahead(rows, np.zeros(0, dtype=np.int64))
        self.names = tuple(rows.schema.names)
        self.right = tuple(map(_is_number, rows.schema.types))

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The memory of the cached rows and columns, in bytes."""
        columns: int = sum(column.nbytes for column in self._columns.values())
        return self._rows.nbytes + self._ahead.nbytes + columns + (self._whole.nbytes if self._whole else 0)

    def _column(self, place: int) -> AnyArray:
        return next(self.parts([place])).column(place)

    def kind(self, place: int) -> DynamicType:
        """Return the type of a column."""
        return _plain(self._rows.schema.empty_table().column(place)).type

    def kept(self, place: int) -> AnyArray | None:
        """Return a whole column if it is cached."""
        return self._columns.get(place) if self._whole is None else self._whole.column(place)

    def rows(self, at: slice, order: npt.NDArray[np.int64] | None = None) -> pd.DataFrame:
        """Return a slice of the rows. If they come from many manifests, the next rows in this order are cached too."""
        import pandas as pd

        if self._whole is not None:
            return self._whole.rows(at, order)
        frame: pd.DataFrame = self._made(at, order).to_pandas(types_mapper=pd.ArrowDtype)
        return frame

    def values(self, at: slice, order: npt.NDArray[np.int64] | None, columns: Sequence[int]) -> list[list[Any]]:
        """Return the values of some columns in a slice of the rows, caching rows as `rows` does."""
        if self._whole is not None:
            return self._whole.values(at, order, columns)
        names = [self.names[place] for place in columns]
        made = self._made(at, order, plain=self._rows.is_plain(names))
        places = [made.column_names.index(name) for name in names]
        return _values_of(made, slice(0, made.num_rows), None, places)

    def some(self, rows: Sequence[int], columns: Sequence[str]) -> Columns:
        """Return some rows with at least these columns, caching rows as `rows` does."""
        places = np.asarray(rows, dtype=np.int64)
        if self._whole is not None:
            return self._whole.some(rows, columns)
        return ArrowTable(self._made(slice(0, len(rows)), places, plain=self._rows.is_plain(columns)))

    def _made(self, at: slice, order: npt.NDArray[np.int64] | None, *, plain: bool = False) -> pa.Table:
        """Return rows; if ``plain``, possibly without the columns of statistics, which take long to build."""
        places = np.arange(len(self), dtype=np.int64)[at] if order is None else order[at]
        found = self._ahead.take(places) if plain or not self._ahead.plain else None
        if found is None and order is not None and self._rows.to_make(places) > _MOST_MADE:
            many = int(_AHEAD_BYTES // (_PLAIN_ROW_BYTES if plain else max(self._rows.row_nbytes, 1_000)))
            begin = max(0, at.start - many // 4)
            self._ahead = _Ahead(self._rows, np.unique(order[begin : max(at.stop, begin + many)]), plain=plain)
            found = self._ahead.take(places)
        return self._rows.take(places, plain=plain) if found is None else found

    def parts(self, columns: Collection[int]) -> Iterator[Columns]:
        """Yield the rows manifest by manifest, or as one part if there are few columns or the whole table is cached."""
        if self._whole is not None:
            yield self._whole
            return
        if len(columns) <= _FEW:
            yield _Part(self.names, self._kept(columns), len(self))
            return
        for table in self._rows.parts([self.names[place] for place in columns]):
            found = {place: _plain(table.column(self.names[place])) for place in columns}
            yield _Part(self.names, found, int(table.num_rows))

    def _kept(self, places: Collection[int]) -> dict[int, AnyArray]:
        """Return whole columns, from the cache if possible."""
        missing = [place for place in places if place not in self._columns]
        if missing:
            names = [self.names[place] for place in missing]
            made = pa.concat_tables([self._rows.schema.empty_table().select(names), *self._rows.parts(names)])
            self._columns |= {place: _plain(made.column(name)) for place, name in zip(missing, names, strict=True)}
        found = {place: self._columns.pop(place) for place in places}
        while self._columns and sum(column.nbytes for column in self._columns.values()) > _KEPT_BYTES:
            del self._columns[next(iter(self._columns))]
        self._columns |= found  # the latest columns go last, to be dropped last
        return found

    def frame(self) -> pd.DataFrame:
        """Return the whole table and cache it."""
        if self._whole is not None:
            return self._whole.frame()
        made = FrameTable(self._table())
        if made.names == self.names:  # otherwise, it lacks columns that the grid shows
            self._whole = made
            self._columns.clear()
            self._ahead = _Ahead(self._rows, np.zeros(0, dtype=np.int64))
        return made.frame()


class _Ahead:
    """Rows that are cached ahead, in ascending order of their row numbers."""

    def __init__(self, rows: LeafRows, places: npt.NDArray[np.int64], *, plain: bool = False) -> None:
        self.plain = plain
        self._places = places
        self._made = rows.take(places, plain=plain)

    @property
    def nbytes(self) -> int:
        return int(self._made.nbytes)

    def take(self, places: npt.NDArray[np.int64]) -> pa.Table | None:
        """Return rows by number, in this order; None if any is not cached."""
        at = np.searchsorted(self._places, places)
        if not len(self._places) or (at == len(self._places)).any() or (self._places[at] != places).any():
            return None
        return self._made.take(build.array(at))


class _Part(Columns):
    """Some rows with some of the table's columns, which are given by index."""

    def __init__(self, names: tuple[str, ...], columns: dict[int, AnyArray], count: int) -> None:
        self.names = names
        self._columns = columns
        self._count = count

    def __len__(self) -> int:
        return self._count

    def _column(self, place: int) -> AnyArray:
        return self._columns[place]


def _plain(made: AnyColumn) -> AnyArray:
    """Return a column as one array, with dictionaries decoded and extension types replaced by their storage types."""
    if isinstance(made, pa.ChunkedArray):
        made = made.combine_chunks()
    if pa.types.is_dictionary(made.type):
        made = cast(AnyDictionaryArray, made).dictionary_decode()
    if isinstance(made.type, pa.UuidType):
        return made  # its storage, 16 bytes, would not be recognized as a UUID
    return made.storage if isinstance(made, pa.ExtensionArray) else made


def _values_of(
    table: pa.Table, at: slice, order: npt.NDArray[np.int64] | None, columns: Sequence[int]
) -> list[list[Any]]:
    """Return the values of some columns in some rows of a table."""
    part = table.select(list(columns))
    if order is not None:
        part = part.take(build.array(order[at]))
    elif at.start or at.stop < table.num_rows:
        part = part.slice(at.start, at.stop - at.start)
    return [array_values(column) for column in part.columns]


def _is_number(kind: pa.DataType) -> bool:
    """Return whether a type is numeric; the result equals that of pandas for its Arrow-backed columns."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _numbers(kinds: Iterable[Any]) -> tuple[bool, ...]:
    import pandas as pd

    return tuple(bool(pd.api.types.is_numeric_dtype(k) and not pd.api.types.is_bool_dtype(k)) for k in kinds)
