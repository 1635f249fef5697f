"""Rules for the counts and bounds that a root stores for each leaf, for partition summaries and partition values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyScalar, PlainValue, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.rules._entries import RuleBreak, flagged
from iceexplore.commits.rules._view import LeafView
from iceexplore.manifests import ColumnStats, Manifest
from iceexplore.manifests.rules import Rows, lowest_sequence_number, stored_counts
from iceexplore.metadata import PartitionField, TableMetadata, parse_transform

__all__ = ["count_breaks", "cover_breaks", "partition_breaks", "summary_breaks", "unknown_partitions"]

_UNORDERED = (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError)


def count_breaks(root: Manifest, view: LeafView, leaf: Manifest) -> Iterator[RuleBreak]:
    """Yield violations of ``manifest-stats``: values in the root's row for a leaf that contradict the leaf's entries.

    Counts must be equal to those of the leaf. ``min_sequence_number`` must not be above the lowest sequence number in
    the leaf. A value that is null in the root is not checked.
    """
    stated: Mapping[str, int | None] = root.entries["manifest_stats"][view.row].as_py() or {}
    where = f"{root.location}#entry {view.row}"
    for column, found in stored_counts(leaf.entries, leaf.dialect).items():
        value = stated.get(column)
        if value is not None and value != found:
            yield RuleBreak("manifest-stats", where, f"{column} is {value}, but {view.location} has {found}")
    stated_lowest, lowest = stated.get("min_sequence_number"), lowest_sequence_number(leaf.entries)
    if stated_lowest is not None and lowest is not None and lowest < stated_lowest:
        text = f"min_sequence_number is {stated_lowest}, but an entry of {view.location} has sequence number {lowest}"
        yield RuleBreak("manifest-stats", where, text)


def summary_breaks(leaf: Manifest) -> Iterator[RuleBreak]:
    """Yield violations of ``summaries-cover`` for one manifest.

    The partition summaries that the manifest list stores for the manifest must cover the partition values of all live
    entries in the manifest.
    """
    for item in leaf.untrue_claims():
        yield RuleBreak("summaries-cover", item.where, item.text)


def cover_breaks(root: Manifest, view: LeafView, leaf: Manifest, metadata: TableMetadata) -> Iterator[RuleBreak]:
    """Yield violations of ``stats-cover``: statistics in the root that do not cover the leaf's live entries.

    The root need not have a bound for a column. If it has one, every live entry must have a bound for the column, too,
    and this bound must not be outside the root's; only entries without non-null values need no bound. Columns whose
    values cannot be compared are skipped. Counts in the root must not be below the sum of the entries' counts.
    """
    where = f"{root.location}#entry {view.row}"
    rows = Rows(leaf.entries, leaf.dialect)
    # Only live entries count. In the V4 draft, one row may contain a data file and its DV, and is then decoded to two
    # entries. The statistics belong to the data file, so the DV's entry (`Rows.carried`) is left out.
    counted = pa.array(np.isin(rows.status, [0, 1, 4]) & ~rows.carried)
    exact = _exact_columns(metadata)
    tuples = None
    for field_id in root.stat_field_ids():
        above = root.stats(field_id)
        lower, upper = above.lower[view.row].as_py(), above.upper[view.row].as_py()
        counts = {n: getattr(above, n)[view.row].as_py() for n in ("value_count", "null_count", "nan_count")}
        if lower is None and upper is None and not any(v is not None for v in counts.values()):
            continue
        below = leaf.stats(field_id)
        for name, value in counts.items():
            total = pc.sum(getattr(below, name).filter(counted)).as_py()
            if value is not None and total is not None and value < total:
                yield RuleBreak(
                    "stats-cover", where, f"{name} of field {field_id} is {value}, but the leaf's sum is {total}"
                )
        lows, highs = below.lower, below.upper
        if field_id in exact:
            tuples = tuples or [leaf.partition()]  # decoded once for all columns
            lows, highs = _exact_bounds(lows, highs, tuples[0], exact[field_id])
        lows, highs = lows.filter(counted), highs.filter(counted)
        empty = _empty(below, counted) if field_id not in exact else lows.is_null()
        for side, bound, held, wrong in (("lower", lower, lows, pc.less), ("upper", upper, highs, pc.greater)):
            text = _uncovered(bound, above.lower.type, held, empty, wrong)
            if text:
                yield RuleBreak("stats-cover", where, f"the {side} bound of field {field_id} is {bound!r}, but {text}")


def _exact_columns(metadata: TableMetadata) -> dict[int, list[str]]:
    """Return the partition fields that store the values of a column unchanged, by the column's id.

    For example, ``{3: ["1000"]}`` means that the partition field 1000 has the transform identity and the source
    column 3. The ids of partition fields are texts, because these are the names of the fields in partition tuples.

    The V4 proposal also has statistics for expressions, such as the bucket of a column, and each expression has an id.
    If a partition field stores the values of an expression, the result has the field under the expression's id.
    """
    out: dict[int, list[str]] = {}
    for spec in metadata.partition_specs:
        for field in spec.fields:
            if parse_transform(field.transform).is_identity:
                out.setdefault(field.source_ids[0], []).append(str(field.field_id))
    for expression in metadata.expressions:
        if expression.partition_field_id is not None:
            out.setdefault(expression.expr_id, []).append(str(expression.partition_field_id))
    return out


def _exact_bounds(
    lows: AnyArray, highs: AnyArray, tuples: pa.StructArray | None, fields: list[str]
) -> tuple[AnyArray, AnyArray]:
    """Return the lower and the upper bounds of a column for each entry of a manifest, without truncation if possible.

    Stored bounds may be truncated, but partition values are not. If an entry has a value for one of the partition
    fields ``fields``, all rows of its file have this value in the column. The value is then both the lower and the
    upper bound. All other entries keep their stored bounds. If an entry has no upper bound, the lower bound is used for
    both, because V4 writers may omit an upper bound that equals the lower one.

    Parameters
    ----------
    lows, highs
        The stored bounds of the column, one for each entry.
    tuples
        The partition tuples of the entries; None if the manifest has none.
    fields
        The partition fields that store the column's values unchanged, as names of fields in ``tuples``.
    """
    highs = pc.coalesce(highs, lows) if highs.type == lows.type else highs
    if tuples is None:
        return lows, highs
    for name in fields:
        at = tuples.type.get_field_index(name)
        value = None if at < 0 else pc.struct_field(tuples, [at])
        if value is not None and value.type == lows.type == highs.type:
            lows, highs = pc.coalesce(value, lows), pc.coalesce(value, highs)
    return lows, highs


def _empty(below: ColumnStats, counted: AnyArray) -> AnyArray:
    """Return which entries of a leaf have only nulls and NaN in a column, so that they need no bounds for it.

    These are the entries whose null count and NaN count (0 if missing) add up to their value count. The result is false
    for entries without a null count or value count.

    Parameters
    ----------
    below
        The column's statistics, for each entry of the leaf.
    counted
        A mask of the leaf's entries. The result has a value only for the entries for which the mask is true.
    """
    nulls, nans = below.null_count, pc.coalesce(below.nan_count, build.scalar(0, pa.int64()))
    known: AnyArray = pc.fill_null(pc.equal(pc.add(nulls, nans), below.value_count), False)
    return known.filter(counted)


def _uncovered(
    bound: PlainValue,
    kind: pa.DataType,
    held: AnyArray,
    empty: AnyArray,
    wrong: Callable[[AnyArray, AnyScalar], AnyArray],
) -> str | None:
    if bound is None or not len(held):
        return None
    if pc.any(pc.and_(held.is_null(), pc.invert(empty))).as_py():
        return "one of the leaf's entries has no bound"
    try:
        beyond = wrong(held, pa.scalar(bound, kind).cast(held.type))
        if pc.any(beyond).as_py():
            return f"one of the leaf's entries has {held.filter(pc.fill_null(beyond, False))[0].as_py()!r}"
    except _UNORDERED:
        return None
    return None


def partition_breaks(leaf: Manifest, metadata: TableMetadata) -> list[RuleBreak]:
    """Return violations of ``partition-rebuilds``: live entries with ambiguous or missing partition values.

    A V4 manifest need not store partition values: readers can derive them from bounds. For an identity transform, these
    are the bounds of the source column. For other transforms, the V4 proposal stores bounds of the transform's results.
    All rows of a file have the same partition value, so the lower and the upper bound must both be this value. An entry
    breaks the rule in two cases:

    - Its partition value equals the lower bound, but the upper bound is another value.
    - It has no value for a partition field of its spec, or a null although the statistics count no nulls.

    Parameters
    ----------
    leaf
        A leaf, or the files that a root lists directly (`ManifestReader.direct`).
    """
    out: list[RuleBreak] = []
    for field, differing, missing in _doubtful_values(leaf, metadata):
        name = f"{field.name} ({field.transform})"
        out += flagged(
            "partition-rebuilds", leaf.location, differing, f"its two bounds for {name} differ", leaf.entries
        )
        out += flagged("partition-rebuilds", leaf.location, missing, f"it has no value for {name}", leaf.entries)
    return out


def unknown_partitions(leaf: Manifest, metadata: TableMetadata) -> np.ndarray:
    """Return a mask of a manifest's entries: true for the live ones that break the rule of `partition_breaks`."""
    out = np.zeros(len(leaf.entries), np.bool_)
    for _, differing, missing in _doubtful_values(leaf, metadata):
        out |= differing | missing
    return out


