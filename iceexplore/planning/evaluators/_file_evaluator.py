"""Evaluate predicates on data files by their partition tuples and column metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.expressions import Applied, Computed, Expression, FieldValue, Predicate, ValueExpression
from iceexplore.manifests import EntryBatch, whole
from iceexplore.metadata import PartitionSpec, PrimitiveType, TableMetadata, Type, arrow_type, parse_transform
from iceexplore.planning.evaluators._column_metrics import ColumnMetrics, Mask, comparable, known
from iceexplore.planning.evaluators._metrics_evaluator import all_masks, any_mask, may_match, must_match, walk
from iceexplore.planning.evaluators._partition_values import PartitionColumn, partition_columns
from iceexplore.planning.evaluators._projection import project

__all__ = [
    "FileMetricsSources",
    "MetricsSource",
    "MetricsSources",
    "always_required",
    "evaluate_inclusive",
    "evaluate_strict",
    "is_partition_value",
    "ordered_argument",
    "partition_questions",
    "statistics_source",
    "top_level_ids",
    "transformed",
    "trusted_rows",
    "value_source",
]

_INT, _LONG = PrimitiveType("int"), PrimitiveType("long")


@dataclass(frozen=True)
class MetricsSource:
    """Metrics of files or manifests that may prove a predicate true or false for all their rows.

    These are partition values, partition summaries, or metrics of a column or expression. Below, P is the predicate.

    Attributes
    ----------
    inclusive, strict
        The predicates that are evaluated on the metrics. If the metrics describe the values that P compares, both are P
        itself. If they describe a transform of these values, as for a partition field, they are the inclusive and the
        strict projection of P: if no transformed value satisfies `inclusive`, no row satisfies P; if all of them
        satisfy `strict`, every row satisfies P. None if there is no such projection, or if it is not used: `strict` is
        not used for manifests.
    evidence
        The metrics, one row per file or manifest.
    where
        Mask of the rows of `evidence` that may be used; None for all. For a partition field, these are the files or
        manifests that have its partition spec, and whose values can be trusted.
    by
        ``partition`` for partition values and summaries, ``statistics`` for metrics of columns and expressions.
    name
        Name of the column or partition field.
    transform, type
        The transform that computes the values (``identity`` for a column) and the type of the values, for display.
    """

    inclusive: Predicate | None
    strict: Predicate | None
    evidence: ColumnMetrics
    where: Mask | None
    by: str
    name: str
    transform: str
    type: Type | None

    def may(self) -> Mask:
        """Return a mask of the files or manifests: False where the metrics prove that no row satisfies the predicate.

        This is the predicate in the filter, such as ``ts >= timestamp '2024-05-17 10:00:00'``, not its projection to a
        partition field, such as ``ts_day >= date '2024-05-17'``.
        """
        if self.inclusive is None:
            return np.ones(len(self.evidence), np.bool_)
        found = may_match(self.inclusive, self.evidence)
        return found if self.where is None else found | ~self.where

    def must(self) -> Mask:
        """Return a mask of the files or manifests: True where the metrics prove that every row satisfies the predicate.

        This is the predicate in the filter, not its projection to a partition field (see `may` for an example).
        """
        if self.strict is None:
            return np.zeros(len(self.evidence), np.bool_)
        found = must_match(self.strict, self.evidence)
        return found if self.where is None else found & self.where


#: A function that is called with a comparison in a filter, such as ``id > 5``. It returns metrics of files or
#: manifests. These metrics may prove that the comparison is true, or that it is false, for all rows of a file or
#: manifest.
MetricsSources: TypeAlias = Callable[[Predicate | Computed], Sequence[MetricsSource]]


def evaluate_inclusive(expression: Expression, rows: int, sources: MetricsSources) -> Mask:
    """Return a mask with one value per file or manifest: False if certainly none of its rows matches the expression.

    Parameters
    ----------
    rows
        The number of files or manifests.
    sources
        A function that returns the metrics for a comparison in the expression, such as a `FileMetricsSources`.
    """

    def leaf(p: Predicate | Computed) -> Mask:
        return all_masks((w.may() for w in sources(p)), rows)

    return walk(expression, rows, leaf)


def evaluate_strict(expression: Expression, rows: int, sources: MetricsSources) -> Mask:
    """Return a mask, one value per file or manifest: True if its metrics prove that all its rows match the expression.

    Parameters
    ----------
    rows
        The number of files or manifests.
    sources
        A function that returns the metrics for a comparison in the expression, such as a `FileMetricsSources`.
    """

    def leaf(p: Predicate | Computed) -> Mask:
        return any_mask((w.must() for w in sources(p)), rows)

    return walk(expression, rows, leaf)


def partition_questions(
    p: Predicate, spec: PartitionSpec, metadata: TableMetadata
) -> Iterator[tuple[PartitionColumn, Predicate | None, Predicate | None]]:
    """Project a predicate on a column onto the fields of a partition spec.

    For each field whose source is the predicate's column, yield a tuple of the field, the inclusive projection and the
    strict projection. A projection is a predicate on the partition value. If the value does not satisfy the inclusive
    projection, no row of the partition satisfies ``p``. If it satisfies the strict projection, every row does. A
    projection that does not exist is None. A field for which neither of the two exists is left out.
    """
    for column in partition_columns(metadata, spec):
        if column.source is None or column.source.field_id != p.field_id:
            continue
        source = p.type or column.source.type
        transform = column.field.transform
        may, must = (project(p, transform, source, strict=strict) for strict in (False, True))
        if may is not None or must is not None:
            yield column, may, must


def is_partition_value(value: ValueExpression, column: PartitionColumn) -> bool:
    """Return whether a partition field stores the value of an expression.

    For the expression ``day(ts)``, the result is True if the source of the field is ``ts`` and its transform is
    ``day``.
    """
    match value:
        case Applied(function, (FieldValue(field_id),)):
            same = str(parse_transform(column.field.transform)) == function
            return same and column.field.source_ids == (field_id,) and column.source is not None
    return False


def value_source(
    p: Computed, evidence: ColumnMetrics, where: Mask | None, column: PartitionColumn, metadata: TableMetadata
) -> MetricsSource:
    """Return a `MetricsSource` for a predicate that compares exactly what a partition field stores.

    For example, the predicate is ``day(ts) = date '2024-05-17'``, and the field stores ``day(ts)``. So it is evaluated
    on the partition values themselves, without a projection. Values that may be wrong are not used: see `trusted_rows`.

    Parameters
    ----------
    evidence
        The metrics of the partition field, one row per file or manifest.
    where
        Mask of the rows of ``evidence`` that may be used; None for all.
    column
        The partition field.
    """
    field = column.field
    where = trusted_rows(evidence, where, field.transform, field.source_id, metadata)
    return MetricsSource(
        p.predicate, p.predicate, evidence, where, "partition", field.name, field.transform, column.type
    )


def statistics_source(p: Computed, evidence: ColumnMetrics) -> MetricsSource:
    """Return a `MetricsSource` with the metrics of an expression, such as ``day(ts)``.

    Parameters
    ----------
    p
        A comparison of the expression's value, such as ``day(ts) > date '2024-05-17'``.
    evidence
        The metrics of the expression's values, one row per file or manifest.
    """
    q = p.predicate
    transform = p.value.function if isinstance(p.value, Applied) else "identity"
    return MetricsSource(q, q, evidence, None, "statistics", q.name, transform, q.type)


def ordered_argument(value: ValueExpression) -> Predicate | None:
    """Return a predicate on a column if ``value`` is an order-preserving transform of this column, otherwise None.

    For ``day(ts)`` the predicate is ``ts is not null``. It is never evaluated: callers use it only to look up the
    metrics of the column ``ts``. `transformed` can then convert these to metrics of ``day(ts)``.
    """
    match value:
        case Applied(function, (FieldValue(field_id, name, kind),)) if parse_transform(function).preserves_order:
            return Predicate(field_id, "not-null", (), name, kind)
    return None


def transformed(p: Computed, evidence: ColumnMetrics) -> ColumnMetrics | None:
    """Convert the metrics of a column to metrics of a transform of this column, such as ``day(ts)``.

    The transform must preserve order, so that the transformed bounds are bounds of the transformed values. Both bounds
    become null where ``truncate`` may have overflowed, as it does for the lowest integers. Null counts remain the same,
    as the transform is null exactly where the column is null.

    Parameters
    ----------
    p
        A comparison of the transform's result, such as ``day(ts) > date '2024-05-17'``.
    evidence
        The metrics of the column.

    Returns
    -------
    ColumnMetrics or None
        None if the bounds cannot be transformed.
    """
    assert isinstance(p.value, Applied)
    kind, transform = p.value.arguments[0].type, parse_transform(p.value.function)
    bounds = []
    for side in (evidence.lower, evidence.upper):
        try:
            values = side if side.type == arrow_type(kind) else side.cast(arrow_type(kind))
            bounds.append(transform.apply(kind, values))
        except (OptionError, pa.ArrowException, OverflowError, ValueError):
            return None  # a bound cannot be converted to the column's type, or its transformed value is out of range
    lower, upper = bounds
    if transform.may_overflow and pa.types.is_integer(lower.type):
        # ``truncate`` rounds down. So if the transformed lower bound is above the lower bound itself, the result has
        # overflowed: as in Java, truncating the lowest integers wraps around to very high ones. Then some values of the
        # file may have results outside the transformed bounds, so set both to null. Do the same if the lower bound is
        # unknown, because the file may then have such low values.
        kept = pa.array(known(pc.less_equal(lower, evidence.lower.cast(lower.type))))
        nothing = build.scalar(None, lower.type)
        lower, upper = pc.if_else(kept, lower, nothing), pc.if_else(kept, upper, nothing)
    return replace(evidence, lower=lower, upper=upper, exact=False)


def trusted_rows(
    evidence: ColumnMetrics, where: Mask | None, transform: str, field_id: int, metadata: TableMetadata
) -> Mask | None:
    """Return a mask that is False for files or manifests whose metrics may be wrong because a transform overflowed.

    The result is None if it would be True everywhere. The metrics are partition values or bounds of them. In Java,
    ``truncate`` of the lowest integers overflows: with width 10, -2147483648 becomes 2147483646. So the rows of a file
    with the partition value 2147483646 may be very low integers, although the value is high: the mask is False for this
    file. It is also False for a manifest if 2147483646 is within its bounds of the partition value. If the column was
    promoted from int to long, the overflowed results of both types are considered.

    Parameters
    ----------
    evidence
        The metrics of the transform's results, one row per file or manifest.
    where
        Mask of the files or manifests to consider, None for all. The returned mask is False for those that ``where``
        leaves out.
    transform, field_id
        The transform, and the field id of the column to which it is applied.
    """
    parsed = parse_transform(transform)
    if not parsed.may_overflow:
        return where
    types = {f.type for s in metadata.schemas if (f := s.find(field_id)) is not None}
    if _schemas_removed(metadata):
        # If the column is a long now, it may have been an int in a schema that has been removed from the metadata.
        # Files whose partition values were computed from ints may still be live. So also consider the wrong result that
        # the transform gives for the lowest ints, where it overflows.
        types |= {_INT for t in types if t == _LONG}
    for number in {parsed.wrapped_result(t) for t in types} - {None}:
        if not pa.types.is_integer(evidence.lower.type):
            continue
        low, high = (side.cast(pa.int64()) for side in (evidence.lower, evidence.upper))
        doubted = known(pc.less_equal(low, number)) & known(pc.greater_equal(high, number))
        if doubted.any():
            where = ~doubted if where is None else where & ~doubted
    return where


def top_level_ids(metadata: TableMetadata) -> frozenset[int]:
    """Return the field ids of the top-level columns of all the table's schemas."""
    return frozenset(f.field_id for s in metadata.schemas for f in s.fields)


