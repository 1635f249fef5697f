"""A table's storage into which commits may write."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

from iceexplore.errors import StorageError
from iceexplore.storage._storage import Storage
from iceexplore.storage.output._writes import WriteLog

__all__ = ["CommitFiles", "CommitStorage", "ExistsError"]


class ExistsError(StorageError, FileExistsError):
    """A file that was to be written anew is there already."""


class CommitStorage(Storage):
    """Reads what another storage reads, and takes new files. No file is ever written twice.

    Attributes
    ----------
    reads
        What was read through this storage.
    base
        The table's storage.
    """

    base: Storage

    def _view_of(self, base: Storage) -> None:
        """Read as ``base`` does, with a log of reads of its own."""
        self.base = base
        super().__init__(base.folder, moves=base._moves, allow=base._allow, properties=base._properties)
        self.metadata_folder = base.metadata_folder
        self.index = base.index
        self.roots = base.roots

    @property
    @abstractmethod
    def writes(self) -> WriteLog:
        """Every file written, by all storages that share it (see `view`)."""

    @abstractmethod
    def view(self) -> Self:
        """Another storage on the same files, with a log of reads of its own: for a second writer."""

    @abstractmethod
    def write(
        self, location: str, data: bytes, *, kind: str, commit: int | None = None, attempt: int | None = None
    ) -> None:
        """Write a new file: whole, or it is not seen at all.

        Parameters
        ----------
        location
            As the table is to spell it.
        kind
            As in the log of reads.
        commit, attempt
            For the log.

        Raises
        ------
        ExistsError
            There is a file of this location.
        StorageError, AccessDeniedError
            It cannot be written.
        """

    def for_commit(self, commit: int, attempt: int) -> CommitFiles:
        """A writer whose files are logged as this commit's."""
        return CommitFiles(self, commit, attempt)


@dataclass(frozen=True)
class CommitFiles:
    """Where one attempt of one commit writes (`iceexplore.commits.WritableStorage`)."""

    storage: CommitStorage
    commit: int
    attempt: int

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file. Raises as `CommitStorage.write`."""
        self.storage.write(location, data, kind=kind, commit=self.commit, attempt=self.attempt)
