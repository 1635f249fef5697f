"""Partition fields that would let a filter prune more: which, and what it would read then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from iceexplore.metadata import Type, type_base
from iceexplore.planning._advice_axis import Floats, Spans
from iceexplore.planning._advice_spread import Files, Reading, Spread

__all__ = ["Candidate", "candidates"]

#: The number of the unit that each value is in.
Unit: TypeAlias = Callable[[Floats], Floats]

#: Units of a time column, the finest first.
_TIMES = ("hours", "days", "months", "years")
_CODES = {"hours": "h", "days": "D", "months": "M", "years": "Y"}
#: Types that Iceberg's bucket transform takes, and whose single values are worth it (spec, "Partition Transforms").
_BUCKETS = frozenset(
    ("int", "long", "decimal", "string", "uuid", "fixed", "binary", "timestamp", "timestamptz", "timestamp_ns",
     "timestamptz_ns", "time")
)  # fmt: skip
_MAX_BUCKETS = 512
#: Files may become smaller than they are, down to this share of today's average: below it, pruning is paid for dearly.
_SMALLEST = 0.5
_SINGLE_VALUES = 200


@dataclass(frozen=True)
class Candidate:
    """A partition field, and what the filter would read with it.

    Attributes
    ----------
    transform
        As Spark's DDL spells it, with the column left open: ``days({})``, ``bucket(16, {})``, ``{}``.
    name
        Iceberg's name of the transform: ``day``, ``bucket[16]``, ``identity``.
    after
        What the filter would read.
    files
        Data files that the whole table would have.
    assumes
        What the estimate takes for granted besides even spread.
    """

    transform: str
    name: str
    after: Reading
    files: int
    assumes: str = ""


def candidates(
    kind: Type, spread: Spread, every: Files, left: npt.NDArray[np.bool_], wanted: Spans, distinct: float | None
) -> Iterator[Candidate]:
    """The fields worth a look for one column, each with its estimate; those that would make small files are left out.

    Parameters
    ----------
    every, spread
        All live data files, and the column's bounds in them.
    left
        Which of them today's partition fields leave of the filter.
    wanted
        What the filter takes of the column.
    distinct
        How many values the column has, where known.
    """
    base = type_base(kind)
    points = sum(low == high for low, high in wanted) if all(low == high for low, high in wanted) else 0
    if base == "date" or base.startswith("timestamp"):
        for unit in _TIMES:
            if unit == "hours" and base == "date":
                continue
            edges = _time_edges(base, unit)
            found = _cut(spread, every, left, wanted, edges)
            if found is not None:
                yield Candidate(f"{unit}({{}})", unit.removesuffix("s"), *found)
                break  # the finest that does not make small files
    whole = spread.axis.step == 1 and base in ("int", "long", "boolean")
    values = distinct
    if whole:
        width = float(np.nanmax(spread.high) - np.nanmin(spread.low)) + 1
        values = width if distinct is None else min(distinct, width)
    if values is not None and values <= _SINGLE_VALUES and (points or whole):
        if whole:
            found = _cut(spread, every, left, wanted, _each)
        else:
            found = _hashed(every, left, points, int(values))
        if found is not None:
            yield Candidate("{}", "identity", *found, "" if whole else f"the column has {values:,.0f} values")
    elif points and base in _BUCKETS:
        buckets = _buckets(every, left)
        if buckets > 1 and (values is None or values >= 4 * buckets):
            found = _hashed(every, left, points, buckets)
            if found is not None:
                said = "the column has many different values, and bucket spreads them evenly"
                yield Candidate(f"bucket({buckets}, {{}})", f"bucket[{buckets}]", *found, said)
    if whole and not points:
        step = _round_width(spread, every)
        found = _cut(spread, every, left, wanted, lambda x: np.floor(x / step)) if step > 1 else None
        if found is not None:
            yield Candidate(f"truncate({step}, {{}})", f"truncate[{step}]", *found)


def _each(x: Floats) -> Floats:
    return x


def _cut(
    spread: Spread, every: Files, left: npt.NDArray[np.bool_], wanted: Spans, number: Unit
) -> tuple[Reading, int] | None:
    """Every group cut at the borders of a unit: what is read of it, and the table's files; None for too many."""
    units = _units(spread, every, number)
    total = float(np.maximum(units, every.counts).sum())
    if total * _SMALLEST > float(every.counts.sum()):
        return None
    files, own = every.take(left), spread.take(left)
    if not files.groups or not own.known.any():
        return None
    inside = _units(own, files, number)
    after = np.maximum(inside, files.counts)
    size, count = files.add(files.bytes), files.counts
    read, share = np.zeros(files.groups), np.zeros(files.groups)
    before = -np.inf
    low, high = float(np.nanmin(own.low)), float(np.nanmax(own.high))
    for span in wanted:
        # The span widened to whole units; the second of two in one unit adds nothing.
        first, end = number(np.array([max(span[0], low), min(span[1], high)]))
        if end < first or first <= before:
            first = max(first, before + 1)
            if end < first:
                continue
        begins, ends = _share_of_units(own, files, number, float(first), float(end))
        part = np.where(own.touched(files, span), np.clip(ends - begins, 0.0, 1.0), 0.0)
        share += part
        matched = np.minimum(end - first + 1, inside)
        read += np.where(part > 0, np.maximum(matched, np.ceil(part * count - 1e-9)), 0.0)
        before = end
    share, read = np.minimum(share, 1.0), np.minimum(read, after)
    return Reading(round(float(read.sum())), round(float((share * size).sum()))), round(total)


