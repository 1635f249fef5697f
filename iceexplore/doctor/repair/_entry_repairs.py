"""Repairs of manifests and manifest lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import files_of_paths
from iceexplore.deletes import FILE_PATH_ID, POS_ID
from iceexplore.doctor.checks._existence import missing_rows
from iceexplore.doctor.examination._examination import Examination, LiveFiles
from iceexplore.doctor.model._finding import Finding
from iceexplore.doctor.model._hits import Found
from iceexplore.doctor.repair._compacted import compacted_files
from iceexplore.doctor.repair._document_repairs import assigned_row_ids, files_of, root_of, step_of
from iceexplore.doctor.repair._draft import ALL_PARTS, Draft, live_mask, number_in
from iceexplore.doctor.repair._sound_values import named_file, vector_place
from iceexplore.doctor.repair._step import Step
from iceexplore.errors import IceexploreError
from iceexplore.formats import PUFFIN, DataFile, format_of_suffix
from iceexplore.graph import amount, live_manifests
from iceexplore.manifests import ContentType, EntryBatch, Manifest, whole
from iceexplore.manifests.rules import Rows
from iceexplore.metadata import ancestry
from iceexplore.storage import canonical

__all__ = [
    "drop_dangling",
    "drop_duplicate_files",
    "drop_entries",
    "drop_lost_manifests",
    "drop_missing_files",
    "drop_split_offsets",
    "drop_surplus_vectors",
    "drop_unreadable_manifests",
    "fill_sequence_numbers",
    "forget_row_ids",
    "raise_above_row_ids",
    "recompute_metrics",
    "restore_snapshot",
    "restore_vector_places",
    "rewrite_lists",
    "rewrite_manifests",
    "set_contents",
    "set_counts",
]

_DELETE_FILE = (
    "Java: table.newDelete().deleteFile(path).commit()",
    "PyIceberg: with tx.update_snapshot().overwrite() as o: o.delete_data_file(file)",
)
#: Row ids from this number on must be damaged: no table has assigned so many.
_MOST_USED_ROW_ID = 2**62
#: Maximum number of snapshot ids in an SQL statement; a comment counts those that are left out.
_MOST_IDS = 200
_DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
Ordinals = npt.NDArray[np.int64]
#: Entries, as positions in their manifest (column ``ordinal``), by the canonical location of the manifest.
Places = dict[str, Ordinals]


def _entries_of(found: list[Finding]) -> Places:
    """Return the positions of all entries that findings are about, by the canonical location of their manifest."""
    out: dict[str, list[Ordinals]] = {}
    for one in found:
        for file, ordinals in one.hits.by_file().items():
            if ordinals is not None:
                out.setdefault(canonical(file), []).append(ordinals)
    return {name: np.unique(np.concatenate(parts)) for name, parts in out.items()}


def _places_of(draft: Draft, rows: Ordinals) -> Places:
    """Return the positions of entries in their manifests, by the canonical location of the manifest.

    Parameters
    ----------
    rows
        The row numbers of these entries in the table ``draft.examination.files.entries``.
    """
    return _places_in(draft.examination.files, rows)


def _places_in(files: LiveFiles, rows: Ordinals) -> Places:
    """Return the positions of entries in their manifests, by the canonical location of the manifest.

    Parameters
    ----------
    rows
        The row numbers of these entries in the table ``files.entries``.
    """
    leaf, ordinals = files.leaf[rows], files.ordinals[rows]
    return {canonical(files.leaves[int(n)][0]): np.unique(ordinals[leaf == n]) for n in np.unique(leaf)}


def _joined(one: Places, other: Places) -> Places:
    empty = np.zeros(0, np.int64)
    return {name: np.union1d(one.get(name, empty), other.get(name, empty)) for name in {**one, **other}}


def _manifests(draft: Draft) -> set[str]:
    """Return the canonical locations of all manifests of all snapshots whose lists can be read."""
    out: set[str] = set()
    for snapshot in draft.state.metadata.snapshots:
        root = draft.state.reader.root(snapshot)
        out |= {canonical(n) for n in build.to_pylist(root.entries["location"]) if n}
    return out


def _hit(batch: EntryBatch, ordinals: Ordinals) -> npt.NDArray[np.bool_]:
    return np.isin(np.asarray(batch.entries["ordinal"]), ordinals)


def _records(draft: Draft, places: Places, *contents: ContentType) -> int:
    """Return the sum of the record counts of the current snapshot's live entries at ``places``.

    The record count of a delete file or deletion vector is the number of its deletes. Unknown record counts are 0.

    Parameters
    ----------
    places
        The positions of the entries in their manifests, by the canonical location of the manifest.
    contents
        The content types of the entries to count. Entries of other types are ignored.
    """
    files = draft.examination.files
    leaf, ordinals = np.asarray(files.entries["leaf"]), np.asarray(files.entries["ordinal"])
    kinds = np.asarray(pc.fill_null(files.entries["content_type"], int(ContentType.DATA)))
    rows = np.asarray(pc.fill_null(files.entries["record_count"], 0))
    counted = np.asarray(pc.fill_null(files.entries["live"], False)) & np.isin(kinds, contents)
    total = 0
    for number, (location, _) in enumerate(files.leaves):
        mine = places.get(canonical(location))
        if mine is not None:
            total += int(rows[counted & (leaf == number) & np.isin(ordinals, mine)].sum())
    return total


# Lists and whole manifests --------------------------------------------------------------------------------------------


def rewrite_manifests(draft: Draft, found: list[Finding]) -> Step:
    """Write faulty manifests, manifest lists and root manifests again, in the form that the spec requires.

    These are the files that the findings are about. The new files have complete headers, and field ids in their
    schemas. Entries that cannot be read, and bounds that cannot be decoded, are left out.
    """
    names = files_of(found)
    mine = names & _manifests(draft)
    for name in mine:
        draft.edit_leaf(name)
    roots = _roots_at(draft, names - mine)
    draft.rewritten_roots |= roots
    text = (
        "Rewrites the files with all entries that can be read. Headers, field ids and values then conform to the spec. "
        "Bounds that cannot be decoded are left out."
    )
    sql = ("CALL <catalog>.system.rewrite_manifests('<table>')",)
    return step_of("Rewrite manifests", text, found, sql=sql)


def _roots_at(draft: Draft, names: set[str]) -> set[int]:
    return {
        s.snapshot_id
        for s in draft.state.metadata.snapshots
        if s.root_location is not None and canonical(s.root_location) in names
    }


def rewrite_lists(draft: Draft, found: list[Finding]) -> Step:
    """Recompute the rows of manifest lists, and the totals of summaries, from the manifests."""
    draft.rewritten_roots |= {s for f in found for s in f.snapshots}
    draft.rewritten_roots |= _roots_at(draft, files_of(found))
    text = (
        "Computes counts, lengths, sequence numbers and partition summaries of manifest lists, and the totals of "
        "snapshot summaries, from the manifests."
    )
    sql = ("CALL <catalog>.system.rewrite_manifests('<table>')",)
    return step_of("Recompute manifest lists", text, found, rows_back=None, sql=sql)


def restore_snapshot(draft: Draft, found: list[Finding]) -> Step:
    """Remove snapshots whose manifest list or root manifest is lost.

    A branch that points to such a snapshot is reset to the snapshot's newest ancestor that remains, or removed if there
    is none. Tags that point to such a snapshot are removed. A snapshot is not removed here if another snapshot in the
    metadata has the same id and a different manifest list: `drop_duplicate_snapshots` removes the one whose manifest
    list is lost.
    """
    files = files_of(found)
    kept = {number_in(s, "snapshot-id") for s in draft.snapshots() if canonical(root_of(s) or "") not in files}
    gone = _roots_at(draft, files) - kept
    draft.dropped_snapshots |= gone
    if not gone:
        text = (
            "Each snapshot whose manifest list is lost is a duplicate: the table keeps another snapshot with the same "
            "id."
        )
        return step_of("Remove snapshots without a manifest list", text, found, rows_lost=0, rows_back=None)
    current = draft.state.metadata.current_snapshot_id
    text = "The manifest list of a snapshot is lost" if len(gone) == 1 else f"{len(gone):,} manifest lists are lost"
    lost: int | None = 0
    sql: tuple[str, ...]
    if current in gone:
        left = next(
            (s for s in ancestry(draft.state.metadata, draft.state.snapshot) if s.snapshot_id not in gone), None
        )
        text += (
            ": the table goes back to the current snapshot's newest readable ancestor, and loses the changes of later "
            "commits."
        )
        at = "<snapshot id>" if left is None else left.snapshot_id
        sql = (f"CALL <catalog>.system.rollback_to_snapshot('<table>', {at})",)
        lost = None
    else:
        text += ". The current snapshot is not affected. Time travel to a removed snapshot was already impossible."
        names = ", ".join(map(str, sorted(gone)[:_MOST_IDS]))
        sql = (f"CALL <catalog>.system.expire_snapshots(table => '<table>', snapshot_ids => ARRAY({names}))",)
        if len(gone) > _MOST_IDS:
            sql += (f"-- and {amount(len(gone) - _MOST_IDS, 'more snapshot')}",)
    return step_of("Remove snapshots without a manifest list", text, found, rows_lost=lost, rows_back=None, sql=sql)


def drop_lost_manifests(draft: Draft, found: list[Finding]) -> Step:
    """Remove lost manifests from V4 trees, and thus the files that only these manifests listed.

    If a compaction wrote a lost manifest, its files are recovered from the manifests of the parent snapshot.
    """
    names = files_of(found)
    names |= _unreadable(draft, {s for f in found for s in f.snapshots})
    draft.dropped_leaves |= names
    lost = 0
    root = draft.state.root()
    deletes = False
    for row in [] if root is None else build.to_pylist(root.entries):
        if canonical(row["location"] or "") in names:
            stats = row["manifest_stats"] or {}
            deletes |= row["content_type"] == ContentType.DELETE_MANIFEST
            if row["content_type"] != ContentType.DELETE_MANIFEST:
                lost += (stats.get("added_rows_count") or 0) + (stats.get("existing_rows_count") or 0)
    text = "Removes these manifests from all snapshots. Files that no other manifest lists are no longer in the table."
    back = _compacted_rows(draft)
    if back:
        lost = max(0, lost - back)
        text += (
            " If a compaction wrote a lost manifest, its files are recovered from the manifests that the compaction "
            "merged."
        )
    unknown = bool(back) and root is not None and not names.isdisjoint(root.dv_rows)
    if unknown:
        text += " Files that manifest deletion vectors had removed from the lost manifests become live again."
    if deletes:
        text += " At least one of the manifests listed delete files: the rows that these files deleted come back."
    python = ("Iceberg's Java API: table.newAppend().appendFile(file) registers a file that still exists",)
    return step_of(
        "Remove lost manifests", text, found, certain=False, rows_lost=lost,
        rows_back=None if deletes or unknown else 0, python=python,
    )  # fmt: skip


def _compacted_rows(draft: Draft) -> int:
    """Return the number of rows in the data files that are recovered from lost manifests of compactions."""
    rows = 0
    for snapshot in ancestry(draft.state.metadata, draft.state.snapshot):
        found = Rows(compacted_files(draft, draft.state.reader, snapshot).entries)
        rows += int(found.ints("record_count")[found.is_kind(ContentType.DATA)].sum())
    return rows


def drop_unreadable_manifests(draft: Draft, found: list[Finding]) -> Step:
    """Remove completely unreadable manifests from V4 trees, and write damaged but readable manifests again."""
    unreadable = _unreadable(draft, {s for f in found for s in f.snapshots})
    lost = [f for f in found if files_of([f]) & unreadable]
    kept = [f for f in found if files_of([f]) - unreadable]
    if not lost:
        return rewrite_manifests(draft, found)
    if kept:
        rewrite_manifests(draft, kept)
    return replace(drop_lost_manifests(draft, lost), title="Remove unreadable manifests")


def _unreadable(draft: Draft, snapshots: set[int]) -> set[str]:
    """Return the canonical locations of completely unreadable manifests in the V4 trees of these snapshots."""
    out: set[str] = set()
    reader = draft.state.reader
    for snapshot in draft.state.metadata.snapshots:
        root = reader.root(snapshot)
        if snapshot.snapshot_id in snapshots and root.dialect.has_root_manifest:
            rows = live_manifests(root)
            out |= {canonical(leaf.location) for leaf in reader.leaves(root, rows) if not leaf.dialect}
    return out


# Entries --------------------------------------------------------------------------------------------------------------


def drop_missing_files(draft: Draft, found: list[Finding]) -> Step:
    """Remove from the manifests the entries that the findings name, and all other entries whose files are missing.

    The other entries are sought in the current snapshot only.
    """
    places = _joined(_places_of(draft, missing_rows(draft.examination)), _entries_of(found))
    _drop(draft, places)
    text = "Removes the manifest entries of files that do not exist. The contents of these files are lost."
    return step_of(
        "Remove entries of missing files", text, found, rows_lost=_records(draft, places, ContentType.DATA),
        rows_back=None if _records(draft, places, *_DELETES) else 0, python=_DELETE_FILE,
    )  # fmt: skip


def drop_entries(draft: Draft, found: list[Finding]) -> Step:
    """Remove the entries of files that cannot be read."""
    places = _entries_of(found)
    _drop(draft, places)
    lost = _records(draft, places, ContentType.DATA)
    back = _records(draft, places, *_DELETES)
    text = "Removes the entries of files that cannot be read."
    if back:
        text += " Some of these are delete files: rows that they deleted may come back."
    return step_of(
        "Remove entries of unreadable files", text, found, certain=False, rows_lost=lost, rows_back=back,
        python=_DELETE_FILE,
    )  # fmt: skip


def drop_dangling(draft: Draft, found: list[Finding]) -> Step:
    """Remove the entries of delete files and deletion vectors that apply to no live data file.

    The entry of a deletion vector may reference a wrong data file, or none. If the footer of the deletion vector's
    Puffin file names a live data file, the entry is kept, and changed to reference that data file.

    Other dangling deletion vectors in V4 trees are not removed here: trees are written after all repairs, and leave out
    deletion vectors whose data files are not live.
    """
    places = _entries_of(found)
    targets, deleted = _named_targets(draft, places)
    for name, ordinals in places.items():
        mine = targets.get(name, {})

        def edit(
            batch: EntryBatch,
            gone: Ordinals = ordinals,
            right: dict[int, str] = mine,
            later: bool = name in draft.in_trees_only,
        ) -> EntryBatch:
            if right:
                at = build.to_pylist(batch.entries["ordinal"])
                given = build.to_pylist(batch.entries["referenced_file"])
                made = [right.get(o, n) for o, n in zip(at, given, strict=True)]
                batch = batch.with_columns(referenced_file=pa.array(made, pa.string()))
            hit = _hit(batch, np.setdiff1d(gone, list(right)))
            if later:
                hit &= np.asarray(batch.entries["deletion_vector"].is_null())
            return batch.filter(pa.array(~hit)) if hit.any() else batch

        draft.edit_leaf(name, edit)
    options = "options => map('remove-dangling-deletes', 'true')"
    sql = (f"CALL <catalog>.system.rewrite_data_files(table => '<table>', {options})",)
    text = "Removes deletes that apply to no live data file; readers return the same rows."
    if deleted:
        text += (
            " But if the Puffin file of a deletion vector names a live data file, the deletion vector is kept. Its "
            "entry now references this data file, and the rows that it marks are deleted again."
        )
    return step_of("Remove dangling deletes", text, found, rows_lost=deleted, sql=sql)


def _named_targets(draft: Draft, places: Places) -> tuple[dict[str, dict[int, str]], int]:
    """Find the data file of each deletion vector whose entry references no data file, or a wrong one.

    This is the data file that the footer of the deletion vector's Puffin file names. If the footer cannot be read, or
    names no live data file, the deletion vector is not in the result.

    Parameters
    ----------
    places
        For each manifest, by its canonical location, the positions of the entries to examine. Only live deletion
        vectors of the current snapshot are examined; other entries are ignored.

    Returns
    -------
    tuple
        A dictionary and a number. The dictionary maps the canonical location of each manifest to a second dictionary,
        which maps the position of a deletion vector's entry in this manifest to the location of its data file. The
        number is the sum of the rows that these deletion vectors delete.
    """
    files = draft.examination.files
    entries = files.entries
    named: dict[tuple[str, int], tuple[str, int]] = {}
    for number, (location, _) in enumerate(files.leaves):
        name = canonical(location)
        mask = (np.asarray(entries["leaf"]) == number) & np.asarray(pc.fill_null(entries["live"], False))
        mask &= np.isin(np.asarray(entries["ordinal"]), places.get(name, ()))
        mask &= np.asarray(entries["deletion_vector"].is_valid())
        columns = ["ordinal", "location", "deletion_vector", "record_count", "referenced_file"]
        for row in build.to_pylist(entries.select(columns).filter(pa.array(mask))):
            target = named_file(draft.state, row)
            if target is not None and target != row["referenced_file"]:
                named[name, row["ordinal"]] = target, row["record_count"] or 0
    out: dict[str, dict[int, str]] = {}
    live = entries["location"].take(build.array(draft.examination.live_data())).combine_chunks()
    there = pc.is_in(pa.array([n for n, _ in named.values()], pa.string()), value_set=live)
    deleted = 0
    for ((name, ordinal), (target, rows)), known in zip(named.items(), build.to_pylist(there), strict=True):
        if known:
            out.setdefault(name, {})[ordinal] = target
            deleted += rows
    return out, deleted


def _drop(draft: Draft, places: Places) -> None:
    for name, ordinals in places.items():

        def edit(batch: EntryBatch, gone: Ordinals = ordinals) -> EntryBatch:
            hit = _hit(batch, gone)
            return batch.filter(pa.array(~hit)) if hit.any() else batch

        draft.edit_leaf(name, edit)


def drop_duplicate_files(draft: Draft, found: list[Finding]) -> Step:
    """Remove all live entries of each data file except its first live entry."""
    entries = draft.examination.files.entries
    rows = draft.examination.live_data()
    names = entries["location"].take(build.array(rows)).combine_chunks().dictionary_encode().indices
    codes = np.asarray(pc.fill_null(names, -1))
    first = np.unique(codes, return_index=True)[1]
    surplus = _places_of(draft, np.delete(rows, first)[np.delete(codes, first) >= 0])
    _drop(draft, surplus)
    twice = _records(draft, surplus, ContentType.DATA)
    text = (
        "Keeps only one live entry of each data file. Readers that returned the rows of a file more than once now "
        f"return {twice:,} fewer rows."
    )
    return step_of("Remove duplicate entries", text, found, rows_lost=twice)


def drop_surplus_vectors(draft: Draft, found: list[Finding]) -> Step:
    """Remove all deletion vectors of each data file except the one with the highest sequence number."""
    entries = draft.examination.files.entries
    mask = pc.and_(
        entries["live"], pc.and_(entries["deletion_vector"].is_valid(), entries["referenced_file"].is_valid())
    )
    rows = np.flatnonzero(np.asarray(pc.fill_null(mask, False)))
    numbers = np.asarray(pc.fill_null(entries["sequence_number"], 0))[rows]
    rows = rows[np.argsort(-numbers, kind="stable")]  # deletion vectors with high sequence numbers first
    names = entries["referenced_file"].take(build.array(rows)).combine_chunks().dictionary_encode().indices
    first = np.unique(np.asarray(names), return_index=True)[1]
    _drop(draft, _places_of(draft, np.delete(rows, first)))
    text = (
        "For each data file, keeps the deletion vector with the highest sequence number and removes the others. The "
        "format requires that the newest deletion vector also contains the positions of the older ones."
    )
    return step_of("Remove surplus deletion vectors", text, found, certain=False, rows_back=None)


def recompute_metrics(draft: Draft, found: list[Finding]) -> Step:
    """Replace the column metrics of entries by those in the footers of their files.

    Files without footers get no metrics. If a finding is about missing metrics, all data entries of the current
    snapshot that have no bounds are included.
    """
    places = _entries_of(found)
    if any(f.code == "metrics-missing" for f in found):
        places = _joined(places, _without_metrics(draft))
    for name, ordinals in places.items():

        def edit(batch: EntryBatch, hit: Ordinals = ordinals) -> EntryBatch:
            return _with_metrics(draft, batch, np.flatnonzero(_hit(batch, hit)))

        draft.edit_leaf(name, edit)
    text = (
        "Computes the column metrics of these files from their footers. Files in other formats than Parquet get no "
        "metrics, so filters cannot skip them."
    )
    sql = ("CALL <catalog>.system.rewrite_data_files(table => '<table>', options => map('rewrite-all', 'true'))",)
    return step_of("Recompute column metrics", text, found, rows_back=None, sql=sql)


def _without_metrics(draft: Draft) -> Places:
    """Return the positions of the current snapshot's live data entries that have no lower bound for any column."""
    out: Places = {}
    for leaf in _current_leaves(draft):
        batch = EntryBatch.of(leaf)
        bare = live_mask(batch) & np.asarray(pc.equal(pc.fill_null(batch.entries["content_type"], 0), 0))
        for array in batch.stats.values():
            bare &= np.asarray(pc.fill_null(pc.struct_field(array, "lower").is_null(), True))
        if bare.any():
            out[canonical(leaf.location)] = np.asarray(batch.entries["ordinal"])[bare]
    return out


