"""Join columns of texts, also where Arrow does not."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.arrow._types import AnyArray

__all__ = ["join_texts"]


def join_texts(parts: Sequence[AnyArray], separator: str) -> AnyArray:
    """Return, for each row, its texts that are not null, joined; an empty text if all are null.

    Arrow 26's ``binary_join_element_wise`` with ``null_handling="skip"`` leaves out rows whose values are all null, so
    that its result is too short.

    Parameters
    ----------
    parts
        Arrays of strings of the same length, at least one.
    """
    first, *others = parts
    is_empty = pc.is_null(first)
    for part in others:
        is_empty = pc.and_(is_empty, pc.is_null(part))
    first = pc.if_else(is_empty, pa.scalar("", pa.string()), first)
    return pc.binary_join_element_wise(first, *others, separator, null_handling="skip")
