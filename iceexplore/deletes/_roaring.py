"""Roaring bitmaps in the portable format, validated before anything is allocated for them.

Bitmap libraries trust their input, but these files may come from anywhere. So the structure is validated first: every
count against the available bytes, the order of keys and values, and every cardinality. Rules: RoaringFormatSpec,
"General layout" and "Extension for 64-bit implementations"; key limits: Iceberg's ``RoaringPositionBitmap``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from iceexplore.errors import FormatError, OptionError

if TYPE_CHECKING:
    from pyroaring import BitMap, BitMap64

__all__ = ["MAX_KEY", "MAX_POSITION", "encode_bitmap32", "encode_bitmap64", "read_bitmap32", "read_bitmap64"]

#: The greatest key. Iceberg's Java keeps the bitmaps in an array with the keys as indices; the last possible index of a
#: Java array is ``Integer.MAX_VALUE - 1``.
MAX_KEY = (1 << 31) - 2
#: The greatest position that Iceberg's Java accepts (``RoaringPositionBitmap.MAX_POSITION``).
MAX_POSITION = MAX_KEY << 32 | 0x80000000

_COOKIE_NO_RUNS = 12346
_COOKIE_RUNS = 12347
_OFFSETS_FROM = 4  # a bitmap with runs has an offset header only if it has at least four containers
_MAX_CONTAINERS = 1 << 16
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_SMALLEST_BITMAP = 8  # cookie and a count of zero
#: Maximum number of containers in a vector. They hold 17 billion positions (65,536 each), far more than a data file has
#: rows. The limit is needed because a container takes time and memory even if it is only a few bytes of runs.
_MOST_CONTAINERS = 1 << 18


class _FalseClaimError(Exception):
    """Raised if a bitmap states something that its bytes contradict; ``at`` is the offset in the data."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(text)
        self.at = at


def read_bitmap64(data: bytes | memoryview, *, location: str | None = None, offset: int = 0) -> BitMap64:
    """Read a 64-bit bitmap: a count, followed by that many pairs of a key and a portable 32-bit bitmap.

    Parameters
    ----------
    data
        The vector in a deletion vector's blob, without the magic. The bitmap must end at the last byte.
    location, offset
        The file and the byte at which ``data`` begins, for error messages.

    Returns
    -------
    pyroaring.BitMap64
        The positions. Memory is proportional to ``len(data)``, but the cardinality is not: sixteen bytes of runs may
        represent 65,536 positions, so check ``len()`` before listing them.

    Raises
    ------
    FormatError
        A count, key, order, offset or cardinality is wrong, a key is above ``MAX_KEY``, or there are more containers
        than any data file needs for its rows. In the last case, the error states how many positions are claimed, and
        their range.
    """
    from pyroaring import BitMap64

    view = memoryview(data).cast("B")
    try:
        _check64(view)
    except _FalseClaimError as claim:
        raise FormatError(str(claim), location=location, offset=offset + claim.at, field="deletion-vector-v1") from None
    try:
        return BitMap64.deserialize(bytes(view))
    except (ValueError, IndexError, MemoryError, OverflowError) as error:  # raised by pyroaring's own validation
        raise FormatError(
            f"the bitmap does not decode: {error}", location=location, offset=offset, field="deletion-vector-v1"
        ) from None


def read_bitmap32(data: bytes | memoryview, *, location: str | None = None, offset: int = 0) -> BitMap:
    """Read one 32-bit portable bitmap (RoaringFormatSpec, "General layout"); it must span all of ``data``.

    Returns
    -------
    pyroaring.BitMap
        The positions. As with `read_bitmap64`, there may be far more of them than bytes in ``data``.

    Raises
    ------
    FormatError
        A count, order, offset or cardinality is wrong, or bytes follow the bitmap.
    """
    from pyroaring import BitMap

    view = memoryview(data).cast("B")
    try:
        end = _check32(view, 0)
        if end != len(view):
            raise _FalseClaimError(f"{len(view) - end} bytes follow the bitmap", end)
        return BitMap.deserialize(bytes(view))
    except _FalseClaimError as claim:
        raise FormatError(str(claim), location=location, offset=offset + claim.at, field="roaring") from None
    except (ValueError, IndexError, MemoryError, OverflowError) as error:  # raised by pyroaring's own validation
        raise FormatError(
            f"the bitmap does not decode: {error}", location=location, offset=offset, field="roaring"
        ) from None


