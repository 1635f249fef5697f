"""The pointer to a table's current metadata file, and the two ways to move it on (spec, "File System Tables" and
"Metastore Tables").
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
    """What a catalog holds of a table: the location of its current metadata file. Shared by all who commit to it."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._lock = threading.RLock()

    @property
    def location(self) -> str:
        """The current metadata file."""
        return self._location

    def swap(self, expected: str, new: str) -> bool:
        """Point at ``new`` if the pointer is still at ``expected``: whether it was."""
        with self._lock:
            if self._location != expected:
                return False
            self._location = new
            return True

    def swap_with(self, expected: str, make: Callable[[], str]) -> bool:
        """As `swap`, with the new file made while nobody else can move the pointer."""
        with self._lock:
            return self.swap(expected, make())

    def __repr__(self) -> str:
        return f"<Pointer {self._location}>"


@dataclass(frozen=True)
class MetadataNames:
    """How a table names its metadata files.

    Attributes
    ----------
    folder
        Where they stand, as the table spells it.
    by_version
        ``v3.metadata.json`` of file-system tables; otherwise ``00003-<uuid>.metadata.json`` of catalogs.
    """

    folder: str
    by_version: bool

    @classmethod
    def of(cls, location: str) -> MetadataNames:
        """The way in which this metadata file is named."""
        folder, _, name = location.rpartition("/")
        return cls(folder, name[:1] == "v" and name[1:].partition(".")[0].isdecimal())

    def location(self, number: int, names: Random, codec: str = "none") -> str:
        """The location of metadata file ``number``; ``codec`` as in ``write.metadata.compression-codec``."""
        end = ".gz.metadata.json" if codec.lower() == "gzip" else ".metadata.json"
        if self.by_version:
            return f"{self.folder}/v{number}{end}"
        return f"{self.folder}/{number:05d}-{uuid.UUID(int=names.getrandbits(128), version=4)}{end}"


class Publish(Protocol):
    """A way to make a metadata file the table's current one."""

    def __call__(self, files: WritableStorage, pointer: Pointer, expected: str, location: str, data: bytes) -> bool:
        """Whether the file is current now; false if another commit came first."""


def publish_by_rename(files: WritableStorage, pointer: Pointer, expected: str, location: str, data: bytes) -> bool:
    """File-system tables: the file ``v<N+1>.metadata.json`` is made where there is none; whoever makes it has won.

    The loser leaves nothing. ``files`` must refuse a location that is there already (`ExistsError`).
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
    """Catalogs: ``<N+1>-<uuid>.metadata.json`` is written, then the pointer is swapped if it is still where it was.

    The loser's file stays, an orphan.
    """
    files.write(location, data, kind="metadata")
    return pointer.swap(expected, location)


@dataclass(frozen=True)
class FolderFiles:
    """A real local folder to commit into: each file is whole when it is seen, and none is ever replaced.

    Parameters
    ----------
    folder
        Where the files go.
    location
        How the table spells that folder.
    """

    folder: Path
    location: str

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file, by a hard link from a temporary one: the step that fails if the name is taken.

        Raises
        ------
        ExistsError
            The file is there already.
        ValueError
            The location is not one in the folder.
        """
        prefix = self.location.rstrip("/") + "/"
        tail = location.removeprefix(prefix)
        if tail == location or any(part in ("", ".", "..") for part in tail.split("/")):
            raise ValueError(f"{location} is not a file under {self.location}")
        try:
            write_new(str(self.folder / tail), data)
        except FileExistsError as e:
            raise ExistsError(f"{location} is there already: files of a table are never written twice") from e
