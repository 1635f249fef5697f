"""Pairs of data files and deletes in one scope: by group and sequence number, or by overlapping intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from iceexplore.planning.delete_index._codes import Ints, expand
from iceexplore.planning.delete_index._equality_bounds import END, Intervals

__all__ = ["Found", "Scope", "Spans", "joined", "pieces", "total_of"]

#: Pairs looked at one by one, and at once.
MOST_PAIRS = 1 << 25
_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Spans:
    """Deletes that apply to files without pairs being made: a stretch of `order` for each file.

    Attributes
    ----------
    order
        Deletes.
    start, stop
        One per file; empty where stop is not above start.
    """

    order: Ints
    start: Ints
    stop: Ints


#: Pairs of a file and a delete, or stretches.
Found: TypeAlias = tuple[Ints, Ints] | Spans


@dataclass(frozen=True, eq=False)
class Scope:
    """What can meet: files and deletes of the same group, the file at or below the delete's sequence number.

    Attributes
    ----------
    file_group, delete_group
        A negative group of a file meets nothing.
    file_sequence, delete_sequence
        For equality deletes one less than the delete's data sequence number.
    deletes
        Which deletes take part: numbers of those that `delete_group` and `delete_sequence` are of.
    """

    file_group: Ints
    file_sequence: Ints
    delete_group: Ints
    delete_sequence: Ints
    deletes: Ints

    def spans(self) -> Spans:
        """The deletes of each file's group that are not older than it, as stretches of one order."""
        group, sequence = self.delete_group[self.deletes], self.delete_sequence[self.deletes]
        levels = np.unique(sequence)
        place, width = np.searchsorted(levels, sequence), len(levels) + 1
        order = np.lexsort((self.deletes, place, group))
        keys = group[order] * width + place[order]
        first = self.file_group * width + np.searchsorted(levels, self.file_sequence, "left")
        start = np.searchsorted(keys, first, "left")
        stop = np.searchsorted(keys, (self.file_group + 1) * width, "left")
        stop = np.where(self.file_group < 0, start, np.maximum(stop, start))
        return Spans(self.deletes[order], start, stop)

    def overlapping(self, intervals: Intervals) -> tuple[Spans, Spans]:
        """What meets in one column, whatever its sequence number, in two ways that no pair shares.

        Returns
        -------
        by_file
            Of each file the deletes that begin within it.
        by_delete
            Of each of `deletes` the files that begin within it, after its begin.
        """
        wide = intervals.widened()
        width = END + 2
        group, files = self.delete_group[self.deletes], np.flatnonzero(self.file_group >= 0)
        low = group * width + np.minimum(wide.delete_low[self.deletes], END + 1)
        high = group * width + wide.delete_high[self.deletes]
        base = self.file_group * width
        order = np.argsort(low, kind="stable")
        start = np.searchsorted(low[order], base + wide.file_low, "left")
        stop = np.searchsorted(low[order], base + wide.file_high, "right")
        by_file = Spans(self.deletes[order], start, np.where(self.file_group < 0, start, stop))
        begin = (base + wide.file_low)[files]
        order = np.argsort(begin, kind="stable")
        start = np.searchsorted(begin[order], low, "right")
        by_delete = Spans(files[order], start, np.searchsorted(begin[order], high, "right"))
        return by_file, by_delete


def joined(scope: Scope, intervals: Sequence[Intervals]) -> Found:
    """The pairs in a scope that no column keeps apart; as stretches where that takes no pair out, or is too much.

    With more than `MOST_PAIRS` candidates in every column, bounds are not compared: all deletes in scope apply, which
    is slower to read and just as right.
    """
    spans = scope.spans()
    total = total_of(spans)
    if not intervals or not total:
        return spans
    best: tuple[Spans, Spans] | None = None
    if total > _AT_ONCE:
        for column in intervals:
            found = scope.overlapping(column)
            count = sum(map(total_of, found))
            if count < total:
                best, total = found, count
    if total > MOST_PAIRS:
        return spans
    nothing = np.zeros(0, dtype=np.int64)
    kept: list[tuple[Ints, Ints]] = [(nothing, nothing)]
    for flipped, way in enumerate((spans,) if best is None else best):
        for files, deletes in pieces(way):
            if flipped:
                files, deletes = deletes, scope.deletes[files]
            keep = np.ones(len(files), dtype=bool)
            if best is not None:
                keep &= scope.delete_sequence[deletes] >= scope.file_sequence[files]
            for column in intervals:
                keep &= ~column.apart(files, deletes)
            kept.append((files[keep], deletes[keep]))
    if best is None and sum(len(f) for f, _ in kept) == total:
        return spans
    files, deletes = (np.concatenate([k[i] for k in kept]) for i in (0, 1))
    return files, deletes


def total_of(spans: Spans) -> int:
    """How many pairs there are."""
    return int(np.maximum(spans.stop - spans.start, 0).sum())


def pieces(spans: Spans) -> Iterator[tuple[Ints, Ints]]:
    """All pairs, a limited number at once: which stretch, and what is in it."""
    sizes = np.maximum(spans.stop - spans.start, 0)
    ends = np.cumsum(sizes)
    cuts = np.unique(np.searchsorted(ends, np.arange(_AT_ONCE, int(ends[-1]) + _AT_ONCE, _AT_ONCE), "left") + 1)
    for a, b in pairwise([0, *np.minimum(cuts, len(sizes)).tolist()]):
        rows, places = expand(spans.start[a:b], spans.stop[a:b])
        yield rows + a, spans.order[places]
