"""Changes by rows: what each snapshot inserted and deleted, as Iceberg's procedure ``create_changelog_view`` has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import NestedField, Snapshot
from iceexplore.planning import ALWAYS, Filter, evaluate, make_filter, match_deletes
from iceexplore.reading._changelog_algebra import (
    CHANGE_COLUMNS,
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    net_of,
    with_updates,
    without_carryovers,
)
from iceexplore.reading._changelog_files import FileChanges, changes_of_entries, changes_of_step
from iceexplore.reading._columns import Output, chosen_columns, pruned
from iceexplore.reading._columns_convert import arrow_field
from iceexplore.reading._data_file import read_data_file
from iceexplore.reading._deletes import PositionDeletes
from iceexplore.reading._deletes_equality import EqualityDeletes, column_of, equality_fields
from iceexplore.reading._history import Step, lineage, step_of
from iceexplore.storage import progress

__all__ = ["changelog", "changelog_batches"]

_TYPES = {CHANGE_TYPE: pa.string(), CHANGE_ORDINAL: pa.int32(), COMMIT_SNAPSHOT_ID: pa.int64()}
Mask = npt.NDArray[np.bool_]


def changelog(
    state: TableState,
    before: Snapshot | None,
    after: Snapshot | None,
    *,
    columns: Any = None,
    where: Any = None,
    identifier_columns: Iterable[str] | None = None,
    compute_updates: bool | None = None,
    net_changes: bool = False,
) -> pa.Table:
    """The rows that the snapshots after `before`, up to and with `after`, inserted and deleted.

    As Iceberg's Spark procedure ``create_changelog_view``: rows that one snapshot deletes and inserts again unchanged
    (copy-on-write carries them over) are left out; snapshots of operation ``replace`` change nothing, even where their
    writer has added rows by them; columns are those of the state's schema, whatever schema was current then. Java
    refuses tables with delete files; here a row that a position delete, a deletion vector or an equality delete newly
    removes is a DELETE of the snapshot that added the delete, and a row that a removed delete brings back an INSERT.

    Parameters
    ----------
    before
        None: from the beginning, as far back as the metadata has it.
    after
        None, of a table without a snapshot: no changes.
    columns
        Which columns of the schema to give; carry-overs and net changes go by all of them all the same.
    where
        A filter: only changes of rows that match. An update that makes a row match is an INSERT.
    identifier_columns
        What tells rows apart, for updates; by default the schema's identifier fields.
    compute_updates
        Whether a row deleted and a row inserted with the same identifier by one snapshot are UPDATE_BEFORE and
        UPDATE_AFTER; by default if `identifier_columns` are given.
    net_changes
        Changes of several snapshots that undo each other are left out.

    Returns
    -------
    pyarrow.Table
        The columns, then ``_change_type``, ``_change_ordinal`` (int32, from 0: the snapshots in their order, those of
        operation ``replace`` not counted) and ``_commit_snapshot_id``; in the order of the snapshots.

    Raises
    ------
    OptionError
        `before` is no ancestor of `after`; columns, the filter or the options make no sense; updates cannot be told,
        because one snapshot deleted several rows of one identifier.
    UnsupportedError
        The parent of a snapshot has expired, and it has deletes.
    FormatError, FileMissingError
        A file that is needed is damaged or gone.
    """
    options = _Options(state, columns, where, identifier_columns, compute_updates, net_changes)
    parts = [options.empty(), *_snapshots(state, before, after, options)]
    made = pa.concat_tables(parts)
    if net_changes:
        made = net_of(made)
    return options.output(made)


def changelog_batches(
    state: TableState,
    before: Snapshot | None,
    after: Snapshot | None,
    *,
    columns: Any = None,
    where: Any = None,
    identifier_columns: Iterable[str] | None = None,
    compute_updates: bool | None = None,
) -> Iterator[pa.Table]:
    """`changelog` snapshot by snapshot: in memory are the changed rows of one, before its carry-overs are left out.

    Raises
    ------
    OptionError, UnsupportedError, FormatError, FileMissingError
        As of `changelog`.
    """
    options = _Options(state, columns, where, identifier_columns, compute_updates, False)
    for part in _snapshots(state, before, after, options):
        yield options.output(part)


class _Options:
    """The arguments, checked."""

    def __init__(
        self,
        state: TableState,
        columns: Any,
        where: Any,
        identifier_columns: Iterable[str] | None,
        compute_updates: bool | None,
        net: bool,
    ) -> None:
        self.state = state
        self.filter: Filter = make_filter(state.metadata, state.schema, where)
        self.fields: list[NestedField] = list(state.schema.fields)
        clash = [f.name for f in self.fields if f.name in CHANGE_COLUMNS]
        if clash:
            raise OptionError(f"the table has a column {clash[0]!r}, which is a column of changelogs")
        self.outputs = _own(state, columns)
        self.net = net
        self.updates = identifier_columns is not None if compute_updates is None else compute_updates
        if self.updates and net:
            raise OptionError("net_changes=True leaves out what updates are made of: give one, or compute_updates")
        self.identifiers: list[Output] = []
        if self.updates:
            names = identifier_columns
            if names is None:
                ids = state.schema.identifier_field_ids
                names = [name for name, f in state.schema.walk() if f.field_id in ids]
            self.identifiers = _own(state, names) if (names := list(names)) else []
            if not self.identifiers:
                raise OptionError(
                    "compute_updates needs identifier_columns: the schema has no identifier fields, by which rows "
                    "would be told apart"
                )

    def empty(self) -> pa.Table:
        """No changes."""
        fields = [arrow_field(f) for f in self.fields] + [pa.field(name, kind) for name, kind in _TYPES.items()]
        return pa.schema(fields).empty_table()

    def output(self, table: pa.Table) -> pa.Table:
        """The columns that are wanted."""
        chosen = [(o.name, arrow_field(o.field), column_of(table, o.path)) for o in self.outputs]
        fields = [field.with_name(name) for name, field, _ in chosen]
        fields += [pa.field(name, kind) for name, kind in _TYPES.items()]
        arrays = [array for _, _, array in chosen] + [table[name] for name in _TYPES]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _own(state: TableState, columns: Any) -> list[Output]:
    """Columns of the schema by name."""
    out = chosen_columns(state.metadata, state.schema, columns)
    known = {f.field_id for _, f in state.schema.walk()}
    strange = [o.name for o in out if o.field.field_id not in known]
    if strange:
        raise OptionError(f"columns: {strange[0]!r} is no column of the table; a changelog has rows, not places")
    return out


def _snapshots(
    state: TableState, before: Snapshot | None, after: Snapshot | None, options: _Options
) -> Iterator[pa.Table]:
    line = lineage(state.metadata, after)
    if after is None:
        return
    ids = [s.snapshot_id for s in line]
    start = 0
    if before is not None:
        if before.snapshot_id not in ids:
            raise OptionError(
                f"snapshot {before.snapshot_id} is no ancestor of {after.snapshot_id}: the changes of rows between "
                "them are not those of one line of snapshots"
            )
        start = ids.index(before.snapshot_id) + 1
    wanted = [i for i in range(start, len(line)) if line[i].operation != "replace"]
    with progress(len(wanted), "snapshots") as advance:
        for ordinal, i in enumerate(wanted):
            yield _of_snapshot(state, line, i, ordinal, options)
            advance()


def _of_snapshot(state: TableState, line: Sequence[Snapshot], at: int, ordinal: int, options: _Options) -> pa.Table:
    after = step_of(state, line[at])
    expired = at == 0 and line[0].parent_snapshot_id is not None
    before = step_of(state, line[at - 1]) if at else None
    files = changes_of_entries(after, options.filter) if expired else changes_of_step(before, after, options.filter)
    parts = [options.empty()]
    for kind, rows in _rows(state, before, after, files, options):
        constants = {CHANGE_TYPE: kind, CHANGE_ORDINAL: ordinal, COMMIT_SNAPSHOT_ID: line[at].snapshot_id}
        for name, value in constants.items():
            rows = rows.append_column(
                pa.field(name, _TYPES[name]), pa.repeat(pa.scalar(value, _TYPES[name]), rows.num_rows)
            )
        parts.append(rows)
    made = pa.concat_tables(parts)
    if options.net:
        return made
    made = without_carryovers(made)
    if options.updates:
        made = with_updates(made, {o.name: column_of(made, o.path) for o in options.identifiers})
    return made


def _rows(
    state: TableState, before: Step | None, after: Step, files: FileChanges, options: _Options
) -> Iterator[tuple[str, pa.Table]]:
    """The rows that were deleted and inserted, each data file read once; carry-overs are still there."""
    sides = [(before, files.removed), (after, files.added)]
    for (step, batch), kind in zip(sides, ("DELETE", "INSERT"), strict=True):
        side = _Side(step, batch)
        for row in range(len(batch)):
            for table, deleted in _read(state, batch, row, [side], options):
                yield kind, _chosen(table, ~deleted[0], options)
    if len(files.kept):
        both = [_Side(before, files.kept), _Side(after, files.kept)]
        for row in range(len(files.kept)):
            for table, (was, now) in _read(state, files.kept, row, both, options):
                yield "DELETE", _chosen(table, ~was & now, options)
                yield "INSERT", _chosen(table, was & ~now, options)


class _Side:
    """The deletes of some data files in one snapshot."""

    def __init__(self, step: Step | None, files: EntryBatch) -> None:
        state = None if step is None else step.state
        self.positions: PositionDeletes | None = None
        self.equality: EqualityDeletes | None = None
        if state is not None and len(files):
            matched = match_deletes(state, files)
            self.positions = PositionDeletes(state, files, matched)
            self.equality = EqualityDeletes(state, matched)

    def numbers(self, row: int) -> tuple[int, ...]:
        return () if self.equality is None else self.equality.numbers(row)

    def ids(self, row: int) -> frozenset[int]:
        numbers = self.numbers(row)
        return frozenset() if self.equality is None or not numbers else self.equality.ids(numbers)


def _read(
    state: TableState, batch: EntryBatch, row: int, sides: Sequence[_Side], options: _Options
) -> Iterator[tuple[pa.Table, list[Mask]]]:
    """Rows of a data file, and which of them are deleted on each side."""
    ids = {i for side in sides for i in side.ids(row)}
    paths = equality_fields(state, ids) if ids else {}
    fields = list(options.fields)
    for number, path in paths.items():  # columns that were dropped since
        if not pruned(options.fields, {number}):
            fields += pruned([path[0]], {number})
    gone = [[p for _, p in side.positions.of(row)] if side.positions is not None else [] for side in sides]
    for table in read_data_file(state, EntryBatch(batch.entries, {}, batch.partition).take([row]), fields):
        if not table.num_rows:
            continue
        start = table[table.num_columns - 1][0].as_py()
        masks = []
        for side, by_position in zip(sides, gone, strict=True):
            deleted = np.zeros(table.num_rows, dtype=bool)
            for positions in by_position:
                low, high = np.searchsorted(positions, (start, start + table.num_rows)).tolist()
                deleted[positions[low:high] - start] = True
            if side.equality is not None and side.numbers(row):
                deleted |= side.equality.mask(side.numbers(row), table, paths)
            masks.append(deleted)
        yield table, masks


def _chosen(table: pa.Table, keep: Mask, options: _Options) -> pa.Table:
    rows = table.filter(pa.array(keep))
    if options.filter.expression != ALWAYS:
        rows = rows.filter(evaluate(options.filter.expression, rows))
    return rows.select(range(len(options.fields)))
