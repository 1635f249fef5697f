"""Check that the files exist: live data and delete files, and statistics files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.checks._real_locations import as_bytes, real_locations
from iceexplore.doctor.examination._examination import Examination
from iceexplore.errors import (
    RULES,
    FileMissingError,
    IceexploreError,
    OutsideRootsError,
    Problem,
    Problems,
    problem,
)
from iceexplore.manifests import column_file_rows
from iceexplore.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata, ancestry
from iceexplore.storage import is_local

__all__ = ["check_existence", "missing_rows"]

#: Files in a remote store are looked up one by one, but only if there are at most this many. If there are more, the
#: check is recorded as not done. For a local table, its folder is listed instead.
_MOST_LOOKED_UP = 200
#: If a local folder has at least this many of the files to look up, the folder is listed instead.
_MANY = 20
#: If at least this many files are in no listing, first look up whether their folders exist. The files of a folder that
#: does not exist need not be looked up one by one.
_MANY_ABSENT = 500
#: The maximum length, in characters, of a folder's path for which the folders above it are looked up. The time for this
#: grows with the square of the length.
_LONGEST = 4096
_CHECK = "whether data and delete files exist"


def check_existence(examination: Examination) -> None:
    """Report files that live entries or the metadata file reference and that do not exist."""
    for item, snapshot_id in _statistics(examination):
        examination.report(item, modes=(8,), snapshots=(snapshot_id,))
    _check_column_files(examination)
    if examination.level != "metadata":
        return  # at the levels "files" and "rows", `check_files` opens all data and delete files and finds missing ones
    files = examination.files
    hit = missing_rows(examination)
    if not len(hit):
        return
    first = files.entries["location"][int(hit[0])].as_py()
    which = f"{first} does" if len(hit) == 1 else f"{len(hit):,} files, among them {first}, do"
    text = f"{which} not exist, but {'a live entry references it' if len(hit) == 1 else 'live entries reference them'}."
    item = problem("file-missing", files.place(int(hit[0])), text, field="100 file_path")
    modes = (1, 7) if _expired_before(examination.state.metadata) else (1, 8)
    examination.report(
        item, modes=modes, snapshots=files.snapshots(hit), places=examination.places(hit), count=len(hit), rows=hit
    )


def _check_column_files(examination: Examination) -> None:
    """Report column files of live data files (V4 draft) that do not exist."""
    files = examination.files
    held = files.entries["column_files"]
    if held.null_count == len(held):
        return
    rows = np.flatnonzero(np.asarray(pc.fill_null(pc.and_(files.entries["live"], held.is_valid()), False)))
    found = column_file_rows(files.entries.select(["content_type", "column_files"]).take(build.array(rows)))
    names = found["location"].combine_chunks().dictionary_encode()
    missing = _missing(examination, names.dictionary, np.asarray(names.indices))
    if missing is None or not len(missing):
        return
    hit = np.unique(rows[np.asarray(found["entry"])[missing]])
    first = found["location"][int(missing[0])].as_py()
    several = f"{len(missing):,} column files, among them {first}, do"
    which = f"Column file {first} does" if len(missing) == 1 else several
    rule = RULES["column-file-there"]
    text = f"{which} not exist: the newest values of columns are lost, and readers of these columns fail. "
    text += f"Rule {rule.id} ({rule.source}): {rule.text}"
    item = problem("file-missing", files.place(int(hit[0])), text, field="158 column_files", found=first)
    places = examination.places(hit)
    examination.report(item, modes=(1,), snapshots=files.snapshots(hit), places=places, count=len(missing), rows=hit)


def missing_rows(examination: Examination) -> npt.NDArray[np.int64]:
    """Return the rows, in ``Examination.files``, of live entries whose files do not exist.

    The array is also empty if it cannot be determined which files exist; `Examination.unknown` then has the reason.
    """
    files = examination.files
    rows = np.flatnonzero(files.alive & (files.same >= 0))
    if not len(rows):
        return rows
    same = files.same[rows]
    firsts = np.full(int(same.max()) + 1, -1)
    firsts[same[::-1]] = rows[::-1]  # in reverse order, so that the first row of each location is assigned last
    known = firsts >= 0
    of = (np.cumsum(known) - 1)[same]
    missing = _missing(examination, files.locations.take(build.array(firsts[known])), of)
    return rows[:0] if missing is None else rows[missing]


def _missing(examination: Examination, unique: AnyArray, of: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Return the indices, in ``of``, of entries whose files do not exist; None if that cannot be determined.

    Parameters
    ----------
    unique
        The locations of the files, each once.
    of
        For each entry, the index of its file's location in ``unique``.
    """
    storage = examination.state.storage
    gone = np.zeros(len(unique), np.bool_)
    reals, outside, refused = _resolved(examination, unique)
    if refused is not None:
        _report_outside(examination, outside, refused)
    if is_local(storage.folder):
        try:
            entries = storage.entries(storage.folder, recursive=True, details=False)
        except IceexploreError as error:
            examination.cannot_know(_CHECK, str(error))
            return None
        there = build.array((as_bytes(e.real) for e in entries if not e.is_folder), pa.binary())
        del entries  # frees memory: there may be a million objects
        absent = _absent(reals, there)
        folders = _Folders.holding(reals.take(build.array(absent)))
        elsewhere = _elsewhere(examination, folders)
        if len(elsewhere):
            left = ~np.asarray(pc.is_in(reals.take(build.array(absent)), value_set=elsewhere))
            absent, folders = absent[left], replace(folders, of=folders.of[left])
        without = _without_folder(examination, folders)
        gone[absent[without]] = True
        look_up = absent[~without]
    elif (known := len(reals) - reals.null_count) <= _MOST_LOOKED_UP:
        look_up = np.flatnonzero(np.asarray(reals.is_valid()))
    else:
        text = f"{known:,} files in a remote store are not looked up at level 'metadata'; use level='files'"
        examination.cannot_know(_CHECK, text)
        return None
    gone[look_up] = [_lacks(examination, name) for name in build.to_pylist(unique.take(build.array(look_up)))]
    return np.flatnonzero(gone[of])


