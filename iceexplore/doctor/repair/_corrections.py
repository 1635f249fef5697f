"""Apply the corrected values of a file to every snapshot that lists the file with the same wrong values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import keys_of
from iceexplore.doctor.repair._draft import live_mask
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, whole

__all__ = ["Corrections", "with_files_of"]

#: Columns that describe an entry's file; all other columns describe the commit that listed the file.
_OF_FILE = (
    "content_type",
    "file_format",
    "partition_spec_id",
    "sort_order_id",
    "record_count",
    "file_size_in_bytes",
    "referenced_file",
    "deletion_vector",
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "first_row_id",
)


@dataclass
class Corrections:
    """Corrected values of files, collected while the V4 trees of a repair are written.

    Attributes
    ----------
    wrong
        For each corrected file, by its key (`keys_of`): all values in its entry before the repair, of which at least
        one is wrong.
    right
        For each corrected file, by the same key: its entry after the repair, as a batch with one row.
    """

    wrong: dict[str, dict[str, Any]] = field(default_factory=dict)
    right: dict[str, EntryBatch] = field(default_factory=dict)

    def add(self, read: EntryBatch, made: EntryBatch) -> None:
        """Record how a repair changed the values that describe files, in the live entries of one manifest.

        If a file is already recorded, its first correction is kept.

        Parameters
        ----------
        read
            The manifest's entries before the repair.
        made
            Its entries after the repair. A repair may remove entries, but adds none.
        """
        if made is read:
            return
        # A repair may remove entries, but adds none: each entry after the repair is found among those before it.
        kept = np.asarray(pc.index_in(_ids(made), value_set=_ids(read)))
        before, after = read.take(build.array(kept)), made
        rows = np.flatnonzero(_differ(before, after) & live_mask(after))
        keys = [str(key) for key in build.to_pylist(keys_of(after.entries).take(build.array(rows)))]
        for key, row, values in zip(keys, rows.tolist(), _plain(before.take(rows)), strict=True):
            self.wrong.setdefault(key, values)
            self.right.setdefault(key, after.take([row]))

    def concerned(self, batch: EntryBatch) -> npt.NDArray[np.int64]:
        """Return the row numbers of the entries to correct.

        An entry is corrected if `wrong` has its file, and if all values that describe the file are the same in the
        entry and in `wrong`.
        """
        if not self.wrong:
            return np.zeros(0, np.int64)
        keys = keys_of(batch.entries)
        rows = np.flatnonzero(np.asarray(pc.is_in(keys, value_set=pa.array(list(self.wrong), pa.string()))))
        some = batch.take(rows)
        names = [str(name) for name in build.to_pylist(keys.take(build.array(rows)))]
        wrong = [self.wrong[name] == values for name, values in zip(names, _plain(some), strict=True)]
        found: npt.NDArray[np.int64] = rows[np.array(wrong, bool)]
        return found

    def apply(self, batch: EntryBatch) -> EntryBatch:
        """Return the batch with the values of `right` in the entries that have wrong values (see `concerned`)."""
        rows = self.concerned(batch)
        if not len(rows):
            return batch
        keys = build.to_pylist(keys_of(batch.entries).take(build.array(rows)))
        return with_files_of(batch, rows, concat_batches([self.right[str(key)] for key in keys]))


def _ids(batch: EntryBatch) -> AnyArray:
    """Return, for each entry, a number that identifies it in its manifest, and that a repair does not change.

    The position (``ordinal``) alone does not identify an entry: in the V4 draft spec, a row of a manifest may hold a
    file and its deletion vector, which are read as two entries with the same position.
    """
    kinds = pc.fill_null(batch.entries["content_type"], -1)
    vector = pc.equal(kinds, int(ContentType.POSITION_DELETE)).cast(pa.int64())
    # Two entries with the same position come from one row of the manifest: the first is the data file, the second its
    # deletion vector. The content type is not used to recognize the data file, because a repair may correct it.
    ordinals = np.asarray(batch.entries["ordinal"], np.int64)
    second = np.zeros(len(batch), bool)
    second[1:] = ordinals[1:] == ordinals[:-1]
    return pc.add(pc.multiply(batch.entries["ordinal"], 2), pc.if_else(pa.array(second), vector, 0)).combine_chunks()


def _differ(one: EntryBatch, other: EntryBatch) -> npt.NDArray[np.bool_]:
    """Return a mask of the entries in which two batches differ in a value that describes the file.

    Both batches have the same entries, in the same order. The compared values are the columns of `_OF_FILE`, the column
    metrics and the partition.
    """
    out = np.zeros(len(one), bool)
    for name in _OF_FILE:
        out |= _unequal(whole(one.entries[name]), whole(other.entries[name]))
    for field_id in one.stats.keys() | other.stats.keys():
        out |= _unequal(one.stats.get(field_id), other.stats.get(field_id))
    return out | _unequal(one.partition, other.partition)


def _unequal(one: AnyArray | None, other: AnyArray | None) -> npt.NDArray[np.bool_]:
    if one is None and other is None:
        return np.zeros(1, bool)
    if one is None or other is None:
        found = one if other is None else other
        assert found is not None
        return np.asarray(found.is_valid())
    if one.equals(other):
        return np.zeros(len(one), bool)
    return np.array([a != b for a, b in zip(build.to_pylist(one), build.to_pylist(other), strict=True)], bool)


def _plain(batch: EntryBatch) -> list[dict[str, Any]]:
    """Return the values that describe each entry's file, as one dictionary per entry."""
    rows = build.to_pylist(batch.entries.select(list(_OF_FILE)))
    for field_id, array in batch.stats.items():
        for row, value in zip(rows, build.to_pylist(array), strict=True):
            if value is not None and any(v is not None for v in value.values()):
                row[str(field_id)] = value
    for row, value in zip(rows, [] if batch.partition is None else build.to_pylist(batch.partition), strict=False):
        row["partition"] = value
    return rows


def with_files_of(batch: EntryBatch, rows: npt.NDArray[np.int64], files: EntryBatch) -> EntryBatch:
    """Return a copy of a batch in which some entries have new values that describe their files.

    These values are the location, the columns of `_OF_FILE`, the column metrics and the partition. All other values,
    such as the status and the sequence numbers, are kept.

    Parameters
    ----------
    rows
        The row numbers of the entries that get new values.
    files
        For each of these entries, in the same order, an entry with the new values.
    """
    places = np.arange(len(batch))
    places[rows] = len(batch) + np.arange(len(rows))
    taken = concat_batches([batch, files]).take(places)
    own = {n: batch.entries[n] for n in batch.entries.column_names if n not in {*_OF_FILE, "location"}}
    return taken.with_columns(**own)
