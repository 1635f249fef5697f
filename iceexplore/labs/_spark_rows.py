"""Rows of a lab that Spark reads and writes, without sending them to this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import Change, CommitWriter, compact
from iceexplore.graph import TableState
from iceexplore.labs._rewrite import Hits, MovedRows, Rewrite
from iceexplore.manifests import EntryBatch
from iceexplore.planning import FileTasks
from iceexplore.storage import CommitFiles, Write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OnSpark", "compact_on_spark", "is_spark_column", "is_spark_frame", "write_moved", "write_on_spark"]

#: Rewriting an unpartitioned table writes at most one new file per this many bytes of old files (rounded up).
_FILE_BYTES = 32 << 20

Frame = Any
#: A function that takes some tasks and returns a data frame with the replacements for their rows.
FrameChange = Callable[[FileTasks], Frame]


@dataclass(frozen=True)
class OnSpark:
    """A Spark session, as an `Engine`."""

    session: Any

    def find(self, state: TableState, tasks: FileTasks, *, skip_whole: bool = False) -> dict[int, Any]:
        """Find rows with Python workers, which read the filter's columns and return a bitmap per file."""
        from iceexplore.on_spark import find_positions

        rows = pa.array([i for i, whole in enumerate(tasks.whole.to_pylist()) if not (skip_whole and whole)])
        found = find_positions(self.session, state, tasks.take(rows.cast(pa.int64())))
        return {rows[row].as_py(): positions for row, positions in found.items()}

    def change(self, state: TableState, given: Mapping[str, Any]) -> FrameChange:
        """Return a function that sets columns to constants, Spark Columns, or results of functions of a data frame."""
        from iceexplore.on_spark import changed_rows

        return lambda tasks: changed_rows(self.session, state, tasks, given)

    def rewritten(
        self,
        state: TableState,
        tasks: FileTasks,
        hits: Hits,
        *,
        merge_on_read: bool,
        change: FrameChange | None = None,
    ) -> Rewrite:
        """Rewrite files (see `Engine`); the rewritten rows are a lazy data frame."""
        from iceexplore.on_spark import kept_rows, only_rows

        if not hits:
            return Rewrite()
        names = build.to_pylist(tasks.files.entries["location"])
        mine, found = tasks.take(pa.array(list(hits), pa.int64())), dict(enumerate(hits.values()))
        frames = [] if change is None else [change(only_rows(mine, found))]
        if not merge_on_read:
            kept = kept_rows(self.session, state, mine, found)
            frames = ([] if kept is None else [kept]) + frames
        rows = MovedRows(_few(state, mine, reduce(lambda a, b: a.union(b), frames))) if frames else None
        if merge_on_read:
            return Rewrite(positions={names[row]: at for row, at in hits.items()}, rows=rows)
        return Rewrite(gone=tuple(names[row] for row in hits), rows=rows)


def _few(state: TableState, tasks: FileTasks, frame: Frame) -> Frame:
    """Coalesce rows of an unpartitioned table, without a shuffle, to few partitions, each of which becomes a file."""
    spec = state.metadata.spec()
    if spec is None or spec.fields:
        return frame
    size = pc.sum(tasks.files.entries["file_size_in_bytes"], min_count=0).as_py()
    return frame.coalesce(max(1, -(-size // _FILE_BYTES)))


def is_spark_frame(rows: object) -> bool:
    """Return whether this is a Spark data frame, classic or Connect, without importing PySpark."""
    # Check the class: a Spark Column returns something for any attribute.
    return type(rows).__module__.startswith("pyspark.sql.") and hasattr(type(rows), "mapInArrow")


def is_spark_column(value: object) -> bool:
    """Return whether this is a Spark Column, classic or Connect, without importing PySpark."""
    return type(value).__module__.startswith("pyspark.sql.") and type(value).__name__ == "Column"


def write_on_spark(state: TableState, writer: CommitWriter, frame: Frame) -> EntryBatch:
    """Write a data frame's rows with Spark (`iceexplore.on_spark.write_files`), as files of this commit."""
    from iceexplore.on_spark import write_files

    return _noted(writer, write_files(frame.sparkSession, frame, state))


def write_moved(state: TableState, writer: CommitWriter, rows: MovedRows) -> EntryBatch:
    """Write moved rows and their lineage with Spark, as files of this commit; without rows, write no file."""
    from iceexplore.on_spark import lineage_columns, write_files

    frame, lineage = rows.frame, bool(lineage_columns(state))
    return _noted(writer, write_files(frame.sparkSession, frame, state, lineage=lineage, may_be_empty=True))


def compact_on_spark(session: SparkSession, state: TableState, writer: CommitWriter, **how: Any) -> Change:
    """Compact files with Spark's workers, like `iceexplore.commits.compact`, but without a size limit."""
    from iceexplore.on_spark import compact_files

    return compact(
        state,
        writer,
        rewrite=lambda groups, files, number: _noted(writer, compact_files(session, state, groups, files, number)),
        **how,
    )


def _noted(writer: CommitWriter, made: EntryBatch) -> EntryBatch:
    """Record, in the write log of this commit, files that workers have written."""
    files = writer.storage
    if isinstance(files, CommitFiles):
        places = made.entries.select(["location", "file_size_in_bytes"]).to_pylist()
        for place in places:
            location = place["location"]
            real, size = files.storage.resolve(location), place["file_size_in_bytes"]
            files.storage.writes.add(Write(location, real, "data-file", size, 0.0, files.commit, files.attempt))
    return made
