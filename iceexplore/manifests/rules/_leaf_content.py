"""Rules on the content types in a leaf: it lists only files, and only of the kind that its entry in the root states."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from iceexplore.manifests.model._content_entry import ContentType
from iceexplore.manifests.rules._rows import FILES, Mask, Rows

__all__ = ["misplaced", "not_allowed"]


def not_allowed(r: Rows, kinds: Collection[int] = FILES) -> Mask:
    """Return a mask of the rows with other content types than ``kinds``, by default all but files (``two-levels``)."""
    out: Mask = ~np.isin(r.kind, [int(kind) for kind in kinds])
    return out


def misplaced(r: Rows, listed_as: int) -> Mask:
    """Return a mask of the rows that do not belong in the leaf (``leaf-data-content``, ``leaf-delete-content``).

    Parameters
    ----------
    listed_as
        The leaf's content type in the root.
    """
    if listed_as == ContentType.DELETE_MANIFEST:
        return r.is_kind(ContentType.DATA)
    return r.is_kind(ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE) & ~r.carried
