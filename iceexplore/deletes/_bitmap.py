"""The type of the bitmaps that store deleted positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyroaring import BitMap, BitMap64

__all__ = ["Bitmap"]

#: A bitmap of positions: 32-bit for the entries of a manifest, 64-bit for the rows of a data file. Neither class is a
#: subclass of the other. The type is a string, because pyroaring is imported only once a bitmap is needed.
Bitmap: TypeAlias = "BitMap | BitMap64"
