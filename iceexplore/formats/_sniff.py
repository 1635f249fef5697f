"""Detect a file's format by its first bytes: names and suffixes are unreliable."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats.data_files import (
    DATA_FILE_FORMATS,
    FILE_FORMATS,
    DataFileFormat,
    format_named,
    one_of_titles,
)

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile

__all__ = ["ENCRYPTED", "HEAD_BYTES", "data_file_format", "empty_file", "sniff", "sniff_file", "unknown_content"]

#: The number of bytes that `sniff` needs.
HEAD_BYTES = 64

_ENCRYPTED_MAGIC = {f.encrypted_magic: f"{f.name}-encrypted" for f in DATA_FILE_FORMATS if f.encrypted_magic}
_MAGIC = {
    **_ENCRYPTED_MAGIC,
    b"AGS1": "encrypted",  # AES GCM stream (Iceberg's gcm-stream-spec)
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
}
#: Results of `sniff` for encrypted files.
ENCRYPTED = frozenset(name for name in _MAGIC.values() if name.endswith("encrypted"))
#: Bytes at the end of a file → the result of `sniff` for this file.
_AT_END = {f.magic: f.name for f in DATA_FILE_FORMATS if f.magic_at_end} | _ENCRYPTED_MAGIC
#: Number of bytes read from the end of a remote file. Arrow first reads the same range of a Parquet file, so it is
#: fetched only once.
_TAIL_BYTES = 64 * 1024
_DV_MAGIC = b"\xd1\xd3\x39\x64"
_BOM = b"\xef\xbb\xbf"


def sniff(head: bytes) -> str | None:
    """Return the format of a file by its first bytes, None if unknown.

    Returns
    -------
    str or None
        The name of a format in `FILE_FORMATS` (``parquet``, ``orc``, ``avro``, ``puffin``), ``parquet-encrypted``,
        ``encrypted``, ``gzip``, ``zip``, ``json`` (an object), ``deletion-vector`` (one that is not in a Puffin file);
        None for anything else.
    """
    for known in FILE_FORMATS:
        if known.begins(head):
            return known.name
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if head[4:8] == _DV_MAGIC:  # after four bytes of length
        return "deletion-vector"
    if head.removeprefix(_BOM).lstrip().startswith(b"{"):
        return "json"
    return None


def sniff_file(file: IO[bytes] | RangeFile) -> str | None:
    """Return the format of an open file as `sniff` does, or "" if it is empty; rewind the file to its start.

    For a remote file the end is read first, which Parquet needs anyway: if it ends like a Parquet file, its beginning
    is not requested.
    """
    found: str | None = None
    if getattr(file, "far", False):
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read(_TAIL_BYTES)
        if size > _TAIL_BYTES:
            found = next((name for magic, name in _AT_END.items() if tail.endswith(magic)), None)
    if found is None:
        file.seek(0)
        head = file.read(HEAD_BYTES)
        found = sniff(head) if head else ""
    file.seek(0)
    return found


def data_file_format(file: IO[bytes] | RangeFile, location: str, stated: str | None = None) -> DataFileFormat:
    """Return the format of an open data or delete file by its content; rewind the file to its start.

    Parameters
    ----------
    stated
        The format according to the manifest, for the error if the file is not in a known format.

    Raises
    ------
    FormatError
        The file is empty, or is not in a format of data files.
    UnsupportedError
        The file is encrypted.
    """
    found = sniff_file(file)
    if found == "":  # probably after a failed upload
        raise empty_file(location)
    if found in ENCRYPTED:
        raise UnsupportedError(f"{location} is encrypted, and its key is not available")
    known = format_named(found)
    if known is None:
        raise unknown_content(location, found, stated)
    return known


def empty_file(location: str) -> FormatError:
    """Return the error for a file without content."""
    return FormatError("the file is empty", location=location, offset=0, code="file-truncated")


def unknown_content(location: str, found: str | None, stated: str | None = None) -> FormatError:
    """Return the error for a file that is not in a format of data files; arguments as for `data_file_format`."""
    claim = f", although its manifest entry states the format {stated}" if stated else ""
    text = f"not {one_of_titles()}, but {found or 'unknown content'}{claim}"
    return FormatError(text, location=location, offset=0)
