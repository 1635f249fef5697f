"""The bitmaps of deleted positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyroaring import BitMap, BitMap64

__all__ = ["Bitmap"]

#: A bitmap of positions: 32-bit for manifests, 64-bit for data files. Neither class is a subclass of the other.
#: pyroaring is only imported once a bitmap is needed.
Bitmap: TypeAlias = "BitMap | BitMap64"