def _units(spread: Spread, files: Files, number: Unit) -> Floats:
    """How many units each group spans, at most."""
    low, high = number(np.where(spread.known, spread.low, 0.0)), number(np.where(spread.known, spread.high, 0.0))
    least = np.full(files.groups, np.inf)
    most = np.full(files.groups, -np.inf)
    np.minimum.at(least, files.group[spread.known], low[spread.known])
    np.maximum.at(most, files.group[spread.known], high[spread.known])
    return np.where(np.isfinite(least), most - least + 1, 1.0)


def _share_of_units(spread: Spread, files: Files, number: Unit, first: float, end: float) -> tuple[Floats, Floats]:
    """Per group the share of rows before a unit, and up to the end of another; a file's rows spread over its units."""
    known = spread.known
    low, high = number(np.where(known, spread.low, 0.0)), number(np.where(known, spread.high, 0.0))
    coarse = Spread(type(spread.axis)(1.0), np.where(known, low, np.nan), np.where(known, high, np.nan))
    return coarse.share(files, (first, end))


def _hashed(every: Files, left: npt.NDArray[np.bool_], points: int, buckets: int) -> tuple[Reading, int] | None:
    """Values spread evenly over so many partitions: what single values read."""
    total = float(np.maximum(every.counts, buckets).sum())
    if total * _SMALLEST > float(every.counts.sum()):
        return None
    files = every.take(left)
    share = 1.0 - (1.0 - 1.0 / buckets) ** points  # values may share a bucket
    hit = buckets * share
    read = np.maximum(np.ceil(hit - 1e-9), np.ceil(share * files.counts - 1e-9))
    return Reading(round(float(read.sum())), round(float(files.add(files.bytes).sum()) * share)), round(total)


def _buckets(every: Files, left: npt.NDArray[np.bool_]) -> int:
    """A power of two so that buckets keep files about as large as they are."""
    counts = every.take(left).counts
    if not len(counts):
        return 0
    room = float(np.median(counts))
    return int(min(_MAX_BUCKETS, 2 ** int(np.floor(np.log2(max(1.0, room))))))


def _round_width(spread: Spread, every: Files) -> int:
    """A power of ten that cuts the column's range into no more parts than a group has files."""
    width = float(np.nanmax(spread.high) - np.nanmin(spread.low)) + 1
    parts = max(1.0, float(np.median(every.counts)))
    return int(10 ** np.ceil(np.log10(max(1.0, width / parts))))


def _time_edges(base: str, unit: str) -> Unit:
    """The number of a stored value's unit since 1970."""
    stored = "D" if base == "date" else "ns" if base.endswith("_ns") else "us"

    def number(values: Floats) -> Floats:
        times = np.clip(values, -9e18, 9e18).astype(np.int64).view(f"datetime64[{stored}]")
        return np.asarray(times.astype(f"datetime64[{_CODES[unit]}]").astype(np.int64)).astype(np.float64)

    return number
