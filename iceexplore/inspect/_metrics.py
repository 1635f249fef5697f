"""``readable_metrics``: each primitive column's statistics, typed (Java's ``MetricsUtil.readableMetricsSchema``)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

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
    kinds: dict[PrimitiveType, pa.StructType] = {}  # a hundred thousand columns have few types
    for name, field in schema.walk():
        # a variant is no primitive type
        if not isinstance(field.type, PrimitiveType) or field.type.base == "variant":
            continue
        kind = kinds.get(field.type)
        if kind is None:
            bound = shown_type(field.type)
            count = pa.int64()
            kind = kinds[field.type] = pa.struct(
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
    places: dict[int, list[int]] = {}  # in a damaged schema two columns may have one id
    for place, metric in enumerate(metrics):
        places.setdefault(metric.field_id, []).append(place)
    made = {}
    kinds = {id(m.type): m.type for m in metrics}
    parts = {number: (list(kind), kind.field("lower_bound").type) for number, kind in kinds.items()}
    for s in leaf.stats_of(places):
        damaged = s.lower_damaged.true_count + s.upper_damaged.true_count
        counts = [s.column_size, s.value_count, s.null_count, s.nan_count]
        for place in places[s.field_id]:
            metric = metrics[place]
            if damaged:
                text = f"{damaged} bounds of column {metric.name!r} do not fit its type {s.type}."
                found = problem("value-undecodable", leaf.location, text, field=str(metric.field_id), found=damaged)
                problems.add(found)
            fields, bound = parts[id(metric.type)]
            children = [*counts, conform(s.lower, bound), conform(s.upper, bound)]
            made[place] = pa.StructArray.from_arrays(children, fields=fields)
    arrays = [made[place] for place in range(len(metrics))]
    if not arrays:  # a struct without fields still has a length
        return pa.Array.from_buffers(pa.struct([]), len(leaf), [None], children=[])
    return pa.StructArray.from_arrays(arrays, fields=list(metrics_type(metrics)))
