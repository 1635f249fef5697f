"""How the values of a column are spread over data files, and how many files a filter would read were they sorted.

All of it is estimated from bounds: within a file values are taken to be spread evenly between its bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.planning._advice_axis import Axis, Floats, Spans

__all__ = ["Files", "Reading", "Spread"]


@dataclass(frozen=True)
class Reading:
    """What a scan reads: data files, and their bytes."""

    files: int
    bytes: int

    @property
    def cost(self) -> int:
        """Bytes, and 4 MiB for opening each file (Iceberg's ``read.split.open-file-cost``)."""
        return self.bytes + self.files * 4 * 1024 * 1024


@dataclass(frozen=True)
class Files:
    """Data files in groups that stay apart: partitions.

    Attributes
    ----------
    group
        int64 per file, from 0.
    rows, bytes
        float64 per file.
    """

    group: npt.NDArray[np.int64]
    rows: Floats
    bytes: Floats

    @property
    def groups(self) -> int:
        """How many there are."""
        return int(self.group.max(initial=-1)) + 1

    def add(self, values: Floats) -> Floats:
        """Sums by group."""
        return np.bincount(self.group, weights=values, minlength=self.groups).astype(np.float64)

    @property
    def counts(self) -> Floats:
        """Files of each group."""
        return np.bincount(self.group, minlength=self.groups).astype(np.float64)

    def take(self, mask: npt.NDArray[np.bool_]) -> Files:
        """Some of the files; groups without any are dropped."""
        _, group = np.unique(self.group[mask], return_inverse=True)
        return Files(group.astype(np.int64), self.rows[mask], self.bytes[mask])


@dataclass(frozen=True)
class Spread:
    """One column's bounds on a number line, a value per file.

    Attributes
    ----------
    low, high
        NaN where a bound is not known: such a file is taken to be spread like the rest of its group.
    """

    axis: Axis
    low: Floats
    high: Floats

    @classmethod
    def of(cls, stats: pa.StructArray) -> Spread | None:
        """From a column of `EntryBatch.stats`; None where it has no order, or no bound is known."""
        lower, upper = (pc.struct_field(stats, name) for name in ("lower", "upper"))
        axis = Axis.of(lower, upper)
        if axis is None:
            return None
        low, high = axis.numbers(lower), axis.numbers(upper)
        unknown = ~(np.isfinite(low) & np.isfinite(high)) | (high < low)
        if unknown.all():
            return None
        return cls(axis, np.where(unknown, np.nan, low), np.where(unknown, np.nan, high))

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which files have both bounds."""
        return ~np.isnan(self.low)

    def take(self, mask: npt.NDArray[np.bool_]) -> Spread:
        """Of some of the files."""
        return Spread(self.axis, self.low[mask], self.high[mask])

    def depth(self) -> tuple[float, int]:
        """How many files' ranges lie over one another: at the middle of a file on average, and at most."""
        low, high = np.sort(self.low[self.known]), np.sort(self.high[self.known])
        if not len(low):
            return 0.0, 0
        middles = (self.low + self.high)[self.known] / 2
        over = np.searchsorted(low, middles, side="right") - np.searchsorted(high, middles, side="left")
        edges = np.searchsorted(low, low, side="right") - np.searchsorted(high, low, side="left")
        return float(over.mean()), int(edges.max())

    def share(self, files: Files, span: tuple[float, float]) -> tuple[Floats, Floats]:
        """Per group: the share of rows before a span, and up to its end."""
        known = self.known
        low, width = self.low, self.high - self.low + self.axis.step
        with np.errstate(invalid="ignore", divide="ignore"):
            before = np.clip((span[0] - low) / width, 0.0, 1.0)
            until = np.clip((span[1] + self.axis.step - low) / width, 0.0, 1.0)
        point = width == 0  # one value: before the span, in it or after
        before = np.where(point, (low < span[0]).astype(np.float64), before)
        until = np.where(point, (low <= span[1]).astype(np.float64), until)
        weights = np.where(known, files.rows, 0.0)
        total = np.maximum(files.add(weights), 1e-9)
        return (
            np.minimum(files.add(np.where(known, before, 0.0) * weights) / total, 1.0),
            np.minimum(files.add(np.where(known, until, 0.0) * weights) / total, 1.0),
        )

    def touched(self, files: Files, span: tuple[float, float]) -> npt.NDArray[np.bool_]:
        """Per group: whether some file may hold a value of a span; files without bounds may."""
        with np.errstate(invalid="ignore"):
            over = (self.low <= span[1]) & (self.high >= span[0])
        return files.add((over | ~self.known).astype(np.float64)) > 0

    def sorted(self, files: Files, wanted: Spans, distinct: float | None = None) -> Reading:
        """What a filter would read, were the rows of each group sorted and cut into as many files of equal size.

        Parameters
        ----------
        wanted
            Of the filter, in order.
        distinct
            How many different values the column has, where that is known: a single value then has this share of rows.
        """
        count = files.counts
        last = np.full(files.groups, -1.0)
        read = np.zeros(files.groups)
        for span in wanted:
            before, until = self.share(files, span)
            if distinct and span[0] == span[1]:
                until = np.maximum(until, np.minimum(1.0, before + 1.0 / distinct))
            first = np.minimum(np.floor(before * count + 1e-9), count - 1)
            end = np.maximum(np.minimum(np.ceil(until * count - 1e-9), count) - 1, first)
            new = np.where(self.touched(files, span), np.maximum(0.0, end - np.maximum(first, last + 1) + 1), 0.0)
            read += new
            last = np.where(new > 0, end, last)
        size = files.add(files.bytes) / np.maximum(count, 1)
        return Reading(round(float(read.sum())), round(float((read * size).sum())))
