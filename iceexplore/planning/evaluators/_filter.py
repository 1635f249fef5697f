"""Filters on rows, evaluated on file metadata: a condition on columns, required partition values, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import Int32s, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, nearest
from iceexplore.expressions import (
    ALWAYS,
    NEVER,
    And,
    Applied,
    Computed,
    Expression,
    FieldValue,
    FilterLike,
    Or,
    Predicate,
    ValueExpression,
    all_of,
    any_of,
    bind_filter,
    columns_of,
    computed,
    expression_sql,
    expression_to_json,
    is_json,
    predicates,
)
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import Schema, TableMetadata, parse_transform
from iceexplore.planning.evaluators._column_metrics import Mask, comparable, known
from iceexplore.planning.evaluators._file_evaluator import FileMetricsSources, evaluate_inclusive, evaluate_strict
from iceexplore.planning.evaluators._metrics_evaluator import all_masks, any_mask, satisfied
from iceexplore.planning.evaluators._partition_values import PartitionColumn, partition_columns, tuples_of

__all__ = [
    "Filter",
    "make_filter",
    "residuals",
    "same_partition",
    "tuple_predicate",
]

#: `residuals` puts two files in the same group if every comparison in the filter has the same outcome for both. To do
#: so, it encodes each file's outcomes (never true, unknown or always true) as one int64, with one base-3 digit per
#: comparison. To avoid overflow, it replaces the distinct numbers by 0, 1, 2, and so on after every `_TERMS_AT_ONCE`
#: comparisons. Twenty more digits then fit: the new numbers are below 2**31 (the maximum number of files), and 3**20 is
#: below 2**32, so the result is below 2**63.
_TERMS_AT_ONCE = 20


def residuals(wanted: Filter, batch: EntryBatch, metadata: TableMetadata) -> tuple[Int32s, tuple[Expression, ...]]:
    """Return the residual of a filter for each data file: the condition that remains to be tested on the file's rows.

    As in Iceberg's residual evaluator, only the file's partition tuple is used, not its column metrics. A predicate in
    the filter becomes `ALWAYS` if the tuple proves it true of every row (strict projection), and `NEVER` if the tuple
    proves it false of every row (inclusive projection). The filter is then simplified. For example, if a table is
    partitioned by ``region``, the residual of ``region = 'eu' and id > 5`` is ``id > 5`` for a file of the partition
    ``eu``. A comparison of a computed value, such as ``day(ts) = date '2024-05-17'``, is replaced only for files whose
    partition spec has a field with exactly this transform of this column.

    Parameters
    ----------
    wanted
        The filter. Only `Filter.expression` is used, not `Filter.partition`.
    batch
        Data files with their partition tuples.

    Returns
    -------
    tuple
        An int32 array and the distinct residuals. The array has one item per file: the index of its residual. The first
        residual is always the whole filter, even if no file has it.
    """
    n = len(batch)
    terms: list[Predicate | Computed] = [*predicates(wanted.expression), *computed(wanted.expression)]
    sources = FileMetricsSources(batch, metadata, statistics=False)
    codes: npt.NDArray[np.int64] = np.zeros(n, np.int64)
    decided: dict[Predicate | Computed, npt.NDArray[np.int8]] = {}
    for p in dict.fromkeys(terms):
        found = sources(p)
        if not found:
            continue
        always = any_mask((w.must() for w in found), n)
        never = ~all_masks((w.may() for w in found), n)
        decided[p] = always.astype(np.int8) - (never & ~always)
        codes = codes * 3 + (decided[p] + 1)
        if len(decided) % _TERMS_AT_ONCE == 0:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    if not decided:
        return build.array(np.zeros(n, np.int32)), (wanted.expression,)
    _, first, kind = np.unique(codes, return_index=True, return_inverse=True)
    places: dict[Expression, int] = {wanted.expression: 0}
    number = np.zeros(len(first), np.int32)
    for i, row in enumerate(first.tolist()):
        left = _left(wanted.expression, {p: int(t[row]) for p, t in decided.items()})
        number[i] = places.setdefault(left, len(places))
    return pa.array(number[kind] if n else number, pa.int32()), tuple(places)


def _left(expression: Expression, decided: Mapping[Any, int]) -> Expression:
    """Return the residual of an expression for one file: replace predicates with a known outcome, and simplify.

    Parameters
    ----------
    decided
        The outcomes by predicate (`Predicate` or `Computed`): 1 if the predicate is true of every row in the file, -1
        if it is true of no row, 0 if neither is proven. A predicate with the outcome 1 is replaced by `ALWAYS`, one
        with -1 by `NEVER`. All others, including those that are not in ``decided``, are kept.
    """
    match expression:
        case And(children):
            return all_of(*(_left(c, decided) for c in children))
        case Or(children):
            return any_of(*(_left(c, decided) for c in children))
        case Predicate() | Computed():
            sign = decided.get(expression, 0)
            return ALWAYS if sign > 0 else NEVER if sign < 0 else expression
    return expression


@dataclass(frozen=True)
class Filter:
    """A filter on rows: a condition on columns, required partition values, or both.

    Attributes
    ----------
    text
        The filter as text, for display.
    expression
        The condition on columns; `ALWAYS`, which matches every row, if there is none.
    partition
        The required values, by partition field name. Partition fields without a value here may have any value.
    """

    text: str
    expression: Expression = ALWAYS
    partition: Mapping[str, Any] = field(default_factory=dict)

    @property
    def field_ids(self) -> list[int]:
        """Return the sorted field ids of the columns in the expression."""
        return sorted(columns_of(self.expression))

    @property
    def stats_ids(self) -> list[int]:
        """Return the sorted ids of the fields whose metrics are needed to evaluate the filter on files.

        These are the field ids of the columns in the expression. For a computed value, such as ``day(ts)``, they also
        include the ids of those items of the table's ``expressions`` (V4 proposal) that compute it.
        """
        return sorted({*columns_of(self.expression), *(i for c in computed(self.expression) for i in c.ids)})

    @property
    def names(self) -> list[str]:
        """Return the dotted names of the columns in the expression, from left to right, each once."""
        return list(dict.fromkeys(columns_of(self.expression).values()))

    def to_json(
        self, *, form: Literal["spec", "rest"] = "spec", references: Literal["name", "id"] = "name"
    ) -> dict[str, Any] | bool:
        """Return the filter as an Iceberg expression in JSON; for the parameters, see `expression_to_json`.

        Raises
        ------
        OptionError
            The filter was made with ``partition=``, which has no counterpart in Iceberg's expressions, or JSON cannot
            express the filter.
        """
        if self.partition:
            raise OptionError(
                f"a filter with partition={dict(self.partition)} cannot be written as an expression: filter by columns "
                "instead"
            )
        return expression_to_json(self.expression, form=form, references=references)

    def evaluate(self, batch: EntryBatch, metadata: TableMetadata) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        """Return two arrays with one value per file: whether some row may match, and whether all rows certainly match.

        Parameters
        ----------
        batch
            Data files with their partition tuples and with column metrics for the ids in `stats_ids`. Metrics that are
            missing prove nothing: without any, only the partition tuples are used.

        Notes
        -----
        If a file has a negative record count, only its partition tuple is used: old Iceberg versions wrote -1 for
        imported Avro files. Unlike in Java, a record count of 0 prunes nothing: writers hardly ever add a file without
        rows, and a wrong count would hide the rows of the file.
        """
        n = len(batch)
        sources = FileMetricsSources(batch, metadata)
        may = evaluate_inclusive(self.expression, n, sources)
        must = evaluate_strict(self.expression, n, sources)
        if self.partition:
            same, is_known = same_partition(self.partition, batch, metadata, sources)
            may, must = may & (same | ~is_known), must & same & is_known
        return pa.array(may), pa.array(may & must)


def same_partition(
    partition: Mapping[str, Any], batch: EntryBatch, metadata: TableMetadata, sources: FileMetricsSources
) -> tuple[Mask, Mask]:
    """Find the files of a batch that have the given partition values.

    Parameters
    ----------
    partition
        The given values, by partition field name. Some fields may be left out: if a table is partitioned by region and
        day, ``{"region": "eu"}`` matches the files of that region, of any day.
    sources
        The metrics of the files in ``batch``.

    Returns
    -------
    tuple
        Two masks with one value per file. The first is True if the file has the given values. The second is False if
        this cannot be determined: the file's partition spec lacks one of the given fields, or a partition value cannot
        be compared with the given one. Ignore the first mask for such a file.
    """
    n = len(batch)
    same, is_known = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    numbers = batch.entries["partition_spec_id"]
    for number in pc.unique(numbers).to_pylist():
        spec = None if number is None else metadata.spec(number)
        columns = {} if spec is None else {c.field.name: c for c in partition_columns(metadata, spec)}
        if not partition.keys() <= columns.keys():
            # This spec lacks a partition field for which `partition` gives a value. So it is unknown whether files of
            # this spec have the given values. Skip the spec: `is_known` remains False for its files.
            continue
        mine = known(pc.equal(numbers, number))
        for name, given in partition.items():
            values = sources.value(columns[name].key)
            hit = None if values is None else satisfied(tuple_predicate(columns[name], given), values)
            if hit is None:
                break
            same &= ~mine | hit
        else:
            is_known |= mine
    return same, is_known


def tuple_predicate(column: PartitionColumn, given: PlainValue) -> Predicate:
    """Return a predicate that is true if a partition field has the given value.

    If the value is None, the predicate tests for null; if it is NaN, the predicate tests for NaN. The field id in the
    predicate is 0, because the predicate is only evaluated on values of this partition field.

    Parameters
    ----------
    given
        The value, in a form that `tuples_of` accepts. For a field with the transform ``day``, this can be the text
        ``"2024-05-17"``.

    Raises
    ------
    OptionError
        The value does not fit the type of the field.
    """
    found = tuples_of([column], [{column.field.name: given}], "partition")
    wanted = comparable(pc.struct_field(found, [0]))[0].as_py()
    if wanted is None:
        return Predicate(0, "is-null")
    if isinstance(wanted, float) and wanted != wanted:
        return Predicate(0, "is-nan")
    return Predicate(0, "=", (wanted,))


def make_filter(
    metadata: TableMetadata,
    schema: Schema,
    where: FilterLike | Filter | None,
    partition: Mapping[str, Any] | None = None,
) -> Filter:
    """Parse a filter, and replace the column names in it by field ids of a schema.

    Parameters
    ----------
    schema
        The schema with the columns that ``where`` names.
    where
        The condition on columns, in one of these forms:

        - SQL text, such as ``id > 5 and day = date '2024-05-17'`` (see `parse_filter`)
        - the JSON of an expression, as text or parsed (see `expression_from_json`)
        - a PyIceberg expression
        - a `Filter` that was made for this schema, which is returned unchanged; ``partition`` must be None
        - None, which matches every row
    partition
        Values by partition field name, such as ``{"region": "eu"}``: rows in other partitions do not match. The fields
        may belong to any of the table's specs. None if the partition does not matter.

    Raises
    ------
    OptionError
        ``where`` is invalid (see `bind_filter`); or ``partition`` is empty, contains a name that is not a partition
        field, or contains a value that does not fit the type of its field.
    """
    if isinstance(where, Filter) and partition is None:
        return where
    if partition is not None:
        _check_partition(metadata, partition)
    expression = ALWAYS if where is None else _identified(bind_filter(schema, where), metadata)
    texts = [] if where is None else [expression_sql(expression, "sql") if is_json(where) else str(where)]
    if partition is not None:
        texts.append(f"partition {dict(partition)}")
    return Filter(" in ".join(texts) or "every row", expression, dict(partition or {}))


def _identified(expression: Expression, metadata: TableMetadata) -> Expression:
    """Return the expression with `Computed.ids` filled in for each comparison of a computed value, such as ``day(ts)``.

    In the V4 proposal, a table has a list of ``expressions``, each with an id, and there can be metrics for each id.
    For ``day(ts) > date '2024-05-17'``, the ids are those of the table's expressions that compute ``day(ts)``.
    """
    match expression:
        case And(children):
            return And(tuple(_identified(c, metadata) for c in children))
        case Or(children):
            return Or(tuple(_identified(c, metadata) for c in children))
        case Computed():
            return replace(expression, ids=_ids_of(expression.value, metadata))
    return expression


def _ids_of(value: ValueExpression, metadata: TableMetadata) -> tuple[int, ...]:
    """Return the ids of the table's ``expressions`` that compute ``value``, such as ``day(ts)``.

    ``expressions`` is a list in V4 table metadata. Each item, such as ``day(ts)``, has an id, and files can have
    metrics for this id. An id that is also the field id of a column is left out, because metrics with this id may
    describe the column. The result is empty if ``value`` is not a function of a single column.
    """
    match value:
        case Applied(function, (FieldValue(field_id),)):
            columns = metadata.all_fields()
            found = (e for e in metadata.expressions if e.source_ids == (field_id,) and e.expr_id not in columns)
            return tuple(e.expr_id for e in found if function in (e.transform, str(parse_transform(e.transform))))
    return ()


def _check_partition(metadata: TableMetadata, partition: Mapping[str, Any] | None) -> None:
    """Raise OptionError if ``partition`` cannot be used as the required partition values of a filter.

    It must be a dictionary that is not empty; None is refused, too. Each key must be the name of a partition field in
    one of the table's specs. If several specs have a field of this name, the value must fit the field in each of them.
    """
    names = list(dict.fromkeys(f.name for s in metadata.partition_specs for f in s.fields))
    if not isinstance(partition, Mapping) or not partition:
        raise OptionError(
            f"partition={partition!r} must be a non-empty dictionary whose keys are partition fields. Partition fields "
            f"of the table: {', '.join(names) or 'none'}"
        )
    for name, given in partition.items():
        if name not in names:
            raise OptionError(f"no partition field {name!r}; {nearest(str(name), names)}")
        for spec in metadata.partition_specs:
            for column in partition_columns(metadata, spec):
                if column.field.name == name:
                    tuple_predicate(column, given)
