"""``readable_metrics``: typed metrics of each primitive column (Java's ``MetricsUtil.readableMetricsSchema``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from iceexplore.errors import Problems, problem
from iceexplore.inspect._shown import conform, shown_type
from iceexplore.manifests import ColumnStats, Manifest
from iceexplore.metadata import PrimitiveType, Schema

__all__ = ["Metric", "metrics_of", "metrics_struct", "metrics_type"]


@dataclass(frozen=True)
class Metric:
    """One column in ``readable_metrics``."""

    field_id: int
    name: str
    type: pa.StructType


def metrics_of(schema: Schema) -> list[Metric]:
    """Return the primitive columns at every depth, sorted by full name in UTF-16 code units, as Java sorts strings."""
    out = []
    kinds: dict[PrimitiveType, pa.StructType] = {}  # a type is built once: wide tables have many columns of few types
    for name, field in schema.walk():
        if not isinstance(field.type, PrimitiveType):
            continue
        kind = kinds.get(field.type)
        if kind is None:
            if field.type.base == "variant":  # not a primitive type in the spec
                continue
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
    """Return the type of ``readable_metrics``."""
    return pa.struct([pa.field(m.name, m.type) for m in metrics])


def metrics_struct(leaf: Manifest, metrics: list[Metric], kind: pa.StructType, problems: Problems) -> pa.StructArray:
    """Build ``readable_metrics`` of a manifest's entries; a bound that does not fit its column's type becomes null.

    Each column with such bounds adds a problem.

    Parameters
    ----------
    kind
        The type that `metrics_type` returns for the metrics.
    """
    places: dict[int, list[int]] = {}  # in a damaged schema two columns may have one id
    for place, metric in enumerate(metrics):
        places.setdefault(metric.field_id, []).append(place)
    rows = len(leaf)
    arrays: list[Any] = [None] * len(metrics)
    for ids, s in leaf.stats_blocks(places):
        _note_damage(leaf, [(metrics[place], n) for n, i in enumerate(ids) for place in places[i]], s, problems)
        # All columns of one type share one struct array: one array per column takes seconds for 200,000 columns.
        structs: dict[int, pa.StructArray] = {}
        for n, field_id in enumerate(ids):
            for place in places[field_id]:
                wanted = metrics[place].type
                found = structs.get(id(wanted))
                if found is None:
                    found = structs[id(wanted)] = _struct(s, wanted)
                arrays[place] = found.slice(n * rows, rows)
    if not arrays:  # without children, the struct's length must be given
        return cast(pa.StructArray, pa.Array.from_buffers(pa.struct([]), rows, [None], children=[]))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _struct(s: ColumnStats, kind: pa.StructType) -> pa.StructArray:
    bound = kind.field("lower_bound").type
    counts = [s.column_size, s.value_count, s.null_count, s.nan_count]
    return pa.StructArray.from_arrays([*counts, conform(s.lower, bound), conform(s.upper, bound)], fields=list(kind))


def _note_damage(leaf: Manifest, columns: list[tuple[Metric, int]], s: ColumnStats, problems: Problems) -> None:
    """Add a problem for each column with bounds that do not fit its type; ``s`` has the columns concatenated."""
    if not s.lower_damaged.true_count + s.upper_damaged.true_count:
        return
    rows = len(leaf)
    for metric, n in columns:
        both = (s.lower_damaged.slice(n * rows, rows), s.upper_damaged.slice(n * rows, rows))
        damaged = sum(mask.true_count for mask in both)
        if damaged:
            text = f"{damaged} bounds of column {metric.name!r} do not fit its type {s.type}."
            found = problem("value-undecodable", leaf.location, text, field=str(metric.field_id), found=damaged)
            problems.add(found)
