"""Partition summaries of a manifest list: spec, "field_summary"; Java's ``PartitionSummary``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._aggregate_stats import extremes
from iceexplore.manifests.encode._partition_tuple import field_type, tuple_column
from iceexplore.metadata import PrimitiveType, TableMetadata, Type, arrow_type, encode_values

__all__ = ["partition_summaries"]


def partition_summaries(batch: EntryBatch, metadata: TableMetadata, spec_id: int) -> list[dict[str, Any]]:
    """One summary per field of the spec: bounds over the values that are neither null nor NaN, untruncated.

    Raises
    ------
    OptionError
        The table has no such spec, or values do not fit their type.
    """
    spec = metadata.spec(spec_id)
    if spec is None:
        raise OptionError(f"the table has no partition spec {spec_id}")
    out = []
    for f in spec.fields:
        type_ = field_type(f, metadata)
        out.append(_summary(tuple_column(batch, f, type_), type_))
    return out


def _summary(values: pa.Array, type_: Type) -> dict[str, Any]:
    contains_null, contains_nan = values.null_count > 0, False
    values = values.drop_null()
    if pa.types.is_floating(values.type):
        nan = pc.is_nan(values)
        contains_nan = bool(pc.any(nan).as_py())
        values = values.filter(pc.invert(nan))
    raw = [None, None]
    if len(values):
        raw = encode_values(_stored(type_, values.type), pa.concat_arrays(extremes(values))).to_pylist()
    return {"contains_null": contains_null, "contains_nan": contains_nan, "lower_bound": raw[0], "upper_bound": raw[1]}


def _stored(type_: Type, kind: pa.DataType) -> Type:
    """The type to encode by: the field's, or, where that is not known, the one that its values have in memory."""
    if arrow_type(type_) == kind:
        return type_
    found = next((name for name in _BY_ARROW if arrow_type(PrimitiveType(name)) == kind), "binary")
    return PrimitiveType(found)


_BY_ARROW = (
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
    "timestamptz_ns", "string", "uuid", "binary",
)  # fmt: skip
