"""The splits of a plan, shared out among Spark's tasks, and how a worker reads its share."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.formats import HEAD_BYTES, foreign, sniff
from iceexplore.graph import TableState
from iceexplore.on_spark.transport._state import taken
from iceexplore.planning import FileTasks, SplitOptions, split_table
from iceexplore.reading import Output, TaskReader

__all__ = ["Range", "Share", "fitted", "read_share", "row_groups_in", "share_rows", "shares"]

#: Bytes of a file, from and to; None: to its end.
Range = tuple[int, int | None]

_LEAST = 16 * 1024 * 1024
#: Tasks of Spark at most: packing one takes a few milliseconds. Where there would be more, neighbours are put together.
_MOST_SHARES = 4_096
_WHOLE: Range = (0, None)


@dataclass(frozen=True)
class Share:
    """What one Spark task reads: some data files with their deletes, and which bytes of each."""

    data: bytes = field(repr=False)

    @classmethod
    def of(cls, tasks: FileTasks, ranges: Sequence[Range]) -> Share:
        """Pack tasks, and the range that is read of each."""
        return cls(zlib.compress(pickle.dumps((tasks, tuple(ranges))), 1))

    def open(self) -> tuple[FileTasks, tuple[Range, ...]]:
        """The tasks, and the range of each."""
        tasks, ranges = pickle.loads(zlib.decompress(self.data))  # noqa: S301  (made by `of`, on the driver)
        return tasks, ranges


def fitted(tasks: FileTasks, options: SplitOptions, parallelism: int) -> SplitOptions:
    """Smaller splits where there would be fewer than workers (Iceberg: ``TableScanUtil.adjustSplitSize``)."""
    sizes = pc.sum(tasks.files.entries["file_size_in_bytes"]).as_py() or 0
    if -(-sizes // options.size) >= parallelism:
        return options
    return replace(options, size=max(sizes // parallelism, min(_LEAST, options.size), 1))


def shares(tasks: FileTasks, options: SplitOptions, *, parts: int | None = None) -> list[Share]:
    """The combined tasks of a plan (`iceexplore.planning.split_table`), each for one Spark task.

    With ``parts`` about so many of about one size, and no more, in the order of the plan.

    A Parquet file is cut where its entry says, or every so many bytes; others are read by one task as wholes. Each row
    group is read once, by the task in whose range it begins.
    """
    splits = split_table(tasks, options)
    task, start, length, group = (np.asarray(splits[n]) for n in ("task", "start", "length", "combined"))
    if parts is not None:
        middle = np.cumsum(length) - length / 2
        group = np.minimum(middle * parts // max(int(length.sum()), 1), parts - 1).astype(np.int64)
    count = int(group.max(initial=-1)) + 1
    if count > _MOST_SHARES:
        group = group * _MOST_SHARES // count
    formats = pc.fill_null(pc.utf8_lower(tasks.files.entries["file_format"]), "")
    cut = np.asarray(pc.equal(formats, "parquet")).astype(bool)[task]
    first = np.concatenate([np.ones(min(1, len(task)), bool), task[1:] != task[:-1]])
    last = np.concatenate([task[1:] != task[:-1], np.ones(min(1, len(task)), bool)])
    keep = cut | first
    found: dict[int, dict[int, list[Range]]] = {}
    for i in np.flatnonzero(keep).tolist():
        low = 0 if first[i] else int(start[i])
        high = None if last[i] or not cut[i] else int(start[i] + length[i])
        ranges = found.setdefault(int(group[i]), {}).setdefault(int(task[i]), [])
        if ranges and ranges[-1][1] == low:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((low, high))
    out = []
    for mine in found.values():
        rows = [row for row, ranges in mine.items() for _ in ranges]
        out.append(Share.of(taken(tasks, rows), [r for ranges in mine.values() for r in ranges]))
    return out


def read_share(
    state: TableState, share: Share, outputs: Sequence[Output], *, checksums: bool = False
) -> Iterator[pa.Table]:
    """The rows of a share, deletes applied, in the order of the plan; ``checksums`` as `TaskReader` takes them.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        A data file, or a delete file that applies, cannot be read.
    """
    tasks, ranges = share.open()
    for _, table in share_rows(TaskReader(state, tasks, outputs, checksums=checksums), ranges):
        yield table


def share_rows(reader: TaskReader, ranges: Sequence[Range]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a share that was opened, each table with the task that it is of. Raises as `read_share`."""
    names = reader.tasks.files.entries["location"].to_pylist()
    for row, (name, part) in enumerate(zip(names, ranges, strict=True)):
        groups = None
        if part != _WHOLE and reader.is_data(row):
            groups = row_groups_in(reader.state, name, part)
            if groups == []:
                continue
        for rows in reader.read(row, row_groups=groups):
            yield row, rows.table


def row_groups_in(state: TableState, location: str, part: Range) -> list[int] | None:
    """The row groups that begin in a range; of a file that is no Parquet all (None) or, past its start, none.

    Raises
    ------
    FormatError, FileMissingError
        The footer cannot be read.
    """
    import pyarrow.parquet as pq

    low, high = part
    with state.storage.open(location, kind="data-file") as opened:
        if sniff(opened.read(HEAD_BYTES)) != "parquet":
            return [] if low else None
        opened.seek(0)
        with foreign("the Parquet file", location):
            about = pq.read_metadata(opened)
            starts = [_start(about.row_group(i)) for i in range(about.num_row_groups)]
    # What a damaged footer places before the file's start is in its first range.
    return [i for i, at in enumerate(starts) if max(at, 0) >= low and (high is None or at < high)]


def _start(group: object) -> int:
    """Where a row group's first column begins; 0 for one without columns."""
    if not group.num_columns:  # type: ignore[attr-defined]
        return 0
    column = group.column(0)  # type: ignore[attr-defined]
    places = [column.dictionary_page_offset, column.data_page_offset]
    return min((int(p) for p in places if p is not None and p > 0), default=0)
