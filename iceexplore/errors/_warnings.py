"""Warnings that point to the user's code, however many functions of iceexplore are in between."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_caller"]


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the innermost line of code that is not iceexplore's own."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "iceexplore":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level + 1)
