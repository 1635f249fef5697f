"""Detect a file's format by its first bytes: names and suffixes are unreliable."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile

__all__ = ["HEAD_BYTES", "sniff", "sniff_file"]

#: The number of bytes that `sniff` needs.
HEAD_BYTES = 64

_MAGIC = {
    b"Obj\x01": "avro",
    b"PAR1": "parquet",
    b"PARE": "parquet-encrypted",
    b"PFA1": "puffin",
    b"AGS1": "encrypted",  # AES GCM stream (Iceberg's gcm-stream-spec)
    b"ORC": "orc",
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
}
#: Bytes read from the end of a remote file: the same as Arrow's first read of a Parquet file, so it is read once.
_TAIL_BYTES = 64 * 1024
_DV_MAGIC = b"\xd1\xd3\x39\x64"
_BOM = b"\xef\xbb\xbf"


def sniff(head: bytes) -> str | None:
    """Return the format of a file by its first bytes, None if unknown.

    Returns
    -------
    str or None
        ``avro``, ``parquet``, ``parquet-encrypted``, ``encrypted``, ``puffin``, ``orc``, ``gzip``, ``zip``,
        ``json`` (an object), ``deletion-vector`` (a bare one); None for anything else.
    """
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

    For a remote file the end is read first, which Parquet needs anyway: where it ends like a Parquet file, its
    beginning
    costs no request.
    """
    found: str | None = None
    if getattr(file, "far", False):
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read(_TAIL_BYTES)
        found = {b"PAR1": "parquet", b"PARE": "parquet-encrypted"}.get(tail[-4:]) if size > _TAIL_BYTES else None
    if found is None:
        file.seek(0)
        head = file.read(HEAD_BYTES)
        found = sniff(head) if head else ""
    file.seek(0)
    return found
