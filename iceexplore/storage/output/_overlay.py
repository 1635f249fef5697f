"""An overlay: a folder that receives a simulation's writes, in front of a table's storage, which is never written.

Locations stay the table's own: ``s3://b/t/metadata/x.parquet`` is a file of the overlay's folder, and the storage
returns it for that location. File names under the folder are built segment by segment, so that no location can
climb out of it.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from iceexplore.errors import IceexploreError, OptionError, OutsideRootsError, StorageError
from iceexplore.storage._location import (
    basename,
    canonical,
    check_host,
    dirname,
    is_local,
    is_uri,
    relative_to,
    within,
)
from iceexplore.storage._moved import Moves
from iceexplore.storage._storage import Storage
from iceexplore.storage._temporary import TemporaryFolder, no_room
from iceexplore.storage.output._whole import path_here
from iceexplore.storage.output._writable import CommitStorage, ExistsError
from iceexplore.storage.output._writes import Write, WriteLog
from iceexplore.storage.stores._backend import Backend, Entry
from iceexplore.storage.stores._faults import not_written

__all__ = ["OverlayStorage"]

T = TypeVar("T")
# Characters that are escaped in file names, the percent sign included.
_UNSAFE = re.compile(r"[^A-Za-z0-9._=+@,~-]")
_LONGEST_NAME = 180
_ELSEWHERE = "%elsewhere"
_INSTEAD = "give overlay= a folder elsewhere"


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the overlay.

    Attributes
    ----------
    place
        The real location that the file would have in the table's storage.
    real
        Its path in the overlay's folder.
    key
        The identity of the overlay that wrote it.
    """

    location: str
    place: str
    real: str
    key: str


class _Files:
    """The files of one overlay, shared by its storages; a temporary folder is removed with the last such storage."""

    def __init__(self, folder: str | None) -> None:
        temporary: TemporaryFolder | None = None
        if folder is None:
            temporary = TemporaryFolder("overlay", "a simulation's overlay", instead=_INSTEAD)
            folder = temporary.path
        self.folder = folder
        self.is_temporary = temporary is not None
        self.identity = f"overlay:{uuid.uuid4().hex}"
        self.writes = WriteLog()
        self.lock = threading.Lock()
        self.by_location: dict[str, _File] = {}
        self.by_place: dict[str, _File] = {}
        self.by_real: dict[str, _File] = {}
        self.copied: _Files | None = None
        self._closed = False
        self._remove = None if temporary is None else temporary.remove_with(self)

    def copy(self) -> _Files:
        """Return a copy with the same files, but a separate folder for new ones. It keeps this object alive."""
        other = _Files(None)
        other.copied = self
        for file in self.all():
            other.add(file)
        for write in self.writes:
            other.writes.add(write)
        return other

    @property
    def closed(self) -> bool:
        """True if the files, or those of the overlay that this one was copied from, have been removed."""
        return self._closed or (self.copied is not None and self.copied.closed)

    def add(self, file: _File) -> None:
        """Make a file visible."""
        with self.lock:
            self.by_place[file.place] = file
            self.by_real[file.real] = file
            self.by_location[canonical(file.location)] = file

    def of(self, location: str) -> _File | None:
        """Return the file of a location in any spelling, None if there is none."""
        return self.by_location.get(canonical(location))

    def at(self, real: str) -> _File | None:
        """Return the file by its real location in the overlay or in the base, None if there is none."""
        return self.by_real.get(real) or self.by_place.get(real)

    def all(self) -> list[_File]:
        """Return every file, in the order of writing."""
        with self.lock:
            return list(self.by_real.values())

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "lock": None, "writes": None, "_remove": None}  # another process only reads the files

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, lock=threading.Lock(), writes=WriteLog())

    def close(self) -> None:
        """Remove the folder if it is temporary; a given one stays."""
        self._closed = True
        if self._remove is not None:
            self._remove()


