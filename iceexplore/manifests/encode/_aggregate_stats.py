"""Aggregated statistics of a manifest, from those of its entries: valid for every live entry, or unknown.

V4 proposal, "Goals: Aggregate Metrics". Order of floats: spec, "Sorting": -0 is below 0, NaN above infinity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.manifests._batch import EntryBatch, stats_type
from iceexplore.manifests.encode._stat_columns import (
    Parts,
    derives,
    find_expression,
    given_columns,
    is_identity,
    partition_fields,
    put_derived,
    put_identity,
)
from iceexplore.manifests.model._content_entry import live
from iceexplore.metadata import TableMetadata, Type, type_base

__all__ = ["aggregated_stats", "extremes"]

_COUNTS = ("value_count", "null_count", "nan_count", "average_length", "max_length")


def aggregated_stats(batch: EntryBatch, metadata: TableMetadata) -> dict[int, pa.StructArray]:
    """Return statistics over all live entries, as arrays of length one, by column or expression id; omit unknown ones.

    A bound is unknown if any entry with values other than null and NaN lacks it, a count if any entry lacks it.
    Partition values serve as bounds: of the source column (identity), or of the derived column of their expression
    (omitted if the table has no such expression). Bounds of ``geometry`` are merged coordinate by coordinate. Bounds
    are unknown for ``geography``, whose boxes may cross the antimeridian, and for ``variant``.
    """
    batch = batch.filter(live(batch.entries))
    rows = len(batch)
    if not rows:
        return {}
    columns = given_columns(batch, metadata)
    exact: dict[int, pa.BooleanArray] = {}
    expressions = {e.expr_id for e in metadata.expressions if e.partition_field_id is not None}
    for expr_id in expressions & set(columns):  # for files, partition tuples take precedence
        del columns[expr_id]
    for f, mask in partition_fields(batch, metadata):
        if is_identity(f):
            column_id = f.source_id
            put_identity(columns, batch, metadata, f, mask)
        elif derives(f) and (expression := find_expression(metadata, f)) is not None:
            column_id = expression.expr_id
            put_derived(columns.setdefault(column_id, {}), batch, metadata, f, mask)
        else:
            continue
        exact[column_id] = pc.or_(exact[column_id], mask) if column_id in exact else mask
    types = {i: f.type for i, (_, f) in metadata.all_fields().items()}
    nowhere = pa.array(np.zeros(rows, np.bool_))
    out = {}
    for column_id in sorted(columns):
        made = _column(columns[column_id], exact.get(column_id, nowhere), types.get(column_id), rows)
        if made is not None:
            out[column_id] = made
    return out


def _column(parts: Parts, exact: pa.BooleanArray, type_: Type | None, rows: int) -> pa.StructArray | None:
    kind = parts["lower"].type
    parts = {n: parts.get(n, pa.nulls(rows, pa.int64())) for n in _COUNTS} | {
        "lower": parts["lower"],
        "upper": parts.get("upper", pa.nulls(rows, kind)),
        "tight_bounds": parts.get("tight_bounds", pa.nulls(rows, pa.bool_())),
    }
    values, nulls, nans = (parts[n] for n in ("value_count", "null_count", "nan_count"))
    empty = pc.or_(
        pc.and_(exact, parts["lower"].is_null()),
        pc.fill_null(pc.equal(pc.add(nulls, pc.coalesce(nans, pa.scalar(0, pa.int64()))), values), False),
    )
    lower, upper = parts["lower"], pc.if_else(exact, parts["lower"], parts["upper"])
    bounds = (_bound(lower, exact, empty, type_, 0), _bound(upper, exact, empty, type_, 1))
    tight = pc.all(pc.or_kleene(pc.or_(empty, exact), pc.fill_null(parts["tight_bounds"], False))).as_py()
    known = any(b.null_count == 0 for b in bounds)
    made: dict[str, AnyArray] = {"lower": bounds[0], "upper": bounds[1]}
    for name in ("value_count", "null_count", "nan_count"):
        total = None if parts[name].null_count else pc.sum(parts[name]).as_py()
        made[name] = pa.array([total], pa.int64())
    lengths = _lengths(parts)
    made |= {n: pa.array([v], pa.int64()) for n, v in lengths.items()} | {"column_size": pa.nulls(1, pa.int64())}
    made["tight_bounds"] = pa.array([True if tight and known else None], pa.bool_())
    if all(array.null_count for array in made.values()):
        return None
    shape = stats_type(kind)
    return pa.StructArray.from_arrays([made[child.name] for child in shape], fields=list(shape))


def _bound(bound: AnyArray, exact: pa.BooleanArray, empty: pa.BooleanArray, type_: Type | None, end: int) -> AnyArray:
    """Return the lowest lower (``end`` 0) or highest upper bound (1), as an array of length one; null if unknown."""
    there = bound.is_valid()
    if pa.types.is_floating(bound.type):
        # NaN is a bound only as a partition value; old writers also wrote it when they could not compare values.
        there = pc.and_(there, pc.or_(exact, pc.invert(pc.fill_null(pc.is_nan(bound), False))))
    unknown = build.nulls(1, bound.type)
    if pc.any(pc.and_not(pc.invert(there), empty)).as_py():
        return unknown
    values = bound.filter(there)
    if not len(values):
        return unknown
    base = None if type_ is None else type_base(type_)
    if base == "geometry":
        return _corner(values, end)
    if base in ("geography", "variant") or pa.types.is_nested(bound.type) or pa.types.is_null(bound.type):
        return unknown
    return extremes(values)[end]


def extremes(values: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the lowest and the highest of some values (at least one, no nulls), as arrays of length one.

    Text and bytes are ordered by unsigned bytes, floats by the spec's total order.
    """
    if pa.types.is_floating(values.type):
        bits = np.asarray(values)
        stored: Any = bits.view(np.int32 if bits.dtype.itemsize == 4 else np.int64)
        order = np.where(stored < 0, stored ^ np.iinfo(stored.dtype).max, stored)
        at = [int(order.argmin()), int(order.argmax())]
    else:
        ends = pc.min_max(values)
        return pa.array([ends["min"]], values.type), pa.array([ends["max"]], values.type)
    return values.slice(at[0], 1), values.slice(at[1], 1)


