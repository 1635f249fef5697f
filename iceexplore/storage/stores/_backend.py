"""What a place to read from must be able to do, and the local file system."""

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
    """A file or folder as a backend sees it."""

    real: str
    size: int | None
    etag: str | None = None
    modified_ms: int | None = None
    is_folder: bool = False


class Handle(Protocol):
    """A file that was opened, to be read in several places. Raises what the library beneath raises."""

    @property
    def size(self) -> int | None:
        """Its bytes, where opening it has told; None where that would take another request."""

    def read(self, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset``, from any thread; fewer where the file ends."""

    def close(self) -> None:
        """Let go of it."""


class Backend(Protocol):
    """Reads bytes of one kind of storage. Raises what the library beneath raises: `Storage` translates it."""

    @property
    def identity(self) -> str:
        """Equal for backends that show the same bytes at the same places; holds no secret."""

    def read(self, real: str, offset: int, length: int | None) -> bytes:
        """Bytes from ``offset``: all, or at most ``length``; fewer where the file ends."""

    def open(self, real: str) -> Handle:
        """A file, to be read in several places with no more requests than these reads take."""

    def stat(self, real: str) -> Entry:
        """Size and the like, of a file or a folder."""

    def list(self, real: str, recursive: bool, details: bool = True) -> list[Entry]:
        """What is in a folder (files and folders); with ``recursive`` all files under it. Follows no links.

        Without ``details`` sizes and times may be left out, where they cost a request each.
        """


class LocalBackend:
    """The local file system."""

    identity = "local"

    def read(self, real: str, offset: int, length: int | None) -> bytes:
        """Read a regular file. Its size decides what is allocated, never a length that a damaged file names."""
        # O_NONBLOCK: opening a named pipe would wait for its writer for ever.
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
        """Nothing is kept open: a read costs no request here."""
        return Ranges(self, real)

    def stat(self, real: str) -> Entry:
        """Size, and an etag of modification time and size."""
        with _possible(real):
            return _entry(real, os.stat(real))

    def list(self, real: str, recursive: bool, details: bool = True) -> list[Entry]:
        """The folder's entries; links to folders are named but not entered."""
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
                        continue  # gone since, or a link to nowhere
        return sorted(found, key=lambda e: e.real)


class Ranges:
    """A file of a backend that opens nothing: each read stands for itself."""

    size: int | None = None

    def __init__(self, backend: Backend, real: str) -> None:
        self._backend = backend
        self._real = real

    def read(self, offset: int, length: int) -> bytes:
        """As the backend reads."""
        return self._backend.read(self._real, offset, length)

    def close(self) -> None:
        """Nothing is open."""


@contextmanager
def _possible(real: str) -> Iterator[None]:
    """A name that no file can have, with a NUL, a lone surrogate or too many letters, is one that is not there."""
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
