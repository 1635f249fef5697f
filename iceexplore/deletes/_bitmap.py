"""The bitmaps of deleted positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyroaring import BitMap, BitMap64

__all__ = ["Bitmap"]

#: Positions in a file: 32 bits wide in manifests, 64 in data files. Neither class is a subclass of the other, and
#: pyroaring is imported where the first one is made.
Bitmap: TypeAlias = "BitMap | BitMap64"
