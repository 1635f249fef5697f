"""Model how a column's values are spread over data files, and estimate how many files are read after sorting.

All estimates use only the bounds and counts in file metrics. There are two cases:

- Usually, the values in a file are assumed to be spread evenly between the file's bounds.
- If nearly all files of a partition have about the same bounds, the partition is probably not sorted by the column.
  Then a few unusually low and high values may determine the bounds, while most values are far from them. So each file
  is taken as a random sample of the partition's values, and the share of very low and of very high values is estimated
  from the lowest and the highest value of each file (order statistics).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.planning.advice._axis import Axis, Floats
from iceexplore.planning.advice._ranges import Span, Wanted

__all__ = ["Files", "Mask", "Reading", "Shares", "Spread", "sorted_reading"]

Mask = npt.NDArray[np.bool_]

#: `Shares._samples` looks for groups of files (by default, partitions) that are not sorted by the column. In such a
#: group, each file is taken as a random sample of the group's values. A group is examined only if at least this many of
#: its files have bounds: fewer would not show whether it is sorted.
_SAMPLES = 8
#: Maximum number of groups of files (by default, partitions) that `Shares._samples` checks for being sorted by the
#: column; it takes the groups with the most files. In all other groups, to save time, the values of a file are assumed
#: to be spread evenly between its bounds.
_MOST_GROUPS = 200
#: A group of files (by default, a partition) seems not to be sorted by the column if at least this share of its files
#: have the group's central value between their bounds. `Shares._samples` then takes each file as a random sample of the
#: group's values. The central value is the mean of two numbers: the median of the files' lower bounds and the median of
#: their upper bounds.
_COVERING = 0.9


@dataclass(frozen=True)
class Reading:
    """Number of files that a scan reads, and the sum of their sizes in bytes.

    In most cases, the files are data files. In a suggestion, they may also be data and delete files, or manifests:
    `Suggestion.unit` states which.
    """

    files: int
    bytes: int

    @property
    def cost(self) -> int:
        """Return the cost of reading, in bytes: the files' sizes, plus 4 MiB for opening each file.

        4 MiB is the default of Iceberg's ``read.split.open-file-cost``.
        """
        return self.bytes + self.files * 4 * 1024 * 1024


@dataclass(frozen=True)
class Files:
    """Sizes of data files, and the group that each file belongs to; by default, each partition is a group.

    Attributes
    ----------
    group
        int64, one per file: the number of its group, from 0.
    rows, bytes
        float64, one per file: its record count and its size in bytes.
    """

    group: npt.NDArray[np.int64]
    rows: Floats
    bytes: Floats

    @property
    def groups(self) -> int:
        """Return the number of groups to which the files belong; by default, each partition is a group."""
        return int(self.group.max(initial=-1)) + 1

    def add(self, values: Floats) -> Floats:
        """Return the sum of ``values`` in each group of files (by default, each partition is a group).

        ``values`` has one number per file. The result has one number per group.
        """
        return np.bincount(self.group, weights=values, minlength=self.groups).astype(np.float64)

    @cached_property
    def counts(self) -> Floats:
        """Return the number of files in each group; a group is usually a partition."""
        return np.bincount(self.group, minlength=self.groups).astype(np.float64)

    def take(self, mask: Mask) -> Files:
        """Return the files that a mask selects.

        Groups of files (by default, partitions) in which no file is selected are dropped. The other groups are
        renumbered from 0.
        """
        _, group = np.unique(self.group[mask], return_inverse=True)
        return Files(group.astype(np.int64), self.rows[mask], self.bytes[mask])

    def apart(self) -> Files:
        """Return the same files, but with each file in a group of its own (by default, each partition is a group).

        `Shares` estimates how a column's values are distributed in each group of files. With the result of this method,
        it estimates this for each single file.
        """
        return Files(np.arange(len(self.rows), dtype=np.int64), self.rows, self.bytes)


@dataclass(frozen=True)
class Spread:
    """One column's bounds, converted to numbers, and its share of nulls in each data file.

    The arrays have one item per file.

    Attributes
    ----------
    axis
        The number line: the mapping of the column's values to numbers.
    low, high
        Bounds as numbers. Both are NaN if one of them is unknown or infinite, or if the lower one is above the upper.
    nulls
        Share of rows that are null or NaN; 0 if the counts are missing.
    bare
        True for files in which every row is null or NaN, so that they have no bounds.
    """

    axis: Axis
    low: Floats
    high: Floats
    nulls: Floats
    bare: Mask

    @classmethod
    def of(cls, stats: pa.StructArray) -> Spread | None:
        """Convert one column's bounds to numbers, and compute the share of nulls and NaN in each data file.

        Return None if values of the column's type cannot be mapped to numbers, or if no file has usable bounds. Bounds
        are usable if both are known and finite, and the lower one is not above the upper one.

        Parameters
        ----------
        stats
            The column's metrics, from `EntryBatch.stats`. There is one row per data file, with the fields ``lower``,
            ``upper``, ``value_count``, ``null_count`` and ``nan_count``.
        """
        lower, upper = (pc.struct_field(stats, name) for name in ("lower", "upper"))
        axis = Axis.of(lower, upper)
        if axis is None:
            return None
        low, high = axis.numbers(lower), axis.numbers(upper)
        unknown = ~(np.isfinite(low) & np.isfinite(high)) | (high < low)
        if unknown.all():
            return None
        values, nulls, nans = (
            np.maximum(np.asarray(pc.fill_null(pc.struct_field(stats, name), 0)).astype(np.float64), 0.0)
            for name in ("value_count", "null_count", "nan_count")
        )
        share = np.clip(nulls + nans, 0.0, values) / np.maximum(values, 1.0)
        low, high = np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)
        return cls(axis, low, high, share, unknown & (values > 0) & (share >= 1.0))

    @property
    def known(self) -> Mask:
        """Return a mask: True for files whose bounds in `low` and `high` are known."""
        return ~np.isnan(self.low)

    def take(self, mask: Mask) -> Spread:
        """Return a copy that has only the files which a mask selects."""
        return Spread(self.axis, self.low[mask], self.high[mask], self.nulls[mask], self.bare[mask])

    def depth(self) -> tuple[float, int]:
        """Return how many files a search for one value has to read: on average, and at most.

        A file has to be read if its bounds include the value. The average is taken over these values: for each file,
        the middle between its bounds. The maximum is taken over all values.

        For example, one file has the bounds 0 and 10, and another 8 and 20. The middles are 5 and 14, each included by
        the bounds of one file, so the average is 1. The value 8 is included by the bounds of both, so the maximum is 2.

        Files without bounds are ignored. If no file has bounds, both results are 0.
        """
        low, high = np.sort(self.low[self.known]), np.sort(self.high[self.known])
        if not len(low):
            return 0.0, 0
        middles = (self.low + self.high)[self.known] / 2
        over = np.searchsorted(low, middles, side="right") - np.searchsorted(high, middles, side="left")
        edges = np.searchsorted(low, low, side="right") - np.searchsorted(high, low, side="left")
        return float(over.mean()), int(edges.max())


@dataclass(frozen=True)
class Shares:
    """Estimates of how a column's values are distributed in each group of data files.

    The estimates have one item per group. For example, `nulls` is the share of rows in which the column is null or NaN,
    and `around` estimates the share of values that are below an interval. By default, each partition is a group.

    Attributes
    ----------
    spread
        For each file: the bounds of the column, and the share of rows in which the column is null or NaN.
    files
        For each of the same files, in the same order: its size, and the group to which it belongs.
    """

    spread: Spread
    files: Files

    @cached_property
    def nulls(self) -> Floats:
        """Return, for each group of files (usually a partition), the share of rows with null or NaN in the column."""
        return self.files.add(self.spread.nulls * self.files.rows) / np.maximum(self.files.add(self.files.rows), 1e-9)

    def touched(self, span: Span) -> Mask:
        """Return, for each group of files, whether any of its files may hold a value of the column in ``span``.

        ``span`` is an interval of numbers, which represent the column's values (see `Axis`).

        A group is usually a partition. A file without bounds may hold any value, unless all its values are known to be
        null or NaN.
        """
        own = self.spread
        with np.errstate(invalid="ignore"):
            over = (own.low <= span.high) & (own.high >= span.low)
        return self.files.add((over | (~own.known & ~own.bare)).astype(np.float64)) > 0

    def around(self, span: Span) -> tuple[Floats, Floats]:
        """Estimate, for each group of files, the share of values below a span, and the share of values not above it.

        A span is an interval of numbers. Return two arrays with one item per group: the share of the column's values
        that are below ``span.low``, and the share that are not above ``span.high``. Nulls and NaN do not count as
        values.
        """
        own, files = self.spread, self.files
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            low, width = own.low, own.high - own.low + own.axis.step
            before = np.clip(np.nan_to_num((span.low - low) / width, nan=0.0), 0.0, 1.0)
            until = np.clip(np.nan_to_num((span.high + own.axis.step - low) / width, nan=1.0), 0.0, 1.0)
        # `width` is the length of a file's range: its upper minus its lower bound, plus the distance between adjacent
        # values (`Axis.step`), which is 1 for integers, and 0 for floats and strings. If `width` is 0, both bounds are
        # the same number, and the divisions above have no valid result. Then assume that all values of the file are
        # this number: the share of values below `span.low` (`before`) is 0 or 1, and so is the share not above
        # `span.high` (`until`).
        point = width == 0
        before = np.where(point, (low < span.low).astype(np.float64), before)
        until = np.where(point, (low <= span.high).astype(np.float64), until)
        total = np.maximum(files.add(self._weights), 1e-9)
        out = [np.minimum(files.add(np.where(own.known, x, 0.0) * self._weights) / total, 1.0) for x in (before, until)]
        for group, (places, shares) in self._samples.items():
            out[0][group] = _at(places, shares, span.low, "left")
            out[1][group] = _at(places, shares, span.high + own.axis.step, "right")
        return out[0], np.maximum(out[0], out[1])

    @property
    def shuffled(self) -> bool:
        """Return whether more than half of the files are in groups that seem not to be sorted by the column.

        A group is usually a partition. It seems not to be sorted if nearly all its files have about the same bounds:
        see `_samples`.
        """
        return sum(float(self.files.counts[g]) for g in self._samples) > 0.5 * len(self.files.rows)

    @cached_property
    def _weights(self) -> Floats:
        """Return, for each file, its number of values that are neither null nor NaN; 0 for files without bounds.

        `around` estimates, for each file, the share of its values in some range, and averages these shares over each
        group of files (usually a partition). The numbers are the weights of the files in this average.
        """
        return np.where(self.spread.known, self.files.rows * (1.0 - self.spread.nulls), 0.0)

    @cached_property
    def _samples(self) -> dict[int, tuple[Floats, Floats]]:
        """Estimate the distribution of the column's values in each group of files that seems to be unsorted.

        The keys of the result are group numbers. By default, each partition is a group.

        A group seems to be unsorted if the bounds of nearly all its files have the group's central value between them
        (see `_COVERING`). Then each file is taken as a random sample of the group's values. All other groups are left
        out, and so are groups in which few files have bounds (`_SAMPLES`), or in which the median number of values per
        file is at most 1. Only the groups with the most files are examined (`_MOST_GROUPS`).

        A distribution is a pair of arrays. The first has numbers in ascending order. The second has, for each of these
        numbers, the share of the group's values that are below it. For example, ``([10, 50], [0.2, 0.9])`` means that
        20 % of the values are below 10, and 90 % below 50.
        """
        own, files = self.spread, self.files
        order = np.argsort(files.group, kind="stable")
        starts = np.concatenate([[0], np.cumsum(files.counts).astype(np.int64)])
        out = {}
        for group in np.argsort(-files.counts, kind="stable")[:_MOST_GROUPS].tolist():
            mine = order[starts[group] : starts[group + 1]]
            mine = mine[own.known[mine]]
            if len(mine) < _SAMPLES:
                continue
            low, high = own.low[mine], own.high[mine]
            middle = (np.median(low) + np.median(high)) / 2
            if ((low <= middle) & (high >= middle)).mean() >= _COVERING and float(np.median(self._weights[mine])) > 1:
                out[group] = _tails(low, high, float(np.median(self._weights[mine])), own.axis.step)
        return out


def sorted_reading(shares: Shares, wanted: Wanted, distinct: float | None = None) -> Reading:
    """Estimate how many files and bytes a filter would read if the rows of each group were sorted by a column.

    A group is usually a partition. Its rows are assumed to be rewritten in the order of the column, nulls first, into
    as many files as now, all of the same size.

    Parameters
    ----------
    shares
        The files, their groups, and the column's bounds in them.
    wanted
        The values of the column that the filter selects.
    distinct
        Number of distinct values of the column, None if unknown. Each distinct value is assumed to occur in equally
        many rows. If the number is unknown, how many rows have one of the ``wanted`` values is estimated from the
        bounds alone.
    """
    files = shares.files
    count = files.counts
    last = np.full(files.groups, -1.0)
    read = np.zeros(files.groups)

    def add(first: Floats, end: Floats, there: Mask, points: int) -> None:
        """Count the files that would hold one range of the sorted rows of each group, and add the counts to ``read``.

        A group is a set of data files that are sorted together, usually a partition. ``read``, a variable of the
        enclosing function, has one number per group: how many of its files the filter would read.

        The ends of the range are shares of the group's rows: 0 is before the first row, 1 after the last. For example,
        if a group has ten files, each holds a tenth of the sorted rows. So the rows from 0.25 to 0.5 are in the third,
        fourth and fifth file. Files that an earlier call has counted are not counted again.

        Parameters
        ----------
        first, end
            The share of rows before the range, and the share before its end: one number per group.
        there
            Mask of the groups whose files are counted.
        points
            0 if the filter selects the whole range or only one value: then all files of the range are counted. If it
            selects several single values in the range, their number, such as 2 for ``a in (1, 9)``. Files between these
            values are not read, so at most one file per value is counted in each group. But if the column's number of
            distinct values (``distinct``) is known, one value may fill several files: then the limit per value is the
            group's number of files divided by ``distinct``, rounded up.
        """
        nonlocal last, read
        begin = np.minimum(np.floor(first * count + 1e-9), count - 1)
        stop = np.maximum(np.minimum(np.ceil(end * count - 1e-9), count) - 1, begin)
        new = np.where(there, np.maximum(0.0, stop - np.maximum(begin, last + 1) + 1), 0.0)
        if points:
            each = np.ceil(count / distinct) if distinct else 1.0
            new = np.minimum(new, points * np.maximum(1.0, each))
        read += new
        last = np.where(new > 0, stop, last)

    passed = np.zeros(files.groups)
    if wanted.nulls:
        add(np.zeros_like(read), shares.nulls, shares.nulls > 0, 0)
    for span in wanted.spans:
        before, until = shares.around(span)
        if distinct:
            # Adjust `before` and `until` so that there is room for one distinct value between them. They are shares of
            # the column's values (without nulls): those below the interval `span`, and those not above it. All distinct
            # values are assumed to occur equally often, so each has the share 1 / distinct. For example, if there are 4
            # distinct values, `before` 0.3 and `until` 0.35 become 0.3 and 0.55. Intervals ascend and do not overlap,
            # so `before` must be at least `passed`, the `until` of the previous interval. It must also be at most
            # 1 - 1 / distinct, so that one distinct value fits between it and 1; this limit takes precedence.
            before = np.minimum(np.maximum(before, passed), max(0.0, 1.0 - 1.0 / distinct))
            until = np.maximum(until, np.minimum(1.0, before + 1.0 / distinct))
            passed = until
        rest = 1.0 - shares.nulls
        many = span.points if span.points > 1 else 0
        add(shares.nulls + rest * before, shares.nulls + rest * until, shares.touched(span) & (rest > 0), many)
    size = files.add(files.bytes) / np.maximum(count, 1)
    return Reading(round(float(read.sum())), round(float((read * size).sum())))


def _tails(low: Floats, high: Floats, rows: float, step: float) -> tuple[Floats, Floats]:
    """Estimate the distribution of a column's values in a group of files.

    Each file is assumed to be a random sample of the group's values. Return two arrays: numbers in ascending order,
    and, for each of these numbers, the share of the group's values that are below it.

    Parameters
    ----------
    low, high
        The lowest and the highest value of each file.
    rows
        The number of values in a file, which is assumed to be the same for all files.
    step
        Distance between adjacent values (`Axis.step`); 0 for types without a fixed distance, such as floats.
    """
    quantile = (np.arange(len(low)) + 0.5) / len(low)
    places = np.concatenate([[low.min()], np.sort(low) + step, np.sort(high) + step])
    shares = np.concatenate([[0.0], 1.0 - (1.0 - quantile) ** (1.0 / rows), quantile ** (1.0 / rows)])
    order = np.lexsort((shares, places))
    shares = np.maximum.accumulate(shares[order])
    shares[-1] = 1.0
    return places[order], shares


def _at(places: Floats, shares: Floats, x: float, side: str) -> float:
    """Return the share of a column's values that are below the number ``x``.

    The share is known for the numbers in ``places``. For ``x`` between two of these numbers, it is interpolated. It is
    0 if ``x`` is below all of them, and 1 if ``x`` is above all of them.

    Parameters
    ----------
    places, shares
        Numbers in ascending order, and for each of them the share of the values that are below it.
    side
        ``places`` may contain ``x`` several times, with different shares. Then ``left`` returns the lowest of these
        shares, and ``right`` the highest.
    """
    i = int(np.searchsorted(places, x, side="left" if side == "left" else "right"))
    if i == 0:
        return 0.0
    if i == len(places):
        return 1.0
    a, b = places[i - 1], places[i]
    if side == "left" and b == x:
        return float(shares[i])
    return float(shares[i - 1] + (shares[i] - shares[i - 1]) * ((x - a) / (b - a)))
