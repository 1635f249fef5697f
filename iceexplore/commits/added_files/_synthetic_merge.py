"""Merge synthetic files as a compaction would, from their counts and statistics alone."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic import synthetic_folder, uuid_strings
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.graph import TableState
from iceexplore.manifests import ENTRY_SCHEMA, ContentType, EntryBatch, stats_type, whole
from iceexplore.metadata import arrow_type
from iceexplore.planning import comparable
from iceexplore.writing import StatColumn, partition_path, stat_columns

__all__ = ["merged_files", "merged_groups"]

_Longs = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


def merged_files(
    state: TableState,
    writer: CommitWriter,
    group: EntryBatch,
    positions: Mapping[str, Sized],
    files: int,
    sequence: int | None,
) -> EntryBatch:
    """Return the entries of synthetic files that replace some files of one partition.

    See `merged_groups`, which is called with these files as one group.

    Parameters
    ----------
    writer
        The commit's writer; its random generator chooses the names of the new files.
    group
        Entries, with statistics, of the files to replace; all have the same spec and partition.
    positions
        The deleted positions in each data file; the keys are the data files' locations.
    files
        The number of new files. If fewer rows than this remain, one file per row is created.
    sequence
        The data sequence number of the new files; None if they inherit it.
    """
    return merged_groups(
        state, writer, group, np.zeros(len(group), np.int64), positions, np.array([files], np.int64), sequence
    )


def merged_groups(
    state: TableState,
    writer: CommitWriter,
    given: EntryBatch,
    group: _Longs,
    positions: Mapping[str, Sized],
    files: _Longs,
    sequence: int | None,
) -> EntryBatch:
    """Return the entries of synthetic files that replace old files, which are merged in groups.

    The old files of one group are replaced by the new files of this group. First, the deleted rows (``positions``) are
    subtracted from the row count of each old file, and the file's size is reduced in proportion. Then the rows and
    bytes of a group are added up and distributed evenly over the group's new files. The bounds of each new file enclose
    the bounds of all old files of its group. Null and NaN counts shrink in proportion to the rows, as if the deleted
    rows were chosen at random.

    Parameters
    ----------
    writer
        The commit's writer; its random generator chooses the names of the new files.
    given
        The entries of the old files, with statistics, ordered by group. All entries of a group have the same spec and
        partition.
    group
        For each old file, the number of its group. The groups are numbered from 0, and the numbers ascend.
    positions
        The deleted positions in each data file; the keys are the data files' locations.
    files
        For each group, the number of new files. A group with fewer remaining rows gets one file per row.
    sequence
        The data sequence number of the new files; None if they inherit it.
    """
    counts = np.asarray(pc.fill_null(whole(given.entries["record_count"]), 0)).astype(np.int64)
    sizes = np.asarray(pc.fill_null(whole(given.entries["file_size_in_bytes"]), 0)).astype(np.float64)
    left = counts
    if positions:
        deleted = [len(positions.get(str(name), ())) for name in build.to_pylist(given.entries["location"])]
        left = np.maximum(0, counts - np.array(deleted, np.int64))
    share = np.where(counts > 0, left / np.maximum(counts, 1), 1.0)
    total = np.zeros(len(files), np.int64)
    np.add.at(total, group, left)
    files = np.minimum(files, total)  # a group without remaining rows gets no file
    of = np.repeat(np.arange(len(files)), files)
    if not len(of):
        return EntryBatch.empty()
    place = np.arange(len(of)) - np.repeat(np.cumsum(files) - files, files)
    rows = total[of] // files[of] + (place < total[of] % files[of])
    bytes_ = np.bincount(group, weights=sizes * share, minlength=len(files))[of]
    first = np.searchsorted(group, np.arange(len(files)))
    heads = given.take(first)
    folder = synthetic_folder(state.metadata.location)
    folders = [folder + partition_path(heads, i, state.metadata) if n else "" for i, n in enumerate(files.tolist())]
    rng = np.random.default_rng(writer.names.getrandbits(64))
    places = build.array([text.rstrip("/") for text in folders], pa.string()).take(build.array(of))
    files_ = pc.binary_join_element_wise(uuid_strings(rng, len(of)), ".parquet", "")
    names = pc.binary_join_element_wise(places, files_, "/")
    columns: dict[str, Any] = {
        "ordinal": np.arange(len(of)),
        "content_type": np.full(len(of), int(ContentType.DATA), np.int32),
        "location": names,
        "file_format": pa.repeat("parquet", len(of)),
        "partition_spec_id": whole(heads.entries["partition_spec_id"]).take(build.array(of)),
        "sort_order_id": np.zeros(len(of), np.int32),
        "record_count": rows,
        "file_size_in_bytes": (bytes_ * rows / total[of]).astype(np.int64),
        "sequence_number": pa.repeat(pa.scalar(sequence, pa.int64()), len(of)),
    }
    arrays = [
        pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(len(of), f.type) for f in ENTRY_SCHEMA
    ]
    known = [c for c in stat_columns(state.metadata, state.schema) if c.field.field_id in given.stats]
    merge = _Merge(group, len(files), share, counts, of, rows, total)
    stats = {c.field.field_id: merge.stats(c, given.stats[c.field.field_id]) for c in known}
    partition = None if heads.partition is None else heads.partition.take(build.array(of))
    return EntryBatch(
        pa.Table.from_arrays(arrays, schema=ENTRY_SCHEMA),
        {number: found for number, found in stats.items() if found is not None},
        partition,
    )


@dataclass(frozen=True)
class _Merge:
    """A merge of old files into new files, in groups: new files replace the old files of the same group.

    Attributes
    ----------
    group
        For each old file, the number of its group, counted from 0.
    count
        The number of groups.
    share
        For each old file, the share of its rows that is not deleted, from 0 to 1.
    counts
        For each old file, the number of its rows, including the deleted ones.
    of
        For each new file, the number of its group.
    rows
        For each new file, the number of its rows.
    total
        For each group, the number of rows that are not deleted.
    """

    group: _Longs
    count: int
    share: _Floats
    counts: _Longs
    of: _Longs
    rows: _Longs
    total: _Longs

    def stats(self, column: StatColumn, old: pa.StructArray) -> pa.StructArray | None:
        """Return a column's statistics in the new files, computed from its statistics in the old files (``old``).

        Return None if all statistics of all new files are unknown.
        """
        children = {f.name: pc.struct_field(old, [i]) for i, f in enumerate(old.type)}
        found: dict[str, AnyArray] = {}
        for name in ("value_count", "null_count", "nan_count", "column_size"):
            found[name] = self._count(children[name])
        if not column.repeated:
            values = found["value_count"].is_valid()
            rows = build.array(self.rows)
            for name in ("null_count", "nan_count"):
                found[name] = pc.if_else(values, pc.min_element_wise(rows, found[name], skip_nulls=False), found[name])
            found["value_count"] = pc.if_else(values, rows, found["value_count"])
        found["lower"], found["upper"] = self._bounds(children)
        found["average_length"], found["max_length"] = self._lengths(children)
        kind = stats_type(arrow_type(column.type))
        arrays = [found[f.name].cast(f.type) if f.name in found else pa.nulls(len(self.of), f.type) for f in kind]
        if all(array.null_count == len(array) for array in arrays):
            return None
        return pa.StructArray.from_arrays(arrays, fields=list(kind))

    def _groups_with(self, mask: AnyArray) -> npt.NDArray[np.bool_]:
        """Return a mask over the groups: whether ``mask`` is true for at least one old file of the group."""
        return np.bincount(self.group[np.asarray(mask)], minlength=self.count) > 0

    def _new(self, values: AnyArray) -> AnyArray:
        """Return the value for each new file, given one value for each group."""
        return values.take(build.array(self.of))

    def _count(self, given: AnyArray) -> AnyArray:
        """Return one count (of values, nulls, NaNs or bytes) for each new file, from ``given``: the old files' counts.

        The result is null for the new files of a group in which the count of an old file is unknown.
        """
        numbers = np.asarray(pc.fill_null(given, 0)).astype(np.float64)
        # If a file has one counted value in every row (for example, all values are null), the count shrinks exactly as
        # the number of rows does. If only some rows have a counted value, it is unknown how many of these rows are
        # deleted: the new count is an estimate, which is rounded down.
        kept = np.where(numbers == self.counts, numbers * self.share, np.floor(numbers * self.share))
        sums = np.bincount(self.group, weights=kept, minlength=self.count)[self.of]
        made = np.rint(sums * (self.rows / self.total[self.of])).astype(np.int64)
        return build.array(made, mask=self._groups_with(given.is_null())[self.of])

    def _bounds(self, children: Mapping[str, AnyArray]) -> tuple[AnyArray, AnyArray]:
        null, value = children["null_count"], children["value_count"]
        without = pc.fill_null(pc.equal(null, value), False)  # files with only nulls need no bounds
        out = []
        for name, pick in (("lower", "first"), ("upper", "last")):
            array = children[name]
            unknown = self._groups_with(pc.and_(array.is_null(), pc.invert(without)))
            there = np.flatnonzero(np.asarray(array.is_valid()))
            keys = build.table({"group": self.group[there], "key": comparable(array.take(build.array(there)))})
            order = np.asarray(pc.sort_indices(keys, [("group", "ascending"), ("key", "ascending")]))
            ordered = self.group[there][order]
            numbers = np.arange(self.count)
            ends = np.searchsorted(ordered, numbers, side="right")
            at = np.searchsorted(ordered, numbers) if pick == "first" else ends - 1
            none = unknown | (ends == np.searchsorted(ordered, numbers))
            rows = there[order][at.clip(0, max(0, len(order) - 1))] if len(order) else np.zeros(self.count, np.int64)
            out.append(self._new(array.take(build.array(rows, mask=none))))
        return out[0], out[1]

    def _lengths(self, children: Mapping[str, AnyArray]) -> tuple[AnyArray, AnyArray]:
        """Return the average length and the maximum length of a column's values, as two arrays over the new files.

        A new file gets the mean of the average lengths, and the greatest maximum length, of the old files in its group.
        Old files whose lengths are unknown are ignored; the result is null if this is true of all files in the group.

        Parameters
        ----------
        children
            The column's statistics in the old files: an array for each kind of statistic, by its name.
        """
        lengths = {name: children[name] for name in ("average_length", "max_length")}
        table = build.table({"group": self.group, **lengths})
        sums = table.group_by("group", use_threads=False).aggregate([("average_length", "mean"), ("max_length", "max")])
        mean = whole(sums["average_length_mean"])
        average = build.array(
            np.rint(np.asarray(pc.fill_null(mean, 0))).astype(np.int64), mask=np.asarray(mean.is_null())
        )
        return self._new(average), self._new(whole(sums["max_length_max"]))
