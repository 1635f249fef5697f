"""Find, change and delete rows of files in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyExtensionArray, build
from iceexplore.errors import MemoryLimitError
from iceexplore.graph import TableState
from iceexplore.labs._rewrite import Hits, MovedRows, Positions, Rewrite
from iceexplore.labs._write import LINEAGE, source_rows
from iceexplore.planning import FileTasks
from iceexplore.reading import TaskReader, outputs_of
from iceexplore.storage import memory_limit
from iceexplore.writing import set_values

__all__ = ["LOCAL_ENGINE", "LocalEngine", "with_columns"]

#: A function that returns new values for some rows of a file, with the same columns. It gets the file's index in the
#: `FileTasks`, the rows, and their positions in the file.
Replace = Callable[[int, pa.Table, Positions], pa.Table]
_POS = "_pos"


class LocalEngine:
    """The `Engine` that reads and writes in this process."""

    def find(self, state: TableState, tasks: FileTasks, *, skip_whole: bool = False) -> dict[int, Any]:
        """Find matching rows, reading only the filter's columns."""
        reader = TaskReader(state, tasks, outputs_of(state, [_POS]))
        whole = tasks.whole.to_pylist()
        found = {}
        for row in range(len(tasks)):
            if skip_whole and whole[row]:
                continue
            parts = [np.asarray(part.table[_POS]) for part in reader.read(row)]
            positions = np.concatenate([np.zeros(0, np.int64), *parts])
            if len(positions):
                found[row] = positions
        return found

    def change(self, state: TableState, given: Mapping[str, Any]) -> Replace:
        """Return a function that sets columns to constants, or to results of functions of the rows."""

        def change(_row: int, table: pa.Table, _at: Positions) -> pa.Table:
            rows = table.drop_columns([name for name in LINEAGE if name in table.column_names])
            return with_columns(state, table, set_values(rows, given))

        return change

    def rewritten(
        self,
        state: TableState,
        tasks: FileTasks,
        hits: Hits,
        *,
        merge_on_read: bool,
        change: Replace | None = None,
    ) -> Rewrite:
        """Rewrite files; see `Engine`.

        Raises
        ------
        MemoryLimitError
            The rows exceed this process's memory limit.
        """
        names = build.to_pylist(tasks.files.entries["location"])
        if merge_on_read and change is None:
            return Rewrite(positions={names[row]: at for row, at in hits.items()})
        out: list[pa.Table] = []
        size, limit = 0, memory_limit()
        for row, positions in hits.items():
            for table, at in _rows_of(state, tasks, row):
                hit = np.isin(at, positions)
                parts = [] if merge_on_read else [table.filter(pa.array(~hit))]
                if change is not None and hit.any():
                    parts.append(change(row, table.filter(pa.array(hit)), at[hit]))
                size += sum(part.nbytes for part in parts)
                if size > limit:
                    raise MemoryLimitError(
                        f"the commit would rewrite more than {limit:,} bytes of rows: split it with "
                        "narrower filters, use Spark (spark=), or raise the limit (iceexplore.memory_limit('8 GiB'))"
                    )
                out += [part for part in parts if part.num_rows]
        rows = MovedRows(pa.concat_tables(out)) if out else None
        if merge_on_read:
            return Rewrite(positions={names[row]: at for row, at in hits.items()}, rows=rows)
        return Rewrite(gone=tuple(names[row] for row in hits), rows=rows)


LOCAL_ENGINE = LocalEngine()


def _rows_of(state: TableState, tasks: FileTasks, row: int) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield the live rows of a file, without the position column, and their positions."""
    lineage = LINEAGE if state.metadata.has_row_lineage else ()
    one = tasks.take(pa.array([row]))
    every = replace(one, whole=pa.array([True]))
    outputs = outputs_of(state, ["*", *lineage, _POS])
    for part in TaskReader(state, every, outputs).read(0):
        yield part.table.drop_columns([_POS]), np.asarray(part.table[_POS])


def with_columns(state: TableState, table: pa.Table, values: Mapping[str, Any]) -> pa.Table:
    """Return rows with some columns replaced; the rows count as changed by this commit (spec, "Row Lineage").

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
            column = build.chunked_array(
                [cast(AnyExtensionArray, chunk).storage for chunk in column.chunks], column.type.storage_type
            )
        table = table.set_column(at, field, column.cast(field.type))
    if LINEAGE[1] in table.column_names:
        at = table.column_names.index(LINEAGE[1])
        table = table.set_column(at, table.schema.field(at), pa.nulls(table.num_rows, pa.int64()))
    return table
