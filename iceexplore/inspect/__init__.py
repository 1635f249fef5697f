"""The metadata tables."""

from __future__ import annotations

from iceexplore.inspect._inspect import DEFINITIONS, Inspect
from iceexplore.inspect._loose import LooseFile, open_file
from iceexplore.inspect._metadata_table import Definition, MetadataTable

__all__ = ["DEFINITIONS", "Definition", "Inspect", "LooseFile", "MetadataTable", "open_file"]
