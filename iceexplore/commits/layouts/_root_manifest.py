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
    """Return the ids of the rules that commits with these options may break.

    These are the rules listed in `LayoutOptions.relaxed`, and if `LayoutOptions.dv_attached` is set, the rules that a
    root with attached manifest DVs always breaks (`VIOLATED_BY_ATTACHING`).
    """
    return tuple(sorted({*options.relaxed, *(VIOLATED_BY_ATTACHING if options.dv_attached else ())}))


def apply_to_root(change: Change, writer: CommitWriter) -> Applied:
    """Build and write the new snapshot's root manifest, from the change and the base (the state to build on).

    The base may have a root manifest, or no snapshot yet. It may also have a manifest list of v1-v3; then the new root
    lists the manifests of this list unchanged (proposal, "Upgrade"). If these manifests contain paths relative to a
    working directory, V4 misinterprets them, because it resolves relative paths against the table's location.

    Leaves are read only for these purposes: to find files to remove; to compact leaves; to find out which data manifest
    lists the data file of a DV, if delete manifests are to be affiliated with data manifests; to merge delete
    manifests; and to count the entries of a manifest if the base's root or manifest list lacks the counts. An append
    for which none of this is necessary reads no leaf.

    Parameters
    ----------
    change
        The file changes. Locations of files to remove must be spelled as in the table's metadata. An added file that
        a *leaf* of the base already lists is not refused, because all leaves would have to be read (`check_rules` finds
        such files). Position delete files from v2 stay in their old leaves, and these leaves are never rewritten.

        If the commit removes files from leaves, it does not read the partitions of these files, and the summary has no
        ``changed-partition-count``. If the table property ``write.summary.partition-limit`` is set to another value
        than 0, the partitions are read, and the summary has the count. Totals that the base's summary lacks are left
        out, as in Java (``SnapshotProducer.updateTotal``).
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
    """Return all rows of the new root.

    First come the rows of the base's root, each with its status in the new root; rows with the status `DROPPED` are
    left out. Then come the rows that the commit adds: files, leaves and manifest DVs.
    """
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
    """Return the new root's column ``referenced_file``, updated after compaction replaced data manifests.

    In the row of a delete manifest, this column has the location of the data manifest with which the delete manifest is
    affiliated. If compaction replaced this data manifest, the location becomes that of the new data manifest, or null
    if no entries were left to write. The rows of DELETED delete manifests, and of files and manifest DVs, stay
    unchanged.

    Parameters
    ----------
    entries
        The rows of the new root.
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
