"""Read the log of a Delta table that has a V4 tree (``adaptiveMetadata``) as the metadata of an Iceberg table."""

from __future__ import annotations

from iceexplore.delta._actions import BackReference, DeltaVector, FileAction
from iceexplore.delta._document import CURRENT_SPECS, DELTA_LOG, table_document
from iceexplore.delta._log import Commit, Tree, commit_name, commit_version, commits_since
from iceexplore.delta._values import partition_arrow

__all__ = [
    "BackReference",
    "CURRENT_SPECS",
    "Commit",
    "DELTA_LOG",
    "DeltaVector",
    "FileAction",
    "Tree",
    "commit_name",
    "commit_version",
    "commits_since",
    "partition_arrow",
    "table_document",
]
