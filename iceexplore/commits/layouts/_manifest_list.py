"""Commit in the layout of v1, v2, v3, and of V4 as Java writes it today: a manifest list and manifests.

See the spec, "Manifests", "Manifest Lists" and "Snapshots". Where the spec leaves choices, this module follows Java's
``MergingSnapshotProducer`` without merging (``commit.manifest-merge.enabled=false``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._manifest_list_base import ListBase, has_live, read_base
from iceexplore.commits.layouts._manifest_list_leaves import Filtered, filter_leaves, merge_leaves, new_leaves
from iceexplore.commits.layouts._summary import summary_of
from iceexplore.commits.model._change import Applied, Change
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import OptionError, RuleError
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, live, whole, write_manifest_list

__all__ = ["apply_to_list"]

_DELETE_TYPES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)


def apply_to_list(change: Change, writer: CommitWriter) -> Applied:
    """Write the manifests and the manifest list for a change.

    New files are written to new manifests. Each of these lists files of one partition spec, and at most as many as the
    layout option ``leaf_entries`` allows. Manifests that list removed files are rewritten; all others are carried over
    unchanged. A rewritten manifest without live entries stays in this snapshot's list with its DELETED entries, and the
    next commit leaves it out.

    The DVs of removed data files are removed too (Java: ``removeDanglingDeletesFor``). A commit that removes files also
    removes outdated delete files, which are older than all data files (Java: ``dropDeleteFilesOlderThan``). But if the
    change itself lists delete files or DVs to remove, only the delete manifests that contain one of these are searched
    for outdated delete files (Java: ``canTrustManifestReferences``).

    Raises
    ------
    RuleError
        ``files-exist`` (a file to remove is not live), ``deletes-need-v2`` (the format version does not have this type
        of delete file), ``duplicate-file`` (a file is added twice), ``one-dv`` (a data file would get a second DV).
    UnsupportedError
        The state that the commit builds on has a root manifest.
    OptionError
        The change both rewrites manifests and changes files.
    IceexploreError
        A manifest that the commit builds on cannot be read completely.
    """
    _check(change, writer)
    base = read_base(writer)
    if change.rewrite_manifests:
        return _rewritten(change, base)
    added = change.added
    is_data = pc.equal(added.entries["content_type"], int(ContentType.DATA))
    new_data, new_deletes = (
        added.filter(cast(pa.BooleanArray, whole(is_data))),
        added.filter(cast(pa.BooleanArray, whole(pc.invert(is_data)))),
    )

    data = _filter_data(change, base)
    deletes = _filter_deletes(change, base, data, new_data, new_deletes)
    rows = [*new_leaves(writer, new_data, "data"), *data.rows]
    rows += [*new_leaves(writer, new_deletes, "delete"), *deletes.rows]
    removed = concat_batches([*data.removed, *deletes.removed])
    return _written(change, base, rows, added, removed, {"manifests-replaced": data.replaced + deletes.replaced})


def _rewritten(change: Change, base: ListBase) -> Applied:
    merged = merge_leaves(base, change.rewrite_manifests)
    counts = {"manifests-replaced": merged.replaced, "entries-processed": merged.entries}
    return _written(change, base, merged.rows, EntryBatch.empty(), EntryBatch.empty(), counts)


def _check(change: Change, writer: CommitWriter) -> None:
    """Refuse changes that are invalid by themselves, before anything is read."""
    added, options = change.added.entries, writer.options
    if change.rewrite_manifests and (
        len(change.added) or change.remove_data or change.remove_deletes or change.replace_dvs
    ):
        raise OptionError("rewriting manifests needs a separate commit: this one also changes files")
    kind = added["content_type"]
    positions = np.asarray(pc.equal(kind, int(ContentType.POSITION_DELETE)))
    equality = np.asarray(pc.equal(kind, int(ContentType.EQUALITY_DELETE)))
    vectors = np.asarray(whole(added["deletion_vector"]).is_valid())
    if options.format_version == 1 and (positions.any() or equality.any()):
        raise RuleError("deletes-need-v2", "format version 1 has no delete files; upgrade the table to version 2 first")
    if options.format_version == 2 and vectors.any():
        raise RuleError(
            "deletes-need-v2", "format version 2 has no deletion vectors; upgrade the table to version 3 first"
        )
    if options.format_version >= 3 and (positions & ~vectors).any():
        version = options.format_version
        raise RuleError(
            "deletes-need-v2", f"format version {version} allows deletion vectors, but no new position delete files"
        )
    files = added["location"].filter(pa.array(~vectors))
    twice = len(files) - len(files.unique())
    if twice:
        raise RuleError("duplicate-file", f"{twice} of the new files are listed twice")


def _filter_data(change: Change, base: ListBase) -> Filtered:
    ordinals = base.ordinals(ContentType.DATA_MANIFEST, live=True)
    if not change.remove_data:
        return Filtered([base.rows.take(ordinals)])
    names = _texts(change.remove_data)

    def goes(entries: pa.Table) -> np.ndarray:
        return _is_in(entries, "location", names)

    out = filter_leaves(base, ordinals, "data", goes, manifests=change.data_manifests)
    if change.data_manifests is not None and _missing(names, out.removed, "location"):
        # A concurrent commit may have moved entries to other manifests than ``data_manifests``: search all.
        out = filter_leaves(base, ordinals, "data", goes)
    if not change.ignore_missing:
        _all_found("data file", names, out.removed, "location", base)
    return out


def _filter_deletes(
    change: Change, base: ListBase, data: Filtered, new_data: EntryBatch, new_deletes: EntryBatch
) -> Filtered:
    ordinals = base.ordinals(ContentType.DELETE_MANIFEST, live=True)
    gone = concat_batches(data.removed).entries["location"].unique()
    files, replaced = _texts(change.remove_deletes), _texts(change.replace_dvs)
    removes = bool(len(gone) or len(files) or len(replaced))
    dvs = new_deletes.entries.filter(whole(new_deletes.entries["deletion_vector"]).is_valid())["referenced_file"]
    if not removes and not len(dvs):
        return Filtered([base.rows.take(ordinals)])
    oldest = _oldest_data(base, data, new_data) if removes else 0
    superseded = pa.chunked_array([*_chunks(gone), *_chunks(replaced)], pa.string())

    def named(entries: pa.Table) -> np.ndarray:
        is_dv = np.asarray(whole(entries["deletion_vector"]).is_valid())
        mask = is_dv & _is_in(entries, "referenced_file", superseded)
        return np.asarray(mask | (~is_dv & _is_in(entries, "location", files)))

    # If ``referenced`` is true, outdated delete files are removed only from manifests that contain a delete file or DV
    # that the commit names for removal. The change names them in ``remove_deletes`` and ``replace_dvs``. For the
    # operation "replace", live DVs of the removed data files count as named, too, because Java's rewrite of data files
    # names them. Java's other operations do not.
    referenced = bool(len(files) or len(replaced))
    if not referenced and change.operation == "replace" and oldest:
        held = (named(leaf.entries) & np.asarray(live(leaf.entries)) for _, leaf in base.leaves(ordinals))
        referenced = any(mask.any() for mask in held)

    def goes(entries: pa.Table) -> np.ndarray:
        is_dv = np.asarray(whole(entries["deletion_vector"]).is_valid())
        mask = named(entries)
        if not referenced or (mask & np.asarray(live(entries))).any():
            sequence = np.asarray(pc.fill_null(entries["sequence_number"], 0))
            mask |= (sequence > 0) & (sequence < oldest)
        _refuse_second_dv(entries, is_dv & ~mask & np.asarray(live(entries)), dvs)
        return np.asarray(mask)

    out = filter_leaves(base, ordinals, "delete", goes)
    if not change.ignore_missing:
        _all_found("delete file", files, out.removed, "location", base)
        _all_found("deletion vector of", replaced, out.removed, "referenced_file", base)
    return out


def _refuse_second_dv(entries: pa.Table, staying: np.ndarray, new: AnyChunkedArray) -> None:
    second = staying & _is_in(entries, "referenced_file", new)
    if second.any():
        name = entries["referenced_file"][int(np.flatnonzero(second)[0])].as_py()
        raise RuleError("one-dv", f"{name} already has a deletion vector; the new one must replace it (replace_dvs)")


def _oldest_data(base: ListBase, data: Filtered, new_data: EntryBatch) -> int:
    """Return a lower bound of the data sequence numbers of all data files in the new snapshot.

    A delete file with a data sequence number below this bound applies to no data file and can be removed. The bound is
    the minimum of these numbers: the ``min_sequence_number`` of each data manifest with live entries in ``data``, the
    sequence numbers that ``new_data`` already has, and the table's last sequence number.

    Java does not consider the new data files. This function does: a compaction may give them sequence numbers that are
    lower than those in the old manifests, and a delete file that still applies to one of them must stay.

    Parameters
    ----------
    data
        The rows of the data manifests after this commit's data files were removed from them.
    new_data
        The entries of the new data files. Their sequence numbers are null unless a compaction set them.
    """
    numbers: list[int | None] = [base.writer.base.metadata.last_sequence_number]
    for batch in data.rows:
        stats = whole(batch.entries["manifest_stats"])
        first = pc.fill_null(pc.struct_field(stats, "min_sequence_number"), 0)
        numbers.append(pc.min(first.filter(pa.array(has_live(cast(pa.StructArray, stats))))).as_py())
    numbers.append(pc.min(new_data.entries["sequence_number"]).as_py())
    return min(n for n in numbers if n is not None)


def _written(
    change: Change,
    base: ListBase,
    rows: list[EntryBatch],
    added: EntryBatch,
    removed: EntryBatch,
    counts: dict[str, int],
) -> Applied:
    writer, metadata, parent = base.writer, base.writer.base.metadata, base.writer.base.snapshot
    batch = concat_batches(rows)
    added_rows = None
    if writer.options.format_version >= 3:
        batch, added_rows = _with_row_ids(batch, writer.first_row_id or 0)
    data = write_manifest_list(
        batch,
        metadata=metadata,
        dialect=writer.options.dialect,
        snapshot_id=writer.snapshot_id,
        parent_snapshot_id=None if parent is None else parent.snapshot_id,
        sequence_number=writer.sequence_number,
        first_row_id=writer.first_row_id,
    )
    location = writer.new_location(f"snap-{writer.snapshot_id}-{writer.attempt}", ".avro")
    writer.write(location, data, kind="manifest-list")
    created = pc.sum(pc.equal(batch.entries["snapshot_id"], writer.snapshot_id)).as_py() or 0
    all_counts = {"manifests-created": created, "manifests-kept": len(batch) - created, **counts}
    further = {name: str(count) for name, count in all_counts.items()} | dict(change.summary)
    summary = summary_of(added=added, removed=removed, metadata=metadata, parent=parent, further=further)
    return Applied(location, summary, added_rows)


def _with_row_ids(batch: EntryBatch, next_row_id: int) -> tuple[EntryBatch, int]:
    """Assign a ``first_row_id`` to each data manifest that has none.

    Such a manifest is new, or was written before the table was upgraded to v3. It gets as many row ids as its ADDED and
    EXISTING files have rows. EXISTING files are included because they, too, may have no row ids yet (spec, "First Row
    ID Assignment").

    Parameters
    ----------
    batch
        The rows of the new manifest list.
    next_row_id
        The first row id to assign.

    Returns
    -------
    EntryBatch, int
        The rows with the assigned ids, and how many row ids were assigned in total.
    """
    entries = batch.entries
    stats = whole(entries["manifest_stats"])
    given = entries["first_row_id"]
    counts = [pc.fill_null(pc.struct_field(stats, n), 0) for n in ("added_rows_count", "existing_rows_count")]
    is_data = pc.equal(entries["content_type"], int(ContentType.DATA_MANIFEST))
    unset = np.asarray(pc.and_(given.is_null(), is_data))
    rows = np.where(unset, np.asarray(pc.add(*counts)), 0)
    assigned = pa.array(next_row_id + np.cumsum(rows) - rows, pa.int64(), mask=~unset)
    return batch.with_columns(first_row_id=pc.coalesce(given, assigned)), int(rows.sum())


def _texts(values: Iterable[str]) -> AnyArray:
    return pa.array(list(values), pa.string())


def _chunks(values: AnyColumn) -> list[AnyArray]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


def _is_in(entries: pa.Table, column: str, values: AnyColumn) -> np.ndarray:
    if not len(values):
        return np.zeros(len(entries), dtype=np.bool_)
    named = pc.and_(pc.is_in(entries[column], value_set=values), entries[column].is_valid())
    return np.asarray(named)


def _missing(names: AnyArray, removed: list[EntryBatch], column: str) -> list[str]:
    there = concat_batches(removed).entries[column]
    return build.to_pylist(names.filter(pc.invert(pc.is_in(names, value_set=there))))


def _all_found(what: str, names: AnyArray, removed: list[EntryBatch], column: str, base: ListBase) -> None:
    missing = _missing(names, removed, column)
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        snapshot = base.writer.base.snapshot
        where = "a table without a snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
        raise RuleError(
            "files-exist", f"{what} {', '.join(missing[:5])}{more}: not live in {where}; see inspect.files()"
        )
