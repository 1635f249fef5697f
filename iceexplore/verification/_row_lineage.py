"""Check row lineage (spec, "Row Lineage"), reading every row of a file.

Row ids must be unique and assigned by the table, and no row's last update may be later than the commit of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.formats import FileFacts
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import FileTasks, match_deletes
from iceexplore.reading import LAST_UPDATED, ROW_ID, TaskReader, outputs_of
from iceexplore.verification._findings import Checked, Place, Role

__all__ = [
    "LineageCheck",
    "LiveIds",
    "check_kept_ids",
    "claim_row_ids",
    "first_of_each",
    "judge_row_ids",
    "taken_before",
]

#: The number of parts into which the assigned row ids are divided; one worker compares the ranges of one part.
_PARTS = 64
_MOST = 2**63 - 1


def claim_row_ids(state: TableState, place: Place, entry: Mapping[str, Any], found: FileFacts, out: Checked) -> None:
    """Add the row ids that a data file's rows inherit.

    A file with a row id column is skipped: its rows come from other files and kept their ids, which only reading the
    rows reveals (`LiveIds`).
    """
    first = entry["first_row_id"]
    if first is None or first < 0 or found.rows <= 0 or ROW_ID.field_id in found.ids:
        return
    claim_ranges(state, place, [(first, first + found.rows)], out)


def check_kept_ids(state: TableState, place: Place, entry: Mapping[str, Any], found: FileFacts, out: Checked) -> None:
    """Check that a data file written by a rewrite stores row ids, because rewritten rows must keep theirs.

    Only files of snapshots with the operation ``replace`` whose parent had row ids are checked: in other snapshots, old
    rows that got new ids look the same as new rows.
    """
    metadata = state.metadata
    if not metadata.has_row_lineage or entry["first_row_id"] is None or ROW_ID.field_id in found.ids or not found.rows:
        return
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    added = by_id.get(entry["snapshot_id"])
    parent = None if added is None or added.parent_snapshot_id is None else by_id.get(added.parent_snapshot_id)
    if added is None or added.operation != "replace" or parent is None or parent.first_row_id is None:
        return
    text = (
        "The file was written by a rewrite, but stores no row ids: its rows have new ones, and readers that track rows "
        "by _row_id take them for other rows."
    )
    out.say(place, "row-ids-reassigned", text, field=ROW_ID.name, expected="the ids that the rows had")


def claim_ranges(state: TableState, place: Place, ranges: Iterable[tuple[int, int]], out: Checked) -> None:
    """Add the row id ranges of a data file: pairs of a first id (inclusive) and an end (exclusive)."""
    for first, last in ranges:
        end = min(last, _MOST)
        parts = range(_part(state, first), _part(state, end - 1) + 1)
        out.row_ids(place, map(_key, parts), first, end)


def taken_before(checked: pa.Table) -> tuple[AnyArray, AnyArray]:
    """Return, for each row, the greatest end of the row id ranges that begin earlier in the same part, and the file.

    The file is that of the range with this end. Both arrays are null where no range begins earlier.
    """
    ends: list[int | None] = [None] * checked.num_rows
    names: list[str | None] = [None] * checked.num_rows
    places = np.flatnonzero(np.asarray(pc.equal(checked["role"], Role.IDS)))
    by = ["key", "first_id", "named", "manifest", "entry"]
    taken = checked.select([*by, "end_id"]).take(pa.array(places, pa.int64()))
    order = pc.sort_indices(taken, [(name, "ascending") for name in by])
    last, key = (-1, ""), None
    for place, row in zip(places[np.asarray(order)], taken.take(order).to_pylist(), strict=True):
        if row["key"] != key:
            last, key = (-1, ""), row["key"]
        elif last[0] >= 0:
            ends[place], names[place] = last
        last = max(last, (row["end_id"], row["named"]))
    return pa.array(ends, pa.int64()), pa.array(names, pa.string())


def judge_row_ids(place: Place, row: Mapping[str, Any], out: Checked) -> None:
    """Report a range of row ids returned by `first_of_each`, which overlaps a range of another file."""
    first, end = row["first_id"], row["before_end"]
    count = min(end, row["end_id"]) - first
    text = (
        f"{count:,} rows have row ids that are also used in {row['before_named']} (up to {end - 1:,}): consumers that "
        "track rows by id confuse them."
    )
    out.say(place, "row-ids-twice", text, field="first_row_id", found=first, expected=f"at least {end}")


def _is_taken(row: Mapping[str, Any]) -> bool:
    """Return whether a range of row ids begins inside another file's range.

    The result is False outside the part in which the range begins, so that a range is reported once. A file that is
    live twice is not compared with itself, because it has a separate finding.
    """
    end = row["before_end"]
    return end is not None and row["first_id"] < end and row["before_named"] != row["named"] and row["rows"] == 1


def first_of_each(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the overlapping row id ranges, only the first one for each pair of files."""
    found: dict[Any, dict[str, Any]] = {}
    for row in sorted(filter(_is_taken, rows), key=lambda row: int(row["first_id"])):
        found.setdefault((row["named"], row["manifest"], row["entry"], row["before_named"]), row)
    return list(found.values())


