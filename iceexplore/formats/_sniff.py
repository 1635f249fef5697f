"""What a file is, by its first bytes: names and suffixes lie, and metadata is copied about under any name."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile

__all__ = ["HEAD_BYTES", "sniff", "sniff_file"]

#: As many bytes as `sniff` looks at.
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
#: What is read of the end of a far file: Arrow's own first read of a Parquet file, so it is read once.
_TAIL_BYTES = 64 * 1024
_DV_MAGIC = b"\xd1\xd3\x39\x64"
_BOM = b"\xef\xbb\xbf"


def sniff(head: bytes) -> str | None:
    """The format whose magic ``head`` begins with; ``json`` for an object, ``deletion-vector`` for a bare one.

    Returns
    -------
    str or None
        ``avro``, ``parquet``, ``parquet-encrypted``, ``encrypted``, ``puffin``, ``orc``, ``gzip``, ``zip``,
        ``json``, ``deletion-vector``; None for anything else.
    """
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if head[4:8] == _DV_MAGIC:  # four bytes of length come before
        return "deletion-vector"
    if head.removeprefix(_BOM).lstrip().startswith(b"{"):
        return "json"
    return None


def sniff_file(file: IO[bytes] | RangeFile) -> str | None:
    """The format of an open file, as `sniff`, or "" of an empty one; the file is at its start afterwards.

    A far file is looked at from its end first, which is read anyway of Parquet: where it ends as Parquet files do, its
    beginning costs no request.
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
