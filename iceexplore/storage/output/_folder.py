"""A table's own folder on the local disk, into which commits write.

Every file is whole when it is seen under its name, and on the disk when `write` returns: it is written under another
name, flushed (fsync), and linked. A link fails where the name is taken: of two writers of one name one wins, on any
local file system and on NFS ("atomic rename" of the spec's "File System Tables" would replace what is there).
"""

from __future__ import annotations

import errno
import os
import time
import uuid
from contextlib import suppress

from iceexplore.errors import OutsideRootsError, UnsupportedError
from iceexplore.storage._location import is_local, within
from iceexplore.storage._storage import Storage
from iceexplore.storage.output._writable import CommitStorage, ExistsError
from iceexplore.storage.output._writes import Write, WriteLog
from iceexplore.storage.stores._faults import not_written

__all__ = ["FolderStorage", "replace_file", "write_new"]

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class FolderStorage(CommitStorage):
    """A table's folder, read as before, and written. Nothing outside the folder is ever written.

    Parameters
    ----------
    base
        The table's storage.

    Raises
    ------
    UnsupportedError
        The table is not on the local disk.
    """

    def __init__(self, base: Storage) -> None:
        if not is_local(base.folder):
            raise UnsupportedError(
                f"{base.folder} is not on the local disk: labs are written to local folders, with or without a catalog"
            )
        self._writes = WriteLog()
        self._view_of(base)

    def _view_of(self, base: Storage) -> None:
        super()._view_of(base)
        self.identity = base.identity

    def view(self) -> FolderStorage:
        """Another storage on the same folder, with a log of reads of its own: for a second writer."""
        other = object.__new__(FolderStorage)
        other._writes = self._writes
        other._view_of(self.base)
        return other

    @property
    def writes(self) -> WriteLog:
        """Every file written through this storage and its views."""
        return self._writes

    def write(
        self, location: str, data: bytes, *, kind: str, commit: int | None = None, attempt: int | None = None
    ) -> None:
        """Write a new file, whole and flushed to the disk; see `CommitStorage.write`.

        Raises
        ------
        ExistsError
            The file is there already.
        OutsideRootsError
            The location is not in the table's folder.
        UnsupportedError
            The file system has no hard links.
        StorageError, AccessDeniedError
            It cannot be written.
        """
        start = time.perf_counter()
        real = self.resolve(location)
        folder, name = os.path.split(real)
        linked = os.path.realpath(folder) if is_local(real) else folder
        inside = is_local(real) and within(linked, os.path.realpath(self.folder))
        if not inside or name in ("", ".", ".."):
            raise OutsideRootsError(
                f"{location} leads to {os.path.join(linked, name)}: a lab writes in its own folder alone, {self.folder}"
            )
        try:
            write_new(real, data)
        except FileExistsError as e:
            raise ExistsError(f"{location} is there already: files of a table are never written twice") from e
        except OSError as e:
            if e.errno in _NO_LINKS and e.filename2 is not None:  # of the link, which alone has two names
                raise UnsupportedError(
                    f"{location} could not be written: the file system at {self.folder} has no hard links "
                    f"({e.strerror}), and without them two writers could not be told apart. Use another disk"
                ) from e
            raise not_written(e, location, real) from e
        self._writes.add(Write(location, real, kind, len(data), time.perf_counter() - start, commit, attempt))


def write_new(path: str, data: bytes) -> None:
    """Write a file that is not there yet: whole, and on the disk, or not at all.

    Raises
    ------
    FileExistsError
        There is one. Nothing is left of the attempt, short of a kill: then ``.<uuid>.tmp`` in the same folder.
    """
    folder = os.path.dirname(path)
    _make_folders(folder)
    temporary = os.path.join(folder, f".{uuid.uuid4()}.tmp")
    try:
        _write(temporary, data)
        os.link(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    _flush_folder(folder)


def replace_file(path: str, data: bytes) -> None:
    """Write a file in the place of another, in one step."""
    temporary = os.path.join(os.path.dirname(path), f".{uuid.uuid4()}.tmp")
    try:
        _write(temporary, data)
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make_folders(folder: str) -> None:
    """Make a folder and those above it; each new name is flushed to the disk."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(one)
        _flush_folder(os.path.dirname(one))


def _flush_folder(folder: str) -> None:
    """A new name is on the disk when its folder is (Windows flushes folders by itself, and cannot open them)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems have no such thing
            raise
    finally:
        os.close(descriptor)