def _part(state: TableState, number: int) -> int:
    width = (state.metadata.next_row_id or 0) // _PARTS + 1
    return min(max(number // width, 0), _PARTS)


def _key(part: int) -> str:
    return f"row ids {part}"


#: Maximum number of ranges of consecutive ids per file that are compared with those of other files; the longest ranges
#: are kept.
_MOST_RANGES = 1000


class LineageCheck:
    """A check of the lineage columns of one data file, deleted rows included, against the table's metadata."""

    def __init__(self, state: TableState, entry: Mapping[str, Any], ids: frozenset[int]) -> None:
        metadata = state.metadata
        there = entry["first_row_id"] is not None and metadata.has_row_lineage
        self._fields = [f for f in (ROW_ID, LAST_UPDATED) if there and f.field_id in ids]
        snapshot = state.snapshot
        newest = metadata.last_sequence_number if snapshot is None else snapshot.sequence_number
        # A commit of column files updates rows and raises the data sequence number, so that is the limit here.
        added = entry["sequence_number" if entry["column_files"] else "file_sequence_number"]
        self._ends = {
            ROW_ID.field_id: None if metadata.next_row_id is None else metadata.next_row_id - 1,
            LAST_UPDATED.field_id: newest if added is None else added,
        }
        self._wrong: dict[int, int] = {}
        self._worst: dict[int, int] = {}

    def add(self, table: pa.Table) -> None:
        """Check the next rows, in which `iceexplore.reading` has already replaced nulls by inherited values."""
        for f in self._fields:
            end, values = self._ends[f.field_id], table[f.name]
            if end is None:
                continue
            outside = values.filter(pc.or_(pc.greater(values, end), pc.less(values, 0)))
            if len(outside):
                self._wrong[f.field_id] = self._wrong.get(f.field_id, 0) + len(outside)
                self._worst.setdefault(f.field_id, outside[0].as_py())

    def say(self, place: Place, out: Checked) -> None:
        """Report the findings."""
        for f in self._fields:
            count, end = self._wrong.get(f.field_id), self._ends[f.field_id]
            if not count:
                continue
            if f is ROW_ID:
                code = "row-ids-beyond"
                text = (
                    f"{count:,} rows have row ids that the table has not assigned: future rows will get the same ids."
                )
            else:
                code = "last-updated-beyond"
                text = (
                    f"{count:,} rows have a last updated sequence number above that of the commit that added the file: "
                    "incremental readers miss them."
                )
            out.say(place, code, text, field=f.name, found=self._worst[f.field_id], expected=f"0 to {end}")


class LiveIds:
    """The row ids of the live rows of some data files of one leaf manifest.

    An updated row keeps its id, so two files may contain it as long as the old copy is deleted.
    """

    def __init__(self, state: TableState, files: EntryBatch) -> None:
        self._state = state
        count = len(files)
        data = pc.equal(files.entries["content_type"], 0)
        self._at = np.cumsum(np.asarray(data)) - 1
        some = EntryBatch(files.entries, {}, files.partition).filter(data)
        self._tasks: FileTasks | None = None
        if len(some) and count:
            none = pa.array([0] * len(some), pa.int32())
            self._tasks = FileTasks(
                some, pa.nulls(len(some), pa.int64()), pa.array([True] * len(some), pa.bool_()), none,
                matched=match_deletes(state, some),
            )  # fmt: skip

    def claim(self, row: int, place: Place, entry: Mapping[str, Any], found: FileFacts, out: Checked) -> None:
        """Add the id ranges of the file's live rows, and report ids that several of these rows have."""
        first = entry["first_row_id"]
        if first is None or first < 0 or found.rows <= 0 or self._tasks is None:
            return
        task = self._tasks.take(pa.array([int(self._at[row])], pa.int64()))
        matched = task.matched
        has_deletes = matched.vector[0].is_valid or len(matched.positions[0]) or len(matched.equality[0])
        if ROW_ID.field_id not in found.ids and not has_deletes:
            claim_row_ids(self._state, place, entry, found, out)
            return
        try:
            reader = TaskReader(self._state, task, outputs_of(self._state, [ROW_ID.name]))
            parts = [np.asarray(rows.table.column(0).drop_null()) for rows in reader.read(0)]
        except IceexploreError:  # reported by the checks of the data file and of its deletes, which read the files, too
            return
        ids = np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))
        again = np.flatnonzero(ids[1:] == ids[:-1])
        if len(again):
            text = (
                f"{len(again):,} rows repeat the row id of another row of the file: consumers that track rows by id "
                "confuse them."
            )
            out.say(place, "row-ids-twice", text, field=ROW_ID.name, found=int(ids[again[0]]), expected="once")
        ids = np.unique(ids[ids >= 0])
        if not len(ids):
            return
        cuts = np.flatnonzero(np.diff(ids) != 1) + 1
        starts = ids[np.concatenate([[0], cuts])]
        ends = ids[np.concatenate([cuts, [len(ids)]]) - 1] + 1
        longest = np.sort(np.argsort(starts - ends, kind="stable")[:_MOST_RANGES])
        claim_ranges(self._state, place, zip(starts[longest].tolist(), ends[longest].tolist(), strict=True), out)
