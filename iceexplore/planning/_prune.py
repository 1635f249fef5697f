"""Which manifests of a root may hold a matching file: by partition summaries, or by a V4 root's own statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import TableState
from iceexplore.manifests import Manifest
from iceexplore.metadata import PartitionSpec, arrow_type, decode_values, partition_type
from iceexplore.planning._evidence import Evidence
from iceexplore.planning._filter import Filter, row_evidence

__all__ = ["may_hold"]


def may_hold(state: TableState, root: Manifest, rows: np.ndarray[Any, Any], wanted: Filter) -> pa.BooleanArray:
    """Which of a root's manifests may hold a matching file.

    Parameters
    ----------
    rows
        Rows of the root, manifests of data files.
    """
    may = np.ones(len(root), dtype=bool)
    specs = np.asarray(pc.fill_null(root.entries["partition_spec_id"], -1))
    for number in np.unique(specs[rows]).tolist():
        at = rows[specs[rows] == number]
        spec = state.metadata.spec(number)
        if spec is None:
            continue  # nobody knows what its tuples mean
        fields = _summaries(state, root, at, spec) or _derived(state, root, at, spec)

        def by_column(field_id: int, at: np.ndarray[Any, Any] = at) -> Evidence | None:
            return _aggregate(root, field_id, at)

        may[at] = np.asarray(wanted.may_leaves(len(at), state.metadata, spec, fields.get, by_column))
    return pa.array(may[rows])


def _aggregate(root: Manifest, field_id: int, at: np.ndarray[Any, Any]) -> Evidence | None:
    """A V4 root's statistics of a column or an expression, for some of its rows."""
    found = root.stats(field_id)
    known = (found.value_count, found.lower, found.null_count)
    if found.type is None or not any(a.is_valid().true_count for a in known):
        return None
    arrays = (found.lower, found.upper, found.value_count, found.null_count, found.nan_count)
    return Evidence(*(a.take(pa.array(at)) for a in arrays))


def _derived(state: TableState, root: Manifest, at: np.ndarray[Any, Any], spec: PartitionSpec) -> dict[str, Evidence]:
    """Evidence by partition field id from a V4 root: identity fields have their column's, others their expression's."""
    out = {}
    for f in spec.fields:
        same = (
            e.expr_id for e in state.metadata.expressions if (e.source_ids, e.transform) == (f.source_ids, f.transform)
        )
        number = f.source_id if f.transform == "identity" else next(same, None)
        found = None if number is None else _aggregate(root, number, at)
        if found is not None:
            out[str(f.field_id)] = found
    return out


def _summaries(state: TableState, root: Manifest, at: np.ndarray[Any, Any], spec: PartitionSpec) -> dict[str, Evidence]:
    """The partition summaries of some rows as evidence by partition field id; a manifest without them knows nothing."""
    column = root.entries["partition_summaries"].take(pa.array(at)).combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    there = np.asarray(pc.equal(lengths, len(spec.fields)))
    if not spec.fields or not there.any():
        return {}
    flat = column.filter(pa.array(there)).flatten()
    places = np.cumsum(there) - 1
    out = {}
    for i, (f, typed) in enumerate(zip(spec.fields, partition_type(spec, state.metadata).fields, strict=True)):
        mine = flat.take(pa.array(np.arange(i, len(flat), len(spec.fields))))
        children = {child.name: pc.struct_field(mine, [j]) for j, child in enumerate(mine.type)}
        bounds = []
        for name in ("lower_bound", "upper_bound"):
            values, _ = decode_values(typed.type, children[name])
            bounds.append(values)
        spread = pa.array(places, mask=~there)
        arrays = [a.take(spread) for a in (*bounds, children["contains_null"], children["contains_nan"])]
        if pa.types.is_null(arrow_type(typed.type)):
            continue
        out[str(f.field_id)] = row_evidence(*arrays)
    return out
