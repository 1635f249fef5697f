"""Find partition fields with which a filter would prune more, and estimate what it would read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np

from iceexplore.metadata import (
    TRANSFORMS,
    BucketTransform,
    IdentityTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    Type,
    type_base,
)
from iceexplore.planning.advice._axis import Axis, Floats
from iceexplore.planning.advice._ranges import Span, Wanted
from iceexplore.planning.advice._spread import Files, Mask, Reading, Shares, Spread

__all__ = ["Candidate", "candidates"]


@dataclass(frozen=True)
class Units:
    """A way to divide a number line into units, such as days or ranges of 100 numbers.

    Attributes
    ----------
    number
        Function that returns, for each value, the number of its unit.
    start
        Function that returns, for the number of each unit, the value with which the unit begins.
    """

    number: Callable[[Floats], Floats]
    start: Callable[[Floats], Floats]


def number_units(width: float) -> Units:
    """Return units of a fixed width; unit 0 begins at 0."""
    # For decimals, a width such as 0.01 is not exact as a float, so x / width may be slightly below a whole number. The
    # added 1e-9 puts a value with which a unit begins into this unit, not into the one before.
    return Units(lambda x: np.floor(x / width + 1e-9), lambda k: k * width)


def text_units(axis: Axis, length: int) -> Units:
    """Return units for the transform ``truncate``: all texts with the same first characters are in the same unit.

    The number of these first characters is `Axis.shared_characters` plus ``length``. `Axis.plain` must be true, so that
    each byte after `Axis.shared` is a character.
    """
    return number_units(axis.base ** (axis.digits - length))


def time_units(transform: TimeTransform, kind: Type) -> Units:
    """Return the years, months, days or hours of a time transform as units; unit 0 begins with 1970-01-01.

    Parameters
    ----------
    transform
        The transform; the number of a unit is the partition value that it returns.
    kind
        The column's type, a date or timestamp. The units divide its stored values, such as days since 1970.
    """

    def number(values: Floats) -> Floats:
        return transform.numbers(kind, np.clip(values, -9e18, 9e18).astype(np.int64)).astype(np.float64)

    def start(numbers: Floats) -> Floats:
        least, most = transform.numbers(kind, np.array([-9e18, 9e18]).astype(np.int64)) + np.array([1, -1])
        return transform.starts(kind, np.clip(numbers, least, most).astype(np.int64)).astype(np.float64)

    return Units(number, start)


def _time_transforms(kind: Type) -> list[TimeTransform]:
    """Return the time transforms that Spark has for a type, finest first."""
    found = [
        made
        for cls in TRANSFORMS
        if issubclass(cls, TimeTransform) and cls.spark_name and (made := cls()).accepts(kind)
    ]
    return sorted(found, key=lambda t: -sum(t.refines(other, kind) for other in found))


#: Types accepted by the bucket transform, with enough distinct values to make it useful (spec, "Partition Transforms").
_BUCKETS = frozenset(
    ("int", "long", "decimal", "string", "uuid", "fixed", "binary", "timestamp", "timestamptz", "timestamp_ns",
     "timestamptz_ns", "time")
)  # fmt: skip
_MAX_BUCKETS = 512
#: A suggested partition field may shrink the average data file to this share of its present size. With smaller files,
#: opening them costs more than pruning saves.
_SMALLEST = 0.5
#: Up to this number of distinct values, a column may be partitioned by value (identity).
_SINGLE_VALUES = 200
#: If the number of distinct values is estimated from the bytes of the column, the estimate is multiplied by this
#: factor, because it misses rare values.
_RARE = 6


@dataclass(frozen=True)
class Candidate:
    """A partition field, and an estimate of what the filter would read with it.

    Attributes
    ----------
    transform
        The field's transform.
    after
        The number of files that the filter would read, and their bytes.
    files
        The number of data files that the whole table would have.
    assumes
        Assumptions of the estimate, besides that values are spread evenly between the bounds of a file.
    """

    transform: Transform
    after: Reading
    files: int
    assumes: str = ""


def candidates(
    kind: Type,
    spread: Spread,
    every: Files,
    left: Mask,
    wanted: Wanted,
    distinct: float | None,
    have: Collection[Transform] = (),
    *,
    guessed: bool = False,
) -> Iterator[Candidate]:
    """Yield possible partition fields on one column, each with an estimate of what the filter would read with it.

    Each transform is proposed at most once: of the time transforms, only the finest that does not make files too small;
    ``identity`` for a column with few distinct values; ``bucket`` for a column with many distinct values, if the filter
    selects single values; and ``truncate`` if the filter selects ranges of numbers or strings. Any field with which
    files would become too small (`_SMALLEST`) is left out.

    Parameters
    ----------
    kind
        The column's type.
    every, spread
        All live data files, and the column's bounds in them.
    left
        Mask of the files that remain after pruning with today's partition fields.
    wanted
        The values of the column that the filter selects.
    distinct
        Number of distinct values of the column; None if unknown.
    have
        The transforms of the partition fields that the table already derives from this column. If one is ``identity``,
        nothing is yielded. If one is ``bucket[4]``, a bucket field has a multiple of 4 buckets. Others have no effect.
    guessed
        Whether ``distinct`` is an estimate: there may be several times as many distinct values, most of them rare.
    """
    base = type_base(kind)
    if any(transform.is_identity for transform in have) or not left.any():
        return
    times = _time_transforms(kind)
    for unit in times:
        found = _cut(spread, every, left, wanted, time_units(unit, kind))
        if found is not None:
            yield Candidate(unit, *found)
            break  # the finest unit that does not make files too small
    step = spread.axis.step
    numbers = step > 0 and base in ("int", "long", "decimal", "boolean")
    width = (float(np.nanmax(spread.high) - np.nanmin(spread.low)) / step + 1) if numbers else None
    values = min((v for v in (distinct, width) if v is not None), default=None)
    points = wanted.points
    if not times and values is not None and values <= _SINGLE_VALUES and (points or width is not None):
        if width is not None and width <= _SINGLE_VALUES:
            found, assumes = _cut(spread, every, left, wanted, number_units(step)), ""
        else:
            room = round(values) * (_RARE if guessed else 1)
            fits = points and room * every.groups * _SMALLEST <= len(every.rows)
            found = _hashed(every, left, points, round(values)) if fits else None
            assumes = f"the column has about {values:,.0f} distinct values, equally frequent"
        if found is not None:
            yield Candidate(IdentityTransform(), *found, assumes)
    elif points and base in _BUCKETS:
        old = max((t.width or 1 for t in have if isinstance(t, BucketTransform)), default=1)
        buckets = _buckets(every, left)
        if buckets > 1 and buckets * old <= _MAX_BUCKETS and (values is None or values >= 4 * buckets * old):
            found = _hashed(every, left, points, buckets)
            if found is not None:
                assumes = "the column has many different values, and bucket spreads them evenly"
                yield Candidate(BucketTransform(buckets * old), *found, assumes)
    if points:
        return
    parts = max(1.0, float(np.median(every.counts)))
    if numbers and width is not None:
        size = int(10 ** np.ceil(np.log10(max(1.0, width / parts))))
        found = _cut(spread, every, left, wanted, number_units(step * size)) if size > 1 else None
        if found is not None:
            yield Candidate(TruncateTransform(size), *found)
    elif base == "string" and spread.axis.plain:
        for length in range(spread.axis.digits, 0, -1):
            found = _cut(spread, every, left, wanted, text_units(spread.axis, length))
            if found is not None:
                size = spread.axis.shared_characters + length  # `truncate` counts characters, not bytes
                yield Candidate(TruncateTransform(size), *found, "prefixes occur equally often")
                break


def _cut(spread: Spread, every: Files, left: Mask, wanted: Wanted, units: Units) -> tuple[Reading, int] | None:
    """Estimate what a filter would read if each of today's partitions were split into one partition per unit.

    Parameters
    ----------
    every, spread
        All live data files, and the column's bounds in them.
    left
        Mask of the files that remain after pruning with today's partition fields.
    wanted
        The values of the column that the filter selects.
    units
        The units of the additional partition field, for example days.

    Returns
    -------
    tuple or None
        What the filter would read, and the number of data files that the table would have. None if files would become
        too small (`_SMALLEST`), or if no file in ``left`` has bounds.
    """
    spans = _inside(spread, every, units)
    total = float((spans * np.ceil(every.counts / spans)).sum())
    if spans.sum() * _SMALLEST > float(every.counts.sum()):
        return None
    files, own = every.take(left), spread.take(left)
    if not own.known.any():
        return None
    shares = Shares(own, files)
    inside = _inside(own, files, units)
    size, count = files.add(files.bytes), files.counts
    read, share = np.zeros(files.groups), np.zeros(files.groups)
    if wanted.nulls:
        share += shares.nulls
        read += np.where(shares.nulls > 0, np.maximum(1.0, np.ceil(shares.nulls * count - 1e-9)), 0.0)
    before = -np.inf
    low, high = float(np.nanmin(own.low)), float(np.nanmax(own.high))
    for span in wanted.spans:
        # A scan reads whole partitions, so widen `span` (an interval of values that the filter selects) to whole units.
        # If the previous interval ends in the first of these units, that unit is already counted: begin with the next.
        first, end = units.number(np.array([max(span.low, low), min(span.high, high)]))
        first = max(first, before + 1)
        if end < first:
            continue
        edges = units.start(np.array([first, end + 1]))
        begins, ends = shares.around(Span(float(edges[0]), float(edges[1]) - own.axis.step))
        part = np.where(shares.touched(span), np.clip(ends - begins, 0.0, 1.0) * (1.0 - shares.nulls), 0.0)
        matched = np.maximum(1.0, np.minimum(min(end - first + 1, span.points or np.inf), inside))
        share += part
        read += np.where(part > 0, matched * np.ceil(part * count / matched - 1e-9), 0.0)
        before = end
    share = np.minimum(share, 1.0)
    # `read` counts the files of the partitions for null, but `total` does not. So limit `read` to `total`.
    most = min(round(float(read.sum())), round(total))
    return Reading(most, round(float((share * size).sum()))), round(total)


def _inside(spread: Spread, files: Files, units: Units) -> np.ndarray:
    """Return, for each of today's partitions, how many units there are from its lowest to its highest bound.

    The units of both bounds are counted, so the result is 1 if both are in the same unit. It is also 1 for a partition
    without known bounds.

    Parameters
    ----------
    spread
        The column's bounds in the files.
    files
        The data files, grouped by today's partitions.
    """
    known = spread.known
    low, high = units.number(spread.low[known]), units.number(spread.high[known])
    least, most = np.full(files.groups, np.inf), np.full(files.groups, -np.inf)
    np.minimum.at(least, files.group[known], low)
    np.maximum.at(most, files.group[known], high)
    return np.where(np.isfinite(least), most - least + 1, 1.0)


def _hashed(every: Files, left: Mask, points: int, parts: int) -> tuple[Reading, int] | None:
    """Estimate what a filter on single values would read if each of today's partitions were split evenly.

    The parts are new partitions: the buckets of ``bucket`` or, for ``identity``, one for each distinct value.

    Parameters
    ----------
    every
        All live data files.
    left
        Mask of the files that remain after pruning with today's partition fields.
    points
        The number of single values that the filter selects: 3 for ``id IN (5, 6, 7)``.
    parts
        The number of parts into which each partition is split.

    Returns
    -------
    tuple or None
        What the filter would read, and the number of data files that the table would have; None if files would become
        too small (`_SMALLEST`).
    """
    if parts * every.groups * _SMALLEST > float(every.counts.sum()):
        return None
    total = float((parts * np.ceil(every.counts / parts)).sum())
    files = every.take(left)
    # The share of the parts that hold at least one of the values, if each value is in a random part.
    share = 1.0 - (1.0 - 1.0 / parts) ** points
    read = np.ceil(parts * share * np.ceil(files.counts / parts) - 1e-9)
    return Reading(round(float(read.sum())), round(float(files.add(files.bytes).sum()) * share)), round(total)


def _buckets(every: Files, left: Mask) -> int:
    """Return a number of buckets, a power of two, that keeps files at about their current size."""
    counts = every.take(left).counts
    room = float(np.median(counts)) if len(counts) else 0.0
    return int(min(_MAX_BUCKETS, 2 ** int(np.floor(np.log2(max(1.0, room))))))