def _with_metrics(draft: Draft, batch: EntryBatch, rows: np.ndarray[Any, np.dtype[np.int64]]) -> EntryBatch:
    """Return a batch in which some entries have the column metrics from the footers of their files.

    An entry whose file cannot be read, or has no footer, gets no metrics.

    Parameters
    ----------
    rows
        The indices of these entries in the batch.
    """
    state = draft.state
    names = build.to_pylist(batch.entries["location"])
    columns: dict[int, list[Any]] = {}
    kinds: dict[int, pa.DataType] = {i: array.type for i, array in batch.stats.items()}
    for row in rows.tolist():
        try:
            made = files_of_paths(state, [names[row]], check_duplicates=False)
        except IceexploreError:
            continue
        for field_id, array in made.stats.items():
            kinds.setdefault(field_id, array.type)
            if array.type == kinds[field_id]:
                columns.setdefault(field_id, [None] * len(batch))[row] = array[0]
    chosen = np.zeros(len(batch), bool)
    chosen[rows] = True
    stats = {}
    for field_id, kind in kinds.items():
        fresh = pa.array([None if v is None else v.as_py() for v in columns.get(field_id, [None] * len(batch))], kind)
        old = batch.stats.get(field_id)
        stats[field_id] = fresh if old is None else pc.if_else(pa.array(chosen), fresh, old)
    return EntryBatch(batch.entries, stats, batch.partition)  # type: ignore[arg-type]


