"""Work dealt out to Spark's tasks: bundles of small pickled pieces, each bundle one partition of a data frame."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._arrow_schema import for_spark, spark_schema
from iceexplore.storage import CACHE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "deal",
    "frame_of",
    "from_table",
    "map_in_arrow",
    "parallelism",
]

_Batches = Iterator[pa.RecordBatch]


def map_in_arrow(frame: DataFrame, work: Callable[[_Batches], _Batches], schema: Any) -> DataFrame:
    """``frame.mapInArrow(work, schema)``, also where a column is called ``a.b``, or has a backquote in its name.

    PySpark looks up each column by its name, and takes that for a path: the columns have plain names on their way.
    """
    names = tuple(frame.columns)
    return frame.toDF(*[f"c{i}" for i in range(len(names))]).mapInArrow(_Named(work, names), schema)


@dataclass(frozen=True)
class _Named:
    """Work on batches whose columns have their own names again."""

    work: Callable[[_Batches], _Batches]
    names: tuple[str, ...]

    def __call__(self, batches: _Batches) -> _Batches:
        return self.work(self._named(batch) for batch in batches)

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        fields = [field.with_name(name) for field, name in zip(batch.schema, self.names, strict=True)]
        return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields, batch.schema.metadata))


#: Rows of a batch on its way to Spark: wide rows of statistics take some kilobytes each.
_BATCH_ROWS = 8192
#: Tasks at least, where the number of workers is not known.
_CONNECT_TASKS = 16
#: What a worker keeps of what it has decoded: there are many of them, and they go through each manifest once.
_WORKER_CACHE = 64 << 20
T = TypeVar("T")


def deal(sizes: Sequence[int], parts: int) -> list[list[int]]:
    """The places of some sizes dealt to so many hands, or fewer: about the same sum each, each hand in order."""
    heap = [(0, hand) for hand in range(max(1, min(parts, len(sizes))))]
    hands: list[list[int]] = [[] for _ in heap]
    for place in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        held, hand = heapq.heappop(heap)
        hands[hand].append(place)
        heapq.heappush(heap, (held + max(sizes[place], 1), hand))
    return [sorted(hand) for hand in hands if hand]


def parallelism(session: SparkSession, info: SessionInfo) -> int:
    """Into how many tasks work is cut at least, so that every worker has some."""
    if info.connect:  # which does not say how many there are
        return _CONNECT_TASKS
    return int(session.sparkContext.defaultParallelism)


def frame_of(
    session: SparkSession,
    bundles: Sequence[T],
    work: Callable[[T], Iterable[pa.Table]],
    schema: pa.Schema,
) -> DataFrame:
    """A data frame with a partition per bundle, whose rows a worker makes of it.

    Without an RDD, so that Spark Connect has it too: a range of numbers whose every partition is one number.

    Parameters
    ----------
    work
        What the worker calls; it and the bundles are pickled and sent to every worker with the query.
    schema
        Of the tables that ``work`` makes, in our types.
    """
    count = len(bundles)
    held = spark_schema(schema)
    if not count:
        return session.createDataFrame([], held)

    run = _Run(tuple(bundles), work)

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(batches)  # by value goes this alone, and with it what `run` holds; modules are imported there

    return session.range(0, count, 1, count).mapInArrow(make, held)


@dataclass(frozen=True)
class _Run:
    """What a worker does with its partition: the number of a bundle."""

    bundles: tuple[Any, ...]
    work: Callable[[Any], Iterable[pa.Table]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        CACHE.max_bytes = min(CACHE.max_bytes, _WORKER_CACHE)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for table in self.work(self.bundles[number]):
                    yield from for_spark(table).to_batches(max_chunksize=_BATCH_ROWS)


def from_table(session: SparkSession, table: pa.Table) -> DataFrame:
    """A data frame of a small table that the driver has, of the same types as tables that workers make."""
    sink: Any = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return frame_of(session, [sink.getvalue().to_pybytes()], _unpacked, table.schema)


def _unpacked(data: bytes) -> Iterator[pa.Table]:
    yield pa.ipc.open_stream(data).read_all()
