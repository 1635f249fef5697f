"""The common part of plans for procedures that rewrite groups of files."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.doctor.maintenance._plan import Plan, T
from iceexplore.doctor.maintenance._size_based import Accuracy
from iceexplore.graph import to_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GroupedPlan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GroupedPlan(Plan[T]):
    """The plan of a procedure that rewrites groups of files.

    Attributes
    ----------
    groups
        An Arrow table with a row per group, in the order of execution.
    candidates
        The number of files from which the procedure chooses: those that may contain rows that match its filter
        (``where``), or all files if it has no filter.
    accuracy
        How accurate the planned number of new files is: ``exactly``, ``at least``, ``at most`` or ``about``.
    """

    groups: pa.Table = field(repr=False)
    candidates: int = 0
    accuracy: Accuracy = "exactly"

    @property
    @abstractmethod
    def files(self) -> pa.Table:
        """An Arrow table with a row per file that is rewritten."""

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per group: see `groups`."""
        return to_frame(self.groups)

    def files_to_pandas(self) -> pd.DataFrame:
        """Return a row per file that is rewritten: see `files`."""
        return to_frame(self.files)

    def _details(self) -> dict[str, Any]:
        return {
            "candidates": self.candidates,
            "accuracy": self.accuracy,
            "groups": build.to_pylist(self.groups),
        }
