"""Files that Spark's Python workers read with pyarrow, as plain Spark cannot read them by Iceberg's rules.

These are Avro files; ORC files with dates or timestamps, or for which row positions are needed; INT96 timestamps;
legacy list structures; names that differ only in case; files with column files (V4 draft); scans that include deleted
rows; and more deletes than a plan should hold. Column selections and filters applied after the scan do not reach these
files; those passed to it do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._columns import SparkColumns
from iceexplore.on_spark.transport._splits import Share, fitted, read_share, shares
from iceexplore.on_spark.transport._state import ShippedState, ship
from iceexplore.planning import SplitOptions
from iceexplore.reading import Output, TaskReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["worker_rows"]

_BATCH_ROWS = 1 << 14
#: Minimum number of tasks into which a few large files are split; a Connect client does not know the cluster's size.
_PARALLEL = 16


def worker_rows(
    session: SparkSession,
    info: SessionInfo,
    reader: TaskReader,
    outputs: Sequence[Output],
    rows: Sequence[int],
    options: SplitOptions,
) -> DataFrame:
    """Return the rows of some tasks, read by Python workers, with deletes and the filter applied.

    Parameters
    ----------
    rows
        The indexes of the tasks.
    """
    from pyspark.sql import types as t

    columns = SparkColumns(outputs, info.version)
    mine = reader.tasks.take(pa.array(list(rows), pa.int64()))
    packed = [share.data for share in shares(mine, fitted(mine, options, _PARALLEL))]
    schema = t.StructType([t.StructField("tasks", t.BinaryType(), False)])
    given = session.createDataFrame([(bytearray(data),) for data in packed], schema)
    if len(packed) > 1:
        given = given.repartition(len(packed))
    return given.mapInArrow(_reader(ship(reader.state), list(outputs), info.version), columns.schema)


def _reader(
    shipped: ShippedState, outputs: list[Output], version: tuple[int, int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = shipped.open()
        columns = SparkColumns(outputs, version)
        for batch in batches:
            for data in batch.column(0):
                for table in read_share(state, Share(data.as_py()), outputs):
                    yield from columns.of(table).to_batches(max_chunksize=_BATCH_ROWS)

    return read
