"""Find the data files with matching rows in some snapshots; each manifest and each file is read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import NestedField
from iceexplore.planning import Filter, evaluate, may_hold
from iceexplore.reading._data_file import read_data_file
from iceexplore.reading.columns._wanted import LAST_UPDATED, ROW_ID, pruned
from iceexplore.reading.row_history._history import DATA, LeafKey, Step, is_damaged, read_leaves
from iceexplore.storage import progress

__all__ = ["FoundFile", "Search", "read_rows_at", "search"]

_POS = "_pos"


@dataclass
class FoundFile:
    """A data file with matching rows.

    Attributes
    ----------
    file
        Its entry as a batch of one row, from the newest snapshot that has it.
    rows
        The matching rows: the fields that were read, ``_pos``, ``_row_id``, ``_last_updated_sequence_number``.
    """

    location: str
    file: EntryBatch
    rows: pa.Table

    @property
    def entry(self) -> dict[str, Any]:
        """Return the entry as a dictionary."""
        found: dict[str, Any] = self.file.entries.to_pylist()[0]
        return found

    @property
    def positions(self) -> npt.NDArray[np.int64]:
        """Return the positions of the rows in the file."""
        return np.asarray(whole(self.rows[_POS]))


@dataclass
class Search:
    """The result of a search.

    Attributes
    ----------
    files
        Files with matching rows, those of the newest snapshots first.
    candidates
        Number of data files that could have matching rows, according to metadata.
    unread
        Data files that could not be read, with the reason.
    complete
        False if the search ended at its limit.
    """

    files: list[FoundFile] = field(default_factory=list)
    candidates: int = 0
    unread: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    _steps: Sequence[Step] = ()
    _by_leaf: dict[LeafKey, EntryBatch] = field(default_factory=dict)
    _damaged: dict[LeafKey, str] = field(default_factory=dict)

    def doubt(self, step: Step) -> str | None:
        """Return why some data files of a step are unknown; None if all are known."""
        if not step.readable:
            return f"{step.root.location or 'the root'} of snapshot {step.snapshot.snapshot_id} is partly unreadable"
        return next((self._damaged[key] for key in step.data if key in self._damaged), None)

    def presence(self) -> dict[str, npt.NDArray[np.bool_]]:
        """Return, for each file found, a mask of the snapshots in which it is live, where these are readable."""
        names = pa.array([f.location for f in self.files], pa.string())
        held: dict[LeafKey, list[str]] = {}
        for key, batch in self._by_leaf.items():
            locations = whole(batch.entries["location"])
            mine = locations.filter(pc.is_in(locations, value_set=names))
            if len(mine):
                held[key] = build.to_pylist(mine)
        out = {f.location: np.zeros(len(self._steps), dtype=bool) for f in self.files}
        for i, step in enumerate(self._steps):
            for key in step.data:
                for name in held.get(key, ()):
                    out[name][i] = True
        return out


def search(
    state: TableState, steps: Sequence[Step], wanted: Filter, fields: Sequence[NestedField], limit: int | None
) -> Search:
    """Find the rows that match.

    Parameters
    ----------
    steps
        Oldest first; the newest is searched first.
    fields
        Fields to read in addition to the filter's columns.
    limit
        The search ends when this number of rows is reached.
    """
    made = Search(_steps=steps)
    every = _fields(state, wanted, fields)
    seen: set[str] = set()
    rows = 0
    for i in range(len(steps) - 1, -1, -1):
        candidates = list(_candidates(made, steps[i], wanted, seen))
        made.candidates += sum(len(batch) for batch in candidates)
        if not made.complete:
            continue  # read no more data, only manifests, to see how long the files found were live
        with progress(sum(len(batch) for batch in candidates), "data files") as advance:
            for batch in candidates:
                for row in range(len(batch)):
                    if limit is not None and rows >= limit:
                        made.complete = False
                        break
                    most = None if limit is None else limit - rows
                    rows += _look(state, made, batch.take([row]), wanted, every, most)
                    advance()
    return made


def _candidates(made: Search, step: Step, wanted: Filter, seen: set[str]) -> Iterator[EntryBatch]:
    """Yield the candidate files in manifests that no newer step has."""
    new = [key for key in step.data if key not in made._by_leaf]
    rows = np.array([step.data[key] for key in new], dtype=np.int64)
    named = rows[rows >= 0]
    may = dict(zip(named.tolist(), np.asarray(may_hold(step.state, step.root, named, wanted)).tolist(), strict=True))
    keep = []
    for key, row in zip(new, rows.tolist(), strict=True):
        if may.get(row, True):
            keep.append(key)
        else:
            made._by_leaf[key] = EntryBatch.empty()
    for key, leaf, batch in read_leaves(step, keep, DATA, stats=wanted.stats_ids):
        found, _ = wanted.evaluate(batch, step.state.metadata)
        kept = batch.filter(found)
        made._by_leaf[key] = kept
        if is_damaged(leaf):
            made._damaged[key] = f"manifest {leaf.location} is partly unreadable"
        locations = kept.entries["location"].to_pylist()
        fresh = [n is not None and n not in seen for n in locations]
        seen.update(n for n in locations if n is not None)
        yield kept.filter(pa.array(fresh, pa.bool_()))


def _look(
    state: TableState, made: Search, file: EntryBatch, wanted: Filter, fields: list[NestedField], most: int | None
) -> int:
    location = file.entries["location"][0].as_py()
    parts: list[pa.Table] = []
    rows = 0
    try:
        for table in read_data_file(state, file, fields):
            chosen = table.filter(evaluate(wanted.expression, table))
            if most is not None and rows + chosen.num_rows > most:  # a file may have millions of rows
                parts.append(chosen.slice(0, most - rows))
                made.complete = False
                break
            if chosen.num_rows:
                parts.append(chosen)
                rows += chosen.num_rows
    except IceexploreError as error:
        made.unread[location] = str(error)
        state.problems.add_error(error, location)
    if not parts:
        return 0
    found = FoundFile(location, file, pa.concat_tables(parts).combine_chunks())
    made.files.append(found)
    return int(found.rows.num_rows)


def _fields(state: TableState, wanted: Filter, fields: Sequence[NestedField]) -> list[NestedField]:
    ids = {f.field_id for f in fields} | set(wanted.field_ids)
    return [*pruned(state.schema.fields, ids), ROW_ID, LAST_UPDATED]


def read_rows_at(state: TableState, found: FoundFile, fields: Sequence[NestedField]) -> pa.Table:
    """Return further columns of the rows found in a file, in the same order of rows."""
    positions = pa.array(found.positions)
    parts = []
    for table in read_data_file(state, found.file, list(fields)):
        parts.append(table.filter(pc.is_in(table[_POS], value_set=positions)))
    return pa.concat_tables(parts)
