"""Find the rows of a data file that are deleted by position: deletion vectors and position delete files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.deletes import Bitmap, PositionSet, decode_deletion_vector, read_deletion_vector, read_positions
from iceexplore.errors import FormatError, problem
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, decode_manifest_dv
from iceexplore.planning import MatchedDeletes, live_places
from iceexplore.storage import CACHE, canonical, in_order, is_local, path_only

__all__ = ["PositionDeletes", "PositionIndex", "deleted_positions", "position_index", "read_vector"]


@dataclass(frozen=True, eq=False)
class PositionIndex:
    """The positions in one position delete file, by data file.

    Attributes
    ----------
    paths
        Locations of the data files as written in the delete file, without duplicates.
    positions
        The positions for each of `paths`.
    rows
        Number of records in the file, including repeated ones.
    lowest
        The lowest position in the file if it is negative, else 0. Negative positions are invalid and are not in
        `positions`.
    """

    paths: tuple[str, ...]
    positions: tuple[PositionSet, ...]
    rows: int
    lowest: int

    @property
    def nbytes(self) -> int:
        """Approximate size in memory."""
        return sum(p.nbytes for p in self.positions) + sum(map(len, self.paths)) + 64 * len(self.paths)

    @cached_property
    def places(self) -> dict[str, int]:
        """Index into `paths` by canonical location."""
        return {canonical(path): i for i, path in reversed(list(enumerate(self.paths)))}

    @cached_property
    def bare(self) -> dict[str, list[int]]:
        """Indices into `paths` by path without scheme and authority."""
        out: dict[str, list[int]] = {}
        for i, path in enumerate(self.paths):
            out.setdefault(path_only(path), []).append(i)
        return out


def position_index(
    state: TableState, location: str, file_format: str | None = None, size: int | None = None
) -> PositionIndex:
    """Read a position delete file once and cache it.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        The file cannot be read.
    """
    storage = state.storage
    key = (storage.key(location), location, storage.fingerprint(location), "position-deletes")
    return CACHE.get_or_load(key, lambda: _load(state, location, file_format, size), lambda index: index.nbytes)


def _load(state: TableState, location: str, file_format: str | None, size: int | None) -> PositionIndex:
    found = read_positions(state.storage, location, file_format, size=size)
    return PositionIndex(tuple(found), tuple(found.values()), found.rows, found.lowest)


def read_vector(state: TableState, entry: Mapping[str, Any]) -> Bitmap:
    """Return the bitmap of a deletion vector's entry: a blob in a Puffin file, or inline content (V4).

    Raises
    ------
    FormatError
        The vector is damaged, or its entry lacks an offset or a size.
    FileMissingError
        Its file is missing.
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
            "the entry of a deletion vector has no offset or size", location=location, field="content_offset"
        )
    return read_deletion_vector(state.storage, entry["location"], place["offset"], place["size_in_bytes"])


