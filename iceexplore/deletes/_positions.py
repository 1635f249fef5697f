"""Sets of row positions (a sorted array, or a roaring bitmap for many), and how to read them from delete files."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyDictionaryArray, build
from iceexplore.deletes._bitmap import Bitmap
from iceexplore.deletes._delete_files import FILE_PATH_ID, POS_ID, column_of
from iceexplore.formats import StreamLimit, open_rows
from iceexplore.storage import Budget

if TYPE_CHECKING:
    from pyroaring import BitMap, BitMap64

    from iceexplore.storage import Storage

__all__ = ["PositionSet", "PositionSets", "bitmap_of", "read_positions", "widened"]

Positions = npt.NDArray[np.int64]
#: Maximum number of rows of a delete file that are held as plain numbers; more are packed into bitmaps.
_PLAIN_ROWS = 1 << 22
#: Approximate overhead in bytes of a path, of a bitmap and of each of its containers.
_PATH_BYTES = 100
_BITMAP_BYTES = 200
_CONTAINER_BYTES = 64
#: If the runs of consecutive positions have at least this average length, a bitmap is built from ranges, which is
#: faster than from single positions.
_LONG_RUN = 64
_ROW_BYTES = 12
_PATH, _POS = "file_path", "pos"
_WHAT = "the deleted positions"


class PositionSet:
    """A set of row positions in one data file.

    A few bytes may represent billions of positions, so no method lists all of them: positions are listed or marked only
    within a given range of rows.

    Parameters
    ----------
    positions
        An ascending array without duplicates, or a `pyroaring.BitMap` or ``BitMap64``. It is never modified.
    """

    def __init__(self, positions: Positions | Bitmap) -> None:
        from pyroaring import BitMap

        if isinstance(positions, BitMap):
            positions = widened(positions)
        self._array: Positions | None = positions if isinstance(positions, np.ndarray) else None
        self._bitmap: Any = None if self._array is not None else positions

    @classmethod
    def union(cls, sets: Sequence[PositionSet]) -> PositionSet:
        """Return the union of the sets."""
        if len(sets) == 1:
            return sets[0]
        arrays = [s._array for s in sets if s._array is not None]
        if len(arrays) == len(sets):
            return cls(np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *arrays])))
        made = sets[0].bitmap()
        for other in sets[1:]:
            made |= other.bitmap()
        return cls(made)

    def __len__(self) -> int:
        return len(self._bitmap) if self._array is None else len(self._array)

    @property
    def last(self) -> int:
        """The greatest position. Raises `ValueError` if the set is empty."""
        if not len(self):
            raise ValueError("no positions")
        return int(self._bitmap.max()) if self._array is None else int(self._array[-1])

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return _bitmap_bytes(self._bitmap) if self._array is None else self._array.nbytes

    def bitmap(self) -> BitMap64:
        """Return the positions as a new `pyroaring.BitMap64`."""
        return self._bitmap.copy() if self._array is None else bitmap_of(self._array)

    def between(self, start: int, end: int) -> Positions:
        """Return the positions from ``start`` (included) to ``end`` (excluded), ascending."""
        if self._array is not None:
            low, high = np.searchsorted(self._array, (start, end)).tolist()
            return self._array[low:high]
        found = self._bitmap & type(self._bitmap)(range(start, end))
        return np.frombuffer(found.to_array(), dtype=np.uint64).astype(np.int64)

    def count(self, rows: int) -> int:
        """Return the number of positions below ``rows``."""
        if self._array is not None:
            return int(np.searchsorted(self._array, rows))
        return int(self._bitmap.range_cardinality(0, max(0, rows)))

    def mark(self, marks: npt.NDArray[np.bool_], start: int = 0) -> None:
        """Set ``marks`` to True for the rows in this set; the first mark belongs to the row at ``start``."""
        for at in range(0, len(marks), _PLAIN_ROWS):
            end = min(len(marks), at + _PLAIN_ROWS)
            marks[self.between(start + at, start + end) - start] = True

    def among(self, positions: Positions) -> npt.NDArray[np.bool_]:
        """Return a mask that shows which of the given positions (0 or greater) are in this set."""
        found = self._array
        if found is None:
            both = self._bitmap & bitmap_of(positions)
            found = np.frombuffer(both.to_array(), dtype=np.uint64).astype(np.int64)
        return np.isin(positions, found)


class PositionSets(dict[str, PositionSet]):
    """The positions in a position delete file, by data file path as written in the delete file.

    Attributes
    ----------
    rows
        Number of records in the file, including duplicates.
    lowest
        The lowest negative position in the file; 0 if there is none. Negative positions are not in any set.
    """

    rows: int = 0
    lowest: int = 0


def bitmap_of(positions: Positions) -> BitMap64:
    """Return a run-optimized `pyroaring.BitMap64` of positions in any order."""
    from pyroaring import BitMap64

    breaks = np.flatnonzero(np.diff(positions) != 1) + 1
    if _LONG_RUN * (len(breaks) + 1) <= len(positions):
        made = BitMap64()
        edges = [0, *breaks.tolist(), len(positions)]
        firsts, lasts = positions[edges[:-1]].tolist(), positions[[e - 1 for e in edges[1:]]].tolist()
        for first, last in zip(firsts, lasts, strict=True):
            made.add_range(first, last + 1)
    else:
        made = BitMap64(array("Q", positions.astype(np.uint64, copy=False).tobytes()))
    made.run_optimize()
    return made


def widened(bitmap: BitMap) -> BitMap64:
    """Return a 32-bit bitmap as a 64-bit one, without iterating over its values."""
    from pyroaring import BitMap64

    if not len(bitmap):
        return BitMap64()
    return BitMap64.deserialize(struct.pack("<QI", 1, 0) + bytes(bitmap.serialize()))


def _bitmap_bytes(bitmap: Bitmap) -> int:
    about = bitmap.get_statistics()
    values = sum(int(about[f"n_bytes_{kind}_containers"]) for kind in ("array", "run", "bitset"))
    return _BITMAP_BYTES + values + _CONTAINER_BYTES * int(about["n_containers"])


def read_positions(
    storage: Storage, location: str, file_format: str | None = None, *, size: int | None = None
) -> PositionSets:
    """Return the positions in a position delete file, by data file path as written in the delete file.

    The file is read in batches, because it may have far more rows than fit in memory: run-length encoding stores a
    hundred million rows in a megabyte. The result also stays small, because many positions are stored as a bitmap.

    Parameters
    ----------
    file_format
        The format according to the manifest, for error messages; the content determines the actual format.
    size
        File size as recorded in the manifest (see `Storage.open`).

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        The file is missing, cannot be decoded, or lacks the column ``file_path`` or ``pos``.
    MemoryLimitError
        The positions exceed the memory limit even as bitmaps.
    """
    with open_rows(storage, location, kind="delete-file", stated=file_format, encoded=(_PATH,), size=size) as rows:
        path = column_of(rows.schema, FILE_PATH_ID, _PATH, location)
        pos = column_of(rows.schema, POS_ID, _POS, location)
        found, limit = _Positions(rows.budget), StreamLimit(rows.budget)
        for batch in rows.batches:
            limit.take(batch.num_rows * _ROW_BYTES, _WHAT)
            found.add(batch.column(path), batch.column(pos))
        return found.sets()


class _Positions:
    """Collects positions by path: at first as plain numbers, and in bitmaps once there are many."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._numbers: dict[str, int] = {}
        self._codes: list[npt.NDArray[np.int32]] = []
        self._positions: list[Positions] = []
        self._rows = 0
        self._bitmaps: dict[int, Any] = {}
        self._all_rows, self._lowest = 0, 0

    def add(self, paths: AnyArray, positions: AnyArray) -> None:
        """Add the rows of a batch, except those without a path or without a position, which delete nothing."""
        self._all_rows += len(positions)
        if not pa.types.is_dictionary(paths.type):
            paths = paths.cast(pa.string()).dictionary_encode()
        positions = positions.cast(pa.int64())
        valid = np.asarray(paths.is_valid()) & np.asarray(positions.is_valid())
        if not valid.all():
            keep = pa.array(valid)
            paths, positions = paths.filter(keep), positions.filter(keep)
        dictionary = cast(AnyDictionaryArray, paths)
        indices, at = np.asarray(dictionary.indices), np.array(positions, dtype=np.int64)
        lowest = int(at.min()) if len(at) else 0
        self._lowest = min(self._lowest, lowest)
        if lowest < 0:
            indices, at = indices[at >= 0], at[at >= 0]
        if not len(at):
            return
        # Look up only the entries that are used: a dictionary may have far more. It may also contain a path twice.
        starts = np.flatnonzero(np.diff(indices, prepend=indices[0] - 1))
        used, which = np.unique(indices[starts], return_inverse=True)
        names = build.to_pylist(dictionary.dictionary.take(build.array(used)).cast(pa.string()))
        numbers = np.array([self._number(name) for name in names], dtype=np.int32)
        self._codes.append(np.repeat(numbers[which], np.diff(starts, append=len(indices))))
        self._positions.append(at)
        self._rows += len(at)
        if self._rows >= _PLAIN_ROWS:
            self._pack()

    def sets(self) -> PositionSets:
        """Return the added positions by path."""
        names, out = list(self._numbers), PositionSets()
        out.rows, out.lowest = self._all_rows, self._lowest
        if self._bitmaps:
            self._pack()
            out.update({names[code]: PositionSet(self._bitmaps[code]) for code in sorted(self._bitmaps)})
        else:
            out.update({names[code]: PositionSet(some) for code, some in self._grouped()})
        return out

    def _number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            self._budget.reserve(_PATH_BYTES + len(name), "the paths of data files")
            number = self._numbers[name] = len(self._numbers)
        return number

    def _pack(self) -> None:
        """Move the positions that are still held in arrays into bitmaps."""
        for code, some in self._grouped():
            old, new = self._bitmaps.get(code), bitmap_of(some)
            if old is None:
                self._budget.reserve(_bitmap_bytes(new), _WHAT)
                self._bitmaps[code] = new
                continue
            before = _bitmap_bytes(old)
            old |= new
            old.run_optimize()
            self._budget.reserve(_bitmap_bytes(old) - before, _WHAT)

    def _grouped(self) -> list[tuple[int, Positions]]:
        """Clear the arrays; return their positions, grouped by path, ascending and without duplicates."""
        if not self._rows:
            return []
        codes, positions = np.concatenate(self._codes), np.concatenate(self._positions)
        self._codes, self._positions, self._rows = [], [], 0
        # Most files are sorted by path and position, as the spec requires ("Position Delete Files").
        if not _ascending(codes, positions):
            order = np.lexsort((positions, codes))
            codes, positions = codes[order], positions[order]
            fresh = np.ones(len(codes), dtype=bool)
            fresh[1:] = (codes[1:] != codes[:-1]) | (positions[1:] != positions[:-1])
            codes, positions = codes[fresh], positions[fresh]
        starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
        ends = [*starts[1:].tolist(), len(codes)]
        return [(int(codes[a]), positions[a:b]) for a, b in zip(starts.tolist(), ends, strict=True)]


def _ascending(codes: npt.NDArray[Any], positions: Positions) -> bool:
    """Return whether positions are sorted by file and position, without duplicates."""
    more = codes[1:] > codes[:-1]
    more |= (codes[1:] == codes[:-1]) & (positions[1:] > positions[:-1])
    return bool(more.all())
