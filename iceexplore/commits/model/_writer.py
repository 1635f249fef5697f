"""The writer of one commit: it names and writes files, and keeps what retries can reuse."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, TypeVar, cast

from iceexplore.commits.model._options import LayoutOptions
from iceexplore.graph import TableState
from iceexplore.storage import canonical

__all__ = ["CommitWriter", "WritableStorage", "metadata_folder"]

T = TypeVar("T")


def metadata_folder(state: TableState) -> str:
    """Return the folder for new manifests and manifest lists, as the table spells it.

    This is ``write.metadata.path`` if the table's metadata file is in that folder, where Iceberg's catalogs place it.
    Otherwise it is ``metadata`` below the table's location: file-system tables ignore the property.
    """
    given = state.metadata.properties.get("write.metadata.path")
    if given and canonical(given) == canonical(state.metadata_location.rpartition("/")[0]):
        return given.rstrip("/")
    return f"{state.metadata.location.rstrip('/')}/metadata"


class WritableStorage(Protocol):
    """The storage to which new files are written (`iceexplore.storage.OverlayStorage`)."""

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a file that does not exist yet."""


@dataclass
class CommitWriter:
    """The state of one commit across its attempts: ids, options, and the files written so far.

    Attributes
    ----------
    base
        The state that this attempt builds on. Its metadata already includes the commit's other changes (format
        version, schemas, specs, expressions).
    snapshot_id
        The new snapshot's id; the same in every attempt, so that manifests can be reused.
    sequence_number
        The sequence number of this attempt; 0 in v1.
    first_row_id
        The table's ``next-row-id`` in this attempt; None below v3.
    attempt
        The number of the attempt, from 1.
    names
        Generates file names; seeded, so that a simulation can be repeated.
    made
        Results of `once`, kept between attempts.
    doubts
        Reasons why the plan that the operation used may miss rows (`ScanPlan.doubts`); the committer decides what to
        do.
    """

    storage: WritableStorage
    base: TableState
    options: LayoutOptions
    snapshot_id: int
    sequence_number: int
    first_row_id: int | None
    timestamp_ms: int
    attempt: int
    names: Random
    made: dict[str, object] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def new_location(self, kind: str, suffix: str, *, folder: str = "metadata") -> str:
        """Return a location for a new file: ``<folder>/<uuid>-<kind><suffix>``.

        Parameters
        ----------
        folder
            A folder below the table's location; ``"metadata"`` is the one that `metadata_folder` returns.
        """
        name = uuid.UUID(int=self.names.getrandbits(128), version=4)
        place = f"{self.base.metadata.location.rstrip('/')}/{folder}"
        if folder == "metadata":
            place = metadata_folder(self.base)
        return f"{place}/{name}-{kind}{suffix}"

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file; ``kind`` as in the storage's read log."""
        self.storage.write(location, data, kind=kind)

    def once(self, key: str, make: Callable[[], T]) -> T:
        """Return the result of ``make``, which is called only once per key, so that retries reuse manifests."""
        if key not in self.made:
            self.made[key] = make()
        return cast("T", self.made[key])
