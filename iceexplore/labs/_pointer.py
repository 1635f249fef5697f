"""The pointer of a table in a folder: its newest ``v<N>.metadata.json`` (spec, "File System Tables")."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from iceexplore.commits import Pointer
from iceexplore.errors import FormatError, MetadataNotFoundError
from iceexplore.metadata import parse_version
from iceexplore.storage import FolderStorage, replace_file

__all__ = ["FolderPointer", "HINT", "numbered"]

HINT = "version-hint.text"


class FolderPointer(Pointer):
    """The pointer of a table in a folder: a commit creates ``v<N+1>.metadata.json``; the version hint is only advisory.

    To find the newest file, the folder is listed: counting up from a known number would stop at a gap where another
    engine has removed old metadata files.
    """

    def __init__(self, storage: FolderStorage, location: str) -> None:
        super().__init__(location)
        self._storage = storage
        self._spelled = location.rpartition("/")[0]
        self.folder = os.path.dirname(storage.resolve(location))

    @property
    def location(self) -> str:
        """The location of the newest metadata file.

        Raises
        ------
        MetadataNotFoundError
            There is no metadata file any more.
        FormatError
            Two metadata files have the newest number.
        """
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            names = []
        found = [(number, name) for name in names if (number := numbered(name)) is not None]
        if not found:
            raise MetadataNotFoundError(f"{self.folder} no longer has a v<N>.metadata.json: the table was removed")
        newest = max(found)
        if [n for n, _ in found].count(newest[0]) > 1:
            twice = " and ".join(sorted(name for n, name in found if n == newest[0]))
            raise FormatError(
                f"{twice} have the same number: it is ambiguous which one is current, so no commit is possible; "
                "remove the one that is not current",
                location=self._spelled,
                code="metadata-invalid",
            )
        return f"{self._spelled}/{newest[1]}"

    def swap(self, expected: str, new: str) -> bool:
        """Refuse: a folder's pointer moves only by creating a file, with `swap_with`."""
        raise AssertionError("a folder's pointer moves only by creating a file: use swap_with")

    def swap_with(self, expected: str, make: Callable[[], str]) -> bool:
        """Create the next metadata file if ``expected`` is the newest; return whether it was.

        Raises
        ------
        ExistsError
            Another commit has created the next metadata file.
        """
        if self.location != expected:
            return False
        make()
        self._write_hint()
        return True

    def _write_hint(self) -> None:
        """Update the version hint. The commit is already made, so errors are ignored."""
        with suppress(OSError, MetadataNotFoundError, FormatError):
            while True:
                number = numbered(self.location.rpartition("/")[2])
                replace_file(os.path.join(self.folder, HINT), str(number).encode())
                # With two writers, the slower one must not overwrite the newer number with an older one.
                if numbered(self.location.rpartition("/")[2]) == number:
                    return

    def __repr__(self) -> str:
        return f"<FolderPointer {self.folder}>"


def numbered(name: str) -> int | None:
    """Return the number of ``v3.metadata.json`` or ``v3.gz.metadata.json``; None for any other name."""
    is_metadata = name.endswith((".metadata.json", ".metadata.json.gz"))
    return parse_version(name) if is_metadata and name[:1] == "v" and name[1:].partition(".")[0].isdecimal() else None
