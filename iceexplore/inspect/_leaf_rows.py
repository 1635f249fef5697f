"""A metadata table whose rows are built on access, for tables with too many rows to hold in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import FormatError
from iceexplore.graph import TableState
from iceexplore.inspect._by_leaf import ByLeaf, LeafPlace
from iceexplore.inspect._source import in_parallel
from iceexplore.manifests import whole

__all__ = ["LeafRows"]

_COUNTED = ("added", "existing", "deleted")
#: Maximum size in bytes of the cached rows, not counting those of the manifest that was read last.
_KEPT_BYTES = 64 << 20


class LeafRows:
    """The rows of a metadata table, read by row number.

    All entries are decoded to count the rows, once and only if a row number is needed. Statistics are decoded only for
    rows that are read.

    Attributes
    ----------
    schema
        The columns.
    """

    def __init__(self, state: TableState, made: ByLeaf, schema: pa.Schema) -> None:
        assert made.count is not None
        self.schema = schema
        narrow = [field for field in schema if field.name not in made.statistics]
        self._plain = made.narrowed(schema, [field.name for field in narrow])
        self._state = state
        self._by_leaf = made
        self._kept: OrderedDict[int, pa.Table] = OrderedDict()

    @cached_property
    def _places(self) -> list[LeafPlace]:
        return self._by_leaf.places(self._state)

    @cached_property
    def _begins(self) -> npt.NDArray[np.int64]:
        """The number of each manifest's first row, and the number of all rows; counting decodes all entries."""
        count = self._by_leaf.count
        assert count is not None
        counts = [count(root, leaf) for root, leaf in self._by_leaf.leaves(self._state, ("entries",))]
        begins: npt.NDArray[np.int64] = np.cumsum([0, *counts])
        return begins

    def __len__(self) -> int:
        return int(self._begins[-1])

    def if_few(self, most: int) -> pa.Table | None:
        """Return all rows, in order; None if there are, or may be, more than ``most``. Does not count them first."""
        if self._stated_entries() > most:
            return None
        made, total = [self.schema.empty_table()], 0
        for part in self._by_leaf.build(self._state, self.schema):
            made.append(part)
            total += part.num_rows
            if total > most:  # the root states less than its manifests have
                return None
        return pa.concat_tables(made)

    def _stated_entries(self) -> int:
        """Return the number of entries in all manifests as the root states it; unknown counts are left out."""
        root = self._state.root()
        if root is None:
            return 0
        stats = whole(root.entries.column("manifest_stats"))
        counts = (pc.sum(pc.struct_field(stats, f"{kind}_files_count")).as_py() for kind in _COUNTED)
        return len(root) + sum(count or 0 for count in counts)

    @property
    def nbytes(self) -> int:
        """The memory of the cached rows."""
        return sum(table.nbytes for table in self._kept.values())

    @property
    def row_nbytes(self) -> float:
        """The approximate memory of one row, from the cached rows; 0 before any row was read."""
        rows: int = sum(table.num_rows for table in self._kept.values())
        return self.nbytes / max(1, rows)

    def to_make(self, rows: npt.NDArray[np.int64]) -> int:
        """Return how many rows `take` must build to return these rows: all of each manifest that is not cached."""
        leaves = set(np.unique(np.searchsorted(self._begins, rows, side="right") - 1).tolist()) - self._kept.keys()
        return sum(int(self._begins[leaf + 1] - self._begins[leaf]) for leaf in leaves)

    def is_plain(self, columns: Iterable[str]) -> bool:
        """Return whether these columns need no statistics, which take most of the time to build."""
        return bool(self._by_leaf.statistics) and self._by_leaf.statistics.isdisjoint(columns)

    def take(self, rows: npt.NDArray[np.int64], *, plain: bool = False) -> pa.Table:
        """Return rows by number, in the given order. Reads only their manifests.

        Parameters
        ----------
        plain
            Leave out the columns of statistics.

        Raises
        ------
        IndexError
            A row number is out of range.
        FormatError, FileMissingError
            A manifest is damaged and problems are strict, or its number of rows has changed.
        """
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(self)):
            raise IndexError(f"rows {rows.min()} to {rows.max()} are out of range: the table has {len(self)} rows")
        leaves = np.searchsorted(self._begins, rows, side="right") - 1
        wanted = np.unique(leaves).tolist()
        there = {leaf: self._kept[leaf] for leaf in wanted if leaf in self._kept}
        schema = self._plain[1] if plain else self.schema
        keep = not plain and (
            len(wanted) - len(there) == 1 or self.to_make(rows) * max(self.row_nbytes, 1_000) <= _KEPT_BYTES
        )

        def some(leaf: int) -> tuple[npt.NDArray[np.int64], pa.Table, pa.Table | None]:
            made = there[leaf].select(schema.names) if leaf in there else self._make(leaf, plain=plain)
            mine = np.flatnonzero(leaves == leaf)
            part = made.take(pa.array(rows[mine] - self._begins[leaf]))
            return mine, part, made if keep and leaf not in there else None

        parts, places = [schema.empty_table()], [np.zeros(0, dtype=np.int64)]
        for leaf, (mine, part, made) in zip(wanted, in_parallel(self._state, some, wanted), strict=True):
            parts.append(part)
            places.append(mine)
            if made is not None:
                self._keep(leaf, made)
        return pa.concat_tables(parts).take(build.array(np.argsort(np.concatenate(places))))

    def parts(self, columns: Collection[str]) -> Iterator[pa.Table]:
        """Yield all rows, one manifest at a time, with these columns only. Closing the iterator stops reading."""
        made, schema = self._by_leaf.narrowed(self.schema, columns)
        wanted = [name for name in self.schema.names if name in columns]
        for table in made.build(self._state, schema):
            yield table.select(wanted)

    def _keep(self, leaf: int, made: pa.Table) -> None:
        self._kept[leaf] = made
        while len(self._kept) > 1 and self.nbytes > _KEPT_BYTES:
            self._kept.popitem(last=False)

    def _make(self, number: int, *, plain: bool) -> pa.Table:
        """Return the rows of one manifest."""
        place = self._places[number]
        by_leaf, schema = self._plain if plain else (self._by_leaf, self.schema)
        root, leaf = by_leaf.read(self._state, place.snapshot, place.row)
        make = by_leaf.maker(self._state, schema)
        made = pa.concat_tables([schema.empty_table(), *make(root, leaf)]).combine_chunks()
        before = int(self._begins[number + 1] - self._begins[number])
        if made.num_rows != before:
            raise FormatError(f"the manifest had {before:,} rows and now has {made.num_rows:,}", location=leaf.location)
        return made
