"""The pointer to a table's current metadata file, and the two ways to publish a new metadata file.

The two ways are those of the spec: "File System Tables" (`publish_by_rename`) and "Metastore Tables"
(`publish_by_swap`).
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
        The location of the folder with the metadata files, written as in the locations of these files.
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
        """Return the location for a new metadata file.

        Parameters
        ----------
        number
            The number in the file's name, such as 3 in ``v3.metadata.json`` and ``00003-<uuid>.metadata.json``.
        names
            The random number generator for the UUID.
        codec
            The file's compression, a value of the table property ``write.metadata.compression-codec``. With ``gzip``,
            the name ends in ``.gz.metadata.json``.
        """
        end = ".gz.metadata.json" if codec.lower() == "gzip" else ".metadata.json"
        if self.by_version:
            return f"{self.folder}/v{number}{end}"
        return f"{self.folder}/{number:05d}-{uuid.UUID(int=names.getrandbits(128), version=4)}{end}"


class Publish(Protocol):
    """A way to make a metadata file the table's current one."""

    def __call__(self, files: WritableStorage, pointer: Pointer, expected: str, location: str, data: bytes) -> bool:
        """Write a metadata file and make it the current one; return False if another commit was published first.

        Parameters
        ----------
        files
            The storage to which the metadata file is written.
        pointer
            The pointer to the table's current metadata file.
        expected
            The location of the metadata file on which the commit is based. If the pointer no longer has this location,
            another commit was published in the meantime.
        location, data
            The location and the content of the new metadata file.
        """


def publish_by_rename(files: WritableStorage, pointer: Pointer, expected: str, location: str, data: bytes) -> bool:
    """Publish a commit to a file-system table, whose metadata files are named ``v<N>.metadata.json``.

    Concurrent commits try to create the same file, that of the next version. The first one succeeds; for the others,
    the result is False, and they leave no metadata file. Parameters are those of `Publish`; ``files`` must raise
    `ExistsError` if a file already exists at the location.
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
    """Publish a commit to a table in a catalog, whose metadata files are named ``<N>-<uuid>.metadata.json``.

    The metadata file is written first. Then the pointer is set to it, if the pointer still has the location
    ``expected``. If another commit has changed the pointer, the result is False, and the metadata file remains as an
    orphan file. Parameters are those of `Publish`.
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
        The location of the same folder in the table's metadata, such as ``file:///tmp/t`` for the folder ``/tmp/t``.
        The locations of new files must begin with it.
    """

    folder: Path
    location: str

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file; an existing file is never replaced.

        The data are first written to a temporary file in the same folder. This file then gets a hard link with the new
        name, which fails if a file of this name exists.

        Parameters
        ----------
        kind
            Not used; `WritableStorage` requires it.

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
