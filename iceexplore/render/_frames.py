"""Data frames with untrusted text, which print control characters as visible signs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["shown_frame"]


def shown_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame in a form that prints control characters and bidi overrides as visible signs.

    Values are not changed; frames and series derived from it print in the same way.
    """
    from iceexplore.render._frame_types import ShownFrame  # pandas is imported only on use

    return ShownFrame(frame, copy=False)  # the caller keeps no other reference to the frame
