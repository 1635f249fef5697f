"""Choose stops: the values of a column to which users of a range map can move an edge of the filter's range.

A range map is a picture of the range of values that each file has in one column. It shows which files the plan reads
if users move an edge, for example from ``id >= 5`` to ``id >= 7``. Edges can only be moved to stops. So to find out
which files are read, the map does not need the files' bounds: it stores, for each file, the indices of the stops to
which a lower or an upper edge can be moved so that the plan still reads the file. Code that draws the map compares
these indices, so it need not know how values of each type are ordered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import And, Expression, Op, Predicate, all_of
from iceexplore.metadata import Type, type_base
from iceexplore.planning.evaluators._column_metrics import comparable

__all__ = ["RangeFilter", "Stops", "range_filter", "stops_of"]

#: Stops (values to which a user can move an end of the filter's range, such as the 5 in ``id >= 5``) are chosen from
#: the lower and upper bounds of the files. If there are at least twice this number of lower bounds, only every nth one
#: is used, where n is chosen so that at least this number remains. The same applies to the upper bounds.
_SAMPLE = 50_000
#: Usually, stops (values to which a user can move an end of the filter's range, such as the 5 in ``id >= 5``) are
#: evenly spaced, such as 0, 10, 20 and 30. But if the bounds of the files are, for example, 1, 2, 3, … 50 and
#: 1,000,000, evenly spaced stops are so far apart that almost all bounds are between the same two. Then the bounds
#: themselves become the stops, and are drawn at equal distances. This is done if few of the intervals between
#: neighboring stops contain a bound. There must be fewer such intervals than a tenth (1 / ``_CROWDED``) of the number
#: of stops, and fewer than a tenth of the number of distinct bounds.
_CROWDED = 10
#: Maximum extension of the picture's axis, as a fraction of its length. Without extension, the axis goes approximately
#: from the lowest to the highest bound of the files. If a literal of the filter is lower or higher, such as 1000 in
#: ``id < 1000``, the axis is extended towards it, at each end by at most this fraction. A literal that is still outside
#: is drawn at the end of the axis.
_ROOM = 0.15
#: Bounds of files are cut to this length before they become stops (values to which a user can move an end of the
#: filter's range, such as the 5 in ``id >= 5``). The length is in characters for a string column, and in bytes for a
#: binary column.
_LONGEST = 64
_SECOND = 1_000_000
#: Possible distances between two neighboring stops (values to which a user can move an end of the filter's range, such
#: as the 5 in ``id >= 5``) of a time or timestamp column, in microseconds, up to 12 hours. Longer distances are a
#: number of days: 1, 2, 5, 10, 20, 50 and so on.
_TIMES = (
    *(m * 10**e for e in range(6) for m in (1, 2, 5)),
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)),
    *(n * 3600 * _SECOND for n in (1, 2, 3, 6, 12)),
)
_DAY = 86_400 * _SECOND


@dataclass(frozen=True)
class RangeFilter:
    """A filter, split into a range of one column and the other conditions of the filter.

    Attributes
    ----------
    lower
        The comparison that limits the range from below, such as ``id >= 5`` or ``id = 5``: the most restrictive one if
        the filter has several, None if it has none.
    upper
        The same for the limit from above, such as ``id < 9`` or ``id = 5``.
    rest
        The other conditions, joined with ``and``; always true if there are none.
    """

    lower: Predicate | None
    upper: Predicate | None
    rest: Expression


def range_filter(expression: Expression, field_id: int) -> RangeFilter:
    """Split a filter into a range of the column with this field id, and the other conditions.

    Only comparisons of the column with ``=``, ``<``, ``<=``, ``>`` or ``>=`` that are joined with ``and`` at the top
    level of the filter belong to the range. Comparisons inside an ``or``, for example, belong to the other conditions.
    """
    lower: list[Predicate] = []
    upper: list[Predicate] = []
    rest: list[Expression] = []
    for part in expression.children if isinstance(expression, And) else (expression,):
        if isinstance(part, Predicate) and part.field_id == field_id and part.op in (">", ">=", "<", "<=", "="):
            if part.op in (">", ">=", "="):
                lower.append(part)
            if part.op in ("<", "<=", "="):
                upper.append(part)
        else:
            rest.append(part)
    return RangeFilter(
        max(lower, key=lambda p: (p.literals[0], p.op == ">"), default=None),
        min(upper, key=lambda p: (p.literals[0], p.op != "<"), default=None),
        all_of(*rest),
    )


@dataclass(frozen=True)
class Stops:
    """The stops of a column: the values, in ascending order, to which an edge of the filter's range can be moved.

    Attributes
    ----------
    values
        The values, in the same form as the literals of a `Predicate`. A date, for example, is the number of days since
        1970-01-01.
    positions
        For each stop, where it is drawn on the horizontal axis: from 0, the left end, to 1, the right end.
    lower_ops
        For each stop, the operator of a lower edge that is moved to it: ``>=``, so that the edge at the stop 7 is
        ``id >= 7``. If the lower edge of the plan's own filter has ``>``, such as ``id > 5``, the operator at the stop
        5 is ``>``.
    upper_ops
        For each stop, the operator of an upper edge that is moved to it: ``<=``. If the upper edge of the plan's own
        filter has ``<``, such as ``id < 9``, the operator at the stop 9 is ``<``.
    even
        True if the stops are drawn at equal distances; False if the distance between two stops is in proportion to the
        difference between their values.
    """

    values: tuple[Any, ...]
    positions: tuple[float, ...]
    lower_ops: tuple[Op, ...]
    upper_ops: tuple[Op, ...]
    even: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def index(self, value: PlainValue) -> int:
        """Return the index of a value in `values`.

        Raises
        ------
        ValueError
            ``value`` is not in `values`.
        """
        return self.values.index(value)

    def without(self, dropped: Iterable[int]) -> Stops:
        """Return a copy without some of the stops: those at the indices in ``dropped``.

        Stops are values to which users can move an edge of the filter's range.
        """
        gone = set(dropped)

        def kept(items: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(item for i, item in enumerate(items) if i not in gone)

        return Stops(kept(self.values), kept(self.positions), kept(self.lower_ops), kept(self.upper_ops), self.even)


def stops_of(kind: Type, lower: AnyArray, upper: AnyArray, edges: RangeFilter, most: int) -> Stops | None:
    """Choose a column's stops: the values to which the edges of the filter's range can be moved in a range map.

    They are chosen from the bounds of the files. The result is None if there are no finite bounds.

    For numbers, dates and times, stops are usually round values at equal distances, such as 0, 10, 20 and 30. If almost
    all bounds are between the same few stops (`_is_crowded`), such stops would not separate the files. In this case,
    and for texts and bytes, some of the bounds are chosen as stops, and the map shows them at equal distances. A
    boolean column has the stops False and True.

    Parameters
    ----------
    kind
        The column's type.
    lower, upper
        The lower bounds and the upper bounds of the column, one per file; null where unknown.
    edges
        The filter's range of the column. The literals of its edges become stops too.
    most
        The approximate maximum number of stops, not counting the literals of ``edges``.
    """
    literals = [p.literals[0] for p in (edges.lower, edges.upper) if p is not None]
    low, high = (_sampled(comparable(side)) for side in (lower, upper))
    ends = sorted([*low, *high])
    if not ends:
        return None
    if type_base(kind) == "boolean":
        return _stops(kind, [False, True], literals, edges, even=True)
    found = _linear(kind, ends, most)
    if found is None or _is_crowded(found, low, high):
        unique = sorted(set(ends))
        if len(unique) > most:
            unique = [unique[i] for i in np.linspace(0, len(unique) - 1, most).round().astype(int).tolist()]
        return _stops(kind, unique, literals, edges, even=True)
    return _stops(kind, found, literals, edges, even=False)


def _sampled(values: AnyArray) -> list[Any]:
    """Return the lowest value, the highest value and a sample of all values, in ascending order.

    Nulls, infinities and NaN are left out first; if no value remains, the list is empty. The sample consists of every
    nth value, where n is chosen so that the sample has fewer than twice `_SAMPLE` values. Texts are cut to `_LONGEST`
    characters, and binary values to `_LONGEST` bytes. The list may contain equal values: for example, the lowest value
    may also be in the sample.
    """
    there = values.drop_null()
    if pa.types.is_floating(there.type):
        there = there.filter(pc.is_finite(there))
    if not len(there):
        return []
    ends = pc.min_max(there)
    step = max(1, len(there) // _SAMPLE)
    some = there if step == 1 else there.take(build.array(np.arange(0, len(there), step)))
    found = [ends["min"].as_py(), ends["max"].as_py(), *pc.unique(some).to_pylist()]
    # A bound may have a million characters, so cut it to `_LONGEST`. The shortened text may be in no row. That does no
    # harm: a filter such as ``name >= 'abc'`` is valid even if no row has the value ``abc``.
    return sorted(v[:_LONGEST] if isinstance(v, (str, bytes)) else v for v in found)


def _is_crowded(stops: Sequence[Any], low: Sequence[Any], high: Sequence[Any]) -> bool:
    """Return whether almost all bounds are in few of the intervals between stops, so that most stops separate no files.

    A stop is a value to which users can move an edge of the filter's range. The stops divide the values into intervals.
    The result is True if the number of intervals that contain a bound is less than a tenth (1 / `_CROWDED`) of the
    number of stops, and also less than a tenth of the number of distinct bounds.

    Parameters
    ----------
    stops
        The stops, in ascending order.
    low, high
        Lower bounds and upper bounds of the files.
    """
    every = np.array([float(v) for v in (*low, *high)])
    cells = np.unique(np.searchsorted(np.array([float(v) for v in stops]), every))
    distinct = len(np.unique(every))
    return len(cells) * _CROWDED < min(distinct, len(stops))


def _stops(kind: Type, values: Sequence[Any], literals: Sequence[Any], edges: RangeFilter, *, even: bool) -> Stops:
    if even and isinstance(values[0], float):
        # `values` are bounds of files here, such as 0.30000000000000004. Users can move an end of the filter's range to
        # each of them. For this, a value close to a bound is good enough, so round to 6 significant digits.
        values = sorted({float(f"{v:.6g}") for v in values})
    if type_base(kind) == "float":
        # The column has the type float, with 32 bits, but Python's floats have 64. If a filter such as ``x >= 1.3`` is
        # read from text, its literal is rounded to 32 bits. Round `values` in the same way, so that a value such as 1.3
        # is equal to the literal.
        values = [float(np.float32(v)) for v in values]
    every = sorted({*values, *literals})
    if even or len(every) < 2:
        places = [(i + 0.5) / len(every) for i in range(len(every))]
    else:
        first, last = float(values[0]), float(values[-1])
        room = (last - first or 1.0) * _ROOM
        first, last = max(first - room, min(first, float(every[0]))), min(last + room, max(last, float(every[-1])))
        span = last - first or 1.0
        places = [min(1.0, max(0.0, (float(v) - first) / span)) for v in every]

    def ops(edge: Predicate | None, own: Op, strict: Op) -> tuple[Op, ...]:
        at = None if edge is None or edge.op != strict else edge.literals[0]
        return tuple(strict if at is not None and v == at else own for v in every)

    return Stops(tuple(every), tuple(places), ops(edges.lower, ">=", ">"), ops(edges.upper, "<=", "<"), even)


def _linear(kind: Type, ends: Sequence[Any], most: int) -> list[Any] | None:
    """Choose round values at equal distances, from about the lowest to about the highest bound, as stops.

    A stop is a value to which users can move an edge of the filter's range. For integers, dates and times, the lowest
    and the highest bound are also stops, although they may not be round. The result is None for text and bytes, which
    have no distances. It is also None for floats if all bounds are equal, or if the highest minus the lowest bound
    overflows.

    Parameters
    ----------
    kind
        The column's type.
    ends
        All lower and upper bounds of the files, in one ascending list; at least one.
    most
        The approximate maximum number of stops.
    """
    least, greatest = ends[0], ends[-1]
    if isinstance(least, (str, bytes)):
        return None
    base = type_base(kind)
    if isinstance(least, float):
        if least == greatest or not math.isfinite(greatest - least):
            return None
        step = _nice(Decimal(repr(greatest - least)) / max(1, most - 2))
        return [float(n * step) for n in range(_floor(least, step), _floor(greatest, step) + 2)]
    if isinstance(least, Decimal):
        exponent = least.as_tuple().exponent
        smallest = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
        step = max(smallest, _nice((greatest - least) / max(1, most - 2))) if least != greatest else smallest
        numbers = [n * step for n in range(_floor(least, step), _floor(greatest, step) + 2)]
        return [v for v in numbers if least <= v <= greatest] or [least]
    whole = int(greatest) - int(least)
    if base.startswith(("timestamp", "time")):
        unit = 1000 if base.endswith("_ns") else 1
        wanted = math.ceil(whole / max(1, most - 2) / unit)
        own = next((t for t in _TIMES if t >= wanted), None) or int(_nice(Decimal(wanted) / _DAY, least=1)) * _DAY
        count = own * unit
    else:
        count = int(_nice(Decimal(whole) / max(1, most - 2), least=1))
    inner = range(-(-int(least) // count) * count, int(greatest) + 1, count)
    return sorted({int(least), *inner, int(greatest)})


def _nice(wanted: Decimal, *, least: int = 0) -> Decimal:
    """Round ``wanted`` up to the next number that is 1, 2 or 5 times a power of ten: 0.3 becomes 0.5, 6 becomes 10.

    The result is used as the distance between values on an axis, so it is always positive.

    Parameters
    ----------
    wanted
        The number to round. If it is 0 or negative, and ``least`` is 0, the result is 1.
    least
        The lowest possible result, 0 or positive. If ``least`` is positive and ``wanted`` is not greater, the result is
        ``least``, without rounding.
    """
    if wanted <= least or wanted <= 0:
        return Decimal(least or 1)
    power = Decimal(1).scaleb(wanted.adjusted())
    return next(m * power for m in (1, 2, 5, 10) if m * power >= wanted)


def _floor(value: PlainValue, step: Decimal) -> int:
    return math.floor(Decimal(repr(value) if isinstance(value, float) else value) / step)
