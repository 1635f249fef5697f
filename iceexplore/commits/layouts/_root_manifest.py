"""Commit in the V4 proposal's layout: a root manifest, and leaves only if a commit is large ("Commit Procedure")."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._root_builder import DROPPED, Draft, begin, numbers
from iceexplore.commits.layouts._root_files import add_files, counts_partitions, refuse_change, take_out
from iceexplore.commits.layouts._root_maintenance import compact_leaves, flush_root
from iceexplore.commits.layouts._root_manifest_dvs import VIOLATED_BY_ATTACHING, place_dvs
from iceexplore.commits.layouts._root_rows import manifest_counts, with_row_ids
from iceexplore.commits.layouts._summary import summary_of
from iceexplore.commits.model._change import Applied, Change
from iceexplore.commits.model._options import LayoutOptions
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.rules._entries import refuse_broken
from iceexplore.manifests import ContentType, EntryBatch, Status, concat_batches, whole, write_manifest

__all__ = ["apply_to_root", "rules_violated_by"]


def rules_violated_by(options: LayoutOptions) -> tuple[str, ...]:
    """Return the rules that a layout breaks on purpose: the ``relaxed`` ones, and those that ``dv_attached`` breaks."""
    return tuple(sorted({*options.relaxed, *(VIOLATED_BY_ATTACHING if options.dv_attached else ())}))


def apply_to_root(change: Change, writer: CommitWriter) -> Applied:
    """Build and write the new snapshot's root manifest, from the change and the base (the state to build on).

    The base may have no snapshot, a root manifest, or a manifest list of v1-v3, whose manifests the new root
    then lists unchanged (proposal, "Upgrade"). If these manifests contain paths relative to a working directory, V4
    misinterprets them, because it resolves relative paths against the table's location. Leaves are read only to find
    files to remove, to compact leaves, and to affiliate delete manifests. An append that does none of this reads none.

    Parameters
    ----------
    change
        The file changes. Locations of files to remove must be spelled as in the table's metadata. An added file that
        a *leaf* of the base already lists is not refused, because all leaves would have to be read (`check_rules` finds
        such files). Position delete files from v2 stay in their old leaves, and these leaves are never rewritten.

        If files are removed from leaves, the summary has no ``changed-partition-count``, because the files' partitions
        would have to be read. They are read and counted only if the table property ``write.summary.partition-limit`` is
        above 0. Totals that the base's summary lacks are left out, as in Java (``SnapshotProducer.updateTotal``).
    writer
        The writer of the commit. Files are written only after all checks, so that a refused change leaves none behind.

    Raises
    ------
    RuleError
        The change breaks a rule; nothing was written.
    FormatError
        Metadata that the commit builds on is damaged.
    """
    draft = begin(writer)
    refuse_change(draft, change)
    removed = take_out(draft, change)
    compact_leaves(draft, change)
    flush_root(draft, change)
    place_dvs(draft)
    added = add_files(draft, change.added)
    rows, numbered = with_row_ids(draft, _finished(draft))
    refuse_broken(
        rows,
        snapshot_id=writer.snapshot_id,
        sequence_number=writer.sequence_number,
        added=added,
        relaxed=rules_violated_by(writer.options),
    )
    o, metadata = writer.options, writer.base.metadata
    data = write_manifest(
        rows,
        content="root",
        metadata=metadata,
        spec_id=metadata.default_spec_id,
        dialect=o.dialect,
        manifest_format=o.manifest_format,
        partition_storage=o.partition_storage,
        snapshot_id=writer.snapshot_id,
    )
    summary = summary_of(
        added=added,
        removed=removed,
        metadata=metadata,
        parent=writer.base.snapshot,
        further={**manifest_counts(draft, rows), **change.summary},
    )
    if draft.changed and not counts_partitions(metadata):
        summary.pop("changed-partition-count", None)
    draft.write_files()
    location = writer.new_location("root", f".{o.manifest_format}")
    writer.write(location, data, kind="manifest-list")
    return Applied(location, summary, numbered)


def _finished(draft: Draft) -> EntryBatch:
    """Return the new root's rows: the base's rows with new statuses (except dropped rows), then the added rows."""
    kept = np.flatnonzero(draft.row_status != DROPPED)
    base = draft.rows.take(pa.array(kept))
    fate = draft.row_status[kept]
    snapshot_id = pc.if_else(pa.array(fate == Status.DELETED), draft.writer.snapshot_id, base.entries["snapshot_id"])
    base = base.with_columns(
        status=pa.array(fate.astype(np.int32)),
        snapshot_id=snapshot_id,
        manifest_dv=None,
        deletion_vector=_vectors(draft, kept, base),
    )
    rows = concat_batches([base, *draft.made])
    if not draft.moved:
        return rows
    return rows.with_columns(referenced_file=_owners(draft, rows.entries))


def _vectors(draft: Draft, kept: np.ndarray, base: EntryBatch) -> AnyColumn:
    column = base.entries["deletion_vector"]
    if not draft.attached:
        return column
    values = column.to_pylist()
    places = {row: i for i, row in enumerate(kept.tolist())}
    for row, vector in draft.attached.items():
        values[places[row]] = vector
    return build.array(values, column.type)


def _owners(draft: Draft, entries: pa.Table) -> AnyArray:
    """Return the column ``referenced_file`` with the new locations of the data manifests that compaction replaced.

    Only the rows of live delete manifests are changed.
    """
    owners = whole(entries["referenced_file"])
    old = pa.array(list(draft.moved), pa.string())
    at = pc.index_in(owners, value_set=old)
    mine = numbers(entries["content_type"]) == ContentType.DELETE_MANIFEST
    mine &= numbers(entries["status"]) != Status.DELETED
    concerned = pc.and_(at.is_valid(), pa.array(mine))
    moved = pa.array(list(draft.moved.values()), pa.string()).take(at)
    found: AnyArray = pc.if_else(concerned, moved, owners)
    return found
