"""Model how a column's values are spread over data files, and estimate how many files are read after sorting.

All estimates use only the bounds and counts in file metrics. The values in a file are assumed to be spread evenly
between the file's bounds.

This assumption is not used for a partition in which nearly all files have about the same range of values. Such files
are not sorted, and their bounds are mostly outliers: most of their values are far from the bounds. There, each file is
taken as a random sample of the partition's values. The lower and the upper tail of their distribution are estimated
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

#: The files of a group are taken as random samples only if at least this number of them has bounds: see
#: `Shares._samples`.
_SAMPLES = 8
#: Only in this number of groups, those with the most files, may files be taken as random samples. In all other groups,
#: the values in a file are assumed to be spread evenly between its bounds.
_MOST_GROUPS = 200
#: The files of a group are taken as random samples if at least this share of their ranges contains a certain value:
#: the middle between the median of the lower bounds and the median of the upper bounds.
_COVERING = 0.9


@dataclass(frozen=True)
class Reading:
    """Number of files that a scan reads, and their bytes; `Suggestion.unit` states which files are counted."""

    files: int
    bytes: int

    @property
    def cost(self) -> int:
        """Return the bytes plus 4 MiB for opening each file (Iceberg's ``read.split.open-file-cost``)."""
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
        """Return the number of groups."""
        return int(self.group.max(initial=-1)) + 1

    def add(self, values: Floats) -> Floats:
        """Return, for each group, the sum of ``values`` (one per file) over its files."""
        return np.bincount(self.group, weights=values, minlength=self.groups).astype(np.float64)

    @cached_property
    def counts(self) -> Floats:
        """Return the number of files of each group."""
        return np.bincount(self.group, minlength=self.groups).astype(np.float64)

    def take(self, mask: Mask) -> Files:
        """Return the files that a mask selects; groups without such files are dropped."""
        _, group = np.unique(self.group[mask], return_inverse=True)
        return Files(group.astype(np.int64), self.rows[mask], self.bytes[mask])

    def apart(self) -> Files:
        """Return the same files, with each file in a group of its own."""
        return Files(np.arange(len(self.rows), dtype=np.int64), self.rows, self.bytes)


@dataclass(frozen=True)
class Spread:
    """One column's bounds on a number line, and its share of nulls, one value per file.

    Attributes
    ----------
    axis
        The number line: the mapping of the column's values to numbers.
    low, high
        Bounds as numbers. Both are NaN if one of them is unknown or infinite, or if they are in the wrong order.
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
        """Build a spread from one column's metrics, as in `EntryBatch.stats`.

        Return None if values of the column's type cannot be mapped to numbers, or if no file has two usable bounds.
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
        """Return which files have both bounds."""
        return ~np.isnan(self.low)

    def take(self, mask: Mask) -> Spread:
        """Return the spread of the files that a mask selects."""
        return Spread(self.axis, self.low[mask], self.high[mask], self.nulls[mask], self.bare[mask])

    def depth(self) -> tuple[float, int]:
        """Return in how many files a value may be: on average, and at most.

        A value may be in a file if it is not outside the file's bounds. The average is taken over one value for each
        file with bounds: the middle between its bounds. The maximum is taken over all values. If no file has bounds,
        both results are 0.
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
    """For each group of data files, estimates of the share of rows whose value is null, or is in a given range.

    Attributes
    ----------
    spread
        The bounds of one column in each file, and its share of nulls.
    files
        The sizes of the same files, in the same order, and the group of each file.
    """

    spread: Spread
    files: Files

    @cached_property
    def nulls(self) -> Floats:
        """Return, for each group, the share of rows that are null or NaN."""
        return self.files.add(self.spread.nulls * self.files.rows) / np.maximum(self.files.add(self.files.rows), 1e-9)

    def touched(self, span: Span) -> Mask:
        """Return, for each group, whether one of its files may hold a value in a span.

        A file without bounds may hold any value, unless all its values are known to be null or NaN.
        """
        own = self.spread
        with np.errstate(invalid="ignore"):
            over = (own.low <= span.high) & (own.high >= span.low)
        return self.files.add((over | (~own.known & ~own.bare)).astype(np.float64)) > 0

    def around(self, span: Span) -> tuple[Floats, Floats]:
        """Return, for each group, the share of its values before the span, and the share up to the span's end.

        Only values that are neither null nor NaN count.
        """
        own, files = self.spread, self.files
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            low, width = own.low, own.high - own.low + own.axis.step
            before = np.clip(np.nan_to_num((span.low - low) / width, nan=0.0), 0.0, 1.0)
            until = np.clip(np.nan_to_num((span.high + own.axis.step - low) / width, nan=1.0), 0.0, 1.0)
        point = width == 0  # a file with a single value is entirely before, inside or after the span
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
        """Return whether more than half of the files are in groups that are not sorted at all.

        In such a group, nearly all files have about the same range of values: see `_samples`.
        """
        return sum(float(self.files.counts[g]) for g in self._samples) > 0.5 * len(self.files.rows)

    @cached_property
    def _weights(self) -> Floats:
        """Return, for each file, its number of values that are neither null nor NaN; 0 for files without bounds."""
        return np.where(self.spread.known, self.files.rows * (1.0 - self.spread.nulls), 0.0)

    @cached_property
    def _samples(self) -> dict[int, tuple[Floats, Floats]]:
        """Return, by group number, the distribution of the values in each group that is not sorted at all.

        Nearly all files of such a group have about the same range of values, so that each file seems to be a random
        sample of the group's values. Other groups are left out. A distribution is a pair of arrays: ascending numbers,
        and for each of them the share of the values that are below it (see `_tails`).
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
    """Estimate the number of files and bytes that a filter would read if each group were sorted by a column.

    The rows of a group are assumed to be rewritten in the order of the column, nulls first, into as many files as now,
    all of the same size.

    Parameters
    ----------
    shares
        The files, their groups, and the column's bounds in them.
    wanted
        The values of the column that the filter selects.
    distinct
        Number of distinct values of the column; None if unknown. If it is known, each of the values is assumed to occur
        in equally many rows.
    """
    files = shares.files
    count = files.counts
    last = np.full(files.groups, -1.0)
    read = np.zeros(files.groups)

    def add(first: Floats, end: Floats, there: Mask, points: int) -> None:
        """Count the files that hold one range of each group's sorted rows, and add the counts to ``read``.

        For example, the rows from the share 0.25 to the share 0.5 of a group with ten files are in three files: the
        third, fourth and fifth. Files that an earlier call has counted are not counted again.

        Parameters
        ----------
        first, end
            The range of rows in each group, as shares of its rows from 0 to 1.
        there
            Mask of the groups whose files are counted.
        points
            0 if the filter selects all rows of the range. Otherwise, the number of single values that it selects in the
            range. Then only a limited number of files is counted for each value: the number of files divided by
            ``distinct``, rounded up, or one file if ``distinct`` is unknown.
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
            # A span contains at least one of the distinct values. Each distinct value has the share 1 / distinct of the
            # rows, so this is the lowest share that a span can have. A span's rows follow those of the previous span.
            before = np.minimum(np.maximum(before, passed), max(0.0, 1.0 - 1.0 / distinct))
            until = np.maximum(until, np.minimum(1.0, before + 1.0 / distinct))
            passed = until
        rest = 1.0 - shares.nulls
        many = span.points if span.points > 1 else 0
        add(shares.nulls + rest * before, shares.nulls + rest * until, shares.touched(span) & (rest > 0), many)
    size = files.add(files.bytes) / np.maximum(count, 1)
    return Reading(round(float(read.sum())), round(float((read * size).sum())))


def _tails(low: Floats, high: Floats, rows: float, step: float) -> tuple[Floats, Floats]:
    """Estimate the distribution of a column's values from files, each of which is a random sample of it.

    Return ascending points and, for each point, the share of the values that are below it.

    Parameters
    ----------
    low, high
        The lowest and the highest value of each file.
    rows
        The number of values in a file. All files are assumed to have the same number.
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
    """Return the share of a distribution's values that are below ``x``, by interpolation between known points.

    Parameters
    ----------
    places, shares
        The known points: numbers in ascending order, and for each of them the share of the values that are below it.
    side
        If several of the points are at ``x``, their shares may differ. ``left`` returns the lowest of these shares, and
        ``right`` the highest.
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
