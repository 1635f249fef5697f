"""How large columns of a Parquet file become in memory, by the headers and dictionaries of their pages.

The stored sizes do not tell: a dictionary holds once a string that a million rows refer to, run lengths make a list of
zeros of any length out of a few bytes, and each value of ``DELTA_BYTE_ARRAY`` may repeat the one before. So pages are
looked at before Arrow decodes them: batches get as many rows as fit a bound that the longest value gives, and what no
batch could hold is refused.

Rules: Parquet specification, "Data Pages", "Dictionary page" and "Encodings".
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from iceexplore.errors import FormatError
from iceexplore.formats._thrift import ThriftStruct, read_struct
from iceexplore.storage import FLOOR, Budget, PositionedFile, RangeFile, allowed

__all__ = ["ChunkSize", "KeptChunks", "StreamLimit", "batch_rows", "chunk_sizes", "whole_bytes"]

#: What a batch may become by the bound, which is far above what it usually does.
_BATCH_BYTES = 128 << 20
#: Fewer rows cost more by the batch than they save; a batch of so few may be twice as large.
_FEW_ROWS = 1024
#: Chunks that cannot become more than this are not looked at.
_HARMLESS = 16 << 20
#: Bytes of a dictionary or page above which a chunk is refused: writers make them of 1 MB.
_LARGEST_PAGE = 1 << 28
#: Bytes of a value in Arrow by physical type: boolean, int32, int64, int96, float, double.
_WIDTHS = (1, 8, 8, 8, 4, 8)
_BYTE_ARRAY = 6
_REPEATED = 2
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
#: A footer of more bytes (some 100,000 chunks) takes seconds in Python: files with one get few rows a batch instead.
_LARGEST_FOOTER = 16 << 20
_UNSEEN_ROWS = 64
_TRAILER = 8
_UINT32 = struct.Struct("<I")
_LARGEST_HEADER = 1 << 20
_OFFSET = 4  # of a string in Arrow's array
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_DICTIONARY_ENCODINGS = frozenset((2, 8))  # PLAIN_DICTIONARY, RLE_DICTIONARY
_DELTA_BYTE_ARRAY = 7


@dataclass(frozen=True)
class ChunkSize:
    """How large a column chunk becomes in memory.

    Attributes
    ----------
    values
        How many, nulls and the elements of lists included.
    width
        Bytes that a value takes at most, where it is in a dictionary, repeats the one before or has a fixed size.
    plain
        Bytes of all values that are stored in full ...
    average
        ... of one of them on average, in the page where that is most ...
    page
        ... and of the largest page of them: a single value may take as much.
    nested
        Whether a row may have any number of them.
    """

    values: int
    width: int
    nested: bool
    plain: int = 0
    average: int = 0
    page: int = 0


class KeptChunks(PositionedFile):
    """A file of which ranges that were read ahead are kept until they are asked for, so that each is read once."""

    def __init__(self, file: BinaryIO | RangeFile, location: str) -> None:
        super().__init__(file.seek(0, io.SEEK_END), location)
        self.file = file
        self.footer: Footer | None = None
        self._ends: list[tuple[int, bytes]] | None = []  # what Arrow reads of the footer
        self._kept: dict[int, bytes] = {}

    def keep(self, offset: int, length: int) -> bytes:
        """Read a range, and keep it."""
        self._kept[offset] = self._read(offset, length)
        return self._kept[offset]

    def opened(self) -> None:
        """Let go of what Arrow has read to open the file, but the footer."""
        found, self._ends = self._ends or [], None
        end = next((data for at, data in found if at + len(data) == self.size and len(data) >= _TRAILER), b"")
        length = int.from_bytes(end[-8:-4], "little")
        begin = self.size - _TRAILER - length
        for at, data in found:
            if at <= begin and begin + length <= at + len(data):
                self.footer = Footer(data[begin - at : begin - at + length], begin)
                return
        self.footer = Footer(None, begin)

    def forget(self) -> None:
        """Drop what was kept and not asked for."""
        self._kept.clear()

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Return bytes of what is kept, which is dropped then, or of the file."""
        kept = self._kept.get(offset)
        if kept is not None and length == len(kept):
            return self._kept.pop(offset)
        data = self._read(offset, length)
        if self._ends is not None:
            self._ends.append((offset, data))
        return data

    def _read(self, offset: int, length: int) -> bytes:
        self.file.seek(offset)
        return self.file.read(length)


