"""Delete, update and overwrite rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from iceexplore.arrow import build
from iceexplore.commits import Change, CommitWriter, NothingToDo, planned
from iceexplore.errors import OptionError, nearest
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState
from iceexplore.labs._local_engine import LOCAL_ENGINE
from iceexplore.labs._rewrite import Engine, Rewrite, change_of, mode_of
from iceexplore.labs._spark_rows import OnSpark, is_spark_column, is_spark_frame
from iceexplore.labs._write import write_rows
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.planning import FileTasks
from iceexplore.writing import RowsLike, is_array

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Write", "delete_rows", "engine_of", "overwrite_rows", "update_rows"]

#: A function that writes rows to data files, such as `write_rows`.
Write: TypeAlias = Callable[[TableState, CommitWriter, Any], EntryBatch]


def engine_of(session: SparkSession | None = None, *, rows: RowsLike = None) -> Engine:
    """Return the engine that reads the affected files: Spark for a session or a Spark data frame, else this process.

    Raises
    ------
    OptionError
        The session is not a Spark session.
    UnsupportedError
        Spark is older than 3.5.
    """
    if is_spark_frame(rows):
        session = rows.sparkSession
    if session is None:
        return LOCAL_ENGINE
    from iceexplore.on_spark import SessionInfo

    SessionInfo.of(session)
    return OnSpark(session)


def delete_rows(
    state: TableState,
    writer: CommitWriter,
    where: FilterLike | None,
    *,
    write: Write = write_rows,
    engine: Engine = LOCAL_ENGINE,
) -> Change:
    """Delete the matching rows; files whose rows all match according to metadata are not read.

    Parameters
    ----------
    engine
        The engine that reads the affected files: `LOCAL_ENGINE`, or an `OnSpark`.

    Raises
    ------
    NothingToDo
        No row matches.
    OptionError
        The filter is missing or invalid.
    """
    if where is None:  # a filter that is None by mistake must not empty the table
        raise OptionError("where=None: give a filter for the rows to delete; 'true' deletes all rows")
    merge_on_read, isolation = mode_of(state, "delete")
    conflicts, tasks = planned(state, writer, where)
    rewrite = _without(state, tasks, engine, merge_on_read=merge_on_read)
    if not rewrite.gone and not rewrite.positions:
        raise NothingToDo("nothing to commit: no row matches")
    added = EntryBatch.empty() if rewrite.rows is None else write(state, writer, rewrite.rows)
    return change_of(state, writer, tasks, rewrite, added, conflicts=conflicts, isolation=isolation)


def overwrite_rows(
    state: TableState,
    writer: CommitWriter,
    rows: RowsLike,
    where: FilterLike | None = None,
    *,
    write: Write = write_rows,
    engine: Engine = LOCAL_ENGINE,
) -> Change:
    """Delete the matching rows (by default all) and add the given ones, in one commit."""
    merge_on_read, isolation = mode_of(state, "delete")
    conflicts, tasks = planned(state, writer, where)
    rewrite = _without(state, tasks, engine, merge_on_read=merge_on_read)
    added = write(state, writer, rows)
    if rewrite.rows is not None:
        added = concat_batches([added, write(state, writer, rewrite.rows)])
    return change_of(state, writer, tasks, rewrite, added, conflicts=conflicts, isolation=isolation)


def update_rows(
    state: TableState,
    writer: CommitWriter,
    set: Mapping[str, Any],  # noqa: A002 (as in SQL's UPDATE ... SET)
    where: FilterLike | None = None,
    *,
    write: Write = write_rows,
    engine: Engine = LOCAL_ENGINE,
) -> Change:
    """Set columns of the matching rows to other values.

    Raises
    ------
    NothingToDo
        No row matches.
    OptionError
        A column does not exist, or a value does not fit it.
    """
    merge_on_read, isolation = mode_of(state, "update")
    names = [f.name for f in state.schema.fields]
    given: Any = set
    if not isinstance(given, Mapping) or not given:
        raise OptionError(f"set={given!r}: give values by column, such as {{{names[0]!r}: 0}}")
    for name, value in set.items():
        if name not in names:
            raise OptionError(f"set: no column {name!r} in the table; {nearest(str(name), names)}")
        if is_array(value):  # rows have no defined order: files may be replaced by other writers
            raise OptionError(
                f"set: {name!r} is an array ({type(value).__name__}), but rows have no order in which its "
                "values could be assigned: give a function of the rows, or merge rows by a key"
            )
        if engine is LOCAL_ENGINE and is_spark_column(value):
            raise OptionError(f"set: {name!r} is given as a Spark Column: pass the session that computes it as spark=")
    conflicts, tasks = planned(state, writer, where)
    hits = engine.find(state, tasks)
    if not hits:
        raise NothingToDo("nothing to commit: no row matches")
    rewrite = engine.rewritten(state, tasks, hits, merge_on_read=merge_on_read, change=engine.change(state, given))
    assert rewrite.rows is not None
    added = write(state, writer, rewrite.rows)
    return change_of(state, writer, tasks, rewrite, added, conflicts=conflicts, isolation=isolation)


def _without(state: TableState, tasks: FileTasks, engine: Engine, *, merge_on_read: bool) -> Rewrite:
    """Return the changes that remove the matching rows.

    Files whose rows all match are dropped. Other affected files are rewritten, or positions in them are deleted.
    """
    hits = engine.find(state, tasks, skip_whole=True)
    names = build.to_pylist(tasks.files.entries["location"])
    whole = tuple(name for name, is_whole in zip(names, build.to_pylist(tasks.whole), strict=True) if is_whole)
    rewrite = engine.rewritten(state, tasks, hits, merge_on_read=merge_on_read)
    return replace(rewrite, gone=(*whole, *rewrite.gone))
