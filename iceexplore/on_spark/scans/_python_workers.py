"""Files that Spark's workers read themselves, with pyarrow: what plain Spark cannot read, or not as Iceberg means it.

That is Avro files; ORC files with dates or timestamps, or whose rows' places count; INT96, lists of another build,
names that differ in case alone, deleted rows that are wanted too, and deletes beyond what a plan should hold. Columns
and filters that come after the scan do not reach the files there; those given to it do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._columns import SparkColumns
from iceexplore.on_spark.transport._splits import Share, fitted, read_share, shares
from iceexplore.on_spark.transport._state import ShippedState, ship
from iceexplore.planning import SplitOptions
from iceexplore.reading import Output, TaskReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["worker_rows"]

_BATCH_ROWS = 1 << 14
#: Tasks that are made of a few large files; a cluster's size is not known to a client of Connect.
_PARALLEL = 16


def worker_rows(
    session: Any,
    info: SessionInfo,
    reader: TaskReader,
    outputs: Sequence[Output],
    rows: Sequence[int],
    options: SplitOptions,
) -> DataFrame:
    """The rows of some tasks, deletes and the filter applied, read by Python workers.

    Parameters
    ----------
    rows
        Which of the tasks.
    """
    from pyspark.sql import types as t

    columns = SparkColumns(outputs, info.version)
    mine = reader.tasks.take(pa.array(list(rows), pa.int64()))
    packed = [share.data for share in shares(mine, fitted(mine, options, _PARALLEL))]
    schema = t.StructType([t.StructField("tasks", t.BinaryType(), False)])
    given = session.createDataFrame([(bytearray(data),) for data in packed], schema)
    if len(packed) > 1:
        given = given.repartition(len(packed))
    return given.mapInArrow(_reader(ship(reader.state), list(outputs), info.version, reader.checksums), columns.schema)


def _reader(
    shipped: ShippedState, outputs: list[Output], version: tuple[int, int], checksums: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = shipped.open()
        columns = SparkColumns(outputs, version)
        for batch in batches:
            for data in batch.column(0):
                for table in read_share(state, Share(data.as_py()), outputs, checksums=checksums):
                    yield from columns.of(table).to_batches(max_chunksize=_BATCH_ROWS)

    return read
