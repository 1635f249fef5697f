"""Where new files go, for whatever writes data files: a commit, or a worker of Spark's."""

from __future__ import annotations

from typing import Protocol

__all__ = ["FileSink"]


class FileSink(Protocol):
    """Names new files and takes their bytes."""

    def new_location(self, kind: str, suffix: str, *, folder: str = "metadata") -> str:
        """Return a location for a new file below the table's folder."""

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a file that does not exist yet."""