def _current_leaves(draft: Draft) -> Iterator[Manifest]:
    """Yield the current snapshot's live manifests.

    The root manifest of a V4 tree may list data files itself, besides manifests. Then the first item is a `Manifest`
    object that has only the entries of these data files.
    """
    root = draft.state.root()
    if root is None:
        return
    own = draft.state.reader.direct(root)
    if own is not None:
        yield own
    yield from (draft.state.reader.leaf(root, row, ALL_PARTS) for row in live_manifests(root))


def restore_vector_places(draft: Draft, found: list[Finding]) -> Step:
    """Replace the offsets and sizes of deletion vectors by those in the footers of their Puffin files."""
    for name, ordinals in _entries_of(found).items():

        def edit(batch: EntryBatch, hit: Ordinals = ordinals) -> EntryBatch:
            mask = _hit(batch, hit)
            rows = build.to_pylist(batch.entries.select(["location", "referenced_file", "deletion_vector"]))
            made = [
                vector_place(draft.state, row) if m else row["deletion_vector"]
                for row, m in zip(rows, mask, strict=True)
            ]
            kind = batch.entries.schema.field("deletion_vector").type
            return batch.with_columns(deletion_vector=pa.array(made, kind))

        draft.edit_leaf(name, edit)
    text = "Takes the offset and size of these deletion vectors from the footers of their Puffin files."
    return step_of("Correct the offsets and sizes of deletion vectors", text, found)


