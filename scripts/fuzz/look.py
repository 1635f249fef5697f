"""One case, and what it shows."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Case", "Look"]


@dataclass(frozen=True)
class Case:
    """A damaged table, ready to be looked at.

    Attributes
    ----------
    file, change
        The changed file, relative to the folder of the run, and what was changed in it.
    look
        Looks at the table; returns what `Look.result` returns.
    """

    file: str
    change: str
    look: Callable[[], dict[str, Any]]


class Look:
    """What one case shows: foreign errors by kind, and how often the table is refused."""

    def __init__(self) -> None:
        self.faults: list[tuple[str, str]] = []
        self.refused = 0
        self.slow = ("", 0.0)

    def go(self, name: str, way: Callable[[], Any], *, may: tuple[type[Exception], ...] | None = None) -> Any:
        """Go one way; give its result, or None where it fails.

        Parameters
        ----------
        may
            Errors of ours that the way documents; None allows all of them.
        """
        import iceexplore as ix

        began = time.monotonic()
        try:
            return way()
        except ix.IceexploreError as error:
            if may is not None and not isinstance(error, may):
                self.faults.append((f"{name} raises {type(error).__name__}", traceback.format_exc()))
            self.refused += 1
        except Exception as error:
            self.faults.append((_kind(error), f"{name}: {traceback.format_exc()}"))
        finally:
            took = time.monotonic() - began
            self.slow = max(self.slow, (name, took), key=lambda one: one[1])

    def require(self, holds: bool, kind: str, text: str) -> None:
        """Note a fault unless a promise holds."""
        if not holds:
            self.faults.append((kind, text))

    def result(self, silent: list[int] | None = None) -> dict[str, Any]:
        """Return the faults, the number of refusals, the slowest way, and rows that differ without a problem."""
        return {"faults": self.faults, "refused": self.refused, "silent": silent, "slow": self.slow}


def _kind(error: BaseException) -> str:
    """Name an error by its type and the innermost frame of the package."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}iceexplore{os.sep}" in f.filename]
    if not frames:
        return f"{type(error).__name__} outside the package"
    file = frames[-1].filename.rsplit(f"{os.sep}iceexplore{os.sep}", 1)[1]
    return f"{type(error).__name__} in {file}:{frames[-1].name}"
