"""Check whether a change may still be applied after concurrent commits.

Spec, "Commit Conflict Resolution and Retry": appends have no requirements; operations that replace or delete files
verify that these files are still live; deletes by expression always apply. All other validations, and the choice of
operations to which each applies, follow Java (`MergingSnapshotProducer` and its callers, with the settings of Spark's
writes).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._find import find_files
from iceexplore.commits.live_files._locate import readable
from iceexplore.commits.model._change import Change
from iceexplore.errors import CommitConflictError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, Manifest, concat_batches, live, whole
from iceexplore.metadata import Snapshot, TableMetadata
from iceexplore.planning import partition_keys

__all__ = ["Step", "steps_between", "validate"]

#: Operations that may add new rows (Java: VALIDATE_ADDED_FILES_OPERATIONS). A replace only writes existing rows again.
_ADDING = ("append", "overwrite")
_FILE_PATH = 2147483546
#: After this many conflicting files, a search in the partitions that a change has read stops: a conflict's message does
#: not need more.
_NAMED = 100
_MANIFESTS = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)


@dataclass(frozen=True)
class Step:
    """The data and delete files that one concurrent commit added to the table and removed from it.

    Attributes
    ----------
    snapshot
        The commit's snapshot. None if the snapshot for which the change was made is not an ancestor of the current one:
        the commits in between are then unknown, and the step is the difference between these two snapshots.
    added, removed
        The entries of the files that the commit made live, and of those that were live before it and are not live
        after it. ``referenced_file`` is set for a position delete file whose bounds name a single data file.
    updated
        V4 draft: the data files to which the commit added column files. The keys are the data files' locations; the
        values are the ids of the fields in the new column files.
    updated_files
        The entries of the data files in ``updated``.
    """

    snapshot: Snapshot | None
    added: EntryBatch
    removed: EntryBatch
    updated: Mapping[str, frozenset[int]]
    updated_files: EntryBatch

    @property
    def adds_rows(self) -> bool:
        """Whether the added data files contain rows that are new to the table."""
        return self.snapshot is None or self.snapshot.operation is None or self.snapshot.operation in _ADDING


def validate(change: Change, start: TableState, current: TableState) -> None:
    """Check that a change made for the state ``start`` may be applied to the newer state ``current``.

    The snapshot of each state is the head of the branch to which the change is committed.

    Raises
    ------
    CommitConflictError
        The change conflicts with another commit; the error names the rule and the files.
    """
    if _is_append(change) or _same_head(start, current):
        return
    wanted = () if change.conflict_filter is None else change.conflict_filter.stats_ids
    steps = steps_between(start, current, field_ids=wanted)
    _check_removed(change, steps)
    _check_vectors(change, steps)
    _check_new_deletes(change, steps, start)
    _check_column_files(change, steps)
    _check_new_files(change, steps, current.metadata)
    _check_duplicates(change, steps)


def steps_between(start: TableState, current: TableState, *, field_ids: Collection[int] = ()) -> list[Step]:
    """Return the changes of each commit after ``start`` up to ``current``, oldest first.

    The root of each snapshot is read. A leaf is read only if it is new or dropped in a snapshot, or if its manifest
    DVs have changed. If the snapshot of ``start`` is not an ancestor of the snapshot of ``current``, the only step is
    the difference between these two snapshots.

    Parameters
    ----------
    field_ids
        Ids of the columns whose statistics are kept for the added and updated files of each step.
    """
    base = None if start.snapshot is None else start.snapshot.snapshot_id
    chain: list[Snapshot] = []
    at = current.snapshot
    seen: set[int] = set()
    while at is not None and at.snapshot_id != base and at.snapshot_id not in seen:
        seen.add(at.snapshot_id)
        chain.append(at)
        parent = at.parent_snapshot_id
        at = None if parent is None else current.metadata.snapshot(parent)
    if (at is None) != (base is None):
        return [_step(None, start.root(), current.root(), start, current, field_ids)]
    before = start.root()
    steps = []
    for snapshot in reversed(chain):
        after = current.root(snapshot)
        steps.append(_step(snapshot, before, after, current, current, field_ids))
        before = after
    return steps


def _step(
    snapshot: Snapshot | None,
    before: Manifest | None,
    after: Manifest | None,
    old: TableState,
    new: TableState,
    field_ids: Collection[int],
) -> Step:
    left, right = _leaves(before), _leaves(after)
    same = {key for key in left.keys() & right.keys() if old.storage.key(key[0]) == new.storage.key(key[0])}
    was = _files(old, before, [row for key, row in left.items() if key not in same], ())
    now = _files(new, after, [row for key, row in right.items() if key not in same], field_ids)
    key_was, key_now = _keys(was.entries), _keys(now.entries)
    added = now.filter(_mask(pc.invert(pc.is_in(key_now, value_set=key_was))))
    removed = was.filter(_mask(pc.invert(pc.is_in(key_was, value_set=key_now))))
    updated = _updated(was.entries, now.entries)
    files = now.filter(_mask(pc.is_in(now.entries["location"], value_set=pa.array(list(updated), pa.string()))))
    return Step(snapshot, added, removed, updated, files)


def _updated(was: pa.Table, now: pa.Table) -> dict[str, frozenset[int]]:
    """Return which columns of which data files were updated by new column files (V4 draft).

    ``was`` has the entries of files before a commit, and ``now`` those after it. The keys of the result are the
    locations of data files that are in both. The values are the ids of the fields in the column files that only ``now``
    lists.
    """
    if now["column_files"].null_count == len(now):
        return {}
    before, after = (
        {
            (name, one["location"]): one["field_ids"] or ()
            for name, files in zip(*(build.to_pylist(t[c]) for c in ("location", "column_files")), strict=True)
            for one in files or ()
        }
        for t in (was, now)
    )
    known = set(build.to_pylist(was["location"]))
    found: dict[str, frozenset[int]] = {}
    for (name, location), ids in after.items():
        if name in known and (name, location) not in before:
            found[name] = found.get(name, frozenset()) | frozenset(ids)
    return found


def _leaves(root: Manifest | None) -> dict[tuple[str, tuple[str, ...]], int]:
    """Return the row number, in the entries of ``root``, of each live manifest.

    The result is empty if ``root`` is None, because the table has no snapshot yet. A key consists of the manifest's
    location and of a text for each manifest DV that applies to it, so the key changes if the manifest DVs change.
    """
    if root is None:
        return {}
    columns = ["content_type", "location", "referenced_file", "deletion_vector"]
    kinds = pc.is_in(root.entries["content_type"], pa.array([*_MANIFESTS, ContentType.MANIFEST_DV], pa.int32()))
    rows = np.flatnonzero(np.asarray(pc.fill_null(pc.and_(live(root.entries), kinds), False)))
    picked = root.entries.select(columns).take(build.array(rows)).to_pylist()
    vectors: dict[str, list[str]] = {}
    for entry in picked:
        if entry["deletion_vector"] is not None:
            of = entry["referenced_file"] if entry["content_type"] == ContentType.MANIFEST_DV else entry["location"]
            vectors.setdefault(of, []).append(f"{entry['location']} {entry['deletion_vector']}")
    return {
        (entry["location"], tuple(sorted(vectors.get(entry["location"], ())))): int(row)
        for row, entry in zip(rows, picked, strict=True)
        if entry["content_type"] in _MANIFESTS and entry["location"]
    }


def _files(state: TableState, root: Manifest | None, rows: list[int], field_ids: Collection[int]) -> EntryBatch:
    """Return the live data and delete files of some leaves, and those that the root lists directly, without a leaf.

    An unreadable root or leaf raises an error.

    Parameters
    ----------
    root
        The root of a snapshot; None if the table has no snapshot, so that there are no files.
    rows
        The row numbers, in the root's entries, of the leaves to read.
    field_ids
        Ids of the columns whose statistics the result has.
    """
    if root is None:
        return EntryBatch.empty()
    readable(root)

    def manifests() -> Iterator[Manifest]:
        direct = state.reader.direct(root)
        if direct is not None:
            yield direct
        if rows:
            yield from state.reader.leaves(root, rows, parts=frozenset({"entries", "partition"}))

    parts = []
    for leaf in map(readable, manifests()):
        kinds = pc.less_equal(leaf.entries["content_type"], int(ContentType.EQUALITY_DELETE))
        parts.append(_referring(EntryBatch.of(leaf, field_ids), leaf).filter(_mask(pc.and_(live(leaf.entries), kinds))))
    return concat_batches(parts)


def _referring(batch: EntryBatch, leaf: Manifest) -> EntryBatch:
    """Return the entries of a leaf, with ``referenced_file`` set for position delete files for a single data file.

    In v2, the entry of such a delete file may lack the field. Then the lower and the upper bound of its column
    ``file_path`` are both the location of the data file (Java: ContentFileUtil).
    """
    of = batch.entries["referenced_file"]
    open_ones = pc.and_(pc.equal(batch.entries["content_type"], int(ContentType.POSITION_DELETE)), of.is_null())
    if not pc.any(open_ones).as_py():
        return batch
    stats = leaf.stats(_FILE_PATH)
    single = pc.and_(open_ones, pc.fill_null(pc.equal(stats.lower_raw, stats.upper_raw), False))
    paths = pc.if_else(_mask(single), stats.lower_raw, None)
    try:
        return batch.with_columns(referenced_file=pc.coalesce(whole(of), paths.cast(pa.string())))
    except pa.ArrowInvalid:  # the bounds of file_path are not valid UTF-8, so they name no file
        return batch


def _keys(entries: pa.Table) -> AnyChunkedArray:
    # Many DVs may be in one Puffin file, so a location alone does not identify a DV: its key includes the offset.
    offset = pc.fill_null(pc.struct_field(entries["deletion_vector"], "offset").cast(pa.string()), "")
    return pc.binary_join_element_wise(entries["location"], offset, "\x1f")


def _mask(values: AnyColumn) -> pa.BooleanArray:
    filled = pc.fill_null(values, False)
    return cast(pa.BooleanArray, whole(filled) if isinstance(filled, pa.ChunkedArray) else filled)


# ----------------------------------------------------------------------------------------------------------------------


def _is_append(change: Change) -> bool:
    removes = change.remove_data or change.remove_deletes or change.replace_dvs
    looks = change.isolation == "serializable" and change.conflict_partitions != frozenset()
    return change.operation == "append" and not (removes or looks or change.conflict_files or _referenced(change))


def _same_head(start: TableState, current: TableState) -> bool:
    a, b = start.snapshot, current.snapshot
    return (a is None and b is None) or (a is not None and b is not None and a.snapshot_id == b.snapshot_id)


def _referenced(change: Change) -> set[str]:
    """Return the locations of the data files that are the ``referenced_file`` of an added delete file or DV."""
    return {of for of in change.added.entries["referenced_file"].to_pylist() if of}


def _gone(steps: Iterable[Step], of: Collection[str], kinds: Collection[int]) -> list[str]:
    """Return which of the files ``of`` were removed by concurrent commits (``steps``) and not added again.

    Only files whose content type is in ``kinds`` are returned.
    """
    wanted, types = pa.array(list(of), pa.string()), pa.array([int(k) for k in kinds], pa.int32())
    gone: dict[str, None] = {}
    for step in steps:
        for batch, left in ((step.removed, True), (step.added, False)):
            entries = batch.entries
            hit = pc.and_(pc.is_in(entries["location"], value_set=wanted), pc.is_in(entries["content_type"], types))
            for location in build.to_pylist(entries["location"].filter(hit)):
                if left:
                    gone[location] = None
                else:
                    gone.pop(location, None)
    return list(gone)


def _check_removed(change: Change, steps: list[Step]) -> None:
    deletes = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
    if not change.ignore_missing:
        lost = _gone(steps, change.remove_data, (ContentType.DATA,)) + _gone(steps, change.remove_deletes, deletes)
        if lost:
            raise CommitConflictError("files-exist", "another commit has removed files that this commit removes", lost)
    needed = (_referenced(change) | change.conflict_files) - set(change.remove_data)
    lost = _gone(steps, needed, (ContentType.DATA,))
    if lost:
        raise CommitConflictError(
            "data-files-still-there",
            "another commit removed data files that this commit has read, or whose rows this commit deletes",
            lost,
        )


def _check_vectors(change: Change, steps: list[Step]) -> None:
    mine = change.added.entries
    vectors = mine.filter(_mask(whole(mine["deletion_vector"]).is_valid()))
    of = pa.array([*build.to_pylist(vectors["referenced_file"]), *change.replace_dvs], pa.string())
    for step in steps:
        entries = step.added.entries
        is_vector = _mask(whole(entries["deletion_vector"]).is_valid())
        hit = pc.and_(is_vector, pc.is_in(entries["referenced_file"], value_set=of.drop_null()))
        found = build.to_pylist(entries["referenced_file"].filter(hit).unique())
        if found:
            raise CommitConflictError(
                "no-concurrent-dv", f"{_who(step)} added deletion vectors for the same data files", found
            )


def _check_new_deletes(change: Change, steps: list[Step], start: TableState) -> None:
    """Check that no concurrent commit added deletes for data files that this commit rewrites or has read.

    This commit read the data files without these deletes. If it writes their rows to new files, the new files may
    contain rows that the deletes remove. Nothing is checked if the commit writes no rows, that is, if it adds no data
    file and its operation is not ``replace``.

    Parameters
    ----------
    change
        The change of this commit.
    steps
        The concurrent commits.
    start
        The state for which the change was made.
    """
    rewritten = set() if change.ignore_missing else set(change.remove_data)
    adds_data = pc.any(pc.equal(change.added.entries["content_type"], int(ContentType.DATA))).as_py()
    if not adds_data and change.operation != "replace":
        return
    # An update or merge deletes rows by position and writes their new values to other files. It has read these rows, so
    # the data files from which it deletes them are checked, too (Spark: validateNoConflictingDeleteFiles).
    looked_at = rewritten | _referenced(change) | change.conflict_files
    if not looked_at:
        return
    wanted = pa.array(sorted(looked_at), pa.string())
    kept = change.added.entries.filter(pc.equal(change.added.entries["content_type"], int(ContentType.DATA)))
    # A compaction may give every added data file an older data sequence number; null means that it gets a new one.
    keeps_sequence = kept["sequence_number"].null_count == 0
    wide: list[tuple[Step, EntryBatch]] = []
    for step in steps:
        entries = step.added.entries
        kind = entries["content_type"]
        positions = pc.equal(kind, int(ContentType.POSITION_DELETE))
        hit = pc.and_(positions, pc.is_in(entries["referenced_file"], value_set=wanted))
        found = build.to_pylist(entries["referenced_file"].filter(_mask(hit)).unique())
        if found:
            raise CommitConflictError(
                "no-new-deletes", f"{_who(step)} added deletes for data files that this commit rewrites", found
            )
        wider = pc.and_(positions, entries["referenced_file"].is_null())
        # Equality deletes apply only to data files with lower sequence numbers. If the change's data files get a new,
        # higher number now, the step's equality deletes do not apply to them, and deleted rows would appear again.
        if not keeps_sequence:
            wider = pc.or_(wider, pc.equal(kind, int(ContentType.EQUALITY_DELETE)))
        if pc.any(wider).as_py():
            wide.append((step, step.added.filter(_mask(wider))))
    if wide:
        _check_wide_deletes(wide, sorted(looked_at), start)


def _check_column_files(change: Change, steps: list[Step]) -> None:
    """Check that no concurrent commit added column files to data files that ``change`` uses (V4 draft).

    ``change`` uses the data files to which it adds column files itself. If it adds data files or is a ``replace``, it
    also uses the data files that it removes, that it has read, or from which it deletes rows.
    """
    used = set(build.to_pylist(change.column_files.entries["location"]))
    adds_data = pc.any(pc.equal(change.added.entries["content_type"], int(ContentType.DATA))).as_py()
    if adds_data or change.operation == "replace":
        used |= set(change.remove_data) | _referenced(change) | change.conflict_files
    for step in steps:
        if found := sorted(used & step.updated.keys()):
            raise CommitConflictError(
                "no-concurrent-column-files", f"{_who(step)} updated columns of the same data files", found
            )


def _check_wide_deletes(wide: list[tuple[Step, EntryBatch]], files: list[str], start: TableState) -> None:
    """Check that no delete file in ``wide`` applies to one of the data files at the locations ``files``.

    Parameters
    ----------
    wide
        For each concurrent commit, the added delete files that are not limited to a single data file. Such a delete
        file applies to the data files of its partition. An equality delete file with an unpartitioned spec applies to
        all data files of the table.
    start
        The state for which this commit's change was made. The partitions of ``files`` are looked up in it.
    """
    batch, _ = find_files(start, files)
    places = {_place(batch, row, start.metadata) for row in range(len(batch))}
    for step, deletes in wide:
        for row in range(len(deletes)):
            spec = start.metadata.spec(deletes.entries["partition_spec_id"][row].as_py())
            is_equality = deletes.entries["content_type"][row].as_py() == ContentType.EQUALITY_DELETE
            everywhere = spec is None or (is_equality and spec.is_unpartitioned)
            if everywhere or _place(deletes, row, start.metadata) in places:
                found = [deletes.entries["location"][row].as_py()]
                raise CommitConflictError(
                    "no-new-deletes",
                    f"{_who(step)} added deletes that apply to data files that this commit rewrites",
                    found,
                )


def _check_new_files(change: Change, steps: list[Step], metadata: TableMetadata) -> None:
    """Check that the change has missed no rows that concurrent commits added or updated.

    The change has missed rows if it would have read them, had it started after the concurrent commit. For example, an
    overwrite of the rows with ``x = 1`` has missed the rows with ``x = 1`` of a concurrent append. This is only checked
    if the isolation level of the change is ``serializable``.

    Parameters
    ----------
    change
        The change to commit.
    steps
        The concurrent commits.
    metadata
        The newest metadata of the table, which has the partition specs of all files.
    """
    if change.isolation != "serializable" or change.conflict_partitions == frozenset():
        return
    for step in steps:
        if found := _conflicting(change, step.updated_files.filter(_seen(change, step)), metadata):
            raise CommitConflictError(
                "no-new-conflicting-files", f"{_who(step)} updated columns that this commit should have read", found
            )
        if not step.adds_rows:
            continue
        data = step.added.filter(_mask(pc.equal(step.added.entries["content_type"], int(ContentType.DATA))))
        found = _conflicting(change, data, metadata)
        if found:
            raise CommitConflictError(
                "no-new-conflicting-files", f"{_who(step)} added data that this commit should have read", found
            )


def _seen(change: Change, step: Step) -> pa.BooleanArray:
    """Return a mask of ``step.updated_files``: the files with new values in a column that the change has read.

    The change has read the columns of its filter or, without a filter, every column. If ``change.conflict_partitions``
    is not None, the mask is false for every file: then only rows that are new in these partitions conflict, and an
    update of columns moves no row into another partition.
    """
    if change.conflict_partitions is not None:
        # Only rows that are added to these partitions conflict, and an update of columns adds none.
        return pa.array([False] * len(step.updated_files), pa.bool_())
    by = None if change.conflict_filter is None else set(change.conflict_filter.stats_ids)
    names = build.to_pylist(step.updated_files.entries["location"])
    return pa.array([by is None or bool(by & step.updated[name]) for name in names], pa.bool_())


def _conflicting(change: Change, data: EntryBatch, metadata: TableMetadata) -> list[str]:
    """Return the locations of those files in ``data`` with which the change conflicts.

    ``data`` has data files that a concurrent commit added or updated. If ``change.conflict_partitions`` is None, the
    files that may contain rows matching ``change.conflict_filter`` conflict; without a filter, all files. Otherwise, a
    file conflicts if it is in one of these partitions, or if its partition spec is not the spec of any of them; then,
    at most `_NAMED` locations are returned.
    """
    read = change.conflict_partitions
    locations = data.entries["location"]
    if read is None:
        if change.conflict_filter is not None and len(data):
            locations = locations.filter(change.conflict_filter.evaluate(data, metadata)[0])
        names: list[str] = build.to_pylist(locations)
        return names
    # Partitions of different specs cannot be compared. So a file whose spec is not in ``specs`` conflicts as well: it
    # may contain rows that belong to the partitions that the change read.
    specs = {spec_id for spec_id, _ in read}
    places = partition_keys(data.entries["partition_spec_id"], data.partition, metadata)
    hit = {p for p in places if p in read or p[0] not in specs}
    found: list[str] = []
    for row in range(len(data)) if hit else ():
        if _place(data, row, metadata) in hit:
            found.append(locations[row].as_py())
            if len(found) == _NAMED:
                break
    return found


def _check_duplicates(change: Change, steps: list[Step]) -> None:
    mine = change.added.entries
    data = mine["location"].filter(_mask(pc.equal(mine["content_type"], int(ContentType.DATA))))
    for step in steps:
        hit = pc.is_in(step.added.entries["location"], value_set=whole(data))
        found = build.to_pylist(step.added.entries["location"].filter(hit))
        if found:
            raise CommitConflictError("duplicate-file", f"{_who(step)} added the same files", found)


def _place(batch: EntryBatch, row: int, metadata: TableMetadata) -> tuple[int, str]:
    """Return the partition of the file in one row: its spec id and its tuple as JSON, as in `partition_keys`."""
    partition = None if batch.partition is None else batch.partition.slice(row, 1)
    (place,) = partition_keys(whole(batch.entries["partition_spec_id"].slice(row, 1)), partition, metadata)
    return place


def _who(step: Step) -> str:
    return "other commits" if step.snapshot is None else f"snapshot {step.snapshot.snapshot_id}"
