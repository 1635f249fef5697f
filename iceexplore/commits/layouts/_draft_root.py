"""Commit in the layout of the V4 draft: each commit writes one root manifest; only large commits also write leaves.

As in the V4 proposal's layout, leaves are changed by manifest DVs, and files above a threshold are flushed to leaves.
Three things differ, as the V4 draft requires: deletion vectors are part of data files' entries, manifest DVs are always
inline, and no delete manifests are written (the ones from before V4 are carried over).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._draft_files import (
    add_draft_files,
    draft_chunks,
    hide,
    only_data,
    refuse_in_draft,
    take_out_of_draft,
)
from iceexplore.commits.layouts._root_builder import DROPPED, Draft, begin, numbers
from iceexplore.commits.layouts._root_files import counts_partitions, refuse_change
from iceexplore.commits.layouts._root_maintenance import Leaf, chosen_leaves, named_leaves
from iceexplore.commits.layouts._root_rows import manifest_counts, with_row_ids
from iceexplore.commits.layouts._summary import summary_of
from iceexplore.commits.live_files._locate import find_files, readable, texts
from iceexplore.commits.model._change import Applied, Change
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.rules._entries import refuse_broken
from iceexplore.errors import UnsupportedError
from iceexplore.manifests import ContentType, EntryBatch, Status, concat_batches, live, whole, write_manifest
from iceexplore.metadata import Dialect

__all__ = ["apply_to_draft_root"]

_DATA, _VECTOR = int(ContentType.DATA), int(ContentType.POSITION_DELETE)


def apply_to_draft_root(change: Change, writer: CommitWriter) -> Applied:
    """Build and write the new snapshot's root manifest, from the change and the base (the state to build on).

    The base may have no snapshot, a root of the V4 draft (even one that Delta Lake wrote), or a manifest list of v1-v3,
    whose manifests the new root then lists unchanged. Locations below the table's location are written as relative
    paths.

    Parameters
    ----------
    change, writer
        As for `apply_to_root`.

    Raises
    ------
    RuleError
        The change breaks a rule; nothing was written.
    UnsupportedError
        The base's root has the dialect of the V4 proposal.
    FormatError
        Metadata that the commit builds on is damaged.
    """
    base = writer.base
    if (root := base.root()) is not None and root.dialect is Dialect.V4_PROPOSAL:
        raise UnsupportedError(
            f"{base.name}: its root manifest has the dialect 'v4-proposal', on which 'v4-draft' cannot build; "
            "start from a snapshot of version 3 or below, or keep dialect='v4-proposal'"
        )
    draft = begin(writer)
    refuse_in_draft(change)
    refuse_change(draft, change)
    taken = take_out_of_draft(draft, change)
    _compact(draft, change)
    _flush(draft, len(only_data(taken.modified)) + int((numbers(change.added.entries["content_type"]) == _DATA).sum()))
    added = add_draft_files(draft, change.added, taken.modified)
    rows, numbered = with_row_ids(draft, _finished(draft))
    refuse_broken(
        rows,
        snapshot_id=writer.snapshot_id,
        sequence_number=writer.sequence_number,
        added=added,
        relaxed=writer.options.relaxed,
        dialect=writer.options.dialect,
    )
    metadata = base.metadata
    data = write_manifest(
        rows,
        content="root",
        metadata=metadata,
        spec_id=metadata.default_spec_id,
        dialect=writer.options.dialect,
        manifest_format=writer.options.manifest_format,
        snapshot_id=writer.snapshot_id,
        relative_to=metadata.location,
    )
    summary = summary_of(
        added=added,
        removed=taken.removed,
        metadata=metadata,
        parent=base.snapshot,
        further={**manifest_counts(draft, rows), **change.summary},
    )
    if (draft.changed and not counts_partitions(metadata)) or len(change.column_files):
        summary.pop("changed-partition-count", None)
    draft.write_files()
    location = writer.new_location("root", f".{writer.options.manifest_format}")
    writer.write(location, data, kind="manifest-list")
    return Applied(location, summary, numbered)


def _finished(draft: Draft) -> EntryBatch:
    """Return the new root's rows: the base's rows with new statuses (except dropped rows), then the added rows.

    A row that becomes DELETED or REPLACED gets this snapshot's id, as in Java (``TrackingBuilder.terminal``). The row
    of a DV keeps its old snapshot id.
    """
    kept = np.flatnonzero(draft.row_status != DROPPED)
    base = draft.rows.take(pa.array(kept))
    fate = draft.row_status[kept]
    ended = np.isin(fate, (int(Status.DELETED), int(Status.REPLACED)))
    # A DV keeps the id of the snapshot that added it (dv_snapshot_id), even if its row becomes DELETED or REPLACED.
    is_vector = np.isin(draft.kind[kept], (_VECTOR, int(ContentType.MANIFEST_DV)))
    snapshot_id = pc.if_else(pa.array(ended & ~is_vector), draft.writer.snapshot_id, base.entries["snapshot_id"])
    hidden = [draft.hidden.get(row, (None, None)) for row in kept.tolist()]
    base = base.with_columns(
        status=pa.array(fate.astype(np.int32)),
        snapshot_id=snapshot_id,
        manifest_dv=None,
        deleted_positions=pa.array([pair[0] for pair in hidden], pa.binary()),
        replaced_positions=pa.array([pair[1] for pair in hidden], pa.binary()),
    )
    return concat_batches([base, *draft.made])


def _flush(draft: Draft, coming: int) -> None:
    """Flush data files and their deletion vectors to leaves if the root would otherwise list too many data files.

    ``coming`` is the number of data files that this commit adds or lists again as MODIFIED.
    """
    o = draft.writer.options
    rows = draft.standing(ContentType.DATA)
    if not len(rows) or len(rows) + (coming if coming <= o.flush_data_files else 0) <= o.flush_data_files:
        return
    rows = np.sort(np.concatenate([rows, draft.standing(ContentType.POSITION_DELETE)]))
    draft.row_status[rows] = DROPPED
    batch = draft.rows.take(pa.array(rows)).with_columns(status=int(Status.EXISTING), manifest_dv=None)
    for part in draft_chunks(batch, o.leaf_entries):
        draft.add_leaf(part, content=ContentType.DATA_MANIFEST, status=Status.ADDED)


def _compact(draft: Draft, change: Change) -> None:
    """Merge and rewrite data manifests.

    `chosen_leaves` chooses them: manifests that the change lists for rewriting (``Change.rewrite_manifests``), small
    ones (option ``compact_leaves``), and those from which a manifest DV removes many entries (``rewrite_leaf_at``).

    If a data manifest from before V4 is rewritten, its files' deletion vectors move from delete manifests to the data
    files' entries. Other deletes stay in their delete manifests, because the V4 draft does not allow them elsewhere.
    Delete manifests that become empty are removed.

    Raises
    ------
    RuleError
        ``files-exist``: a manifest that the change lists for rewriting is not in the root.
    """
    moved: dict[int, set[int]] = {}
    for part in chosen_leaves(draft, change, ContentType.DATA_MANIFEST, named_leaves(draft, change)):
        _rewrite(draft, part, moved)
    if change.rewrite_manifests or moved:
        _drop_moved(draft, moved)


def _rewrite(draft: Draft, leaves: list[Leaf], moved: dict[int, set[int]]) -> None:
    assert draft.root is not None
    read: list[EntryBatch] = []
    for leaf in leaves:
        batch = draft.leaf_rows(leaf.row)
        if batch is None:
            continue
        if not draft.writer.base.reader.leaf(draft.root, leaf.row).dialect.has_root_manifest:
            batch = batch.with_columns(format_version=0)
            read.append(_old_vectors(draft, batch, moved))
        read.append(batch)
        draft.drop_leaf(leaf.row)
    rows = concat_batches(read)
    if len(only_data(rows)):
        for part in draft_chunks(rows, max(len(rows), 1)):
            draft.add_leaf(part, content=ContentType.DATA_MANIFEST, status=Status.ADDED)


def _old_vectors(draft: Draft, data: EntryBatch, moved: dict[int, set[int]]) -> EntryBatch:
    """Find the deletion vectors of the data files in ``data`` in delete manifests from before V4; return their entries.

    Add the entries' positions in each of these delete manifests to ``moved``, by the manifest's row in the base's root.
    """
    assert draft.root is not None
    leaves = [row for row in draft.standing(ContentType.DELETE_MANIFEST).tolist() if row not in draft.changed]
    if not leaves:
        return EntryBatch.empty()
    names = whole(data.entries["location"])
    found = find_files(draft.writer.base.reader, draft.root, texts(()), (), names, rows=leaves, tuples=False)
    here = found.root_row >= 0
    for row, ordinal in zip(found.root_row[here].tolist(), found.ordinal[here].tolist(), strict=True):
        moved.setdefault(row, set()).add(ordinal)
    batch = found.batch.filter(pa.array(here))
    return EntryBatch(batch.entries).with_columns(status=int(Status.EXISTING), manifest_dv=None)


def _drop_moved(draft: Draft, moved: dict[int, set[int]]) -> None:
    """Remove the moved deletion vectors from delete manifests, and delete manifests that have no entries left.

    ``moved`` maps the row of each delete manifest in the root to the positions of its moved deletion vectors.
    """
    assert draft.root is not None
    for row in draft.standing(ContentType.DELETE_MANIFEST).tolist():
        if row in draft.changed:
            continue
        entries = readable(draft.writer.base.reader.leaf(draft.root, row)).entries
        left = set(build.to_pylist(entries["ordinal"].filter(live(entries)))) - moved.get(row, set())
        if not left:
            draft.drop_leaf(row)
        elif row in moved:
            hide(draft, row, set(), moved[row])