def _resolved(examination: Examination, unique: AnyArray) -> tuple[AnyArray, list[str], Problem | None]:
    """Return the real locations of files, the locations that may not be read, and the problem of the first of these.

    The problem is None if all may be read. Real locations are bytes, null where unknown. A location may not be read if
    it is outside the storage's roots: the folders from which a table's files may be read.
    """
    reals, errors = real_locations(examination.state.storage, unique)
    # Only files outside the folders from which a table's files may be read are reported here. Any other error means
    # that the location is invalid, which is reported when the manifest is read.
    refused = {name: error for name, error in errors.items() if isinstance(error, OutsideRootsError)}
    first = next((Problems().add_error(error, name) for name, error in refused.items()), None)
    return reals, list(refused), first


def _text(place: bytes) -> str:
    return place.decode("utf-8", "surrogatepass")


def _absent(reals: AnyArray, there: AnyArray) -> npt.NDArray[np.int64]:
    """Return the indices, in ``reals``, of the files that are not in a listing of a folder.

    Files whose real location is unknown are left out.

    Parameters
    ----------
    reals
        The real locations of the files, as bytes; null where unknown.
    there
        The real locations of all files that the listing has, as bytes.
    """
    absent = pc.and_(reals.is_valid(), pc.invert(pc.is_in(reals, value_set=there)))
    return np.flatnonzero(np.asarray(absent))


@dataclass(frozen=True)
class _Folders:
    """The folders of some files.

    Attributes
    ----------
    names
        The folders, each once.
    of
        For each file, the index of its folder in ``names``.
    """

    names: list[str]
    of: npt.NDArray[np.int64]

    @classmethod
    def holding(cls, reals: AnyArray) -> _Folders:
        """Return the folders of some files, given the real locations of these files as bytes (``reals``)."""
        heads = pc.list_element(pc.split_pattern(reals, b"/", max_splits=1, reverse=True), 0)
        different = pc.unique(heads)
        of = np.asarray(pc.index_in(heads, different), np.int64)
        return cls([_text(head) for head in build.to_pylist(different)], of)


def _elsewhere(examination: Examination, folders: _Folders) -> AnyArray:
    """List the folders that have at least `_MANY` of the files to check, and return the files in these folders.

    The files are returned as real locations, in bytes. Listing such a folder is faster than looking up its files one by
    one. A folder that cannot be listed is left out.
    """
    storage = examination.state.storage
    found: set[bytes] = set()
    counts = np.bincount(folders.of, minlength=len(folders.names))
    for at in np.flatnonzero(counts >= _MANY):
        try:
            found |= {as_bytes(e.real) for e in storage.entries(folders.names[at], details=False) if not e.is_folder}
        except IceexploreError:
            continue  # the folder cannot be listed, so its files are later looked up one by one
    return pa.array(sorted(found), pa.binary())


