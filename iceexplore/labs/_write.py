"""Where the rows of a lab become data files: the one place that another writer of files takes over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from iceexplore.commits import CommitWriter, arrow_frame, files_of_frame, fit_columns
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.labs._rewrite import MovedRows
from iceexplore.labs._spark_rows import is_spark_frame, write_moved, write_on_spark
from iceexplore.manifests import EntryBatch
from iceexplore.reading import LAST_UPDATED, ROW_ID

__all__ = ["LINEAGE", "LINEAGE_FROM", "source_rows", "write_rows"]

#: Rows that a commit moves keep these (spec, "Row Lineage").
LINEAGE = (ROW_ID.name, LAST_UPDATED.name)
LINEAGE_FROM = 3


def write_rows(state: TableState, writer: CommitWriter, rows: Any) -> EntryBatch:
    """Write rows as Parquet files with field ids: split by the default partition spec, in the default sort order.

    Parameters
    ----------
    rows
        A pandas data frame, a dictionary of columns, or an Arrow table; or a Spark data frame, whose files Spark's
        workers write. Or rows that are moved (`MovedRows`).

    Raises
    ------
    OptionError
        They do not fit the schema.
    """
    if is_spark_frame(rows):
        return write_on_spark(state, writer, rows)
    if not isinstance(rows, MovedRows):
        return files_of_frame(state, _given(rows), writer)
    if not isinstance(rows.frame, pa.Table):
        return write_moved(state, writer, rows)
    if state.metadata.format_version < LINEAGE_FROM:
        return files_of_frame(state, rows.frame, writer)
    return files_of_frame(state, rows.frame.drop_columns(list(LINEAGE)), writer, lineage=rows.frame.select(LINEAGE))


def source_rows(state: TableState, rows: Any, *, complete: bool = True) -> pa.Table:
    """Rows that a user gives, as the table has them; with ``complete`` the columns that are missing are filled."""
    return fit_columns(arrow_frame(_given(rows), state.schema), state.schema, complete=complete)


def _given(rows: Any) -> Any:
    """Rows as `arrow_frame` takes them."""
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    # The class is asked: a Spark Column has whatever attribute it is asked for.
    if isinstance(rows, (pa.Table, Mapping)) or hasattr(type(rows), "iloc"):
        return rows
    kind = f"{type(rows).__module__}.{type(rows).__name__}"
    raise OptionError(
        f"rows are given as a pandas or Spark data frame, an Arrow table or a dictionary of columns, not as {kind}"
    )
