"""Derive from metadata how many rows match a filter, and whether a snapshot's first rows are cheap to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, amount, totals
from iceexplore.manifests import bool_array
from iceexplore.storage import is_local

if TYPE_CHECKING:
    from iceexplore.planning import ScanPlan

__all__ = ["is_cheap", "matches_text"]

#: A snapshot's first rows are shown without a request up to this number of data files and this average size in bytes.
_MOST_FILES = 10_000
_LARGEST = 64 << 20
#: Maximum number of data files in a snapshot for which a scan is planned only to show how many rows match.
_MOST_PLANNED = 200_000


def is_cheap(state: TableState) -> bool:
    """Return whether reading the first rows is cheap: the table is local, with few files that are not large."""
    found = totals(state, read_leaves=False)
    files, size = found["data_files"], found["bytes"]
    if files is None or not is_local(state.storage.folder):
        return False
    return files <= _MOST_FILES and (size or 0) <= _LARGEST * max(1, files)


def matches_text(state: TableState, text: str) -> str:
    """Return a sentence about how many live rows match, derived from metadata alone; empty if it has no row counts.

    Raises
    ------
    OptionError
        The filter is invalid.
    """
    from iceexplore.planning import plan_scan

    files = totals(state, read_leaves=False)["data_files"]
    if state.snapshot is None or files is None or files > _MOST_PLANNED:
        return ""
    bounds = _bounds(plan_scan(state, text or None))
    if bounds is None:
        return ""
    least, most = bounds
    if least == most:
        return f"By metadata, {amount(most, 'live row')} {'matches' if most == 1 else 'match'}."
    return f"By metadata, {f'{least:,} to ' if least else 'at most '}{amount(most, 'live row')} match."


def _bounds(plan: ScanPlan) -> tuple[int, int] | None:
    """Return bounds for the number of live rows that match a plan's filter; None if a row count is missing."""
    tasks = plan.files
    records = tasks.files.entries["record_count"]
    if records.null_count:
        return None
    counts = np.asarray(records).astype(np.int64)
    deleted = np.zeros(len(counts), dtype=np.int64)
    unsure = np.zeros(len(counts), dtype=bool)
    matched = tasks.matched
    if len(matched):
        positions = pc.fill_null(matched.deletes.entries["record_count"], 0)
        deleted = np.asarray(pc.fill_null(positions.take(matched.vector), 0)).astype(np.int64)
        for lists in (matched.positions, matched.equality):
            unsure |= np.asarray(pc.fill_null(pc.list_value_length(lists), 0)) > 0
    left = np.maximum(0, counts - deleted)
    # Delete files may delete no row of a file; equality deletes may delete more rows than they have records.
    return int(left[bool_array(tasks.whole) & ~unsure].sum()), int(np.where(unsure, counts, left).sum())
