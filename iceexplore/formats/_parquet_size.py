"""Estimate the memory of a Parquet file's columns from the headers and dictionaries of their pages.

Stored sizes are no upper limit: a dictionary stores a string only once, even if a million rows use it, run-length
encoding expands a few bytes to any number of zeros, and each value of ``DELTA_BYTE_ARRAY`` may repeat the previous
one. So pages are inspected before Arrow decodes them. The longest value determines how many rows fit into a batch; if
not even one row fits, the file is refused.

Rules: Parquet specification, "Data Pages", "Dictionary page" and "Encodings".
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa

from iceexplore.errors import FormatError
from iceexplore.formats._thrift import ThriftStruct, read_struct
from iceexplore.storage import FLOOR, Budget, PositionedFile, RangeFile, allowed

__all__ = ["ChunkSize", "KeptChunks", "StreamLimit", "batch_rows", "chunk_sizes", "whole_bytes"]

#: Limit for the estimated bytes of a batch. Estimates are upper bounds, and usually far too high.
_BATCH_BYTES = 128 << 20
#: Batches of fewer rows than this cost more time than they save memory. To have this many rows, a batch may take up to
#: twice the limit `_BATCH_BYTES`.
_FEW_ROWS = 1024
#: Chunks are inspected only if the upper bound of their decoded bytes is greater than this.
_HARMLESS = 16 << 20
#: Maximum size in bytes of a dictionary or page. Writers use 1 MB.
_LARGEST_PAGE = 1 << 28
#: Bytes of a value in Arrow by physical type: boolean, int32, int64, int96, float, double.
_WIDTHS = (1, 8, 8, 8, 4, 8)
_BYTE_ARRAY = 6
_REPEATED = 2
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
#: A larger footer (in bytes; about 100,000 chunks) takes seconds to parse in Python: such files are read in small
#: batches.
_LARGEST_FOOTER = 16 << 20
_UNSEEN_ROWS = 64
_TRAILER = 8
_UINT32 = struct.Struct("<I")
_LARGEST_HEADER = 1 << 20
_OFFSET = 4  # bytes of a string's offset in an Arrow array
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_DICTIONARY_ENCODINGS = frozenset((2, 8))  # PLAIN_DICTIONARY, RLE_DICTIONARY
_DELTA_BYTE_ARRAY = 7


@dataclass(frozen=True)
class ChunkSize:
    """The memory that a column chunk takes when decoded.

    Attributes
    ----------
    values
        The number of values, including nulls and the elements of lists.
    width
        Maximum size in bytes of a value that is in a dictionary, repeats the previous one or has a fixed size.
    plain
        Total bytes of the values stored in full: not in a dictionary, and not as a difference from the previous value.
    average
        Average size in bytes of a value stored in full, in the page with the highest average.
    page
        Bytes of the largest page of values stored in full: a single value may take all of it.
    nested
        True if a row may have any number of values.
    """

    values: int
    width: int
    nested: bool
    plain: int = 0
    average: int = 0
    page: int = 0


class KeptChunks(PositionedFile):
    """A file that keeps inspected ranges in memory until Arrow requests them, so that each is read once."""

    def __init__(self, file: BinaryIO | RangeFile, location: str) -> None:
        super().__init__(file.seek(0, io.SEEK_END), location)
        self.file = file
        self.footer: Footer | None = None
        self._ends: list[tuple[int, bytes]] | None = []  # the ranges that Arrow reads for the footer
        self._kept: dict[int, bytes] = {}

    def keep(self, offset: int, length: int) -> bytes:
        """Read a range and keep it for a later request."""
        self._kept[offset] = self._read(offset, length)
        return self._kept[offset]

    def opened(self) -> None:
        """Drop the bytes that Arrow read to open the file, except the footer."""
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
        """Drop kept ranges that were not requested."""
        self._kept.clear()

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Return a kept range and drop it, or read from the file."""
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
    """The footer, parsed in Python: pyarrow's accessors crash on a damaged one (seen in pyarrow 26.0).

    Attributes
    ----------
    leaves
        The physical type of each leaf column, its fixed length, and whether a row may have several values.
    groups
        The ``ColumnMetaData`` of each row group's chunks, by Thrift field number.
    known
        False if the footer is too large to be parsed.
    """

    def __init__(self, data: bytes | None, offset: int) -> None:
        self._data, self._offset = data, offset
        self.known = data is not None and len(data) <= _LARGEST_FOOTER
        self.leaves: list[tuple[int, int, bool]] = []
        self.groups: list[list[ThriftStruct]] = []

    def parse(self, location: str) -> None:
        """Parse the footer, unless this has been done before. Raises `FormatError` if it is damaged."""
        if self._data is None or not self.known:
            return
        data, self._data = self._data, None
        parsed, _ = read_struct(data, what="FileMetaData", location=location, offset=self._offset)
        left: list[list[Any]] = []  # for each open group: how many children remain, and whether the group repeats
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
    """Limits the total size of a file's rows, because the sum of many small batches would be unlimited."""

    def __init__(self, budget: Budget) -> None:
        self._left = max(8 * FLOOR, budget.ratio * (budget.stored or 0), budget.limit)
        self._budget = budget

    def take(self, size: int, what: str) -> None:
        """Count the bytes of a batch. Raises `MemoryLimitError` if the total is above the limit."""
        self._left -= size
        if self._left < 0:
            raise self._budget.refusal(what)