class Footer:
    """The footer, parsed here: Arrow's accessors of chunks end the process where it is damaged (seen in 26.0).

    Attributes
    ----------
    leaves
        Physical type, length of a fixed one, and whether a row may have several values, of each leaf column.
    groups
        Of each row group the chunks' metadata, by the numbers of their fields in ``ColumnMetaData``.
    known
        Whether it was parsed: not where it is larger than is worth it.
    """

    def __init__(self, data: bytes | None, offset: int) -> None:
        self._data, self._offset = data, offset
        self.known = data is not None and len(data) <= _LARGEST_FOOTER
        self.leaves: list[tuple[int, int, bool]] = []
        self.groups: list[list[ThriftStruct]] = []

    def parse(self, location: str) -> None:
        """Parse it, once. Raises `FormatError`."""
        if self._data is None or not self.known:
            return
        data, self._data = self._data, None
        parsed, _ = read_struct(data, what="FileMetaData", location=location, offset=self._offset)
        left: list[list[Any]] = []  # children still to come of each open group, and whether it repeats
        for element in (parsed.get(2) or [])[1:]:
            repeats = element.get(3) == _REPEATED or bool(left and left[-1][1])
            if left:
                left[-1][0] -= 1
            children = element.get(5)
            if children:
                left.append([children, repeats])
            else:
                self.leaves.append((element.get(1) or 0, element.get(2) or 0, repeats))
            while left and left[-1][0] <= 0:
                left.pop()
        for group in parsed.get(4) or []:
            chunks = group.get(1)
            self.groups.append([c.get(3) or {} for c in chunks] if isinstance(chunks, list) else [])


class StreamLimit:
    """Stops the rows of a file that goes on and on: batches may be small and their sum without end."""

    def __init__(self, budget: Budget) -> None:
        self._left = max(8 * FLOOR, budget.ratio * (budget.stored or 0), budget.limit)
        self._budget = budget

    def take(self, size: int, what: str) -> None:
        """Count a batch. Raises `MemoryLimitError`."""
        self._left -= size
        if self._left < 0:
            raise self._budget.refusal(what)


def chunk_sizes(
    file: KeptChunks, groups: Iterable[tuple[int, int]], leaves: Sequence[int] | None, rows: int, location: str,
    *, nested: bool, near: int | None = None, encoded: Collection[int] = (),
) -> list[ChunkSize] | None:  # fmt: skip
    """Return what the chunks of some row groups and leaf columns become; None where the footer is too large to tell.

    Parameters
    ----------
    groups
        Number and bytes (uncompressed, as the footer claims) of each row group.
    leaves
        Numbers of leaf columns; None for all.
    rows
        Of a batch; a chunk that is harmless in batches of so many is not looked at.
    nested
        Whether a row of some of these columns may have any number of values.
    near
        Look at so many bytes of a chunk at most; the pages after them are taken to be like those in them.
    encoded
        Leaves that come with their dictionary: a value of it takes no more than its number.

    Raises
    ------
    FormatError
        A footer or page header that is none, or a page or dictionary of more than 256 MiB.
    """
    wanted = [(g, size) for g, size in groups if nested or size < 0 or rows * size > _HARMLESS]
    if not wanted:
        return []
    footer = file.footer
    if footer is None or not footer.known:
        return None
    footer.parse(location)
    found = []
    for group, _ in wanted:
        chunks = footer.groups[group] if group < len(footer.groups) else []
        for leaf in range(len(footer.leaves)) if leaves is None else leaves:
            if leaf >= len(chunks) or leaf >= len(footer.leaves):
                raise FormatError(f"row group {group} has no column {leaf}", location=location)
            chunk, (kind, length, repeated) = chunks[leaf], footer.leaves[leaf]
            values, stored = _count(chunk, 5), _count(chunk, 6)
            if kind != _BYTE_ARRAY:
                found.append(ChunkSize(values, _WIDTHS[kind] if kind < len(_WIDTHS) else max(0, length), repeated))
            elif (values if repeated else min(rows, values)) * stored <= _HARMLESS:
                found.append(ChunkSize(values, stored + _OFFSET, repeated))
            else:
                size = _looked_at(file, chunk, values, repeated, location, near, once=leaf in encoded)
                found.append(size)
    return found


def _count(chunk: ThriftStruct, field: int) -> int:
    value = chunk.get(field)
    return max(0, value) if isinstance(value, int) else 0


