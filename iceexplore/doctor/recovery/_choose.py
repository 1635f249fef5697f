"""Choose, among candidates, the files that a lost manifest listed, by the counts that the manifest list states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Choice", "Counts", "choose"]

_Mask = npt.NDArray[np.bool_]
#: The maximum number of steps of the search for subsets with the stated counts. If it needs more, no file is chosen.
_MOST_STEPS = 50_000


@dataclass(frozen=True)
class Counts:
    """A number of files, and the sum of their record counts.

    The record count of a delete file or deletion vector is the number of its deletes.
    """

    files: int
    rows: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.files + other.files, self.rows + other.rows)

    def __sub__(self, other: Counts) -> Counts:
        return Counts(self.files - other.files, self.rows - other.rows)


@dataclass(frozen=True)
class Choice:
    """A choice among candidates: which of them were in the manifest, as masks.

    Attributes
    ----------
    taken
        The candidates that must have been in the manifest, if the counts are right.
    doubtful
        The candidates that may have been in the manifest; there are such candidates if several choices fit the counts,
        or if no choice was found that fits them.
    exact
        Whether `taken` has exactly the stated counts.
    """

    taken: _Mask
    doubtful: _Mask
    exact: bool


def choose(rows: Sequence[int] | npt.NDArray[np.int64], stated: Counts) -> Choice:
    """Choose, among candidates given by their row counts, the files of a manifest with the stated counts.

    If there are more candidates than the manifest had files, all subsets with the stated counts are compared: a
    candidate that is in every subset is taken, one that is in none is left out, and the others are doubtful. If there
    are fewer candidates, all are taken unless they have too many rows. If no choice fits the counts, or if the search
    takes too long, all candidates are doubtful.
    """
    counts = np.asarray(rows, np.int64)
    none, everything = np.zeros(len(counts), bool), np.ones(len(counts), bool)
    surplus = Counts(len(counts), int(counts.sum())) - stated
    if surplus == Counts(0, 0):
        return Choice(everything, none, True)
    if surplus.files < 0:
        fit = surplus.rows <= 0
        return Choice(everything if fit else none, none if fit else everything, False)
    if surplus.files == 0 or surplus.rows < 0:
        return Choice(none, everything, False)
    values, of, many = np.unique(counts, return_inverse=True, return_counts=True)
    # To choose the files to take is the same as to choose the files to leave out. The search takes fewer steps if it
    # looks for the smaller of the two sets.
    dropped = surplus.files <= stated.files
    found = _subsets(values.tolist(), many.tolist(), surplus if dropped else stated)
    if not found:
        return Choice(none, everything, False)
    chosen = np.array(found, np.int64)
    chosen = many - chosen if dropped else chosen
    taken = np.all(chosen == many, axis=0)[of]
    doubtful = ~taken & np.any(chosen > 0, axis=0)[of]
    return Choice(taken, doubtful, not doubtful.any())


def _subsets(values: list[int], many: list[int], wanted: Counts) -> list[tuple[int, ...]]:
    """Return all ways to pick candidates that together have the wanted number of files and of rows.

    Candidates with equal row counts are not distinguished. The result is empty if there is no such way, or if the
    search takes too long.

    Parameters
    ----------
    values
        The distinct row counts of the candidates, ascending.
    many
        For each of these row counts, the number of candidates that have it.
    wanted
        The number of files to pick, and the sum of their row counts.

    Returns
    -------
    list of tuple
        For each way, how many files to pick of each row count in ``values``.
    """
    out: list[tuple[int, ...]] = []
    left = _MOST_STEPS
    stack: list[tuple[tuple[int, ...], Counts]] = [((), wanted)]
    while stack:
        left -= 1
        if left < 0:
            return []
        picked, rest = stack.pop()
        at = len(picked)
        if rest.files == 0:
            if rest.rows == 0:
                out.append((*picked, *(0 for _ in values[at:])))
            continue
        # Give up if the remaining files would have too many rows even if each had the lowest row count that is left, or
        # too few rows even if each had the highest.
        if at == len(values) or not values[at] * rest.files <= rest.rows <= values[-1] * rest.files:
            continue
        stack += [
            ((*picked, n), rest - Counts(n, n * values[at])) for n in range(min(many[at], rest.files) + 1)
        ]  # fmt: skip
    return out
