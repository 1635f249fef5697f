"""Store a list of deletes for each data file; the lists are slices of one array and may overlap, to save memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyListArray, AnyListViewArray, build
from iceexplore.errors import UnsupportedError
from iceexplore.planning.delete_index._codes import Ints, Mask, expand
from iceexplore.planning.delete_index._scope_join import Found, Spans

__all__ = [
    "Lists",
    "Stretches",
    "lists_of",
    "no_lists",
]

_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stretches:
    """Lists of the deletes that apply to each data file, read from an Arrow array such as `MatchedDeletes.equality`.

    The list of data file ``i`` is ``values[start[i] : start[i] + size[i]]``. Its items are row numbers of deletes, in
    `MatchedDeletes.deletes`. Lists may overlap in `values`. To build such an Arrow array, use `Lists`.
    """

    values: _Longs
    start: _Longs
    size: _Longs

    @classmethod
    def of(cls, array: AnyArray) -> Stretches:
        """Convert an Arrow list or list-view array to one array of items, and the start and size of each list in it.

        Neither a list nor an item of ``array`` may be null. The lists of a list-view array may share items in memory.
        The array of items, `values`, contains such items only once.
        """
        lists = cast(AnyListViewArray, array)
        values = np.asarray(lists.values).astype(np.int64)
        offsets = np.asarray(lists.offsets).astype(np.int64)
        if pa.types.is_list(lists.type):
            return cls(values, offsets[:-1], np.diff(offsets))
        return cls(values, offsets, np.asarray(lists.sizes).astype(np.int64))

    def totals(self, amounts: _Longs) -> _Longs:
        """Return, for each data file, the sum of ``amounts`` (one value per delete) over its deletes."""
        before = np.concatenate([[0], np.cumsum(amounts[self.values])])
        held = self.size > 0
        out = np.zeros(len(self.size), dtype=np.int64)
        out[held] = before[(self.start + self.size)[held]] - before[self.start[held]]
        return out

    def uses(self, count: int) -> _Longs:
        """Return, for each delete, the number of data files to which it applies.

        ``count`` is the number of deletes, and so the length of the result.
        """
        held = self.size > 0
        change = np.zeros(len(self.values) + 1, dtype=np.int64)
        np.add.at(change, self.start[held], 1)
        np.add.at(change, (self.start + self.size)[held], -1)
        out = np.zeros(count, dtype=np.int64)
        np.add.at(out, self.values, np.cumsum(change[:-1]))
        return out

    def names(self, names: AnyArray, most: int) -> AnyListArray:
        """Return, for each data file, the names of its deletes.

        Parameters
        ----------
        names
            The name of each delete.
        most
            If all lists together have more names than this, each list keeps at most its first ``k`` names, where ``k``
            is ``most`` divided by the number of data files, but at least 1. For example, if ``most`` is 1000 and there
            are 300 data files, each list keeps at most 3 names.
        """
        size = self.size
        if int(size.sum()) > most:
            size = np.minimum(size, max(1, most // max(1, len(size))))
        ends = np.cumsum(size)
        places = np.arange(int(size.sum())) - np.repeat(ends - size - self.start, size)
        flat = names.take(pa.array(self.values[places], pa.int64()))
        return build.list_array(pa.array(np.concatenate([[0], ends]).astype(np.int32)), flat)


#: Maximum number of pairs (a data file and a delete that may apply to it) that `lists_of` accepts, because each pair
#: needs its own item in an array. But if all pairs are in one `Spans` (one array of deletes, with a slice for each data
#: file), any number is allowed: the slices are then the lists of the result, and as slices may overlap, a pair needs no
#: item of its own.
MOST_VALUES = 1 << 28


class Lists:
    """Lists of the deletes that apply to each data file, from which `array` builds an Arrow array.

    The list of data file ``i`` is ``values[start[i] : start[i] + size[i]]``. Its items are row numbers of deletes, in
    `DeleteIndex.found`. Lists may overlap in ``values``.
    """

    def __init__(self, values: Ints, start: Ints, size: Ints) -> None:
        self.values = values
        self.start = start
        self.size = size

    def used(self) -> Mask:
        """Return which items of `values` are in the list of at least one file."""
        change = np.zeros(len(self.values) + 1, dtype=np.int64)
        there = self.size > 0
        np.add.at(change, self.start[there], 1)
        np.add.at(change, (self.start + self.size)[there], -1)
        return np.cumsum(change[:-1]) > 0

    def array(self, renamed: Ints) -> AnyListViewArray:
        """Return the deletes of each data file as an Arrow array of lists, with new row numbers for the deletes.

        The new row number of delete ``d`` is ``renamed[d]``. The numbers change because the caller removes the deletes
        that apply to no data file. The lists are slices of ``values``; items of ``values`` that are in none of the
        slices are not copied to the result.
        """
        used = self.used()
        places = np.concatenate([[0], np.cumsum(used)])
        start = np.where(self.size > 0, places[self.start], 0)
        values = pa.array(renamed[self.values[used]].astype(np.int32))
        return build.list_view_array(pa.array(start.astype(np.int32)), pa.array(self.size.astype(np.int32)), values)


def no_lists(count: int) -> AnyListViewArray:
    """Return an array of ``count`` empty lists."""
    zeros = pa.array(np.zeros(count, dtype=np.int32))
    return build.list_view_array(zeros, zeros, pa.array([], pa.int32()))


def lists_of(count: int, found: Sequence[Found], without: Mask) -> Lists:
    """Convert pairs of a data file and a delete to one list of deletes per data file.

    Parameters
    ----------
    count
        The number of data files.
    found
        The pairs. Each item of the sequence has some of them: either as two arrays of row numbers (data files, deletes)
        or as a `Spans` (one array of deletes, with a slice for each data file). No pair may occur twice.
    without
        One boolean per data file. If it is True, the pairs of this data file are ignored, and its list is empty.

    Raises
    ------
    UnsupportedError
        There are more than `MOST_VALUES` (about 268 million) pairs, and they are not all in one `Spans`. This can
        happen if some position deletes reference one data file each, and others apply to a whole partition. Then each
        pair needs its own item in an array, and the array would be too large. If all pairs are in one `Spans`, any
        number is allowed, because the lists are then slices of one array, and slices may overlap.
    """
    stretches = [f for f in found if isinstance(f, Spans) and bool((f.stop > f.start).any())]
    pairs = [f for f in found if not isinstance(f, Spans) and len(f[0])]
    if len(stretches) == 1 and not pairs:
        one = stretches[0]
        return Lists(one.order, one.start, np.where(without, 0, np.maximum(one.stop - one.start, 0)))
    total = sum(int(np.count_nonzero(~without[f])) for f, _ in pairs)
    total += sum(int(np.maximum(s.stop - s.start, 0)[~without].sum()) for s in stretches)
    if total > MOST_VALUES:
        raise UnsupportedError(
            f"too many pairs ({total:,}) of a data file and a delete that may apply to it: narrow the filter, "
            "or compact the table's deletes"
        )
    for s in stretches:
        rows, places = expand(s.start, np.where(without, s.start, s.stop))
        pairs.append((rows, s.order[places]))
    files = np.concatenate([np.zeros(0, dtype=np.int64), *(p[0] for p in pairs)])
    deletes = np.concatenate([np.zeros(0, dtype=np.int64), *(p[1] for p in pairs)])
    keep = ~without[files]
    files, deletes = files[keep], deletes[keep]
    order = np.lexsort((deletes, files))
    sizes = np.bincount(files, minlength=count).astype(np.int64)
    return Lists(deletes[order], np.cumsum(sizes) - sizes, sizes)
