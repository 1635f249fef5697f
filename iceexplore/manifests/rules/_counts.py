"""Counts of a manifest's entries, to compare with those that its row in the root states (``manifest-stats``)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.manifests.model._content_entry import ContentType, Status
from iceexplore.metadata import Dialect

__all__ = ["file_counts", "lowest_sequence_number", "row_counts"]

_COUNTED: Mapping[str, Status] = {"added": Status.ADDED, "existing": Status.EXISTING, "deleted": Status.DELETED}


def file_counts(entries: pa.Table, dialect: str) -> dict[str, int]:
    """Count the entries by status, as ``added_files_count`` and so on; empty if that is not specified.

    All stored entries count, regardless of manifest DVs. In the V4 draft rows count, not the deletion vectors in them.
    The draft does not specify which count includes MODIFIED entries, so there are no counts of manifests with any.
    """
    status = pc.fill_null(_counted(entries, dialect)["status"], int(Status.EXISTING))
    if dialect == Dialect.V4_DRAFT and pc.any(pc.equal(status, int(Status.MODIFIED))).as_py():
        return {}
    return {
        f"{name}_files_count": pc.sum(pc.equal(status, int(value))).as_py() or 0 for name, value in _COUNTED.items()
    }


def row_counts(entries: pa.Table, dialect: str) -> dict[str, int]:
    """Add up the record counts by status, as ``added_rows_count`` and so on; without those of unknown record counts.

    See `file_counts` for which entries count.
    """
    entries = _counted(entries, dialect)
    status = pc.fill_null(entries["status"], int(Status.EXISTING))
    out: dict[str, int] = {}
    if dialect == Dialect.V4_DRAFT and pc.any(pc.equal(status, int(Status.MODIFIED))).as_py():
        return out
    for name, value in _COUNTED.items():
        rows = entries["record_count"].filter(pc.equal(status, int(value)))
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


def _counted(entries: pa.Table, dialect: str) -> pa.Table:
    columns = entries.select(["content_type", "status", "record_count"])
    if dialect != Dialect.V4_DRAFT:
        return columns
    return columns.filter(pc.not_equal(columns["content_type"], int(ContentType.POSITION_DELETE)))
