"""Read the tasks of a scan: apply deletes, evaluate residual filters, and return the selected columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyField
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, problem
from iceexplore.expressions import ALWAYS, Expression, all_of
from iceexplore.expressions import columns_of as expression_columns
from iceexplore.formats import PUFFIN
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import NestedField
from iceexplore.planning import FileTasks, evaluate
from iceexplore.reading._data_file import read_data_file
from iceexplore.reading._equality_deletes import EqualityDeletes, columns_of, equality_fields
from iceexplore.reading._position_deletes import PositionDeletes
from iceexplore.reading.columns._convert import arrow_field
from iceexplore.reading.columns._wanted import DELETED, Output, chosen_columns, pruned

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["FileRows", "NO_DATA", "TaskReader", "few_rows", "outputs_of", "read_tasks"]

#: A format that never contains rows: a writer may list other files among the data files (moonlink's indexes).
NO_DATA = PUFFIN.name


#: Number of rows processed at a time if only a few are requested; smaller batches cost more than they save.
_FEW = 4096


def few_rows(limit: int | None) -> int | None:
    """Return the number of rows to process at a time for this limit; None for the default."""
    return None if limit is None or limit > _FEW // 2 else _FEW


def outputs_of(
    state: TableState, columns: str | Iterable[str] | None, *, deleted: Literal["drop", "mark"] = "drop"
) -> list[Output]:
    """Return the columns of a result; see `read_tasks`.

    Raises
    ------
    OptionError
        There is an unknown column, or ``deleted`` is neither ``"drop"`` nor ``"mark"``.
    """
    if deleted not in ("drop", "mark"):
        raise OptionError(f"deleted={deleted!r}: choose 'drop' or 'mark'")
    out = chosen_columns(state.metadata, state.schema, columns)
    if deleted == "mark" and all(o.field.field_id != DELETED.field_id for o in out):
        out.append(Output(DELETED.name, (DELETED,)))
    return out


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows of one data file, as a task reader returns them.

    Attributes
    ----------
    table
        The selected columns.
    read
        Number of rows of the file that were processed, including deleted and filtered ones.
    """

    table: pa.Table
    read: int


