"""Deletion vectors: the blob ``deletion-vector-v1`` (Puffin specification, "Blob types")."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from iceexplore.deletes._roaring import encode_bitmap64, read_bitmap64
from iceexplore.errors import FormatError, OptionError, Problem, problem

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from iceexplore.storage import Storage

__all__ = [
    "DV_MAGIC",
    "bare_vector_problem",
    "decode_deletion_vector",
    "encode_deletion_vector",
    "read_deletion_vector",
    "read_range",
]

DV_MAGIC = b"\xd1\xd3\x39\x64"

_OVERHEAD = 8  # the length before the vector, and the CRC-32 after it
_SMALLEST = _OVERHEAD + len(DV_MAGIC) + 8
_LARGEST = (1 << 31) - 1  # Java has the same limit, with the error "Can't serialize index > 2GB"
#: Blobs up to this size (as stated in the manifest) are read directly; for larger ones, the file's size is checked
#: first.
_TRUSTED_SIZE = 1 << 20
_PUFFIN_MAGIC_BYTES = 4


def decode_deletion_vector(blob: bytes | memoryview, location: str | None = None, offset: int = 0) -> BitMap64:
    """Decode a deletion vector; check its length, magic and CRC-32 first, then the whole bitmap.

    Parameters
    ----------
    blob
        The whole blob: the bytes at ``content_offset`` with ``content_size_in_bytes`` of the manifest entry.
    location, offset
        The file and the byte at which the blob begins, for error messages.

    Returns
    -------
    pyroaring.BitMap64
        The deleted positions.

    Raises
    ------
    FormatError
        A check failed.
    """
    view = memoryview(blob).cast("B")

    def wrong(text: str, at: int, code: str = "file-corrupt") -> FormatError:
        return FormatError(text, location=location, offset=offset + at, field="deletion-vector-v1", code=code)

    if len(view) < _SMALLEST:
        raise wrong(f"a deletion vector takes at least {_SMALLEST} bytes, this has {len(view)}", 0, "file-truncated")
    (length,) = struct.unpack_from(">i", view, 0)
    if length != len(view) - _OVERHEAD:
        raise wrong(f"the length field is {length}, but magic and vector have {len(view) - _OVERHEAD} bytes", 0)
    body = view[4:-4]
    if body[:4] != DV_MAGIC:
        raise wrong(f"magic is {bytes(body[:4]).hex(' ')}, expected {DV_MAGIC.hex(' ')}", 4)
    (stored,) = struct.unpack_from(">I", view, len(view) - 4)
    found = zlib.crc32(body)
    if stored != found:
        raise wrong(f"CRC-32 is {found:08x}, but the blob has {stored:08x}: its bytes have changed", len(view) - 4)
    return read_bitmap64(body[4:], location=location, offset=offset + 8)


def encode_deletion_vector(bitmap: BitMap64) -> bytes:
    """Write positions as a ``deletion-vector-v1`` blob, byte for byte as Iceberg's Java does.

    `encode_bitmap64` describes the only exception, which needs a data file of over 4 billion rows.

    Raises
    ------
    OptionError
        A position or the blob exceeds the format's limits.
    """
    body = DV_MAGIC + encode_bitmap64(bitmap)
    if len(body) + _OVERHEAD > _LARGEST:
        raise OptionError(f"the vector takes {len(body)} bytes; a blob must be smaller than 2 GB")
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def read_deletion_vector(storage: Storage, location: str, offset: int, size: int) -> BitMap64:
    """Read only one deletion vector, by the offset and size in its manifest entry.

    The file need not be a Puffin file: `bare_vector_problem` describes vectors outside Puffin files.

    Raises
    ------
    FormatError
        Offset and size are outside the file, or the bytes are not a deletion vector.
    """
    return decode_deletion_vector(read_range(storage, location, offset, size), location, offset)


def read_range(storage: Storage, location: str, offset: int, size: int) -> bytes:
    """Read exactly ``size`` bytes at ``offset`` of a Puffin file.

    A manifest or footer may claim any size, so a large one is compared with the file's size before memory is allocated.
    """
    if offset < 0 or not 0 <= size <= _LARGEST:
        raise FormatError(f"invalid blob: {size} bytes at offset {offset}", location=location)
    if size > _TRUSTED_SIZE:
        actual = storage.stat(location).size
        if actual is not None and offset + size > actual:
            raise _short(location, offset, size, max(0, actual - offset))
    data = storage.read(location, kind="puffin", offset=offset, length=size)
    if len(data) != size:
        raise _short(location, offset, size, len(data))
    return data


def _short(location: str, offset: int, size: int, found: int) -> FormatError:
    return FormatError(
        f"expected {size} bytes, but the file has {found} at this offset",
        location=location,
        offset=offset,
        code="file-truncated",
    )


def bare_vector_problem(location: str, offset: int) -> Problem | None:
    """Return a problem if a vector at this offset cannot be in a Puffin file, whose first four bytes are the magic.

    Early versions of DuckDB wrote a vector as a file of its own; other readers refuse such files.
    """
    if offset >= _PUFFIN_MAGIC_BYTES:
        return None
    return problem(
        "puffin-bare-vector",
        location,
        "the deletion vector is a bare file, not a blob in a Puffin file",
        field="content_offset",
        found=offset,
        expected="4 or more",
    )
