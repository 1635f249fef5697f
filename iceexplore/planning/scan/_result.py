"""Define `PlannedScan`, which holds the result of planning a scan. All reports on a plan are built from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import pyarrow as pa

from iceexplore.graph import TableState
from iceexplore.planning.delete_index._delete_files import concerned
from iceexplore.planning.evaluators._filter import Filter
from iceexplore.planning.model._tasks import FileTasks
from iceexplore.planning.scan._doubts import doubts_of
from iceexplore.planning.scan._files import LeafScan
from iceexplore.planning.scan._incremental import Appends
from iceexplore.planning.scan._manifests import RootScan
from iceexplore.planning.scan._splits import SplitOptions
from iceexplore.storage import Read

__all__ = ["PlannedScan"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PlannedScan:
    """The files that a scan reads, how many it skips, and how the scan was planned.

    Attributes
    ----------
    state, filter, columns
        The table as of the planned snapshot, the filter, and the columns to read; ``columns`` is None for all. For an
        incremental plan, the table is as of its last snapshot.
    files
        The data files to read, one row each, with the residual filter of each and the deletes that apply to it.
    options
        How files are split, and how splits are combined into tasks.
    roots
        The manifest list or root manifest of the planned snapshot; empty if the table has no snapshot. An incremental
        plan has one root for each snapshot whose added files are planned. In such a plan, ``files.root_row`` is a row
        number in the root of the snapshot that added the file.
    leaves
        For each data manifest that was read, the number of its files, rows and bytes, and how many of these the plan
        reads. If a V4 root lists data files itself, there is one more element for these files.
    delete_rows
        Row numbers, in the root, of the delete manifests that the filter does not rule out. Some of these manifests are
        not read, because their sequence numbers or partitions show that no delete in them applies to a planned file.
    row_groups
        For a plan with ``row_groups=True`` or ``bloom=True``, the row groups of the files, and which of them may have a
        matching row (see `iceexplore.planning.row_groups_of`); else None.
    appends
        For an incremental plan, the snapshots whose added files are planned; else None.
    notes
        Notes for users: manifests that could not be read, snapshots that were skipped.
    seconds
        Duration of planning, in seconds.
    log
        The reads from the storage during planning. A manifest that was read before and is still in the cache in
        decoded form is not read again, so it is not in the log.
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
    seconds: float = 0.0
    log: tuple[Read, ...] = ()
    _made: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.files)

    @property
    def read_delete_rows(self) -> tuple[int, ...]:
        """Row numbers of the delete manifests that may hold a delete for a planned file.

        They are row numbers in the planned snapshot's manifest list (V4: root manifest), from 0. Planning has read
        these manifests to match deletes with data files. They are some or all of those in `delete_rows`. Manifests that
        were read only to find the columns of equality deletes are not included. Empty for an incremental plan.
        """
        if not self.delete_rows:
            return ()
        root, rows = self.roots[0].root, list(self.delete_rows)
        return self.once("read_delete_rows", lambda: tuple(concerned(self.state, root, rows, self.files.files)))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why a reader of the plan may get wrong rows or miss rows, each a sentence with a problem code.

        There are two kinds of reasons:

        - Problems that were found when metadata was read, if they affect this plan. For example, the totals in the
          snapshot's summary differ from those in its manifest list.
        - Problems that `Table.check` has found in the planned snapshot.

        Manifests that could not be read are reported in `notes`, not here.
        """
        return tuple(doubts_of(self).values())

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return the result of ``make``, which is called only the first time that this plan is asked for ``name``.

        The result is kept, because several reports use the same tables.
        """
        if name not in self._made:
            self._made[name] = make()
        return cast("T", self._made[name])