def _corner(points: AnyArray, end: int) -> AnyArray:
    """Return a corner of the union of boxes from the same corner of each (spec, "Bound Serialization": x, y, z, m)."""
    unknown = build.nulls(1, points.type)
    sizes = pc.unique(pc.binary_length(points)).to_pylist()
    if len(sizes) != 1 or sizes[0] not in (16, 24, 32):
        return unknown
    cells = np.frombuffer(b"".join(build.to_pylist(points)), "<f8").reshape(len(points), -1)
    missing = np.isnan(cells)
    # z is NaN in a box with m and without z. If only some boxes have a coordinate, its range is unknown.
    if missing[:, :2].any() or (missing.any(axis=0) != missing.all(axis=0)).any():
        return unknown
    united: Any = cells.max(axis=0) if end else cells.min(axis=0)
    return build.array([united.astype("<f8").tobytes()], points.type)


def _lengths(parts: Parts) -> dict[str, int | None]:
    """Return average and maximum length over all values that are not null."""
    there = pc.subtract(parts["value_count"], parts["null_count"])
    out: dict[str, int | None] = {"average_length": None, "max_length": None}
    if there.null_count:
        return out
    some = pc.greater(there, 0)
    counts = np.asarray(there.filter(some))
    average, longest = parts["average_length"].filter(some), parts["max_length"].filter(some)
    if len(counts) and not average.null_count:
        # Computed in floats, as products of int64 may overflow.
        out["average_length"] = round(float(np.average(np.asarray(average, np.float64), weights=counts)))
    if len(counts) and not longest.null_count:
        out["max_length"] = pc.max(longest).as_py()
    return out