def drop_split_offsets(draft: Draft, found: list[Finding]) -> Step:
    """Remove all split offsets of entries with wrong split offsets; readers then split the files by size."""
    for name, ordinals in _entries_of(found).items():

        def edit(batch: EntryBatch, hit: Ordinals = ordinals) -> EntryBatch:
            given = whole(batch.entries["split_offsets"])
            made = pc.if_else(pa.array(_hit(batch, hit)), pa.scalar(None, given.type), given)
            return batch.with_columns(split_offsets=made)

        draft.edit_leaf(name, edit)
    text = "Removes the split offsets of these files. Readers then split the files by size."
    return step_of("Remove split offsets", text, found)


def forget_row_ids(draft: Draft, found: list[Finding]) -> Step:
    """Assign new row ids to files whose row ids are negative or assigned twice."""
    _assign_row_ids(draft, _entries_of(found))
    text = (
        "Assigns new row ids, which are higher than all existing ones, to the rows of these files. Readers that track "
        "rows by _row_id see these rows as new."
    )
    return step_of("Assign new row ids", text, found, certain=False)


def raise_above_row_ids(draft: Draft, found: list[Finding]) -> list[Step]:
    """Set next-row-id above the row ids of live files; files with impossible ids get new ones."""
    snapshots = {s for f in found for s in f.snapshots}
    chosen = [s for s in draft.state.metadata.snapshots if s.snapshot_id in snapshots]
    files = (Examination.of(draft.state, chosen, "metadata") if chosen else draft.examination).files
    counts = np.asarray(pc.fill_null(files.entries["record_count"], 0)).clip(0)
    first = np.asarray(pc.fill_null(files.entries["first_row_id"], 0))
    live_files = files.alive & (files.kinds == int(ContentType.DATA))
    possible = (first >= 0) & (first < _MOST_USED_ROW_ID) & (counts < _MOST_USED_ROW_ID)
    ends = (first + counts)[live_files & possible]
    impossible = _places_in(files, np.flatnonzero(live_files & ~possible & (first >= 0)))
    end = draft.document["next-row-id"] = max(_following_row_id(draft), int(ends.max(initial=0)))
    text = (
        f"Sets next-row-id to {end:,}, which is above the row ids of all live files and the row-id ranges of all "
        "snapshots."
    )
    steps = [step_of("Raise next-row-id", text, found)]
    if impossible:
        _assign_row_ids(draft, impossible)
        steps.append(forget_row_ids(draft, []))
        count = sum(map(len, impossible.values()))
        steps[-1] = replace(steps[-1], codes=steps[0].codes, modes=steps[0].modes, places=count)
    return steps


