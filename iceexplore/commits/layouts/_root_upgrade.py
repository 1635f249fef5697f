"""A manifest list of v1-v3 as the rows of a V4 root (proposal, "Upgrade"); what old lists leave out is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits.live_files._locate import readable
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, Manifest, Status, upgrade_entries, whole

__all__ = ["upgraded_rows"]

_COUNTED = {"added": Status.ADDED, "existing": Status.EXISTING, "deleted": Status.DELETED}


def upgraded_rows(state: TableState, root: Manifest) -> EntryBatch:
    """The rows of the root that the first V4 commit writes.

    Early lists do not say how many entries a manifest has (spec: "When null, assume non-zero"), which V4 requires:
    those manifests are read.

    Raises
    ------
    FormatError
        One that has to be read is damaged.
    """
    batch = EntryBatch(root.entries)
    said = batch.entries["manifest_stats"].to_pylist()
    lacking = [i for i, stats in enumerate(said) if stats is None or any(v is None for v in stats.values())]
    if lacking:
        for row, leaf in zip(lacking, state.reader.leaves(root, lacking), strict=True):
            given = {k: v for k, v in (said[row] or {}).items() if v is not None}
            said[row] = {**_counts(readable(leaf)), **given}
        counts = pa.array([sum(s[f"{name}_files_count"] for name in _COUNTED) for s in said], pa.int64())
        batch = batch.with_columns(
            manifest_stats=pa.array(said, batch.entries.schema.field("manifest_stats").type),
            record_count=pc.coalesce(batch.entries["record_count"], counts),
        )
    return upgrade_entries(batch, state.metadata)


def _counts(leaf: Manifest) -> dict[str, Any]:
    status = np.asarray(whole(leaf.entries["status"]).fill_null(int(Status.EXISTING)))
    rows = np.asarray(whole(leaf.entries["record_count"]).fill_null(0))
    sequence = np.asarray(whole(leaf.entries["sequence_number"]).fill_null(0))[status != Status.DELETED]
    out: dict[str, Any] = {"min_sequence_number": int(sequence.min()) if len(sequence) else 0}
    for name, wanted in _COUNTED.items():
        out[f"{name}_files_count"] = int((status == wanted).sum())
        out[f"{name}_rows_count"] = int(rows[status == wanted].sum())
    return out
