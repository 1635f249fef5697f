"""Open every data and delete file of a snapshot on Spark's workers, and compare it with the metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.graph import TableState
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._arrow_schema import for_spark, spark_schema
from iceexplore.on_spark.transport._bundles import frame_of, parallelism
from iceexplore.on_spark.transport._state import ShippedState, check_reach, ship
from iceexplore.verification import (
    CHECKED_SCHEMA,
    FINDING_SCHEMA,
    Level,
    Slice,
    check_slice,
    joined,
    judged,
    slices_of,
    suspects,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["verify"]

#: The number of Spark tasks per worker, and the maximum in total, because the list of all slices is sent to each task.
_TASKS_PER_WORKER = 8
_MOST_TASKS = 20_000


@dataclass(frozen=True)
class _Check:
    """The function that a worker applies to its slices."""

    state: ShippedState
    level: Level

    def __call__(self, slices: Sequence[Slice]) -> Iterator[pa.Table]:
        state = self.state.open()
        for piece in slices:
            yield check_slice(state, piece, self.level)


@dataclass(frozen=True)
class _Judge:
    """The function that a worker applies to rows that may be findings."""

    state: ShippedState

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = self.state.open()
        for batch in batches:
            made = judged(state, pa.Table.from_batches([batch]))
            yield from for_spark(made).to_batches()


def verify(state: TableState, session: SparkSession, *, level: Level = "footers") -> DataFrame:
    """Open every live data and delete file on Spark's workers: ``t.verify(spark)``.

    Parameters
    ----------
    session
        A session of Spark 3.5 or later, classic or Connect.
    level
        As in `iceexplore.Table.verify`.

    Returns
    -------
    DataFrame
        The findings, in the columns of `FINDING_SCHEMA`. Files are opened only when the DataFrame is executed, and all
        of them again on each execution.

    Raises
    ------
    OptionError
        ``session`` is not a Spark session, or the level is unknown.
    UnsupportedError
        The storage cannot be sent to other processes, or the files are accessible on this machine only.
    """
    info = SessionInfo.of(session)
    slices = slices_of(state, level)
    check_reach(state, info)
    if not slices:
        return session.createDataFrame([], spark_schema(FINDING_SCHEMA))
    parts = min(len(slices), _MOST_TASKS, max(parallelism(session, info) * _TASKS_PER_WORKER, len(slices) // 256))
    edges = [len(slices) * i // parts for i in range(parts + 1)]
    # Slices of one manifest stay together, so that few workers have to decode it.
    bundles = [joined(slices[a:b]) for a, b in pairwise(edges)]
    shipped = ship(state)
    checked = frame_of(session, bundles, _Check(shipped, level), CHECKED_SCHEMA)
    judge = _Judge(shipped)

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return judge(batches)

    return suspects(checked).mapInArrow(make, spark_schema(FINDING_SCHEMA))
