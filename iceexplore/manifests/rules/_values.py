"""Masks over single columns, for manifests of every dialect."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray
from iceexplore.arrow import compute as pc
from iceexplore.deletes import Bitmap
from iceexplore.manifests.model._arrow import whole

__all__ = ["above_file_sequence", "beyond_stored", "falling", "later_than", "no_items", "repeated"]


def no_items(lists: AnyChunkedArray) -> pa.BooleanArray:
    """Return a mask of the lists that are null or empty."""
    return cast(pa.BooleanArray, whole(pc.equal(pc.fill_null(pc.list_value_length(lists), 0), 0)))


def falling(lists: AnyChunkedArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the lists of integers in which some value is below the one before it."""
    out = np.zeros(len(lists), np.bool_)
    held = whole(lists)
    if held.null_count < len(held):
        rows, values = np.asarray(pc.list_parent_indices(held)), np.asarray(pc.list_flatten(held))
        out[rows[1:][(np.diff(values) < 0) & (np.diff(rows) == 0)]] = True
    return out


def later_than(entries: pa.Table, limit: int) -> AnyChunkedArray:
    """Return a mask of the entries whose data sequence number is above a limit; null where it is unknown."""
    return pc.greater(entries["sequence_number"], limit)


def above_file_sequence(entries: pa.Table) -> AnyChunkedArray:
    """Return a mask of the entries whose data sequence number is above the file sequence number; null if unknown.

    Entries of the V4 draft with column files, and their deletion vectors, are excluded: a new column file raises the
    data sequence number of its data file (apache/iceberg#16425).
    """
    above = pc.greater(entries["sequence_number"], entries["file_sequence_number"])
    updated = entries["column_files_snapshot_id"].is_valid()
    if not pc.any(updated).as_py():
        return above
    names = whole(entries["location"].filter(updated))
    of_vector = pc.is_in(whole(entries["referenced_file"]), value_set=names)
    return pc.and_(above, pc.invert(pc.or_(whole(updated), pc.fill_null(of_vector, False))))


def repeated(values: AnyChunkedArray) -> AnyArray:
    """Return the values that occur more than once, as structs of ``values`` and ``counts``; nulls are ignored.

    The values are in the order of their first occurrence.
    """
    counts = pc.value_counts(values.drop_null())
    return counts.filter(pc.greater(counts.field("counts"), 1))


def beyond_stored(bitmap: Bitmap, stored: int) -> bool:
    """Return whether a manifest DV (a `pyroaring.BitMap`) removes positions that its leaf does not have.

    Parameters
    ----------
    stored
        The number of entries that the leaf stores.
    """
    return bool(len(bitmap)) and bool(bitmap.max() >= stored)
