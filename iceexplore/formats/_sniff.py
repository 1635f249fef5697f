"""What a file is, by its first bytes: names and suffixes lie, and metadata is copied about under any name."""

from __future__ import annotations

__all__ = ["HEAD_BYTES", "sniff"]

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
