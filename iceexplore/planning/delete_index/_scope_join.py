"""Pair data files with deletes of the same group (such as a partition), by sequence numbers and overlapping bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from iceexplore.planning.delete_index._codes import Ints, expand
from iceexplore.planning.delete_index._equality_bounds import END, Intervals

__all__ = ["Found", "Scope", "Spans", "joined", "pieces", "total_of"]

#: If there are more pairs of a data file and a delete than this, their bounds are not compared, and no pair is
#: excluded.
MOST_PAIRS = 1 << 25
#: Approximate number of pairs that `pieces` yields at a time, which limits the memory for comparing their bounds.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Spans:
    """Pairs of a data file and a delete in a compact form: the deletes of each data file are one slice of `order`.

    In the second result of `Scope.overlapping`, files and deletes are swapped: there, the data files of each delete are
    one slice of `order`.

    Attributes
    ----------
    order
        Row numbers of deletes (if swapped, of data files). Slices may overlap.
    start, stop
        One value per data file (if swapped, one per item of `Scope.deletes`). The slice of data file ``i`` is
        ``order[start[i]:stop[i]]``; it is empty if ``stop[i] <= start[i]``.
    """

    order: Ints
    start: Ints
    stop: Ints


#: Pairs of a data file and a delete: either two arrays of row numbers (data files, deletes), or `Spans`.
Found: TypeAlias = tuple[Ints, Ints] | Spans


@dataclass(frozen=True, eq=False)
class Scope:
    """The data files and deletes to join.

    A delete may apply to a data file if both are in the same group and the file's sequence number is not above the
    delete's. A group is a partition; for global equality deletes, all data files are in one group.

    Attributes
    ----------
    file_group, delete_group
        Group numbers, one per data file and one per delete. A file with a negative number is in no group.
    file_sequence, delete_sequence
        Data sequence numbers, one per data file and one per delete. Those of equality deletes are reduced by one,
        because an equality delete applies only to data files with a lower sequence number.
    deletes
        Row numbers of the deletes to join, as indices into `delete_group` and `delete_sequence`; others are ignored.
    """

    file_group: Ints
    file_sequence: Ints
    delete_group: Ints
    delete_sequence: Ints
    deletes: Ints

    def spans(self) -> Spans:
        """Return, for each file, the deletes of its group whose sequence numbers are not below that of the file."""
        group, sequence = self.delete_group[self.deletes], self.delete_sequence[self.deletes]
        levels = np.unique(sequence)
        place, width = np.searchsorted(levels, sequence), len(levels) + 1
        order = np.lexsort((self.deletes, place, group))
        # A key combines the group and the rank of the sequence number (`place`). Sort the deletes by key. Then those
        # that apply to a file are adjacent: in the file's group, they start with the first that has at least the file's
        # own sequence number, and go on to the end of the group.
        keys = group[order] * width + place[order]
        first = self.file_group * width + np.searchsorted(levels, self.file_sequence, "left")
        start = np.searchsorted(keys, first, "left")
        stop = np.searchsorted(keys, (self.file_group + 1) * width, "left")
        stop = np.where(self.file_group < 0, start, np.maximum(stop, start))
        return Spans(self.deletes[order], start, stop)

    def overlapping(self, intervals: Intervals) -> tuple[Spans, Spans]:
        """Return the pairs within a group whose intervals of one column overlap; sequence numbers are not compared.

        Two intervals overlap if one of them begins inside the other. Each pair is in only one of the two results.

        Parameters
        ----------
        intervals
            The intervals of all data files and deletes. This method compares the intervals that `Intervals.widened`
            returns, so the result may include pairs that `Intervals.apart` excludes.

        Returns
        -------
        by_file
            For each data file, the deletes whose interval begins inside the data file's interval or at its start.
        by_delete
            For each of `deletes`, the data files whose interval begins inside the delete's interval, but not at its
            start. Files and deletes are swapped in this result; see `Spans`.
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
    """Return the pairs in a scope, without those that the intervals of at least one column exclude.

    If the scope has more than `_AT_ONCE` pairs, the column that excludes the most pairs is used first.
    `Scope.overlapping` finds the pairs that this column does not exclude, and only these are then compared by all
    columns. If there are more than `MOST_PAIRS` of them, no pair is excluded at all: readers then apply more deletes
    than necessary, which is slower but equally correct.

    Parameters
    ----------
    intervals
        The intervals of each column whose bounds can exclude a pair; see `Intervals.apart`.

    Returns
    -------
    Found
        `Spans` if no pair is excluded; otherwise two arrays of row numbers, of data files and of deletes.
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
                # In the second result of `overlapping`, files and deletes are swapped: here, `files` are indices into
                # `scope.deletes`, and `deletes` are row numbers of data files.
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
    """Return the number of pairs of a data file and a delete in ``spans``."""
    return int(np.maximum(spans.stop - spans.start, 0).sum())


def pieces(spans: Spans) -> Iterator[tuple[Ints, Ints]]:
    """Yield all pairs of ``spans`` in chunks of about `_AT_ONCE` pairs; each chunk is two arrays of equal length.

    For each pair, the first array has the number of a data file (its index in ``spans.start``), and the second has the
    row number of a delete (an item of ``spans.order``). If files and deletes are swapped (see `Spans`), the first array
    has indices into `Scope.deletes`, and the second has row numbers of data files.

    The pairs of one data file are never split, so a chunk may be larger than `_AT_ONCE`.
    """
    sizes = np.maximum(spans.stop - spans.start, 0)
    ends = np.cumsum(sizes)
    cuts = np.unique(np.searchsorted(ends, np.arange(_AT_ONCE, int(ends[-1]) + _AT_ONCE, _AT_ONCE), "left") + 1)
    for a, b in pairwise([0, *np.minimum(cuts, len(sizes)).tolist()]):
        rows, places = expand(spans.start[a:b], spans.stop[a:b])
        yield rows + a, spans.order[places]
