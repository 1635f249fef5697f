"""Compare the live files of a manifest list or root manifest with the totals in the snapshot's summary.

A manifest list that lost a record, or whose content types, counts or rows were changed, is still readable. Only the
totals in the summary, which is in another file, reveal the damage. No further file is read, so numbers that the root
does not have are not compared: counts that it leaves out, and rows of a manifest from which a manifest DV removes
entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._arrow import bool_array, whole
from iceexplore.manifests.model._content_entry import ContentType, live
from iceexplore.storage import canonical

__all__ = ["LiveTotals", "TOTALS_DIFFER", "live_totals", "total_problems"]

#: The code of these problems. They are warnings, because it is unknown which side is wrong; strict reading raises them.
TOTALS_DIFFER = "totals-differ"

_MANIFESTS = (int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST))
_DELETES = (int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE))


@dataclass(frozen=True)
class LiveTotals:
    """Totals of the live files of a root; None where the root does not state them.

    Attributes
    ----------
    data_files, delete_files
        Number of files.
    records, deletes
        The number of rows in the data files, and of deletes: deleted positions and rows of equality delete files.
    """

    data_files: int | None
    records: int | None
    delete_files: int | None
    deletes: int | None


def live_totals(entries: pa.Table, dv_rows: Mapping[str, Sequence[int]]) -> LiveTotals:
    """Add up the live files of a root and the counts of its live manifests.

    Parameters
    ----------
    dv_rows
        The rows of the live manifest DVs by the canonical location of their manifest; see `Manifest.dv_rows`.
    """
    kinds = np.asarray(pc.fill_null(entries["content_type"], -1))
    mine = bool_array(live(entries))
    stats = whole(entries["manifest_stats"])
    removed = _removed(entries, dv_rows)
    found: list[int | None] = []
    data = (int(ContentType.DATA),)
    for files, manifest in ((data, ContentType.DATA_MANIFEST), (_DELETES, ContentType.DELETE_MANIFEST)):
        own = mine & np.isin(kinds, files)
        leaves = np.flatnonzero(mine & (kinds == manifest))
        counts = stats.take(pa.array(leaves, pa.int64()))
        gone = removed[leaves]
        held = _sum(cast(pa.StructArray, counts), "added_files_count", "existing_files_count")
        if held is not None:
            held = None if (gone < 0).any() else held + int(own.sum()) - int(gone.sum())
        rows = None if gone.any() else _sum(cast(pa.StructArray, counts), "added_rows_count", "existing_rows_count")
        records = entries["record_count"].filter(pa.array(own))
        if rows is not None:
            rows = None if records.null_count else rows + int(pc.sum(records).as_py() or 0)
        found += [held, rows]
    if found[0] is None:  # data manifests without counts may also have deletion vectors on their entries
        found[2:] = [None, None]
    return LiveTotals(*found)


def total_problems(
    location: str,
    entries: pa.Table,
    dialect: str,
    dv_rows: Mapping[str, Sequence[int]],
    summary: Mapping[str, str] | None,
) -> list[Problem]:
    """Compare the totals of a snapshot's summary with its root; return a problem with both numbers for each difference.

    The V4 draft does not specify which count includes MODIFIED entries of a manifest, nor whether a deletion vector on
    a data file's entry counts as a delete file. So only data files are compared, and only if the root has no manifests.
    """
    if not summary:
        return []
    stated = {key: _number(summary.get(f"total-{key}")) for key in _KEYS}
    if all(value is None for value in stated.values()):
        return []
    found = live_totals(entries, dv_rows)
    if dialect == "v4-draft":
        manifests = pc.is_in(entries["content_type"], pa.array(_MANIFESTS, pa.int32()))
        if pc.any(manifests).as_py():
            return []
        found = LiveTotals(found.data_files, found.records, None, None)
    positions, equality = stated["position-deletes"], stated["equality-deletes"]
    deletes = None if positions is None or equality is None else positions + equality
    compared = (
        ("total-data-files", stated["data-files"], found.data_files, "data files"),
        ("total-records", stated["records"], found.records, "rows in data files"),
        ("total-delete-files", stated["delete-files"], found.delete_files, "delete files"),
        ("total-position-deletes + total-equality-deletes", deletes, found.deletes, "rows in delete files"),
    )
    return [
        problem(
            TOTALS_DIFFER,
            location,
            f"The snapshot's summary has {stated_total:,} {what}, but its manifests' counts add up to {counted:,}: "
            "one of the two is wrong, and rows may be missing or deleted rows may reappear.",
            field=field,
            found=counted,
            expected=stated_total,
        )
        for field, stated_total, counted, what in compared
        if stated_total is not None and counted is not None and stated_total != counted
    ]


_KEYS = ("data-files", "records", "delete-files", "position-deletes", "equality-deletes")


def _removed(entries: pa.Table, dv_rows: Mapping[str, Sequence[int]]) -> npt.NDArray[np.int64]:
    """Return the number of entries that manifest DVs remove from the manifest in each row; -1 where not stated."""
    out = np.zeros(len(entries), np.int64)
    if not dv_rows:
        return out
    columns = entries.select(["content_type", "record_count"])
    names = build.to_pylist(entries["location"])
    by_leaf: dict[str, int] = {}
    for leaf, rows in dv_rows.items():
        own = build.to_pylist(columns.take(pa.array(list(rows), pa.int64())))
        known = all(r["content_type"] == ContentType.MANIFEST_DV and r["record_count"] is not None for r in own)
        by_leaf[leaf] = sum(r["record_count"] for r in own) if known else -1
    for row, kind in enumerate(build.to_pylist(entries["content_type"])):
        if kind in _MANIFESTS and names[row]:
            out[row] = by_leaf.get(canonical(names[row]), 0)
    return out


def _sum(counts: pa.StructArray, *names: str) -> int | None:
    """Return the sum of some counts over all manifests; None if any is null."""
    columns = [pc.struct_field(counts, name) for name in names]
    if any(c.null_count for c in columns):
        return None
    return sum(int(pc.sum(c).as_py() or 0) for c in columns)


def _number(text: object) -> int | None:
    """Return a total as a number; None if it is not a valid one."""
    if not isinstance(text, str) or len(text) > 20:
        return None
    try:
        return int(text)
    except ValueError:
        return None
