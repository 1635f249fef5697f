"""The plan of a scan: for whoever reads it the tasks, for people what is read, what is not, and why."""

from __future__ import annotations

from dataclasses import dataclass

from iceexplore.graph import TableState
from iceexplore.planning._filter import Filter
from iceexplore.planning._plan_leaves import LeafScan
from iceexplore.planning._plan_roots import RootScan
from iceexplore.planning._tasks import FileTasks

__all__ = ["ScanPlan"]


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """What a scan reads.

    Attributes
    ----------
    state, filter, columns
        What was planned; ``columns`` is None for all.
    files
        A row per data file that is read: what a reader works through.
    """

    state: TableState
    filter: Filter
    columns: tuple[str, ...] | None
    files: FileTasks
    roots: tuple[RootScan, ...] = ()
    leaves: tuple[LeafScan, ...] = ()
    split_size: int = 128 * 1024 * 1024
    seconds: float = 0.0
    first_read: int = 0