def encode_bitmap32(bitmap: BitMap) -> bytes:
    """Write a 32-bit bitmap (`pyroaring.BitMap`) in the portable format, with runs where they are smaller."""
    optimized = bitmap.copy()
    optimized.run_optimize()
    return bytes(optimized.serialize())


def encode_bitmap64(bitmap: BitMap64) -> bytes:
    """Write a 64-bit bitmap as Iceberg's Java does: with runs where they are smaller, keys ascending.

    One case differs: for an unused key below the greatest one, Java writes an empty bitmap. This function follows the
    specification, which has bitmaps only "for each key in the set". A key spans 4 billion positions, so this affects
    only data files with more rows than that.

    Raises
    ------
    OptionError
        A position above ``MAX_POSITION``.
    """
    if len(bitmap) and bitmap.max() > MAX_POSITION:
        raise OptionError(f"position {bitmap.max()} is above {MAX_POSITION}, the highest that Iceberg can store")
    optimized = bitmap.copy()
    optimized.run_optimize()
    return bytes(optimized.serialize())


def _check64(view: memoryview) -> None:
    if len(view) < 8:
        raise _FalseClaimError(f"a bitmap count takes 8 bytes, found {len(view)}", 0)
    (count,) = struct.unpack_from("<Q", view, 0)
    at = 8
    if count > (len(view) - at) // (4 + _SMALLEST_BITMAP):
        raise _FalseClaimError(f"{count} bitmaps do not fit in {len(view) - at} bytes", 0)
    last_key, containers = -1, 0
    for _ in range(count):
        if len(view) - at < 4 + _SMALLEST_BITMAP:
            raise _FalseClaimError("the bytes end before the last bitmap", at)
        containers += _container_count(view, at + 4)
        if containers > _MOST_CONTAINERS:
            raise _FalseClaimError(_too_many(view, count), 0)
        (key,) = struct.unpack_from("<I", view, at)
        if key > MAX_KEY:
            raise _FalseClaimError(f"bitmap key {key} is above {MAX_KEY}, the greatest that Iceberg allows", at)
        if key <= last_key:
            raise _FalseClaimError(f"bitmap key {key} follows {last_key}: keys must ascend", at)
        last_key = key
        at = _check32(view, at + 4)
    if at != len(view):
        raise _FalseClaimError(f"{len(view) - at} bytes follow the last bitmap", at)


def _container_count(view: memoryview, begin: int) -> int:
    """Return the number of containers that a 32-bit bitmap claims."""
    cookie, size = (int(n) for n in struct.unpack_from("<II", view, begin))
    return size if cookie == _COOKIE_NO_RUNS else (cookie >> 16) + 1


