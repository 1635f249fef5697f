"""Match the rows of a DataFrame by key with those of a table into which they are merged, entirely on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.scans._lookups import arrow_frame
from iceexplore.on_spark.scans._scan import task_rows
from iceexplore.on_spark.transport._errors import as_ours
from iceexplore.on_spark.transport._state import check_reach
from iceexplore.on_spark.write._find_rows import gathered_positions
from iceexplore.on_spark.write._rewritten_rows import fitted_rows, lineage_columns, moved_rows
from iceexplore.planning import FileTasks
from iceexplore.reading import FILE, POS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["MergeSource", "merge_source"]


@contextmanager
def merge_source(session: SparkSession, state: TableState, frame: DataFrame) -> Iterator[MergeSource]:
    """Yield a user's DataFrame in the table's types; Spark keeps its rows (``persist``) within the context.

    The rows are read several times and must be the same each time, even if the frame is not deterministic; this holds
    as long as Spark does not lose the persisted data.

    Raises
    ------
    OptionError
        The table lacks a column, or a type does not fit.
    UnsupportedError
        The workers cannot reach the table's folder.
    """
    check_reach(state, SessionInfo.of(session))
    rows = fitted_rows(session, state, frame).persist()
    try:
        with as_ours():
            yield MergeSource(session, state, rows)
    finally:
        rows.unpersist()


class MergeSource:
    """Rows to be merged into a table.

    Attributes
    ----------
    names
        The names of their columns, in the table's order.
    """

    def __init__(self, session: SparkSession, state: TableState, rows: DataFrame) -> None:
        self.names: list[str] = list(rows.columns)
        self._session = session
        self._state = state
        self._rows = rows.toDF(*[f"s{i}" for i in range(len(self.names))])

    def key_values(self, key: str, most: int) -> tuple[list[Any], bool]:
        """Return the distinct non-null values of a column, and False; no other data is sent to the driver.

        If there are more than ``most`` values, return only the smallest and the greatest, and True.
        """
        from pyspark.sql import functions as f

        column = f.col(self._source(key))
        some = self._rows.select(column).where(column.isNotNull())
        values = [row[0] for row in some.distinct().limit(most + 1).collect()]
        if len(values) <= most:
            return values, False
        return list(some.agg(f.min(column), f.max(column)).collect()[0]), True

    def matches(self, tasks: FileTasks, keys: Sequence[str]) -> dict[int, Any]:
        """Return the positions of table rows that match rows of the source, as a `pyroaring.BitMap64` per task index.

        Raises
        ------
        OptionError
            Several rows of the source match one row of the table.
        """
        if not len(tasks):
            return {}
        both = self._there(tasks, keys).join(self._keys(keys), self._equal(keys))
        found, twice = gathered_positions(both.select("task", "position"))
        if twice:
            self._refuse(both, keys)
        return found

    def updates(self, tasks: FileTasks, keys: Sequence[str]) -> DataFrame:
        """Return the rows of some tasks with non-key columns replaced by the source's values; every row must match."""
        from pyspark.sql import functions as f

        fields = self._state.schema.fields
        lineage = lineage_columns(self._state)
        rows = moved_rows(self._session, self._state, tasks)
        rows = rows.toDF(*[f"t{i}" for i in range(len(fields))], *lineage)
        places = {field.name: f"t{i}" for i, field in enumerate(fields)}
        condition = self._conditions([(f.col(places[key]), f.col(self._source(key))) for key in keys])
        shown = []
        for field in fields:
            given = field.name in self.names and field.name not in keys
            shown.append(f.col(self._source(field.name) if given else places[field.name]).alias(field.name))
        if lineage:
            shown += [f.col(lineage[0]), f.lit(None).cast("bigint").alias(lineage[1])]
        return rows.join(self._rows, condition).select(*shown)

    def inserts(self, tasks: FileTasks, keys: Sequence[str]) -> DataFrame:
        """Return the rows of the source that match no row of the table, with all columns of the table."""
        from pyspark.sql import functions as f

        rows = self._rows
        if len(tasks):
            rows = rows.join(self._there(tasks, keys), self._equal(keys), "left_anti")
        rows = rows.toDF(*self.names)
        if len(self.names) < len(self._state.schema.fields):
            rows = fitted_rows(self._session, self._state, rows, complete=True)
        empty = [f.lit(None).cast("bigint").alias(name) for name in lineage_columns(self._state)]
        return rows.select("*", *empty)

    def _source(self, name: str) -> str:
        return f"s{self.names.index(name)}"

    def _keys(self, keys: Sequence[str]) -> DataFrame:
        return self._rows.select(*[self._source(key) for key in keys])

    def _there(self, tasks: FileTasks, keys: Sequence[str]) -> DataFrame:
        """Return the keys of the table's rows as ``k0``, ``k1``, ..., with their ``task`` and ``position``.

        The path is replaced by the task's number before the shuffle, which saves about a hundred bytes per row.
        """
        from pyspark.sql import functions as f
        from pyspark.sql import types as t

        locations = tasks.files.entries["location"].to_pylist()
        numbers = pa.table({"path": pa.array(locations, pa.string()), "task": pa.array(range(len(tasks)), pa.int32())})
        schema = t.StructType([t.StructField("path", t.StringType()), t.StructField("task", t.IntegerType())])
        files = arrow_frame(self._session, SessionInfo.of(self._session), numbers, schema)
        names = [f"k{i}" for i in range(len(keys))]
        rows = task_rows(self._session, self._state, tasks, [*keys, FILE.name, POS.name])
        rows = rows.toDF(*names, "file", "position").join(f.broadcast(files), f.col("file") == f.col("path"))
        return rows.select(*names, "task", "position")

    def _equal(self, keys: Sequence[str]) -> Column:
        from pyspark.sql import functions as f

        return self._conditions([(f.col(f"k{i}"), f.col(self._source(key))) for i, key in enumerate(keys)])

    def _conditions(self, pairs: Sequence[tuple[Column, Column]]) -> Column:
        made = pairs[0][0] == pairs[0][1]
        for one, other in pairs[1:]:
            made = made & (one == other)
        return made

    def _refuse(self, both: DataFrame, keys: Sequence[str]) -> None:
        from pyspark.sql import functions as f

        names = [f"k{i}" for i in range(len(keys))]
        twice = both.groupBy("task", "position", *names).agg(f.count(f.lit(1)).alias("rows")).where("rows > 1")
        key = dict(zip(keys, list(twice.select(*names).limit(1).collect()[0]), strict=True))
        raise OptionError(f"several source rows match one row of the table, {key}: at most one may match")
