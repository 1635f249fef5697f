"""What a layout writes through, while one commit is tried, and perhaps tried again."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, TypeVar, cast

from iceexplore.commits.model._options import LayoutOptions
from iceexplore.graph import TableState

__all__ = ["CommitWriter", "WritableStorage"]

T = TypeVar("T")


class WritableStorage(Protocol):
    """Where new files go (`iceexplore.storage.OverlayStorage`)."""

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a file that is not there yet."""


@dataclass
class CommitWriter:
    """One commit: its ids, its options, and the files that it has written so far.

    Attributes
    ----------
    base
        The state on which this attempt builds. Its metadata has what the commit changes besides files already
        (format version, schemas, specs, expressions).
    snapshot_id
        Of the new snapshot; the same in every attempt, so that what was written can be used again.
    sequence_number
        Of this attempt; 0 in v1.
    first_row_id
        The table's ``next-row-id`` in this attempt; None below v3.
    attempt
        From 1.
    names
        Makes the names of files: seeded, so that a simulation can be repeated.
    made
        What `once` has made, from attempt to attempt.
    doubts
        Why rows may be missing in the plan that an operation went by (`ScanPlan.doubts`); who commits decides.
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
        """A location for a new file: ``<table>/metadata/<uuid>-<kind><suffix>``."""
        name = uuid.UUID(int=self.names.getrandbits(128), version=4)
        return f"{self.base.metadata.location.rstrip('/')}/{folder}/{name}-{kind}{suffix}"

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a new file; ``kind`` as in the storage's log of reads."""
        self.storage.write(location, data, kind=kind)

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What ``make`` made in the first attempt that asked under this key: manifests once written are reused."""
        if key not in self.made:
            self.made[key] = make()
        return cast("T", self.made[key])