def _following_row_id(draft: Draft) -> int:
    """Return the first row id after all assigned ones.

    This is next-row-id or, if that is higher, the end of the ranges of row ids that snapshots have assigned. If
    next-row-id is negative, or so high that it must be damaged, it is ignored.
    """
    stated = number_in(draft.document, "next-row-id")
    return max(assigned_row_ids(draft), stated if stated is not None and 0 <= stated < _MOST_USED_ROW_ID else 0)


def _assign_row_ids(draft: Draft, places: Places) -> None:
    """Request new row ids for the rows of the files whose entries are at ``places``.

    The ids are assigned when the manifests are written, because the range of each file depends on the row counts of the
    files before it, which other repairs may correct.
    """
    starts: dict[str, int] = {}
    for name, ordinals in places.items():

        def edit(batch: EntryBatch, hit: Ordinals = ordinals, name: str = name) -> EntryBatch:
            mask = _hit(batch, hit)
            counts = np.where(mask, np.asarray(pc.fill_null(batch.entries["record_count"], 0)), 0)
            if name not in starts:  # if a manifest is written several times, its files get the same row ids each time
                starts[name] = _following_row_id(draft)
                draft.document["next-row-id"] = starts[name] + int(counts.sum())
            fresh = starts[name] + np.cumsum(counts) - counts
            column = pc.if_else(pa.array(mask), pa.array(fresh, pa.int64()), batch.entries["first_row_id"])
            return batch.with_columns(first_row_id=column)

        draft.edit_leaf(name, edit)


