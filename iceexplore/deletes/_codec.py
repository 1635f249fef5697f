"""Decompression that stops at a limit: LZ4 frames and Zstandard (Puffin specification, "Compression codecs")."""

from __future__ import annotations

from typing import Literal

from iceexplore.errors import FormatError, UnsupportedError

__all__ = ["CODECS", "decompress"]

#: Codec name in a Puffin footer → Arrow's name. Puffin requires LZ4's frame format, which Arrow calls ``lz4``.
CODECS: dict[str, Literal["lz4", "zstd"]] = {"lz4": "lz4", "zstd": "zstd"}

_STEP = 1 << 18


def decompress(data: bytes, codec: str | None, *, limit: int, location: str, offset: int) -> bytes:
    """Return the decompressed bytes of a frame.

    Parameters
    ----------
    codec
        A key of `CODECS`, or None for bytes that are not compressed.
    limit
        Maximum number of decompressed bytes; more are an error. Not much more than ``limit`` is ever allocated.

    Raises
    ------
    FormatError
        The bytes are not a valid frame, are truncated, or decompress to more than ``limit``.
    UnsupportedError
        The codec is not in the specification.
    """
    import pyarrow as pa

    if codec is None:
        return data
    if codec not in CODECS:
        raise UnsupportedError(f"compression codec {codec!r} in {location}; Puffin files may use {', '.join(CODECS)}")
    parts: list[bytes] = []
    total = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), CODECS[codec]) as stream:
            while total <= limit and (part := stream.read(_STEP)):
                parts.append(part)
                total += len(part)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise FormatError(f"{codec} data does not decompress: {error}", location=location, offset=offset) from None
    if total > limit:
        raise FormatError(
            f"{len(data)} bytes of {codec} data decompress to more than {limit} bytes", location=location, offset=offset
        )
    return b"".join(parts)
