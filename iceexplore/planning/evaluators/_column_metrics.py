"""Metrics of a column in many files or manifests: its bounds, and whether it has nulls or NaN.

The metrics come from three sources: column metrics of files (spec, "Data File Fields"; V4: ``content_stats``),
partition tuples, and the partition summaries of a manifest list (spec, "Manifest Lists", ``field_summary``). A missing
metric means unknown and proves nothing. A bound need not be a value that occurs in the column (V4's ``tight_bounds``
marks bounds that do occur). So a bound is not taken for a value of the column unless the lower and upper bounds are
equal: then every value except null and NaN equals them.

If the lower bound is above the upper one, both are ignored. Such bounds occur even in healthy tables: Java's
``UUID.compareTo`` compares both halves as signed numbers, so Iceberg 1.11 orders UUIDs that begin with 8 to f below
UUIDs that begin with 0 to 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyColumn
from iceexplore.arrow import compute as pc
from iceexplore.manifests import whole
from iceexplore.metadata import Type, arrow_type

__all__ = ["ColumnMetrics", "Mask", "aligned", "comparable", "known"]

#: One boolean per file or manifest.
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ColumnMetrics:
    """Metrics of one column; each array has one element per file or manifest.

    Attributes
    ----------
    lower, upper
        Arrays of the column's type; null where unknown.
    no_null, all_null
        `no_null` is True where it is certain that no row is null, `all_null` where it is certain that every row is.
    no_nan, all_nan
        `no_nan` is True where it is certain that no value is NaN, `all_nan` where it is certain that every value is.
        For a column inside a struct, `all_nan` ignores rows in which the struct is null, because writers may leave them
        out of the value count.
    nothing
        True where it is certain that every value is null or NaN, so that no comparison such as ``<`` can be true.
    exact
        Whether, for every file, the lower bound equals the upper bound and is the file's only value, as in partition
        tuples.
    value_count, null_count
        int64 arrays, for display; None if there are no counts.
    """

    lower: AnyArray
    upper: AnyArray
    no_null: Mask
    all_null: Mask
    no_nan: Mask
    all_nan: Mask
    nothing: Mask
    exact: bool = False
    value_count: AnyArray | None = None
    null_count: AnyArray | None = None

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def of_stats(
        cls, stats: pa.StructArray, records: AnyArray | None = None, *, nested: bool = False, required: bool = False
    ) -> ColumnMetrics:
        """Build column metrics from a column of `EntryBatch.stats`.

        Parameters
        ----------
        stats
            Struct array with the fields ``lower``, ``upper``, ``value_count``, ``null_count`` and ``nan_count``.
        records
            int64 array of the files' record counts; None if unknown. If a record count is negative, the file's metrics
            are not used: old Iceberg versions wrote -1 for imported Avro files. A positive record count replaces a
            missing value count.
        nested
            Whether the column is inside a struct. For rows where the struct itself is null, ORC writers count neither a
            value nor a null. So a null count of 0 does not suffice to prove that no row is null: the file's value count
            must also equal its record count.
        required
            Whether the table's schemas rule out nulls in the column (see `always_required`). If so, a file without a
            null count is considered free of nulls, provided that a positive value count or a bound shows that the file
            contains the column: if a file does not contain it, the column may read as null. A file with a null count
            above 0 is not considered free of nulls, whatever the schemas state. Ignored if ``nested``.
        """
        part = {f.name: pc.struct_field(stats, [i]) for i, f in enumerate(stats.type)}
        lower, upper, values = part["lower"], part["upper"], part["value_count"]
        nulls, nans = part["null_count"], part["nan_count"]
        return cls.of_counts(lower, upper, values, nulls, nans, records, nested=nested, required=required)

    @classmethod
    def of_counts(
        cls,
        lower: AnyArray,
        upper: AnyArray,
        values: AnyArray,
        nulls: AnyArray,
        nans: AnyArray,
        records: AnyArray | None = None,
        *,
        nested: bool = False,
        required: bool = False,
    ) -> ColumnMetrics:
        """Build column metrics from separate arrays, which have one item per file.

        ``lower`` and ``upper`` are the bounds, in the column's type. ``values``, ``nulls`` and ``nans`` are int64
        arrays of value counts, null counts and NaN counts. For the other parameters, see `of_stats`.
        """
        floating = pa.types.is_floating(lower.type)
        use = np.ones(len(lower), np.bool_)
        if records is not None:
            use = known(pc.greater_equal(records, 0)) | np.asarray(records.is_null())
        # If a file has no value count, use its record count instead, unless that is 0. Otherwise the null count of an
        # empty file, 0, would equal it, and every row of the file would be considered null.
        rows = None if records is None else pc.if_else(pc.greater(records, 0), records, pa.scalar(None, pa.int64()))
        counted = values if rows is None or not values.null_count else pc.coalesce(values, rows)
        no_null = known(pc.equal(nulls, 0)) & use
        if nested:
            no_null &= known(pc.equal(values, records)) if records is not None else np.False_
        uncounted = ~known(pc.greater(nulls, 0)) & use
        if required and not nested:
            held = known(pc.greater(values, 0)) | np.asarray(lower.is_valid()) | np.asarray(upper.is_valid())
            no_null |= held & uncounted
        all_null = known(pc.equal(nulls, counted)) & use
        no_nan, all_nan, nothing = use, np.zeros(len(lower), np.bool_), all_null
        if floating:
            no_nan = known(pc.equal(nans, 0)) & use
            all_nan = known(pc.equal(nans, counted)) & use
            # A value count includes nulls. So if it equals the NaN count, no value is null. Inside a struct, this does
            # not hold: the value count may leave out rows where the struct itself is null.
            if not nested:
                no_null |= all_nan & known(pc.greater(counted, 0)) & uncounted
            nothing = all_null | all_nan | (known(pc.equal(pc.add(nulls, nans), counted)) & use)
            # Old ORC files have a bound of NaN if the first value is NaN, whatever the other values are (Java:
            # InclusiveMetricsEvaluator). So treat a bound of NaN as unknown.
            lower, upper = (_without(b, known(pc.is_nan(b))) for b in (lower, upper))
        if not use.all():
            lower, upper = _without(lower, ~use), _without(upper, ~use)
        lower, upper = _uncrossed(lower, upper)
        return cls(lower, upper, no_null, all_null, no_nan, all_nan, nothing, False, values, nulls)

    @classmethod
    def of_values(cls, values: AnyArray) -> ColumnMetrics:
        """Build column metrics from partition values, one per file, which may be null or NaN.

        Each value becomes both the lower and the upper bound, and `exact` is True.
        """
        null = np.asarray(values.is_null())
        floating = pa.types.is_floating(values.type)
        nan = known(pc.is_nan(values)) if floating else np.zeros(len(values), np.bool_)
        return cls(values, values, ~null, null, ~nan, nan, null | nan, exact=True)

    @classmethod
    def of_summaries(
        cls,
        lower: AnyArray,
        upper: AnyArray,
        contains_null: AnyArray,
        contains_nan: AnyArray,
        unbounded: Mask,
    ) -> ColumnMetrics:
        """Build column metrics from the summaries of a partition field in a manifest list.

        Parameters
        ----------
        lower, upper
            The decoded bounds; null where a bound is missing or cannot be decoded.
        contains_null, contains_nan
            Boolean arrays; null where unknown.
        unbounded
            True where the manifest list has no lower bound; False where it has one, even one that cannot be decoded.
            According to the spec, a missing bound means that "all values are null or NaN". This is assumed only if
            ``contains_null`` is true or, for floating-point fields, if ``contains_nan`` is true or unknown. Otherwise a
            missing bound proves nothing: the summary is incomplete, or it contradicts itself, as it has no bounds, but
            states that there are neither nulls nor NaN.
        """
        floating = pa.types.is_floating(lower.type)
        null, no_null = known(contains_null), known(pc.invert(contains_null))
        nan = known(contains_nan) if floating else np.zeros(len(lower), np.bool_)
        no_nan = known(pc.invert(contains_nan)) if floating else np.ones(len(lower), np.bool_)
        nothing = unbounded & (null | ~no_nan)
        if floating:
            lower, upper = (_without(b, known(pc.is_nan(b))) for b in (lower, upper))
        lower, upper = _uncrossed(lower, upper)
        return cls(lower, upper, no_null, nothing & null & no_nan, no_nan, nothing & nan & no_null, nothing)

    def take(self, rows: npt.ArrayLike) -> ColumnMetrics:
        """Return the metrics of the files or manifests with the indices ``rows``, in the order of ``rows``.

        An index of -1 gives a row whose metrics are all unknown.
        """
        at = np.asarray(rows)
        there = at >= 0
        places = pa.array(at, pa.int64(), mask=~there)

        def mask(values: Mask) -> Mask:
            return (
                np.where(there, values[np.where(there, at, 0)], False) if len(values) else np.zeros(len(at), np.bool_)
            )

        value_count, null_count = (None if c is None else c.take(places) for c in (self.value_count, self.null_count))
        return ColumnMetrics(
            self.lower.take(places),
            self.upper.take(places),
            mask(self.no_null),
            mask(self.all_null),
            mask(self.no_nan),
            mask(self.all_nan),
            mask(self.nothing),
            self.exact and bool(there.all()),
            value_count,
            null_count,
        )


def known(mask: AnyColumn) -> Mask:
    """Return the result of a comparison as a numpy mask. Null, which means an unknown result, becomes False."""
    filled = pc.fill_null(mask, False)
    return np.asarray(whole(filled) if isinstance(filled, pa.ChunkedArray) else filled)


def _without(values: AnyArray, gone: Mask) -> AnyArray:
    """Return the values, with null where the mask is true."""
    return pc.if_else(pa.array(gone), pa.scalar(None, values.type), values) if gone.any() else values


def _uncrossed(lower: AnyArray, upper: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the bounds, with both set to null (unknown) where the lower bound is above the upper bound.

    At least one of two such bounds is wrong, so neither is used to prune. Bounds of nested types are not checked.
    """
    if pa.types.is_null(lower.type) or pa.types.is_nested(lower.type):
        return lower, upper
    crossed = known(pc.greater(comparable(lower), comparable(upper)))
    return _without(lower, crossed), _without(upper, crossed)


