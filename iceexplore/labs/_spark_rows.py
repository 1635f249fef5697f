"""Rows of a lab that come as a Spark data frame: Spark writes their files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from iceexplore.commits import CommitWriter
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.storage import CommitFiles, Write

__all__ = ["collected", "is_spark_frame", "write_on_spark"]


def is_spark_frame(rows: Any) -> bool:
    """Whether it is a Spark data frame, classic or of Connect; PySpark is not imported."""
    return type(rows).__module__.startswith("pyspark.sql.") and hasattr(rows, "mapInArrow")


def collected(frame: Any) -> pa.Table:
    """A Spark data frame's rows, in this process."""
    from iceexplore.on_spark import rows_here

    return rows_here(frame)


def write_on_spark(state: TableState, writer: CommitWriter, frame: Any) -> EntryBatch:
    """Have Spark write a data frame's rows (`iceexplore.on_spark.write_files`), as files of this commit."""
    from iceexplore.on_spark import write_files

    made = write_files(frame.sparkSession, frame, state)
    files = writer.storage
    if isinstance(files, CommitFiles):
        places = made.entries.select(["location", "file_size_in_bytes"]).to_pylist()
        for place in places:
            location = place["location"]
            real, size = files.storage.resolve(location), place["file_size_in_bytes"]
            files.storage.writes.add(Write(location, real, "data-file", size, 0.0, files.commit, files.attempt))
    return made
