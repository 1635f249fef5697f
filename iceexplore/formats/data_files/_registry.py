"""The registry of file formats: code outside this package uses it instead of comparing the names of formats."""

from __future__ import annotations

from iceexplore.formats.data_files._avro import Avro
from iceexplore.formats.data_files._format import DataFileFormat, FileFormat
from iceexplore.formats.data_files._orc import Orc
from iceexplore.formats.data_files._parquet import Parquet

__all__ = [
    "DATA_FILE_FORMATS",
    "DEFAULT_FORMAT",
    "FILE_FORMATS",
    "PUFFIN",
    "format_named",
    "format_of_content",
    "format_of_suffix",
    "one_of_titles",
]


class Puffin(FileFormat):
    """Puffin files, which hold deletion vectors and statistics instead of rows (`iceexplore.deletes` reads them)."""

    name = "puffin"
    title = "Puffin"
    suffixes = (".puffin",)
    magic = b"PFA1"


#: The formats of data files, in the order in which messages list them. To add a format, add its class here.
DATA_FILE_FORMATS: tuple[DataFileFormat, ...] = (Parquet(), Orc(), Avro())
#: The format to use if neither a manifest entry nor the caller names one (the default of ``write.format.default``).
DEFAULT_FORMAT = DATA_FILE_FORMATS[0]
PUFFIN = Puffin()
#: The formats that a manifest entry may name.
FILE_FORMATS: tuple[FileFormat, ...] = (*DATA_FILE_FORMATS, PUFFIN)

_BY_NAME = {f.name: f for f in DATA_FILE_FORMATS}


def format_named(name: str | None) -> DataFileFormat | None:
    """Return the format of data files with this name, ignoring letter case; None if there is none."""
    return None if name is None else _BY_NAME.get(name.lower())


def format_of_content(found: str | None) -> DataFileFormat | None:
    """Return the format of a file by the result of `sniff`, encrypted or not; None for other files."""
    return None if found is None else _BY_NAME.get(found.removesuffix("-encrypted"))


def format_of_suffix(location: str) -> DataFileFormat | None:
    """Return the format of data files that a file's suffix suggests, ignoring letter case; None if it suggests none."""
    return next((f for f in DATA_FILE_FORMATS if location.lower().endswith(f.suffixes)), None)


def one_of_titles() -> str:
    """Return the formats for a message: "Parquet, ORC or Avro"."""
    *others, last = (f.title for f in DATA_FILE_FORMATS)
    return f"{', '.join(others)} or {last}"
