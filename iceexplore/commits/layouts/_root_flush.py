"""Flushing: what has stood in the root for longer goes to leaves, so that the root stays small.

Only what was there before this commit is flushed (proposal, "Manifest Compaction": nothing that a commit adds goes to a
manifest that is not ADDED), and all of it at once: flushing the excess alone would write a small leaf in every commit.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.commits.layouts._root_affinity import add_delete_leaves, owners_of
from iceexplore.commits.layouts._root_builder import GONE, Draft, chunks, numbers
from iceexplore.commits.model._change import Change
from iceexplore.manifests import ContentType, EntryBatch, Status, concat_batches, whole

__all__ = ["flush_root"]

_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)


def flush_root(draft: Draft, change: Change) -> None:
    """Flush data files, then deletes, if with those that this commit adds there would be too many in the root."""
    o = draft.writer.options
    kind = numbers(change.added.entries["content_type"])
    data, deletes = int((kind == ContentType.DATA).sum()), int((kind != ContentType.DATA).sum())
    rows = draft.standing(ContentType.DATA)
    if len(rows) and len(rows) + (data if data <= o.flush_data_files else 0) > o.flush_data_files:
        for part in chunks(_leaving(draft, rows), o.leaf_entries):
            location = draft.add_leaf(part, content=ContentType.DATA_MANIFEST, status=Status.EXISTING)
            draft.fresh.append((location, whole(part.entries["location"])))
    rows = draft.standing(*_DELETES)
    if len(rows) and len(rows) + (deletes if deletes <= o.flush_delete_files else 0) > o.flush_delete_files:
        _flush_deletes(draft, rows)


def _leaving(draft: Draft, rows: np.ndarray) -> EntryBatch:
    draft.fate[rows] = GONE
    return draft.rows.take(pa.array(rows)).with_columns(status=int(Status.EXISTING), manifest_dv=None)


def _flush_deletes(draft: Draft, rows: np.ndarray) -> None:
    o = draft.writer.options
    if o.affinity == "all":
        batch = draft.rows.take(pa.array(rows))
        equality = numbers(batch.entries["content_type"]) == ContentType.EQUALITY_DELETE
        owned = np.asarray(owners_of(draft, batch).is_valid())
        going = rows[owned | equality]  # a DV whose data file stands in the root stays there with it
        if len(going):
            add_delete_leaves(draft, _leaving(draft, going), Status.EXISTING, affiliate=True)
        return
    loose = _unaffiliated(draft)
    batch = _leaving(draft, rows)
    wanted = sum(1 for _ in chunks(batch, o.leaf_entries))
    if o.affinity == "none" or len(loose) + wanted <= o.unaffiliated_manifests:
        add_delete_leaves(draft, batch, Status.EXISTING, affiliate=False)
        return
    parts = [batch]
    for row in loose:
        held = draft.leaf_rows(row)
        if held is not None:
            draft.drop_leaf(row)
            parts.append(held)
    add_delete_leaves(draft, concat_batches(parts), Status.EXISTING, affiliate=True)


def _unaffiliated(draft: Draft) -> list[int]:
    """Unaffiliated delete manifests that this commit does not change."""
    owner = whole(draft.rows.entries["referenced_file"])
    rows = draft.standing(ContentType.DELETE_MANIFEST).tolist()
    return [row for row in rows if row not in draft.changed and not owner[row].is_valid]
