"""A file-like object over ranged reads."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO

from iceexplore.errors import FormatError

__all__ = ["open_ranges"]

_BUFFER = 64 * 1024


def open_ranges(fetch: Callable[[int, int], bytes], size: int, location: str) -> BinaryIO:
    """A buffered, seekable file of ``size`` bytes; ``fetch(offset, length)`` reads a range of it."""
    return io.BufferedReader(_Ranges(fetch, size, location), _BUFFER)


class _Ranges(io.RawIOBase):
    def __init__(self, fetch: Callable[[int, int], bytes], size: int, location: str) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._location = location
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise FormatError(f"byte {base + offset} was to be read", location=self._location)
        self._at = base + offset
        return self._at

    def readall(self) -> bytes:
        return self._take(self._size - self._at)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._take(len(view))
        view[: len(data)] = data
        return len(data)

    def _take(self, wanted: int) -> bytes:
        # Never more than the file has: pyarrow and others ask by numbers that they found in it.
        length = min(wanted, self._size - self._at)
        if length <= 0:
            return b""
        data = self._fetch(self._at, length)
        self._at += len(data)
        return data
