"""Find the files in a table's data folder that no readable manifest lists, and create entries for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import entry_of_file, files_of_paths, is_referenced, path_keys
from iceexplore.deletes import (
    DELETION_VECTOR,
    FILE_PATH_ID,
    POS_ID,
    read_position_deletes,
    read_puffin_footer,
)
from iceexplore.doctor.recovery._history import History
from iceexplore.doctor.recovery._lost_manifests import LostManifest
from iceexplore.errors import IceexploreError
from iceexplore.formats import PUFFIN, DataFile, Parquet, format_of_suffix, read_parquet_footer
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, Status, stats_type
from iceexplore.metadata import Snapshot, Type, decode_values
from iceexplore.planning import partition_columns
from iceexplore.reading import ROW_ID
from iceexplore.storage import Entry

__all__ = ["DataFolder", "Unlisted", "fits_summaries"]

#: Properties that can place data files outside the folder ``data``.
_FOLDERS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
#: The maximum number of files to open; if there are more, none is opened.
_MOST_OPENED = 2_000
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: The approximate number of files that are tested to learn whether modification times can be trusted. The test compares
#: the modification time of a file with the time of the commit that added the file (see `DataFolder.has_clock`).
_MOST_COMPARED = 100
#: Keys of the key-value metadata that Iceberg's writers add to delete files (Java: ``FileWriterBuilderImpl``).
_DELETE_TYPE, _DELETE_IDS = "delete-type", "delete-field-ids"
#: Field ids from here on are reserved (spec, "Reserved Field IDs").
_RESERVED = 2147483447
#: The number of milliseconds by which the clocks of machines may differ.
_TOLERANCE = 60_000


@dataclass(frozen=True)
class Unlisted:
    """A file that no readable manifest lists.

    Attributes
    ----------
    location
        The location, as the table's metadata would spell it.
    modified_ms
        The time at which the file was written, in milliseconds since the epoch; None if unknown.
    size
        The size in bytes; None if unknown.
    """

    location: str
    modified_ms: int | None
    size: int | None


class DataFolder:
    """The files in a table's data folder that no readable manifest lists.

    Attributes
    ----------
    notes
        Sentences on why some files could not be examined.
    """

    def __init__(self, state: TableState, history: History) -> None:
        self.state = state
        self.history = history
        self.notes: list[str] = []
        self._committed: dict[int, int] = {}
        self._made: dict[tuple[str, int, bool], EntryBatch | None] = {}

    @cached_property
    def _listed(self) -> tuple[list[tuple[str, Entry]], list[bool]]:
        """The files in the data folder with their locations, and for each whether a readable manifest lists it.

        Files that engines ignore are left out.
        """
        storage = self.state.storage
        table = self.state.metadata.location.rstrip("/")
        properties = self.state.metadata.properties
        places = [f"{table}/data", *(properties[name].rstrip("/") for name in _FOLDERS if properties.get(name))]
        found: dict[str, tuple[str, Entry]] = {}
        for place in dict.fromkeys(places):
            try:
                folder = storage.resolve(place).rstrip("/")
                entries = storage.entries(folder, recursive=True)
            except FileNotFoundError:
                continue
            except IceexploreError as error:
                self.notes.append(f"{place} could not be searched for files: {error}")
                continue
            for entry in entries:
                tail = entry.real[len(folder) :]
                if not entry.is_folder and not self._is_hidden(tail):
                    found.setdefault(entry.real, (f"{place}{tail}", entry))
        files = list(found.values())
        listed = is_referenced(storage, [entry for _, entry in files], self.history.locations)
        return files, listed.tolist()

    def _is_hidden(self, tail: str) -> bool:
        """Return whether engines ignore a file, because its name or a folder's name begins with ``_`` or ``.``.

        A folder of a partition is not ignored, even if the name of the partition field begins with ``_``, as in
        ``_day=2024-01-01``.

        Parameters
        ----------
        tail
            The file's path, relative to the data folder.
        """
        fields = tuple(f"{f.name}=" for spec in self.state.metadata.partition_specs for f in spec.fields)
        return any(part.startswith(("_", ".")) and not part.startswith(fields) for part in tail.split("/"))

    @cached_property
    def files(self) -> tuple[Unlisted, ...]:
        """The data, delete and Puffin files that no readable manifest lists; empty if there are too many to open."""
        files, listed = self._listed
        found = [
            Unlisted(location, entry.modified_ms, entry.size)
            for (location, entry), is_listed in zip(files, listed, strict=True)
            if not is_listed and (_is_puffin(location) or format_of_suffix(location) is not None)
        ]
        if len(found) > _MOST_OPENED:
            self.notes.append(
                f"{len(found):,} files of the data folder are in no manifest; none of them was opened, because "
                f"the limit is {_MOST_OPENED:,} files."
            )
            return ()
        return tuple(found)

    @cached_property
    def has_clock(self) -> bool | None:
        """Whether the modification times of files show when the files were written.

        This is tested with about a hundred files that manifests list. False if one of them was modified after the
        commit that added it, for example because the table was copied. None if no file can be tested, because the
        commits that added the files, or the modification times, are unknown.
        """
        files, listed = self._listed
        known = [entry for (_, entry), is_listed in zip(files, listed, strict=True) if is_listed]
        known = known[:: max(1, len(known) // _MOST_COMPARED)]
        history = self.history
        added = np.flatnonzero(history.status != int(Status.DELETED))
        keys = path_keys(self.state.storage, history.locations.take(build.array(added)))
        at = pc.index_in(path_keys(self.state.storage, pa.array([e.real for e in known], pa.string())), value_set=keys)
        checked = 0
        for entry, row in zip(known, build.to_pylist(at), strict=True):
            snapshot = None if row is None else history.snapshots.get(int(history.adder[added[row]]))
            until = None if snapshot is None else self._committed_ms(snapshot)
            if until is None or entry.modified_ms is None:
                continue
            checked += 1
            if entry.modified_ms > until:
                return False
        return True if checked else None

    def _committed_ms(self, snapshot: Snapshot) -> int:
        """Return the time, in milliseconds since the epoch, by which a commit had written all its data files.

        This is the modification time of the snapshot's manifest list, which a commit writes after its data files. If
        that is unknown, for example because the manifest list is missing, it is the snapshot's timestamp plus a
        tolerance for clocks that differ.
        """
        if snapshot.snapshot_id not in self._committed:
            try:
                found = self.state.storage.stat(snapshot.root_location or "").modified_ms
            except IceexploreError:
                found = None
            self._committed[snapshot.snapshot_id] = snapshot.timestamp_ms + _TOLERANCE if found is None else found
        return self._committed[snapshot.snapshot_id]

    def tiers(self, lost: LostManifest) -> Iterator[tuple[Unlisted, ...]]:
        """Yield up to three sets of files that a lost manifest may have listed, the most likely set first.

        All are sets of unlisted files: files that no readable manifest lists. Below, C is the commit that wrote the
        lost manifest. Its time is unknown if its snapshot has expired.

        1. The files whose names have the same UUID as the manifest's name. This set is left out if it is empty.
        2. The files that were written after C's parent snapshot was committed, but not after C. If the parent snapshot
           is unknown, these are all files that were not written after C. This set is left out if the time of C is
           unknown, or if `has_clock` is False.
        3. All unlisted files. But if the time of C is known and `has_clock` is True, files that were written after C
           are left out.
        """
        names = {name for one in lost.names for name in _uuids(one)[:1]}
        alike = tuple(f for f in self.files if not names.isdisjoint(_uuids(f.location)))
        if alike:
            yield alike
        commit = self.history.snapshots.get(lost.snapshot_id)
        until = None if commit is None else self._committed_ms(commit)
        if until is None or self.has_clock is False:
            yield self.files
            return
        before = tuple(f for f in self.files if f.modified_ms is None or f.modified_ms <= until)
        parent = None if commit is None else self.history.snapshots.get(commit.parent_snapshot_id or -1)
        since = -1 if parent is None else self._committed_ms(parent)
        yield tuple(f for f in before if f.modified_ms is not None and f.modified_ms > since)
        yield before if self.has_clock else self.files

    # Entries ----------------------------------------------------------------------------------------------------------

    def entries(self, file: Unlisted, spec_id: int, *, deletes: bool) -> EntryBatch | None:
        """Return the entries that a data manifest (with ``deletes``, a delete manifest) would have for a file.

        None if the file cannot be read, if it is a delete file and ``deletes`` is False (or the reverse), or if its
        columns or its partition do not fit the table and the given partition spec.

        For a data file, the row count is read from the file, and for a Parquet file the column metrics, too. For
        deletion vectors, the values are read from the footer of the Puffin file; for a position delete file, from its
        rows; for an equality delete file, from its key-value metadata. Sequence numbers and row ids stay null.
        """
        key = file.location, spec_id, deletes
        if key not in self._made:
            try:
                self._made[key] = self._entries(file, spec_id, deletes)
            except IceexploreError:  # not readable, or a different table's file
                self._made[key] = None
        return self._made[key]

    def _entries(self, file: Unlisted, spec_id: int, deletes: bool) -> EntryBatch | None:
        if _is_puffin(file.location):
            return self._vectors(file, spec_id) if deletes else None
        found = format_of_suffix(file.location)
        if found is None:
            return None
        storage, metadata = self.state.storage, self.state.metadata
        with storage.open(file.location, kind="other") as opened:
            ids = found.facts(DataFile(storage, file.location, opened, "other")).ids
        if {FILE_PATH_ID, POS_ID} <= ids:
            return self._positions(file, spec_id, found.name) if deletes else None
        keys = found.describe(storage, file.location).details().metadata
        if _DELETE_TYPE in keys:
            is_equality = keys[_DELETE_TYPE] == "equality"
            return self._equality(file, spec_id, ids, keys.get(_DELETE_IDS, "")) if deletes and is_equality else None
        strangers = {i for i in ids if i < _RESERVED} - metadata.all_fields().keys()
        if deletes or strangers:
            return None
        if file.location.endswith(Parquet.suffixes):
            return files_of_paths(self.state, [file.location], check_duplicates=False, spec_id=spec_id)
        # Only field ids show that a file belongs to this table. So the file must have field ids, among them those of
        # all required columns that have no initial default.
        required = {f.field_id for f in self.state.schema.fields if f.required and f.initial_default is None}
        return entry_of_file(self.state, file.location, spec_id) if ids and required <= ids else None

    def _equality(self, file: Unlisted, spec_id: int, ids: frozenset[int], named: str) -> EntryBatch | None:
        """Return the entry of an equality delete file, whose key-value metadata names the columns to compare.

        None if the metadata names no column, or a column that is missing from the file or from the table. Only this
        metadata, which Iceberg's writers add, tells an equality delete file from a data file.

        Parameters
        ----------
        ids
            The field ids of the file's columns.
        named
            The text in the key-value metadata: field ids, separated by commas.
        """
        texts = [text.strip() for text in named.split(",")]
        if not all(text.isascii() and text.isdecimal() and len(text) < 11 for text in texts):
            return None
        columns = list(dict.fromkeys(map(int, texts)))
        if not ids.issuperset(columns) or not self.state.metadata.all_fields().keys() >= set(columns):
            return None
        content = int(ContentType.EQUALITY_DELETE)
        return entry_of_file(self.state, file.location, spec_id, content_type=content, equality_ids=columns)

    def stores_row_ids(self, location: str) -> bool:
        """Return whether a file certainly stores the row id of each of its rows.

        When a commit rewrites data files of a v3 table, the new files store the row ids, so that the rows keep them.
        False if the file is not a Parquet file, or if its footer cannot be read.
        """
        if not location.endswith(Parquet.suffixes):
            return False
        try:
            footer = read_parquet_footer(self.state.storage, location)
        except IceexploreError:
            return False
        path = next((c.path for c in footer.columns if c.field_id == ROW_ID.field_id), None)
        nulls = footer.chunks.filter(pc.equal(footer.chunks["column"], path or ""))["null_count"]
        return path is not None and nulls.null_count == 0 and not any(build.to_pylist(nulls))

    def _vectors(self, file: Unlisted, spec_id: int) -> EntryBatch | None:
        """Return entries for the deletion vectors in a Puffin file whose data files have the given partition spec.

        A deletion vector is left out if its data file has another partition spec, or is live in no snapshot. None if
        all deletion vectors are left out.
        """
        footer = read_puffin_footer(self.state.storage, file.location, file.size)
        rows = []
        of = []
        for blob in footer.blobs:
            named = blob.referenced_data_file
            known = None if named is None else self._data_file(named)
            if blob.type != DELETION_VECTOR or known is None or blob.cardinality is None:
                continue
            if self.history.spec[known] != spec_id:
                continue
            of.append(known)
            rows.append(
                {
                    "content_type": int(ContentType.POSITION_DELETE),
                    "location": file.location,
                    "file_format": PUFFIN.name,
                    "partition_spec_id": spec_id,
                    "record_count": blob.cardinality,
                    "file_size_in_bytes": footer.file_size,
                    "referenced_file": named,
                    "deletion_vector": {"offset": blob.offset, "size_in_bytes": blob.length, "inline_content": None},
                }
            )
        if not rows:
            return None
        return EntryBatch.of_rows(rows, partition=self.history.fetch(np.array(of, np.int64)).partition)

    def _positions(self, file: Unlisted, spec_id: int, file_format: str) -> EntryBatch | None:
        """Return the entry of a position delete file, or None if its partition cannot be determined.

        Its partition is that of the data files that it names. None if it names no data file or one that is not live in
        the history, if a data file has another partition spec, or if the data files are in several partitions.
        """
        rows = read_position_deletes(self.state.storage, file.location, file_format)
        names = build.to_pylist(pc.unique(rows["file_path"]))
        known = [at for name in names if (at := self._data_file(str(name))) is not None]
        if not known or len(known) < len(names) or set(self.history.spec[known].tolist()) != {spec_id}:
            return None
        tuples = self.history.fetch(np.array(known, np.int64)).partition
        if tuples is not None and len({str(value) for value in build.to_pylist(tuples)}) > 1:
            return None
        ends = pc.min_max(rows["file_path"]).as_py()
        bounds = {"lower": ends["min"].encode(), "upper": ends["max"].encode()}
        row = {
            "content_type": int(ContentType.POSITION_DELETE),
            "location": file.location,
            "file_format": file_format,
            "partition_spec_id": spec_id,
            "record_count": len(rows),
            "file_size_in_bytes": self.state.storage.stat(file.location).size,
            "referenced_file": names[0] if len(names) == 1 else None,
        }
        stats: Any = {FILE_PATH_ID: pa.array([bounds], stats_type(pa.binary()))}
        return EntryBatch.of_rows([row], stats=stats, partition=None if tuples is None else tuples[:1])

    def _data_file(self, location: str) -> int | None:
        """Return the row number of a live data file's entry in the history; None if the history has no such entry."""
        return self._data_files.get(location)

    @cached_property
    def _data_files(self) -> dict[str, int]:
        rows = np.flatnonzero(self.history.alive & ~self.history.deletes)
        return dict(zip(build.to_pylist(self.history.locations.take(build.array(rows))), rows.tolist(), strict=True))


