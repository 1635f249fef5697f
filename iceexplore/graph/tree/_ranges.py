"""The partition ranges of manifests, as text: from their field summaries or, in V4, their aggregated statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyArray, build, plain_value
from iceexplore.manifests import Manifest
from iceexplore.metadata import (
    Expression,
    PartitionField,
    PartitionSpec,
    TableMetadata,
    Type,
    decode_values,
    human_value,
    parse_transform,
    result_type,
)

__all__ = ["partition_ranges", "range_text", "stats_id"]


def partition_ranges(
    root: Manifest, rows: AnyArray, records: Sequence[Mapping[str, Any]], metadata: TableMetadata
) -> list[list[dict[str, Any]]]:
    """Return the ranges of the partition fields of each manifest, one list per row of a root.

    A range has ``name``, ``lower_bound`` and ``upper_bound`` (texts), ``contains_null`` and ``contains_nan``.
    Below V4 ranges come from the field summaries (spec, "Manifest Lists": field id 507). A V4 root has none: an
    identity field's range is the range of its source column, and any other field's range is the range of its
    expression; ``contains_null`` is then true unless a null count of 0 is known. If a manifest has no statistics of a
    field, everything but the name is None.

    Parameters
    ----------
    rows
        The row numbers of the records in the root.
    """
    columns = metadata.all_fields()
    out = [_summaries(record, metadata, columns) for record in records]
    bare = [
        i
        for i, record in enumerate(records)
        if record["partition_summaries"] is None and record["manifest_stats"] is not None
    ]
    if not bare or not root.stat_field_ids():
        return out
    taken = rows.take(pa.array(bare, pa.int64()))
    for spec_id in {records[i]["partition_spec_id"] for i in bare}:
        spec = None if spec_id is None else metadata.spec(spec_id)
        for field in spec.fields if spec else ():
            made = _aggregated(root, field, taken, _kind(field, columns), metadata.expressions)
            for i, summary in zip(bare, made, strict=True):
                if records[i]["partition_spec_id"] == spec_id and summary is not None:
                    out[i].append(summary)
    return out


def stats_id(field: PartitionField, expressions: Sequence[Expression]) -> int | None:
    """Return the id under which V4 statistics have a partition field's values: a column's or an expression's."""
    if parse_transform(field.transform).is_identity and field.source_ids:
        return field.source_id
    return next((e.expr_id for e in expressions if e.partition_field_id == field.field_id), None)


def _aggregated(
    root: Manifest, field: PartitionField, rows: AnyArray, kind: Type, expressions: Sequence[Expression]
) -> list[dict[str, Any] | None]:
    found = stats_id(field, expressions)
    if parse_transform(field.transform).is_void or found is None:
        return [None] * len(rows)
    stats = root.stats(found)
    bounds = [stats.lower.take(rows), stats.upper.take(rows)]
    nulls = stats.null_count.take(rows).to_pylist()
    nans = build.to_pylist(stats.nan_count.take(rows))
    out: list[dict[str, Any] | None] = []
    for i in range(len(rows)):
        lower, upper = (
            human_value(kind, field.transform, plain_value(b[i])) if b[i].is_valid else None for b in bounds
        )
        known = lower is not None or upper is not None or nulls[i] is not None or nans[i] is not None
        out.append(
            {
                "name": field.name,
                "lower_bound": lower,
                "upper_bound": upper,
                "contains_null": nulls[i] != 0 if known else None,
                "contains_nan": None if nans[i] is None else nans[i] > 0,
            }
        )
    return out


def _kind(field: PartitionField, columns: Mapping[int, Any]) -> Type:
    column = columns.get(field.source_ids[0]) if field.source_ids else None
    return result_type(field.transform, column[1].type if column else None)


def _spec(record: Mapping[str, Any], metadata: TableMetadata) -> PartitionSpec | None:
    spec_id = record["partition_spec_id"]
    return None if spec_id is None else metadata.spec(spec_id)


def _summaries(record: Mapping[str, Any], metadata: TableMetadata, columns: Mapping[int, Any]) -> list[dict[str, Any]]:
    """Return the field summaries of a manifest list's entry, with bounds decoded."""
    spec = _spec(record, metadata)
    summaries = record["partition_summaries"] or []
    out: list[dict[str, Any]] = []
    for field, summary in zip(spec.fields if spec else (), summaries, strict=False):
        if summary is None or parse_transform(field.transform).is_void:
            continue
        kind = _kind(field, columns)
        raw = [summary["lower_bound"], summary["upper_bound"]]
        values, _ = decode_values(kind, pa.array(raw, pa.binary()))
        lower, upper = (
            None if b is None else human_value(kind, field.transform, plain_value(v))
            for b, v in zip(raw, values, strict=True)
        )
        out.append(
            {
                "name": field.name,
                "lower_bound": lower,
                "upper_bound": upper,
                "contains_null": summary["contains_null"],
                "contains_nan": summary["contains_nan"],
            }
        )
    return out


def range_text(summary: Mapping[str, Any]) -> str:
    """Return a range as text: ``kind=a`` or ``ts 2024-01 – 2024-03 or null``."""
    lower, upper = summary["lower_bound"], summary["upper_bound"]
    nulls = " or null" if summary["contains_null"] else ""
    if lower is None and upper is None:
        return f"{summary['name']}={'null' if nulls else '?'}"
    return f"{summary['name']}={lower}{nulls}" if lower == upper else f"{summary['name']} {lower} – {upper}{nulls}"
