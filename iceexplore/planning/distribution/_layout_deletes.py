"""What deletes take from data files, and how many of them reach a group: without writing shared lists out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from iceexplore.planning.delete_index._list_views import Stretches
from iceexplore.planning.model._groups import counted
from iceexplore.planning.model._tasks import FileTasks

__all__ = ["Reached", "deleted_rows"]

_Longs = npt.NDArray[np.int64]


def deleted_rows(tasks: FileTasks) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Per data file: rows that vectors and position deletes remove, and whether any delete applies.

    A position delete file that reaches several data files is shared out evenly among them: what it says of each
    stands in its rows, which nobody has read. A row that two position delete files name counts twice. Of no file more
    rows are removed than it has.
    """
    matched = tasks.matched
    removes = counted(matched.deletes, "record_count")
    rows = counted(tasks.files, "record_count")
    positions, equality = Stretches.of(matched.positions), Stretches.of(matched.equality)
    each = removes / np.maximum(positions.uses(len(removes)), 1)
    before = np.concatenate([[0.0], np.cumsum(each[positions.values])])
    deleted = np.where(positions.size > 0, before[positions.start + positions.size] - before[positions.start], 0.0)
    vector = np.asarray(pc.fill_null(matched.vector, -1)).astype(np.int64)
    with_vector = vector >= 0
    deleted[with_vector] += removes[vector[with_vector]]
    return np.minimum(deleted, rows), with_vector | (positions.size > 0) | (equality.size > 0)


@dataclass(frozen=True)
class Reached:
    """How many deletes reach each of some groups of data files, each delete once a group.

    Attributes
    ----------
    tasks
        The data files.
    codes
        int64 per data file: its group, below ``count``.
    """

    tasks: FileTasks
    codes: _Longs
    count: int

    @cached_property
    def equality(self) -> _Longs:
        """Equality delete files."""
        return self._lists(Stretches.of(self.tasks.matched.equality))

    @cached_property
    def deletes(self) -> _Longs:
        """Delete files and deletion vectors of all kinds: none is of two."""
        vector = np.asarray(pc.fill_null(self.tasks.matched.vector, -1)).astype(np.int64)
        there = vector >= 0
        vectors = self._pairs(self.codes[there], vector[there])
        return self.equality + self._lists(Stretches.of(self.tasks.matched.positions)) + vectors

    def _pairs(self, codes: _Longs, deletes: _Longs) -> _Longs:
        width = int(deletes.max(initial=0)) + 1
        return np.bincount(np.unique(codes * width + deletes) // width, minlength=self.count)

    def _lists(self, lists: Stretches) -> _Longs:
        """Stretches of one group that overlap are one; those of a group alone, without a repetition, are not looked
        into."""
        out = np.zeros(self.count, dtype=np.int64)
        held = np.flatnonzero(lists.size > 0)
        if not len(held):
            return out
        room = len(lists.values) + 1
        start = self.codes[held] * room + lists.start[held]
        order = np.argsort(start, kind="stable")
        start, end = start[order], (start + lists.size[held])[order]
        furthest = np.maximum.accumulate(end)
        firsts = np.flatnonzero(np.concatenate([[True], start[1:] >= furthest[:-1]]))
        begin, stop = start[firsts], np.maximum.reduceat(end, firsts)
        group = begin // room
        begin, stop = begin - group * room, stop - group * room
        alone = np.bincount(group, minlength=self.count)[group] == 1
        # Two equal values in a stretch: one of them has the other before it, not before the stretch.
        simple = alone & (np.maximum.accumulate(_previous(lists.values))[stop - 1] < begin)
        out[group[simple]] = (stop - begin)[simple]
        rest = np.flatnonzero(~simple)
        if len(rest):
            size = (stop - begin)[rest]
            ends = np.cumsum(size)
            places = np.arange(int(size.sum())) - np.repeat(ends - size - begin[rest], size)
            out += self._pairs(np.repeat(group[rest], size), lists.values[places])
        return out


def _previous(values: _Longs) -> _Longs:
    """Where each value stood before; -1 for nowhere."""
    order = np.argsort(values, kind="stable")
    out = np.full(len(values), -1, dtype=np.int64)
    same = values[order][1:] == values[order][:-1]
    out[order[1:][same]] = order[:-1][same]
    return out
