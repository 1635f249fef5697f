"""Write data files on Spark's workers, which fit, partition, sort and count the rows; the driver gets the entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import OptionError, StorageError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._bundles import map_in_arrow
from iceexplore.on_spark.transport._errors import as_ours
from iceexplore.on_spark.transport._state import check_reach, ship
from iceexplore.on_spark.write._workers import FileWriter, Keys, unpacked
from iceexplore.writing import fit_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["check_columns", "check_there", "write_files"]


def write_files(
    session: SparkSession, frame: DataFrame, state: TableState, *, lineage: bool = False, may_be_empty: bool = False
) -> EntryBatch:
    """Write a Spark DataFrame's rows as data files of a table on the workers, without committing them.

    Columns are fitted to the table's schema by name; missing ones get their write default. For a partitioned table, a
    first pass of Python workers computes the partition of each row (with Iceberg's transforms, including the hash of
    ``bucket``), Spark groups the rows of a partition, and a second pass writes them as Parquet with field ids. Each
    file holds rows of one partition, is sorted by the table's sort order, and is synced to disk (fsync) before its
    entry is returned. Workers also compute the column metrics. Rows never pass through the driver; it gets the entries.

    Large partitions are written by several tasks, as Spark rebalances them
    (``spark.sql.adaptive.advisoryPartitionSizeInBytes``). With ``write.distribution-mode`` ``none``, or for an
    unpartitioned table, each task of the DataFrame writes its own rows, so ``frame.coalesce(n)`` gives fewer files. A
    file's rows take at most the smaller of ``write.target-file-size-bytes`` and 256 MiB in memory, in Arrow's format.

    A task that Spark runs twice (a retry or speculation) writes its files twice, under different names; only those of
    the attempt that counts are in the result. The others, and all files of a failed job, remain as orphan files.

    Parameters
    ----------
    session
        A session of Spark 3.5 or later, classic or Connect.
    frame
        A DataFrame of this session. Its query is executed once.
    state
        The table. Its storage must accept new files (`iceexplore.storage.FolderStorage`), on a disk that the workers
        and this machine share.
    lineage
        Whether the frame's last two columns are ``_row_id`` and ``_last_updated_sequence_number``, which rewritten rows
        keep (spec, "Row Lineage").
    may_be_empty
        Whether a frame without rows writes no file instead of raising an error.

    Returns
    -------
    EntryBatch
        One entry per file, as from ``files_of_frame``.

    Raises
    ------
    OptionError
        ``session`` is not a Spark session; the DataFrame is streaming or has no rows; the schema lacks a column; a
        required column or value is missing; a type or value does not fit.
    UnsupportedError
        The workers cannot reach the table's folder, or its storage cannot be sent to them.
    StorageError
        Files that the workers have written are not accessible on this machine.
    """
    info = SessionInfo.of(session)
    check_columns(frame, state, lineage=lineage)
    check_reach(state, info)
    spec = state.metadata.spec()
    if spec is None:
        raise OptionError("the table's default partition spec is missing: files cannot be added")
    shipped = ship(state)
    key = None
    if spec.fields:
        key = _free_name(frame.columns)
        frame = _clustered(session, frame, Keys(shipped, key), state)
    with as_ours():
        rows = map_in_arrow(frame, FileWriter(shipped, key, lineage), "files binary").collect()
    made = concat_batches([unpacked(bytes(row[0])) for row in rows])
    if not len(made) and not may_be_empty:
        raise OptionError("the DataFrame has no rows to add")
    check_there(state, made)
    return made


def check_columns(frame: DataFrame, state: TableState, *, complete: bool = True, lineage: bool = False) -> list[str]:
    """Return the names of a frame's columns; raise an error if their names or types do not fit the table.

    Raises
    ------
    OptionError
        As for `write_files`.
    """
    empty = _empty(frame)
    if lineage:
        empty = empty.select(range(empty.num_columns - 2))
    fit_columns(empty, state.schema, complete=complete)
    return list(empty.column_names)


def _empty(frame: DataFrame) -> pa.Table:
    """Return the frame's columns as an empty table."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if getattr(frame, "isStreaming", False):
        raise OptionError("the DataFrame is a stream: write each of its batches separately (foreachBatch)")
    try:
        schema = to_arrow_schema(frame.schema)
    except Exception as error:  # PySpark's exception class, whose module differs between versions
        raise OptionError(f"the DataFrame has a column that cannot be converted to Arrow: {error}") from error
    return pa.Table.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _clustered(session: SparkSession, frame: DataFrame, keys: Keys, state: TableState) -> DataFrame:
    """Return the rows with their keys, distributed and sorted so that a partition's rows are adjacent in few tasks."""
    from pyspark.sql import types as t

    schema = t.StructType([*frame.schema.fields, t.StructField(keys.name, t.LongType(), True)])
    keyed = map_in_arrow(frame, keys, schema)
    if state.metadata.properties.get("write.distribution-mode", "hash").lower() != "none":
        # Rebalancing splits large partitions and joins small ones, but has no effect without adaptive execution, and
        # before Spark 4.0 its hint does not accept column names.
        adaptive = str(session.conf.get("spark.sql.adaptive.enabled", "true")).lower() == "true"
        adaptive = adaptive and SessionInfo.of(session).version >= (4, 0)
        keyed = keyed.hint("rebalance", keys.name) if adaptive else keyed.repartition(keys.name)
    return keyed.sortWithinPartitions(keys.name)


def _free_name(taken: list[str]) -> str:
    """Return a name that no column has; compared without case, as Spark does."""
    name, lower = "iceexplore_partition_key", {n.lower() for n in taken}
    while name in lower:
        name += "_"
    return name


def check_there(state: TableState, made: EntryBatch) -> None:
    """Raise an error if this machine does not see the written files, for example if a worker wrote to its own disk."""
    sizes = build.to_pylist(made.entries["file_size_in_bytes"])
    for location, size in zip(build.to_pylist(made.entries["location"]), sizes, strict=True):
        found = state.storage.stat(location).size if state.storage.exists(location) else None
        if found == size:
            continue
        what = "does not exist on this machine" if found is None else f"has {found} bytes on this machine, not {size}"
        raise StorageError(
            f"{location}, which a Spark worker wrote, {what}: the table must be in a folder shared by this machine and "
            "the workers"
        )