def _doubtful_values(
    leaf: Manifest, metadata: TableMetadata
) -> Iterator[tuple[PartitionField, np.ndarray, np.ndarray]]:
    """Yield each partition field of the table, with two masks of the leaf's entries.

    The masks are true for the live entries that break the rule of `partition_breaks` for this field. The first mask is
    for entries whose partition value equals the lower bound, although the upper bound is another value. The second mask
    is for entries without a value for the field, or with a null although the statistics count no nulls.
    """
    if not len(leaf):
        return
    r = Rows(leaf.entries)
    tuples = leaf.partition()
    for spec in metadata.partition_specs:
        rows = r.live & (r.ints("partition_spec_id", -1) == spec.spec_id)
        if not rows.any():
            continue
        for field in spec.fields:
            if not parse_transform(field.transform).is_void and field.source_ids:
                differing, missing = _field_masks(leaf, tuples, field, metadata)
                yield field, rows & differing, rows & missing


def _field_masks(
    leaf: Manifest, tuples: pa.StructArray | None, field: PartitionField, metadata: TableMetadata
) -> tuple[np.ndarray, np.ndarray]:
    expression = next((e.expr_id for e in metadata.expressions if e.partition_field_id == field.field_id), None)
    stats = leaf.stats(field.source_ids[0] if parse_transform(field.transform).is_identity else expression or -1)
    try:
        two = np.asarray(pc.fill_null(pc.not_equal(stats.lower, stats.upper), False))
    except _UNORDERED:
        two = np.zeros(len(leaf), np.bool_)
    at = -1 if tuples is None else tuples.type.get_field_index(str(field.field_id))
    if tuples is None or at < 0:
        missing = np.ones(len(leaf), np.bool_)
    else:
        value = pc.struct_field(tuples, [at])
        missing = np.asarray(pc.and_(value.is_null(), pc.fill_null(pc.equal(stats.null_count, 0), False)))
        # Different bounds are a violation only if the partition value was derived from the bounds. If it equals the
        # lower bound, assume that it was. Any other value was stored, or computed without the bounds.
        kept = np.asarray(pc.fill_null(pc.equal(value, stats.lower), False)) if value.type == stats.lower.type else ~two
        two &= kept
    return two, missing
