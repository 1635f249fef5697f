"""The protocol for the destination of new data files, which is a commit or a Spark worker."""

from __future__ import annotations

from typing import Protocol

__all__ = ["FileSink"]


class FileSink(Protocol):
    """A destination that provides locations for new files, and writes the files."""

    def new_location(self, kind: str, suffix: str, *, folder: str = "metadata") -> str:
        """Return a location for a new file below the table's folder."""

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        """Write a file that does not exist yet."""
