"""Lists of deletes by data file, added up without being written out: many files may share one stretch of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Stretches"]

_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stretches:
    """Of each data file ``size`` of the values, from ``start`` on."""

    values: _Longs
    start: _Longs
    size: _Longs

    @classmethod
    def of(cls, lists: pa.ListViewArray | pa.ListArray) -> Stretches:
        """The lists of an array without nulls; nothing is copied per list."""
        values = np.asarray(lists.values).astype(np.int64)
        offsets = np.asarray(lists.offsets).astype(np.int64)
        if pa.types.is_list(lists.type):
            return cls(values, offsets[:-1], np.diff(offsets))
        return cls(values, offsets, np.asarray(lists.sizes).astype(np.int64))

    def totals(self, amounts: _Longs) -> _Longs:
        """Per data file the sum of what each of its deletes amounts to; ``amounts`` is by delete."""
        before = np.concatenate([[0], np.cumsum(amounts[self.values])])
        held = self.size > 0
        out = np.zeros(len(self.size), dtype=np.int64)
        out[held] = before[(self.start + self.size)[held]] - before[self.start[held]]
        return out

    def uses(self, count: int) -> _Longs:
        """Of each of ``count`` deletes, in how many lists it is."""
        held = self.size > 0
        change = np.zeros(len(self.values) + 1, dtype=np.int64)
        np.add.at(change, self.start[held], 1)
        np.add.at(change, (self.start + self.size)[held], -1)
        out = np.zeros(count, dtype=np.int64)
        np.add.at(out, self.values, np.cumsum(change[:-1]))
        return out

    def names(self, names: pa.Array, most: int) -> pa.ListArray:
        """The names of each data file's deletes; where all would be more than ``most``, as many of each as fit."""
        size = self.size
        if int(size.sum()) > most:
            size = np.minimum(size, max(1, most // max(1, len(size))))
        ends = np.cumsum(size)
        places = np.arange(int(size.sum())) - np.repeat(ends - size - self.start, size)
        flat = names.take(pa.array(self.values[places], pa.int64()))
        return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]).astype(np.int32)), flat)
