"""Define operations that write no data files: rewrite_manifests, rewrite_position_deletes, cherry_pick."""

from __future__ import annotations

import pyarrow as pa

from iceexplore.arrow import AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._find import (
    LocationsLike,
    applied_deletes,
    find_files,
    live_leaves,
    locations_of,
    must_be_live,
)
from iceexplore.commits.live_files._locate import live_manifests, readable
from iceexplore.commits.metadata_updates._refs import cherry_pick_summary
from iceexplore.commits.model._change import Change, NothingToDo
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.operations._row_delta import delete_groups, position_files, vector_entries
from iceexplore.commits.operations._whole_files import base_id, partitions_of
from iceexplore.commits.validation._conflicts import steps_between
from iceexplore.errors import OptionError, RuleError
from iceexplore.graph import SnapshotLike, TableState, resolve_state, travel
from iceexplore.manifests import ContentType, EntryBatch, Status, bool_array, concat_batches, whole
from iceexplore.metadata import Snapshot
from iceexplore.planning import partition_keys
from iceexplore.reading import deleted_positions, position_index

__all__ = ["cherry_pick", "rewrite_manifests", "rewrite_position_deletes"]

_DELETES_FROM, _DVS_FROM = 2, 3


def rewrite_manifests(state: TableState, writer: CommitWriter, manifests: LocationsLike | None = None) -> Change:
    """Rewrite leaf manifests without changing the data.

    Parameters
    ----------
    manifests
        Locations of the manifests to rewrite. By default, the code that writes the commit chooses them: mainly small
        manifests, and those with entries that are not live.

    Raises
    ------
    NothingToDo
        The table has no leaf manifests.
    RuleError
        ``files-exist``: a manifest is not live.
    """
    root = state.root()
    kinds = {ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST}
    rows = [] if root is None else live_manifests(readable(root).entries, kinds)
    if root is None or not rows:
        raise NothingToDo("nothing to rewrite: the table has no leaf manifests")
    wanted: tuple[str, ...] | bool = True
    if manifests is not None:
        there = root.entries["location"].take(pa.array(rows)).to_pylist()
        wanted = tuple(locations_of(manifests, "manifests"))
        missing = [m for m in wanted if m not in set(there)]
        if missing:
            raise RuleError("files-exist", f"no live manifest {missing[0]}; see inspect.manifests()")
    return Change("replace", rewrite_manifests=wanted, base_snapshot_id=base_id(state), isolation="snapshot")


