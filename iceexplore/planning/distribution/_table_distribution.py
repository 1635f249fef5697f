"""Show how bytes, rows, small files and deletes are distributed over groups of data files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, amount, human_bytes, percent, to_frame
from iceexplore.planning.delete_index._lists import Stretches
from iceexplore.planning.model._groups import GROUPINGS, counted
from iceexplore.planning.model._tasks import FileTasks
from iceexplore.render import Bar, BarChart, BarPicture, BarRow

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "By",
    "Reached",
    "TableDistribution",
    "deleted_rows",
    "known_deleted_rows",
    "small_limit",
    "table_distribution",
    "target_size",
]

_Longs = npt.NDArray[np.int64]


def deleted_rows(tasks: FileTasks) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the number of rows that deletes remove from each data file, and whether any delete applies to it.

    The number counts rows that deletion vectors and position deletes remove, not those that equality deletes remove.
    If a position delete file applies to several data files, its record count is divided evenly among them. This is an
    estimate: only the delete file's rows, which are not read, show how many belong to each data file. A row that two
    position delete files delete counts twice. The number is never above the record count of the data file.
    """
    matched = tasks.matched
    removes = counted(matched.deletes, "record_count")
    rows = counted(tasks.files, "record_count")
    positions, equality = Stretches.of(matched.positions), Stretches.of(matched.equality)
    each = removes / np.maximum(positions.uses(len(removes)), 1)
    before = np.concatenate([[0.0], np.cumsum(each[positions.values])])
    deleted = np.where(positions.size > 0, before[positions.start + positions.size] - before[positions.start], 0.0)
    vector = np.asarray(pc.fill_null(matched.vector, -1)).astype(np.int64)
    with_vector = vector >= 0
    deleted[with_vector] += removes[vector[with_vector]]
    return np.minimum(deleted, rows), with_vector | (positions.size > 0) | (equality.size > 0)


def known_deleted_rows(tasks: FileTasks) -> _Longs:
    """Return how many rows of each data file are removed by deletes that reference only this file.

    These are deletion vectors and some position delete files; position delete files that may apply to several data
    files are not counted. The number is never above the record count of the data file. Java divides it by the record
    count, and compares the ratio with ``delete-ratio-threshold`` (``BinPackRewriteFilePlanner.tooHighDeleteRatio``).
    """
    matched = tasks.matched
    rows = counted(tasks.files, "record_count")
    removes = counted(matched.deletes, "record_count")
    removes = np.where(np.asarray(pc.is_valid(matched.referenced)), removes, 0)
    deleted: _Longs = Stretches.of(matched.positions).totals(removes)
    vector = np.asarray(pc.fill_null(matched.vector, -1)).astype(np.int64)
    with_vector = vector >= 0
    deleted[with_vector] += removes[vector[with_vector]]
    return np.minimum(deleted, rows)


