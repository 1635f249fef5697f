"""Split data files and combine splits into tasks, as Iceberg's ``TableScanUtil`` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, Unchecked
from iceexplore.formats import DATA_FILE_FORMATS
from iceexplore.manifests import EntryBatch, whole
from iceexplore.planning.delete_index._lists import Stretches
from iceexplore.planning.model._tasks import FileTasks, MatchedDeletes

__all__ = ["DeleteCounts", "SplitOptions", "combined_by_group", "combined_table", "content_sizes", "delete_counts",
           "split_counts", "split_table"]  # fmt: skip

_Longs = npt.NDArray[np.int64]
_SPLITTABLE = pa.array([f.name for f in DATA_FILE_FORMATS if f.splittable])
#: A plan with more splits than this is refused. Without the limit, a wrong file size in a manifest could lead to
#: billions of splits.
_MOST_SPLITS = 50_000_000
#: Data file sizes in a manifest that are larger than this are treated as this size, so that the sum of a position in a
#: file and a split size (below 2**62) does not overflow 64 bits.
_MOST_BYTES = 2**60


@dataclass(frozen=True)
class SplitOptions:
    """The options with which data files are split, and splits are combined into tasks.

    A combined task reads one or more splits. Its weight is the sum of their weights, which `split_table` explains.

    Attributes
    ----------
    size
        Bytes of a split in a file without split offsets, and maximum weight of a combined task of several splits.
    lookback
        Maximum number of open tasks. A task is open as long as splits may be added to it. If there would be more open
        tasks, the one with the highest weight is closed.
    open_file_cost
        Bytes that opening a file is considered to cost. The weight of a split is at least this number for its data
        file, plus the same number for each delete that applies to the file.
    """

    size: int = 128 * 1024 * 1024
    lookback: int = 10
    open_file_cost: int = 4 * 1024 * 1024

    @classmethod
    def of(cls, properties: Mapping[str, str], **given: int | None) -> SplitOptions:
        """Return the split options that apply to a table.

        A value in ``given`` takes precedence. For an option without such a value, the table property is used. If the
        table has no valid value of this property, Iceberg's default is used.

        Parameters
        ----------
        properties
            The table properties, of which ``read.split.target-size``, ``read.split.planning-lookback`` and
            ``read.split.open-file-cost`` are used. A property is ignored if it is not a whole number, or if it has more
            than 18 digits and so might not fit in 64 bits. A size or lookback of 0 is ignored, too.
        given
            Values of ``size``, ``lookback`` and ``open_file_cost``; None has the same effect as no value.

        Raises
        ------
        OptionError
            A value in ``given`` is not a whole number below 2**62, a size or lookback is below 1, or a cost is below 0.
        """
        made = {}
        options = (
            ("size", "target-size", 1),
            ("lookback", "planning-lookback", 1),
            ("open_file_cost", "open-file-cost", 0),
        )
        for name, key, least in options:
            value: Unchecked = given.get(name)
            text = properties.get(f"read.split.{key}", "")
            if value is None and text.isascii() and text.isdecimal() and len(text) < 19 and int(text) >= least:
                value = int(text)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**62:
                raise OptionError(f"{name}={value!r}: give a whole number of at least {least}, below 2**62")
            made[name] = value
        return cls(**made)


@dataclass(frozen=True)
class DeleteCounts:
    """The deletes that apply to each data file, as two arrays with one element per data file.

    Attributes
    ----------
    count
        Number of delete files and deletion vectors that apply to the data file.
    bytes
        Number of bytes to read for these: the sizes of the delete files, and of the deletion vectors in their Puffin
        files (`content_sizes`), added up.
    """

    count: _Longs
    bytes: _Longs


def content_sizes(deletes: EntryBatch) -> _Longs:
    """Return the number of bytes to read for each delete file or deletion vector.

    For a delete file, this is the file size. For a deletion vector, it is the size of its blob in the Puffin file, as
    in Java's ``ScanTaskUtil``. Sizes above 2⁵⁰ bytes must be wrong, and become 2⁵⁰ so that sums do not overflow;
    negative ones become 0.
    """
    sizes = pc.coalesce(
        pc.struct_field(whole(deletes.entries["deletion_vector"]), "size_in_bytes"),
        whole(deletes.entries["file_size_in_bytes"]),
    )
    return np.clip(_longs(sizes), 0, 2**50)


def delete_counts(matched: MatchedDeletes) -> DeleteCounts:
    """Return, for each data file, the number of deletes that apply to it, and their total size in bytes."""
    sizes = content_sizes(matched.deletes)
    vector = np.asarray(pc.fill_null(matched.vector, -1)).astype(np.int64)
    has = vector >= 0
    count = has.astype(np.int64)
    total = np.zeros(len(matched), dtype=np.int64)
    total[has] = sizes[vector[has]]
    for lists in (matched.positions, matched.equality):
        stretches = Stretches.of(lists)
        total += stretches.totals(sizes)
        count += stretches.size
    return DeleteCounts(count, total)


def split_counts(tasks: FileTasks, size: int) -> _Longs:
    """Return the number of splits of each data file.

    A file with valid split offsets (ascending, and inside the file) is split at these offsets, any other file every
    ``size`` bytes. A file whose format does not allow splitting is one split.
    """
    return _Cut.of(tasks, size).counts


@dataclass(frozen=True)
class _Cut:
    """The way each file is split: at the split offsets in its manifest entry, at regular intervals, or not at all.

    Split offsets are used if they ascend and are inside the file; otherwise, the file is split at regular intervals. A
    file whose format does not allow splitting is one split.
    """

    lengths: _Longs  # size of each file in bytes
    offsets: _Longs  # split offsets of all files, concatenated
    starts: _Longs  # for each file, the index in `offsets` of its first split offset
    by_offset: npt.NDArray[np.bool_]  # whether each file is split at its split offsets
    counts: _Longs  # number of splits of each file

    @classmethod
    def of(cls, tasks: FileTasks, size: int | _Longs) -> _Cut:
        """Decide for each file whether it is split at its split offsets, every ``size`` bytes, or not at all.

        ``size`` is one number for all files, or an array with one number per file.
        """
        entries = tasks.files.entries
        lengths = np.clip(_longs(entries["file_size_in_bytes"]), 0, _MOST_BYTES)
        lists = whole(entries["split_offsets"])
        held = _longs(pc.list_value_length(lists))
        flat = np.asarray(pc.fill_null(pc.list_flatten(lists), -1)).astype(np.int64)
        ends = np.cumsum(held)
        starts = ends - held
        rising = np.concatenate([np.ones(min(1, len(flat)), dtype=np.bool_), flat[1:] > flat[:-1]])
        rising[starts[held > 0]] = True
        rising &= flat >= 0
        bad = np.concatenate([[0], np.cumsum(~rising)])
        last = np.full(len(held), -1, dtype=np.int64)
        last[held > 0] = flat[ends[held > 0] - 1]
        # As in Java, split offsets are used only if they strictly ascend (BaseContentScanTask.split) and the last is
        # inside the file (BaseFile.hasWellDefinedOffsets). In addition, none may be negative.
        good = (held > 0) & (bad[ends] == bad[starts]) & (last < lengths)
        formats = pc.utf8_lower(whole(entries["file_format"]))
        cuttable = np.asarray(pc.fill_null(pc.is_in(formats, _SPLITTABLE), False))
        by_offset = good & cuttable
        counts = np.where(by_offset, held, np.where(cuttable, -(-lengths // size), 1))
        return cls(lengths, flat, starts, by_offset, counts.astype(np.int64))


def split_table(tasks: FileTasks, options: SplitOptions) -> pa.Table:
    """Split data files, pack the splits into combined tasks, and return one row per split.

    A file with valid split offsets (ascending, and inside the file) is split at these offsets, any other file every
    ``options.size`` bytes. A file whose format does not allow splitting is one split.

    Each split has a weight: its bytes plus the bytes of all deletes that apply to its file. The weight is at least
    ``options.open_file_cost`` for the data file, plus the same number for each of these deletes. For example, if 2
    deletes apply to a file, the weight of each of its splits is at least 3 times ``options.open_file_cost``.

    The weights of the splits in a combined task add up to at most ``options.size``; a split with a higher weight is a
    combined task by itself. A combined task is open as long as splits may be added to it. At most ``options.lookback``
    of them are open at the same time: if there would be more, the open one with the highest weight is closed.

    Unlike this function, Spark also adjusts the split size to its parallelism (``read.split.adaptive-size.enabled``).

    Parameters
    ----------
    tasks
        The data files, and the deletes that apply to each of them.
    options
        The split size, the maximum number of open tasks, and the cost of opening a file.

    Returns
    -------
    pyarrow.Table
        - ``task`` is the row number of the data file in ``tasks`` (not of the combined task).
        - ``start`` is the position of the split's first byte in the file, and ``length`` the number of its bytes.
        - ``rows`` is the number of its rows, estimated from its bytes.
        - ``deletes`` and ``delete_bytes`` are the number and the bytes of the deletes that apply to the file.
        - ``weight`` is the weight of the split.
        - ``combined`` is the number, from 0, of the combined task that reads the split.

    Raises
    ------
    OptionError
        There would be more than 50 million splits, for example because a manifest states a wrong file size.
    """
    cut, task, start, length = _pieces(tasks, options.size)
    deletes = delete_counts(tasks.matched)
    weight = np.maximum(length + deletes.bytes[task], (1 + deletes.count[task]) * options.open_file_cost)
    records = _longs(tasks.files.entries["record_count"])
    first_offset = np.zeros(len(tasks), dtype=np.int64)
    first_offset[cut.by_offset] = cut.offsets[cut.starts[cut.by_offset]]
    readable = np.maximum(cut.lengths - first_offset, 1)
    # Estimate rows from bytes: a split with 25 % of the file's bytes is assumed to have 25 % of its rows. The bytes
    # before the first split offset are not counted, because no split has them (Java:
    # BaseContentScanTask.estimateRowsCount).
    rows = length / readable[task] * records[task]
    return build.table(
        {
            "task": task,
            "start": start,
            "length": length,
            "rows": rows.astype(np.int64),
            "deletes": deletes.count[task],
            "delete_bytes": deletes.bytes[task],
            "weight": weight,
            "combined": _packed(weight.tolist(), options),
        }
    )


def _pieces(tasks: FileTasks, size: int | _Longs) -> tuple[_Cut, _Longs, _Longs, _Longs]:
    """Split data files at their split offsets or, if these are missing or invalid, every ``size`` bytes.

    A file whose format does not allow splitting is one split.

    Parameters
    ----------
    size
        One split size in bytes for all files, or an array with one per file.

    Returns
    -------
    tuple
        How each file is split, and three arrays with one element per split: the row number of its file in ``tasks``,
        the position of its first byte in the file, and its length in bytes.

    Raises
    ------
    OptionError
        There would be more than 50 million splits, for example because a manifest states a wrong file size.
    """
    cut = _Cut.of(tasks, size)
    # Sum as floats: if a damaged manifest states huge sizes, a sum of integers could overflow.
    if float(np.sum(cut.counts.astype(np.float64))) > _MOST_SPLITS:
        least = int(np.min(size))
        raise OptionError(
            f"there would be more than {_MOST_SPLITS:,} splits of {least} bytes: give a larger split size"
        )
    total = int(cut.counts.sum())
    task = np.repeat(np.arange(len(tasks), dtype=np.int64), cut.counts)
    firsts = np.cumsum(cut.counts) - cut.counts
    nth = np.arange(total, dtype=np.int64) - firsts[task]
    by_offset = cut.by_offset[task]
    is_last = nth == cut.counts[task] - 1
    step = np.broadcast_to(np.asarray(size, dtype=np.int64), (len(tasks),))[task]
    start = nth * step
    place = (cut.starts[task] + nth)[by_offset]
    start[by_offset] = cut.offsets[place]
    end = np.minimum(start + step, cut.lengths[task])
    following = np.minimum(place + 1, max(0, len(cut.offsets) - 1))
    end[by_offset] = cut.offsets[following] if len(cut.offsets) else 0
    end[is_last] = cut.lengths[task][is_last]
    return cut, task, start, end - start


def combined_by_group(tasks: FileTasks, group: _Longs, sizes: _Longs, *, lookback: int) -> tuple[_Longs, _Longs]:
    """Split files that belong to groups, and combine the splits of each group into tasks.

    No task reads files of two groups. Spark combines splits in this way when it rewrites groups of files
    (``SparkStagedScan``). Opening a file costs nothing here: the weight of a split is its bytes plus the bytes of all
    deletes that apply to its file.

    Parameters
    ----------
    tasks
        The files of all groups.
    group
        For each file, the number of its group, from 0.
    sizes
        For each group, the number of bytes in a split of a file without split offsets. The same number is the maximum
        weight of a combined task of several splits.
    lookback
        Maximum number of open tasks per group. A task is open as long as splits may be added to it. If there would be
        more open tasks, the one with the highest weight is closed.

    Returns
    -------
    tuple
        Two arrays with one element per split, sorted by group: the row number of the split's file in ``tasks``, and the
        number of its combined task. Tasks are numbered from 0 across all groups.

    Raises
    ------
    OptionError
        There would be more than 50 million splits, for example because a manifest states a wrong file size.
    """
    if not len(tasks):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    _, task, _, length = _pieces(tasks, sizes[group])
    order = np.argsort(group[task], kind="stable")
    task, weight = task[order], (length + delete_counts(tasks.matched).bytes[task])[order]
    mine = group[task]
    stops = np.searchsorted(mine, np.arange(len(sizes)), side="right").astype(np.int64)
    starts = np.concatenate([[0], stops[:-1]])
    total = np.concatenate([[0], np.cumsum(weight)])
    within = np.zeros(len(task), dtype=np.int64)
    for number in np.flatnonzero(total[stops] - total[starts] > sizes).tolist():
        part = slice(int(starts[number]), int(stops[number]))
        within[part] = _packed(weight[part].tolist(), SplitOptions(int(sizes[number]), lookback, 0))
    used = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(used, mine, within + 1)
    return task, (np.cumsum(used) - used)[mine] + within


def combined_table(splits: pa.Table) -> pa.Table:
    """Return one row per combined task.

    Parameters
    ----------
    splits
        Result of `split_table`.

    Returns
    -------
    pyarrow.Table
        - ``combined`` is the number, from 0, of the combined task.
        - ``splits`` is how many splits the task reads; splits that are adjacent in the same file count as one.
        - ``files`` is how many data files these splits are in, ``bytes`` the size of the splits, and ``rows`` their
          estimated number of rows.
        - ``delete_bytes`` is the size of the deletes that apply to these files. The deletes of a file count once,
          however many of its splits the task reads.
        - ``weight`` is the sum of the weights of the splits.
    """
    group = np.asarray(splits["combined"])
    order = np.argsort(group, kind="stable")
    task, start, length = (np.asarray(splits[n])[order] for n in ("task", "start", "length"))
    ordered = group[order]
    same = (task[1:] == task[:-1]) & (ordered[1:] == ordered[:-1])
    merged = np.concatenate([np.ones(min(1, len(task)), bool), ~(same & (start[1:] == start[:-1] + length[:-1]))])
    new_file = np.concatenate([np.ones(min(1, len(task)), bool), ~same])
    count = int(group.max(initial=-1)) + 1

    def total(values: npt.NDArray[Any]) -> _Longs:
        out = np.zeros(count, dtype=np.int64)
        np.add.at(out, ordered, values.astype(np.int64))
        return out

    delete_bytes = np.asarray(splits["delete_bytes"])[order]
    return build.table(
        {
            "combined": np.arange(count),
            "splits": total(merged),
            "files": total(new_file),
            "bytes": total(length),
            "rows": total(np.asarray(splits["rows"])[order]),
            "delete_bytes": total(np.where(new_file, delete_bytes, 0)),
            "weight": total(np.asarray(splits["weight"])[order]),
        }
    )


def _packed(weights: list[int], options: SplitOptions) -> _Longs:
    """Pack weights into bins of ``options.size``, and return for each weight the number of its bin, from 0.

    The weights are those of splits, and a bin is a combined task.

    A weight is added to the first open bin that has room for it; if none has, a new bin is opened. When more than
    ``options.lookback`` bins are open, the fullest one is closed.

    The result is the same as that of Java's ``BinPacking`` with ``largestBinFirst``. Bins are numbered in the order in
    which Java outputs them: first the bins that were closed, in the order of closing, then the remaining bins, in the
    order of opening.
    """
    # For each item of `weights` (the weight of a split), the number of its bin. The loop numbers bins in the order of
    # opening. At the end, they are renumbered in the order in which Java outputs them.
    numbers = np.zeros(len(weights), dtype=np.int64)
    open_bins: list[int] = []
    fill: list[int] = []  # total weight of the splits in each open bin
    handed_out: list[int] = []
    opened = 0
    for i, weight in enumerate(weights):
        room = options.size - weight
        for at, held in enumerate(fill):
            if held <= room:
                fill[at] = held + weight
                numbers[i] = open_bins[at]
                break
        else:
            open_bins.append(opened)
            fill.append(weight)
            numbers[i] = opened
            opened += 1
            if len(fill) > options.lookback:
                largest = fill.index(max(fill))
                handed_out.append(open_bins.pop(largest))
                fill.pop(largest)
    handed_out += open_bins
    places = np.zeros(opened, dtype=np.int64)
    places[np.array(handed_out, dtype=np.int64)] = np.arange(opened)
    return places[numbers] if opened else numbers


def _longs(values: AnyColumn) -> _Longs:
    array = whole(values) if isinstance(values, pa.ChunkedArray) else values
    return np.asarray(pc.fill_null(array, 0)).astype(np.int64)