def batch_rows(sizes: Sequence[ChunkSize] | None, rows: int, budget: Budget, what: str) -> int:
    """Return how many rows a batch may have, ``rows`` at most, by what `chunk_sizes` has found of one row group.

    Raises
    ------
    MemoryLimitError
        One row may take too much: a list of millions, or a string as large as a page.
    """
    if sizes is None:
        return min(rows, _UNSEEN_ROWS)
    # Any row may be the one that has all of a list's elements, or the longest value of a page.
    any_row = sum(s.plain + s.values * s.width if s.nested else s.page for s in sizes)
    each_row = sum(s.width + s.average for s in sizes if not s.nested)
    if any_row + each_row > budget.limit:
        raise budget.refusal(what)
    if rows * each_row <= _BATCH_BYTES:
        return rows
    few = min(_FEW_ROWS, 2 * _BATCH_BYTES // each_row)
    return max(1, min(rows, max(_BATCH_BYTES // each_row, few)))


def whole_bytes(sizes: Iterable[ChunkSize]) -> int:
    """Return what all rows may take together."""
    return sum(s.plain + s.values * s.width for s in sizes)


def _looked_at(
    file: KeptChunks, chunk: ThriftStruct, values: int, nested: bool, location: str, near: int | None, *, once: bool
) -> ChunkSize:
    dictionary, first, length = _count(chunk, 11), _count(chunk, 9), _count(chunk, 7)
    begin = dictionary if 0 < dictionary < first else first  # some writers claim 0 for a page that is not there
    if length <= 0 or begin + length > file.size:
        raise FormatError(f"a column chunk of {length} bytes", location=location, offset=max(0, begin))
    read = length if near is None else min(near, length)
    if read > allowed(read):
        raise FormatError(f"a column chunk of {length:,} bytes", location=location, offset=begin)
    data = memoryview(file.keep(begin, read))
    counted = plain = average = page = width = at = 0
    while at < len(data):
        try:
            begins = data[at : at + _LARGEST_HEADER]
            header, taken = read_struct(begins, what="PageHeader", location=location, offset=begin + at)
            size, packed = _number(header, 2), _number(header, 3)
        except FormatError:
            if near is not None and counted:
                break
            if counted >= values > 0:
                break  # a writer's padding
            raise
        if size > _LARGEST_PAGE:
            raise FormatError(f"a page of {size:,} bytes", location=location, offset=begin + at)
        body = data[at + taken : at + taken + packed]
        at += taken + packed
        kind = header.get(1)
        if kind == _DICTIONARY:
            entries = _number(header.get(7), 1)
            if once:
                page = max(page, size + entries * _OFFSET)
                width = max(width, _OFFSET)
            else:
                width = max(width, _longest(body, packed, size, entries, _count(chunk, 4)) + _OFFSET)
            continue
        if kind not in (_DATA, _DATA_V2):
            continue
        inner = header.get(5 if kind == _DATA else 8)
        count, encoding = _number(inner, 1), _number(inner, 2 if kind == _DATA else 4)
        counted += count
        if encoding == _DELTA_BYTE_ARRAY:
            width = max(width, size + _OFFSET)
        elif encoding not in _DICTIONARY_ENCODINGS:
            full = size + count * _OFFSET
            plain += full
            page, average = max(page, full), max(average, full // max(1, count))
    return ChunkSize(max(values, counted), width, nested, plain, average, page)


def _number(found: ThriftStruct | Any, field: int) -> int:
    value = found.get(field) if isinstance(found, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FormatError(f"a page header without a number in field {field}", field="PageHeader")
    return value


def _longest(body: memoryview, packed: int, size: int, entries: int, codec: int) -> int:
    """Return the length of the longest string in a dictionary page, or an upper bound where it cannot be decoded."""
    at_most = max(0, size - 4 * entries)
    if len(body) < packed:  # only part of the chunk was read
        return at_most
    plain: Any = body
    if codec:
        try:
            plain = pa.decompress(body, size, codec=_CODECS[codec], asbytes=True)
        except (KeyError, pa.ArrowException, OSError, ValueError, NotImplementedError):
            return at_most
    longest = at = 0
    end = len(plain)
    number = _UINT32.unpack_from
    while at + 4 <= end:
        (length,) = number(plain, at)
        if length > longest:
            longest = length
        at += 4 + length
    return min(longest, end)
