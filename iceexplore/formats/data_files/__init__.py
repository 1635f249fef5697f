"""One class per format of data files, and the registry of these classes."""

from __future__ import annotations

from iceexplore.formats.data_files._avro import Avro
from iceexplore.formats.data_files._described import Described, Details, Shape
from iceexplore.formats.data_files._facts import FileFacts
from iceexplore.formats.data_files._format import DataFileFormat, FileFormat, cannot_rewrite
from iceexplore.formats.data_files._orc import Orc
from iceexplore.formats.data_files._parquet import Parquet
from iceexplore.formats.data_files._paths import PathRewrite
from iceexplore.formats.data_files._reading import ColumnRequest, CountedRows, DataFile, Rows
from iceexplore.formats.data_files._registry import (
    DATA_FILE_FORMATS,
    DEFAULT_FORMAT,
    FILE_FORMATS,
    PUFFIN,
    format_named,
    format_of_content,
    format_of_suffix,
    one_of_titles,
)

__all__ = [
    "Avro",
    "ColumnRequest",
    "CountedRows",
    "DATA_FILE_FORMATS",
    "DEFAULT_FORMAT",
    "DataFile",
    "DataFileFormat",
    "Described",
    "Details",
    "FILE_FORMATS",
    "FileFacts",
    "FileFormat",
    "Orc",
    "PUFFIN",
    "Parquet",
    "PathRewrite",
    "Rows",
    "Shape",
    "cannot_rewrite",
    "format_named",
    "format_of_content",
    "format_of_suffix",
    "one_of_titles",
]
