"""Distribute work over Spark's tasks as bundles of small pickled pieces, one bundle per partition of a DataFrame."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._arrow_schema import for_spark, spark_schema
from iceexplore.storage import CACHE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as spark_types

__all__ = [
    "deal",
    "frame_of",
    "from_table",
    "map_in_arrow",
    "parallelism",
]

_Batches = Iterator[pa.RecordBatch]


def map_in_arrow(
    frame: DataFrame, work: Callable[[_Batches], _Batches], schema: spark_types.StructType | str
) -> DataFrame:
    """Return ``frame.mapInArrow(work, schema)`` for any column names, such as ``a.b`` or names with backquotes.

    PySpark resolves column names as paths, so the columns have generated names in the meantime.
    """
    names = tuple(frame.columns)
    return frame.toDF(*[f"c{i}" for i in range(len(names))]).mapInArrow(_Named(work, names), schema)


@dataclass(frozen=True)
class _Named:
    """A function that restores the column names of batches and passes them on to ``work``."""

    work: Callable[[_Batches], _Batches]
    names: tuple[str, ...]

    def __call__(self, batches: _Batches) -> _Batches:
        return self.work(self._named(batch) for batch in batches)

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        fields = [field.with_name(name) for field, name in zip(batch.schema, self.names, strict=True)]
        return pa.RecordBatch.from_arrays(batch.columns, schema=build.schema(fields, batch.schema.metadata))


#: Maximum number of rows per batch sent to Spark, as wide rows of column metrics take a few kilobytes each.
_BATCH_ROWS = 8192
#: The minimum number of tasks if the number of workers is not known.
_CONNECT_TASKS = 16
#: The size of the cache of decoded files in a worker. It is small, as there are many workers, and each reads a manifest
#: only once.
_WORKER_CACHE = 64 << 20
T = TypeVar("T")


def deal(sizes: Sequence[int], parts: int) -> list[list[int]]:
    """Distribute items of these sizes over at most ``parts`` lists of about equal size; return their indexes."""
    heap = [(0, hand) for hand in range(max(1, min(parts, len(sizes))))]
    hands: list[list[int]] = [[] for _ in heap]
    for place in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        held, hand = heapq.heappop(heap)
        hands[hand].append(place)
        heapq.heappush(heap, (held + max(sizes[place], 1), hand))
    return [sorted(hand) for hand in hands if hand]


def parallelism(session: SparkSession, info: SessionInfo) -> int:
    """Return the minimum number of tasks with which every worker gets some."""
    if info.connect:  # Connect does not report the number of workers
        return _CONNECT_TASKS
    return int(session.sparkContext.defaultParallelism)


def frame_of(
    session: SparkSession,
    bundles: Sequence[T],
    work: Callable[[T], Iterable[pa.Table]],
    schema: pa.Schema,
) -> DataFrame:
    """Return a DataFrame with one partition per bundle; a worker produces each partition's rows from its bundle.

    The DataFrame is built from a range with one number per partition, not from an RDD, which Spark Connect lacks.

    Parameters
    ----------
    work
        The function that the worker calls; it and the bundles are pickled and sent to every worker with the query.
    schema
        The schema of the tables that ``work`` yields, before conversion to Spark's types.
    """
    count = len(bundles)
    held = spark_schema(schema)
    if not count:
        return session.createDataFrame([], held)

    run = _Run(tuple(bundles), work)

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(batches)  # pickled by value with `run`'s attributes only; the worker imports the modules

    return session.range(0, count, 1, count).mapInArrow(make, held)


@dataclass(frozen=True)
class _Run:
    """The function that a worker applies to its partition, which holds the number of a bundle."""

    bundles: tuple[Any, ...]
    work: Callable[[Any], Iterable[pa.Table]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        CACHE.max_bytes = min(CACHE.max_bytes, _WORKER_CACHE)
        for batch in batches:
            for number in build.to_pylist(batch.column(0)):
                for table in self.work(self.bundles[number]):
                    yield from for_spark(table).to_batches(max_chunksize=_BATCH_ROWS)


def from_table(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a small table of the driver as a DataFrame, with the same types as the tables that workers produce."""
    sink: Any = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return frame_of(session, [sink.getvalue().to_pybytes()], _unpacked, table.schema)


def _unpacked(data: bytes) -> Iterator[pa.Table]:
    yield pa.ipc.open_stream(data).read_all()
