"""Counts of a manifest's entries, to compare with those that its row in the root states (``manifest-stats``)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.manifests.model._content_entry import ContentType, Status
from iceexplore.metadata import Dialect

__all__ = ["lowest_sequence_number", "stored_counts"]

_COUNTED: Mapping[str, Status] = {"added": Status.ADDED, "existing": Status.EXISTING, "deleted": Status.DELETED}


def stored_counts(entries: pa.Table, dialect: str) -> dict[str, int]:
    """Return the counts 504-506 and 512-514 of the entries: ``added_files_count``, ``added_rows_count`` and so on.

    All stored entries count, regardless of manifest DVs. In the V4 draft, rows are counted, and not the deletion
    vectors in them. The draft does not specify which count includes MODIFIED entries, so there are no counts of
    manifests with any. Counts of rows are left out where a record count is unknown.
    """
    columns = entries.select(["content_type", "status", "record_count"])
    if dialect == Dialect.V4_DRAFT:
        columns = columns.filter(pc.not_equal(columns["content_type"], int(ContentType.POSITION_DELETE)))
    status = pc.fill_null(columns["status"], int(Status.EXISTING))
    out: dict[str, int] = {}
    if dialect == Dialect.V4_DRAFT and pc.any(pc.equal(status, int(Status.MODIFIED))).as_py():
        return out
    for name, value in _COUNTED.items():
        mask = pc.equal(status, int(value))
        out[f"{name}_files_count"] = pc.sum(mask).as_py() or 0
        rows = columns["record_count"].filter(mask)
        if not rows.null_count:
            out[f"{name}_rows_count"] = pc.sum(rows).as_py() or 0
    return out


def lowest_sequence_number(entries: pa.Table) -> int | None:
    """Return the lowest data sequence number of the live entries as stored, regardless of manifest DVs.

    None if there is no number.
    """
    status = pc.fill_null(entries["status"], int(Status.EXISTING))
    gone = pc.is_in(status, pa.array([int(Status.DELETED), int(Status.REPLACED)], pa.int32()))
    found = pc.min(entries["sequence_number"].filter(pc.invert(gone))).as_py()
    return None if found is None else int(found)
