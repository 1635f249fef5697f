"""Labs: real tables with real data, which iceexplore creates, writes and commits in a folder or a catalog."""

from __future__ import annotations

from iceexplore.labs._committer import LAB_PROPERTY, LabCommitter, layout_text
from iceexplore.labs._create_view import create_view_files
from iceexplore.labs._leftovers import (
    find_leftovers,
    leftovers_frame,
    needed_by_snapshots,
    remove_files,
    remove_unneeded,
)
from iceexplore.labs._merge import merge_rows
from iceexplore.labs._open import create_lab, open_lab
from iceexplore.labs._operations import delete_rows, engine_of, overwrite_rows, update_rows
from iceexplore.labs._row_operations import ROW_OPERATIONS
from iceexplore.labs._spark_rows import compact_on_spark
from iceexplore.labs._write import write_rows

__all__ = [
    "LAB_PROPERTY",
    "LabCommitter",
    "ROW_OPERATIONS",
    "compact_on_spark",
    "create_lab",
    "create_view_files",
    "delete_rows",
    "engine_of",
    "find_leftovers",
    "layout_text",
    "leftovers_frame",
    "merge_rows",
    "needed_by_snapshots",
    "open_lab",
    "overwrite_rows",
    "remove_files",
    "remove_unneeded",
    "update_rows",
    "write_rows",
]
