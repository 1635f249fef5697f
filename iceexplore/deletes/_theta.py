"""Estimate distinct values from the preamble of an Apache DataSketches compact theta sketch.

Rules: ``PreambleUtil`` of Apache DataSketches. A sketch keeps the hashes below ``theta``; the estimate is their number
divided by the fraction of the hash space below ``theta``.
"""

from __future__ import annotations

import struct

from iceexplore.errors import FormatError

__all__ = ["theta_ndv"]

_COMPACT_FAMILY = 3
_EMPTY = 1 << 2
_SINGLE_ITEM = 1 << 5
_MAX_THETA = (1 << 63) - 1


def theta_ndv(data: bytes, location: str | None = None) -> float | None:
    """Estimate the distinct values from the bytes of an ``apache-datasketches-theta-v1`` blob.

    Engines do not decode the sketch but use the blob's property ``ndv`` (`PuffinBlob.ndv`). The estimate shows whether
    that property is plausible.

    Returns
    -------
    float or None
        The estimate; None for an unknown serial version (3 and 4 are known).

    Raises
    ------
    FormatError
        The data is not a compact theta sketch, or ends too early.
    """

    def wrong(text: str, at: int) -> FormatError:
        return FormatError(text, location=location, offset=at, field="apache-datasketches-theta-v1")

    if len(data) < 8:
        raise wrong(f"a theta sketch takes at least 8 bytes, this one has {len(data)}", 0)
    preamble, version, family, flags = data[0] & 0x3F, data[1], data[2], data[5]
    if family != _COMPACT_FAMILY:
        raise wrong(f"sketch family {family}, but a compact theta sketch has family {_COMPACT_FAMILY}", 2)
    if version == 3:
        if flags & _EMPTY:
            return 0.0
        if preamble == 1:
            if not flags & _SINGLE_ITEM or len(data) < 16:
                raise wrong("a sketch with a short preamble must be empty or have a single hash", 0)
            return 1.0
        count_at, theta_at, width, start = 8, 16 if preamble >= 3 else None, 4, preamble * 8
        bits = 64
    elif version == 4:  # hashes are stored as packed deltas
        bits, width = data[3], data[4]
        theta_at, count_at = (8, 16) if preamble > 1 else (None, 8)
        start = count_at + width
        if not 0 < width <= 4:
            raise wrong(f"the count of hashes has {width} bytes, expected 1 to 4", 4)
    else:
        return None
    if start > len(data) or preamble not in (1, 2, 3):
        raise wrong(f"a preamble of {preamble} longs (8 bytes each) in {len(data)} bytes: expected 1 to 3 that fit", 0)
    count = int.from_bytes(data[count_at : count_at + width], "little")
    if count * bits > 8 * (len(data) - start):
        raise wrong(f"{count} hashes do not fit in {len(data) - start} bytes", count_at)
    theta = _MAX_THETA if theta_at is None else struct.unpack_from("<q", data, theta_at)[0]
    if theta <= 0:
        raise wrong(f"theta is {theta}, but must be above 0", theta_at or 0)
    return float(count) if theta == _MAX_THETA else count * (_MAX_THETA / theta)
