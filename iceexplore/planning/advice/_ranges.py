"""Convert a filter on one column to ranges on a number line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from iceexplore.expressions import And, Expression, Or, Predicate, columns_of, computed
from iceexplore.planning.advice._axis import Axis

__all__ = ["Span", "Wanted", "by_column", "wanted_of"]

_INFINITY = math.inf
#: Maximum number of intervals (`Wanted.spans`) to which the values that a filter selects are converted. The limit saves
#: time, because the files to read are estimated for each interval separately. If there are more intervals, those with
#: the smallest gaps between them are merged.
_MOST = 64

#: Closed intervals as pairs of the lowest and the highest number, in ascending order, without overlaps.
_Intervals: TypeAlias = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Span:
    """A closed interval of numbers, from ``low`` to ``high``. The numbers represent values of a column (`Axis.number`).

    Attributes
    ----------
    points
        Count of the single numbers that the filter selects in the interval; 0 if it selects a range of numbers. For
        example, ``a IN (1, 5)`` gives two spans, each with one point. If the two are merged to limit the number of
        spans, the result is one span from 1 to 5 with 2 points.

        Strings are represented by numbers, too. If bounds are truncated to ``abcd``, they do not distinguish the
        strings that begin with ``abcd``. So for ``a = 'abcdef'``, the filter selects the range of the numbers of all
        these strings, and the span has 0 points. `Wanted.points`, the number of single values in the filter, is 1.
    """

    low: float
    high: float
    points: int = 0


@dataclass(frozen=True)
class Wanted:
    """The values of one column that a filter selects.

    Attributes
    ----------
    spans
        The intervals of matching values, in ascending order, without overlaps.
    nulls
        Whether the filter selects rows in which the column is null.
    points
        Number of the values if the filter selects only single values: 3 for ``a IN ('x', 'y', 'z')``. 0 if the filter
        selects a range of values, such as ``a > 'x'``, or selects nulls.

        A text counts as a single value even if its interval in `spans` contains other values, too. For example, the
        filter is ``a = 'abcdef'``, and the bounds are truncated to ``abcd``. Bounds then do not distinguish the texts
        that begin with ``abcd``, so the interval includes all of them, but ``points`` is 1.
    """

    spans: tuple[Span, ...]
    nulls: bool = False
    points: int = 0


def by_column(expression: Expression) -> tuple[dict[int, list[Expression]], list[Expression]]:
    """Split an expression at its top-level ``and``, and group the parts by the column that they use.

    For example, ``a > 1 AND a < 9 AND (b = 1 OR c = 2) AND day(ts) = '2024-01-01'`` has four parts. The first two use
    only the column ``a``.

    Returns
    -------
    single
        By field id of a column: the parts that use only this column, and no function of it.
    several
        The parts that use several columns, such as ``b = 1 OR c = 2``, or a function, such as ``day(ts)``.
    """
    single: dict[int, list[Expression]] = {}
    several: list[Expression] = []
    for part in expression.children if isinstance(expression, And) else (expression,):
        ids = set(columns_of(part))
        if len(ids) == 1 and not any(computed(part)):
            single.setdefault(ids.pop(), []).append(part)
        elif ids:
            several.append(part)
    return single, several


def wanted_of(expression: Expression, axis: Axis) -> Wanted | None:
    """Return the values that match an expression on one column; None if they cannot be represented by intervals.

    For example, the result is None for a test for NaN, because no number represents NaN. In an ``and``, such a test is
    ignored instead, so the result may also include values that do not match: see `_taken`.

    Parameters
    ----------
    expression
        An expression on one column.
    axis
        The number line: the mapping of the column's values to numbers.
    """
    found = _taken(expression, axis)
    if found is None:
        return None
    intervals, nulls = found
    exact = _taken(expression, replace(axis, cut=None))
    alone = exact is not None and not nulls and all(low == high for low, high in exact[0])
    return Wanted(_few(intervals), nulls, len(exact[0]) if exact is not None and alone else 0)


def _taken(expression: Expression, axis: Axis) -> tuple[_Intervals, bool] | None:
    """Return the values that match an expression, as intervals of numbers, and whether null matches.

    Some predicates cannot be converted to intervals, such as ``is-nan``. In an ``and``, such a predicate is ignored, so
    that the intervals may also include values that do not match. The result is None if no part of an ``and`` can be
    converted, if any part of an ``or`` cannot, or if the expression is a single predicate that cannot.

    Parameters
    ----------
    expression
        An expression on one column.
    axis
        The mapping of the column's values to numbers.
    """
    match expression:
        case And(children):
            known = [t for t in (_taken(c, axis) for c in children) if t is not None]
            return (_common([i for i, _ in known]), all(n for _, n in known)) if known else None
        case Or(children):
            parts = [t for t in (_taken(c, axis) for c in children) if t is not None]
            if len(parts) < len(children):
                return None
            return _joined(i for intervals, _ in parts for i in intervals), any(n for _, n in parts)
        case Predicate():
            if expression.op == "is-null":
                return (), True
            found = _of(expression, axis)
            return None if found is None else (found, False)
    return None


def _of(p: Predicate, axis: Axis) -> _Intervals | None:
    """Return the values that match a predicate, as intervals of numbers.

    Return None if the predicate cannot be converted to intervals, such as ``is-nan``. ``axis`` maps the column's values
    to numbers.
    """
    match p.op:
        case "=" | "in":
            return _joined(map(axis.seen, p.literals))
        case "!=" | "not-in":
            return _rest(_joined((x, x) for x in map(axis.number, p.literals)), axis.step)
        case "<":
            return ((-_INFINITY, axis.seen(p.literals[0])[1] - axis.step),)
        case "<=":
            return ((-_INFINITY, axis.seen(p.literals[0])[1]),)
        case ">":
            return ((axis.seen(p.literals[0])[0] + axis.step, _INFINITY),)
        case ">=":
            return ((axis.seen(p.literals[0])[0], _INFINITY),)
        case "starts-with" | "not-starts-with" if axis.ranks and isinstance(p.literals[0], str):
            within = (axis.prefix(p.literals[0]),)
            return within if p.op == "starts-with" else _rest(within, 1.0)
        case "not-null" | "not-nan":
            return ((-_INFINITY, _INFINITY),)
    return None


def _joined(parts: Iterable[tuple[float, float]]) -> _Intervals:
    """Sort closed intervals, merge those that overlap or touch, and drop those whose low end is above the high end."""
    out: list[tuple[float, float]] = []
    for low, high in sorted(parts):
        if low > high:
            continue
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out)


def _rest(parts: _Intervals, step: float) -> _Intervals:
    """Return the complement of the intervals ``parts``: the intervals of all numbers outside them.

    For example, let ``parts`` be the interval from 3 to 5. For integers, ``step`` is 1, and the complement consists of
    the intervals from -infinity to 2 and from 6 to infinity. For floats, ``step`` is 0, and the complement consists of
    the intervals from -infinity to 3 and from 5 to infinity. It then includes 3 and 5, because intervals are closed.

    ``step`` is the distance between adjacent values of the column (`Axis.step`). For strings, this is 0, because
    different strings may be represented by the same number. The exception is ``not-starts-with``: there, ``parts`` is
    the interval of the whole numbers that represent all strings with the prefix, and ``step`` is 1, so that the
    complement does not include the first and the last number of this interval.
    """
    edges = [-_INFINITY, *(e for low, high in parts for e in (low - step, high + step)), _INFINITY]
    return _joined(zip(edges[::2], edges[1::2], strict=True))


def _common(parts: list[_Intervals]) -> _Intervals:
    """Return the intersection of several sets of intervals."""
    out = parts[0]
    for other in parts[1:]:
        out = _joined((max(a, c), min(b, d)) for a, b in out for c, d in other if max(a, c) <= min(b, d))
    return out


def _few(intervals: _Intervals) -> tuple[Span, ...]:
    """Convert intervals to `Span` objects, and limit their number to `_MOST`.

    If there are more intervals, neighbors with the smallest gaps between them are merged into one span.
    """
    if len(intervals) <= _MOST:
        return tuple(Span(low, high, int(low == high)) for low, high in intervals)
    gaps = sorted(range(1, len(intervals)), key=lambda i: intervals[i - 1][1] - intervals[i][0])[: _MOST - 1]
    borders = [0, *sorted(gaps), len(intervals)]
    groups = [intervals[a:b] for a, b in pairwise(borders)]
    return tuple(Span(g[0][0], g[-1][1], len(g) if all(low == high for low, high in g) else 0) for g in groups)
