"""A file-like object over ranged reads."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from iceexplore.errors import FormatError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["PositionedFile", "RangeFile", "TAIL_BYTES", "whole_or_tail"]

#: Minimum number of bytes to fetch at a time; also the size of Arrow's first read, from a Parquet file's end.
TAIL_BYTES = 64 * 1024
#: Remote files up to this size are fetched whole: a request costs more than the bytes.
_WHOLE_BYTES = 256 * 1024
#: Ranges closer together than this are fetched as one: sending this many bytes takes as long as another request.
_HOLE_BYTES = 256 * 1024
#: Maximum number of bytes to prefetch.
_AHEAD_BYTES = 64 << 20
_AT_ONCE = 4


def whole_or_tail(size: int) -> int:
    """Return how many bytes to fetch first from a remote file's end: all of a small file, else enough for a footer."""
    return size if size <= _WHOLE_BYTES else TAIL_BYTES


class PositionedFile(io.RawIOBase):
    """A seekable file of ``size`` bytes; subclasses define `bytes_at`, which returns the bytes.

    Attributes
    ----------
    size
        Bytes of the file.
    """

    def __init__(self, size: int, location: str) -> None:
        super().__init__()
        self.size = size
        self._location = location
        self._at = 0

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``; the range is inside the file."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position and return it; a position after the end is allowed, before the start an error."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise FormatError(f"cannot seek to byte {base + offset}", location=self._location)
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return bytes from the position: as many as requested, or fewer if the file ends before."""
        return self._take(self.size - self._at if size is None or size < 0 else size)

    def readall(self) -> bytes:
        """Return all bytes from the position."""
        return self._take(self.size - self._at)

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer with bytes from the position; return their number."""
        view = memoryview(buffer).cast("B")
        data = self._take(len(view))
        view[: len(data)] = data
        return len(data)

    def _take(self, wanted: int) -> bytes:
        # Never request more bytes than the file has: pyarrow and other libraries request lengths that they read from
        # the file.
        length = min(wanted, self.size - self._at)
        if length <= 0:
            return b""
        data = self.bytes_at(self._at, length)
        self._at += len(data)
        return data


class RangeFile(PositionedFile):
    """A seekable file of ``size`` bytes; ``fetch(offset, length)`` reads a range of it.

    Parameters
    ----------
    far
        True if each fetch costs a request: small files are then fetched whole, and `prefetch` has an effect.
    tail
        The file's last bytes, if they have been fetched already.
    """

    def __init__(
        self,
        fetch: Callable[[int, int], bytes],
        size: int,
        location: str,
        *,
        far: bool = False,
        tail: bytes = b"",
        close: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(size, location)
        self._fetch = fetch
        self.far = far
        self._kept: list[tuple[int, bytes]] = [(size - len(tail), tail)] if tail else []
        self._ahead: list[tuple[int, bytes]] = []
        self._near: tuple[int, bytes] = (0, b"")
        self._close = close

    def close(self) -> None:
        """Drop fetched bytes and close the store's file."""
        if not self.closed:
            self._kept, self._ahead, self._near = [], [], (0, b"")
            if self._close is not None:
                self._close()
        super().close()

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch ranges (offset, length) that a remote file's reader needs next; close ranges are merged.

        Ranges of an earlier call are dropped. Ranges are clipped to the file; what exceeds 64 MiB in all is left for
        later reads.
        """
        self._ahead = []
        if not self.far:
            return
        joined = [r for r in _joined(ranges, self.size) if self._held(*r) is None]
        wanted, total = [], 0
        for offset, length in joined:
            total += length
            if total > _AHEAD_BYTES:
                break
            wanted.append((offset, length))
        if len(wanted) > 1:
            with ThreadPoolExecutor(min(_AT_ONCE, len(wanted)), "iceexplore-ranges") as pool:
                parts = list(pool.map(lambda r: self._fetch(*r), wanted))
        else:
            parts = [self._fetch(*r) for r in wanted]
        self._ahead = [(offset, data) for (offset, _), data in zip(wanted, parts, strict=True)]

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Return bytes from fetched ranges, or fetch them."""
        data = self._held(offset, length)
        return self._fetched(offset, length) if data is None else data

    def _held(self, offset: int, length: int) -> bytes | None:
        for begin, data in (self._near, *self._kept, *self._ahead):
            if begin <= offset and offset + length <= begin + len(data):
                return data[offset - begin : offset - begin + length]
        return None

    def _fetched(self, offset: int, length: int) -> bytes:
        if self.far and self.size <= _WHOLE_BYTES:
            self._kept = [(0, self._fetch(0, self.size))]
            return self._kept[0][1][offset : offset + length]
        if length >= TAIL_BYTES and not (self.far and offset + length == self.size):
            return self._fetch(offset, length)
        data = self._fetch(offset, min(max(length, TAIL_BYTES), self.size - offset))
        if self.far and offset + len(data) == self.size and len(data) <= _WHOLE_BYTES:
            self._kept.append((offset, data))  # the footer is read several times
        else:
            self._near = (offset, data)
        return data[:length]


def _joined(ranges: Iterable[tuple[int, int]], size: int) -> Sequence[tuple[int, int]]:
    """Return the ranges inside the file in order, merging those that overlap or are close."""
    out: list[tuple[int, int]] = []
    for offset, length in sorted((max(0, o), n + min(0, o)) for o, n in ranges):
        end = min(size, offset + length)
        if end <= offset:
            continue
        if out and offset - (out[-1][0] + out[-1][1]) <= _HOLE_BYTES:
            begin, before = out[-1]
            out[-1] = (begin, max(before, end - begin))
        else:
            out.append((offset, end - offset))
    return out
