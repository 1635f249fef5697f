"""Folders and files of tests: new folders for examples of a property test, and local files by their location."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

from iceexplore.storage import canonical

__all__ = ["fresh", "local"]

_HOME = tempfile.TemporaryDirectory(prefix="iceexplore-tests-")  # removed when the run ends
_NUMBERS = count()


def fresh() -> Path:
    """A new, empty folder."""
    folder = Path(_HOME.name, str(next(_NUMBERS)))
    folder.mkdir()
    return folder


def local(location: str) -> Path:
    """Return the path of a file that a table spells as a path or as a ``file:`` URI."""
    return Path(canonical(location))