def chunk_sizes(
    file: KeptChunks, groups: Iterable[tuple[int, int]], leaves: Sequence[int] | None, rows: int, location: str,
    *, nested: bool, near: int | None = None, encoded: Collection[int] = (),
) -> list[ChunkSize] | None:  # fmt: skip
    """Return the decoded sizes of the chunks in some row groups; None if the footer is too large to parse.

    Row groups whose batches are certainly small are left out.

    Parameters
    ----------
    groups
        Index and uncompressed size (from the footer) of each row group.
    leaves
        Indices of leaf columns; None for all.
    rows
        Number of rows of a batch; a chunk is not inspected if this many of its rows are certainly small.
    nested
        True if a row of some of these columns may have any number of values.
    near
        Maximum number of bytes of a chunk to inspect; later pages are assumed to be similar.
    encoded
        Indices of leaf columns that stay dictionary-encoded, so that a value takes only the bytes of its index.

    Raises
    ------
    FormatError
        The footer or a page header is invalid, or a page or dictionary has more than 256 MiB.
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
    """Return the number of rows of a batch, at most ``rows``, from a row group's `chunk_sizes`.

    Raises
    ------
    MemoryLimitError
        One row may take too much: a list of millions, or a string as large as a page.
    """
    if sizes is None:
        return min(rows, _UNSEEN_ROWS)
    # Any single row may have all elements of the row group's lists, or a value as long as its largest page.
    any_row = sum(s.plain + s.values * s.width if s.nested else s.page for s in sizes)
    each_row = sum(s.width + s.average for s in sizes if not s.nested)
    if any_row + each_row > budget.limit:
        raise budget.refusal(what)
    if rows * each_row <= _BATCH_BYTES:
        return rows
    few = min(_FEW_ROWS, 2 * _BATCH_BYTES // each_row)
    return max(1, min(rows, max(_BATCH_BYTES // each_row, few)))


def whole_bytes(sizes: Iterable[ChunkSize]) -> int:
    """Return an upper bound in bytes for all values of these chunks together."""
    return sum(s.plain + s.values * s.width for s in sizes)


def _looked_at(
    file: KeptChunks, chunk: ThriftStruct, values: int, nested: bool, location: str, near: int | None, *, once: bool
) -> ChunkSize:
    dictionary, first, length = _count(chunk, 11), _count(chunk, 9), _count(chunk, 7)
    begin = dictionary if 0 < dictionary < first else first  # some writers write 0 for a missing dictionary
    if length <= 0 or begin + length > file.size:
        raise FormatError(f"invalid column chunk of {length} bytes", location=location, offset=max(0, begin))
    read = length if near is None else min(near, length)
    if read > allowed(read):
        raise FormatError(f"the column chunk is too large: {length:,} bytes", location=location, offset=begin)
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
                break  # the rest is padding that the writer added
            raise
        if size > _LARGEST_PAGE:
            raise FormatError(f"the page is too large: {size:,} bytes", location=location, offset=begin + at)
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


def _number(found: object, field: int) -> int:
    value = found.get(field) if isinstance(found, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FormatError(f"the page header has no number in field {field}", field="PageHeader")
    return value


def _longest(body: memoryview, packed: int, size: int, entries: int, codec: int) -> int:
    """Return the length of the longest string in a dictionary page, or an upper bound where it cannot be decoded."""
    at_most = max(0, size - 4 * entries)
    if len(body) < packed:  # only part of the chunk was read
        return at_most
    plain: Any = body
    if codec:
        try:
            plain = pa.decompress(cast(Any, body), size, codec=cast(Any, _CODECS[codec]), asbytes=True)
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
