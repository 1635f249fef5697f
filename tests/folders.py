"""Folders for tests that cannot use ``tmp_path``: a property test needs a new one for each example."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path

__all__ = ["fresh"]

_HOME = tempfile.TemporaryDirectory(prefix="iceexplore-tests-")  # removed when the run ends
_NUMBERS = count()


def fresh() -> Path:
    """A new, empty folder."""
    folder = Path(_HOME.name, str(next(_NUMBERS)))
    folder.mkdir()
    return folder