def _uuids(location: str) -> list[str]:
    """Return the UUIDs in a file's name, in lower case."""
    return _UUID.findall(location.rpartition("/")[2].lower())


def _is_puffin(location: str) -> bool:
    return location.endswith(PUFFIN.suffixes)


def fits_summaries(batch: EntryBatch, lost: LostManifest, state: TableState) -> npt.NDArray[np.bool_]:
    """Return which entries have a partition within the bounds of the lost manifest's partition summaries.

    If the summaries or the partitions are unknown, all entries count as within the bounds.
    """
    spec = state.metadata.spec(lost.spec_id)
    if spec is None or batch.partition is None or any(s is None for s in lost.summaries):
        return np.ones(len(batch), bool)
    columns = partition_columns(state.metadata, spec)
    out = np.zeros(len(batch), bool)
    for summaries in lost.summaries:
        fits = np.ones(len(batch), bool)
        for column, summary in zip(columns, summaries or (), strict=False):
            at = batch.partition.type.get_field_index(column.key)
            if at >= 0:
                fits &= _fits(pc.struct_field(batch.partition, [at]), column.type, summary)
        out |= fits
    return out


def _fits(values: AnyArray, kind: Type, summary: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Return which values are within the bounds of a partition field's summary.

    Bounds that cannot be compared with the values are ignored.
    """
    fits = np.ones(len(values), bool)
    if summary["contains_null"] is False:
        fits &= np.asarray(values.is_valid())
    ends, good = decode_values(kind, pa.array([summary["lower_bound"], summary["upper_bound"]], pa.binary()))
    if ends.type != values.type or not pc.all(good).as_py():
        return fits
    if ends.null_count == 2 and summary["contains_nan"] is False:
        # The summary has no bounds, and states that there is no NaN. So the manifest has only nulls in this field.
        fits &= np.asarray(values.is_null())
        return fits
    try:
        for end, outside in ((ends[0], pc.less), (ends[1], pc.greater)):
            if end.is_valid:
                fits &= ~np.asarray(pc.fill_null(outside(values, end), False))
    except pa.ArrowNotImplementedError:  # Arrow cannot compare UUIDs, so their bounds are ignored
        pass
    return fits
