"""Evaluate a filter on row groups by bounds, null counts and Bloom filters, with a reason for each pruned row group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyScalar, PlainValue, build
from iceexplore.errors import IceexploreError
from iceexplore.expressions import Always, And, Computed, Expression, Or, Predicate
from iceexplore.formats import ChunkBounds, ParquetLeaf, RowGroups
from iceexplore.graph import TableState
from iceexplore.metadata import NestedField, arrow_type, format_value
from iceexplore.planning.evaluators._column_metrics import ColumnMetrics
from iceexplore.planning.evaluators._metrics_evaluator import may_match
from iceexplore.planning.row_groups._bloom_filter import read_bloom_filter
from iceexplore.planning.row_groups._stored_values import BoundReader, bound_array, bound_reader, hash_inputs

__all__ = ["Column", "Judged", "Reason", "judge_groups", "lacking_column", "stored_column"]

_Mask: TypeAlias = np.ndarray[Any, Any]
#: If an ``in`` list has more literals than this, Bloom filters are not used, because each literal would have to be
#: hashed and looked up once for each row group.
_MAX_LOOKUPS = 1_000


@dataclass(frozen=True)
class Column:
    """A column that the filter uses, with its metrics in one data file.

    Attributes
    ----------
    field
        The column in the table's schema.
    evidence
        The metrics of the column, one row per row group. Bounds have the column's Iceberg type.
    leaf
        The leaf of the Parquet schema that stores the column; None if the file lacks the column.
    chunks
        The bounds and counts as they are stored in the footer, one element per row group; empty if the file lacks the
        column.
    """

    field: NestedField
    evidence: ColumnMetrics
    leaf: ParquetLeaf | None = None
    chunks: tuple[ChunkBounds, ...] = ()


@dataclass(frozen=True)
class Reason:
    """The reason why a row group has no matching row.

    Attributes
    ----------
    term
        The term of the filter that no row matches, such as ``price > 5``. For an ``or``, one such term of each
        branch, joined by "or". Empty if the row group has no rows.
    by
        What shows that no row matches: "row-group bounds" (including null counts), "bloom filter", "row-count" (the row
        group has no rows) or "filter" (the filter is always false). For an ``or``, all that apply, with commas.
    column
        The name of the column in the term; None if there is no such column, or if the terms of an ``or`` have
        different ones.
    lower, upper, null_count
        The bounds of this column in the row group, as text, and its number of nulls; None if unknown.
    why
        An explanation, such as "price is 1 to 4 in the row group".
    """

    term: str
    by: str
    column: str | None
    lower: str | None
    upper: str | None
    null_count: int | None
    why: str


@dataclass(frozen=True)
class Judged:
    """The result of evaluating a filter on the row groups of a data file.

    Attributes
    ----------
    may
        One boolean per row group: True if the row group may have a row that matches the filter.
    reasons
        One element per row group: the reason why no row matches, or None if a row may match.
    """

    may: _Mask
    reasons: list[Reason | None]


def stored_column(groups: RowGroups, at: int, field: NestedField) -> Column:
    """Return a column that a Parquet file stores, with its metrics in each row group.

    A bound is null if its stored value cannot be converted to the type of the column.

    Parameters
    ----------
    groups
        The row groups and leaf columns of the file, from its footer.
    at
        The index, in ``groups.leaves``, of the leaf that stores the column.
    field
        The column in the table's schema.
    """
    leaf = groups.leaves[at]
    chunks = tuple(g.chunks[at] for g in groups.groups)
    read = bound_reader(leaf, field.type)
    lower, upper = ([_read(read, raw, up) for raw in values] for up, values in (
        (False, [c.lower for c in chunks]), (True, [c.upper for c in chunks])
    ))  # fmt: skip
    evidence = ColumnMetrics.of_counts(
        bound_array(lower, field.type),
        bound_array(upper, field.type),
        pa.array([c.values for c in chunks], pa.int64()),
        pa.array([c.nulls for c in chunks], pa.int64()),
        pa.nulls(len(chunks), pa.int64()),
    )
    return Column(field, evidence, leaf, chunks)


def _read(read: BoundReader | None, raw: PlainValue, up: bool) -> PlainValue:
    return None if read is None or raw is None else read(raw, up)


def lacking_column(groups: RowGroups, path: Sequence[NestedField], constants: Mapping[int, AnyScalar]) -> Column | None:
    """Return the metrics of a column that the file lacks; None if its values are unknown.

    As the file does not store the column, readers use one value for all rows: the partition value of the column in
    ``constants``. If there is no such value, they use the column's initial default or, without a default, null.

    The values are unknown in two cases:

    - The partition value is null, but the column or a struct that contains it has an initial default. In this case,
      this package and Java read null, whereas other readers read the default.
    - There is no partition value, the column is inside a struct, and the column or a struct that contains it has an
      initial default. The default does not apply to rows in which the struct is null, and it is unknown which rows
      these are.

    Parameters
    ----------
    groups
        The row groups of the file, from its footer.
    path
        The fields from the top level to the column: the result of `struct_path`.
    constants
        The file's partition values of fields with the identity transform, by the field id of the source column.
    """
    field = path[-1]
    rows = pa.array([g.rows for g in groups.groups], pa.int64())
    n = len(rows)
    unknown = pa.nulls(n, pa.int64())
    constant = constants.get(field.field_id)
    if constant is not None and constant.is_valid:
        values = build.repeat(constant, n)
        return Column(field, ColumnMetrics.of_counts(values, values, rows, pa.array([0] * n, pa.int64()), unknown))
    if len(path) == 1 and constant is None and field.initial_default is not None:
        values = build.repeat(pa.scalar(field.initial_default, arrow_type(field.type)), n)
        return Column(field, ColumnMetrics.of_counts(values, values, rows, pa.array([0] * n, pa.int64()), unknown))
    if any(f.initial_default is not None for f in path):
        return None
    nothing = build.nulls(n, arrow_type(field.type))
    return Column(field, ColumnMetrics.of_counts(nothing, nothing, rows, rows, unknown))


def judge_groups(
    expression: Expression,
    groups: RowGroups,
    columns: Mapping[int, Column | None],
    bloom: tuple[TableState, str] | None = None,
) -> Judged:
    """Evaluate a filter on every row group of a data file.

    Parameters
    ----------
    expression
        The filter.
    groups
        The row groups of the file, from its footer.
    columns
        For each field id of the filter's columns, the metrics of the column, or None if its values are unknown.
    bloom
        A pair of the table state and the location of the data file, to use the Bloom filters in this file; None to use
        no Bloom filters.

    Returns
    -------
    Judged
        For each row group, whether it may have a matching row and, if not, the reason.
    """
    n = len(groups.groups)
    found = _walk(expression, n, columns, bloom)
    for i, group in enumerate(groups.groups):
        if group.rows == 0:
            found.may[i], found.reasons[i] = (
                False,
                Reason("", "row-count", None, None, None, None, "the row group has no rows"),
            )
    return found


def _walk(
    expression: Expression, n: int, columns: Mapping[int, Column | None], bloom: tuple[TableState, str] | None
) -> Judged:
    match expression:
        case Always(value):
            never = Reason("false", "filter", None, None, None, None, "the filter matches no row")
            return Judged(np.full(n, value), [None if value else never] * n)
        case And(children):
            out = Judged(np.full(n, True), [None] * n)
            for child in children:
                found = _walk(child, n, columns, bloom)
                reasons = [a if a is not None else b for a, b in zip(out.reasons, found.reasons, strict=True)]
                out = Judged(out.may & found.may, reasons)
            return out
        case Or(children):
            parts = [_walk(child, n, columns, bloom) for child in children]
            may = np.logical_or.reduce([p.may for p in parts])
            return Judged(may, [None if m else _all_of([p.reasons[i] for p in parts]) for i, m in enumerate(may)])
        case Computed():
            return Judged(np.full(n, True), [None] * n)
    return _predicate(expression, n, columns.get(expression.field_id), bloom)


def _all_of(reasons: Sequence[Reason | None]) -> Reason | None:
    """Return why no row of a row group matches an ``or``, by joining the reasons for its branches.

    This is called only if no branch matches a row. The texts ``term``, ``by`` and ``why`` of the reasons are joined. If
    all reasons have the same ``column``, the result has the column, bounds and null count of the first reason. If the
    columns differ, the result has None for these attributes.

    Parameters
    ----------
    reasons
        For each branch of the ``or``, the reason why no row matches the branch. In `Judged.reasons`, an item is None if
        a row may match, so there should be no None here; if there is one, it is left out.

    Returns
    -------
    Reason or None
        None if all items are None.
    """
    given = [r for r in reasons if r is not None]
    if not given:
        return None
    first = given[0]
    same = {r.column for r in given} == {first.column}
    joined = replace(
        first,
        term=" or ".join(r.term for r in given),
        by=", ".join(dict.fromkeys(r.by for r in given)),
        why="; ".join(dict.fromkeys(r.why for r in given)),
    )
    return joined if same else replace(joined, column=None, lower=None, upper=None, null_count=None)


def _predicate(p: Predicate, n: int, column: Column | None, bloom: tuple[TableState, str] | None) -> Judged:
    if column is None or pa.types.is_null(column.evidence.lower.type):
        return Judged(np.full(n, True), [None] * n)
    may = may_match(p, column.evidence)
    reasons: list[Reason | None] = [None if m else _bounds_reason(p, column, i) for i, m in enumerate(may)]
    if bloom is not None and p.op in ("=", "in"):
        for i in np.flatnonzero(may).tolist():
            if not _perhaps(p, column, i, bloom):
                may[i], reasons[i] = False, _reason(p, column, i, "bloom filter", _not_hashed(p, column))
    return Judged(may, reasons)


def _perhaps(p: Predicate, column: Column, i: int, bloom: tuple[TableState, str]) -> bool:
    """Return whether row group ``i`` may contain one of the literals of an ``=`` or ``in`` predicate.

    The column's Bloom filter in this row group decides. The result is also True if this filter cannot be used: if it is
    missing or unreadable, if there are more than `_MAX_LOOKUPS` literals, or if the bytes that Parquet would hash for a
    literal are unknown.

    Parameters
    ----------
    bloom
        The table state, and the location of the data file that contains the Bloom filter.
    """
    if column.leaf is None or column.chunks[i].bloom_offset is None or len(p.literals) > _MAX_LOOKUPS:
        return True
    inputs: list[bytes] = []
    for literal in p.literals:
        encoded = hash_inputs(column.leaf, column.field.type, literal)
        if encoded is None:
            return True
        inputs += encoded
    state, location = bloom
    try:
        offset, length = column.chunks[i].bloom_offset, column.chunks[i].bloom_length
        found = read_bloom_filter(state.storage, location, int(offset or 0), length)
    except IceexploreError as error:
        state.problems.add_error(error, location)
        return True
    return any(found.may_contain(x) for x in inputs)


def _not_hashed(p: Predicate, column: Column) -> str:
    shown = ", ".join(format_value(column.field.type, x) for x in p.literals[:5])
    more = f" and {len(p.literals) - 5:,} more" if len(p.literals) > 5 else ""
    return f"the Bloom filter of {p.name or column.field.name} rules out {shown}{more}"


def _bounds_reason(p: Predicate, column: Column, i: int) -> Reason:
    name = p.name or column.field.name
    null = column.evidence.all_null[i]
    if column.leaf is None:
        value = "null" if null else f"{_shown(column, i)[0]}, its initial default,"
        text = f"{name} is {value} in every row, as the file has no such column"
    elif null:
        text = f"{name} is null in every row"
    elif p.op == "is-null":
        text = f"{name} has no nulls in the row group"
    else:
        low, high = _shown(column, i)
        text = f"{name} is {low if low is not None else '?'} to {high if high is not None else '?'} in the row group"
    return _reason(p, column, i, "row-group bounds", text)


def _reason(p: Predicate, column: Column, i: int, by: str, why: str) -> Reason:
    low, high = _shown(column, i)
    name = p.name or column.field.name
    return Reason(p.text or f"{name} {p.op}", by, name, low, high, _null_count(column, i), why)


def _shown(column: Column, i: int) -> tuple[str | None, str | None]:
    bounds = (column.evidence.lower[i], column.evidence.upper[i])
    low, high = (None if not b.is_valid else format_value(column.field.type, b.as_py()) for b in bounds)
    return low, high


def _null_count(column: Column, i: int) -> int | None:
    counted = column.evidence.null_count
    return None if counted is None else counted[i].as_py()
