"""The metadata tables."""

from __future__ import annotations

from iceexplore.inspect._by_leaf import DIRECT, ROOT, ByLeaf, LeafPlace
from iceexplore.inspect._docs import COLUMN_DOCS
from iceexplore.inspect._essentials import partition_texts, tuple_texts
from iceexplore.inspect._inspect import DEFINITIONS, Inspect
from iceexplore.inspect._leaf_rows import LeafRows
from iceexplore.inspect._metadata_table import Definition, FrameTable, MetadataTable
from iceexplore.inspect._partitions import PARTITION_ROWS, partition_rows_schema
from iceexplore.inspect.loose import _card  # noqa: F401  (registers the card of loose files)
from iceexplore.inspect.loose._file import LooseFile, open_file, open_udf
from iceexplore.inspect.view_tables._view_inspect import ViewInspect

__all__ = [
    "ByLeaf",
    "COLUMN_DOCS",
    "DEFINITIONS",
    "DIRECT",
    "Definition",
    "FrameTable",
    "Inspect",
    "LeafPlace",
    "LeafRows",
    "LooseFile",
    "MetadataTable",
    "PARTITION_ROWS",
    "ROOT",
    "ViewInspect",
    "open_file",
    "open_udf",
    "partition_rows_schema",
    "partition_texts",
    "tuple_texts",
]