def _too_many(view: memoryview, count: int) -> str:
    """Describe which positions a vector with too many containers claims, using only its headers."""
    import numpy as np

    at, positions, first, last = 8, 0, None, 0
    complete = count <= _MOST_CONTAINERS
    try:
        for _ in range(min(count, _MOST_CONTAINERS)):
            (key, cookie) = struct.unpack_from("<II", view, at)
            begin, size = at + 4, _container_count(view, at + 4)
            runs_at = begin + 4
            header_at = runs_at + (4 if cookie == _COOKIE_NO_RUNS else (size + 7) // 8)
            header = np.frombuffer(view, "<u2", 2 * size, header_at).reshape(size, 2)
            positions += int(header[:, 1].astype(np.int64).sum()) + size
            first = key << 32 | int(header[0, 0]) << 16 if first is None else first
            last = key << 32 | int(header[-1, 0]) << 16 | 0xFFFF
            end, done = header_at + 4 * size, 0
            if cookie == _COOKIE_NO_RUNS or size >= _OFFSETS_FROM:  # skip to the last container
                end, done = begin + struct.unpack_from("<I", view, end + 4 * (size - 1))[0], size - 1
            for index in range(done, size):
                held = int(header[index, 1]) + 1
                if cookie != _COOKIE_NO_RUNS and view[runs_at + index // 8] >> (index % 8) & 1:
                    end += 2 + 4 * struct.unpack_from("<H", view, end)[0]
                else:
                    end += 2 * held if held <= _ARRAY_MAX else _BITMAP_BYTES
            at = end
    except (struct.error, ValueError, IndexError):
        complete = False
    return (
        f"the vector claims {'' if complete else 'at least '}{positions:,} positions between {first or 0:,} and "
        f"{last:,}{'' if complete else ' or later'}, in more than {_MOST_CONTAINERS:,} containers: no file has that "
        "many rows, so it is not decoded"
    )


def _check32(view: memoryview, begin: int) -> int:
    """Check one 32-bit bitmap; return the offset after it."""
    import numpy as np

    def need(at: int, length: int, what: str) -> int:
        if length > len(view) - at:
            raise _FalseClaimError(f"{what}: {length} bytes expected, but {len(view) - at} remain", at)
        return at + length

    need(begin, 4, "the cookie")
    (cookie,) = struct.unpack_from("<I", view, begin)
    at = begin + 4
    runs: memoryview | None = None
    if cookie == _COOKIE_NO_RUNS:
        need(at, 4, "the number of containers")
        (size,) = struct.unpack_from("<I", view, at)
        at += 4
        has_offsets = True
    elif cookie & 0xFFFF == _COOKIE_RUNS:
        size = (cookie >> 16) + 1
        end = need(at, (size + 7) // 8, "the run flags")
        runs, at = view[at:end], end
        has_offsets = size >= _OFFSETS_FROM
    else:
        raise _FalseClaimError(f"unknown roaring cookie {cookie}", begin)
    if size > _MAX_CONTAINERS:
        raise _FalseClaimError(f"the bitmap claims {size} containers, more than {_MAX_CONTAINERS}", begin)

    header_at = at
    at = need(at, 4 * size, "the container keys and cardinalities")
    header = np.frombuffer(view[header_at:at], dtype="<u2").reshape(size, 2)
    keys, cardinalities = header[:, 0], header[:, 1].astype(np.int64) + 1
    if size > 1 and not bool((keys[1:] > keys[:-1]).all()):
        raise _FalseClaimError("container keys do not ascend", header_at)
    offsets: Any = None
    if has_offsets:
        offsets_at = at
        at = need(at, 4 * size, "the container offsets")
        offsets = np.frombuffer(view[offsets_at:at], dtype="<u4").tolist()

    for index, cardinality in enumerate(cardinalities.tolist()):
        if offsets is not None and offsets[index] != at - begin:
            raise _FalseClaimError(
                f"container {index} is at byte {at - begin} of its bitmap, but its offset is {offsets[index]}", at
            )
        if runs is not None and runs[index // 8] >> (index % 8) & 1:
            at = _check_runs(view, at, need, cardinality)
        elif cardinality <= _ARRAY_MAX:
            end = need(at, 2 * cardinality, "the values of an array container")
            values = np.frombuffer(view[at:end], dtype="<u2")
            if not bool((values[1:] > values[:-1]).all()):
                raise _FalseClaimError("the values of an array container do not ascend", at)
            at = end
        else:
            end = need(at, _BITMAP_BYTES, "the words of a bitmap container")
            found = int.from_bytes(view[at:end], "little").bit_count()
            if found != cardinality:
                raise _FalseClaimError(
                    f"a bitmap container has {found} bits set, but its cardinality is {cardinality}", at
                )
            at = end
    return at


def _check_runs(view: memoryview, at: int, need: Callable[[int, int, str], int], cardinality: int) -> int:
    import numpy as np

    need(at, 2, "the number of runs")
    (count,) = struct.unpack_from("<H", view, at)
    end: int = need(at + 2, 4 * count, "the runs of a run container")
    pairs = np.frombuffer(view[at + 2 : end], dtype="<u2").reshape(count, 2).astype(np.int64)
    first, last = pairs[:, 0], pairs[:, 0] + pairs[:, 1]
    if count == 0 or int(last[-1]) > 0xFFFF or not bool((first[1:] > last[:-1] + 1).all()):
        raise _FalseClaimError("the runs of a run container are empty, out of order, touching or too long", at)
    found = int((pairs[:, 1] + 1).sum())
    if found != cardinality:
        raise _FalseClaimError(f"a run container has {found} values, but its cardinality is {cardinality}", at)
    return end
