"""``readable_metrics``: each primitive column's statistics, typed (Java's ``MetricsUtil.readableMetricsSchema``)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import Problems, problem
from iceexplore.inspect._shown import conform, shown_type
from iceexplore.manifests import Manifest
from iceexplore.metadata import PrimitiveType, Schema

__all__ = ["Metric", "metrics_of", "metrics_struct", "metrics_type"]


@dataclass(frozen=True)
class Metric:
    """One column in ``readable_metrics``."""

    field_id: int
    name: str
    type: pa.StructType


def metrics_of(schema: Schema) -> list[Metric]:
    """The primitive columns at every depth, sorted by full name as Java sorts strings (by UTF-16 unit)."""
    out = []
    for name, field in schema.walk():
        # a variant is no primitive type
        if isinstance(field.type, PrimitiveType) and field.type.base != "variant":
            bound = shown_type(field.type)
            count = pa.int64()
            kind = pa.struct(
                [
                    pa.field("column_size", count),
                    pa.field("value_count", count),
                    pa.field("null_value_count", count),
                    pa.field("nan_value_count", count),
                    pa.field("lower_bound", bound),
                    pa.field("upper_bound", bound),
                ]
            )
            out.append(Metric(field.field_id, name, kind))
    return sorted(out, key=lambda m: m.name.encode("utf-16-be", "surrogatepass"))


def metrics_type(metrics: list[Metric]) -> pa.StructType:
    """The type of ``readable_metrics``."""
    return pa.struct([pa.field(m.name, m.type) for m in metrics])


def metrics_struct(leaf: Manifest, metrics: list[Metric], problems: Problems) -> pa.StructArray:
    """``readable_metrics`` of a manifest's entries; a bound that does not fit its column's type is null, and noted."""
    arrays = []
    for metric in metrics:
        s = leaf.stats(metric.field_id)
        damaged = int(pc.sum(s.lower_damaged).as_py() or 0) + int(pc.sum(s.upper_damaged).as_py() or 0)
        if damaged:
            text = f"{damaged} bounds of column {metric.name!r} do not fit its type {s.type}."
            problems.add(problem("value-undecodable", leaf.location, text, field=str(metric.field_id), found=damaged))
        bound = metric.type.field("lower_bound").type
        counts = [s.column_size, s.value_count, s.null_count, s.nan_count]
        children = [*counts, conform(s.lower, bound), conform(s.upper, bound)]
        arrays.append(pa.StructArray.from_arrays(children, fields=list(metric.type)))
    if not arrays:  # a struct without fields still has a length
        return pa.Array.from_buffers(pa.struct([]), len(leaf), [None], children=[])
    return pa.StructArray.from_arrays(arrays, fields=list(metrics_type(metrics)))
