"""The metadata tables."""

from __future__ import annotations

from iceexplore.inspect._by_leaf import DIRECT, ROOT, ByLeaf, LeafPlace
from iceexplore.inspect._docs import COLUMN_DOCS
from iceexplore.inspect._inspect import DEFINITIONS, Inspect
from iceexplore.inspect._leaf_rows import LeafRows
from iceexplore.inspect._metadata_table import Definition, MetadataTable
from iceexplore.inspect._partitions import PARTITION_ROWS, partition_rows_schema
from iceexplore.inspect.loose import _card  # noqa: F401  (registers the card of loose files)
from iceexplore.inspect.loose._file import LooseFile, open_file

__all__ = [
    "ByLeaf",
    "COLUMN_DOCS",
    "DEFINITIONS",
    "DIRECT",
    "Definition",
    "Inspect",
    "LeafPlace",
    "LeafRows",
    "LooseFile",
    "MetadataTable",
    "PARTITION_ROWS",
    "ROOT",
    "open_file",
    "partition_rows_schema",
]
