"""Which rows of a data file are deleted by position: deletion vectors and position delete files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.deletes import PositionSet, decode_deletion_vector, read_deletion_vector, read_positions
from iceexplore.errors import FormatError, problem
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, decode_manifest_dv
from iceexplore.planning import MatchedDeletes, live_places
from iceexplore.storage import CACHE, canonical, in_order, is_local, path_only

__all__ = ["PositionDeletes", "PositionIndex", "deleted_positions", "position_index", "read_vector"]

@dataclass(frozen=True, eq=False)
class PositionIndex:
    """The positions that one position delete file holds, by data file.

    Attributes
    ----------
    paths
        As the file spells them, each once.
    positions
        For each path its positions.
    rows
        The records of the file, repeated ones included.
    lowest
        The lowest position that it gives, at most 0; those below 0 are in no data file, and left out of `positions`.
    """

    paths: tuple[str, ...]
    positions: tuple[PositionSet, ...]
    rows: int
    lowest: int

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return sum(p.nbytes for p in self.positions) + sum(map(len, self.paths)) + 64 * len(self.paths)

    @cached_property
    def places(self) -> dict[str, int]:
        """Which of `paths` means a place."""
        return {canonical(path): i for i, path in reversed(list(enumerate(self.paths)))}

    @cached_property
    def bare(self) -> dict[str, list[int]]:
        """Which of `paths` have a path, without scheme and authority."""
        out: dict[str, list[int]] = {}
        for i, path in enumerate(self.paths):
            out.setdefault(path_only(path), []).append(i)
        return out


def position_index(
    state: TableState, location: str, file_format: str | None = None, size: int | None = None
) -> PositionIndex:
    """Read a position delete file, once: it is kept in the cache.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        It cannot be read.
    """
    storage = state.storage
    key = (storage.key(location), location, storage.fingerprint(location), "position-deletes")
    return CACHE.get_or_load(key, lambda: _load(state, location, file_format, size), lambda index: index.nbytes)


def _load(state: TableState, location: str, file_format: str | None, size: int | None) -> PositionIndex:
    found = read_positions(state.storage, location, file_format, size=size)
    return PositionIndex(tuple(found), tuple(found.values()), found.rows, found.lowest)


def read_vector(state: TableState, entry: Mapping[str, Any]) -> Any:
    """The bitmap of a deletion vector's entry: a blob of a Puffin file, or (V4) inline.

    Raises
    ------
    FormatError
        It is damaged, or the entry says not where it is.
    FileMissingError
        Its file is not there.
    """
    place = entry["deletion_vector"] or {}
    location = entry["location"] or entry["referenced_file"]
    inline = place.get("inline_content")
    if inline is not None:
        if inline[4:8] == b"\xd1\xd3\x39\x64":
            return decode_deletion_vector(inline, location)
        return decode_manifest_dv(inline, location=location)
    if place.get("offset") is None or place.get("size_in_bytes") is None:
        raise FormatError(
            "the entry of a deletion vector says not where in the file it is", location=location, field="content_offset"
        )
    return read_deletion_vector(state.storage, entry["location"], place["offset"], place["size_in_bytes"])


class PositionDeletes:
    """The deletes by position of a scan's data files; delete files are read when a data file needs them.

    Parameters
    ----------
    files
        The data files of the whole scan: a delete that names one of them means no other.
    matched
        Their deletes.
    """

    def __init__(self, state: TableState, files: EntryBatch, matched: MatchedDeletes) -> None:
        self._state = state
        self._files = files
        self._matched = matched
        self._moved = bool(state.storage.moved)
        self._places: dict[str, dict[str, list[int]]] = {}

    @cached_property
    def _live(self) -> dict[str, list[str]]:
        """What live data files mean, by their paths: all of the state's that have the path of one of the scan's."""
        paths = {path_only(name) for name in self._files.entries["location"].to_pylist()}
        out: dict[str, list[str]] = {}
        for place, name in live_places(self._state, paths).items():
            out.setdefault(path_only(name), []).append(place)
        return out

    def any(self, row: int) -> bool:
        """Whether some delete by position may apply to this data file of the scan."""
        if not len(self._matched):
            return False
        return bool(self._matched.vector[row].is_valid or len(self._matched.positions[row].values or ()))

    def vector(self, row: int) -> Any:
        """The bitmap of a data file's deletion vector, as it is; None where it has none. Raises as `of`."""
        number = self._matched.vector[row].as_py()
        if number is None:
            return None
        entry = self._entry(number)
        bitmap = read_vector(self._state, entry)
        where = entry["location"] or entry["referenced_file"] or self._state.metadata_location
        text = "The deletion vector has another cardinality than its entry says: its own positions are applied."
        self._check_count(where, text, len(bitmap), entry["record_count"])
        if len(bitmap):
            self._check_last(row, where, int(bitmap.max()))
        return bitmap

    def _check_count(self, where: str, text: str, found: int, claimed: int | None) -> None:
        """Report a delete file that holds another number of deletes than its entry claims."""
        if claimed is not None and claimed != found:
            # An error, which strict reading raises: who counts by the entry finds other rows than who reads the file.
            self._state.problems.add(
                problem(
                    "count-mismatch", where, text, field="record_count", found=found, expected=claimed, severity="error"
                )
            )

    def _check_last(self, row: int, where: str, last: int) -> None:
        """Report a delete of a row that its data file does not have: the row it was written for comes back."""
        rows = self._files.entries["record_count"][row].as_py()
        if rows is not None and 0 <= rows <= last:
            self._outside(where, last, f"below {rows}, the record_count of the data file")

    def _outside(self, where: str, position: int, expected: str) -> None:
        text = "A delete is of a position that its data file does not have: that position or the file's count is wrong."
        item = problem("delete-position", where, text, field="pos", found=position, expected=expected)
        self._state.problems.add(item)

    def count(self, row: int, rows: int) -> int:
        """How many of a data file's first ``rows`` positions are deleted. Raises as `of`."""
        bitmap = self.vector(row)
        if bitmap is not None:
            return int(bitmap.range_cardinality(0, rows))
        parts = [positions for _, positions in self.of(row)]
        return PositionSet.union(parts).count(rows) if parts else 0

    def of(self, row: int) -> list[tuple[int, PositionSet]]:
        """The positions deleted in a data file, by each delete (its row in `MatchedDeletes.deletes`) that has some.

        Raises
        ------
        FormatError, UnsupportedError, FileMissingError
            A delete cannot be read.
        """
        if not len(self._matched):
            return []
        location = self._files.entries["location"][row].as_py()
        bitmap = self.vector(row)
        if bitmap is not None:
            return [(self._matched.vector[row].as_py(), PositionSet(bitmap))]
        out = []
        numbers = self._matched.positions[row].as_py() or ()
        entries = [self._entry(number) for number in numbers]
        for number, entry, index in zip(numbers, entries, self._indexes(entries), strict=True):
            text = "The file has another number of deletes than its entry says: those that it has are applied."
            self._check_count(entry["location"], text, index.rows, entry["record_count"])
            if index.lowest < 0:
                self._outside(entry["location"], index.lowest, "at least 0")
            found = self._find(index, location, entry["location"])
            if found is not None:
                self._check_last(row, entry["location"], found.last)
                out.append((number, found))
            if entry["referenced_file"] is not None and (found is None or len(index.paths) != 1):
                # The field is of a delete file all of whose positions are in that one file.
                text = "Its positions are not of the one file that its entry refers to: deleted rows may come back."
                item = problem(
                    "delete-dangling",
                    entry["location"],
                    text,
                    field="143 referenced_data_file",
                    found=", ".join(index.paths[:2]) or "no path",
                    expected=entry["referenced_file"],
                )
                self._state.problems.add(item)
        return out

    def _indexes(self, entries: list[dict[str, Any]]) -> Iterator[PositionIndex]:
        """What position delete files hold, in their order; several far ones are read at once."""

        def read(entry: dict[str, Any]) -> PositionIndex:
            size = entry["file_size_in_bytes"]
            return position_index(self._state, entry["location"], entry["file_format"], size)

        storage = self._state.storage
        if len(entries) < 2 or is_local(storage.folder):
            return map(read, entries)
        return in_order(read, entries, width=min(len(entries), storage.readers), name="iceexplore-deletes")

    def _entry(self, number: int) -> dict[str, Any]:
        columns = [
            "location",
            "file_format",
            "file_size_in_bytes",
            "record_count",
            "referenced_file",
            "deletion_vector",
        ]
        row: dict[str, Any] = self._matched.deletes.entries.slice(number, 1).select(columns).to_pylist()[0]
        return row

    def _find(self, index: PositionIndex, location: str, where: str) -> PositionSet | None:
        """Return the positions of a data file, found by its path as `match_deletes` finds it.

        That is by what the path means, by where it leads in a table that has moved, or by the path alone, for tables
        that were moved by editing their metadata (delete files keep the old paths): if no live data file is spelled as
        the delete has it, and only one has the path.
        """
        place = canonical(location)
        at = index.places.get(place)
        if at is not None:
            if len(index.places) == len(index.paths):
                return index.positions[at]
            every = zip(index.paths, index.positions, strict=True)
            return PositionSet.union([found for path, found in every if canonical(path) == place])
        rows = self._led_to(index, where).get(self._state.storage.place(location), []) if self._moved else []
        if rows:
            text = "Its deletes spell data files otherwise; they are applied because both lead to one file."
            self._spelled(where, text, index.paths[rows[0]], location)
            return PositionSet.union([index.positions[i] for i in rows])
        rows = index.bare.get(path_only(location), [])
        if not rows or len(self._live.get(path_only(location), ())) > 1:
            return None
        text = "Its deletes spell data files with other schemes or authorities; they are applied by their paths."
        self._spelled(where, text, index.paths[rows[0]], location)
        return PositionSet.union([index.positions[i] for i in rows])

    def _led_to(self, index: PositionIndex, where: str) -> dict[str, list[int]]:
        """Return which paths of a delete file lead to which file."""
        found = self._places.get(where)
        if found is None:
            found = {}
            for i, path in enumerate(index.paths):
                found.setdefault(self._state.storage.place(path), []).append(i)
            self._places[where] = found
        return found

    def _spelled(self, where: str, text: str, found: str, expected: str) -> None:
        self._state.problems.add(
            problem("delete-path", where, text, field="file_path", found=found, expected=expected)
        )


def deleted_positions(state: TableState, files: EntryBatch, matched: MatchedDeletes) -> dict[str, Any]:
    """Return the positions deleted in each data file that has any, as `pyroaring.BitMap64` by location.

    A deletion vector takes the place of all position delete files (spec, "Deletion Vectors"). Positions of vectors are
    given as they are, also beyond the file's rows.

    Parameters
    ----------
    files, matched
        Data files, and the deletes of each.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        A delete cannot be read.
    """
    deletes = PositionDeletes(state, files, matched)
    out: dict[str, Any] = {}
    if not len(matched):
        return out
    some = pc.or_(matched.vector.is_valid(), pc.greater(pc.list_value_length(matched.positions), 0))
    rows = np.flatnonzero(np.asarray(some))
    names = files.entries["location"].take(pa.array(rows)).to_pylist()
    for row, name in zip(rows.tolist(), names, strict=True):
        parts = [positions for _, positions in deletes.of(row)]
        if parts:
            out[name] = PositionSet.union(parts).bitmap()
    return out
