"""The pointer to a table's current metadata file, and the two ways to move it.

Spec, "File System Tables" and "Metastore Tables".
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from iceexplore.commits.model._writer import WritableStorage
from iceexplore.storage import ExistsError, write_new

__all__ = ["FolderFiles", "MetadataNames", "Pointer", "Publish", "publish_by_rename", "publish_by_swap"]


class Pointer:
    """The location of a table's current metadata file, as a catalog stores it. Shared by all writers to the table."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._lock = threading.RLock()

    @property
    def location(self) -> str:
        """The location of the current metadata file."""
        return self._location

    def swap(self, expected: str, new: str) -> bool:
        """Set the pointer to ``new`` if its location is still ``expected``; return whether the pointer was set."""
        with self._lock:
            if self._location != expected:
                return False
            self._location = new
            return True

    def swap_with(self, expected: str, make: Callable[[], str]) -> bool:
        """Create a file by calling ``make``, which returns its location, and set the pointer to this location.

        Both happen while the pointer is locked, and only if its location is still ``expected``; the result is whether
        it was set. If the pointer has moved, no file is created.
        """
        with self._lock:
            return self._location == expected and self.swap(expected, make())

    def __repr__(self) -> str:
        return f"<Pointer {self._location}>"


@dataclass(frozen=True)
class MetadataNames:
    """The naming scheme of a table's metadata files: by version (file-system tables) or with a UUID (catalogs).

    Attributes
    ----------
    folder
        The folder of the metadata files, as the table spells it.
    by_version
        True for ``v3.metadata.json`` of file-system tables, False for ``00003-<uuid>.metadata.json`` of catalogs.
    """

    folder: str
    by_version: bool

    @classmethod
    def of(cls, location: str) -> MetadataNames:
        """Return the naming scheme of this metadata file."""
        folder, _, name = location.rpartition("/")
        return cls(folder, name[:1] == "v" and name[1:].partition(".")[0].isdecimal())

    def location(self, number: int, names: Random, codec: str = "none") -> str:
        """Return the location of metadata file ``number``; ``codec`` as in ``write.metadata.compression-codec``."""
        end = ".gz.metadata.json" if codec.lower() == "gzip" else ".metadata.json"
        if self.by_version:
            return f"{self.folder}/v{number}{end}"
        return f"{self.folder}/{number:05d}-{uuid.UUID(int=names.getrandbits(128), version=4)}{end}"


class Publish(Protocol):
    """A way to make a metadata file the table's current one."""

    def __call__(self, files: WritableStorage, pointer: Pointer, expected: str, location: str, data: bytes) -> bool:
        """Publish the file; return False if another commit was published first."""


def publish_by_rename(files: WritableStorage, pointer: Pointer, expected: str, location: str, data: bytes) -> bool:
    """Publish to a file-system table: create ``v<N+1>.metadata.json``; the commit that creates it first wins.

    A losing commit leaves no metadata file. ``files`` must refuse an existing location (`ExistsError`).
    """

    def make() -> str:
        files.write(location, data, kind="metadata")
        return location

    if pointer.location != expected:
        return False
    try:
        return pointer.swap_with(expected, make)
    except ExistsError:
        return False


def publish_by_swap(files: WritableStorage, pointer: Pointer, expected: str, location: str, data: bytes) -> bool:
    """Publish to a catalog: write ``<N+1>-<uuid>.metadata.json``, then swap the pointer if it has not moved.

    A losing commit's metadata file remains as an orphan file.
    """
    files.write(location, data, kind="metadata")
    return pointer.swap(expected, location)


@dataclass(frozen=True)
class FolderFiles:
    """A real local folder to commit into: a file appears only when complete, and existing files are never replaced.

    Parameters
    ----------
    folder
        The local folder to which files are written.
    location
        The folder's location as the table spells it.
    """

    folder: Path
    location: str

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file: write a temporary file, and link the new name to it, which fails if this name exists.

        Raises
        ------
        ExistsError
            The file already exists.
        ValueError
            The location is not inside the folder.
        """
        prefix = self.location.rstrip("/") + "/"
        tail = location.removeprefix(prefix)
        if tail == location or any(part in ("", ".", "..") for part in tail.split("/")):
            raise ValueError(f"{location} is not a file under {self.location}")
        try:
            write_new(str(self.folder / tail), data)
        except FileExistsError as e:
            raise ExistsError(f"{location} already exists: files of a table are never overwritten") from e