def always_required(metadata: TableMetadata, field_id: int) -> bool:
    """Return whether the table's schemas guarantee that a column is never null.

    The column must be at the top level, and required in every schema that contains it. If another schema does not
    contain the column, files may have been written without it. In these files the column reads as its initial default,
    or as null if it has none. So the column must then have an initial default in every schema that contains it.

    The result is False if the schema ids are not 0, 1, 2, and so on without a gap. Then a schema was removed from the
    metadata, and the column may have been optional in it.
    """
    found = [f for s in metadata.schemas for f in s.fields if f.field_id == field_id]
    if not found or _schemas_removed(metadata) or not all(f.required for f in found):
        return False
    return len(found) == len(metadata.schemas) or all(f.initial_default is not None for f in found)


def _schemas_removed(metadata: TableMetadata) -> bool:
    """Return whether the schema ids show that a schema was removed from the metadata.

    They do if they are not 0, 1, 2, and so on without a gap.
    """
    ids = {s.schema_id for s in metadata.schemas}
    return ids != set(range(len(ids)))


class FileMetricsSources:
    """Partition values and column metrics of a batch of files, for evaluating predicates.

    Call this object with a predicate: it returns the metrics that may prove the predicate true or false for all rows of
    a file.

    Parameters
    ----------
    batch
        Data files with their partition tuples, and with the metrics of the columns that predicates will use.
    statistics
        Whether to use column metrics in addition to partition tuples.
    """

    def __init__(self, batch: EntryBatch, metadata: TableMetadata, *, statistics: bool = True) -> None:
        self._batch = batch
        self._metadata = metadata
        self._statistics = statistics
        self._evidence: dict[int, ColumnMetrics] = {}
        self._values: dict[str, ColumnMetrics] = {}
        self.records = _one(batch.entries["record_count"])
        numbers = _one(batch.entries["partition_spec_id"])
        self._specs: list[tuple[PartitionSpec, Mask | None]] = []
        for number in pc.unique(numbers).to_pylist():
            spec = None if number is None else metadata.spec(number)
            if spec is not None and batch.partition is not None:
                mine = np.asarray(pc.fill_null(pc.equal(numbers, number), False))
                self._specs.append((spec, None if mine.all() else mine))

    def __call__(self, p: Predicate | Computed) -> list[MetricsSource]:
        """Return the metrics that may prove ``p`` true or false: first partition values, then column metrics."""
        if isinstance(p, Computed):
            return self._tuples_of_value(p) + self._statistics_of_value(p)
        return self.tuples(p) + self.statistics(p)

    def _tuples_of_value(self, p: Computed) -> list[MetricsSource]:
        """Return the partition values that may prove a comparison of a computed value true or false.

        For ``day(ts) > date '2024-05-17'``, these are the values of each partition field with the source ``ts`` and the
        transform ``day``. If several partition specs have such a field, the result has one `MetricsSource` per spec.
        """
        out = []
        for spec, mine in self._specs:
            for column in partition_columns(self._metadata, spec):
                found = self._value(column.key) if is_partition_value(p.value, column) else None
                if found is not None:
                    out.append(value_source(p, found, mine, column, self._metadata))
        return out

    def _statistics_of_value(self, p: Computed) -> list[MetricsSource]:
        """Return the column metrics that may prove a comparison of a computed value true or false.

        For ``day(ts) > date '2024-05-17'``, there are two kinds. Files may have metrics of ``day(ts)`` itself, if it is
        one of the table's ``expressions`` (V4 proposal). And the metrics of the column ``ts`` are converted to metrics
        of ``day(ts)``.
        """
        out = []
        for number in p.ids if self._statistics else ():
            stats = self._batch.stats.get(number)
            if stats is not None:
                if number not in self._evidence:
                    self._evidence[number] = ColumnMetrics.of_stats(stats, self.records)
                out.append(statistics_source(p, self._evidence[number]))
        ordered = ordered_argument(p.value)
        for source in [] if ordered is None else self.statistics(ordered):
            found = transformed(p, source.evidence)
            out += [] if found is None else [statistics_source(p, found)]
        return out

    def tuples(self, p: Predicate) -> list[MetricsSource]:
        """Return the partition values that may prove a predicate on a column true or false.

        The predicate ``ts > timestamp '2024-05-17 10:00:00'``, for example, can be projected to a partition field with
        the source ``ts`` and the transform ``day``. The result contains the values of each partition field to which the
        predicate can be projected, as one `MetricsSource` per field. If the files have several partition specs, the
        fields of each spec are separate.
        """
        out = []
        for spec, mine in self._specs:
            for column, may, must in partition_questions(p, spec, self._metadata):
                found = self._value(column.key)
                if found is not None:
                    field = column.field
                    where = self._trusted_rows(found, p.field_id, mine, field.transform)
                    where = trusted_rows(found, where, field.transform, p.field_id, self._metadata)
                    out.append(
                        MetricsSource(may, must, found, where, "partition", field.name, field.transform, column.type)
                    )
        return out

    def statistics(self, p: Predicate) -> list[MetricsSource]:
        """Return the bounds and counts of the predicate's column, as a list with one `MetricsSource`.

        Return an empty list if the batch has no metrics of this column, or if this object uses only partition tuples
        (``statistics=False``).
        """
        stats = self._batch.stats.get(p.field_id) if self._statistics else None
        if stats is None:
            return []
        if p.field_id not in self._evidence:
            nested = p.field_id not in top_level_ids(self._metadata)
            required = not nested and always_required(self._metadata, p.field_id)
            self._evidence[p.field_id] = ColumnMetrics.of_stats(stats, self.records, nested=nested, required=required)
        return [MetricsSource(p, p, self._evidence[p.field_id], None, "statistics", p.name, "identity", p.type)]

    def value(self, key: str) -> AnyArray | None:
        """Return the values of a partition field, one per file; None if the partition tuples do not have this field.

        ``key`` is the field id of the partition field as text, such as ``"1000"``.
        """
        partition = self._batch.partition
        at = -1 if partition is None else partition.type.get_field_index(key)
        return None if partition is None or at < 0 else pc.struct_field(partition, [at])

    def _value(self, key: str) -> ColumnMetrics | None:
        """Return the values of a partition field, as metrics with one row per file.

        ``key`` is the field id of the partition field as text, such as ``"1000"``. Return None if the partition tuples
        do not have this field, or if its Arrow type is ``null``, which has no values to compare.
        """
        if key not in self._values:
            values = self.value(key)
            if values is None or pa.types.is_null(values.type):
                return None
            self._values[key] = ColumnMetrics.of_values(values)
        return self._values[key]

    def _trusted_rows(self, found: ColumnMetrics, field_id: int, mine: Mask | None, transform: str) -> Mask | None:
        """Return a mask of the files whose value of a partition field can be trusted; None for all files.

        Two kinds of values are not trusted:

        - Null, if the partition field's source column has a bound in the file. A bound shows that the column has values
          other than null. So a null in the partition tuple means that the partition value is missing or damaged.
        - A value of an identity field, if it equals the source column's lower bound in the file, and the upper bound is
          higher. This can happen if a V4 manifest stores no partition values: the lower bound is then read as the
          partition value. But writers may shorten the bounds of a long text, and a shortened bound differs from the
          partition value.

        Parameters
        ----------
        found
            The values of the partition field, one row per file.
        field_id
            The field id of the source column.
        mine
            Mask of the files to consider, None for all. The returned mask is False for all other files.
        transform
            The transform of the partition field.
        """
        stats = self._batch.stats.get(field_id)
        if stats is None:
            return mine
        lower, upper = (pc.struct_field(stats, [stats.type.get_field_index(n)]) for n in ("lower", "upper"))
        doubted: Mask = found.all_null & (np.asarray(lower.is_valid()) | np.asarray(upper.is_valid()))
        comparable_types = lower.type == found.lower.type and not pa.types.is_nested(lower.type)
        if comparable_types and parse_transform(transform).is_identity:
            low, high, value = (comparable(side) for side in (lower, upper, found.lower))
            doubted |= known(pc.equal(value, low)) & known(pc.less(low, high))
        if not doubted.any():
            return mine
        return ~doubted if mine is None else mine & ~doubted


def _one(column: AnyColumn) -> AnyArray:
    return whole(column) if isinstance(column, pa.ChunkedArray) else column