class TaskReader:
    """Reads the tasks of one scan, in any order and from any thread.

    Parameters
    ----------
    outputs
        Columns of the result, see `outputs_of`. If ``_deleted`` is among them, deleted rows are included.
    condition
        A condition in addition to each task's residual.
    """

    def __init__(
        self,
        state: TableState,
        tasks: FileTasks,
        outputs: Sequence[Output],
        condition: Expression = ALWAYS,
    ) -> None:
        self.state = state
        self.tasks = tasks
        self.outputs = list(outputs)
        self.marks = any(o.field.field_id == DELETED.field_id for o in outputs)
        self.schema = pa.schema([_named(o) for o in outputs])
        self.positions = PositionDeletes(state, tasks.files, tasks.matched)
        self.equality = EqualityDeletes(state, tasks.matched)
        self._condition = condition
        # Drop column metrics: for each file, they cost as much as the rest of its entry.
        self._files = EntryBatch(tasks.files.entries, {}, tasks.files.partition)

    def condition(self, row: int) -> Expression:
        """Return the filter that a task's rows must satisfy."""
        if self.tasks.whole[row].as_py():
            return self._condition
        return all_of(self.tasks.residuals[self.tasks.residual[row].as_py()], self._condition)

    def is_data(self, row: int) -> bool:
        """Return whether the file holds rows; if not, add a problem of code ``unsupported``."""
        entry = self._files.entries.slice(row, 1).select(["file_format", "location"]).to_pylist()[0]
        if entry["file_format"] != NO_DATA:
            return True
        text = "A Puffin file is listed as a data file: it holds no rows and is left out."
        where = entry["location"] or self.state.metadata_location
        self.state.problems.add(problem("unsupported", where, text, field="file_format", found=NO_DATA))
        return False

    def read(
        self,
        row: int,
        *,
        row_groups: Sequence[int] | None = None,
        batch_rows: int | None = None,
    ) -> Iterator[FileRows]:
        """Yield the rows of one task in ascending order of positions.

        Parameters
        ----------
        row_groups
            Read only these row groups of a Parquet file; ignored for formats without row groups.
        batch_rows
            Maximum number of rows of the file to process at a time; see `read_data_file`.

        Raises
        ------
        FormatError, UnsupportedError, FileMissingError
            The data file, or a delete file that applies, cannot be read.
        """
        if not self.is_data(row):
            return
        condition = self.condition(row)
        numbers = self.equality.numbers(row)
        paths = equality_fields(self.state, self.equality.ids(numbers)) if numbers else {}
        gone = [positions for _, positions in self.positions.of(row)]
        fields = self._fields(condition, paths)
        file = self._files.take([row])
        for table in read_data_file(self.state, file, fields, row_groups=row_groups, batch_rows=batch_rows):
            rows = table.num_rows
            if not rows:
                continue
            start = table.column(table.num_columns - 1)[0].as_py()
            deleted = np.zeros(rows, dtype=bool)
            for positions in gone:
                positions.mark(deleted, start)
            if numbers:
                deleted |= self.equality.mask(numbers, table, paths)
            keep = None if self.marks or not deleted.any() else pa.array(~deleted)
            if condition != ALWAYS:
                matching = evaluate(condition, table)
                keep = matching if keep is None else pc.and_(matching, keep)
            yield FileRows(self._output(table, deleted, keep), rows)

    def _fields(self, condition: Expression, paths: dict[int, tuple[NestedField, ...]]) -> list[NestedField]:
        """Return the columns to read from a file: for the result, the condition, and equality deletes."""
        wanted = {o.field.field_id for o in self.outputs} | set(expression_columns(condition)) | set(paths)
        fields = pruned(self.state.schema.fields, wanted)
        places = {o.path[0].field_id: o.path[0] for o in self.outputs}
        known = {f.field_id for f in self.state.schema.fields}
        fields += [f for number, f in places.items() if number not in known]
        for path in paths.values():  # columns of equality deletes; some may have been dropped from the schema
            if not pruned(self.state.schema.fields, {path[-1].field_id}):
                fields += pruned([path[0]], {path[-1].field_id})
        return fields

    def _output(self, table: pa.Table, deleted: npt.NDArray[np.bool_], keep: pa.BooleanArray | None) -> pa.Table:
        marks = [o.field.field_id == DELETED.field_id for o in self.outputs]
        found = iter(columns_of(table, [o.path for o, mark in zip(self.outputs, marks, strict=True) if not mark]))
        columns = [pa.array(deleted) if mark else next(found) for mark in marks]
        if keep is not None:
            columns = [column.filter(keep) for column in columns]
        if not columns:
            rows = table.num_rows if keep is None else keep.true_count
            return pa.table({"": pa.nulls(rows)}).select([])
        return pa.Table.from_arrays(columns, schema=self.schema)


def _named(output: Output) -> AnyField:
    return arrow_field(output.field).with_name(output.name)


def read_tasks(
    state: TableState,
    tasks: FileTasks,
    *,
    columns: str | Iterable[str] | None = None,
    condition: Expression = ALWAYS,
    deleted: Literal["drop", "mark"] = "drop",
    limit: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of a scan's tasks in order, positions ascending, with deletes applied.

    Parameters
    ----------
    columns
        See `chosen_columns`. Metadata columns are included if named (spec, "Reserved Field IDs"): ``_file``, ``_pos``,
        ``_row_id``, ``_last_updated_sequence_number``, ``_deleted``, ``_spec_id``, ``_partition``.
    condition
        A condition in addition to each task's residual.
    deleted
        ``"mark"`` includes deleted rows, marked in the column ``_deleted``; naming that column does the same.
    limit
        Maximum number of rows; files that are not needed for them are not read.

    Yields
    ------
    pyarrow.Table
        Rows of one task, possibly none.

    Raises
    ------
    OptionError
        There is an unknown column.
    FormatError, UnsupportedError, FileMissingError
        A data file, or a delete file that applies, cannot be read.
    """
    reader = TaskReader(state, tasks, outputs_of(state, columns, deleted=deleted), condition)
    left = limit
    batch_rows = few_rows(limit)
    for row in range(len(tasks)):
        if left is not None and left <= 0:
            return
        for part in reader.read(row, batch_rows=batch_rows):
            table = part.table if left is None else part.table.slice(0, left)
            yield table
            if left is not None:
                left -= table.num_rows
                if left <= 0:
                    return
