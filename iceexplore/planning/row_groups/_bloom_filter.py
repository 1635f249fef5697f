"""Read Parquet's split block Bloom filters, which show that a value is certainly absent or possibly present.

Source: parquet-format, ``BloomFilter.md``, and ``BloomFilterHeader`` of ``parquet.thrift``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats import read_struct
from iceexplore.storage import Storage

__all__ = ["BloomFilter", "read_bloom_filter"]

#: The size of a Bloom filter's block, in bytes: eight words of 32 bits (parquet-format).
_BLOCK = 32
#: Maximum size of a Bloom filter without its header, in bytes. The limit is the same as in parquet-mr
#: (``UPPER_BOUND_BYTES``) and in Arrow C++ (``kMaximumBloomFilterBytes``).
_MAX_BYTES = 128 * 1024 * 1024
#: Maximum size of a Bloom filter's header, in bytes. Most headers have about 15 bytes. Arrow C++ also expects the
#: header in the first 256 bytes that it reads (``kBloomFilterHeaderSizeGuess``).
_HEADER = 256
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


class BloomFilter:
    """The blocks of a Bloom filter.

    Parameters
    ----------
    words
        Array of uint32 with one row of 8 words per block.
    """

    def __init__(self, words: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        self.words = words

    def may_contain(self, encoded: bytes) -> bool:
        """Return whether the filter may contain a value; if False, it certainly does not.

        Parameters
        ----------
        encoded
            The value in Parquet's plain encoding, but without the length that this encoding puts before a byte array.
        """
        import xxhash

        digest = xxhash.xxh64_intdigest(encoded)  # seed 0
        block = (digest >> 32) * len(self.words) >> 32
        bits = np.uint32(digest & 0xFFFFFFFF) * _SALT >> np.uint32(27)
        mask = np.uint32(1) << bits
        return bool((self.words[block] & mask == mask).all())


def read_bloom_filter(storage: Storage, location: str, offset: int, length: int | None) -> BloomFilter:
    """Read one Bloom filter of a Parquet file.

    Parameters
    ----------
    location
        The location of the Parquet file.
    offset, length
        The position and size in bytes of the filter, including its header, from ``bloom_filter_offset`` and
        ``bloom_filter_length`` in the file's footer. The length is None if the footer lacks it, as in files of older
        writers.

    Raises
    ------
    FormatError
        The header is invalid, or the blocks are outside the file.
    UnsupportedError
        The algorithm, hash or compression is not the one that parquet-format defines.
    """
    if length is not None and not 0 < length <= _MAX_BYTES + _HEADER:
        raise _bad(
            f"a Bloom filter has {length:,} bytes, but must have 1 to {_MAX_BYTES + _HEADER:,}", location, offset
        )
    size = storage.stat(location).size if length is None else None
    near = _HEADER if length is None else length
    near = near if size is None else min(near, size - offset)
    if near <= 0 or offset < 0:
        raise _bad("the offset of a Bloom filter is outside the file", location, offset)
    data = storage.read(location, kind="data-footer", offset=offset, length=near)
    header, taken = read_struct(data[:_HEADER], what="BloomFilterHeader", location=location, offset=offset)
    count = _checked(header, location, offset)
    if length is None and len(data) < taken + count:
        data = storage.read(location, kind="data-footer", offset=offset, length=taken + count)
    if len(data) < taken + count:
        found = max(0, len(data) - taken)
        raise _bad(f"expected {count:,} bytes of a Bloom filter after its header, found {found:,}", location, offset)
    return BloomFilter(np.frombuffer(data, "<u4", count // 4, taken).reshape(-1, 8))


def _checked(header: dict[int, Any], location: str, offset: int) -> int:
    """Check every field of a ``BloomFilterHeader``, and return the number of bytes in the filter's blocks.

    ``location`` and ``offset`` are those of the filter, for error messages.

    Raises
    ------
    FormatError
        A field is missing, or the number of bytes is invalid.
    UnsupportedError
        The algorithm, hash or compression is unknown.
    """
    count = header.get(1)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= _MAX_BYTES or count % _BLOCK:
        raise _bad(
            f"a Bloom filter has {count} bytes, but its size must be a positive multiple of {_BLOCK}, and at most "
            f"{_MAX_BYTES}",
            location,
            offset,
        )
    for number, what in ((2, "algorithm"), (3, "hash"), (4, "compression")):
        found = header.get(number)
        if not isinstance(found, dict):
            raise _bad(f"the header of a Bloom filter lacks the {what}", location, offset)
        # Each of the three fields is a Thrift union, with a member for each possible choice. Today each has only the
        # member with the id 1: BLOCK for the algorithm, XXHASH for the hash, UNCOMPRESSED for the compression. If this
        # member is missing, the filter uses something that is not supported here.
        if 1 not in found:
            raise UnsupportedError(f"{location}: the Bloom filter at byte {offset} has an unknown {what}")
    return count


def _bad(what: str, location: str, offset: int) -> FormatError:
    return FormatError(what, location=location, offset=offset, field="BloomFilterHeader")
