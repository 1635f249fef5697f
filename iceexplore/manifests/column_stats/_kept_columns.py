"""Cache statistics of single columns for large manifests, whose maps of all columns would not fit into the cache."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from iceexplore.manifests.column_stats._maps import (
    ColumnStats,
    Contradiction,
    MapStats,
    OnContradiction,
    contradictions,
)
from iceexplore.metadata import Type
from iceexplore.storage import CACHE

__all__ = ["KeptColumns"]

#: The statistics of more columns take about as much memory as the maps, so the maps are cached instead.
_MOST_COLUMNS = 8
#: The statistics of fewer entries are decoded in less time than it takes to look them up.
_LEAST_ROWS = 2_000


@dataclass(frozen=True)
class _Kept:
    """Statistics of a column, and the contradictions in them, each with the entries that have it."""

    stats: ColumnStats
    contradictions: tuple[tuple[Contradiction, Any], ...]

    @property
    def nbytes(self) -> int:
        found = (getattr(self.stats, f.name) for f in fields(self.stats))
        return sum(array.nbytes for array in found if hasattr(array, "nbytes"))


class KeptColumns:
    """The cached columns of one manifest file of v1 to v3.

    Parameters
    ----------
    key
        Identifies the content of the file in the process's cache.
    """

    def __init__(self, key: tuple[Any, ...]) -> None:
        self._key = key

    def has(self, kinds: Mapping[int, Type | None]) -> bool:
        """Return whether all these columns are cached, with bounds of these types."""
        return all(self._of(field_id, kind) in CACHE for field_id, kind in kinds.items())

    def takes(self, rows: int, columns: Collection[int]) -> bool:
        """Return whether these columns of a manifest with so many rows should be cached one by one."""
        return rows >= _LEAST_ROWS and len(columns) <= _MOST_COLUMNS

    def columns(
        self, kinds: Mapping[int, Type | None], maps: Callable[[], MapStats], note: OnContradiction
    ) -> Iterator[ColumnStats]:
        """Yield the statistics of columns from the cache; for columns that are not cached, from the maps.

        Parameters
        ----------
        maps
            A function that returns the maps, called only if they are needed; it reports no contradictions.
        note
            Called for each contradiction, including those in cached columns.
        """
        for field_id, kind in kinds.items():
            kept = self._kept(field_id, kind, maps)
            for what, entries in kept.contradictions:
                note(field_id, what, entries)
            yield kept.stats

    def keep(self, kinds: Mapping[int, Type | None], maps: MapStats) -> None:
        """Add the statistics of columns to the cache; their contradictions are reported when `columns` yields them."""
        for field_id, kind in kinds.items():
            self._kept(field_id, kind, lambda: maps)

    def _kept(self, field_id: int, kind: Type | None, maps: Callable[[], MapStats]) -> _Kept:
        return CACHE.get_or_load(
            self._of(field_id, kind), lambda: _decoded(maps(), field_id, kind), lambda kept: kept.nbytes
        )

    def _of(self, field_id: int, kind: Type | None) -> tuple[Any, ...]:
        return (*self._key, "column", field_id, str(kind))


def _decoded(maps: MapStats, field_id: int, kind: Type | None) -> _Kept:
    found: list[tuple[Contradiction, Any]] = []
    stats = maps.column(field_id, kind)
    for what, mask in contradictions(kind, stats.lower, stats.upper, stats.null_count, stats.value_count):
        found.append((what, np.flatnonzero(mask)))
    return _Kept(stats, tuple(found))