def comparable(values: AnyArray) -> AnyArray:
    """Cast values so that arrays of related types, such as int and long, get the same type and can be compared.

    Integers, booleans, dates, times and timestamps become int64: a date, for example, becomes the number of days since
    1970-01-01. Fixed-length binary becomes binary. Values of all other types remain as they are.
    """
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    if pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    if pa.types.is_temporal(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return values.cast(pa.int64())
    return values


def aligned(values: AnyArray, kind: Type | None) -> AnyArray | None:
    """Convert bounds or partition values so that they can be compared with the literals of a predicate.

    For example, dates become days since 1970, as in the literals. The values may have a different type from the
    predicate's literals: the predicate may use an older schema, and a writer may have stored partition values of a
    wrong type. If the types are related, such as int and long, the values are still comparable.

    Parameters
    ----------
    kind
        The type of the literals. If it is None (unknown), values of any primitive type are accepted.

    Returns
    -------
    pyarrow.Array or None
        None if the values cannot be compared with the literals (for example, strings cannot be compared with numbers),
        if they have Arrow's null type, or if they are nested.
    """
    if pa.types.is_null(values.type) or pa.types.is_nested(values.type):
        return None
    if kind is None:
        return comparable(values)
    found, wanted = values.type, arrow_type(kind)
    if pa.types.is_floating(wanted) and pa.types.is_floating(found):
        return values.cast(wanted)
    same = found == wanted or any(
        test(found) and test(wanted)
        for test in (pa.types.is_integer, pa.types.is_decimal, _is_bytes, _is_text)
    )  # fmt: skip
    if same:
        return comparable(values)
    # A date can be compared with an integer, because some writers store partition values of the transform ``day`` as
    # dates, and others as integers (days since 1970-01-01).
    numbers = (pa.types.is_date32, pa.types.is_integer)
    if any(test(found) for test in numbers) and any(test(wanted) for test in numbers):
        return comparable(values)
    return None


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
