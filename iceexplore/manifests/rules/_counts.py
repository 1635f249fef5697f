"""Counts of a manifest's entries, to compare with those that its row in the root states (``manifest-stats``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.manifests.model._content_entry import NOT_LIVE, ContentType, Status
from iceexplore.metadata import Dialect

__all__ = ["lowest_sequence_number", "stored_counts"]

_COUNTED: Mapping[str, Status] = {"added": Status.ADDED, "existing": Status.EXISTING, "deleted": Status.DELETED}


def stored_counts(entries: pa.Table, dialect: str) -> dict[str, int]:
    """Return the counts of fields 504-506 and 512-514: ``added_files_count``, ``added_rows_count`` and so on.

    All stored entries count, regardless of manifest DVs. In the V4 draft, a row with a data file and its deletion
    vector counts once. The draft does not specify which count includes MODIFIED entries, so a manifest with such
    entries has no counts. A count of rows is left out if any record count in it is unknown.
    """
    columns = entries.select(["content_type", "status", "record_count"])
    if dialect == Dialect.V4_DRAFT:
        columns = columns.filter(pc.not_equal(columns["content_type"], int(ContentType.POSITION_DELETE)))
    status = np.asarray(pc.fill_null(columns["status"], int(Status.EXISTING)))
    rows, unknown = np.asarray(pc.fill_null(columns["record_count"], 0)), np.asarray(columns["record_count"].is_null())
    out: dict[str, int] = {}
    if dialect == Dialect.V4_DRAFT and (status == Status.MODIFIED).any():
        return out
    for name, value in _COUNTED.items():
        mask = status == value
        out[f"{name}_files_count"] = int(np.count_nonzero(mask))
        if not unknown[mask].any():
            out[f"{name}_rows_count"] = int(rows[mask].sum())
    return out


def lowest_sequence_number(entries: pa.Table) -> int | None:
    """Return the lowest data sequence number of the live entries as stored, regardless of manifest DVs.

    Return None if none of them has a number.
    """
    gone = pc.is_in(entries["status"], value_set=NOT_LIVE)
    found = pc.min(entries["sequence_number"].filter(pc.invert(gone))).as_py()
    return None if found is None else int(found)
