"""Bounds of ``geometry`` and ``geography``: points as bytes (spec, "Bound Serialization")."""

from __future__ import annotations

import math
import struct

__all__ = ["point_of", "point_text"]

#: Lengths in bytes of points with 2 (x, y), 3 (x, y, z) and 4 coordinates (x, y, z, m).
_SIZES = (16, 24, 32)


def point_of(raw: bytes) -> tuple[float, ...] | None:
    """Return the coordinates x, y and, if present, z and m (z is NaN if only m is); None if it is not a point."""
    return struct.unpack(f"<{len(raw) // 8}d", raw) if len(raw) in _SIZES else None


def point_text(raw: bytes) -> str | None:
    """Return a bound as text, ``x 13.4, y 52.5``; None if it is not a point."""
    found = point_of(raw)
    if found is None:
        return None
    named = zip("xyzm", found, strict=False)
    return ", ".join(f"{name} {value!r}" for name, value in named if name in "xy" or not math.isnan(value))
