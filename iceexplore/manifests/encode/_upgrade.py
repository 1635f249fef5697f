"""Convert the rows of a v1-v3 manifest list to rows of a V4 root: partition summaries become statistics.

V4 proposal, "V4 Upgrade Path" and "How existing manifest list fields map to Proposed V4 content entry fields".
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyListArray, Int64s, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.manifests._batch import EntryBatch, stats_type
from iceexplore.manifests.encode._partition_tuple import field_type
from iceexplore.manifests.encode._stat_columns import derives, expression_of, is_identity
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import Status
from iceexplore.metadata import PartitionSpec, PrimitiveType, TableMetadata, Type, decode_values

__all__ = ["upgrade_entries"]


def upgrade_entries(batch: EntryBatch, metadata: TableMetadata, *, derived: bool = True) -> EntryBatch:
    """Return the manifests of a v1-v3 list as EXISTING entries of a V4 root, in order; manifest files stay as they are.

    Bounds of a partition field become bounds of its source column (identity) or of the derived column of its
    expression. ``contains_null`` becomes a null count of 0 if false, unknown if true; likewise ``contains_nan`` for
    floats. Bounds that do not fit the type, and summaries beyond the spec's fields, are omitted. So are void
    transforms, and identity fields whose source column is in no schema (the type of their values is unknown).

    Parameters
    ----------
    metadata
        The table's metadata after the upgrade, with expressions.
    derived
        False omits bounds for transforms other than identity: the V4 draft cannot store them, because it has neither
        expressions nor partition summaries.

    Raises
    ------
    OptionError
        A spec that the table does not have, a partition field without an expression, or a row without counts of its
        entries (optional in v1): V4 requires ``record_count``, so read the manifest and count.
    """
    entries = batch.entries
    if entries["record_count"].null_count:
        row = int(np.flatnonzero(np.asarray(entries["record_count"].is_null()))[0])
        raise OptionError(f"row {row} ({entries['location'][row]}) lacks a count of its entries: read the manifest")
    summaries = whole(entries["partition_summaries"])
    spec_ids = whole(entries["partition_spec_id"])
    stats: dict[int, pa.StructArray] = {}
    for spec_id in sorted(build.to_pylist(spec_ids.unique().drop_null())):
        spec = metadata.spec(spec_id)
        if spec is None:
            raise OptionError(f"the table has no partition spec {spec_id}")
        rows = pc.equal(spec_ids, spec_id)
        for column_id, made in _of_spec(cast(AnyListArray, summaries), rows, spec, metadata, derived=derived):
            before = stats.get(column_id)
            stats[column_id] = made if before is None else pc.if_else(rows, made, _like(before, made.type))
    nothing = pa.nulls(len(batch), entries.schema.field("partition_summaries").type)
    upgraded = batch.with_columns(
        status=int(Status.EXISTING), partition_summaries=nothing, file_sequence_number=entries["sequence_number"]
    )
    return EntryBatch(upgraded.entries, stats)


def _like(array: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Cast statistics that come from another spec; the types differ only if one of them is unknown."""
    return cast(pa.StructArray, array if array.type == kind else array.cast(kind))


def _of_spec(
    summaries: AnyListArray, rows: pa.BooleanArray, spec: PartitionSpec, metadata: TableMetadata, *, derived: bool
) -> list[tuple[int, pa.StructArray]]:
    out = []
    for index, f in enumerate(spec.fields):
        if not (is_identity(f) or (derived and derives(f))):
            continue
        type_ = field_type(f, metadata)
        if type_ == PrimitiveType("unknown"):
            continue
        column_id = f.source_id if is_identity(f) else expression_of(metadata, f).expr_id
        out.append((column_id, _statistics(_element(summaries, index, rows), type_)))
    return out


def _element(lists: AnyListArray, index: int, rows: pa.BooleanArray) -> pa.StructArray:
    """Return the summary at this position of each list; null in other rows and where the list is shorter."""
    there = np.asarray(pc.fill_null(pc.greater(pc.list_value_length(lists), index), False)) & np.asarray(rows)
    starts = np.asarray(lists.offsets)[:-1]
    return cast(pa.StructArray, lists.values.take(build.array(np.where(there, starts + index, 0), mask=~there)))


def _statistics(summary: pa.StructArray, type_: Type) -> pa.StructArray:
    lower, _ = decode_values(type_, pc.struct_field(summary, "lower_bound"))
    upper, _ = decode_values(type_, pc.struct_field(summary, "upper_bound"))
    none = pa.nulls(len(summary), pa.int64())
    known: dict[str, Any] = {"lower": lower, "upper": upper}
    known["null_count"] = _zero_where_false(cast(pa.BooleanArray, pc.struct_field(summary, "contains_null")))
    if pa.types.is_floating(lower.type):
        known["nan_count"] = _zero_where_false(cast(pa.BooleanArray, pc.struct_field(summary, "contains_nan")))
    shape = stats_type(lower.type)
    arrays = [known.get(c.name, none if pa.types.is_integer(c.type) else pa.nulls(len(none), c.type)) for c in shape]
    return pa.StructArray.from_arrays(arrays, fields=list(shape), mask=summary.is_null())


def _zero_where_false(flag: pa.BooleanArray) -> Int64s:
    return pc.if_else(pc.fill_null(flag, True), pa.scalar(None, pa.int64()), pa.scalar(0, pa.int64()))
