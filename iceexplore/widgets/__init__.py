"""Interactive views of a table, for notebooks."""

from iceexplore.widgets._commit_part import CommitLab
from iceexplore.widgets._explorer import Explorer, explore
from iceexplore.widgets._face import Face
from iceexplore.widgets._problems_part import Problems
from iceexplore.widgets._scan_part import ScanLab
from iceexplore.widgets._selection import Selection
from iceexplore.widgets._timeline_part import Timeline
from iceexplore.widgets._vectors_part import DeletionVectors

__all__ = [
    "CommitLab",
    "DeletionVectors",
    "Explorer",
    "Face",
    "Problems",
    "ScanLab",
    "Selection",
    "Timeline",
    "explore",
]
