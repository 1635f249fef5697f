"""Complete a new V4 root: assign row ids to files and manifests, and count manifests for the summary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._root_builder import Draft, numbers
from iceexplore.manifests import ContentType, EntryBatch, Status, live, whole

__all__ = ["manifest_counts", "with_row_ids"]

_LEAVES = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)


def with_row_ids(draft: Draft, rows: EntryBatch) -> tuple[EntryBatch, int | None]:
    """Assign ``first_row_id`` to each live data file and data manifest in the root that has none.

    A data file uses up one row id per row. A new data manifest uses up one row id per row of its files without a
    ``first_row_id``. An old data manifest has no ``first_row_id`` if it is from before the table had row ids; it uses
    up one row id per row of all its ADDED and EXISTING files (spec, "First Row ID Assignment").

    Parameters
    ----------
    rows
        The rows of the new root.

    Returns
    -------
    EntryBatch, int | None
        The rows with ``first_row_id``, and the number of row ids used up. If the table has no row ids (the commit's
        writer has no ``first_row_id``), the rows are returned unchanged, and the number is None.
    """
    first = draft.writer.first_row_id
    if first is None:
        return rows, None
    entries = rows.entries
    kind, status = numbers(entries["content_type"]), numbers(entries["status"])
    ids = whole(entries["first_row_id"])
    null = np.asarray(ids.is_null()) & (status != Status.DELETED)
    need = np.where(null & (kind == ContentType.DATA), numbers(entries["record_count"]), 0)
    for row in np.flatnonzero(null & (kind == ContentType.DATA_MANIFEST)).tolist():
        need[row] = _rows_without_id(draft, entries.slice(row, 1))
    wanted = null & ((kind == ContentType.DATA) | (kind == ContentType.DATA_MANIFEST))
    before = np.cumsum(need) - need
    given = pc.coalesce(ids, pa.array(before + np.int64(first), mask=~wanted))
    return rows.with_columns(first_row_id=given), int(need.sum())


def _rows_without_id(draft: Draft, row: pa.Table) -> int:
    location = row["location"][0].as_py()
    if location in draft.unnumbered:
        return draft.unnumbered[location]
    stats = row["manifest_stats"][0].as_py()  # no count is null: begin() computed those that the base's root lacks
    return int(stats["added_rows_count"] + stats["existing_rows_count"])


def manifest_counts(draft: Draft, rows: EntryBatch) -> dict[str, str]:
    """Return ``manifests-created``, ``-kept`` and ``-replaced``; as in Java, these count leaves but not the root."""
    manifests = np.isin(draft.kind, _LEAVES)
    new = rows.entries.filter(pa.array(np.isin(numbers(rows.entries["content_type"]), _LEAVES)))
    kept = int((manifests & (draft.row_status == Status.EXISTING)).sum())
    return {
        "manifests-created": str(int(np.asarray(live(new)).sum()) - kept),
        "manifests-kept": str(kept),
        "manifests-replaced": str(int((manifests & (draft.row_status == Status.DELETED)).sum())),
    }