class PositionDeletes:
    """The position deletes of a scan's data files; delete files are read when a data file needs them.

    Parameters
    ----------
    files
        The data files of the whole scan; a delete that references one of them applies to no other.
    matched
        The deletes that apply to the data files.
    """

    def __init__(self, state: TableState, files: EntryBatch, matched: MatchedDeletes) -> None:
        self._state = state
        self._files = files
        self._matched = matched
        self._moved = bool(state.storage.moved)
        self._places: dict[str, dict[str, list[int]]] = {}

    @cached_property
    def _live(self) -> dict[str, list[str]]:
        """Canonical locations of live data files by path, for all paths of the scan's files."""
        paths = {path_only(name) for name in build.to_pylist(self._files.entries["location"])}
        out: dict[str, list[str]] = {}
        for place, name in live_places(self._state, paths).items():
            out.setdefault(path_only(name), []).append(place)
        return out

    def any(self, row: int) -> bool:
        """Return whether a position delete may apply to this data file of the scan."""
        if not len(self._matched):
            return False
        return bool(self._matched.vector[row].is_valid or len(self._matched.positions[row].values or ()))

    def vector(self, row: int) -> Bitmap | None:
        """Return the bitmap of a data file's deletion vector; None without a vector. Raises the same errors as `of`."""
        number = self._matched.vector[row].as_py()
        if number is None:
            return None
        entry = self._entry(number)
        bitmap = read_vector(self._state, entry)
        where = entry["location"] or entry["referenced_file"] or self._state.metadata_location
        text = "The deletion vector's cardinality differs from its entry: the positions in the vector are applied."
        self._check_count(where, text, len(bitmap), entry["record_count"])
        if len(bitmap):
            self._check_last(row, where, int(bitmap.max()))
        return bitmap

    def _check_count(self, where: str, text: str, found: int, claimed: int | None) -> None:
        """Add a problem if a delete file's number of deletes differs from its entry."""
        if claimed is not None and claimed != found:
            # The severity is "error", so strict tables raise it: readers that rely on the counts in entries get
            # different results from readers that read the files.
            self._state.problems.add(
                problem(
                    "count-mismatch", where, text, field="record_count", found=found, expected=claimed, severity="error"
                )
            )

    def _check_last(self, row: int, where: str, last: int) -> None:
        """Add a problem if a delete's position is beyond the end of its data file: the intended row is not deleted."""
        rows = self._files.entries["record_count"][row].as_py()
        if rows is not None and 0 <= rows <= last:
            self._outside(where, last, f"below {rows}, the record_count of the data file")

    def _outside(self, where: str, position: int, expected: str) -> None:
        text = "A delete has a position that its data file lacks: the position or the file's record count is wrong."
        item = problem("delete-position", where, text, field="pos", found=position, expected=expected)
        self._state.problems.add(item)

    def count(self, row: int, rows: int) -> int:
        """Return how many of a data file's first ``rows`` positions are deleted. Raises the same errors as `of`."""
        bitmap = self.vector(row)
        if bitmap is not None:
            return int(bitmap.range_cardinality(0, rows))
        parts = [positions for _, positions in self.of(row)]
        return PositionSet.union(parts).count(rows) if parts else 0

    def of(self, row: int) -> list[tuple[int, PositionSet]]:
        """Return a data file's deleted positions: for each delete, its row in `MatchedDeletes.deletes` and a set.

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
            text = "The number of deletes in the file differs from its entry: those in the file are applied."
            self._check_count(entry["location"], text, index.rows, entry["record_count"])
            if index.lowest < 0:
                self._outside(entry["location"], index.lowest, "at least 0")
            found = self._find(index, location, entry["location"])
            if found is not None:
                self._check_last(row, entry["location"], found.last)
                out.append((number, found))
            if entry["referenced_file"] is not None and (found is None or len(index.paths) != 1):
                # An entry may have this field only if all positions in the delete file belong to that data file.
                text = (
                    "Not all positions in the delete file belong to the data file that its manifest entry references: "
                    "deleted rows may reappear."
                )
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
        """Return the contents of position delete files in order; several remote ones are read in parallel."""

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
        """Return a data file's positions in a delete file, found by the same rules for paths as in `match_deletes`.

        The data file is matched by canonical location; in a moved table, by the file to which a location resolves;
        otherwise by path without scheme and authority, if no live data file has the location as written in the delete
        and exactly one has the path. The last way is for tables that were moved by editing their metadata: their delete
        files keep the old paths.
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
            text = "The delete file names the data file by another location; it applies because both lead to one file."
            self._spelled(where, text, index.paths[rows[0]], location)
            return PositionSet.union([index.positions[i] for i in rows])
        rows = index.bare.get(path_only(location), [])
        if not rows or len(self._live.get(path_only(location), ())) > 1:
            return None
        text = (
            "The delete file names the data file with another scheme or host; it applies because the paths are equal."
        )
        self._spelled(where, text, index.paths[rows[0]], location)
        return PositionSet.union([index.positions[i] for i in rows])

    def _led_to(self, index: PositionIndex, where: str) -> dict[str, list[int]]:
        """Return the indices of a delete file's paths, grouped by the data file that they resolve to."""
        found = self._places.get(where)
        if found is None:
            found = {}
            for i, path in enumerate(index.paths):
                found.setdefault(self._state.storage.place(path), []).append(i)
            self._places[where] = found
        return found

    def _spelled(self, where: str, text: str, found: str, expected: str) -> None:
        self._state.problems.add(problem("delete-path", where, text, field="file_path", found=found, expected=expected))


def deleted_positions(state: TableState, files: EntryBatch, matched: MatchedDeletes) -> dict[str, Any]:
    """Return the deleted positions of each data file that has any, as `pyroaring.BitMap64` by location.

    A deletion vector replaces all position delete files (spec, "Deletion Vectors"). Positions of deletion vectors are
    returned unchanged, even beyond the file's rows.

    Parameters
    ----------
    files, matched
        Data files, and the deletes that apply to each.

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
    names = build.to_pylist(files.entries["location"].take(build.array(rows)))
    for row, name in zip(rows.tolist(), names, strict=True):
        parts = [positions for _, positions in deletes.of(row)]
        if parts:
            out[name] = PositionSet.union(parts).bitmap()
    return out