class OverlayStorage(CommitStorage):
    """A storage with the overlay's files in front of those of the base, to which nothing is ever written.

    Parameters
    ----------
    base
        The table's storage, possibly an overlay itself.
    folder
        A local folder for the files, which must be empty or missing; it is never removed. The default is a temporary
        folder, which is removed by `close` or with the last storage that shares it.

    Attributes
    ----------
    reads
        Every read through this storage, from the overlay and from the base.
    writes
        Every file written into the overlay, by all storages that share it (see `view`).
    overlay_folder
        The folder of the overlay's files.

    Raises
    ------
    OptionError
        The folder is remote, not empty, or inside the table.
    """

    def __init__(self, base: Storage, folder: str | os.PathLike[str] | None = None) -> None:
        self._files = _open_files(base, folder)
        self._view_of(base)

    def _view_of(self, base: Storage) -> None:
        super()._view_of(base)
        self.identity = f"{self._files.identity}:{base.identity}"

    def view(self) -> OverlayStorage:
        """Return another storage on the same files with a separate log of reads, for a second writer."""
        other = object.__new__(OverlayStorage)
        other._files = self._files
        other._view_of(self.base)
        return other

    def copy(self) -> OverlayStorage:
        """Return another overlay that begins with these files; later writes to one are invisible in the other.

        New files go to a separate temporary folder; the existing files stay where they are, and closing this overlay
        removes them.
        """
        other = object.__new__(OverlayStorage)
        other._files = self._files.copy()
        other._view_of(self.base)
        return other

    @property
    def writes(self) -> WriteLog:
        """Every file written into the overlay."""
        return self._files.writes

    @property
    def overlay_folder(self) -> str:
        """The folder of the overlay's files."""
        return self._files.folder

    @property
    def moves(self) -> Moves:
        """The base's known moves, which the caller may extend."""
        self._folders.clear()
        return self.base.moves

    def locations(self) -> builtins.list[str]:
        """Return the locations of the overlay's files, in the order of writing."""
        return [f.location for f in self._files.all()]

    def has(self, location: str) -> bool:
        """Return whether a location is a file of this overlay or of one that it is based on, but not of the table."""
        if self._find(location) is not None:
            return True
        return isinstance(self.base, OverlayStorage) and self.base.has(location)

    def write(
        self, location: str, data: bytes, *, kind: str, commit: int | None = None, attempt: int | None = None
    ) -> None:
        """Write a new file, which becomes visible only when complete.

        Parameters
        ----------
        location
            The location as the table spells it. Any location is allowed, since the file is written to the overlay's
            folder instead.
        kind
            The role of the file, as in the log of reads.
        commit, attempt
            The commit and its attempt, for the log of writes.

        Raises
        ------
        ExistsError
            The location exists in the overlay or in the table.
        StorageError, AccessDeniedError, TemporaryFolderError
            The overlay is closed, or its folder cannot be written, for example because the disk is full.
        """
        if self._files.closed:
            raise StorageError(f"{location} cannot be written: the simulation was closed")
        start = time.perf_counter()
        if self._find(location) is not None or self._base_has(location):
            raise ExistsError(f"{location} already exists: files of a table are never written twice")
        real = os.path.join(self._files.folder, *self._name(location))
        file = _File(location, self._place(location), real, self._files.identity)
        try:
            os.makedirs(os.path.dirname(file.real), exist_ok=True)
            _write_new(file.real, data)
        except FileExistsError as e:
            raise ExistsError(f"{location} already exists: files of a table are never written twice") from e
        except OSError as e:
            if self._files.is_temporary:
                raise no_room(e, location, instead=_INSTEAD) from e
            raise not_written(e, location, file.real) from e
        self._files.add(file)
        self.writes.add(Write(location, file.real, kind, len(data), time.perf_counter() - start, commit, attempt))

    # Methods of Storage -----------------------------------------------------------------------------------------------

    def resolve(self, location: str) -> str:
        """Return the real location, in the overlay's folder or the base. Raises the same as the base's `resolve`."""
        file = self._find(location)
        return self.base.resolve(location) if file is None else file.real

    def unresolve(self, real: str) -> str:
        """Return the table's spelling of a real location."""
        file = self._files.by_real.get(canonical(real))
        return self.base.unresolve(real) if file is None else file.location

    def key(self, location: str) -> str:
        """Return the cache key of a file; files of the base keep the base's key, so that both share them."""
        file = self._find(location)
        return self.base.key(location) if file is None else file.key

    def folder_of(self, location: str) -> str:
        """Return the real folder to list for a file; for an overlay's file, the one where the base would have it."""
        file = self._find(location)
        return self.base.folder_of(location) if file is None else dirname(file.place)

    def find(self, real: str) -> Entry | None:
        """Return the entry at a real location, None if there is none. Raises the same errors as `read` otherwise."""
        file = self._files.at(real)
        return self.base.find(real) if file is None else super().find(file.real)

    def read_real(self, real: str, *, kind: str, most: int | None = None) -> bytes:
        """Return a whole file by its real location. Raises the same errors as `read`."""
        file = self._files.at(real)
        return super().read_real(real if file is None else file.real, kind=kind, most=most)

    def entries(self, real: str, *, recursive: bool = False, details: bool = True) -> builtins.list[Entry]:
        """Return a folder's entries, of the base and of the overlay. Raises the same errors as `read`."""
        mine: dict[str, Entry] = {}
        for file in self._files.all():
            tail = relative_to(file.place, real)
            if not tail:
                continue
            head, slash, _ = tail.partition("/")
            if slash and not recursive:
                mine.setdefault(f"{real.rstrip('/')}/{head}", Entry(f"{real.rstrip('/')}/{head}", None, is_folder=True))
            else:
                mine[file.place] = replace(self._local.stat(file.real), real=file.real)
        try:
            found = self.base.entries(real, recursive=recursive, details=details)
        except IceexploreError as e:
            if not mine or not isinstance(e, FileNotFoundError | OutsideRootsError):
                raise
            found = []
        return [*(e for e in found if e.real not in mine), *mine.values()]

    def close(self) -> None:
        """Remove the overlay's temporary folder (a given one stays) for all its storages. The base stays open."""
        self._files.close()

    # ------------------------------------------------------------------------------------------------------------------

    def _find(self, location: str) -> _File | None:
        file = self._files.of(location)
        if file is not None or not self._files.by_place:
            return file
        # The same place may be spelled differently: relative to the table, or as it was before a move.
        return self._files.by_place.get(self._place(location))

    def _place(self, location: str) -> str:
        try:
            return self.base.resolve(location)
        except OutsideRootsError:
            return canonical(location)

    def _base_has(self, location: str) -> bool:
        try:
            return self.base.exists(location)
        except (OutsideRootsError, PermissionError):
            return False  # the table's storage may not read there, so no file of the table is hidden

    def _name(self, location: str) -> builtins.list[str]:
        """Return the segments of a file's path in the overlay's folder: those of its path in the table, escaped."""
        place = canonical(location)
        tail = relative_to(place, canonical(self.base.unresolve(self.folder))) or relative_to(place, self.folder)
        if not tail:
            return [_ELSEWHERE, _digest(place), _safe(basename(place))]
        return [_safe(segment) for segment in tail.split("/")]

    def _check(self, real: str, location: str) -> None:
        if real in self._files.by_real:
            return
        if within(real, self._files.folder):
            raise OutsideRootsError(f"{location} is not a file of the overlay in {self._files.folder}")
        self.base._check(real, location)

    def _backend(self, real: str) -> Backend:
        return self._local if real in self._files.by_real else self.base._backend(real)

    def _ask(self, location: str, real: str, kind: str, ask: Callable[[], T], offset: int) -> T:
        if self._files.closed:
            raise StorageError(f"{location}: the simulation was closed and its files were removed")
        if self.base._closed:
            raise StorageError(f"{location}: the simulation's table was closed; open it again")
        return super()._ask(location, real, kind, ask, offset)


