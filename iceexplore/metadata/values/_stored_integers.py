"""Convert arrays to their stored integers, and apply functions once per distinct value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc

__all__ = ["by_unique", "integers_of"]


def integers_of(values: AnyArray) -> np.ndarray[Any, Any]:
    """Return the stored integers of numbers, dates, times and timestamps, as int64; nulls are 0."""
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    return np.asarray(pc.fill_null(values.cast(pa.int64()), 0))


def by_unique(values: AnyArray, apply: Callable[[Any], Any], target: pa.DataType) -> AnyArray:
    """Return the results of a function for an array; the function is called only once for each distinct value."""
    encoded = values.dictionary_encode()
    made = pa.array([None if v is None else apply(v) for v in encoded.dictionary.to_pylist()], target)
    return made.take(encoded.indices)
