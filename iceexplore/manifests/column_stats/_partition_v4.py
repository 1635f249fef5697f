"""Partition tuples of V4, which stores none: rebuilt from statistics of derived and identity-partitioned columns.

V4 proposal, "How do we remove partition tuple and represent them in columnar stats?": a file's partition value is the
lower bound of the derived column (layout (a): in the expression's own statistics; layout (b): as
``partition_<field id>_…`` in the source column's statistics) or, for identity, of the source column; without that
bound it is null. A tuple that the file stores (field 102, as in the draft) takes precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem, problem
from iceexplore.manifests.column_stats._content_stats import TypedStats
from iceexplore.manifests.column_stats._partition import conform, find_column, from_file, typed_partition
from iceexplore.manifests.model._arrow import HAS_TUPLE, bool_array, whole
from iceexplore.manifests.model._reader_schema import ReaderSchema
from iceexplore.manifests.model._table_context import TableTypes
from iceexplore.metadata import (
    Expression,
    PartitionField,
    PrimitiveType,
    Type,
    arrow_type,
    is_known_transform,
    parse_transform,
    result_type,
)

__all__ = ["expression_of", "rebuilt_partition"]


def rebuilt_partition(
    entries: pa.Table,
    stats: TypedStats | None,
    kept: pa.Table | None,
    reader_schema: ReaderSchema,
    meaning: TableTypes,
    location: str,
) -> tuple[pa.StructArray | None, list[Problem]]:
    """Return the tuples of the entries, with the fields of all specs of the rows, and problems.

    Parameters
    ----------
    stats
        The typed statistics of the same rows; None if the file has none.
    kept
        The part "partition" of the same rows; None if the file stores no tuples.

    Returns
    -------
    tuple
        A struct whose children are named by partition field id, null for manifests and for rows of unpartitioned specs,
        each child null where the row's spec has no such field; None if no row is partitioned. The second item has the
        problems.
    """
    specs = meaning.specs
    spec_ids = np.asarray(pc.fill_null(entries["partition_spec_id"], -1))
    is_file = np.asarray(pc.fill_null(pc.less(entries["content_type"], 3), False))
    present = sorted(set(spec_ids[is_file].tolist()) & specs.keys())
    if not present and kept is not None and kept.num_columns and not specs:
        # The file was opened without its table: keep the fields of the file.
        return typed_partition(kept, reader_schema, None, meaning.types, location)
    fields: dict[int, tuple[PartitionField, np.ndarray]] = {}
    partitioned = np.zeros(len(entries), dtype=np.bool_)
    for spec_id in present:
        if specs[spec_id].is_unpartitioned:
            continue
        rows = is_file & (spec_ids == spec_id)
        partitioned |= rows
        for field in specs[spec_id].fields:
            before = fields.get(field.field_id)
            # A field dropped in v1 keeps its id with a void transform and is null (spec, "Partition Evolution").
            if before is not None and parse_transform(field.transform).is_void:
                continue
            if before is not None and parse_transform(before[0].transform).is_void:
                fields[field.field_id] = (field, rows)
                continue
            fields[field.field_id] = (field, rows if before is None else before[1] | rows)
    if not fields:
        return None, []
    arrays, problems = [], []
    for field, rows in fields.values():
        made, trouble = _one(field, len(entries), stats, kept, reader_schema, meaning, location)
        if stats is not None and made.null_count < len(made):
            spread = _spread(field, made, stats, meaning) & rows
            if spread.any():
                trouble.append(_spread_problem(field, entries, spread, location))
        everywhere = bool(rows.all())
        arrays.append(made if everywhere else pc.if_else(pa.array(rows), made, pa.scalar(None, made.type)))
        problems += trouble
    mask = None if partitioned.all() else pa.array(~partitioned)
    return pa.StructArray.from_arrays(arrays, names=[str(i) for i in fields], mask=mask), problems


def _spread(field: PartitionField, made: AnyArray, stats: TypedStats, meaning: TableTypes) -> np.ndarray:
    """Return a mask of values taken from a lower bound that may be truncated, because the upper bound differs.

    Values from stored tuples are excluded, except where they happen to equal the lower bound.
    """
    out = np.zeros(len(made), dtype=np.bool_)
    places = _places(field, meaning)
    for field_id in dict.fromkeys(i for i, name in places if name == "upper"):
        if not (stats.has(field_id, "lower") and stats.has(field_id, "upper")):
            continue
        lower, upper = (_bytes(stats.values(field_id, n, stats.column_type(field_id))[0]) for n in ("lower", "upper"))
        if lower.type != upper.type or pa.types.is_nested(lower.type) or pa.types.is_null(lower.type):
            continue
        differ = pc.not_equal(lower, upper)
        if pa.types.is_floating(lower.type):
            differ = pc.and_(differ, pc.invert(pc.is_nan(lower)))
        taken = _bytes(made)
        if taken.type == lower.type:
            differ = pc.and_(differ, pc.equal(taken, lower))
        out |= bool_array(differ)
    return out


def _bytes(values: AnyArray) -> AnyArray:
    return values.cast(pa.binary()) if pa.types.is_fixed_size_binary(values.type) else values


def _spread_problem(field: PartitionField, entries: pa.Table, spread: np.ndarray, location: str) -> Problem:
    rows = np.flatnonzero(spread)
    what = "A file has" if len(rows) == 1 else f"{len(rows)} files have"
    text = (
        f"{what} two different bounds, perhaps truncated, where partition field {field.name!r} must have one value: "
        "the partition is unknown, and readers that take a bound for the value lose rows."
    )
    at = np.asarray(entries["ordinal"])[rows]
    return problem("entry-invalid", f"{location}#entry {at[0]}", text, field="149 content_stats", entries=at)


def expression_of(field: PartitionField, expressions: Mapping[int, Expression]) -> Expression | None:
    """Return a partition field's expression, whose id the derived column's statistics have; None if there is none."""
    same = [e for e in expressions.values() if e.partition_field_id == field.field_id]
    return next((e for e in same if e.transform == field.transform), same[0] if same else None)


def _one(
    field: PartitionField,
    rows: int,
    stats: TypedStats | None,
    kept: pa.Table | None,
    reader_schema: ReaderSchema,
    meaning: TableTypes,
    location: str,
) -> tuple[AnyArray, list[Problem]]:
    kind: Type | None = None  # unknown transform or dropped source column: keep the file's type
    if is_known_transform(field.transform):
        kind = result_type(field.transform, meaning.types.get(field.source_ids[0]) if field.source_ids else None)
        kind = None if kind == PrimitiveType("unknown") else kind
    problems: list[Problem] = []
    found: list[AnyArray] = []

    def note(damaged: pa.BooleanArray) -> None:
        if damaged.true_count:
            problems.append(
                problem(
                    "value-undecodable",
                    location,
                    f"{damaged.true_count} partition values of {field.name!r} do not fit the partition field's type.",
                    field=str(field.field_id),
                    expected=str(kind),
                )
            )

    tuples: tuple[AnyArray, pa.BooleanArray] | None = None
    column = None if kept is None else find_column(reader_schema, field)
    if kept is not None and column is not None:
        array = from_file(whole(kept.column(column.column)), column.logical)
        made, damaged = _conformed(array, None if kind is None else arrow_type(kind))
        note(damaged)
        if HAS_TUPLE not in kept.column_names:
            return made, problems
        there = cast(pa.BooleanArray, whole(kept.column(HAS_TUPLE)))
        if there.true_count == rows:
            return made, problems
        tuples = made, there
    if stats is not None:
        for field_id, name in _places(field, meaning):
            if stats.has(field_id, name):
                own = kind or stats.column_type(field_id)
                made, _, damaged = stats.values(field_id, name, own)
                found.append(made)
                note(damaged)
    rebuilt = found[0] if found else build.nulls(rows, pa.null() if kind is None else arrow_type(kind))
    for other in found[1:]:
        rebuilt = pc.coalesce(rebuilt, other) if rebuilt.type == other.type else rebuilt
    if tuples is None:
        return rebuilt, problems
    values, there = tuples
    # The types differ only if the field's type is unknown: tuples and statistics keep the types they have in the file.
    if rebuilt.type != values.type:
        return values, problems
    return pc.if_else(there, values, rebuilt), problems


def _places(field: PartitionField, meaning: TableTypes) -> list[tuple[int, str]]:
    """Return statistics that may hold a field's values: (column or expression id, statistic), most reliable first."""
    expressions = meaning.expressions
    transform = parse_transform(field.transform)
    if transform.is_void:
        return []
    places = []
    expression = expression_of(field, expressions)
    if expression is not None:
        places += [(expression.expr_id, "lower"), (expression.expr_id, "upper")]
    if len(field.source_ids) == 1:
        if not transform.is_identity:
            places.append((field.source_id, f"partition_{field.field_id}"))
        if not transform.is_identity or not _shares_source(field, meaning):
            places.append((field.source_id, "derived_value"))
        if transform.is_identity:
            places += [(field.source_id, "lower"), (field.source_id, "upper")]
    return places


def _shares_source(field: PartitionField, meaning: TableTypes) -> bool:
    """Return whether a spec has another field with the same source: a ``derived_value`` may be that field's value."""

    def differs(other: PartitionField) -> bool:
        return other.transform != field.transform and not parse_transform(other.transform).is_void

    return any(
        field in spec.fields and any(f.source_ids == field.source_ids and differs(f) for f in spec.fields)
        for spec in meaning.specs.values()
    )


def _conformed(array: AnyArray, target: pa.DataType | None) -> tuple[AnyArray, pa.BooleanArray]:
    fine = pa.array(np.zeros(len(array), dtype=np.bool_))
    if target is None:
        return array, fine
    try:
        return conform(array, target), fine
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError):
        return build.nulls(len(array), target), pa.array(np.asarray(array.is_valid()))
