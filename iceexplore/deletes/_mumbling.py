"""Mumbling bitmaps: small bitmaps of at most 2,097,152 positions, in containers of 256 bits.

Iceberg, ``format/mumbling-spec.md``, version 1. Every count is checked against the available bytes before anything is
allocated for it; the result has at most 8,192 containers and 2,097,152 positions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from iceexplore.errors import FormatError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pyroaring import BitMap

    _Bytes = npt.NDArray[np.uint8]

__all__ = ["MUMBLING_POSITIONS", "decode_mumbling", "encode_mumbling"]

#: Upper limit (exclusive) of positions: 8,192 containers of 256.
MUMBLING_POSITIONS = 8_192 * 256

_VERSION = 1
_HEADER = 6
_MAX_CONTAINERS = 8_192
_CHUNK = 256
_DENSE_BYTES = 32
_DENSE = 0x20


def decode_mumbling(data: bytes | memoryview, *, location: str | None = None, offset: int = 0) -> BitMap:
    """Decode a Mumbling bitmap, which must span all of ``data``.

    Parameters
    ----------
    location, offset
        The file and the byte at which ``data`` begins, for error messages.

    Returns
    -------
    pyroaring.BitMap
        The positions.

    Raises
    ------
    FormatError
        Unknown version, a reserved container type, positions out of order, a wrong cardinality, too few
        bytes or too many.
    """
    import numpy as np
    from pyroaring import BitMap

    view = memoryview(data).cast("B")

    def wrong(text: str, at: int) -> FormatError:
        return FormatError(text, location=location, offset=offset + at, field="mumbling")

    if len(view) < _HEADER:
        raise wrong(f"the header takes {_HEADER} bytes, found {len(view)}", 0)
    if view[0] != _VERSION:
        raise wrong(f"unknown format version {view[0]}, expected {_VERSION}", 0)
    cardinality = int.from_bytes(view[1:4], "little")
    (count,) = struct.unpack_from("<H", view, 4)
    if count > _MAX_CONTAINERS:
        raise wrong(f"the header claims {count} containers, more than {_MAX_CONTAINERS}", 4)
    descriptors, at = _descriptors(view, count, wrong)
    kinds = descriptors >> 5
    if bool((kinds > 1).any()):
        index = int(np.argmax(kinds > 1))
        raise wrong(f"descriptor {descriptors[index]:#04x} of container {index} has a reserved type", _HEADER)
    dense = kinds == 1  # the other bits of a dense descriptor are ignored
    lengths = np.where(dense, _DENSE_BYTES, descriptors & 0x1F).astype(np.int64)
    if int(lengths.sum()) != len(view) - at:
        raise wrong(f"the containers take {int(lengths.sum())} bytes, but {len(view) - at} remain", at)
    body = np.frombuffer(view, np.uint8, len(view) - at, at)
    owner = np.repeat(np.arange(count, dtype=np.uint32), lengths)
    sparse = ~dense[owner] if count else np.zeros(0, np.bool_)
    low = (owner[sparse] << np.uint32(8)) | body[sparse]
    if bool((low[1:] <= low[:-1]).any()):
        raise wrong("the positions of a sparse container do not ascend", at)
    bits = np.unpackbits(body[~sparse].reshape(-1, _DENSE_BYTES), axis=1)  # the most significant bit comes first
    rows, places = np.nonzero(bits)
    high = (np.flatnonzero(dense).astype(np.uint32)[rows] << np.uint32(8)) | places.astype(np.uint32)
    if len(low) + len(high) != cardinality:
        raise wrong(f"{len(low) + len(high)} positions are set, but the cardinality is {cardinality}", 1)
    return BitMap(np.concatenate([low, high]).astype(np.uint32))


def encode_mumbling(bitmap: BitMap) -> bytes:
    """Write positions as a Mumbling bitmap, version 1; bit widths are chosen as the specification recommends.

    Raises
    ------
    OptionError
        A position of 2,097,152 or above.
    """
    import numpy as np

    positions = np.array(bitmap, dtype=np.uint64) if len(bitmap) else np.zeros(0, np.uint64)
    if len(positions) and int(positions[-1]) >= MUMBLING_POSITIONS:
        raise OptionError(f"position {positions[-1]} is too high: a Mumbling bitmap ends at {MUMBLING_POSITIONS - 1}")
    count = int(positions[-1] >> 8) + 1 if len(positions) else 0
    sizes = np.bincount((positions >> 8).astype(np.int64), minlength=count)
    descriptors = np.where(sizes > 31, _DENSE, sizes).astype(np.uint8)
    ends = np.cumsum(sizes)
    parts = [struct.pack("<B", _VERSION), len(positions).to_bytes(3, "little"), struct.pack("<H", count)]
    parts += [_encode_chunk(descriptors[i : i + _CHUNK]) for i in range(0, count, _CHUNK)]
    places = (positions & 0xFF).astype(np.uint8)
    for size, end in zip(sizes.tolist(), ends.tolist(), strict=True):
        values = places[end - size : end]
        if size > 31:
            bits = np.zeros(_CHUNK, np.uint8)
            bits[values] = 1
            parts.append(np.packbits(bits).tobytes())
        else:
            parts.append(values.tobytes())
    return b"".join(parts)


def _descriptors(view: memoryview, count: int, wrong: Callable[[str, int], FormatError]) -> tuple[_Bytes, int]:
    """Return the descriptor array, and the offset after it (specification, Appendix A)."""
    import numpy as np

    chunks: list[Any] = [np.zeros(0, np.uint8)]
    at = _HEADER
    for first in range(0, count, _CHUNK):
        length = min(_CHUNK, count - first)
        if len(view) - at < 3:
            raise wrong("the bytes end within the descriptor array", at)
        low_bits, high_bits, exceptions, least = view[at] & 0x0F, view[at] >> 4, view[at + 1], view[at + 2]
        if low_bits + high_bits > 8:
            raise wrong(f"bit widths {low_bits} and {high_bits} add up to more than 8", at)
        if exceptions > length:
            raise wrong(f"{exceptions} exceptions, but the chunk has only {length} descriptors", at + 1)
        sizes = ((length * low_bits + 7) // 8, exceptions, (exceptions * high_bits + 7) // 8)
        if len(view) - at - 3 < sum(sizes):
            raise wrong(f"a chunk of descriptors takes {sum(sizes)} bytes, but {len(view) - at - 3} remain", at)
        begin = at + 3
        values = _unpack(view[begin : begin + sizes[0]], length, low_bits)
        begin += sizes[0]
        places = np.frombuffer(view, np.uint8, exceptions, begin)
        if exceptions and (int(places.max()) >= length or len(np.unique(places)) != exceptions):
            raise wrong("an exception's index is outside its chunk or occurs twice", begin)
        begin += exceptions
        values[places] |= _unpack(view[begin : begin + sizes[2]], exceptions, high_bits) << low_bits
        values = values + least
        if bool((values > 0xFF).any()):
            raise wrong("a descriptor is larger than a byte", at)
        chunks.append(values.astype(np.uint8))
        at = begin + sizes[2]
    return np.concatenate(chunks), at


def _unpack(data: memoryview, count: int, bits: int) -> npt.NDArray[Any]:
    """Return ``count`` numbers of ``bits`` bits each, most significant bit first."""
    import numpy as np

    if bits == 0:
        return np.zeros(count, np.int64)
    found = np.unpackbits(np.frombuffer(data, np.uint8))[: count * bits].reshape(count, bits)
    return found.astype(np.int64) @ (1 << np.arange(bits - 1, -1, -1))


def _pack(values: npt.NDArray[Any], bits: int) -> bytes:
    import numpy as np

    if bits == 0:
        return b""
    spread = values.astype(np.int64)[:, None] >> np.arange(bits - 1, -1, -1) & 1
    return np.packbits(spread.astype(np.uint8).reshape(-1)).tobytes()


def _encode_chunk(descriptors: _Bytes) -> bytes:
    import numpy as np

    least = int(descriptors.min())
    values = descriptors.astype(np.int64) - least
    widths = np.array([int(v).bit_length() for v in values])
    widest = int(widths.max())

    def size(bits: int) -> int:
        exceptions = int((widths > bits).sum())
        return (len(values) * bits + 7) // 8 + exceptions + (exceptions * (widest - bits) + 7) // 8

    # the number of exceptions is stored in one byte, so a width with 256 exceptions is not possible
    low = min((b for b in range(widest + 1) if int((widths > b).sum()) < _CHUNK), key=size)
    places = np.flatnonzero(widths > low)
    high = widest - low if len(places) else 0
    header = bytes([low | high << 4, len(places), least])
    return header + _pack(values, low) + places.astype(np.uint8).tobytes() + _pack(values[places] >> low, high)
