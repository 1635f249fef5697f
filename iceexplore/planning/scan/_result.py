"""A planned scan as data: what is read and what was met on the way. Everything that shows a plan takes this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import pyarrow as pa

from iceexplore.graph import TableState
from iceexplore.planning.evaluators._filter import Filter
from iceexplore.planning.model._tasks import FileTasks
from iceexplore.planning.scan._files import LeafScan
from iceexplore.planning.scan._incremental import Appends
from iceexplore.planning.scan._manifests import RootScan
from iceexplore.planning.scan._splits import SplitOptions
from iceexplore.storage import Read

__all__ = ["PlannedScan"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PlannedScan:
    """What a scan reads, what it skips, and what planning it took.

    Attributes
    ----------
    state, filter, columns
        What was planned; ``columns`` is None for all. Of an incremental plan the state shows its last snapshot.
    files
        A row per data file that is read: what a reader works through.
    options
        How splits are made.
    roots, leaves
        The manifest lists or root manifests, and what was met in each manifest that was read. There is one root; of an
        incremental plan one per append, and ``root_row`` of a task counts in the root of its own.
    delete_rows
        Rows of the root: the manifests of deletes that were read.
    row_groups
        Of a plan with ``row_groups=True`` a row per row group (`iceexplore.planning.row_groups_of`); else None.
    appends
        Of an incremental plan, its snapshots.
    notes
        What a reader of the plan should know: manifests that could not be read, snapshots that were passed over.
    doubts
        Counts that contradict each other, of the snapshot's summary, its root or the manifests that were read: all of
        them could be read, and rows may still be missing, or deleted ones come back. Where manifests were left out,
        also what the root claims untruly of those that were read.
    seconds
        How long planning took.
    log
        What the storage served for it; manifests that were in the cache are not among it.
    """

    state: TableState
    filter: Filter
    columns: tuple[str, ...] | None
    files: FileTasks
    options: SplitOptions = field(default_factory=SplitOptions)
    roots: tuple[RootScan, ...] = ()
    leaves: tuple[LeafScan, ...] = ()
    delete_rows: tuple[int, ...] = ()
    row_groups: pa.Table | None = None
    appends: Appends | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    seconds: float = 0.0
    log: tuple[Read, ...] = ()
    _made: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.files)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what ``make`` returned the first time that it was asked for by this name: tables are made once."""
        if name not in self._made:
            self._made[name] = make()
        return cast("T", self._made[name])