def fill_sequence_numbers(draft: Draft, found: list[Finding]) -> Step:
    """Give entries without a sequence number the number of the snapshot that added them."""
    known = {s.snapshot_id: s.sequence_number for s in draft.state.metadata.snapshots}
    for name, ordinals in _entries_of(found).items():

        def edit(batch: EntryBatch, hit: Ordinals = ordinals) -> EntryBatch:
            mask = _hit(batch, hit)
            ids = build.to_pylist(batch.entries["snapshot_id"])
            columns: dict[str, Any] = {}
            for column in ("sequence_number", "file_sequence_number"):
                given = build.to_pylist(batch.entries[column])
                made = [known.get(i, n) if m and n is None else n for i, n, m in zip(ids, given, mask, strict=True)]
                columns[column] = pa.array(made, pa.int64())
            return batch.with_columns(**columns)

        draft.edit_leaf(name, edit)
    text = "Gives each entry without a sequence number the number of the snapshot that added its file."
    return step_of("Fill in sequence numbers", text, found, certain=False, rows_lost=None)


def set_contents(draft: Draft, found: list[Finding]) -> Step:
    """Set the content type of entries to the kind of their files.

    If the entry has equality ids, the file is an equality delete file. Otherwise, a file with the columns ``file_path``
    and ``pos`` is a position delete file, and any other file is a data file. If a file cannot be read, its content type
    stays.
    """
    for name in files_of(found):

        def edit(batch: EntryBatch) -> EntryBatch:
            rows = build.to_pylist(batch.entries.select(["location", "content_type", "equality_ids"]))
            made = [_content_of(draft, row) for row in rows]
            return batch.with_columns(content_type=pa.array(made, batch.entries.schema.field("content_type").type))

        draft.edit_leaf(name, edit)
    text = (
        "Opens the files that these manifests list, and corrects their content types: data or delete files. The types "
        "of files that cannot be read stay as they are."
    )
    return step_of("Correct the content types of entries", text, found, rows_back=None, rows_lost=None)


