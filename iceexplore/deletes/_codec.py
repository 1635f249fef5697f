"""Decompression that stops at a limit: LZ4 frames and Zstandard (Puffin specification, "Compression codecs")."""

from __future__ import annotations

from iceexplore.errors import FormatError, UnsupportedError

__all__ = ["CODECS", "decompress"]

#: Codec name in a Puffin footer → Arrow's name. Both are framed formats; Arrow's ``lz4`` is the frame format.
CODECS = {"lz4": "lz4", "zstd": "zstd"}

_STEP = 1 << 18


def decompress(data: bytes, codec: str | None, *, limit: int, location: str, offset: int) -> bytes:
    """The plain bytes of one frame.

    Parameters
    ----------
    codec
        A key of `CODECS`, or None for bytes that are not compressed.
    limit
        Bytes at most; one more and it is an error. Never more than a little over ``limit`` is allocated.

    Raises
    ------
    FormatError
        The bytes are no such frame, are cut, or inflate past ``limit``.
    UnsupportedError
        A codec that the specification does not know.
    """
    import pyarrow as pa

    if codec is None:
        return data
    if codec not in CODECS:
        raise UnsupportedError(f"compression codec {codec!r} in {location}; a Puffin file may use {', '.join(CODECS)}")
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
            f"{len(data)} bytes of {codec} data inflate past {limit} bytes", location=location, offset=offset
        )
    return b"".join(parts)
