"""Compact data files on Spark's workers, in one job without a shuffle: each row is written where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import compacted_files
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._bundles import deal, frame_of, parallelism
from iceexplore.on_spark.transport._errors import as_ours
from iceexplore.on_spark.transport._splits import Share, share_rows, shares
from iceexplore.on_spark.transport._state import ShippedState, check_reach, ship
from iceexplore.on_spark.write._workers import LINEAGE, MOST_HELD, lineage_of, packed, unpacked, writer_of
from iceexplore.on_spark.write._write_files import check_there
from iceexplore.planning import FileTasks, SplitOptions
from iceexplore.reading import TaskReader, outputs_of
from iceexplore.writing import fit_columns, target_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compact_files"]
#: Maximum total size in bytes of data files that are combined into one; a worker holds them in memory, where they take
#: several times as much.
_MOST_BYTES = 64 << 20
#: Number of Spark tasks for each task that can run at the same time: a few, because some files take longer than others.
_TASKS = 3
_MADE = build.schema([("part", pa.int64()), ("files", pa.binary())])


def compact_files(
    session: SparkSession, state: TableState, groups: Sequence[FileTasks], files: int, sequence_number: int | None
) -> EntryBatch:
    """Rewrite files on the workers, as `iceexplore.commits.compact` does with ``rewrite``.

    The rows of each new file are sorted by the table's sort order, if it has one. A partition gets ``files`` files:
    fewer if it has fewer row groups, more if it is large, as a file holds at most 64 MiB of input, and in memory at
    most the smaller of ``write.target-file-size-bytes`` and 256 MiB.

    Parameters
    ----------
    groups
        Groups of files: each group is one partition, and all files have the same partition spec.

    Raises
    ------
    FormatError, FileMissingError, UnsupportedError
        A file or a delete cannot be read, or the workers cannot reach the table's folder.
    StorageError
        Files that the workers have written are not accessible on this machine.
    """
    info = SessionInfo.of(session)
    check_reach(state, info)
    options = replace(SplitOptions.of(state.metadata.properties), size=_MOST_BYTES, open_file_cost=0)
    parts, sizes = [], []
    for group in groups:
        size = int(pc.sum(group.files.entries["file_size_in_bytes"], min_count=0).as_py())
        made = shares(group, options, parts=max(files, -(-size // _MOST_BYTES)))
        parts += made
        sizes += [max(1, size // max(1, len(made)))] * len(made)
    hands = deal(sizes, _TASKS * parallelism(session, info))
    bundles = [[(place, parts[place]) for place in hand] for hand in hands]
    frame = frame_of(session, bundles, _Compactor(ship(state), sequence_number), _MADE)
    with as_ours():
        rows = sorted((row[0], bytes(row[1])) for row in frame.collect())
    added = concat_batches([unpacked(data) for _, data in rows])
    check_there(state, added)
    return added


@dataclass(frozen=True)
class _Compactor:
    """The function that a worker applies to a bundle of shares, each of which becomes one or more files."""

    state: ShippedState
    sequence_number: int | None

    def __call__(self, bundle: Sequence[tuple[int, Share]]) -> Iterator[pa.Table]:
        state = self.state.open()
        for part, share in bundle:
            made = self._rewritten(state, share)
            if len(made):
                yield pa.table([pa.array([part]), pa.array([packed(made)], pa.binary())], schema=_MADE)

    def _rewritten(self, state: TableState, share: Share) -> EntryBatch:
        tasks, ranges = share.open()
        lineage = LINEAGE if state.metadata.has_row_lineage else ()
        outputs = outputs_of(state, ["*", *(f.name for f in lineage)])
        reader = TaskReader(state, tasks, outputs)
        target = min(target_bytes(state.metadata.properties), MOST_HELD)
        writer = writer_of(state)
        made: list[EntryBatch] = []
        held: list[pa.Table] = []
        for _, table in share_rows(reader, ranges):
            if held and sum(t.nbytes for t in held) + table.nbytes > target:
                made.append(compacted_files(state, writer, tasks.files, _fitted(state, held), self.sequence_number))
                held = []
            held += [table] if table.num_rows else []
        if held:
            made.append(compacted_files(state, writer, tasks.files, _fitted(state, held), self.sequence_number))
        return concat_batches(made)


def _fitted(state: TableState, tables: list[pa.Table]) -> pa.Table:
    """Convert rows that were read to the types and columns of data files."""
    rows = pa.concat_tables(tables)
    own = len(state.schema.fields)
    out = fit_columns(rows.select(range(own)), state.schema, complete=True)
    if rows.num_columns > own and (lineage := lineage_of(rows)) is not None:
        for field, column in zip(lineage.schema, lineage.columns, strict=True):
            out = out.append_column(field, column)
    return out
