"""Read files whose format requires reading them whole, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iceexplore.errors import UnsupportedError

if TYPE_CHECKING:
    from iceexplore.storage import Storage

__all__ = ["whole_file"]

#: Maximum size in bytes of such a file: Avro, table metadata, or a deletion vector that is not in a Puffin file.
MAX_FILE_BYTES = 1 << 31


def whole_file(storage: Storage, location: str, kind: str) -> bytes:
    """Return the bytes of a file.

    Raises
    ------
    UnsupportedError
        The file is larger than 2 GiB.
    """
    size = storage.stat(location).size
    if size is not None and size > MAX_FILE_BYTES:
        raise UnsupportedError(f"{location} has {size:,} bytes; at most {MAX_FILE_BYTES:,} can be read")
    return storage.read(location, kind=kind)
