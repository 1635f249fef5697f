"""Find out which files a plan still reads if the edges of the filter's range are moved to other values.

A range such as ``id >= 5 and id <= 9`` has two edges, ``id >= 5`` and ``id <= 9``. Users can move an edge to certain
values of the column, called stops (see `Stops`). If the lower edge is moved to the stop 7, its predicate becomes
``id >= 7``. The plan skips a file if the file's metadata proves that no row matches this predicate. Such proofs follow
the same rules as in planning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import Predicate
from iceexplore.metadata import Type, parse_transform
from iceexplore.planning.evaluators._column_metrics import Mask, aligned, known
from iceexplore.planning.evaluators._file_evaluator import MetricsSource, MetricsSources
from iceexplore.planning.evaluators._metrics_evaluator import may_match
from iceexplore.planning.evaluators._projection import project
from iceexplore.planning.range_map._stops import Stops

__all__ = ["Spans", "StopPredicates"]

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spans:
    """The range of a column's values in each file, or in each manifest.

    A stop is a value to which users can move an edge of the filter's range. A file's range is given as indices of
    stops, from ``first`` up to, but not including, ``last``. The plan reads the file if the lower edge is at a stop
    before ``last``, and the upper edge is at the stop ``first`` or after it. For example, with the stops 0, 10, 20 and
    30, a file with the bounds 10 and 20 has a ``first`` of 1 and a ``last`` of 3.

    Each attribute is an array with one element per file or manifest.

    Attributes
    ----------
    first
        Index of the lowest stop to which the upper edge can be moved so that the plan still reads the file. If the plan
        skips the file wherever the upper edge is, ``first`` is the number of stops.
    last
        Index of the highest stop to which the lower edge can be moved so that the plan still reads the file, plus 1. If
        the plan skips the file wherever the lower edge is, ``last`` is 0.
    known
        Whether the range follows from metadata: a lower or upper bound, a partition value, or counts that prove that
        all values are null or NaN. Without these, the range contains all stops.
    """

    first: _Ints
    last: _Ints
    known: Mask

    def and_(self, other: Spans) -> Spans:
        """Intersect, for each file, its range in ``self`` with its range in ``other``.

        A range consists of stops: values of the column to which users can move an edge of the filter's range. An
        unknown range contains all stops, so its intersection with a known range is the known range. The intersection is
        unknown only if both ranges are (see `known`).
        """
        return Spans(np.maximum(self.first, other.first), np.minimum(self.last, other.last), self.known | other.known)

    def take(self, rows: npt.ArrayLike) -> Spans:
        """Return the ranges of the column's values in some of the files or manifests.

        Parameters
        ----------
        rows
            Indices of these files or manifests. The result has one range per element of ``rows``, in the same order; an
            index may occur several times.
        """
        at = np.asarray(rows)
        return Spans(self.first[at], self.last[at], self.known[at])


@dataclass(frozen=True)
class StopPredicates:
    """Two predicates per stop; a stop is a value of the column at which users can let the filter's range begin or end.

    For the stop 5 of the column ``id``, the predicates are ``id >= 5`` and ``id <= 5``. But if the plan's own filter
    has ``id > 5``, this is the first predicate of the stop; if it has ``id < 5``, this is the second.

    Attributes
    ----------
    lower
        For each stop, in ascending order, the predicate of a range that begins at the stop, such as ``id >= 5``.
    upper
        For each stop, in ascending order, the predicate of a range that ends at the stop, such as ``id <= 5``.
    """

    lower: tuple[Predicate, ...]
    upper: tuple[Predicate, ...]

    @classmethod
    def of(cls, stops: Stops, field_id: int, name: str, kind: Type) -> StopPredicates:
        """Build two predicates per stop: one for a range that begins at the stop, one for a range that ends there.

        A stop is a value to which users can move an end of the filter's range. For the stop 5 of the column ``id``, the
        predicates are ``id >= 5`` and ``id <= 5``. But if the plan's own filter has ``id > 5``, this takes the place of
        ``id >= 5``; if it has ``id < 5``, this takes the place of ``id <= 5``.

        Parameters
        ----------
        stops
            The stops, and for each stop the operators of its two predicates.
        field_id, name, kind
            Field id, name and type of the column.
        """
        pairs = [
            tuple(Predicate(field_id, op, (v,), name, kind) for op, v in zip(ops, stops.values, strict=True))
            for ops in (stops.lower_ops, stops.upper_ops)
        ]
        return cls(*pairs)

    def spans(self, rows: int, sources: MetricsSources) -> Spans:
        """Return the range of the column's values in each file or manifest, as indices of stops (see `Spans`).

        A stop is a value to which a user can move an end of the filter's range, such as the 5 in ``id >= 5``.

        The range is first computed from each kind of metrics separately: from the values of each partition field (for
        manifests, from the field's partition summary), and from the bounds of the column. The result is the
        intersection of these ranges.

        Parameters
        ----------
        rows
            Number of files or manifests.
        sources
            A function that takes a predicate, such as ``id >= 5``, and returns the metrics on which the predicate can
            be evaluated: those of each partition field of ``id``, and those of ``id`` itself. All of them have one
            element per file or manifest.
        """
        count = len(self.lower)
        out = Spans(np.zeros(rows, np.int64), np.full(rows, count), np.zeros(rows, np.bool_))
        if not count or not rows:
            return out
        # Get the metrics of the column and of each of its partition fields, as far as any of the predicates can use
        # them. `sources(p)` returns the metrics for one predicate `p`, and leaves out a partition field if `p` cannot
        # be projected to it. This can depend on the literal of `p`: for example, ``truncate`` of the lowest int may
        # overflow, and a comparison with it then has no projection. As one predicate may lack a projection that others
        # have, try three of them: for the middle stop, the lowest one and the highest one. The longest of the three
        # results leaves out the fewest partition fields, so use it.
        found = max((sources(p) for p in (self.lower[count // 2], self.lower[0], self.upper[-1])), key=len)
        for source in found:
            if all(_projected(source, p) is None for p in (*self.lower, *self.upper)):
                # None of the predicates can be projected to this partition field, so its values exclude no file. An
                # example is ``id >= 5`` and the transform bucket[16].
                continue
            last = _allowed(source, self.lower)
            # `_allowed` needs the predicates in order, from the one that matches the most values to the one that
            # matches the fewest. In `upper`, such as `id <= 0`, `id <= 10`, `id <= 20`, the order is the opposite, so
            # reverse it. `_allowed` counts the predicates that may match. If one of them may match, so may all that
            # match more values, so these are the last ones in `upper`: subtract their number from `count` to get the
            # index of the first.
            first = count - _allowed(source, self.upper[::-1])
            evidence = source.evidence
            bounded = np.asarray(evidence.lower.is_valid()) | np.asarray(evidence.upper.is_valid()) | evidence.nothing
            if source.where is not None:
                last, first = np.where(source.where, last, count), np.where(source.where, first, 0)
                bounded = bounded & source.where
            out = out.and_(Spans(first, last, bounded))
        return out

    def unusable(self, sources: Sequence[MetricsSource]) -> set[int]:
        """Return the indices of the values that are not to be offered to users as edges of the filter's range.

        A value to which users can move the lower or the upper edge of the filter's range is called a stop. Each stop
        has two predicates, such as ``id >= 10`` for a lower edge and ``id <= 10`` for an upper edge. If one of them has
        no projection to a partition field, for example because the transform ``truncate`` would overflow, the values of
        this field cannot prove that no row of a file matches it. So if predicates of other stops have a projection,
        users would be surprised: with a narrower range, the plan could read a file that it skips with a wider one.

        The result contains each stop whose predicate for the lower edge has no projection to a partition field, while
        the lower-edge predicate of some other stop has one; the same applies to the upper edge.

        Parameters
        ----------
        sources
            The metrics on which the predicates are evaluated: one element per partition field of the column, and one
            for the column itself.
        """
        out: set[int] = set()
        for source in sources:
            for side in (self.lower, self.upper):
                given = [i for i, p in enumerate(side) if _projected(source, p) is None]
                out.update(given if len(given) < len(side) else [])
        return out


def _projected(source: MetricsSource, p: Predicate) -> Predicate | None:
    """Convert a predicate on the column into the one that can be evaluated on the metrics in ``source``.

    Metrics of the column itself need no conversion, so ``p`` is returned. For metrics of a transformed column, such as
    the values of a partition field, the result is the inclusive projection of ``p``. For example, ``ts >= TIMESTAMP
    '2024-05-03 10:00:00'`` becomes ``ts_day >= DATE '2024-05-03'``. The result is None if there is no projection.
    """
    if source.by == "statistics" and parse_transform(source.transform).is_identity:
        return p
    return None if p.type is None else project(p, source.transform, p.type, strict=False)


def _allowed(source: MetricsSource, side: Sequence[Predicate]) -> _Ints:
    """Count, for each file or manifest, the predicates in ``side`` that may match one of its rows.

    If ``source`` has the metrics of a partition field, the predicates are first projected to this field. A predicate
    without a projection may match every file.

    The number is found by bisection, for all files at once. For this, bounds and literals must have types that can be
    compared, and the operators after projection must be ``>`` and ``>=`` only, or ``<`` and ``<=`` only. Otherwise,
    each predicate is evaluated on its own.

    Parameters
    ----------
    source
        The metrics of the files or manifests, for the column or for a partition field.
    side
        The predicates for one side of a range, lower or upper, from the widest to the narrowest, such as ``id >= 0``,
        ``id >= 10`` and ``id >= 20``. If one of them matches no row of a file, neither does any later one.
    """
    asked = [_projected(source, p) for p in side]
    kinds = {p.op for p in asked if p is not None}
    evidence = source.evidence
    count, rows = len(side), len(evidence)
    if not kinds:
        return np.full(rows, count, np.int64)
    upward = kinds <= {">", ">="}
    plain = _plain(asked, evidence.lower, evidence.upper) if upward or kinds <= {"<", "<="} else None
    if plain is None:
        out = np.zeros(rows, np.int64)
        for p in asked:
            out += np.ones(rows, np.bool_) if p is None else may_match(p, evidence)
        return out
    low, high, literals = plain
    bound, beyond, touching = (high, pc.less, pc.less_equal) if upward else (low, pc.greater, pc.greater_equal)
    strict = pa.array([p is not None and p.op in ("<", ">") for p in asked])
    start, end = np.zeros(rows, np.int64), np.full(rows, count, np.int64)
    while (open_ := start < end).any():
        middle = (start + end) // 2
        at = build.array(np.minimum(middle, count - 1))
        x = literals.take(at)
        denied = known(pc.if_else(strict.take(at), touching(bound, x), beyond(bound, x)))
        end = np.where(open_ & denied, middle, end)
        start = np.where(open_ & ~denied, middle + 1, start)
    # `start` is now the number of predicates in `side` that may match a row of the file or manifest, according to its
    # bounds. But in two cases, none can match, so return 0: if all values are null or NaN (`evidence.nothing`); or if
    # the metrics are exact, such as partition values, and the bound is null, because then the value itself is null. If
    # the metrics are not exact, a null bound is merely unknown and excludes nothing: `start` counts all predicates.
    none = evidence.nothing | (np.asarray(bound.is_null()) if evidence.exact else np.zeros(rows, np.bool_))
    return np.where(none, 0, start)


def _plain(
    asked: Sequence[Predicate | None], lower: AnyArray, upper: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray] | None:
    """Convert bounds and the literals of predicates to one type that Arrow can compare.

    Parameters
    ----------
    asked
        The predicates on the column or partition field to which the bounds belong, each with one literal. An element is
        None if the predicate cannot be projected to the partition field. At least one element is not None, and all
        predicates have the same type.
    lower, upper
        The bounds, one element per file or manifest.

    Returns
    -------
    tuple or None
        The lower bounds, the upper bounds, and the literals (one element per element of ``asked``, null for None). The
        result is None if the types of bounds and predicates differ too much to be compared, such as text and numbers,
        or if a literal does not fit the type of the bounds.
    """
    kind = next(p.type for p in asked if p is not None)
    low, high = aligned(lower, kind), aligned(upper, kind)
    if low is None or high is None:
        return None
    values: list[Any] = [None if p is None else p.literals[0] for p in asked]
    if pa.types.is_int64(low.type):
        values = [None if v is None else int(v) for v in values]
    try:
        return low, high, pa.array(values, low.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
