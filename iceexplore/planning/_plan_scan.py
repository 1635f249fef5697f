"""Plan a scan, from the manifest list or V4 root manifest to data files with their deletes and residual filters."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import Int64s, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import problem
from iceexplore.expressions import FilterLike
from iceexplore.graph import SnapshotLike, TableState
from iceexplore.manifests import EntryBatch, Manifest, whole
from iceexplore.planning._scan_plan import ScanPlan
from iceexplore.planning.delete_index._delete_files import concerned
from iceexplore.planning.delete_index._lists import no_lists
from iceexplore.planning.delete_index._match import equality_columns, match_deletes
from iceexplore.planning.evaluators._filter import Filter, make_filter, residuals
from iceexplore.planning.model._tasks import FileTasks, MatchedDeletes
from iceexplore.planning.row_groups._scan import row_groups_of
from iceexplore.planning.scan._columns import checked_columns
from iceexplore.planning.scan._doubts import refuse_doubts
from iceexplore.planning.scan._files import LeafScan, Picked, concat_selected, leaves_of, parts_of, pick
from iceexplore.planning.scan._incremental import Appends, appends_between
from iceexplore.planning.scan._manifests import RootScan, scan_root
from iceexplore.planning.scan._splits import SplitOptions
from iceexplore.storage import canonical

__all__ = ["manifests_read", "plan_scan"]

#: Plans with more data files than this are not checked for files that several manifests list. The check would add a
#: third to the time of planning, which matters only in such large plans. `Table.verify` checks all files.
_MOST_COMPARED = 100_000


def plan_scan(
    state: TableState,
    where: FilterLike | Filter | None = None,
    *,
    columns: Iterable[str] | None = None,
    partition: Mapping[str, Any] | None = None,
    from_snapshot: SnapshotLike | None = None,
    to_snapshot: SnapshotLike | None = None,
    row_groups: bool = False,
    bloom: bool = False,
    split_size: int | None = None,
    root_rows: Collection[int] | None = None,
) -> ScanPlan:
    """Plan a scan (spec, "Scan Planning"): the data files to read, their deletes, and residual filters.

    This reads the root (a manifest list or V4 root manifest), the data manifests that may list a matching file, and the
    delete manifests whose deletes may apply to the matching files. The plan has column metrics only for columns of the
    filter and of equality deletes. In V4, a delete manifest may be affiliated with one data manifest, so that its
    deletes apply only to the files of this manifest. It is then read in the same parallel pass as the data manifest
    (proposal, "How does planning work?"). Delete files are not opened; data files are opened only for ``row_groups``
    and ``bloom``.

    Parameters
    ----------
    where, partition
        See `make_filter`; if both are None, every live file is read.
    columns
        Names of the columns to read, dotted inside structs; by default all columns.
    from_snapshot, to_snapshot
        Plan only the files that appends added after ``from_snapshot``, up to and including ``to_snapshot``; each is an
        id, a ref name, a Snapshot or a state. Without ``from_snapshot``, the range begins with the oldest ancestor of
        the last snapshot, and includes it; without ``to_snapshot``, the range ends with the snapshot of ``state``. As
        in Java's ``IncrementalAppendScan``, no deletes are applied, and snapshots whose operation is not ``append`` are
        skipped. The filter is bound to the schema of ``state``.
    row_groups
        Read the footers of the Parquet files that remain, and prune their row groups.
    bloom
        Also use the row groups' Bloom filters; this includes ``row_groups``.
    split_size
        Target size of a split in bytes; by default the table's ``read.split.target-size``, or 128 MiB.
    root_rows
        Plan only the files of these data manifests, given as row numbers in the root, and the files that a V4 root
        lists itself; by default, plan the files of all data manifests.

    Raises
    ------
    OptionError
        The filter, a column or a size is invalid, or ``from_snapshot`` is not an ancestor of ``to_snapshot``.
    SnapshotNotFoundError
        There is no such snapshot or ref.
    IceexploreError
        A manifest is missing or damaged, or a reader of the plan may get wrong rows for another reason. This is raised
        only if ``state.problems.strict`` is true. Otherwise, planning continues, and `ScanPlan.notes` and
        `ScanPlan.doubts` report such faults.
    """
    start = time.perf_counter()
    before = len(state.storage.reads)
    options = SplitOptions.of(state.metadata.properties, size=split_size)
    wanted = make_filter(state.metadata, state.schema, where, partition)
    named = checked_columns(state.schema, columns)
    appends = None
    if from_snapshot is not None or to_snapshot is not None:
        appends = appends_between(state, from_snapshot, to_snapshot)
        if appends is not None:
            state = state.showing(appends.last, state.schema, ref=None, travel=state.travel)
    scans = _scans(state, wanted, appends)
    if root_rows is not None:
        scans = [scan.only(root_rows) for scan in scans]
    places = _delete_rows(state, scans[0], wanted, scans[0].kept) if appends is None and scans else []
    beside = _affiliated(scans[0], places) if places else {}
    loose = [row for row in places if row not in {r for rows in beside.values() for r in rows}]
    columns_wanted = [*wanted.stats_ids, *_equality_columns(state, loose)]
    loaded: dict[int, Manifest] = {}
    picked = [_picked(state, scan, i, wanted, columns_wanted, beside, loaded) for i, scan in enumerate(scans)]
    files, root_row, whole = concat_selected([p for each in picked for p in each])
    leaves = tuple(p.leaf for each in picked for p in each)
    matched = _no_deletes(len(files))
    if appends is None and sum(p.leaf.kept_files > 0 for each in picked for p in each) > 1:
        _note_twice(state, scans[0], files, root_row)
    if appends is None and len(files):
        places = _delete_rows(state, scans[0], wanted, _holding(picked[0]))
        matched = match_deletes(state, files, where=wanted, manifests=places, loaded=loaded)
    numbers, left = residuals(wanted, files, state.metadata)
    tasks = FileTasks(files, root_row, whole, numbers, left, matched)
    deletes = tuple(r for r in places if r not in set(scans[0].rows.tolist())) if places else ()
    plan = ScanPlan(
        state=state,
        filter=wanted,
        columns=named,
        files=tasks,
        options=options,
        roots=tuple(scans),
        leaves=leaves,
        delete_rows=deletes,
        row_groups=row_groups_of(state, tasks, bloom=bloom) if row_groups or bloom else None,
        appends=appends,
        notes=(*(() if appends is None else appends.notes), *_damage(state, scans, leaves, deletes, files)),
        seconds=time.perf_counter() - start,
        log=tuple(state.storage.reads)[before:],
    )
    if state.problems.strict:
        refuse_doubts(plan)
    return plan


def manifests_read(state: TableState, wanted: Filter) -> list[int]:
    """Return which manifests `plan_scan` reads with a filter: their row numbers in the root.

    The root is the snapshot's manifest list or V4 root manifest. Often, it is all that this function reads: it suffices
    to find the data manifests and, in V4, the delete manifests that belong to one of them. If there are other delete
    manifests, it depends on the snapshot's summary which of them `plan_scan` reads:

    - If there may be equality deletes, it reads every delete manifest that the filter does not exclude, to find the
      columns that equality deletes compare. The root suffices to find these manifests.
    - If the summary states that there are no equality deletes, it reads only the delete manifests that may hold a
      delete for a data file that matches the filter. To find these data files, this function also reads the data
      manifests that may list one.

    Parameters
    ----------
    state
        The table at one snapshot. Without a snapshot, the result is empty.
    wanted
        The filter.
    """
    scans = _scans(state, wanted, None)
    if not scans:
        return []
    scan, read = scans[0], set(scans[0].kept.tolist())
    places = _delete_rows(state, scan, wanted, scan.kept)
    read.update(row for rows in _affiliated(scan, places).values() for row in rows)
    loose = [row for row in places if row not in read]
    if not loose:
        return sorted(read)
    if _may_have_equality(state, loose):
        return sorted(read.union(loose))
    picked = _picked(state, scan, 0, wanted, wanted.stats_ids)
    files, _, _ = concat_selected(picked)
    if len(files):
        read.update(concerned(state, scan.root, _delete_rows(state, scan, wanted, _holding(picked)), files))
    return sorted(read)


def _holding(picked: list[Picked]) -> npt.NDArray[np.int64]:
    """Return the row numbers of the data manifests that list at least one data file which the plan reads.

    They are row numbers in the root (the manifest list, or the root manifest of V4). Files that a V4 root lists itself
    are in no data manifest, so they add no row number.
    """
    rows = [p.leaf.root_row for p in picked if p.leaf.kept_files and p.leaf.root_row is not None]
    return np.array(rows, dtype=np.int64)


def _scans(state: TableState, wanted: Filter, appends: Appends | None) -> list[RootScan]:
    """Return the roots (manifest lists or V4 root manifests) that the plan reads, with their data manifests.

    For an ordinary plan, this is the root of the state's snapshot; the list is empty if there is no snapshot. For an
    incremental plan, it is the root of each append snapshot.

    Parameters
    ----------
    wanted
        The filter; each `RootScan` has a mask of the data manifests that may list a matching file.
    appends
        The append snapshots of an incremental plan; None for an ordinary plan.
    """
    if appends is None:
        root = state.root()
        return [] if root is None or state.snapshot is None else [scan_root(state, state.snapshot, root, wanted)]
    ids = frozenset(s.snapshot_id for s in appends.snapshots)
    seen: set[str] = set()
    return [scan_root(state, s, state.reader.root(s), wanted, ids, seen) for s in appends.snapshots]


def _picked(
    state: TableState,
    scan: RootScan,
    index: int,
    wanted: Filter,
    columns: list[int],
    beside: Mapping[int, list[int]] = MappingProxyType({}),
    loaded: dict[int, Manifest] | None = None,
) -> list[Picked]:
    """Read the data manifests that may list a matching file, and select the data files in them that may match.

    The result has one item for each data manifest that is read. A V4 root may also list data files itself. If it does,
    an additional item comes first, with the files that the root lists and that may match the filter.

    The root is the manifest list or, in V4, the root manifest. A root row is the row number of a manifest in the root.

    Parameters
    ----------
    scan
        The root, with the root rows of the data manifests to read (``scan.kept``).
    index
        The index of this root among the roots of the plan; 0 unless the plan is incremental.
    wanted
        The filter.
    columns
        The ids of the columns whose metrics are kept with the selected files.
    beside
        Delete manifests to read together with the data manifests. According to a V4 root, each of them belongs to one
        data manifest, so that its deletes apply only to the files of this data manifest. The keys are the root rows of
        the data manifests, and each value lists the root rows of the delete manifests that belong to the key.
    loaded
        A dictionary to which the delete manifests in ``beside`` are added, with their root rows as keys; None to
        discard them.
    """
    order = [row for data in scan.kept.tolist() for row in (data, *beside.get(data, ()))]
    deletes = {row for rows in beside.values() for row in rows}
    out = []
    for leaf in leaves_of(state, scan, parts_of(columns), order, None if deletes else columns):
        if leaf.root_row is not None and leaf.root_row in deletes:
            if loaded is not None:
                loaded[leaf.root_row] = leaf
        else:
            out.append(pick(state, scan, index, leaf, wanted, columns))
    return out


def _affiliated(scan: RootScan, places: list[int]) -> dict[int, list[int]]:
    """Group the delete manifests of a V4 root by the data manifest that they reference (``referenced_file``).

    If a delete manifest references a data manifest, its deletes apply only to the files of this data manifest: the two
    are affiliated. Manifests are identified by their row numbers in the root (root rows). The keys of the result are
    the root rows of data manifests that the plan reads. The value for each key lists the root rows of the delete
    manifests that reference this data manifest. The result is empty in versions 1 to 3.

    Parameters
    ----------
    scan
        The root, with the root rows of the data manifests that the plan reads (``scan.kept``).
    places
        The root rows of the delete manifests to group. The result leaves out those that do not reference a data
        manifest that the plan reads.
    """
    owners = whole(scan.root.entries["referenced_file"])
    if not places or owners.null_count == len(owners):
        return {}
    names = scan.root.entries["location"].take(build.array(scan.kept)).to_pylist()
    rows = {canonical(name): row for name, row in zip(names, scan.kept.tolist(), strict=True) if name}
    out: dict[int, list[int]] = {}
    for place, owner in zip(places, owners.take(pa.array(places, pa.int64())).to_pylist(), strict=True):
        row = rows.get(canonical(owner)) if owner else None
        if row is not None:
            out.setdefault(row, []).append(place)
    return out


def _delete_rows(state: TableState, scan: RootScan, wanted: Filter, read: npt.NDArray[np.int64]) -> list[int]:
    """Return the row numbers, in the root, of the manifests that may contain deletes for files of given data manifests.

    These are delete manifests and, in the V4 draft, also the given data manifests themselves, because there the entry
    of a data file contains its deletion vector.

    Parameters
    ----------
    scan
        The root (manifest list or V4 root manifest) that lists the delete manifests and data manifests.
    wanted
        The filter. A delete manifest is left out if its deletes are all in partitions that the filter excludes.
    read
        The row numbers, in the root, of the data manifests.
    """
    rows = scan.delete_rows(state, wanted, read)
    # In the V4 draft, the entry of a data file contains its deletion vector, so data manifests contain deletes, too. So
    # for V4, return not only the row numbers of the delete manifests in the root (`rows`), but also those of the given
    # data manifests (`read`).
    return [*rows, *read.tolist()] if scan.root.dialect.deletion_vectors_on_entries else rows


def _equality_columns(state: TableState, places: list[int]) -> list[int]:
    """Return the ids of the columns that equality deletes compare.

    The plan loads the data files' metrics of these columns, because they may show that an equality delete does not
    apply to a data file. The ids are read from the given delete manifests.

    If the snapshot's summary states that there are no equality deletes, no manifest is read, and the result is empty.
    If the summary is wrong, only these metrics are missing: the equality deletes are still found, and applied to all
    data files that their partitions and sequence numbers allow.

    Parameters
    ----------
    places
        The row numbers of the delete manifests in the root (the manifest list or V4 root manifest).
    """
    return equality_columns(state, places) if _may_have_equality(state, places) else []


def _may_have_equality(state: TableState, places: list[int]) -> bool:
    summary = (state.snapshot.summary if state.snapshot is not None else None) or {}
    return bool(places) and summary.get("total-equality-deletes") != "0"


def _damage(
    state: TableState,
    scans: list[RootScan],
    leaves: tuple[LeafScan, ...],
    deletes: tuple[int, ...],
    files: EntryBatch,
) -> list[str]:
    """Return warnings that data files or deletes are missing from the plan, because metadata could not be read.

    There is at most one sentence for each of the three kinds of files that could not be read in full: roots, data
    manifests and delete manifests. It names the first three files of its kind, and counts the others. The result is
    empty if no damage was found.

    Parameters
    ----------
    scans
        The roots (manifest lists or V4 root manifests) of the plan.
    leaves
        The data manifests that were read. ``readable`` is false for each manifest of which an entry could not be read.
    deletes
        The delete manifests that the plan uses, as row numbers in the root; empty for an incremental plan, which
        applies no deletes.
    files
        The data files of the plan. A damaged delete manifest is mentioned only if it may contain a delete that applies
        to one of these files.
    """
    out = []
    faults = {p.where.partition("#")[0] for p in state.problems.met() if p.severity == "error"}
    roots = [s.root.location for s in scans if s.root.location in faults]
    if roots:
        name = "root manifest or manifest list" if state.metadata.may_have_root_manifests else "manifest list"
        out.append(f"Files are missing from this plan, because the {name} cannot be read in full: {_some(roots)}")
    bad = [leaf.location for leaf in leaves if leaf.root_row is not None and not leaf.readable]
    if bad:
        out.append(f"Files are missing from this plan, because manifests cannot be read in full: {_some(bad)}")
    names = scans[0].root.entries["location"].take(pa.array(deletes, pa.int64())).to_pylist() if deletes else []
    lost = {row: name for row, name in zip(deletes, names, strict=True) if name in faults}
    needed = concerned(state, scans[0].root, list(lost), files) if lost else []
    if needed:
        missing = _some([lost[row] for row in needed])
        what = "Deletes are missing from this plan, and deleted rows reappear"
        out.append(f"{what}, because delete manifests cannot be read in full: {missing}")
    return out


def _note_twice(state: TableState, scan: RootScan, files: EntryBatch, root_row: Int64s) -> None:
    """Add a problem to ``state.problems`` if a data file of the plan is live in several manifests.

    The rows of such a file would be read several times. If there are several such files, the problem names one and
    counts the others. A file that one manifest lists twice is not included: it is reported when that manifest is read.
    Plans of more than `_MOST_COMPARED` files are not checked, because the check would add a third to the time of
    planning; `Table.verify` checks them.

    Parameters
    ----------
    scan
        The root (manifest list or V4 root manifest) that lists the manifests.
    files
        The data files of the plan.
    root_row
        For each of these files, the row number of its manifest in the root; null if a V4 root lists the file itself.
    """
    if len(files) > _MOST_COMPARED:
        return
    places = whole(files.entries["location"])
    if len(pc.unique(places.drop_null())) + places.null_count == len(places):
        return
    pairs = (
        pa.table({"file": places, "leaf": root_row})
        .filter(places.is_valid())
        .group_by(["file", "leaf"], use_threads=False)
    )
    counts = (
        pairs.aggregate([])
        .group_by("file", use_threads=False)
        .aggregate([("leaf", "count", pc.CountOptions(mode="all"))])
    )
    again = counts.filter(pc.greater(counts["leaf_count"], 1))
    if not len(again):
        return
    first = again["file"][0].as_py()
    rows = pc.unique(root_row.filter(pc.equal(places, first)))
    names = scan.root.entries["location"].take(rows).to_pylist()
    held = ", ".join(scan.root.location if name is None else name for name in names)
    more = "" if len(again) == 1 else f" (other data files that are live in several manifests: {len(again) - 1})"
    text = f"The data file is live in {len(names)} manifests: its rows are read several times{more}."
    how: dict[str, Any] = {"field": "100 file_path", "severity": "warning"}
    state.problems.add(problem("file-twice", first, text, found=held, **how))


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _no_deletes(count: int) -> MatchedDeletes:
    return MatchedDeletes(vector=pa.nulls(count, pa.int32()), positions=no_lists(count), equality=no_lists(count))
