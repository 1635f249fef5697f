"""Read whole files, up to a limit, whose format does not allow reading parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iceexplore.errors import UnsupportedError

if TYPE_CHECKING:
    from iceexplore.storage import Storage

__all__ = ["whole_file"]

#: Maximum number of bytes of an Avro, metadata or deletion-vector file.
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
        raise UnsupportedError(f"{location} has {size:,} bytes; files of this kind are read up to {MAX_FILE_BYTES:,}")
    return storage.read(location, kind=kind)
