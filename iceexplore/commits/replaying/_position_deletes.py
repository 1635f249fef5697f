"""Find the rows that a table's position delete files delete. A replay of the table writes deletion vectors for them.

If a position delete file cannot be read, the number of rows that it deletes is estimated for each data file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic import synthetic_folder
from iceexplore.commits.added_files._vector_entries import entries_of_vectors
from iceexplore.commits.live_files._find import live_files
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.deletes import FILE_PATH_ID, read_positions
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch

__all__ = ["Deleted", "Positions", "estimated_entries"]

#: Approximate bytes of a deletion vector besides its positions: length, magic, bitmap header, CRC.
_OVERHEAD = 40
_PER_POSITION = 2


@dataclass(frozen=True)
class Deleted:
    """The number of deleted rows of one data file, and their positions.

    ``bitmap`` is a `pyroaring.BitMap64`; it is None if the number is estimated.
    """

    count: int
    bitmap: Any = None


@dataclass
class Positions:
    """The rows that a table's live position delete files delete, by data file.

    Attributes
    ----------
    by_file
        The deleted rows, first by location of the data file, then by location of the delete file: the positions as a
        `pyroaring.BitMap64`, or only an estimated number of rows (int) if the delete file could not be read.
    unread
        Locations of the delete files that could not be read.
    """

    by_file: dict[str, dict[str, Any]] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    _files: dict[str, set[str]] = field(default_factory=dict)

    def add(self, batch: EntryBatch, at: TableState) -> set[str]:
        """Add the deletes of position delete files; return the locations of the data files with these deletes.

        If a delete file cannot be read, the number of rows that it deletes is taken from the ``record_count`` of its
        entry. If the entry identifies a single data file, the whole number is added for this data file. Otherwise the
        number is divided evenly among the data files to which the delete file may apply.

        Parameters
        ----------
        batch
            The entries of the position delete files.
        at
            The table at the snapshot that lists the delete files.
        """
        concerned: set[str] = set()
        bounds = _bounds(batch)
        columns = ["location", "file_format", "record_count", "referenced_file"]
        for i, row in enumerate(batch.entries.select(columns).to_pylist()):
            location = row["location"]
            try:
                found: dict[str, Any] = _read(at, location, row["file_format"])
            except IceexploreError:
                self.unread.add(location)
                found = _estimate(batch, i, at, row["referenced_file"], bounds[i])
            for name, rows in found.items():
                self.by_file.setdefault(name, {})[location] = rows
            self._files[location] = set(found)
            concerned |= set(found)
        return concerned

    def remove(self, batch: EntryBatch) -> set[str]:
        """Remove the deletes of position delete files; return the locations of the data files with these deletes."""
        concerned: set[str] = set()
        for location in build.to_pylist(batch.entries["location"]):
            for name in self._files.pop(location, ()):
                self.by_file[name].pop(location, None)
                concerned.add(name)
        return concerned

    def unapplied(self, batch: EntryBatch, live: Collection[str]) -> int:
        """Count the position delete files that reference no live data file.

        Parameters
        ----------
        batch
            The entries of the position delete files, which `add` has added before.
        live
            Locations of live data files. A delete file must reference one of them in exactly this spelling:
            ``file:/data/a.parquet`` does not match ``/data/a.parquet``.
        """
        locations = build.to_pylist(batch.entries["location"])
        return sum(not any(name in live for name in self._files.get(at, ())) for at in locations)

    def of(self, name: str, rows: int) -> Deleted | None:
        """Return the deleted rows of the data file ``name``, which has ``rows`` rows; None if none is deleted."""
        from pyroaring import BitMap64

        parts = self.by_file.get(name)
        if not parts:
            return None
        guessed = sum(p for p in parts.values() if isinstance(p, int))
        bitmap = BitMap64()
        for part in parts.values():
            if not isinstance(part, int):
                bitmap |= part
        if bitmap and bitmap.max() >= rows:  # positions past the file's end delete nothing
            bitmap.remove_range(rows, bitmap.max() + 1)
        if guessed:
            return Deleted(min(rows, guessed + len(bitmap)))
        return Deleted(len(bitmap), bitmap) if bitmap else None


def estimated_entries(writer: CommitWriter, targets: EntryBatch, counts: dict[str, int]) -> EntryBatch:
    """Return entries of deletion vectors for which only the number of deleted rows is known, as an estimate.

    The entries refer to a synthetic Puffin file: they record a location and plausible sizes for it, but the file is
    never written.

    Parameters
    ----------
    targets
        The entries of the data files. Data files that are not in ``counts`` are ignored.
    counts
        The estimated number of deleted rows, by the location of the data file.
    """
    mine = targets.take([i for i, name in enumerate(targets.entries["location"].to_pylist()) if name in counts])
    known = [counts[name] for name in build.to_pylist(mine.entries["location"])]
    location = writer.new_location("deletes", ".puffin", folder="data/made-up")
    assert location.startswith(synthetic_folder(writer.base.metadata.location))
    sizes = np.array([_OVERHEAD + _PER_POSITION * count for count in known], dtype=np.int64)
    offsets = 4 + np.cumsum(sizes) - sizes
    places = list(zip(offsets.tolist(), sizes.tolist(), strict=True))
    return entries_of_vectors(mine, location, int(4 + sizes.sum()), places, known)


def _read(at: TableState, location: str, file_format: str | None) -> dict[str, Any]:
    found = read_positions(at.storage, location, file_format)
    return {name: positions.bitmap() for name, positions in found.items()}


def _bounds(batch: EntryBatch) -> list[tuple[str | None, str | None]]:
    """Return the lower and the upper bound of the column ``file_path`` of each position delete file, as text.

    A bound is None if the delete file's entry does not have it. ``batch`` has the bounds as bytes, because
    ``file_path`` is not a column of the table's schema.
    """
    stats = batch.stats.get(FILE_PATH_ID)
    if stats is None:
        return [(None, None)] * len(batch)
    both = [pc.struct_field(stats, name).to_pylist() for name in ("lower", "upper")]
    return [(_text(low), _text(high)) for low, high in zip(*both, strict=True)]


def _text(value: PlainValue) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _estimate(
    batch: EntryBatch, row: int, at: TableState, named: str | None, bounds: tuple[str | None, str | None]
) -> dict[str, int]:
    """Estimate how many rows of each data file are deleted by a position delete file that cannot be read.

    The result has the number by location of the data file.

    Parameters
    ----------
    batch, row
        Entries of position delete files, and the index of this delete file's entry among them.
    at
        The table at the snapshot that lists the delete file.
    named
        The data file that the entry references (``referenced_file``); None if it references none.
    bounds
        The lower and the upper bound of the delete file's column ``file_path``. If they are equal, they are the
        location of the only data file with deletes. None for a bound that the entry does not have.
    """
    count = batch.entries["record_count"][row].as_py() or 0
    low, high = bounds
    if named or (low is not None and low == high):
        return {named or str(low): count}
    files = live_files(at)
    names = files.entries["location"]
    mask = pc.equal(files.entries["partition_spec_id"], batch.entries["partition_spec_id"][row])
    if low is not None and high is not None:
        # An upper bound may be cut off after some characters. A path that begins with these characters is then greater
        # than the bound, although the delete file may contain it.
        inside = pc.and_(pc.greater_equal(names, low), pc.or_(pc.less_equal(names, high), pc.starts_with(names, high)))
        mask = pc.and_(mask, inside)
    mask = pc.and_(pc.fill_null(mask, False), _in_partition(files, batch, row))
    chosen = build.to_pylist(names.filter(mask).slice(0, count))
    if not chosen:
        return {}
    each, more = divmod(count, len(chosen))
    return {name: each + (i < more) for i, name in enumerate(chosen)}


def _in_partition(files: EntryBatch, batch: EntryBatch, row: int) -> AnyArray:
    """Return a mask of the files whose partition tuple equals that of one entry in ``batch``.

    ``row`` is the index of this entry. If one of the batches has no partition tuples, the mask is true for all files.
    """
    mask = pa.repeat(pa.scalar(True), len(files))
    if batch.partition is None or files.partition is None:
        return mask
    for i, child in enumerate(files.partition.type):
        at = batch.partition.type.get_field_index(child.name)
        value = None if at < 0 else pc.struct_field(batch.partition, [at])[row].as_py()
        column = pc.struct_field(files.partition, [i])
        same = column.is_null() if value is None else pc.equal(column, pa.scalar(value, child.type))
        mask = pc.and_(mask, pc.fill_null(same, False))
    return mask
