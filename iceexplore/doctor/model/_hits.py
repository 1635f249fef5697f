"""All places of a finding, kept while a table is examined; the finding itself lists only the first ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from iceexplore.arrow import AnyArray

__all__ = ["Hits"]


@dataclass(frozen=True, eq=False)
class Hits:
    """All places of a finding, as columns where there may be many.

    Attributes
    ----------
    places
        Locations, possibly with ``#entry 3`` after them.
    entries
        Manifests, and the ordinals of some of their entries.
    rows
        Rows of ``Examination.files``.
    files
        Locations of data files.
    complete
        False if there are further places, which are unknown.
    """

    places: tuple[str, ...] = ()
    entries: tuple[tuple[str, npt.NDArray[np.int64]], ...] = ()
    rows: tuple[npt.NDArray[np.int64], ...] = ()
    files: tuple[AnyArray, ...] = ()
    complete: bool = True

    @classmethod
    def union(cls, several: Iterable[Hits]) -> Hits:
        """Return the hits of findings that are merged."""
        given = list(several)
        return cls(
            places=tuple(dict.fromkeys(place for one in given for place in one.places)),
            entries=tuple(entry for one in given for entry in one.entries),
            rows=tuple(rows for one in given for rows in one.rows),
            files=tuple(files for one in given for files in one.files),
            complete=all(one.complete for one in given),
        )
