"""Pair data files with the deletes that may apply to them, by partition, sequence number and column bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from iceexplore.planning.delete_index._codes import Ints, expand
from iceexplore.planning.delete_index._equality_bounds import END, Intervals

__all__ = ["Found", "Scope", "Spans", "joined", "pieces", "total_of"]

#: Maximum number of pairs of a data file and a delete whose column bounds `joined` compares one by one. If there are
#: more, this would take too long: `joined` then excludes no pair, so readers apply more deletes than necessary, which
#: is slower but equally correct.
MOST_PAIRS = 1 << 25
#: Approximate number of pairs of a data file and a delete in one chunk that `pieces` yields. `joined` compares the
#: column bounds of the pairs chunk by chunk, so that it needs less memory. If there are more pairs than this in total,
#: it first looks for the column whose bounds exclude the most pairs, and compares only the remaining pairs one by one.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Spans:
    """Pairs of a data file and a delete that may apply to it, stored as slices of one array of row numbers.

    Slice ``i`` is ``order[start[i]:stop[i]]``; it is empty if ``stop[i] <= start[i]``. Usually, there is one slice per
    data file: slice ``i`` belongs to the data file with the row number ``i``, and has the row numbers of its deletes.
    In the second result of `Scope.overlapping`, there is one slice per delete instead: slice ``i`` belongs to the
    delete with the row number ``Scope.deletes[i]``, and has the row numbers of its data files.

    Attributes
    ----------
    order
        Row numbers of deletes or, in the second result of `Scope.overlapping`, of data files. Slices may overlap.
    start, stop
        Where each slice starts and stops in `order`: one value per slice.
    """

    order: Ints
    start: Ints
    stop: Ints


#: Pairs of a data file and a delete. They are either two arrays of equal length, with the row numbers of the data files
#: and those of the deletes, or, to save memory, a `Spans`: for each data file, a slice of an array of deletes.
Found: TypeAlias = tuple[Ints, Ints] | Spans


@dataclass(frozen=True, eq=False)
class Scope:
    """The data files and deletes from which pairs are made, with their groups and sequence numbers.

    A delete is paired with a data file if both are in the same group, and if the data file's sequence number is not
    above the delete's. Usually, each partition is one group. Global equality deletes, which apply in all partitions,
    have a `Scope` of their own, in which all data files and deletes are in one group.

    Attributes
    ----------
    file_group, delete_group
        Group numbers, one per data file and one per delete. A negative number means that the data file or delete is in
        no group, so it is not paired.
    file_sequence, delete_sequence
        Data sequence numbers, one per data file and one per delete. For an equality delete, it is the real sequence
        number minus 1, because an equality delete applies only to data files with a lower sequence number.
    deletes
        Row numbers of the deletes to pair: indices into `delete_group` and `delete_sequence`. No other deletes are
        paired.
    """

    file_group: Ints
    file_sequence: Ints
    delete_group: Ints
    delete_sequence: Ints
    deletes: Ints

    def spans(self) -> Spans:
        """Return, for each data file, the deletes in its group whose sequence number is not below the file's.

        The deletes are sorted by group and sequence number, so the deletes of a data file are consecutive. The result
        has the sorted deletes (`Spans.order`), and where each data file's slice of them starts and stops. A group is
        usually a partition; for global equality deletes, one group contains all data files. For equality deletes, 1 has
        already been subtracted from the sequence numbers: see `delete_sequence`.
        """
        group, sequence = self.delete_group[self.deletes], self.delete_sequence[self.deletes]
        levels = np.unique(sequence)
        place, width = np.searchsorted(levels, sequence), len(levels) + 1
        order = np.lexsort((self.deletes, place, group))
        # `place` is, for each delete, the position of its sequence number among the distinct sequence numbers in
        # ascending order (`levels`). A delete's key is the number of its group (usually its partition) times `width`,
        # plus this position. `width` is above every position, so the keys of different groups do not mix. The deletes
        # are sorted by key, so the deletes to pair with a data file are one slice. It begins with the first delete of
        # the file's group whose sequence number is not below the file's, and ends with the last delete of the group.
        # (The sequence numbers of equality deletes have been reduced by 1, because these deletes apply only to data
        # files with a lower sequence number.)
        keys = group[order] * width + place[order]
        first = self.file_group * width + np.searchsorted(levels, self.file_sequence, "left")
        start = np.searchsorted(keys, first, "left")
        stop = np.searchsorted(keys, (self.file_group + 1) * width, "left")
        stop = np.where(self.file_group < 0, start, np.maximum(stop, start))
        return Spans(self.deletes[order], start, stop)

    def overlapping(self, intervals: Intervals) -> tuple[Spans, Spans]:
        """Return the pairs of a data file and a delete whose intervals of one column overlap.

        An interval goes from the column's lower bound to its upper bound, in a data file or in the rows of a delete.
        Only a data file and a delete in the same group (usually a partition, see `Scope`) form a pair. Sequence numbers
        are not compared. If two intervals overlap, one begins inside the other. The first result has the pairs in which
        the delete's interval begins inside the data file's or at its start. The second result has the pairs in which
        the data file's interval begins inside the delete's, but not at its start.

        Parameters
        ----------
        intervals
            The column's intervals in all data files and deletes. This method gives a delete the widest interval
            (`Intervals.widened`) if the column is not one of its equality columns, or if it may match nulls or NaN, so
            that no pair is missed. Because of this, the results may contain pairs without a common value.

        Returns
        -------
        by_file
            For each data file, the deletes whose interval begins inside the data file's interval or at its start.
        by_delete
            For each item of `deletes`, the data files whose interval begins inside the delete's interval, but not at
            its start. Unlike ``by_file``, this `Spans` has one slice per delete, and each slice has data files.
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
    """Return the pairs of a data file and a delete in ``scope``, except those that metrics exclude.

    A pair is excluded if the metrics of a column that the delete compares prove that the data file and the delete have
    no value in common. For example, the bounds of the column are 1 and 5 in the data file, but 7 and 9 in the delete.

    Comparing the pairs one by one takes time. So if there are more than `_AT_ONCE` (about a million), the column that
    excludes the most pairs is used alone first: a binary search finds the pairs whose intervals overlap in this column.
    Only these are then compared in all columns. If there are more than `MOST_PAIRS` (about 33 million) of them, no pair
    is excluded. Readers then apply more deletes than necessary, which is slower but equally correct.

    Parameters
    ----------
    scope
        The data files and deletes to pair. A pair has one of each, from the same partition (global equality deletes
        apply in all partitions), and their sequence numbers allow the delete to apply.
    intervals
        One item per column to compare: the column's intervals, from lower to upper bound, in all data files and
        deletes.

    Returns
    -------
    Found
        If no pair is excluded, a `Spans`, which needs less memory: for each data file, a slice of an array of deletes.
        Otherwise two arrays of row numbers, of data files and of deletes, with one item per pair.
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
                # The pairs in `files` and `deletes` come from the second result of `overlapping`, which lists data
                # files per delete, not deletes per data file. So `files` has in fact indices into `scope.deletes`, and
                # `deletes` has row numbers of data files. Exchange the two arrays, and turn the indices into row
                # numbers of deletes.
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
    """Return the total number of pairs of a data file and a delete in ``spans``.

    ``spans`` has, for each data file, a slice of an array: the deletes with which the file is paired. The result is the
    sum of the lengths of these slices.
    """
    return int(np.maximum(spans.stop - spans.start, 0).sum())


def pieces(spans: Spans) -> Iterator[tuple[Ints, Ints]]:
    """Yield all pairs of a data file and a delete in ``spans``, in chunks of about `_AT_ONCE` pairs.

    Usually, ``spans`` has a slice for each data file, with the row numbers of its deletes. A chunk is two arrays of
    equal length, with one item per pair: the row number of the data file (the number of the slice), and the row number
    of the delete (an item of the slice). For example, if slice 0 is ``[7, 9]`` and slice 1 is ``[9]``, the arrays are
    ``[0, 0, 1]`` and ``[7, 9, 9]``.

    The second result of `Scope.overlapping` has a slice for each delete, with the row numbers of data files. Then the
    first array has indices into `Scope.deletes`, and the second has row numbers of data files.

    All pairs of a slice are in the same chunk, so a chunk may have more than `_AT_ONCE` pairs.
    """
    sizes = np.maximum(spans.stop - spans.start, 0)
    ends = np.cumsum(sizes)
    cuts = np.unique(np.searchsorted(ends, np.arange(_AT_ONCE, int(ends[-1]) + _AT_ONCE, _AT_ONCE), "left") + 1)
    for a, b in pairwise([0, *np.minimum(cuts, len(sizes)).tolist()]):
        rows, places = expand(spans.start[a:b], spans.stop[a:b])
        yield rows + a, spans.order[places]
