"""Compute inserted and deleted rows per snapshot, as Iceberg's procedure ``create_changelog_view`` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from iceexplore.errors import OptionError, UnsupportedError
from iceexplore.expressions import FilterLike
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
from iceexplore.reading.changelogs._tasks import ChangeFiles, ChangeReader, change_files, numbered_snapshots
from iceexplore.reading.columns._convert import arrow_field
from iceexplore.reading.columns._wanted import Output, chosen_columns
from iceexplore.storage import progress

__all__ = ["ChangelogOptions", "changelog", "changelog_batches"]


def changelog(
    state: TableState,
    before: Snapshot | None,
    after: Snapshot | None,
    *,
    columns: str | Iterable[str] | None = None,
    where: FilterLike | Filter | None = None,
    identifier_columns: Iterable[str] | None = None,
    compute_updates: bool | None = None,
    net_changes: bool = False,
) -> pa.Table:
    """Return the rows that the snapshots after `before`, up to and including `after`, inserted and deleted.

    The result is that of Iceberg's Spark procedure ``create_changelog_view``: rows that one snapshot deletes and
    inserts again unchanged (carried over by copy-on-write) are left out; snapshots of operation ``replace`` change
    nothing, even if their writer added rows; columns are those of the state's schema, whatever schema was current then.
    Java rejects tables with delete files. This function supports them: if a position delete, deletion vector or
    equality delete removes a row, that is a DELETE by the snapshot that added the delete; if a row reappears because
    a delete was removed, that is an INSERT.

    Parameters
    ----------
    before
        None begins with the oldest snapshot in the metadata.
    after
        None for a table without a snapshot, which has no changes.
    columns
        Columns of the schema to return; carry-overs and net changes always compare all columns.
    where
        A filter: return only changes of matching rows. An update that makes a row match is an INSERT.
    identifier_columns
        Columns that identify a row, for updates; by default the schema's identifier fields.
    compute_updates
        Whether a deleted and an inserted row with the same identifier in one snapshot become UPDATE_BEFORE and
        UPDATE_AFTER; by default if `identifier_columns` are given.
    net_changes
        Leave out changes of several snapshots that cancel each other.

    Returns
    -------
    pyarrow.Table
        The columns, then ``_change_type``, ``_change_ordinal`` (int32, from 0: the number of the snapshot, not counting
        those of operation ``replace``) and ``_commit_snapshot_id``; in the order of the snapshots.

    Raises
    ------
    OptionError
        `before` is not an ancestor of `after`; columns, the filter or the options are invalid; or updates are
        ambiguous, because one snapshot deleted several rows with one identifier.
    UnsupportedError
        The parent of a snapshot has expired, and the snapshot has deletes.
    FormatError, FileMissingError
        A required file is damaged or missing.
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
    columns: str | Iterable[str] | None = None,
    where: FilterLike | Filter | None = None,
    identifier_columns: Iterable[str] | None = None,
    compute_updates: bool | None = None,
) -> Iterator[pa.Table]:
    """Yield the `changelog` of each snapshot in turn.

    Only the changed rows of one snapshot are held in memory, including those that it carries over.

    Raises
    ------
    OptionError, UnsupportedError, FormatError, FileMissingError
        As for `changelog`.
    """
    options = ChangelogOptions(state, columns, where, identifier_columns, compute_updates, False)
    for part in _snapshots(state, before, after, options):
        yield options.output(part)


class ChangelogOptions:
    """The validated arguments of a changelog.

    Attributes
    ----------
    fields
        All columns of the schema, by which rows are compared.
    outputs
        The columns of the result.
    filter
        The filter on reported rows.
    updates, identifiers
        Whether removed and added rows are paired, and by which columns.
    net
        Whether changes that cancel each other are left out.

    Raises
    ------
    OptionError
        The arguments are invalid; see `changelog`.
    """

    def __init__(
        self,
        state: TableState,
        columns: str | Iterable[str] | None,
        where: FilterLike | Filter | None,
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
            raise UnsupportedError(f"the schema has several columns {twice[0]!r}: a changelog cannot distinguish them")
        self.outputs = _own(state, columns)
        self.net = net
        self.updates = identifier_columns is not None if compute_updates is None else compute_updates
        if self.updates and net:
            raise OptionError("net_changes=True drops the rows that updates consist of: omit it or compute_updates")
        self.identifiers: list[Output] = []
        if self.updates:
            names = identifier_columns
            if names is None:
                ids = state.schema.identifier_field_ids
                names = [name for name, f in state.schema.walk() if f.field_id in ids]
            self.identifiers = _own(state, names) if (names := list(names)) else []
            if not self.identifiers:
                raise OptionError("compute_updates needs identifier_columns: the schema has no identifier fields")

    def empty(self) -> pa.Table:
        """Return an empty table of changes."""
        return pa.schema([*(arrow_field(f) for f in self.fields), *CHANGE_FIELDS]).empty_table()

    def output(self, table: pa.Table) -> pa.Table:
        """Return the requested columns."""
        fields = [*(arrow_field(o.field).with_name(o.name) for o in self.outputs), *CHANGE_FIELDS]
        arrays = columns_of(table, [o.path for o in self.outputs]) + [table[f.name] for f in CHANGE_FIELDS]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _own(state: TableState, columns: str | Iterable[str] | None) -> list[Output]:
    """Return columns of the schema by name."""
    out = chosen_columns(state.metadata, state.schema, columns)
    known = {f.field_id for _, f in state.schema.walk()}
    strange = [o.name for o in out if o.field.field_id not in known]
    if strange:
        raise OptionError(f"columns: {strange[0]!r} is not a column of the table; changelogs have no metadata columns")
    return out


def _snapshots(
    state: TableState, before: Snapshot | None, after: Snapshot | None, options: ChangelogOptions
) -> Iterator[pa.Table]:
    with progress(len(numbered_snapshots(state, before, after)), "snapshots") as advance:
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
