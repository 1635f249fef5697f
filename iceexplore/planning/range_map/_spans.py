"""Find, for each file, where the edges of a filter's range must be so that the plan reads the file.

Users can move an edge to certain values of the column, called stops (see `Stops`). For each stop, the same evaluators
that planning uses decide whether the metadata of a file excludes it.
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
    """The range of each file, as indices of stops: from ``first`` up to, but not including, ``last``.

    A stop is a value to which an edge of the filter's range can be moved, given by its index in `Stops`.

    Attributes
    ----------
    first
        The lowest stop for the upper edge of the filter's range at which the file is still read; the number of stops if
        there is none.
    last
        One more than the highest stop for the lower edge at which the file is still read; 0 if there is none.
    known
        Whether there is any evidence of the file's values.
    """

    first: _Ints
    last: _Ints
    known: Mask

    def and_(self, other: Spans) -> Spans:
        """Return, for each file, the intersection of its ranges in ``self`` and ``other``."""
        return Spans(np.maximum(self.first, other.first), np.minimum(self.last, other.last), self.known | other.known)

    def take(self, rows: npt.ArrayLike) -> Spans:
        """Return the spans of the files in these rows, in this order."""
        at = np.asarray(rows)
        return Spans(self.first[at], self.last[at], self.known[at])


@dataclass(frozen=True)
class StopPredicates:
    """The predicates of a column that place an edge of the filter's range at each stop.

    At the stop 5 of column ``id``, the lower edge is ``id >= 5``, and the upper edge is ``id <= 5``.
    """

    lower: tuple[Predicate, ...]
    upper: tuple[Predicate, ...]

    @classmethod
    def of(cls, stops: Stops, field_id: int, name: str, kind: Type) -> StopPredicates:
        """Build the predicate of a lower edge and that of an upper edge at each stop, for this column."""
        pairs = [
            tuple(Predicate(field_id, op, (v,), name, kind) for op, v in zip(ops, stops.values, strict=True))
            for ops in (stops.lower_ops, stops.upper_ops)
        ]
        return cls(*pairs)

    def spans(self, rows: int, sources: MetricsSources) -> Spans:
        """Return the range, as stops, of each file or manifest that ``sources`` describes.

        Parameters
        ----------
        rows
            Number of files or manifests.
        sources
            Their metrics: partition values, and bounds and counts of the column. The result is the intersection of the
            ranges that follow from each of them.
        """
        count = len(self.lower)
        out = Spans(np.zeros(rows, np.int64), np.full(rows, count), np.zeros(rows, np.bool_))
        if not count or not rows:
            return out
        # `sources` returns the metrics that may decide a predicate. It leaves out a partition field to which the
        # predicate cannot be projected, which may happen at the first or last stop. The longest of three lists is
        # complete.
        found = max((sources(p) for p in (self.lower[count // 2], self.lower[0], self.upper[-1])), key=len)
        for source in found:
            if all(_projected(source, p) is None for p in (*self.lower, *self.upper)):
                continue  # no range can be projected to this field, for example because it stores buckets
            last = _allowed(source, self.lower)
            # Upper edges select less and less from the last stop to the first: count them in this order.
            first = count - _allowed(source, self.upper[::-1])
            evidence = source.evidence
            bounded = np.asarray(evidence.lower.is_valid()) | np.asarray(evidence.upper.is_valid()) | evidence.nothing
            if source.where is not None:
                last, first = np.where(source.where, last, count), np.where(source.where, first, 0)
                bounded = bounded & source.where
            out = out.and_(Spans(first, last, bounded))
        return out

    def unusable(self, sources: Sequence[MetricsSource]) -> set[int]:
        """Return the indices of stops to drop, because a partition field decides other stops but not these.

        A partition field cannot decide a stop if the predicate of the stop has no projection to it. The field then
        excludes no file, so that a file could be read with the edge at this stop, but not at the stops before and after
        it.
        """
        out: set[int] = set()
        for source in sources:
            for side in (self.lower, self.upper):
                given = [i for i, p in enumerate(side) if _projected(source, p) is None]
                out.update(given if len(given) < len(side) else [])
        return out


def _projected(source: MetricsSource, p: Predicate) -> Predicate | None:
    """Return the predicate to evaluate on the metrics of ``source`` for a predicate on the column.

    For metrics of the column, this is the predicate itself; for partition values, its inclusive projection, or None if
    there is no projection.
    """
    if source.by == "statistics" and parse_transform(source.transform).is_identity:
        return p
    return None if p.type is None else project(p, source.transform, p.type, strict=False)


def _allowed(source: MetricsSource, side: Sequence[Predicate]) -> _Ints:
    """Return, for each file or manifest in ``source``, how many predicates of ``side`` do not exclude it.

    The predicates must be in order from the widest to the narrowest, so that a file that one predicate excludes is also
    excluded by all later ones. The number is therefore found by bisection, for all files at once. If the bounds cannot
    be compared with the literals directly, every predicate is evaluated instead.
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
    # A file without any value that can be compared is in no range. Where the metrics are exact, as partition values
    # are, a null bound means that the value itself is null.
    none = evidence.nothing | (np.asarray(bound.is_null()) if evidence.exact else np.zeros(rows, np.bool_))
    return np.where(none, 0, start)


def _plain(
    asked: Sequence[Predicate | None], lower: AnyArray, upper: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray] | None:
    """Return lower bounds, upper bounds and the predicates' literals as arrays that Arrow can compare.

    The literals have one element per element of ``asked``, null where that is None. The result is None if the bounds
    cannot be compared with the predicates' type, or if a literal cannot be converted to the type of the bounds.
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
