"""delete, update and overwrite of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.commits import Change, CommitWriter
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.labs._rewrite import Rewrite, change_of, find_hits, mode_of, planned, rewritten
from iceexplore.labs._write import LINEAGE, source_rows, write_rows
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.planning import FileTasks, nearest

__all__ = ["NothingToDo", "Write", "delete_rows", "overwrite_rows", "update_rows", "with_columns"]

#: Writes rows as data files: `write_rows`, or another engine's.
Write: TypeAlias = Callable[[TableState, CommitWriter, Any], EntryBatch]


class NothingToDo(Exception):  # noqa: N818 (no error: it ends an operation)
    """No row matches, and none is added: no commit is made."""


def delete_rows(state: TableState, writer: CommitWriter, where: Any, *, write: Write = write_rows) -> Change:
    """Delete the rows that match; files all of whose rows match by metadata go unread.

    Raises
    ------
    NothingToDo
        None matches.
    """
    merge_on_read, isolation = mode_of(state, "delete")
    conflicts, tasks = planned(state, where)
    rewrite = _without(state, tasks, merge_on_read=merge_on_read)
    if not rewrite.gone and not rewrite.positions:
        raise NothingToDo
    added = EntryBatch.empty() if rewrite.rows is None else write(state, writer, rewrite.rows)
    return change_of(state, writer, tasks, rewrite, added, conflicts=conflicts, isolation=isolation)


def overwrite_rows(
    state: TableState, writer: CommitWriter, rows: Any, where: Any = None, *, write: Write = write_rows
) -> Change:
    """Delete the rows that match (by default all), and add others, in one commit."""
    merge_on_read, isolation = mode_of(state, "delete")
    conflicts, tasks = planned(state, where)
    rewrite = _without(state, tasks, merge_on_read=merge_on_read)
    added = write(state, writer, rows)
    if rewrite.rows is not None:
        added = concat_batches([added, write(state, writer, rewrite.rows)])
    return change_of(state, writer, tasks, rewrite, added, conflicts=conflicts, isolation=isolation)


def update_rows(
    state: TableState,
    writer: CommitWriter,
    set: Mapping[str, Any],  # noqa: A002 (the word of UPDATE)
    where: Any = None,
    *,
    write: Write = write_rows,
) -> Change:
    """Give columns of the rows that match other values.

    Raises
    ------
    NothingToDo
        None matches.
    OptionError
        No such column, or a value that does not fit.
    """
    merge_on_read, isolation = mode_of(state, "update")
    names = [f.name for f in state.schema.fields]
    given: Any = set
    if not isinstance(given, Mapping) or not given:
        raise OptionError(f"set={given!r}: give values by column, such as {{{names[0]!r}: 0}}")
    for name in set:
        if name not in names:
            raise OptionError(f"set: no column {name!r} in the table; {nearest(str(name), names)}")
    conflicts, tasks = planned(state, where)
    hits = find_hits(state, tasks)
    if not hits:
        raise NothingToDo
    rewrite = rewritten(
        state,
        tasks,
        hits,
        merge_on_read=merge_on_read,
        change=lambda _row, table, _at: with_columns(state, table, _values(table, set)),
    )
    assert rewrite.rows is not None
    added = write(state, writer, rewrite.rows)
    return change_of(state, writer, tasks, rewrite, added, conflicts=conflicts, isolation=isolation)


def with_columns(state: TableState, table: pa.Table, values: Mapping[str, Any]) -> pa.Table:
    """Rows with other values of some columns: they count as changed by this commit (spec, "Row Lineage").

    Raises
    ------
    OptionError
        A value does not fit its column.
    """
    fitted = source_rows(state, dict(values), complete=False)
    for name in fitted.column_names:
        at = table.column_names.index(name)
        field = table.schema.field(at)
        column = fitted[name]
        if isinstance(column.type, pa.BaseExtensionType):
            column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
        table = table.set_column(at, field, column.cast(field.type))
    if LINEAGE[1] in table.column_names:
        at = table.column_names.index(LINEAGE[1])
        table = table.set_column(at, table.schema.field(at), pa.nulls(table.num_rows, pa.int64()))
    return table


def _values(table: pa.Table, given: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of new values: constants are repeated, functions are given the old rows."""
    rows = table.drop_columns([name for name in LINEAGE if name in table.column_names])
    out = {}
    for name, value in given.items():
        found = value(rows) if callable(value) else value
        if isinstance(found, (pa.Array, pa.ChunkedArray, np.ndarray)) or hasattr(found, "iloc"):
            if len(found) != table.num_rows:
                raise OptionError(f"set: {len(found)} values of {name!r} for {table.num_rows} rows")
            is_arrow = isinstance(found, (pa.Array, pa.ChunkedArray))
            out[name] = found if is_arrow else pa.array(found, from_pandas=True)
        else:
            out[name] = [found] * table.num_rows
    return out


def _without(state: TableState, tasks: FileTasks, *, merge_on_read: bool) -> Rewrite:
    """Matching rows taken out: files that match as wholes go, others are rewritten, or get deletes."""
    hits = find_hits(state, tasks, skip_whole=True)
    names = tasks.files.entries["location"].to_pylist()
    whole = tuple(name for name, is_whole in zip(names, tasks.whole.to_pylist(), strict=True) if is_whole)
    rewrite = rewritten(state, tasks, hits, merge_on_read=merge_on_read)
    return replace(rewrite, gone=(*whole, *rewrite.gone))
