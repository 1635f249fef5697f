"""Read leaf manifests without their manifest DVs, and find entries by position."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from iceexplore.graph import TableState
from iceexplore.manifests import ENTRY_SCHEMA, Manifest

if TYPE_CHECKING:
    from pyroaring import BitMap

__all__ = ["bare_leaves", "is_at"]


def bare_leaves(state: TableState, root: Manifest, rows: list[int]) -> Iterable[Manifest]:
    """Read the manifests in some rows of a root as they are stored, without applying manifest DVs."""
    if not rows:
        return ()
    entries = root.entries.take(pa.array(rows, pa.int64()))
    at = ENTRY_SCHEMA.get_field_index("deletion_vector")
    kind = ENTRY_SCHEMA.field("deletion_vector").type
    entries = entries.set_column(at, ENTRY_SCHEMA.field(at), pa.nulls(len(entries), kind))
    bare = Manifest(root.location, entries, dialect=root.dialect, is_root=True)
    return state.reader.leaves(bare, list(range(len(rows))))


def is_at(ordinals: np.ndarray, positions: BitMap | None) -> np.ndarray:
    """Return a mask of the entries whose positions in their manifest (``ordinals``) are in the bitmap ``positions``.

    Positions in the bitmap that are larger than the largest ordinal are ignored. None is the same as an empty bitmap.
    """
    mask = np.zeros(len(ordinals), np.bool_)
    if positions is None or not len(ordinals):
        return mask
    from pyroaring import BitMap

    last = int(ordinals.max())
    held = np.asarray((positions & BitMap(range(last + 1))).to_array(), dtype=np.int64)
    there = np.zeros(last + 1, np.bool_)
    there[held] = True
    found: np.ndarray = there[ordinals]
    return found
