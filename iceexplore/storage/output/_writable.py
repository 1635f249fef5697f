"""The interface of a table's storage that commits can write to."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

from iceexplore.errors import StorageError
from iceexplore.storage._storage import Storage
from iceexplore.storage.output._writes import WriteLog

__all__ = ["CommitFiles", "CommitStorage", "ExistsError"]


class ExistsError(StorageError, FileExistsError):
    """A file cannot be written, because a file at this location exists already."""


class CommitStorage(Storage):
    """A storage that reads like its base and accepts new files. Existing files are never overwritten.

    Attributes
    ----------
    reads
        Every read through this storage.
    base
        The table's storage.
    """

    base: Storage

    def _view_of(self, base: Storage) -> None:
        """Take over the base's state, so that this storage reads as ``base`` does, with a separate log of reads."""
        self.base = base
        super().__init__(base.folder, moves=base._moves, allow=base._allow, properties=base._properties)
        self.metadata_folder = base.metadata_folder
        self.index = base.index
        self.roots = base.roots

    @property
    @abstractmethod
    def writes(self) -> WriteLog:
        """Every file written, by all storages that share this log (see `view`)."""

    @abstractmethod
    def view(self) -> Self:
        """Return another storage on the same files with a separate log of reads, for a second writer."""

    @abstractmethod
    def write(
        self, location: str, data: bytes, *, kind: str, commit: int | None = None, attempt: int | None = None
    ) -> None:
        """Write a new file, which becomes visible only when complete.

        Parameters
        ----------
        location
            The location as the table spells it.
        kind
            The role of the file, as in the log of reads.
        commit, attempt
            The commit and its attempt, for the log of writes.

        Raises
        ------
        ExistsError
            The location exists.
        StorageError, AccessDeniedError
            The file cannot be written.
        """

    def for_commit(self, commit: int, attempt: int) -> CommitFiles:
        """Return a writer whose files are logged for this commit and attempt."""
        return CommitFiles(self, commit, attempt)


@dataclass(frozen=True)
class CommitFiles:
    """The writer of one attempt of a commit (`iceexplore.commits.WritableStorage`)."""

    storage: CommitStorage
    commit: int
    attempt: int

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file. Raises the same errors as `CommitStorage.write`."""
        self.storage.write(location, data, kind=kind, commit=self.commit, attempt=self.attempt)
