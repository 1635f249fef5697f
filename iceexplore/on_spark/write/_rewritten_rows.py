"""DataFrames to be written: a table's rows, unchanged or with new values, and a user's rows in the table's types.

Columns have the types in which a scan shows them (`SparkColumns`), in the schema's order; from format version 3 on the
two lineage columns come last (spec, "Row Lineage").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyExtensionArray, build
from iceexplore.errors import IceexploreError, OptionError, UnsupportedError
from iceexplore.graph import TableState
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.scans._fields import names_collide
from iceexplore.on_spark.scans._scan import task_rows
from iceexplore.on_spark.transport._bundles import map_in_arrow
from iceexplore.on_spark.transport._columns import SparkColumns
from iceexplore.on_spark.transport._state import ShippedState, ship
from iceexplore.on_spark.write._find_rows import without_rows
from iceexplore.on_spark.write._workers import LINEAGE
from iceexplore.on_spark.write._write_files import check_columns
from iceexplore.planning import FileTasks
from iceexplore.reading import Output, arrow_field
from iceexplore.writing import arrow_frame, fit_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["changed_rows", "fitted_rows", "kept_rows", "lineage_columns", "moved_rows", "quoted"]


def lineage_columns(state: TableState) -> tuple[str, ...]:
    """Return the names of the lineage columns that rewritten rows keep; empty below format version 3."""
    return tuple(f.name for f in LINEAGE) if state.metadata.has_row_lineage else ()


def moved_rows(session: SparkSession, state: TableState, tasks: FileTasks) -> DataFrame:
    """Return the live rows of some tasks that match their residual filters, with lineage columns, to be rewritten."""
    return task_rows(session, state, tasks, ["*", *lineage_columns(state)])


def kept_rows(session: SparkSession, state: TableState, tasks: FileTasks, gone: Mapping[int, Any]) -> DataFrame | None:
    """Return the live rows of some tasks except those at some positions, ignoring filters; None if no row is left.

    Parameters
    ----------
    gone
        The positions to omit: a non-empty `pyroaring.BitMap64` for each task index.
    """
    left = without_rows(state, tasks, gone)
    deletes = left.matched.deletes.entries["record_count"].to_pylist()
    counts = tasks.files.entries["record_count"].to_pylist()
    rows = [i for i, (count, at) in enumerate(zip(counts, build.to_pylist(left.matched.vector), strict=True))
            if deletes[at] < count]  # fmt: skip
    return moved_rows(session, state, left.take(pa.array(rows, pa.int64()))) if rows else None


def changed_rows(session: SparkSession, state: TableState, tasks: FileTasks, given: Mapping[str, Any]) -> DataFrame:
    """Return the rows of `moved_rows` with new values in some columns, which count as changed by the commit.

    Parameters
    ----------
    given
        For each column a constant, a Spark Column, or a function of the rows (a DataFrame) that returns one.

    Raises
    ------
    OptionError
        A value does not fit its column, or is of a kind that is not accepted.
    UnsupportedError
        Names of the table's columns differ only in case.
    """
    from pyspark.sql import functions as f

    if names_collide(state.schema.fields):
        raise UnsupportedError(
            f"{state.name} has columns whose names differ only in case, which Spark does not distinguish: omit spark= "
            "to change the rows in this process"
        )
    rows = moved_rows(session, state, tasks)
    columns: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for name, value in given.items():
        found = value(rows) if not is_column(value) and callable(value) else value
        if is_column(found):
            columns[name] = found
        elif isinstance(found, (pa.Array, pa.ChunkedArray, np.ndarray)) or hasattr(found, "iloc") or found is not value:
            raise OptionError(
                f"set: {name!r} is of type {type(found).__name__}; with spark=, pass a constant, a Spark Column, or a "
                "function of the rows (a DataFrame) that returns one"
            )
        else:
            constants[name] = value
    kept = [quoted(field.name) for field in state.schema.fields]
    lineage = lineage_columns(state)
    # Each column must give exactly one value per row. Spark rejects everything else here: generators (explode), because
    # they are wrapped in another expression; aggregates (sum), because they are selected beside a column of the rows;
    # several columns ("*"), because they get an alias. The condition is always true.
    one = f.col(kept[0]).isNull() | f.col(kept[0]).isNotNull()
    each = {name: f.when(one, column.alias(name)).alias(name) for name, column in columns.items()}
    shown = [each[n] if n in each else f.col(q) for n, q in zip(_names(state), kept, strict=True)]
    made = _understood(lambda: rows.select(*shown, *lineage), columns)
    if columns:
        made = _in_types(session, state, made)
    return _with_constants(session, state, made, constants)


def _names(state: TableState) -> list[str]:
    return [field.name for field in state.schema.fields]


def _understood(make: Callable[[], DataFrame], columns: Mapping[str, Any]) -> DataFrame:
    """Let Spark resolve a DataFrame's columns and return it; raise OptionError if the user's cannot be resolved."""
    try:
        made: DataFrame = make()
        _ = made.schema
    except IceexploreError:
        raise
    except Exception as error:  # Spark's exception class, whose module differs between versions
        if not columns:
            raise
        text = str(error).strip().partition("\n")[0]
        named = ", ".join(map(repr, columns))
        raise OptionError(f"set: {named}: Spark does not accept this as a value for each row: {text}") from error
    return made


def _in_types(session: SparkSession, state: TableState, frame: DataFrame) -> DataFrame:
    """Return the rows in the table's types; a user's columns of other types are converted."""
    wanted = SparkColumns(_outputs(state, _names(state)), SessionInfo.of(session).version).schema
    kinds = [x.dataType.simpleString() for x in frame.schema.fields]  # compared without nullability
    lineage = len(lineage_columns(state))
    if kinds[: len(kinds) - lineage] == [x.dataType.simpleString() for x in wanted.fields]:
        return frame
    return fitted_rows(session, state, frame, lineage=bool(lineage))


def _with_constants(session: SparkSession, state: TableState, frame: DataFrame, given: Mapping[str, Any]) -> DataFrame:
    """Set each constant in all rows; from version 3 on, mark the rows as last updated by this commit."""
    from pyspark.sql import functions as f

    shown = {name: f.col(quoted(name)) for name in _names(state)}
    if given:
        one = fit_columns(
            arrow_frame({name: [value] for name, value in given.items()}, state.schema), state.schema, complete=False
        )
        names = one.column_names
        columns = SparkColumns(_outputs(state, names), SessionInfo.of(session).version)
        held = _one_row(session, columns, columns.of(_plain(one, columns)))
        frame = frame.crossJoin(f.broadcast(held.toDF(*[f"_iceexplore_{i}" for i in range(len(names))])))
        shown |= {name: f.col(f"_iceexplore_{i}") for i, name in enumerate(names)}
    out = [column.alias(name) for name, column in shown.items()]
    if lineage := lineage_columns(state):
        out += [f.col(lineage[0]), f.lit(None).cast("bigint").alias(lineage[1])]
    return frame.select(*out)


def _one_row(session: SparkSession, columns: SparkColumns, table: pa.Table) -> DataFrame:
    """Return a one-row table as a DataFrame, sent as Arrow, the only way that supports values of nested types."""
    sink: Any = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data = sink.getvalue().to_pybytes()

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from pa.ipc.open_stream(data).read_all().to_batches()

    frame: DataFrame = session.range(0, 1, 1, 1).mapInArrow(rows, columns.schema)
    return frame


def fitted_rows(
    session: SparkSession, state: TableState, frame: DataFrame, *, complete: bool = False, lineage: bool = False
) -> DataFrame:
    """Return a user's rows in the table's types and column order, converted by workers.

    Parameters
    ----------
    complete
        Whether to add missing columns, filled with their write default or null.
    lineage
        Whether the last two columns are lineage columns, which are kept.

    Raises
    ------
    OptionError
        A column does not exist, or a type does not fit. Workers detect values that do not fit or are missing.
    """
    from pyspark.sql import types as t

    given = check_columns(frame, state, complete=False, lineage=lineage)
    names = [name for name in _names(state) if complete or name in given]
    version = SessionInfo.of(session).version
    columns = SparkColumns(_outputs(state, names), version)
    tail = [t.StructField(f.name, t.LongType(), True) for f in LINEAGE] if lineage else []
    made = _Fit(ship(state), tuple(names), version, complete, lineage)
    return map_in_arrow(frame, made, t.StructType([*columns.schema.fields, *tail]))


@dataclass(frozen=True)
class _Fit:
    """The function that a worker applies to a user's rows."""

    state: ShippedState
    names: tuple[str, ...]
    version: tuple[int, int]
    complete: bool
    lineage: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = self.state.open()
        columns = SparkColumns(_outputs(state, self.names), self.version)
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            own = table.num_columns - (len(LINEAGE) if self.lineage else 0)
            fitted = fit_columns(table.select(range(own)), state.schema, complete=self.complete)
            shown = columns.of(_plain(fitted, columns))
            for name, column in zip((f.name for f in LINEAGE), table.columns[own:], strict=False):
                shown = shown.append_column(name, column)
            yield from shown.to_batches()


def _outputs(state: TableState, names: Iterable[str]) -> list[Output]:
    return [Output(field.name, (field,)) for field in state.schema.fields if field.name in set(names)]


def _plain(table: pa.Table, columns: SparkColumns) -> pa.Table:
    """Convert columns from `fit_columns` to the types in which a reader returns rows."""
    kinds = [arrow_field(o.field).type for o in columns.outputs]
    out = []
    for column, kind in zip(table.columns, kinds, strict=True):
        if isinstance(column.type, pa.BaseExtensionType):
            column = build.chunked_array(
                [cast(AnyExtensionArray, chunk).storage for chunk in column.chunks], column.type.storage_type
            )
        out.append(column.cast(kind))
    return pa.Table.from_arrays(out, names=table.column_names)


def is_column(value: object) -> bool:
    """Return whether a value is a Spark Column, classic or of Connect."""
    return type(value).__module__.startswith("pyspark.sql.") and type(value).__name__ == "Column"


def quoted(name: str) -> str:
    """Return a column name quoted for Spark, whatever characters it contains."""
    return "`" + name.replace("`", "``") + "`"