def rewrite_position_deletes(state: TableState, writer: CommitWriter, paths: LocationsLike | None = None) -> Change:
    """Merge position delete files in version 2; from version 3 on, convert them to deletion vectors.

    The position delete files are read completely. In version 2, one merged file is written per data file or per
    partition; the property ``write.delete.granularity`` determines which. Positions that delete nothing are dropped:

    - positions in data files that are no longer live, or that are newer than the delete file (Java:
      ``RewritePositionDeleteFiles``, "dangling"),
    - positions in data files that already have a deletion vector, because it replaces position delete files,
    - positions past the end of a data file.

    Parameters
    ----------
    paths
        Locations of the position delete files to rewrite; all by default. For each data file that these reference, the
        positions are collected from every position delete file of the table, because a deletion vector must have all
        deleted positions of its data file.

    Raises
    ------
    NothingToDo
        There are no position delete files; or, in version 2, the rewrite would neither reduce their number nor drop a
        position.
    RuleError
        ``deletes-need-v2``: the table has version 1. ``files-exist``: a file in ``paths`` is not a live position delete
        file.
    """
    if writer.options.format_version < _DELETES_FROM:
        raise RuleError("deletes-need-v2", "delete files need format version 2: upgrade the table first")
    every = _position_files(state)
    names = build.to_pylist(every.entries["location"])
    if paths is None:
        chosen = every
    else:
        wanted = locations_of(paths)
        must_be_live(state, wanted, (ContentType.POSITION_DELETE,))
        chosen = every.filter(pa.array([n in set(wanted) for n in names], pa.bool_()))
    if not len(chosen):
        raise NothingToDo("nothing to rewrite: there are no position delete files")
    concerned: dict[str, None] = {}
    for row in build.to_pylist(chosen.entries.select(["location", "file_format"])):
        concerned |= dict.fromkeys(position_index(state, row["location"], row["file_format"]).paths)
    targets, _ = find_files(state, concerned)
    matched = applied_deletes(state, targets)
    open_ones = matched.vector.is_null()
    targets, matched = targets.filter(open_ones), matched.take(pc.indices_nonzero(open_ones))
    positions = deleted_positions(state, targets, matched)
    rows = dict(
        zip(build.to_pylist(targets.entries["location"]), build.to_pylist(targets.entries["record_count"]), strict=True)
    )
    vectors = {}
    for name, bitmap in positions.items():
        inside = bitmap if bitmap.max() < rows[name] else bitmap & type(bitmap)(range(rows[name]))
        if len(inside):  # positions past the file's end delete nothing
            vectors[name] = inside
    if writer.options.format_version >= _DVS_FROM:
        added = vector_entries(writer, targets, vectors) if vectors else EntryBatch.empty()
    else:
        before, left = int(pc.sum(chosen.entries["record_count"]).as_py()), sum(map(len, vectors.values()))
        groups = delete_groups(state, targets, vectors)
        if len(groups) >= len(chosen) and left >= before:
            raise NothingToDo("nothing to rewrite: the position delete files are already merged")
        added = position_files(state, writer, targets, vectors) if vectors else EntryBatch.empty()
    return Change(
        "replace",
        added,
        remove_deletes=tuple(build.to_pylist(chosen.entries["location"])),
        base_snapshot_id=base_id(state),
        isolation="snapshot",
        conflict_files=frozenset(vectors),
    )


def _position_files(state: TableState) -> EntryBatch:
    """Return the live position delete files, without deletion vectors."""
    found = []
    for leaf, mask in live_leaves(state, (ContentType.POSITION_DELETE,), parts=("entries", "partition")):
        mine = pa.array(bool_array(mask) & bool_array(whole(leaf.entries["deletion_vector"]).is_null()))
        if mine.true_count:
            found.append(EntryBatch.of(leaf, ()).filter(mine))
    return concat_batches(found)


def cherry_pick(state: TableState, writer: CommitWriter, snapshot: SnapshotLike) -> Change:
    """Repeat the changes of a snapshot that is not in the history of ``main`` (Java: ``CherryPickOperation``).

    Two kinds of snapshots can be cherry-picked. If the snapshot is an append, its data files are added again. If it is
    an overwrite of whole partitions (``replace-partitions=true`` in its summary), its data files are added, and the
    data files that it removed are removed; other commits must not have added data files to these partitions since the
    snapshot's parent.

    Parameters
    ----------
    snapshot
        The snapshot to cherry-pick: a `Snapshot` or its id, a ref or its name, or a state at this snapshot.

    Raises
    ------
    RuleError
        ``cherry-pick``: one of the following. The snapshot is of neither kind. It is already in the history of
        ``main``, or was cherry-picked before (`cherry_pick_summary` lists all such reasons). Its parent is the current
        snapshot: `set_current_snapshot` can make it current without a new snapshot. Its parent has expired. Another
        commit added data files to a partition that it replaces.
        ``files-exist``: a data file that the snapshot removed is no longer live.
    OptionError
        ``snapshot`` is the state of a table that has no snapshot.
    SnapshotNotFoundError
        The table has no such snapshot or ref.
    """
    picked = resolve_state(state, snapshot).snapshot
    if picked is None:
        raise OptionError("there is no snapshot to pick")
    summary = cherry_pick_summary(state.opened.document, snapshot_id=picked.snapshot_id)
    if summary is None:
        raise RuleError(
            "cherry-pick",
            f"snapshot {picked.snapshot_id} is a child of the current snapshot, so no new snapshot is needed: make it "
            "current with set_current_snapshot",
        )
    added, removed = _changes_of(state, picked)
    data = added.filter(bool_mask(pc.equal(added.entries["content_type"], int(ContentType.DATA))))
    gone: tuple[str, ...] = ()
    replaces = picked.operation == "overwrite"
    if replaces:
        gone = tuple(build.to_pylist(removed.entries["location"]))
        if gone:
            must_be_live(state, gone)
        _partitions_unchanged(state, picked, data)
    anew = data.with_columns(status=None, snapshot_id=None, sequence_number=None, file_sequence_number=None,
                             first_row_id=None)  # fmt: skip
    return Change(
        "overwrite" if replaces else "append",
        anew,
        remove_data=gone,
        base_snapshot_id=base_id(state),
        conflict_partitions=partitions_of(state, data) if replaces else frozenset(),
        conflict_files=frozenset(gone),
        summary={**summary, **({"replace-partitions": "true"} if replaces else {})},
    )