def _without_folder(examination: Examination, folders: _Folders) -> npt.NDArray[np.bool_]:
    """Return a mask of the files whose folder is known not to exist.

    If there are fewer than `_MANY_ABSENT` files, no folder is looked up, and the mask is False for every file.
    """
    if len(folders.of) < _MANY_ABSENT:
        return np.zeros(len(folders.of), np.bool_)
    storage = examination.state.storage
    known = {storage.folder: False}

    def is_gone(folder: str) -> bool:
        below: list[str] = []
        while folder not in known:
            if len(folder) > _LONGEST or not folder.startswith(f"{storage.folder}/"):
                return False
            below.append(folder)
            folder = folder.rpartition("/")[0]
        gone = known[folder]
        for one in reversed(below):
            known[one] = gone = gone or is_missing(one)
        return gone

    def is_missing(folder: str) -> bool:
        try:
            storage.entries(folder, details=False)
        except FileMissingError:
            return True
        except IceexploreError:
            pass  # the folder cannot be listed: the files in it are looked up one by one
        return False

    used = np.unique(folders.of).tolist()
    gone = np.zeros(len(folders.names), np.bool_)
    gone[used] = [is_gone(folders.names[number]) for number in used]
    return gone[folders.of]


def _report_outside(examination: Examination, outside: list[str], refused: Problem) -> None:
    """Report live entries whose files are outside the folders from which a table's files may be read.

    This happens, for example, in a copy of a table whose metadata still has the locations of the original's files.

    Parameters
    ----------
    outside
        The locations of these files.
    refused
        The problem of the first of these files.
    """
    files, names = examination.files, pa.array(outside, pa.string())
    mask = np.asarray(pc.is_in(files.entries["location"], names))
    if files.entries["column_files"].null_count < len(mask):
        found = column_file_rows(files.entries.select(["content_type", "column_files"]))
        mask = mask.copy()
        mask[np.asarray(found["entry"])[np.asarray(pc.is_in(found["location"], names))]] = True
    hit = np.flatnonzero(mask & np.asarray(pc.fill_null(files.entries["live"], False)))
    examination.report(
        replace(refused, where=files.place(int(hit[0]))),
        snapshots=files.snapshots(hit),
        places=examination.places(hit),
        count=len(hit),
        rows=hit,
    )


def _lacks(examination: Examination, name: str) -> bool:
    try:
        examination.state.storage.stat(name)
    except FileMissingError:
        return True
    except IceexploreError as error:
        examination.cannot_know(_CHECK, str(error))
    return False


def _expired_before(metadata: TableMetadata) -> bool:
    """Return whether snapshots of the table have expired.

    This is known if the oldest ancestor of the current snapshot names a parent that the table no longer has.
    """
    line = list(ancestry(metadata, metadata.snapshot()))
    return bool(line) and line[-1].parent_snapshot_id not in (None, -1)


def _statistics(examination: Examination) -> Iterator[tuple[Problem, int]]:
    """Check the statistics files of the table: each exists, has the stated size, and belongs to a snapshot."""
    state = examination.state
    known = {s.snapshot_id for s in state.metadata.snapshots}
    kept: list[StatisticsFile | PartitionStatisticsFile] = [*state.metadata.statistics]
    kept += state.metadata.partition_statistics
    for file in kept:
        place = file.statistics_path
        try:
            size = state.storage.stat(place).size
        except FileMissingError:
            text = f"The statistics file of snapshot {file.snapshot_id} does not exist."
            yield problem("statistics-missing", place, text, field="statistics-path"), file.snapshot_id
            continue
        except IceexploreError as error:
            examination.cannot_know("whether statistics files exist", str(error))
            continue
        if size is not None and size != file.file_size_in_bytes:
            text = f"The statistics file has {size:,} bytes, but the metadata file states {file.file_size_in_bytes:,}."
            yield (
                problem(
                    "statistics-untrue",
                    place,
                    text,
                    field="file-size-in-bytes",
                    found=size,
                    expected=file.file_size_in_bytes,
                ),
                file.snapshot_id,
            )
        if file.snapshot_id not in known:
            text = f"A statistics file belongs to snapshot {file.snapshot_id}, which the table does not have."
            yield (
                problem("statistics-unused", place, text, field="snapshot-id", found=file.snapshot_id),
                file.snapshot_id,
            )