@dataclass(frozen=True)
class Reached:
    """Data files in groups (such as partitions), to count the deletes that apply to each group.

    A delete file or deletion vector that applies to several files of a group counts once in this group.

    Attributes
    ----------
    tasks
        The data files, with the deletes that apply to them.
    codes
        int64 per data file: the number of its group, from 0.
    count
        The number of groups (not of deletes).
    """

    tasks: FileTasks
    codes: _Longs
    count: int

    @cached_property
    def equality(self) -> _Longs:
        """Count, for each group of data files (such as a partition), the equality delete files that apply to its files.

        A delete file that applies to several files of a group counts once.
        """
        return self._lists(Stretches.of(self.tasks.matched.equality))

    @cached_property
    def deletes(self) -> _Longs:
        """Count the deletes that apply to the data files of each group (such as each partition).

        The array has one number per group: the sum of its equality delete files, position delete files and deletion
        vectors. A delete that applies to several files of a group counts once.
        """
        vector = np.asarray(pc.fill_null(self.tasks.matched.vector, -1)).astype(np.int64)
        there = vector >= 0
        vectors = self._pairs(self.codes[there], vector[there])
        return self.equality + self._lists(Stretches.of(self.tasks.matched.positions)) + vectors

    def _pairs(self, codes: _Longs, deletes: _Longs) -> _Longs:
        """Count the distinct deletes of each group, given pairs of a group and a delete.

        For each ``i``, ``codes[i]`` is the number of a group, and ``deletes[i]`` is the row number of a delete that
        applies to one of the group's data files. A pair that occurs several times counts once.
        """
        width = int(deletes.max(initial=0)) + 1
        return np.bincount(np.unique(codes * width + deletes) // width, minlength=self.count)

    def _lists(self, lists: Stretches) -> _Longs:
        """Count the distinct deletes that apply to the data files of each group; the array has one number per group.

        Parameters
        ----------
        lists
            The deletes that apply to each data file. ``lists.values`` contains row numbers of deletes. The range
            ``lists.values[start : start + size]``, with ``start = lists.start[i]`` and ``size = lists.size[i]``, has
            the deletes that apply to data file ``i``. Several files can have the same range, or ranges that overlap.

        Notes
        -----
        First, overlapping ranges of files in the same group are merged. If a group then has only one range, and no row
        number occurs twice in it, the group's count is the length of this range. For any other group, the row numbers
        in all its ranges are collected, and each distinct one is counted once.
        """
        out = np.zeros(self.count, dtype=np.int64)
        held = np.flatnonzero(lists.size > 0)
        if not len(held):
            return out
        room = len(lists.values) + 1
        start = self.codes[held] * room + lists.start[held]
        order = np.argsort(start, kind="stable")
        start, end = start[order], (start + lists.size[held])[order]
        furthest = np.maximum.accumulate(end)
        firsts = np.flatnonzero(np.concatenate([[True], start[1:] >= furthest[:-1]]))
        begin, stop = start[firsts], np.maximum.reduceat(end, firsts)
        group = begin // room
        begin, stop = begin - group * room, stop - group * room
        alone = np.bincount(group, minlength=self.count)[group] == 1
        # `lists.values` contains deletes, as row numbers. Each `lists.values[begin:stop]` is now a merged range: it has
        # deletes that apply to one group of data files. A range is `simple` if it is the only one of its group, and no
        # delete occurs twice in it. Its length is then the group's number of deletes.
        #
        # To find deletes that occur twice: `_previous` returns, for each item, the index of the previous item with the
        # same delete. If this index is `begin` or higher for an item of the range, the delete occurs twice in it. So
        # compare the highest index with `begin`. `np.maximum.accumulate` also includes the items before `begin`, but
        # these make no difference: their previous items are before `begin`, too.
        simple = alone & (np.maximum.accumulate(_previous(lists.values))[stop - 1] < begin)
        out[group[simple]] = (stop - begin)[simple]
        rest = np.flatnonzero(~simple)
        if len(rest):
            size = (stop - begin)[rest]
            ends = np.cumsum(size)
            places = np.arange(int(size.sum())) - np.repeat(ends - size - begin[rest], size)
            out += self._pairs(np.repeat(group[rest], size), lists.values[places])
        return out


def _previous(values: _Longs) -> _Longs:
    """Return, for each item, the index of the previous item with the same value; -1 if there is none."""
    order = np.argsort(values, kind="stable")
    out = np.full(len(values), -1, dtype=np.int64)
    same = values[order][1:] == values[order][:-1]
    out[order[1:][same]] = order[:-1][same]
    return out


By: TypeAlias = Literal["age", "partition", "size", "snapshot", "spec"]
#: The default of ``write.target-file-size-bytes`` (Java: ``TableProperties``).
_TARGET = 512 * 1024 * 1024
#: The fraction of the target size below which ``rewrite_data_files`` considers a file too small (Java:
#: ``MIN_FILE_SIZE_DEFAULT_RATIO``).
_SMALL = 0.75
#: The default for the maximum number of rows in a chart (`TableDistribution.chart`).
_SHOWN = 14


@dataclass(frozen=True, repr=False)
class TableDistribution(BarPicture):
    """Sums over groups of data files, such as their bytes, rows and deletes. They are shown as a bar chart.

    If there are many groups, the chart sums up the smaller ones. `frame` has every group and all sums.

    Attributes
    ----------
    name
        The table's name, for the title of the chart.
    by
        What the files are grouped by: ``partition``, ``spec``, ``snapshot``, ``age`` or ``size``.
    table
        One row per group. Partitions are sorted by spec id and values, specs by id, snapshots from oldest to newest
        (expired snapshots first), ages and sizes from lowest to highest (unknown ages last). The first column is the
        label of the group. The other columns include:

        - ``files``, ``bytes`` and ``rows``: the number of data files in the group, their total size and their total
          row count. If the size or row count of a file is missing or negative, it counts as 0.
        - ``small_files`` and ``small_bytes``: how many of these files are smaller than `small`, and their total size
        - ``files_with_deletes``: the number of data files to which at least one delete applies
        - ``delete_files``: the number of delete files and deletion vectors that apply to at least one file of the group
        - ``deleted_rows``: the number of rows that deletion vectors and position deletes remove. The rows of a position
          delete file that applies to several data files are divided evenly among them.
        - ``equality_deletes``: the number of equality delete files that apply to at least one file of the group. How
          many rows these remove cannot be counted without reading data.
    small
        Size in bytes below which a file counts as small: 75 % of ``write.target-file-size-bytes``, as in
        ``rewrite_data_files``.
    """

    name: str
    by: By
    table: pa.Table
    small: int

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Return `table`, one row per group of files (such as a partition), as a data frame with ``deleted_share``.

        This added column is ``deleted_rows`` divided by ``rows``, from 0 to 1; null if the group's files have no rows.
        """
        deleted = pc.divide(self.table["deleted_rows"], pc.if_else(pc.equal(self.table["rows"], 0), None, self._rows))
        return to_frame(self.table.append_column("deleted_share", deleted))

    @property
    def _rows(self) -> AnyChunkedArray:
        return self.table["rows"].cast(pa.float64())

    def chart(self, max_rows: int = _SHOWN) -> BarChart:
        """Return a bar chart with one row per group of data files: its files, bytes, rows and deleted rows.

        If there are more than ``max_rows`` groups, show the ``max_rows - 1`` groups with the most bytes, and sum up all
        other groups in the last row.
        """
        count = self.table.num_rows
        shown = np.arange(count)
        rest = np.array([], dtype=np.int64)
        if count > max_rows:
            order = np.argsort(-np.asarray(self.table["bytes"]), kind="stable")
            shown, rest = order[: max_rows - 1], order[max_rows - 1 :]
            if self.by != "partition":
                # `shown` is in order of size now, the largest group first. Keep this order only if the groups are
                # partitions. Groups of other kinds, such as snapshots, are shown in the order of `table` (snapshots by
                # age): restore it.
                shown = np.sort(shown)
        rows = [self._row(str(r[self.table.column_names[0]]), r) for r in self._records(shown)]
        if len(rest):
            summed = {n: sum(r[n] or 0 for r in self._records(rest)) for n in _NUMBERS}
            rows.append(self._row(f"{len(rest):,} more", summed))
        total = {n: sum(r[n] or 0 for r in self._records(np.arange(count))) for n in ("files", "bytes", "rows")}
        text = f"{amount(total['files'], 'file')}, {human_bytes(int(total['bytes']))}, {amount(total['rows'], 'row')}"
        if any(r.bars[0] and r.bars[0].rest for r in rows):
            text += f"; small files are those below {human_bytes(self.small)}"
        heads = ("files", "bytes", "rows", "deleted rows")
        if not any(b and b.value for r in rows for b in r.bars[:2]):
            # The part of a bar for small files is pale, to distinguish it from the solid part for full-size files. If
            # all files are small, there is nothing to distinguish: draw solid bars.
            rows = [replace(r, bars=tuple(b and Bar(b.value + b.rest, b.text) for b in r.bars)) for r in rows]
            return BarChart(f"{self.name} by {self.by}", text, heads, tuple(rows))
        return BarChart(f"{self.name} by {self.by}", text, heads, tuple(rows), "full-size files, rows", "small files")

    def _records(self, rows: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
        return list(self.table.take(build.array(rows)).to_pylist())

    def _row(self, label: str, r: dict[str, Any]) -> BarRow:
        small, rows, gone = int(r["small_files"]), int(r["rows"]), float(r["deleted_rows"])
        count = int(r["files"])
        which = "small" if small == count == 1 else "all small" if small == count else f"{small:,} small"
        files = f"{count:,} ({which})" if small else f"{count:,}"
        size = int(r["bytes"])
        # `text` is the label of the bar of deleted rows, such as ``1,200 + 3 equality deletes (4.0%)``. If it is too
        # wide, the picture leaves out the part in brackets.
        equality = amount(int(r["equality_deletes"]), "equality delete") if r["equality_deletes"] else ""
        text = f"{gone:,.0f}" if gone or not equality else ""
        text += f" + {equality}" if text and equality else equality
        text += f" ({percent(gone / rows, 1)})" if rows and gone else ""
        bars = (
            Bar(count - small, files, small),
            Bar(size - int(r["small_bytes"]), human_bytes(size), int(r["small_bytes"])),
            Bar(rows, f"{rows:,}"),
            Bar(gone, text),
        )
        return BarRow(label, "", bars, f"{label}\n{r['files']:,} files, {int(r['files_with_deletes']):,} with deletes")


_NUMBERS = (
    "files", "bytes", "rows", "small_files", "small_bytes", "files_with_deletes", "delete_files", "deleted_rows",
    "equality_deletes",
)  # fmt: skip


def small_limit(properties: Mapping[str, str]) -> int:
    """Return the size in bytes below which a file counts as small: 75 % of `target_size`.

    This is the default of ``min-file-size-bytes`` in Iceberg's ``rewrite_data_files``.
    """
    return int(target_size(properties) * _SMALL)


def target_size(properties: Mapping[str, str]) -> int:
    """Return the target size of data files in bytes, from the table property ``write.target-file-size-bytes``.

    If the property is missing or invalid, return Iceberg's default, 512 MiB.
    """
    text = str(properties.get("write.target-file-size-bytes", ""))
    return (int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0) or _TARGET


def table_distribution(state: TableState, tasks: FileTasks, by: By = "partition") -> TableDistribution:
    """Group data files, and sum up the files, bytes, rows and deletes of each group.

    Parameters
    ----------
    by
        The property by which files are grouped:

        - ``partition``: their partition
        - ``spec``: their partition spec
        - ``snapshot``: the snapshot that added them
        - ``age``: how long before the snapshot of ``state`` they were added, in steps such as "under a week"
        - ``size``: their size in bytes, in ranges between powers of two (a histogram)

    Raises
    ------
    OptionError
        ``by`` is none of these.
    """
    if by not in list(GROUPINGS):  # if ``by`` is a list, `by in GROUPINGS` (a dictionary) would raise TypeError
        raise OptionError(f"by={by!r}: choose one of {', '.join(map(repr, GROUPINGS))}")
    groups = GROUPINGS[by](state, tasks.files)
    count = groups.columns.num_rows
    small = small_limit(state.metadata.properties)
    sizes, rows = (counted(tasks.files, name) for name in ("file_size_in_bytes", "record_count"))
    is_small = sizes < small
    deleted, touched = deleted_rows(tasks)
    reached = Reached(tasks, groups.codes, count)
    summed = {
        "files": np.bincount(groups.codes, minlength=count),
        "bytes": _sum(groups.codes, sizes, count),
        "rows": _sum(groups.codes, rows, count),
        "small_files": np.bincount(groups.codes[is_small], minlength=count),
        "small_bytes": _sum(groups.codes[is_small], sizes[is_small], count),
        "files_with_deletes": np.bincount(groups.codes[touched], minlength=count),
        "delete_files": reached.deletes,
        "deleted_rows": np.bincount(groups.codes, weights=deleted, minlength=count),
        "equality_deletes": reached.equality,
    }
    table = groups.columns
    for name in _NUMBERS:
        values = summed[name]
        table = table.append_column(name, pa.array(values, pa.float64() if name == "deleted_rows" else pa.int64()))
    return TableDistribution(state.name, by, table, small)


def _sum(codes: npt.NDArray[np.int64], values: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the sum of the values in each of ``count`` groups, as exact int64 numbers.

    ``codes[i]`` is the number of the group, from 0, that ``values[i]`` belongs to. (``np.bincount`` would add the
    values as floats, which are not exact for large sums.)
    """
    out = np.zeros(count, dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    if len(order):
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        out[codes[order][starts]] = np.add.reduceat(values[order], starts)
    return out