def _content_of(draft: Draft, row: dict[str, Any]) -> int | None:
    """Return the content type that fits the columns of an entry's file.

    If the file cannot be read, return the content type that the entry states, which is None if the field is missing.

    Parameters
    ----------
    row
        The entry's ``location``, ``content_type`` and ``equality_ids``.
    """
    location, storage = row["location"], draft.state.storage
    stated: int | None = row["content_type"]
    if location.endswith(PUFFIN.suffixes):
        return int(ContentType.POSITION_DELETE)  # a deletion vector
    found = format_of_suffix(location)
    if found is None:
        return stated
    try:
        with storage.open(location, kind="other") as opened:
            facts = found.facts(DataFile(storage, location, opened, "other"))
    except IceexploreError:
        return stated
    if row["equality_ids"]:
        return int(ContentType.EQUALITY_DELETE)
    names = {leaf.names[0] for leaf in facts.leaves}
    has_positions = {FILE_PATH_ID, POS_ID} <= facts.ids or (not facts.ids and names == {"file_path", "pos"})
    return int(ContentType.POSITION_DELETE if has_positions else ContentType.DATA)


def set_counts(draft: Draft, found: list[Finding]) -> Step:
    """Set the row counts and sizes of entries to the actual values, which the examination found in the files."""
    for one in found:
        column = (one.field or "").split()[-1]
        of_entries: dict[str, list[Found]] = {}
        for values in one.hits.found:
            of_entries.setdefault(canonical(values.manifest), []).append(values)
        for name, parts in of_entries.items():
            _set_each(draft, name, column, parts)
    text = "Sets the row counts and sizes in the entries to the actual values of the files."
    return step_of("Correct counts and sizes", text, found, rows_back=None, rows_lost=None)


def _set_each(draft: Draft, name: str, column: str, parts: Sequence[Found]) -> None:
    """Replace values in the entries of a manifest by those that the examination found in the data and delete files.

    Parameters
    ----------
    name
        The canonical location of the manifest.
    column
        The column of the entry table whose values are replaced.
    parts
        The entries' positions in the manifest, with the values that were found.
    """
    ordinals = np.concatenate([one.ordinals for one in parts])
    values = np.concatenate([one.values for one in parts])
    ordinals, first = np.unique(ordinals, return_index=True)
    values = values[first]

    def edit(batch: EntryBatch) -> EntryBatch:
        mask = _hit(batch, ordinals)
        at = np.searchsorted(ordinals, np.asarray(batch.entries["ordinal"])).clip(max=len(ordinals) - 1)
        given = whole(batch.entries[column])
        made = pc.if_else(pa.array(mask), build.array(values[at]).cast(given.type), given)
        return batch.with_columns(**{column: made})

    draft.edit_leaf(name, edit)
