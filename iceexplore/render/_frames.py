"""Data frames with untrusted text, which print control characters as visible signs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["shown_frame", "whole_numbers"]


def shown_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame in a form that prints control characters and bidi overrides as visible signs.

    Values are not changed; frames and series derived from it print in the same way.
    """
    from iceexplore.render._frame_types import ShownFrame  # pandas is imported only on use

    return ShownFrame(frame, copy=False)  # no copy is needed, because callers keep no reference to the given frame


def whole_numbers(values: Iterable[int | None]) -> pd.api.extensions.ExtensionArray:
    """Return a nullable column of whole numbers, with null for numbers of more than 64 bits.

    By default, pandas stores numbers and None as floats, which would round snapshot ids.
    """
    import pandas as pd

    return pd.array([v if v is not None and -(2**63) <= v < 2**63 else None for v in values], dtype="Int64")
