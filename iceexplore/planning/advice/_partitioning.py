"""Find partition fields with which a filter would prune more files, and estimate how much a scan would then read."""

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
    """A way to divide a number line into consecutive intervals, called units, such as days or ranges of 100 numbers.

    The units are numbered. For ranges of 100 numbers, unit 0 is 0 to 99 and unit 2 is 200 to 299.

    Attributes
    ----------
    number
        Function that returns, for each value, the number of the unit that contains it: 2 for the value 250.
    start
        Function that returns, for each unit number, the lowest value in this unit: 200 for unit 2.
    """

    number: Callable[[Floats], Floats]
    start: Callable[[Floats], Floats]


def number_units(width: float) -> Units:
    """Divide numbers into units of equal ``width``, as ``truncate[width]`` does. Unit 0 begins at 0."""
    # A width such as 0.01, for decimals, is not exact as a float. So if x is the lowest value of an interval (unit),
    # x / width may be slightly below a whole number, and rounding it down would put x into the interval before its own.
    # The added 1e-9 prevents this.
    return Units(lambda x: np.floor(x / width + 1e-9), lambda k: k * width)


def text_units(axis: Axis, length: int) -> Units:
    """Divide the values of a string column into units, one for each result of the transform ``truncate``.

    An `Axis` maps the strings to numbers in the same order, so a unit is an interval of numbers. Two strings are in the
    same unit if they begin with the prefix `Axis.shared` and have the same ``length`` characters after it. For example,
    if all bounds begin with ``user-``, and ``length`` is 1, then ``user-12`` and ``user-19`` are in the same unit, but
    ``user-21`` is not. The transform is ``truncate[6]``, because ``user-`` has 5 characters.

    Parameters
    ----------
    axis
        The mapping of the strings to numbers. Its attribute `Axis.plain` must be true: each byte after `Axis.shared` is
        a character.
    length
        The number of characters after the shared prefix; at most `Axis.digits`, the number of characters that the
        mapping takes into account.
    """
    return number_units(axis.base ** (axis.digits - length))


def time_units(transform: TimeTransform, kind: Type) -> Units:
    """Return the time units of a transform: years, months, days or hours, numbered from the unit of 1970-01-01 on.

    Parameters
    ----------
    transform
        The transform, for example ``month``. The number of a unit is the partition value that the transform returns for
        the values in the unit: for ``month``, 0 for January 1970 and 1 for February 1970.
    kind
        The column's type, a date or timestamp. It determines the integers that represent the column's values, and so
        the beginnings of units: days since 1970 for ``date``, microseconds since 1970 for ``timestamp``.
    """

    def number(values: Floats) -> Floats:
        return transform.numbers(kind, np.clip(values, -9e18, 9e18).astype(np.int64)).astype(np.float64)

    def start(numbers: Floats) -> Floats:
        least, most = transform.numbers(kind, np.array([-9e18, 9e18]).astype(np.int64)) + np.array([1, -1])
        return transform.starts(kind, np.clip(numbers, least, most).astype(np.int64)).astype(np.float64)

    return Units(number, start)


def _time_transforms(kind: Type) -> list[TimeTransform]:
    """Return the time transforms that Spark SQL can apply to a column of type ``kind``, the shortest unit first.

    For a timestamp, these are hour, day, month and year; for a date, day, month and year.
    """
    found = [
        made
        for cls in TRANSFORMS
        if issubclass(cls, TimeTransform) and cls.spark_name and (made := cls()).accepts(kind)
    ]
    return sorted(found, key=lambda t: -sum(t.refines(other, kind) for other in found))


#: Types for which the transform ``bucket`` may be suggested: it accepts them (spec, "Partition Transforms"), and their
#: columns usually have enough distinct values to make it useful.
_BUCKETS = frozenset(
    ("int", "long", "decimal", "string", "uuid", "fixed", "binary", "timestamp", "timestamptz", "timestamp_ns",
     "timestamptz_ns", "time")
)  # fmt: skip
_MAX_BUCKETS = 512
#: A partition field is suggested only if the average data file keeps at least this share of its present size. Smaller
#: files would cost more to open than pruning saves.
_SMALLEST = 0.5
#: ``identity`` is suggested only for a column with at most this many distinct values, because each would become a
#: partition.
_SINGLE_VALUES = 200
#: If the number of distinct values is only estimated, it is usually too low, because rare values are missed. So before
#: ``identity`` is suggested, the estimate is multiplied by this factor: the average data file must still be large
#: enough (`_SMALLEST`) with that many partitions.
_RARE = 6


