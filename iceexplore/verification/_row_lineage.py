"""Whether the lineage that rows have is true: ids of their own that the table has given out, and no change after the
commit that added their file (spec, "Row Lineage"). Read with every row of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import FileTasks, match_deletes
from iceexplore.reading import LAST_UPDATED, ROW_ID, TaskReader, outputs_of
from iceexplore.verification._findings import Checked, Place, Role
from iceexplore.verification._footers import Footer

__all__ = [
    "LineageCheck",
    "LiveIds",
    "claim_row_ids",
    "first_of_each",
    "judge_row_ids",
    "taken_before",
]

#: Parts of all row ids that a table has given out: what is in one of them one worker compares.
_PARTS = 64
_MOST = 2**63 - 1


def claim_row_ids(state: TableState, place: Place, entry: Mapping[str, Any], found: Footer, out: Checked) -> None:
    """The row ids that a data file takes: those that its rows inherit.

    A file that has a column of row ids takes none: its rows were in other files before, and kept theirs. Which these
    are only its rows say (`iceexplore.verification._row_lineage`).
    """
    first = entry["first_row_id"]
    if first is None or first < 0 or found.rows <= 0 or ROW_ID.field_id in found.ids:
        return
    claim_ranges(state, place, [(first, first + found.rows)], out)


def claim_ranges(state: TableState, place: Place, ranges: Iterable[tuple[int, int]], out: Checked) -> None:
    """Row ids that a data file takes, each from one up to another, the end not with it."""
    for first, last in ranges:
        end = min(last, _MOST)
        parts = range(_part(state, first), _part(state, end - 1) + 1)
        out.row_ids(place, map(_key, parts), first, end)


def taken_before(checked: pa.Table) -> tuple[pa.Array, pa.Array]:
    """For each row where the row ids end that begin before it in its part, and whose file's they are; or null."""
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
    """Say of a row of `first_of_each` that its ids are taken."""
    first, end = row["first_id"], row["before_end"]
    count = min(end, row["end_id"]) - first
    text = (
        f"{count:,} of its rows have the ids of rows in {row['before_named']}, which takes them up to {end - 1:,}: "
        "who follows rows by their ids takes two for one."
    )
    out.say(place, "row-ids-twice", text, field="first_row_id", found=first, expected=f"at least {end}")


def _is_taken(row: Mapping[str, Any]) -> bool:
    """Whether the ids of a row begin among another file's, and the row is of the part where they begin.

    A file that is live twice has a finding of its own.
    """
    end = row["before_end"]
    return end is not None and row["first_id"] < end and row["before_named"] != row["named"] and row["rows"] == 1


def first_of_each(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of row ids that are taken, the first stretch of each file among each other's."""
    found: dict[Any, dict[str, Any]] = {}
    for row in sorted(filter(_is_taken, rows), key=lambda row: int(row["first_id"])):
        found.setdefault((row["named"], row["manifest"], row["entry"], row["before_named"]), row)
    return list(found.values())


def _part(state: TableState, number: int) -> int:
    width = (state.metadata.next_row_id or 0) // _PARTS + 1
    return min(max(number // width, 0), _PARTS)


def _key(part: int) -> str:
    return f"row ids {part}"


#: Stretches of ids that follow each other, the longest of a file, which are compared with those of other files.
_MOST_RANGES = 1000


class LineageCheck:
    """What the rows of one data file say, deleted ones too, beside what the table says."""

    def __init__(self, state: TableState, entry: Mapping[str, Any], ids: frozenset[int]) -> None:
        metadata = state.metadata
        there = entry["first_row_id"] is not None and metadata.has_row_lineage
        self._fields = [f for f in (ROW_ID, LAST_UPDATED) if there and f.field_id in ids]
        snapshot = state.snapshot
        newest = metadata.last_sequence_number if snapshot is None else snapshot.sequence_number
        added = entry["file_sequence_number"]
        self._ends = {
            ROW_ID.field_id: None if metadata.next_row_id is None else metadata.next_row_id - 1,
            LAST_UPDATED.field_id: newest if added is None else added,
        }
        self._wrong: dict[int, int] = {}
        self._worst: dict[int, int] = {}

    def add(self, table: pa.Table) -> None:
        """The next rows, as `iceexplore.reading` gives them: what the file leaves null is inherited."""
        for f in self._fields:
            end, values = self._ends[f.field_id], table[f.name]
            if end is None:
                continue
            outside = values.filter(pc.or_(pc.greater(values, end), pc.less(values, 0)))
            if len(outside):
                self._wrong[f.field_id] = self._wrong.get(f.field_id, 0) + len(outside)
                self._worst.setdefault(f.field_id, outside[0].as_py())

    def say(self, place: Place, out: Checked) -> None:
        """What was found."""
        for f in self._fields:
            count, end = self._wrong.get(f.field_id), self._ends[f.field_id]
            if not count:
                continue
            if f is ROW_ID:
                code = "row-ids-beyond"
                text = f"{count:,} of its rows have ids that the table has not given out: rows to come get the same."
            else:
                code = "last-updated-beyond"
                text = (
                    f"{count:,} of its rows were last updated, they say, after the commit that added the file: who "
                    "follows changes by that number misses them."
                )
            out.say(place, code, text, field=f.name, found=self._worst[f.field_id], expected=f"0 to {end}")


class LiveIds:
    """The ids of the live rows of some data files of one leaf.

    A row that is updated keeps its id: as long as its old place is deleted, two files have it.
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

    def claim(self, row: int, place: Place, entry: Mapping[str, Any], found: Footer, out: Checked) -> None:
        """Say what ids the file's live rows take; and which of them several of these rows have."""
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
        except IceexploreError:  # a finding of its own: the file is read as a whole besides, and so are its deletes
            return
        ids = np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))
        again = np.flatnonzero(ids[1:] == ids[:-1])
        if len(again):
            text = f"{len(again):,} of its rows have the ids of others of its rows: who follows rows takes two for one."
            out.say(place, "row-ids-twice", text, field=ROW_ID.name, found=int(ids[again[0]]), expected="once")
        ids = np.unique(ids[ids >= 0])
        if not len(ids):
            return
        cuts = np.flatnonzero(np.diff(ids) != 1) + 1
        starts = ids[np.concatenate([[0], cuts])]
        ends = ids[np.concatenate([cuts, [len(ids)]]) - 1] + 1
        longest = np.sort(np.argsort(starts - ends, kind="stable")[:_MOST_RANGES])
        claim_ranges(self._state, place, zip(starts[longest].tolist(), ends[longest].tolist(), strict=True), out)
