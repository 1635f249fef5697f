"""Changes by rows: what each snapshot inserted and deleted, as Iceberg's procedure ``create_changelog_view`` has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from iceexplore.errors import OptionError, UnsupportedError
from iceexplore.graph import TableState
from iceexplore.metadata import NestedField, Snapshot
from iceexplore.planning import Filter, make_filter
from iceexplore.reading._equality_deletes import column_of, columns_of
from iceexplore.reading.changelogs._algebra import (
    CHANGE_COLUMNS,
    CHANGE_FIELDS,
    net_of,
    with_updates,
    without_carryovers,
)
from iceexplore.reading.changelogs._tasks import ChangeFiles, ChangeReader, change_files, told_snapshots
from iceexplore.reading.columns._convert import arrow_field
from iceexplore.reading.columns._wanted import Output, chosen_columns
from iceexplore.storage import progress

__all__ = ["ChangelogOptions", "changelog", "changelog_batches"]



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
    options = ChangelogOptions(state, columns, where, identifier_columns, compute_updates, net_changes)
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
    options = ChangelogOptions(state, columns, where, identifier_columns, compute_updates, False)
    for part in _snapshots(state, before, after, options):
        yield options.output(part)


class ChangelogOptions:
    """The arguments of a changelog, checked.

    Attributes
    ----------
    fields
        Every column of the schema: rows are compared by all of them.
    outputs
        The columns of the result.
    filter
        What rows are told.
    updates, identifiers
        Whether removed and added rows are paired, and by which columns.
    net
        Whether changes that undo each other are left out.

    Raises
    ------
    OptionError
        They make no sense; see `changelog`.
    """

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
        counts = Counter(f.name for f in self.fields)
        if twice := [name for name, count in counts.items() if count > 1]:  # rows are compared by name
            raise UnsupportedError(f"the schema has several columns {twice[0]!r}: a changelog cannot tell them apart")
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
        return pa.schema([*(arrow_field(f) for f in self.fields), *CHANGE_FIELDS]).empty_table()

    def output(self, table: pa.Table) -> pa.Table:
        """The columns that are wanted."""
        fields = [*(arrow_field(o.field).with_name(o.name) for o in self.outputs), *CHANGE_FIELDS]
        arrays = columns_of(table, [o.path for o in self.outputs]) + [table[f.name] for f in CHANGE_FIELDS]
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
    state: TableState, before: Snapshot | None, after: Snapshot | None, options: ChangelogOptions
) -> Iterator[pa.Table]:
    with progress(len(told_snapshots(state, before, after)), "snapshots") as advance:
        for changes in change_files(state, before, after, options.filter):
            yield _of_snapshot(state, changes, options)
            advance()


def _of_snapshot(state: TableState, changes: list[ChangeFiles], options: ChangelogOptions) -> pa.Table:
    parts = [options.empty()]
    for change in changes:
        reader = ChangeReader(state, change, options.fields, options.filter.expression)
        parts += [table for row in range(len(change)) for table in reader.read(row)]
    made = pa.concat_tables(parts)
    if options.net:
        return made
    made = without_carryovers(made)
    if options.updates:
        made = with_updates(made, {o.name: column_of(made, o.path) for o in options.identifiers})
    return made
