"""Distribute the splits of a plan over Spark's tasks, and read the share of one task in a worker."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.formats import DATA_FILE_FORMATS, HEAD_BYTES, format_of_content, sniff
from iceexplore.graph import TableState
from iceexplore.on_spark.transport._state import taken
from iceexplore.planning import FileTasks, SplitOptions, split_table
from iceexplore.reading import Output, TaskReader

__all__ = ["Range", "Share", "fitted", "read_share", "row_groups_in", "share_rows", "shares"]

#: A byte range of a file: start and end. An end of None is the end of the file.
Range = tuple[int, int | None]

_LEAST = 16 * 1024 * 1024
#: Maximum number of Spark tasks, as packing one takes a few milliseconds. Beyond this number, neighbours are combined.
_MOST_SHARES = 4_096
_WHOLE: Range = (0, None)
_HAS_ROW_GROUPS = pa.array([f.name for f in DATA_FILE_FORMATS if f.has_row_groups])


@dataclass(frozen=True)
class Share:
    """The share of one Spark task: some data files with their deletes, and the byte range to read of each."""

    data: bytes = field(repr=False)

    @classmethod
    def of(cls, tasks: FileTasks, ranges: Sequence[Range]) -> Share:
        """Pack tasks, each with the byte range to read."""
        return cls(zlib.compress(pickle.dumps((tasks, tuple(ranges))), 1))

    def open(self) -> tuple[FileTasks, tuple[Range, ...]]:
        """Return the tasks, and the byte range of each."""
        tasks, ranges = pickle.loads(zlib.decompress(self.data))  # noqa: S301  (packed by `of`, on the driver)
        return tasks, ranges


def fitted(tasks: FileTasks, options: SplitOptions, parallelism: int) -> SplitOptions:
    """Reduce the split size if there would be fewer splits than workers (Java: ``TableScanUtil.adjustSplitSize``)."""
    sizes = pc.sum(tasks.files.entries["file_size_in_bytes"]).as_py() or 0
    if -(-sizes // options.size) >= parallelism:
        return options
    return replace(options, size=max(sizes // parallelism, min(_LEAST, options.size), 1))


def shares(tasks: FileTasks, options: SplitOptions, *, parts: int | None = None) -> list[Share]:
    """Return the combined tasks of a plan (`iceexplore.planning.split_table`) as one share per Spark task.

    With ``parts``, return at most this number of shares, of about equal size, in the order of the plan.

    A file with row groups is cut at its entry's split offsets, or by size; other files are read whole by one task. Each
    row group is read once, by the task in whose range it begins.
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
    cut = np.asarray(pc.is_in(formats, _HAS_ROW_GROUPS)).astype(bool)[task]
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


def read_share(state: TableState, share: Share, outputs: Sequence[Output]) -> Iterator[pa.Table]:
    """Yield the rows of a share, deletes applied, in the order of the plan.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        A data file, or a delete file that applies, cannot be read.
    """
    tasks, ranges = share.open()
    for _, table in share_rows(TaskReader(state, tasks, outputs), ranges):
        yield table


def share_rows(reader: TaskReader, ranges: Sequence[Range]) -> Iterator[tuple[int, pa.Table]]:
    """Yield a share's rows as tables, each with its task's index. Raises the same errors as `read_share`."""
    names = build.to_pylist(reader.tasks.files.entries["location"])
    for row, (name, part) in enumerate(zip(names, ranges, strict=True)):
        groups = None
        if part != _WHOLE and reader.is_data(row):
            groups = row_groups_in(reader.state, name, part)
            if groups == []:
                continue
        for rows in reader.read(row, row_groups=groups):
            yield row, rows.table


def row_groups_in(state: TableState, location: str, part: Range) -> list[int] | None:
    """Return the row groups that begin in a range.

    For a file in a format without row groups, return None (all rows) for the range at its start, else no row groups.

    Raises
    ------
    FormatError, FileMissingError
        The footer cannot be read.
    """
    low, high = part
    with state.storage.open(location, kind="data-file") as opened:
        known = format_of_content(sniff(opened.read(HEAD_BYTES)))
        opened.seek(0)
        starts = None if known is None else known.row_group_offsets(opened, location)
    if starts is None:
        return [] if low else None
    # Row groups that a damaged footer places before the file's start belong to its first range.
    return [i for i, at in enumerate(starts) if max(at, 0) >= low and (high is None or at < high)]
