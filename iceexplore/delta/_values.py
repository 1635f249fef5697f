"""Convert partition values, which Delta stores as text, to the types of their columns.

Delta's PROTOCOL.md, "Partition Value Serialization": an empty string is null; timestamps have a space or, adjusted to
UTC, a ``T`` and a ``Z``.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc

__all__ = ["partition_arrow"]


def partition_arrow(texts: AnyArray, kind: pa.DataType) -> tuple[AnyArray, int]:
    """Return the values as an array of the type, and the number of values that do not fit and became null."""
    given = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    try:
        return given.cast(kind), 0
    except pa.ArrowException:  # convert one by one: some values do not fit, or are timestamps without a zone
        made = [None if text is None else _value(text, kind) for text in given.to_pylist()]
    array = pa.array(made, kind)
    return array, array.null_count - given.null_count


def _value(text: str, kind: pa.DataType) -> object:
    try:
        if pa.types.is_timestamp(kind):
            found = datetime.fromisoformat(text)
            if kind.tz is None:
                return found.replace(tzinfo=None)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return pa.array([text]).cast(kind)[0].as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        return None
