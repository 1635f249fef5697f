"""Data frames whose values are somebody else's text: what prints them shows what would act as signs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["shown_frame"]


def shown_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The same frame, safe to print: in a terminal and in HTML control characters and bidi overrides are signs.

    The values stay as they are, and so do those of frames and series made of it, which print as it does.
    """
    from iceexplore.render._frame_types import ShownFrame  # pandas is loaded by whoever needs it

    return ShownFrame(frame, copy=False)  # the frame was made for this
