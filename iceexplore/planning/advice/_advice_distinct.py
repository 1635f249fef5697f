"""How many different values a column has: from a statistics file, or guessed from its bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.metadata import TableMetadata
from iceexplore.planning.advice._spread import Spread

__all__ = ["distinct_by_bytes", "distinct_by_statistics"]

#: Of a column chunk in Parquet: bytes of the headers of its pages; and what zstd leaves of a dictionary: of a long one
#: a share, of a short one most. All are rough, measured on a few files, and so is the guess.
_HEADERS = 90.0
_SHORT = 40.0
_DICTIONARY = 0.17
#: Above this share of different values in a file they are taken to be too many to matter.
_MANY = 0.5


def distinct_by_statistics(metadata: TableMetadata, field_id: int) -> float | None:
    """From the newest statistics file that says so (spec, "Table Statistics"; the blob's property ``ndv``)."""
    for statistics in reversed(metadata.statistics):
        for blob in statistics.blob_metadata:
            text = (blob.properties or {}).get("ndv", "")
            if tuple(blob.fields) == (field_id,) and text.isascii() and text.isdigit() and len(text) < 19:
                return float(text) or None
    return None


def distinct_by_bytes(stats: pa.StructArray, spread: Spread) -> float | None:
    """A guess: a dictionary with every value once, and of each row as many bits as tell so many values apart.

    Files of one value alone tell nothing. None where sizes are not known, and where there are so many values that a
    single one hardly counts.
    """
    lower, upper, sizes, values = (pc.struct_field(stats, n) for n in ("lower", "upper", "column_size", "value_count"))
    there = pc.and_(pc.and_(pc.greater(sizes, 0), pc.greater(values, 0)), pc.not_equal(lower, upper))
    mask = pc.fill_null(there, False)
    if not pc.any(mask).as_py():
        return None
    bytes_ = np.asarray(sizes.filter(mask)).astype(np.float64)
    plain = np.asarray(mask).astype(np.bool_)
    rows = np.asarray(values.filter(mask)).astype(np.float64) * (1.0 - spread.nulls[plain])
    width = 8.0
    if pa.types.is_string(lower.type) or pa.types.is_binary(lower.type):
        width = 4.0 + float(pc.mean(pc.binary_length(lower.filter(mask))).as_py())
    size, count = float(np.median(bytes_)), max(1.0, float(np.median(rows)))
    low, high = 1.0, count
    for _ in range(50):  # what fits the size; it grows with the number of values
        middle = (low + high) / 2
        dictionary = min(middle * width, _SHORT + middle * width * _DICTIONARY)
        if _HEADERS + dictionary + count * np.ceil(np.log2(max(2.0, middle))) / 8 <= size:
            low = middle
        else:
            high = middle
    if low >= _MANY * count:
        return None
    depth, _ = spread.depth()
    return max(2.0, low * max(1.0, float(spread.known.sum()) / max(1.0, depth)))  # files apart share no values
