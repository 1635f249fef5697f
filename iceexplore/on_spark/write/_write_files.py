"""Data files written by Spark's workers: fitted, partitioned, sorted, counted there; the driver gets the entries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from iceexplore.errors import OptionError, StorageError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._bundles import map_in_arrow
from iceexplore.on_spark.transport._errors import as_ours
from iceexplore.on_spark.transport._state import check_reach, ship
from iceexplore.on_spark.write._workers import FileWriter, Keys, unpacked
from iceexplore.writing import fit_columns

__all__ = ["check_columns", "check_there", "write_files"]


def write_files(
    session: Any, frame: Any, state: TableState, *, lineage: bool = False, may_be_empty: bool = False
) -> EntryBatch:
    """Write a Spark data frame's rows as data files of a table, on the workers. No commit is made.

    Columns are fitted to the table's schema by name, as of any other rows that are added: missing ones get their write
    default. Of a partitioned table a first pass of Python workers computes the partition of each row (Iceberg's
    transforms, the hash of ``bucket`` too), Spark brings the rows of a partition together, and a second pass writes
    them: Parquet with field ids, each file in one partition, sorted by the table's order, on the disk (fsync) before
    it is named. Statistics are of the data, made where it is. The rows do not pass the driver: it gets the entries.

    Large partitions are written by several tasks, as Spark rebalances them
    (``spark.sql.adaptive.advisoryPartitionSizeInBytes``); with ``write.distribution-mode`` ``none``, or an
    unpartitioned table, each task of the data frame writes its own rows: ``frame.coalesce(n)`` makes fewer files. A
    file has at most ``write.target-file-size-bytes``, and 256 MiB, of Arrow's bytes in memory.

    A task that Spark runs twice (a retry, speculation) writes its files twice, under other names; only those of the
    attempt that counts are in the result. The others, and all files of a job that fails, are in the folder, and no
    metadata names them.

    Parameters
    ----------
    session
        A Spark session, 3.5 or later, also of Spark Connect.
    frame
        Of this session. Its query is run once.
    state
        The table; its storage takes new files (`iceexplore.storage.FolderStorage`), on a disk that the workers and
        this machine share.
    lineage
        The frame's last two columns are ``_row_id`` and ``_last_updated_sequence_number``, which rows that are moved
        keep (spec, "Row Lineage").
    may_be_empty
        No rows make no file, instead of an error.

    Returns
    -------
    EntryBatch
        An entry per file, as ``files_of_frame`` gives.

    Raises
    ------
    OptionError
        No Spark session; a streaming data frame; no rows; a column that the schema lacks, a required column or value
        that is missing, a type or value that does not fit.
    UnsupportedError
        The workers cannot reach the table's folder, or its storage cannot go to them.
    StorageError
        The workers have written files that are not here.
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
        raise OptionError("the frame has no rows: there is nothing to add")
    check_there(state, made)
    return made


def check_columns(frame: Any, state: TableState, *, complete: bool = True, lineage: bool = False) -> list[str]:
    """Refuse columns that do not fit, as far as can be said without a row; the names of those that the frame has.

    Raises
    ------
    OptionError
        As `write_files`.
    """
    empty = _empty(frame)
    if lineage:
        empty = empty.select(range(empty.num_columns - 2))
    fit_columns(empty, state.schema, complete=complete)
    return list(empty.column_names)


def _empty(frame: Any) -> pa.Table:
    """The columns without a row."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if getattr(frame, "isStreaming", False):
        raise OptionError("the data frame is a stream: write its batches, each by itself (foreachBatch)")
    try:
        schema = to_arrow_schema(frame.schema)
    except Exception as error:  # PySpark's own, of another module in each version
        raise OptionError(f"the data frame has a column that cannot leave Spark: {error}") from error
    return pa.Table.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _clustered(session: Any, frame: Any, keys: Keys, state: TableState) -> Any:
    """The rows with their keys: those of a partition in one task, or a few, and there one after the other."""
    from pyspark.sql import types as t

    schema = t.StructType([*frame.schema.fields, t.StructField(keys.name, t.LongType(), True)])
    keyed = map_in_arrow(frame, keys, schema)
    if state.metadata.properties.get("write.distribution-mode", "hash").lower() != "none":
        # Rebalancing cuts large partitions and joins small ones, but is nothing without adaptive execution; before
        # Spark 4.0 its hint takes no names of columns.
        adaptive = str(session.conf.get("spark.sql.adaptive.enabled", "true")).lower() == "true"
        adaptive = adaptive and SessionInfo.of(session).version >= (4, 0)
        keyed = keyed.hint("rebalance", keys.name) if adaptive else keyed.repartition(keys.name)
    return keyed.sortWithinPartitions(keys.name)


def _free_name(taken: list[str]) -> str:
    """A name that no column has: Spark does not tell upper case from lower."""
    name, lower = "iceexplore_partition_key", {n.lower() for n in taken}
    while name in lower:
        name += "_"
    return name


def check_there(state: TableState, made: EntryBatch) -> None:
    """Workers elsewhere write to disks of their own: this machine must see what they wrote."""
    sizes = made.entries["file_size_in_bytes"].to_pylist()
    for location, size in zip(made.entries["location"].to_pylist(), sizes, strict=True):
        found = state.storage.stat(location).size if state.storage.exists(location) else None
        if found == size:
            continue
        what = "is not here" if found is None else f"has {found} bytes here, and {size} there"
        raise StorageError(
            f"{location}, which a Spark worker wrote, {what}: the table must be in a folder that this machine and the "
            "workers share"
        )
