"""Scan planning: from the root to the data files that a scan reads, with their deletes and what is left to filter."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.graph import TableState
from iceexplore.planning._expression import ALWAYS
from iceexplore.planning._filter import Filter, make_filter
from iceexplore.planning._plan_columns import checked_columns
from iceexplore.planning._plan_leaves import Picked, leaves_of, pick, united
from iceexplore.planning._plan_roots import RootScan, scan_root
from iceexplore.planning._scan_plan import ScanPlan
from iceexplore.planning._tasks import FileTasks, MatchedDeletes

__all__ = ["plan_scan"]

SPLIT_SIZE = 128 * 1024 * 1024


def plan_scan(
    state: TableState,
    where: Any = None,
    *,
    columns: Iterable[str] | None = None,
    partition: Any = None,
    split_size: int = SPLIT_SIZE,
) -> ScanPlan:
    """Plan a scan (spec, "Scan Planning"): which data files are read, with which deletes, and what is left to filter.

    The root is read, then the manifests that may hold a matching file, of these the statistics of the filter's columns
    alone. No data file is opened, nor is a delete file.

    Parameters
    ----------
    where, partition
        See `make_filter`; without either every live file is read.
    columns
        Names of the columns that are read, dotted inside structs; all by default.
    split_size
        Bytes a split should have (``read.split.target-size``).

    Raises
    ------
    OptionError
        The filter, or a column, is not one of this table's.
    """
    start = time.perf_counter()
    reads = len(state.storage.reads)
    wanted = make_filter(state.metadata, state.schema, where, partition)
    root = state.root()
    scans = [] if root is None or state.snapshot is None else [scan_root(state, state.snapshot, root, wanted)]
    picked = [_picked(state, scan, i, wanted) for i, scan in enumerate(scans)]
    files, root_row, sure = united([p for each in picked for p in each])
    matched = MatchedDeletes(
        vector=pa.nulls(len(files), pa.int32()), positions=_none(len(files)), equality=_none(len(files))
    )
    zero = pa.repeat(pa.scalar(0, pa.int32()), len(files))
    tasks = FileTasks(files, root_row, sure, zero, (ALWAYS,), matched)
    return ScanPlan(
        state, wanted, checked_columns(state.schema, columns), tasks, tuple(scans),
        tuple(p.leaf for each in picked for p in each), split_size, time.perf_counter() - start, reads,
    )  # fmt: skip


def _picked(state: TableState, scan: RootScan, index: int, wanted: Filter) -> list[Picked]:
    return [pick(state, scan, index, leaf, wanted) for leaf in leaves_of(state, scan, wanted, scan.kept.tolist())]


def _none(count: int) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, dtype=np.int32)), pa.array([], pa.int32()))
