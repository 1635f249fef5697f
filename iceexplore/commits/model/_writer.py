"""Define the writer of a commit, which names and writes new files, and keeps the results that retries can reuse."""

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
    """Return the location of the folder in which commits create manifests, manifest lists and similar files.

    This is the folder that the table property ``write.metadata.path`` names, if the table's current metadata file is in
    it. In all other cases it is the folder ``metadata`` below the table's location, even if the property is set:
    catalogs put metadata files into the folder of the property, but tables without a catalog ignore the property.
    """
    given = state.metadata.properties.get("write.metadata.path")
    if given and canonical(given) == canonical(state.metadata_location.rpartition("/")[0]):
        return given.rstrip("/")
    return f"{state.metadata.location.rstrip('/')}/metadata"


class WritableStorage(Protocol):
    """A storage to which new files can be written, such as `iceexplore.storage.OverlayStorage`."""

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file; no file may exist at this location yet."""


@dataclass
class CommitWriter:
    """What one commit needs in all attempts: ids, options, a storage for new files, and results that retries reuse.

    Attributes
    ----------
    storage
        The storage to which the current attempt writes new files.
    base
        The state of the table that this attempt builds on. Its metadata already includes the commit's changes to the
        format version, schemas, specs and expressions.
    options
        The options for the layout of new manifests.
    snapshot_id
        The new snapshot's id; the same in every attempt, so that manifests can be reused.
    sequence_number
        The sequence number of this attempt; 0 in v1.
    first_row_id
        The table's ``next-row-id`` in this attempt; None below v3.
    timestamp_ms
        The new snapshot's timestamp in this attempt, in milliseconds since the epoch.
    attempt
        The number of the current attempt, counted from 1.
    names
        A seeded random generator for file names, so that a repeated simulation creates files with the same names.
    made
        The results that `once` keeps from one attempt to the next, by the key passed to it.
    doubts
        Reasons why the scan plan that the operation used may miss rows (`ScanPlan.doubts`); the code that runs the
        commit decides what to do about them.
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
        kind
            A word for the file's content, such as ``"root"`` or ``"deletes"``.
        suffix
            The file extension, such as ``".avro"``.
        folder
            A folder below the table's location; for ``"metadata"``, the folder that `metadata_folder` returns is used.
        """
        name = uuid.UUID(int=self.names.getrandbits(128), version=4)
        place = f"{self.base.metadata.location.rstrip('/')}/{folder}"
        if folder == "metadata":
            place = metadata_folder(self.base)
        return f"{place}/{name}-{kind}{suffix}"

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file; ``kind`` names its type for the storage, such as ``"manifest"`` or ``"puffin"``."""
        self.storage.write(location, data, kind=kind)

    def once(self, key: str, make: Callable[[], T]) -> T:
        """Return the result of ``make()``, which is called only if no earlier call had the same key.

        Later calls with the key return the stored result, also in later attempts of the commit. If the result is a new
        file, a retry thus reuses this file instead of creating another one.
        """
        if key not in self.made:
            self.made[key] = make()
        return cast("T", self.made[key])
