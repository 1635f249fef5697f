"""Write the rows of a lab to data files, in this process or on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from iceexplore.commits import CommitWriter
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.labs._rewrite import MovedRows
from iceexplore.labs._spark_rows import is_spark_frame, write_moved, write_on_spark
from iceexplore.manifests import EntryBatch
from iceexplore.reading import LAST_UPDATED, ROW_ID
from iceexplore.writing import RowsLike, arrow_frame, files_of_frame, fit_columns, foreign_frame

__all__ = ["LINEAGE", "source_rows", "write_rows"]

#: Columns that rows keep when a commit moves them (spec, "Row Lineage").
LINEAGE = (ROW_ID.name, LAST_UPDATED.name)


def write_rows(state: TableState, writer: CommitWriter, rows: RowsLike) -> EntryBatch:
    """Write rows to Parquet files with field ids, split by the default partition spec, in the default sort order.

    Parameters
    ----------
    rows
        A pandas data frame, a dictionary of columns, a list of dictionaries, an Arrow table or an object convertible to
        one; or a Spark data frame, whose files Spark's workers write; or moved rows (`MovedRows`).

    Raises
    ------
    OptionError
        The rows do not fit the schema.
    """
    if is_spark_frame(rows):
        return write_on_spark(state, writer, rows)
    if not isinstance(rows, MovedRows):
        return files_of_frame(state, _given(rows), writer)
    if not isinstance(rows.frame, pa.Table):
        return write_moved(state, writer, rows)
    if not state.metadata.has_row_lineage:
        return files_of_frame(state, rows.frame, writer)
    return files_of_frame(state, rows.frame.drop_columns(list(LINEAGE)), writer, lineage=rows.frame.select(LINEAGE))


def source_rows(state: TableState, rows: RowsLike, *, complete: bool = True) -> pa.Table:
    """Return given rows with the table's types; with ``complete``, fill missing columns (see `fit_columns`)."""
    return fit_columns(arrow_frame(_given(rows), state.schema), state.schema, complete=complete)


def _given(rows: RowsLike) -> RowsLike:
    """Convert rows to a form that `arrow_frame` accepts."""
    # Check the class: a Spark Column returns something for any attribute.
    rows = foreign_frame(rows)
    kind = type(rows)
    if isinstance(rows, (pa.Table, Mapping)) or (hasattr(kind, "iloc") and hasattr(kind, "columns")):
        return rows
    found: list[Any] = [rows] if isinstance(rows, pa.RecordBatch) else []
    if isinstance(rows, (list, tuple, Iterator)):
        found = list(rows)
    if found and all(isinstance(row, Mapping) for row in found):
        names = dict.fromkeys(name for row in found for name in row)
        return {name: [row.get(name) for row in found] for name in names}
    try:
        if found and all(isinstance(batch, pa.RecordBatch) for batch in found):
            return pa.Table.from_batches(found)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise OptionError(f"the rows cannot be converted to an Arrow table: {error}") from error
    odd = next((f" of {type(row).__qualname__}" for row in found if not isinstance(row, Mapping)), "")
    raise OptionError(
        "rows must be a pandas or Spark data frame, an Arrow table, a dictionary of columns or a list of "
        f"dictionaries, not {kind.__module__}.{kind.__qualname__}{odd}"
    )
