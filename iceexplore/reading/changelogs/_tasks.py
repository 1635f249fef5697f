"""Plan the reads for a changelog: the data files that each snapshot affects, with their deletes before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.deletes import PositionSet
from iceexplore.errors import FileMissingError, OptionError
from iceexplore.expressions import ALWAYS, Expression
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import NestedField, Snapshot, TableMetadata
from iceexplore.planning import Filter, MatchedDeletes, evaluate, match_deletes
from iceexplore.reading._data_file import read_data_file
from iceexplore.reading._equality_deletes import EqualityDeletes, equality_fields
from iceexplore.reading._position_deletes import PositionDeletes
from iceexplore.reading.changelogs._algebra import CHANGE_FIELDS, CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID
from iceexplore.reading.changelogs._files import begin_after, changes_of_entries, changes_of_step
from iceexplore.reading.columns._wanted import pruned
from iceexplore.reading.row_history._history import Step, lineage, step_of

__all__ = ["ChangeFiles", "ChangeReader", "change_files", "is_expired_start", "numbered_snapshots"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChangeFiles:
    """Data files whose rows one snapshot changed, all in the same way.

    Attributes
    ----------
    ordinal, snapshot_id
        Number of the snapshot among the reported ones, and its id.
    kind
        ``removed`` or ``added`` files, or ``kept`` ones whose deleted rows differ before and after the snapshot.
    files
        Entries and partition tuples.
    sides
        The deletes that apply: before the snapshot for removed files, after it for added ones, both for kept ones. None
        if they are unknown because the parent has expired.
    """

    ordinal: int
    snapshot_id: int
    kind: Literal["removed", "added", "kept"]
    files: EntryBatch
    sides: tuple[MatchedDeletes | None, ...]

    def __len__(self) -> int:
        return len(self.files)


def is_expired_start(metadata: TableMetadata, start: object, after: Snapshot | None) -> bool:
    """Return whether `start` is the id of the oldest ancestor's expired parent, so that all later snapshots exist."""
    line = lineage(metadata, after)
    number = line[0].parent_snapshot_id if line else None
    return number is not None and not isinstance(start, bool) and start == number and metadata.snapshot(number) is None


def numbered_snapshots(
    state: TableState, before: Snapshot | None, after: Snapshot | None
) -> list[tuple[int, Snapshot]]:
    """Return the snapshots that a changelog reports, with their indices in the ancestry.

    These are the snapshots after `before`, up to and including `after`, without those of operation ``replace``.

    Raises
    ------
    OptionError
        `before` is not an ancestor of `after`.
    """
    if after is None:
        return []
    line = lineage(state.metadata, after)
    ids = [s.snapshot_id for s in line]
    start = 0
    if before is not None:
        if before.snapshot_id not in ids:
            raise OptionError(
                f"snapshot {before.snapshot_id} is not an ancestor of {after.snapshot_id}: row changes between them "
                "do not belong to one line of snapshots"
            )
        start = ids.index(before.snapshot_id) + 1
    return [(i, s) for i, s in enumerate(line) if i >= start and s.operation != "replace"]


def change_files(
    state: TableState, before: Snapshot | None, after: Snapshot | None, wanted: Filter
) -> Iterator[list[ChangeFiles]]:
    """Yield the files to read for the changes of each snapshot after `before`, up to and including `after`, in order.

    Manifests that a snapshot shares with its parent are not read, except for files whose deletes changed. Data files
    are not read. Position delete files are read unless their entry references a single data file.

    Parameters
    ----------
    wanted
        Files in which no row can match are left out.

    Raises
    ------
    OptionError
        `before` is not an ancestor of `after`.
    UnsupportedError
        The parent of a snapshot has expired, and the snapshot has deletes.
    FormatError, FileMissingError
        A required file is damaged or missing.
    """
    reported = numbered_snapshots(state, before, after)
    if after is None or not reported:
        return
    line = lineage(state.metadata, after)
    for ordinal, (at, _) in enumerate(reported):
        yield _of_snapshot(state, line, at, ordinal, wanted)


def _of_snapshot(
    state: TableState, line: Sequence[Snapshot], at: int, ordinal: int, wanted: Filter
) -> list[ChangeFiles]:
    new = step_of(state, line[at])
    expired = at == 0 and line[0].parent_snapshot_id is not None
    old = step_of(state, line[at - 1]) if at else None
    files = changes_of_entries(new, wanted) if expired else changes_of_step(old, new, wanted)
    number = line[at].snapshot_id
    out = []
    if len(files.removed):
        out.append(ChangeFiles(ordinal, number, "removed", files.removed, (_deletes(old, files.removed),)))
    if len(files.added):
        out.append(ChangeFiles(ordinal, number, "added", files.added, (_deletes(new, files.added),)))
    if len(files.kept):
        sides = (_deletes(old, files.kept), _deletes(new, files.kept))
        out.append(ChangeFiles(ordinal, number, "kept", files.kept, sides))
    return out


