"""Find where a row is or was, and what happened to it there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from iceexplore.errors import OptionError, whole_number
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState
from iceexplore.metadata import NestedField, Snapshot, in_order
from iceexplore.planning import Filter, make_filter
from iceexplore.reading.columns._wanted import chosen_columns
from iceexplore.reading.row_history._deletes import RowDeletes
from iceexplore.reading.row_history._fate import commit_of
from iceexplore.reading.row_history._find import Search, search
from iceexplore.reading.row_history._history import Step, lineage, step_of
from iceexplore.reading.row_history._lines import Line
from iceexplore.reading.row_history._moves import link_moves
from iceexplore.reading.row_history._place import RowPlace
from iceexplore.reading.row_history._places import RowPlaces

__all__ = ["find_rows"]

History = bool | Literal["branches"]
_LIMIT = 1000


def find_rows(
    state: TableState,
    where: FilterLike | Filter | None,
    *,
    columns: Iterable[str] | None = None,
    history: History = False,
    partition: Mapping[str, Any] | None = None,
    limit: int | None = _LIMIT,
) -> RowPlaces:
    """Find all places where a matching row is or was, and what happened to it there.

    The filter prunes manifests and files as in a plan. Each manifest, each candidate data file and each delete file
    that may apply is read once (from files with matching rows, further columns if a delete or a move needs them).

    Parameters
    ----------
    where
        A filter (`iceexplore.planning.make_filter`); None matches every row.
    columns
        Names of columns to show in addition to the identifier fields and the filter's columns. If there are none of
        these, all columns are shown.
    history
        False searches the files that are live in the state, including their deleted rows. True also searches removed
        files of all snapshots in the state's ancestry that are in the metadata. ``"branches"`` adds the ancestry of
        every branch and tag.
    partition
        Search only files of this partition, given by partition field; files of a spec without the field are searched,
        too.
    limit
        The search ends when this number of places is found; None for no limit. Millions of places take much memory.

    Raises
    ------
    OptionError
        The filter, a column or another argument is invalid.
    """
    if history not in (False, True, "branches"):
        raise OptionError(f"history={history!r}: give False, True or 'branches'")
    limit = None if limit is None else whole_number("limit", limit, least=1)
    wanted = make_filter(state.metadata, state.schema, where, partition)
    fields, names = _shown(state, columns, wanted.field_ids)
    lines = _lines(state, history)
    every = {s.snapshot_id: s for snapshots in lines.values() for s in snapshots}
    ordered = in_order(every.values(), by_number=True)
    steps = {s.snapshot_id: step_of(state, s) for s in ordered}
    main = [] if state.snapshot is None else [steps[state.snapshot.snapshot_id]]
    searched = [steps[s.snapshot_id] for s in ordered] if history else main
    found = search(state, searched, wanted, fields, limit)
    deletes = RowDeletes(state, found.files)
    places: dict[Any, RowPlace] = {}
    for name, snapshots in lines.items():
        line = Line(state, name, [steps[s.snapshot_id] for s in snapshots], found, deletes)
        whole = _presence(found, searched, line.steps) if history else None
        for place in line.places(whole):
            known = places.get(place.key)
            places[place.key] = place if known is None else replace(known, lines=(*known.lines, name))
    linked = link_moves(state, found.files, list(places.values()))
    linked.sort(key=lambda p: (p.sequence_number or 0, p.added.timestamp_ms or 0, p.file, p.position))
    oldest = commit_of(state.metadata, ordered[0].snapshot_id) if ordered and history else None
    return RowPlaces(
        state, wanted.text, tuple(names), tuple(linked), bool(history), found.complete, found.candidates,
        dict(found.unread), oldest, None if not found.files else found.files[0].rows.schema,
    )  # fmt: skip


def _shown(
    state: TableState, columns: Iterable[str] | None, filtered: Sequence[int]
) -> tuple[list[NestedField], list[str]]:
    """Return the top-level columns that are read and shown, and their names."""
    wanted = {*state.schema.identifier_field_ids, *filtered}
    if columns is not None:
        wanted |= {output.path[0].field_id for output in chosen_columns(state.metadata, state.schema, columns)}
    own = {f.field_id: {f.field_id} for f in state.schema.fields}
    for name, f in state.schema.walk():
        top = next(t for t in state.schema.fields if t.name == name or name.startswith(f"{t.name}."))
        own[top.field_id].add(f.field_id)
    fields = [f for f in state.schema.fields if own[f.field_id] & wanted] or list(state.schema.fields)
    return fields, [f.name for f in fields]


def _lines(state: TableState, history: History) -> dict[str, list[Snapshot]]:
    """Return the lines of snapshots by name, the state's own first, each with the oldest snapshot first."""
    metadata = state.metadata
    lines = {state.ref or "this state": lineage(metadata, state.snapshot)}
    if history == "branches":
        for name, ref in metadata.refs.items():
            lines.setdefault(name, lineage(metadata, metadata.snapshot(ref.snapshot_id)))
    return lines


def _presence(found: Search, searched: Sequence[Step], steps: Sequence[Step]) -> dict[str, npt.NDArray[np.bool_]]:
    at = {step.snapshot.snapshot_id: i for i, step in enumerate(searched)}
    order = [at[step.snapshot.snapshot_id] for step in steps]
    return {name: present[order] for name, present in found.presence().items()}
