"""A table with its columns in a different order, and with additional columns that are computed from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, DynamicType
from iceexplore.widgets.grid._arrow_values import array_values
from iceexplore.widgets.grid._table import Columns, FrameTable, GridTable
from iceexplore.widgets.grid._view import Derived, TableView

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ArrangedTable"]


class ArrangedTable(GridTable):
    """A table with its columns arranged by a view. Only `frame` returns the original, unarranged table.

    Parameters
    ----------
    base
        The original table.
    view
        The order of the columns, and which columns are computed.
    """

    def __init__(self, base: GridTable, view: TableView) -> None:
        self._base = base
        self._parts = view.arrange(base.names)
        self.names = tuple(base.names[part] if isinstance(part, int) else part.name for part in self._parts)
        self.right = tuple(base.right[part] if isinstance(part, int) else part.right for part in self._parts)

    def __len__(self) -> int:
        return len(self._base)

    @property
    def base(self) -> GridTable:
        """The original table."""
        return self._base

    @property
    def nbytes(self) -> int:
        """The approximate memory of the original table, in bytes."""
        return self._base.nbytes

    def kind(self, place: int) -> DynamicType:
        """Return the type of a column."""
        part = self._parts[place]
        return self._base.kind(part) if isinstance(part, int) else part.make(self._base.some([], part.sources)).type

    def kept(self, place: int) -> AnyArray | None:
        """Return a whole column if no file has to be read for it, else None."""
        part = self._parts[place]
        if isinstance(part, int):
            return self._base.kept(part)
        sources = (self._base.names.index(name) for name in part.sources)
        return None if any(self._base.kept(source) is None for source in sources) else self._column(place)

    def _column(self, place: int) -> AnyArray:
        made = [part.column(place) for part in self.parts([place])]
        return made[0] if len(made) == 1 else pa.concat_arrays(made)

    def _needed(self, places: Collection[int]) -> list[int]:
        """Return the indexes of the original table's columns that are needed for these columns."""
        needed: dict[int, None] = {}
        for place in places:
            part = self._parts[place]
            own = [part] if isinstance(part, int) else [self._base.names.index(name) for name in part.sources]
            needed |= dict.fromkeys(own)
        return list(needed)

    def rows(self, at: slice, order: npt.NDArray[np.int64] | None = None) -> pd.DataFrame:
        """Return a slice of the rows with all columns."""
        import pandas as pd

        base = self._base.rows(at, order)
        rows = FrameTable(base)
        columns = []
        for part in self._parts:
            if isinstance(part, int):
                columns.append(base.iloc[:, part])
            else:
                made = part.make(rows)
                columns.append(made.to_pandas(types_mapper=pd.ArrowDtype).set_axis(base.index))
        found = pd.concat(columns, axis=1)
        found.columns = pd.Index(self.names)
        return found

    def values(self, at: slice, order: npt.NDArray[np.int64] | None, columns: Sequence[int]) -> list[list[Any]]:
        """Return the values of some columns in a slice of the rows."""
        own = [(i, part) for i, c in enumerate(columns) if isinstance(part := self._parts[c], int)]
        made = dict(
            zip(
                (i for i, _ in own),
                self._base.values(at, order, [part for _, part in own]),
                strict=True,
            )
        )
        if len(own) < len(columns):
            numbers = np.arange(len(self), dtype=np.int64)[at] if order is None else order[at]
            rows = self.some(numbers.tolist(), [self.names[c] for c in columns])
            for i, c in enumerate(columns):
                if i not in made:
                    made[i] = array_values(rows.column(rows.names.index(self.names[c])))
        return [made[i] for i in range(len(columns))]

    def some(self, rows: Sequence[int], columns: Sequence[str]) -> ArrangedColumns:
        """Return some rows with these columns."""
        places = [self.names.index(name) for name in columns]
        part = self._base.some(rows, [self._base.names[place] for place in self._needed(places)])
        found: dict[int, int | Derived] = {}
        for i, place in enumerate(places):
            own = self._parts[place]
            found[i] = part.names.index(self._base.names[own]) if isinstance(own, int) else own
        return ArrangedColumns(part, tuple(columns), found)

    def parts(self, columns: Collection[int]) -> Iterator[Columns]:
        """Yield all rows in parts, with at least these columns."""
        for part in self._base.parts(self._needed(columns)):
            yield ArrangedColumns(part, self.names, {place: self._parts[place] for place in columns})

    def frame(self) -> pd.DataFrame:
        """Return the original table: columns in their original order, without the computed ones."""
        return self._base.frame()


class ArrangedColumns(Columns):
    """Some rows of an arranged table; each column is taken from the original rows or computed from them."""

    def __init__(self, part: Columns, names: tuple[str, ...], columns: dict[int, int | Derived]) -> None:
        self.names = names
        self._part = part
        self._columns = columns

    def __len__(self) -> int:
        return len(self._part)

    def _column(self, place: int) -> AnyArray:
        column = self._columns[place]
        return self._part.column(column) if isinstance(column, int) else column.make(self._part)

    def kind(self, place: int) -> DynamicType:
        """Return the type of a column."""
        return self._column(place).type