def _deletes(step: Step | None, files: EntryBatch) -> MatchedDeletes | None:
    return None if step is None else match_deletes(step.state, files)


class _Side:
    """The deletes of some data files in one snapshot."""

    def __init__(self, state: TableState, files: EntryBatch, matched: MatchedDeletes | None) -> None:
        self.positions = None if matched is None else PositionDeletes(state, files, matched)
        self.equality = None if matched is None else EqualityDeletes(state, matched)

    def numbers(self, row: int) -> tuple[int, ...]:
        return () if self.equality is None else self.equality.numbers(row)

    def ids(self, row: int) -> frozenset[int]:
        numbers = self.numbers(row)
        return frozenset() if self.equality is None or not numbers else self.equality.ids(numbers)

    def gone(self, row: int) -> list[PositionSet]:
        return [] if self.positions is None else [positions for _, positions in self.positions.of(row)]


class ChangeReader:
    """Reads the rows that one snapshot changed in some files, still including rows that it carries over.

    Parameters
    ----------
    state
        Any state of the table; rows are read in its schema.
    fields
        The columns of the rows.
    condition
        Return only rows that match.
    """

    def __init__(
        self, state: TableState, change: ChangeFiles, fields: Iterable[NestedField], condition: Expression = ALWAYS
    ) -> None:
        self._state = state
        self._change = change
        self._fields = list(fields)
        self._condition = condition
        self._files = EntryBatch(change.files.entries, {}, change.files.partition)
        self._sides = [_Side(state, change.files, matched) for matched in change.sides]

    def read(self, row: int) -> Iterator[pa.Table]:
        """Yield the rows of one file, with ``_change_type``, ``_change_ordinal`` and ``_commit_snapshot_id``.

        Raises
        ------
        FormatError, UnsupportedError, FileMissingError
            The data file, or a delete that applies, cannot be read.
        """
        if self._change.kind == "removed" and self._change.sides[0] is None:
            self._check_left(row)
        for table, masks in self._masked(row):
            if self._change.kind == "kept":
                was, now = masks
                yield self._with_change(table, ~was & now, "DELETE")
                yield self._with_change(table, was & ~now, "INSERT")
            else:
                yield self._with_change(table, ~masks[0], "DELETE" if self._change.kind == "removed" else "INSERT")

    def _check_left(self, row: int) -> None:
        """Raise an error if the file is missing: the last snapshot that referenced it may have expired."""
        location = self._files.entries["location"][row].as_py()
        if not self._state.storage.exists(location):
            raise FileMissingError(
                f"the parent of snapshot {self._change.snapshot_id} has expired, and {location} was removed with it: "
                f"the rows that the snapshot deleted are unknown. {begin_after(self._change.snapshot_id)}"
            )

    def _masked(self, row: int) -> Iterator[tuple[pa.Table, list[Mask]]]:
        """Yield rows of a data file, with a mask of deleted rows for each side."""
        ids = {i for side in self._sides for i in side.ids(row)}
        paths = equality_fields(self._state, ids) if ids else {}
        fields = list(self._fields)
        for number, path in paths.items():  # columns that have been dropped
            if not pruned(self._fields, {number}):
                fields += pruned([path[0]], {number})
        gone = [side.gone(row) for side in self._sides]
        for table in read_data_file(self._state, self._files.take([row]), fields):
            if not table.num_rows:
                continue
            start = table[table.num_columns - 1][0].as_py()
            masks = []
            for side, by_position in zip(self._sides, gone, strict=True):
                deleted = np.zeros(table.num_rows, dtype=bool)
                for positions in by_position:
                    positions.mark(deleted, start)
                if side.equality is not None and side.numbers(row):
                    deleted |= side.equality.mask(side.numbers(row), table, paths)
                masks.append(deleted)
            yield table, masks

    def _with_change(self, table: pa.Table, keep: Mask, kind: str) -> pa.Table:
        rows = table.filter(pa.array(keep))
        if self._condition != ALWAYS:
            rows = rows.filter(evaluate(self._condition, rows))
        rows = rows.select(range(len(self._fields)))
        values = {
            CHANGE_TYPE: kind,
            CHANGE_ORDINAL: self._change.ordinal,
            COMMIT_SNAPSHOT_ID: self._change.snapshot_id,
        }
        for field in CHANGE_FIELDS:
            rows = rows.append_column(field, pa.repeat(pa.scalar(values[field.name], field.type), rows.num_rows))
        return rows
