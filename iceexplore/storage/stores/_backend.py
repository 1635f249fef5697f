"""The interface of storage backends, and the local file system."""

from __future__ import annotations

import errno
import os
import stat as modes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Backend", "Entry", "Handle", "LocalBackend", "Ranges"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder as listed by a backend."""

    real: str
    size: int | None
    etag: str | None = None
    modified_ms: int | None = None
    is_folder: bool = False


class Handle(Protocol):
    """An open file for several ranged reads. Raises the underlying library's errors."""

    @property
    def size(self) -> int | None:
        """The file's size in bytes if opening has shown it; None if a further request would be needed."""

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``, or fewer if the file ends before; callable from any thread."""

    def close(self) -> None:
        """Close the file."""


class Backend(Protocol):
    """A kind of storage. Raises the underlying library's errors, which `Storage` translates."""

    @property
    def identity(self) -> str:
        """A text that is equal for backends with the same bytes at the same locations; it contains no secret."""

    def read(self, real: str, offset: int, length: int | None) -> bytes:
        """Return bytes from ``offset``: all, or ``length`` of them; fewer if the file ends before."""

    def open(self, real: str) -> Handle:
        """Open a file for several reads, with as few requests as possible besides those reads."""

    def stat(self, real: str) -> Entry:
        """Return size, etag and time of a file, or a folder's entry."""

    def list(self, real: str, recursive: bool, details: bool = True) -> list[Entry]:
        """Return a folder's files and folders; with ``recursive`` all files under it. Links are not followed.

        Without ``details``, sizes and times may be missing if each would cost a request.
        """


class LocalBackend:
    """The local file system."""

    identity = "local"

    def read(self, real: str, offset: int, length: int | None) -> bytes:
        """Read a regular file. Memory is allocated by the file's size, never by a length from damaged metadata."""
        # O_NONBLOCK: opening a named pipe would wait forever for its writer.
        with _possible(real):
            descriptor = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(descriptor)
            if modes.S_ISDIR(status.st_mode):
                raise IsADirectoryError(21, "is a folder", real)
            if not modes.S_ISREG(status.st_mode):
                raise OSError(22, "is not a regular file", real)
            end = status.st_size if length is None else min(status.st_size, offset + length)
            if offset >= end:
                return b""
            os.lseek(descriptor, offset, os.SEEK_SET)
            parts: list[bytes] = []
            left = end - offset
            while left:
                part = os.read(descriptor, min(left, 1 << 30))
                if not part:
                    break
                parts.append(part)
                left -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            os.close(descriptor)

    def open(self, real: str) -> Handle:
        """Return a handle that opens the file for each read: local reads cost no request."""
        return Ranges(self, real)

    def stat(self, real: str) -> Entry:
        """Return the size, and an etag from modification time and size."""
        with _possible(real):
            return _entry(real, os.stat(real))

    def list(self, real: str, recursive: bool, details: bool = True) -> list[Entry]:
        """Return the folder's entries; links to folders are listed but not followed."""
        found: list[Entry] = []
        waiting = [real]
        while waiting:
            folder = waiting.pop()
            with _possible(folder), os.scandir(folder) as entries:
                for item in entries:
                    try:
                        is_folder = item.is_dir(follow_symlinks=False)
                        if is_folder and recursive:
                            waiting.append(item.path)
                        elif is_folder:
                            found.append(Entry(item.path, None, is_folder=True))
                        elif details or item.is_symlink():
                            found.append(_entry(item.path, item.stat()))
                        else:
                            found.append(Entry(item.path, None))
                    except FileNotFoundError:
                        continue  # removed meanwhile, or a broken link
        return sorted(found, key=lambda e: e.real)


class Ranges:
    """A file of a backend without open files: each read is a separate request."""

    size: int | None = None

    def __init__(self, backend: Backend, real: str) -> None:
        self._backend = backend
        self._real = real

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes that the backend reads."""
        return self._backend.read(self._real, offset, length)

    def close(self) -> None:
        """Do nothing: no file is open."""


@contextmanager
def _possible(real: str) -> Iterator[None]:
    """Treat an invalid file name (a NUL, a lone surrogate, too long) as a missing file."""
    try:
        yield
    except (ValueError, OSError) as e:
        if isinstance(e, OSError) and e.errno != errno.ENAMETOOLONG:
            raise
        raise FileNotFoundError(errno.ENOENT, "no file can have this name", real) from e


def _entry(real: str, status: os.stat_result) -> Entry:
    if modes.S_ISDIR(status.st_mode):
        return Entry(real, None, is_folder=True)
    return Entry(real, status.st_size, f"{status.st_mtime_ns:x}-{status.st_size:x}", status.st_mtime_ns // 1_000_000)