@dataclass(frozen=True)
class Candidate:
    """A possible new partition field, and an estimate of what a scan with the filter would read if the table had it.

    Attributes
    ----------
    transform
        The field's transform.
    after
        The number of data files that the scan would read, and their bytes.
    files
        The number of data files that the whole table would have.
    assumes
        The special assumptions of the estimate, as text; empty if there are none. The usual assumption, that values are
        spread evenly between the bounds of each file, is not listed.
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

    A field is left out if it would make data files too small: on average, less than half as large as they are now
    (`_SMALLEST`). There is at most one field of each of these kinds:

    - a time transform: the one with the shortest unit that does not make files too small;
    - ``identity``, if the column has few distinct values and is not a date or timestamp;
    - ``bucket``, if the column has many distinct values and the filter selects single values, as in ``id = 5``;
    - ``truncate``, if the filter selects ranges of numbers or strings.

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
        nothing is yielded. If one is ``bucket[4]``, the number of buckets of a yielded ``bucket`` field is a multiple
        of 4. Other transforms have no effect.
    guessed
        Whether ``distinct`` is an estimate. Then the column may have several times as many distinct values, most of
        them rare, so ``identity`` is yielded only if files would not become too small even then.
    """
    base = type_base(kind)
    if any(transform.is_identity for transform in have) or not left.any():
        return
    times = _time_transforms(kind)
    for unit in times:
        found = _cut(spread, every, left, wanted, time_units(unit, kind))
        if found is not None:
            yield Candidate(unit, *found)
            break  # the finest unit, such as hour, comes first: stop at the first one that keeps files large enough
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
                assumes = "the column has many different values, and the bucket transform spreads them evenly"
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
                size = spread.axis.shared_characters + length  # for strings, `truncate` counts characters, not bytes
                yield Candidate(
                    TruncateTransform(size), *found, "each result of the truncate transform occurs in equally many rows"
                )
                break


def _cut(spread: Spread, every: Files, left: Mask, wanted: Wanted, units: Units) -> tuple[Reading, int] | None:
    """Estimate how many files and bytes a filter would read if the table had one more partition field.

    The field has one value per unit, for example per day. So each partition would be split: a partition with the rows
    of one week would become seven partitions.

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
        The files and bytes that the filter would read, and the number of data files that the table would have. None if
        files would become too small (`_SMALLEST`), or if no file in ``left`` has bounds.
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
        # Find the units, numbered `first` to `end`, that the scan reads for `span`, an interval of values that the
        # filter selects. With the new partition field, each unit, such as a day, is a partition, and the scan is
        # assumed to read whole partitions. Values beyond the column's bounds (`low`, `high`) do not occur, so they add
        # no units. If the previous interval ended in unit `first`, that unit has been counted already, so begin with
        # the next one.
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
    # `read` and `total` are both estimates for the new partitions: the number of data files that the filter would read,
    # and the number that the table would have. Rows in which the column is null get their own files. `read` includes
    # these files, but `total` does not, because it is estimated from the bounds, which do not show nulls. So `read`
    # could exceed `total`: limit it.
    most = min(round(float(read.sum())), round(total))
    return Reading(most, round(float((share * size).sum()))), round(total)


def _inside(spread: Spread, files: Files, units: Units) -> np.ndarray:
    """Return, for each partition that the table has now, how many units, such as days, the column's bounds span.

    Units are consecutive intervals of values, one for each value of a partition field that may be added. They are
    counted from the unit of the lowest bound in the partition's files to the unit of the highest bound, both included:
    from day 5 to day 7, the result is 3. It is 1 if no file of the partition has bounds.

    Parameters
    ----------
    spread
        The column's bounds in each of ``files``.
    files
        The data files, grouped by their current partitions.
    units
        The units to count, for example days.
    """
    known = spread.known
    low, high = units.number(spread.low[known]), units.number(spread.high[known])
    least, most = np.full(files.groups, np.inf), np.full(files.groups, -np.inf)
    np.minimum.at(least, files.group[known], low)
    np.maximum.at(most, files.group[known], high)
    return np.where(np.isfinite(least), most - least + 1, 1.0)


def _hashed(every: Files, left: Mask, points: int, parts: int) -> tuple[Reading, int] | None:
    """Estimate how many files and bytes a filter such as ``id = 5`` would read if each partition were split evenly.

    Each of today's partitions is split into ``parts`` new partitions with equal numbers of rows. These are the buckets
    of the transform ``bucket`` or, for ``identity``, one new partition for each distinct value.

    Parameters
    ----------
    every
        All live data files.
    left
        Mask of the files that remain after pruning with today's partition fields.
    points
        The number of values that the filter selects: 3 for ``id IN (5, 6, 7)``.
    parts
        The number of new partitions into which each of today's partitions is split.

    Returns
    -------
    tuple or None
        The files and bytes that the filter would read, and the number of data files that the table would have; None if
        files would become too small (`_SMALLEST`).
    """
    if parts * every.groups * _SMALLEST > float(every.counts.sum()):
        return None
    total = float((parts * np.ceil(every.counts / parts)).sum())
    files = every.take(left)
    # Each current partition is split into `parts` new ones. The filter selects `points` values. Assume that each of
    # these values is in one of the new partitions, chosen at random. Then `share` is the expected share of the new
    # partitions that contain at least one of the values.
    share = 1.0 - (1.0 - 1.0 / parts) ** points
    read = np.ceil(parts * share * np.ceil(files.counts / parts) - 1e-9)
    return Reading(round(float(read.sum())), round(float(files.add(files.bytes).sum()) * share)), round(total)


def _buckets(every: Files, left: Mask) -> int:
    """Return the number of buckets into which partitions can be split while data files keep about their current size.

    For each partition, count the data files that ``left`` selects. The result is the median of these counts, rounded
    down to a power of two, and at most `_MAX_BUCKETS`. So in a typical partition, each bucket gets at least one file of
    the current size.

    Parameters
    ----------
    every
        All live data files.
    left
        Mask of the files that remain after pruning with today's partition fields. Partitions without such a file are
        ignored.
    """
    counts = every.take(left).counts
    room = float(np.median(counts)) if len(counts) else 0.0
    return int(min(_MAX_BUCKETS, 2 ** int(np.floor(np.log2(max(1.0, room))))))
