"""Whether two data files take the same row ids: each row of a table has one of its own (spec, "Row Lineage").

Of two files it is said once, of the first stretch of ids that both take, in the part where this begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import TableState
from iceexplore.reading import ROW_ID
from iceexplore.verification._findings import Checked, Place, Role
from iceexplore.verification._footers import Footer

__all__ = ["claim_ranges", "claim_row_ids", "first_of_each", "judge_row_ids", "taken_before"]

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
