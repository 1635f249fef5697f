"""What is known of a column in some files or manifests: bounds, and whether there are nulls and NaN; a value per row.

Three sources say it: statistics of files (spec, "Data File Fields"; V4: ``content_stats``), partition tuples, and the
partition summaries of a manifest list (spec, "Manifest Lists", ``field_summary``). What is not said is unknown, and
proves nothing. Bounds need not be values of the column (V4 says with ``tight_bounds`` where they are): no rule here
takes one for a value unless both are equal, and then every value is what they are.

Of bounds that have crossed neither is believed. Healthy tables have some: Java's ``UUID.compareTo`` takes both halves
for signed, so that for Iceberg 1.11 the UUIDs from 8 to f lie below those from 0 to 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.manifests import whole
from iceexplore.metadata import Type, arrow_type

__all__ = ["Evidence", "Mask", "aligned", "comparable", "known"]

#: A boolean per row.
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Evidence:
    """What is known of a column, a value per row.

    Attributes
    ----------
    lower, upper
        Of the column's type; null where not known.
    no_null, all_null
        Where surely no row, surely every row is null.
    no_nan, all_nan
        Where surely no value, surely every value that is not left out below a null struct, is NaN.
    nothing
        Where every value is null or NaN: no comparison is true.
    exact
        Lower is upper, and a row's only value: a partition tuple's.
    value_count, null_count
        int64, for people; None where nothing is counted.
    """

    lower: pa.Array
    upper: pa.Array
    no_null: Mask
    all_null: Mask
    no_nan: Mask
    all_nan: Mask
    nothing: Mask
    exact: bool = False
    value_count: pa.Array | None = None
    null_count: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def of_stats(
        cls, stats: pa.StructArray, records: pa.Array | None = None, *, nested: bool = False, required: bool = False
    ) -> Evidence:
        """From a column of `EntryBatch.stats`.

        Parameters
        ----------
        stats
            Lower, upper and counts.
        records
            int64, rows of each file: below 0 (files imported by old versions) nothing is known; it stands in for a
            missing value count. None: not known.
        nested
            The column stands in a struct, which may be null where it is counted neither as a value nor as a null (ORC
            counts only what is inside): its null count of 0 is believed where the values are as many as the rows.
        required
            No schema ever let the column be null. It is believed of files that hold the column, as values or bounds
            show (one that lacks it reads as null), and that count no null.
        """
        part = {f.name: pc.struct_field(stats, [i]) for i, f in enumerate(stats.type)}
        lower, upper, values = part["lower"], part["upper"], part["value_count"]
        nulls, nans = part["null_count"], part["nan_count"]
        return cls.of_counts(lower, upper, values, nulls, nans, records, nested=nested, required=required)

    @classmethod
    def of_counts(
        cls,
        lower: pa.Array,
        upper: pa.Array,
        values: pa.Array,
        nulls: pa.Array,
        nans: pa.Array,
        records: pa.Array | None = None,
        *,
        nested: bool = False,
        required: bool = False,
    ) -> Evidence:
        """The same from bounds of the column's type and counts, int64, each by itself."""
        floating = pa.types.is_floating(lower.type)
        use = np.ones(len(lower), np.bool_)
        if records is not None:
            use = known(pc.greater_equal(records, 0)) | np.asarray(records.is_null())
        # A count of 0 rows proves nothing by itself: it would make every column one without values.
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
            if not nested:  # a value count is of nulls, too: where all of it is NaN there is none
                no_null |= all_nan & known(pc.greater(counted, 0)) & uncounted
            nothing = all_null | all_nan | (known(pc.equal(pc.add(nulls, nans), counted)) & use)
            # Old ORC files have NaN for a bound where the first value is NaN, whatever else there is (Java:
            # InclusiveMetricsEvaluator).
            lower, upper = (_without(b, known(pc.is_nan(b))) for b in (lower, upper))
        if not use.all():
            lower, upper = _without(lower, ~use), _without(upper, ~use)
        lower, upper = _uncrossed(lower, upper)
        return cls(lower, upper, no_null, all_null, no_nan, all_nan, nothing, False, values, nulls)

    @classmethod
    def of_values(cls, values: pa.Array) -> Evidence:
        """From partition values: each file has one, null and NaN too."""
        null = np.asarray(values.is_null())
        floating = pa.types.is_floating(values.type)
        nan = known(pc.is_nan(values)) if floating else np.zeros(len(values), np.bool_)
        return cls(values, values, ~null, null, ~nan, nan, null | nan, exact=True)

    @classmethod
    def of_summaries(
        cls,
        lower: pa.Array,
        upper: pa.Array,
        contains_null: pa.Array,
        contains_nan: pa.Array,
        unbounded: Mask,
    ) -> Evidence:
        """From the summaries of a partition field.

        Parameters
        ----------
        unbounded
            Where there is no lower bound (not: one that is damaged): "null if all values are null or NaN" (spec).
            It is believed where the summary has a null or may have NaN.
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

    def take(self, rows: Any) -> Evidence:
        """Of these rows; -1 is a row of which nothing is known."""
        at = np.asarray(rows)
        there = at >= 0
        places = pa.array(at, pa.int64(), mask=~there)

        def mask(values: Mask) -> Mask:
            return (
                np.where(there, values[np.where(there, at, 0)], False) if len(values) else np.zeros(len(at), np.bool_)
            )

        value_count, null_count = (None if c is None else c.take(places) for c in (self.value_count, self.null_count))
        return Evidence(
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


def known(mask: pa.Array | pa.ChunkedArray) -> Mask:
    """A comparison's outcome, false where it is not known."""
    filled = pc.fill_null(mask, False)
    return np.asarray(whole(filled) if isinstance(filled, pa.ChunkedArray) else filled)


def _without(values: pa.Array, gone: Mask) -> pa.Array:
    return pc.if_else(pa.array(gone), pa.scalar(None, values.type), values) if gone.any() else values


def _uncrossed(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bounds, without those of which the lower one is above the upper one."""
    if pa.types.is_null(lower.type) or pa.types.is_nested(lower.type):
        return lower, upper
    crossed = known(pc.greater(comparable(lower), comparable(upper)))
    return _without(lower, crossed), _without(upper, crossed)


def comparable(values: pa.Array) -> pa.Array:
    """The values as a type that Arrow compares; integers, booleans and times as int64."""
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


def aligned(values: pa.Array, kind: Type | None) -> pa.Array | None:
    """Values in the form and unit of a predicate's literals; None where the types have nothing to do with each other.

    A filter may be of an older schema than the one by which bounds were decoded, or the tuples of a file of another
    type than the spec says: what is not the same kind of value proves nothing.

    Parameters
    ----------
    kind
        The predicate's type; None takes the values as they are.
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
    numbers = (pa.types.is_date32, pa.types.is_integer)  # a day is a date, or an int as some writers leave it
    if any(test(found) for test in numbers) and any(test(wanted) for test in numbers):
        return comparable(values)
    return None


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
