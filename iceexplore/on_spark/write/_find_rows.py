"""Find the matching rows of data files on the workers, as one compressed bitmap of positions per file.

The driver never receives single positions: workers put those that they find in a file into a bitmap, and where several
workers find rows of one file (in a shuffled join), other workers merge the bitmaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.deletes import bitmap_of, encode_deletion_vector
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, whole
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._bundles import frame_of, parallelism
from iceexplore.on_spark.transport._errors import as_ours
from iceexplore.on_spark.transport._splits import Share, fitted, share_rows, shares
from iceexplore.on_spark.transport._state import ShippedState, check_reach, ship
from iceexplore.planning import FileTasks, MatchedDeletes, SplitOptions
from iceexplore.reading import POS, TaskReader, deleted_positions, outputs_of

if TYPE_CHECKING:
    from pyroaring import BitMap64
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["find_positions", "gathered_positions", "only_rows", "without_rows"]

_FOUND = build.schema([("location", pa.string()), ("positions", pa.binary())])
_GATHERED = "task int, rows bigint, positions binary"


def find_positions(session: SparkSession, state: TableState, tasks: FileTasks) -> dict[int, Any]:
    """Return the positions of live rows that match the residual filter, as a `pyroaring.BitMap64` per task index.

    Tasks without matching rows are omitted. Python workers read only the columns of the filter.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        A data file, or a delete file that applies, cannot be read, or the workers cannot reach the table's folder.
    """
    if not len(tasks):
        return {}
    info = SessionInfo.of(session)
    check_reach(state, info)
    options = fitted(tasks, SplitOptions.of(state.metadata.properties), parallelism(session, info))
    frame = frame_of(session, shares(tasks, options), _Finder(ship(state)), _FOUND)
    numbers = {name: row for row, name in enumerate(tasks.files.entries["location"].to_pylist())}
    found: dict[int, Any] = {}
    with as_ours():
        rows = frame.collect()
    for location, data in rows:
        _unite(found, numbers[location], _bitmap(bytes(data)))
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class _Finder:
    """The function that a worker applies to a share of a plan; it yields a row for each file with matching rows."""

    state: ShippedState

    def __call__(self, share: Share) -> Iterator[pa.Table]:
        state = self.state.open()
        tasks, ranges = share.open()
        reader = TaskReader(state, tasks, outputs_of(state, [POS.name]))
        found: dict[int, Any] = {}
        for row, table in share_rows(reader, ranges):
            if table.num_rows:
                _unite(found, row, bitmap_of(np.asarray(table.column(0))))
        names = tasks.files.entries["location"].to_pylist()
        locations, bitmaps = [names[row] for row in found], [bitmap.serialize() for bitmap in found.values()]
        yield pa.table([pa.array(locations, pa.string()), pa.array(bitmaps, pa.binary())], schema=_FOUND)


def gathered_positions(frame: DataFrame) -> tuple[dict[int, Any], bool]:
    """Return the positions in a DataFrame of tasks (int) and positions (bigint), by task, and whether any repeats.

    The rows of one task may be spread over all partitions of the frame.
    """
    from pyspark.sql import functions as f

    parts = frame.mapInArrow(_parts, _GATHERED)
    found, twice = {}, False
    for task, rows, data in parts.repartition(f.col("task")).mapInArrow(_gathered, _GATHERED).collect():
        found[task] = _bitmap(bytes(data))
        twice = twice or len(found[task]) < rows
    return dict(sorted(found.items())), twice


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a bitmap for each task with rows in a partition."""
    found: dict[int, Any] = {}
    counts: dict[int, int] = {}
    for batch in batches:
        tasks, positions = np.asarray(batch.column(0)), np.asarray(batch.column(1))
        order = np.argsort(tasks, kind="stable")
        tasks, positions = tasks[order], positions[order]
        starts = np.flatnonzero(np.diff(tasks, prepend=-1))
        for start, part in zip(starts.tolist(), np.split(positions, starts)[1:], strict=True):
            task = int(tasks[start])
            _unite(found, task, bitmap_of(part))
            counts[task] = counts.get(task, 0) + len(part)
    yield from _packed(found, counts)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the merged bitmap of each task."""
    found: dict[int, Any] = {}
    counts: dict[int, int] = {}
    for batch in batches:
        for task, rows, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            _unite(found, task, _bitmap(data))
            counts[task] = counts.get(task, 0) + rows
    yield from _packed(found, counts)


def _packed(found: Mapping[int, Any], counts: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
    for task, bitmap in found.items():  # one by one, as a batch of all bitmaps may be large
        values: list[AnyArray] = [
            pa.array([task], pa.int32()),
            pa.array([counts[task]]),
            pa.array([bitmap.serialize()], pa.binary()),
        ]
        yield pa.record_batch(values, names=["task", "rows", "positions"])


def _unite(found: dict[int, Any], task: int, bitmap: BitMap64) -> None:
    found[task] = found[task] | bitmap if task in found else bitmap


def _bitmap(data: bytes) -> BitMap64:
    from pyroaring import BitMap64

    return BitMap64.deserialize(data)  # serialized by a worker of this query


def without_rows(state: TableState, tasks: FileTasks, positions: Mapping[int, Any]) -> FileTasks:
    """Return the tasks with more rows deleted by position, and without their residual filters.

    Each file concerned gets one inline deletion vector, of these rows and of those already deleted by position, so that
    reading the tasks yields the rows that an operation leaves in their files.

    Parameters
    ----------
    positions
        The rows to delete: a `pyroaring.BitMap64` per task index.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        A delete that applies by position cannot be read.
    """
    rows = sorted(positions)
    some = tasks.take(pa.array(rows, pa.int64()))
    old = deleted_positions(state, some.files, some.matched)
    vectors = {}
    for row, entry in zip(rows, some.files.entries.select(["location", "record_count"]).to_pylist(), strict=True):
        gone = old.get(entry["location"])
        vectors[row] = positions[row] if gone is None else positions[row] | (gone & _every(entry["record_count"]))
    return _with_vectors(tasks, vectors)


def only_rows(tasks: FileTasks, positions: Mapping[int, Any]) -> FileTasks:
    """Return the tasks reduced to these live rows, without a residual filter: the counterpart of `without_rows`."""
    counts = build.to_pylist(tasks.files.entries["record_count"].take(pa.array(list(positions), pa.int64())))
    pairs = zip(positions.items(), counts, strict=True)
    return _with_vectors(tasks, {row: _every(count) - bitmap for (row, bitmap), count in pairs})


def _every(rows: int) -> BitMap64:
    """Return all positions of a file."""
    from pyroaring import BitMap64

    every = BitMap64()
    every.add_range(0, rows)
    return every


def _with_vectors(tasks: FileTasks, vectors: Mapping[int, Any]) -> FileTasks:
    names = tasks.files.entries["location"].take(pa.array(list(vectors), pa.int64()))
    entries = [
        {
            "content_type": int(ContentType.POSITION_DELETE),
            "file_format": "puffin",
            "record_count": len(bitmap),
            "referenced_file": name,
            "deletion_vector": {"inline_content": encode_deletion_vector(bitmap)},
        }
        for name, bitmap in zip(names.to_pylist(), vectors.values(), strict=True)
    ]
    matched, count = tasks.matched, len(tasks)
    vector: list[int | None] = matched.vector.to_pylist() if len(matched) else [None] * count
    for i, row in enumerate(vectors):
        vector[row] = len(matched.deletes) + i
    none = pa.array([[]] * count, pa.list_view(pa.int32()))
    deletes = MatchedDeletes(
        concat_batches([matched.deletes, EntryBatch.of_rows(entries)]),
        pa.array(vector, pa.int32()),
        matched.positions if len(matched) else none,
        matched.equality if len(matched) else none,
        pa.concat_arrays([pa.array(matched.referenced.to_pylist(), pa.string()), whole(names)]),
    )
    return replace(tasks, whole=pa.array([True] * count, pa.bool_()), matched=deletes)
