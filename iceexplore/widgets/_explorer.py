"""The explorer: all parts in one widget."""

from __future__ import annotations

from typing import Any

from iceexplore.widgets._assets import script
from iceexplore.widgets._detail_part import DetailPart
from iceexplore.widgets._timeline_part import TimelinePart

__all__ = ["Explorer", "explore"]


class Explorer(TimelinePart, DetailPart):
    """A table to walk through, in a notebook.

    State is in plain traits, so a view can be made from them without Python, and a notebook can set them:
    ``w.select("root:17", snapshot=17)``. Reading happens in a thread; `settle` waits for it.
    """

    _esm = script("explorer.explorerView")


def explore(table: Any) -> Explorer:
    """The explorer of a table, or of a table's state."""
    return Explorer(table)