def _open_files(base: Storage, folder: str | os.PathLike[str] | None) -> _Files:
    if folder is None:
        return _Files(None)
    asked: Any = folder
    if not isinstance(asked, (str, os.PathLike)) or not isinstance(given := os.fspath(asked), str):
        raise OptionError(f"overlay={folder!r}: expected the path of a folder")
    if is_uri(given) and not is_local(canonical(check_host(given))):
        raise OptionError(f"overlay={given!r}: an overlay must be a folder on the local disk")
    real = os.path.realpath(os.path.expanduser(canonical(path_here(given))))
    if is_local(base.folder) and within(real, os.path.realpath(base.folder)):
        raise OptionError(f"overlay={given!r} is inside the table, where simulations never write")
    try:
        os.makedirs(real, exist_ok=True)
        if os.listdir(real):
            raise OptionError(f"overlay={given!r} is not empty: give an empty or a new folder")
    except OSError as e:
        raise not_written(e, given, os.path.join(real, "")) from e
    return _Files(real)


def _safe(segment: str) -> str:
    """Return a file name for a segment of a location; different segments give different names."""
    name = _UNSAFE.sub(lambda m: "".join(f"%{b:02X}" for b in m[0].encode("utf-8", "surrogatepass")), segment)
    if not name.strip("."):
        name = name.replace(".", "%2E") or "%"
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 40]}%{_digest(segment)}"
    return name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _write_new(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        try:
            file.write(data)
        except BaseException:
            os.unlink(path)
            raise
