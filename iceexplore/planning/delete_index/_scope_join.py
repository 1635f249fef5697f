"""Join data files and deletes by group and sequence number, or by overlapping intervals."""

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
#: excluded. Otherwise, bounds of ``_AT_ONCE`` pairs are compared at a time.
MOST_PAIRS = 1 << 25
_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Spans:
    """Pairs of a data file and a delete in a short form: the deletes of each file are one range of `order`.

    `Scope.overlapping` also uses it the other way round: the files of each delete are one range of `order`.

    Attributes
    ----------
    order
        Row numbers of deletes.
    start, stop
        One value per file: its deletes are ``order[start:stop]``. It has none if stop is not above start.
    """

    order: Ints
    start: Ints
    stop: Ints


#: Pairs of a file and a delete: explicit, or as a range of deletes for each file.
Found: TypeAlias = tuple[Ints, Ints] | Spans


@dataclass(frozen=True, eq=False)
class Scope:
    """Data files and deletes to join: a delete may apply to a file of its group with an equal or lower sequence number.

    Attributes
    ----------
    file_group, delete_group
        The number of each file's and each delete's group, such as its partition. A file with a negative number matches
        nothing.
    file_sequence, delete_sequence
        Data sequence numbers; those of equality deletes are reduced by one, as they apply to older files only.
    deletes
        The deletes that take part, as indices into `delete_group` and `delete_sequence`.
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
        # A key combines the group and the rank of the sequence number (`place`). In the order of the keys, the deletes
        # that apply to a file are adjacent: from the key with the file's own sequence number to the end of its group.
        keys = group[order] * width + place[order]
        first = self.file_group * width + np.searchsorted(levels, self.file_sequence, "left")
        start = np.searchsorted(keys, first, "left")
        stop = np.searchsorted(keys, (self.file_group + 1) * width, "left")
        stop = np.where(self.file_group < 0, start, np.maximum(stop, start))
        return Spans(self.deletes[order], start, stop)

    def overlapping(self, intervals: Intervals) -> tuple[Spans, Spans]:
        """Return the pairs whose intervals of one column overlap, as two disjoint sets; ignore sequence numbers.

        Returns
        -------
        by_file
            For each file, the deletes whose interval begins inside the interval of the file.
        by_delete
            For each of `deletes`, the files whose interval begins inside that of the delete, but not at its start.
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

    If there are many pairs, they are first reduced by the one column that excludes the most. If this leaves more than
    `MOST_PAIRS` pairs, no pair is excluded at all: readers then apply more deletes, which is slower but equally
    correct. If no pair is excluded, the result is `Spans`.
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
                # The second result of `overlapping` has a range of files for each delete, so `pieces` yields, in this
                # order, indices into `scope.deletes` and files.
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
    """Return the number of pairs in all ranges."""
    return int(np.maximum(spans.stop - spans.start, 0).sum())


def pieces(spans: Spans) -> Iterator[tuple[Ints, Ints]]:
    """Yield all pairs, in chunks of about `_AT_ONCE` pairs; a chunk consists of two arrays.

    If the ranges hold the deletes of each file, the arrays hold the pairs' files and deletes: the first has the index
    of a range in ``start`` and ``stop``, the second has the item of ``order`` in this range.
    """
    sizes = np.maximum(spans.stop - spans.start, 0)
    ends = np.cumsum(sizes)
    cuts = np.unique(np.searchsorted(ends, np.arange(_AT_ONCE, int(ends[-1]) + _AT_ONCE, _AT_ONCE), "left") + 1)
    for a, b in pairwise([0, *np.minimum(cuts, len(sizes)).tolist()]):
        rows, places = expand(spans.start[a:b], spans.stop[a:b])
        yield rows + a, spans.order[places]
