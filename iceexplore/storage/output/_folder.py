"""A table's folder on the local disk, to which commits write.

A file appears under its name only when complete, and is on the disk when `write` returns: it is written under a
temporary name, flushed (fsync), and then linked. Linking fails if the name exists, so of two writers of the same name
only one wins, on any local file system and on NFS (the "atomic rename" of the spec's "File System Tables" would replace
the existing file).
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
    """A storage that can also write new files, but only inside the table's folder.

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
        """Return another storage on the same folder with a separate log of reads, for a second writer."""
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
            The file exists.
        OutsideRootsError
            The location is not in the table's folder.
        UnsupportedError
            The file system has no hard links.
        StorageError, AccessDeniedError
            The file cannot be written.
        """
        start = time.perf_counter()
        real = self.resolve(location)
        folder, name = os.path.split(real)
        linked = os.path.realpath(folder) if is_local(real) else folder
        inside = is_local(real) and within(linked, os.path.realpath(self.folder))
        if not inside or name in ("", ".", ".."):
            raise OutsideRootsError(
                f"{location} leads to {os.path.join(linked, name)}: a lab writes only in its own folder, {self.folder}"
            )
        try:
            write_new(real, data)
        except FileExistsError as e:
            raise ExistsError(f"{location} already exists: files of a table are never written twice") from e
        except OSError as e:
            if e.errno in _NO_LINKS and e.filename2 is not None:  # raised by os.link, the only call with two file names
                raise UnsupportedError(
                    f"{location} could not be written: the file system at {self.folder} has no hard links "
                    f"({e.strerror}), which are needed to detect a second writer. Use another disk"
                ) from e
            raise not_written(e, location, real) from e
        self._writes.add(Write(location, real, kind, len(data), time.perf_counter() - start, commit, attempt))


def write_new(path: str, data: bytes) -> None:
    """Write a new file and flush it to the disk, completely or not at all.

    Only a killed process leaves something behind: ``.<uuid>.tmp`` in the same folder.

    Raises
    ------
    FileExistsError
        The file exists.
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
    """Replace a file atomically."""
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
    """Create a folder and its missing parents; flush each new name to the disk."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(one)
        _flush_folder(os.path.dirname(one))


def _flush_folder(folder: str) -> None:
    """Flush a folder, so that new names in it are on the disk (Windows does so itself, and cannot open folders)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported by some network file systems
            raise
    finally:
        os.close(descriptor)
