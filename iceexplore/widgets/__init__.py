"""Interactive displays of tables and views, for notebooks."""

from iceexplore.errors import moved_names
from iceexplore.widgets._explorer import Explorer, explore
from iceexplore.widgets.commit_lab._panel import CommitLab
from iceexplore.widgets.core._selection import Selection
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.deletes._panel import DeletionVectors
from iceexplore.widgets.file_map._panel import FileMap
from iceexplore.widgets.problems._panel import Problems
from iceexplore.widgets.rows._panel import Rows
from iceexplore.widgets.scan_lab._lab import ScanLab
from iceexplore.widgets.timeline._panel import Timeline
from iceexplore.widgets.view_explorer._explorer import ViewExplorer, explore_view

__all__ = [
    "CommitLab",
    "DeletionVectors",
    "Explorer",
    "FileMap",
    "Problems",
    "Rows",
    "ScanLab",
    "Selection",
    "TableWidget",
    "Timeline",
    "ViewExplorer",
    "explore",
    "explore_view",
]

__getattr__ = moved_names(
    __name__,
    {
        "Face": "iceexplore.widgets:TableWidget",
    },
)