def bool_mask(mask: AnyColumn) -> pa.BooleanArray:
    """Return a mask as a single array (not chunked), with null replaced by false."""
    made: pa.BooleanArray = pa.array(bool_array(mask))
    return made


def _changes_of(state: TableState, picked: Snapshot) -> tuple[EntryBatch, EntryBatch]:
    """Return the data files that a snapshot added, and the data files that it removed.

    The entries of added files have statistics. For an append, the second batch is empty.

    Raises
    ------
    RuleError
        ``cherry-pick``: the snapshot's parent has expired, so that its changes are unknown.
    """
    there = travel(state, snapshot=picked.snapshot_id)
    before = None if picked.parent_snapshot_id is None else state.metadata.snapshot(picked.parent_snapshot_id)
    if picked.parent_snapshot_id is not None and before is None:
        raise RuleError(
            "cherry-pick", f"the parent of snapshot {picked.snapshot_id} has expired, so its changes are unknown"
        )
    added = []
    for leaf, mask in live_leaves(there, parts=("entries", "partition", "stats")):
        status = pc.fill_null(leaf.entries["status"], int(Status.EXISTING))
        mine = pc.and_(pc.equal(status, int(Status.ADDED)), pc.equal(leaf.entries["snapshot_id"], picked.snapshot_id))
        rows = bool_array(mask) & bool_array(mine)
        if rows.any():
            added.append(EntryBatch.of(leaf).filter(pa.array(rows)))
    if before is None or picked.operation == "append":
        return concat_batches(added), EntryBatch.empty()
    (step,) = steps_between(travel(state, snapshot=before.snapshot_id), there)
    data = bool_mask(pc.equal(step.removed.entries["content_type"], int(ContentType.DATA)))
    return concat_batches(added), step.removed.filter(data)


def _partitions_unchanged(state: TableState, picked: Snapshot, data: EntryBatch) -> None:
    """Refuse to cherry-pick a snapshot that replaces partitions, if one of these partitions has new data files.

    A data file is new if the table's current history added it after the picked snapshot's parent.

    Parameters
    ----------
    data
        The data files that the picked snapshot added; their partitions are those that it replaces.

    Raises
    ------
    RuleError
        ``cherry-pick``: data files were added to one of the partitions.
    """
    mine = partitions_of(state, data)
    if state.snapshot is None or picked.parent_snapshot_id is None:
        return
    for step in steps_between(travel(state, snapshot=picked.parent_snapshot_id), state):
        new = step.added.filter(bool_mask(pc.equal(step.added.entries["content_type"], int(ContentType.DATA))))
        changed = partition_keys(new.entries["partition_spec_id"], new.partition, state.metadata) & mine
        if changed:
            spec_id, key = sorted(changed)[0]
            raise RuleError(
                "cherry-pick",
                f"snapshot {picked.snapshot_id} replaces partition {key} of spec {spec_id}, to which data files "
                "were added after the parent of that snapshot",
            )
