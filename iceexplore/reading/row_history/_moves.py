"""Find the new places of rows that were moved or updated: by row id, or guessed from equal values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.reading.row_history._codes import row_codes
from iceexplore.reading.row_history._fate import Move, with_move
from iceexplore.reading.row_history._find import FoundFile, read_rows_at
from iceexplore.reading.row_history._place import RowPlace

__all__ = ["link_moves"]

Key = Callable[[int], Hashable]


def link_moves(state: TableState, files: Sequence[FoundFile], places: Sequence[RowPlace]) -> list[RowPlace]:
    """Link each row that was deleted or removed to its replacement, one of the found rows that the same snapshot added.

    Rows are first linked by ``_row_id`` (spec, "Row Lineage"). For rows without one, links are guesses, in the order of
    files and positions: first rows that were removed with their file and are equal in every column, then rows with
    equal identifier fields.
    """
    out = list(places)
    taken: set[int] = set()

    def pair(key: Key, ended: Sequence[int], *, guess: bool, changed: bool | None) -> None:
        new: dict[Hashable, list[int]] = {}
        for i, place in enumerate(out):
            if i not in taken and (k := key(i)) is not None:
                new.setdefault((place.added.snapshot_id, k), []).append(i)
        for i in ended:
            at = out[i]
            k = key(i)
            if at.fate.moved_to is not None or at.fate.by is None or k is None:
                continue
            mine = new.get((at.fate.by.snapshot_id, k), [])
            found = next((j for j in mine if j != i and set(out[j].lines) & set(at.lines)), None)
            if found is None:
                continue
            mine.remove(found)
            taken.add(found)
            became = out[found]
            differs = became.last_updated != at.last_updated if changed is None else changed
            out[i] = replace(at, fate=with_move(at.fate, Move(became.file, became.position, guess, differs)))
            out[found] = replace(became, moved_from=Move(at.file, at.position, guess, differs))

    ended = [i for i, p in enumerate(out) if p.fate.kind in ("deleted", "removed")]
    pair(lambda i: out[i].row_id, ended, guess=False, changed=None)
    ended = [i for i in ended if out[i].row_id is None and out[i].fate.moved_to is None]
    if not ended:
        return out
    gone = [i for i in ended if out[i].fate.kind == "removed"]
    codes = _codes(state, files, out, gone)
    pair(lambda i: codes.get((out[i].file, out[i].position)), gone, guess=True, changed=False)
    names = [f.name for f in state.schema.fields if f.field_id in state.schema.identifier_field_ids]
    if names:

        def identifier(i: int) -> Hashable:
            values = [out[i].values.get(name) for name in names]
            return repr(values) if out[i].row_id is None else None

        pair(identifier, ended, guess=True, changed=True)
    return out


def _codes(
    state: TableState, files: Sequence[FoundFile], places: Sequence[RowPlace], gone: Sequence[int]
) -> dict[tuple[str, int], int]:
    """Return codes that are equal for rows with equal values in every column, for the files involved."""
    when = {by.snapshot_id for i in gone if (by := places[i].fate.by) is not None}
    names = {places[i].file for i in gone} | {p.file for p in places if p.added.snapshot_id in when}
    tables: list[Any] = []
    keys: list[tuple[str, int]] = []
    for file in files if len(names) > 1 else ():
        if file.location not in names:
            continue
        try:
            table = read_rows_at(state, file, state.schema.fields)
        except IceexploreError as error:
            state.problems.add_error(error, file.location)
            continue
        tables.append(table)
        keys += [(file.location, p) for p in build.to_pylist(table["_pos"])]
    if not tables:
        return {}
    every = pa.concat_tables(tables).drop_columns(["_pos"])
    return dict(zip(keys, row_codes(every.columns, every.num_rows).tolist(), strict=True))
