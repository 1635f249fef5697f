"""Which manifests of deletes may hold one that applies to some data files, told by their entries in the root."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.graph import ROOT_DIALECTS, TableState
from iceexplore.manifests import EntryBatch, Manifest, bool_array, whole
from iceexplore.metadata import PartitionSpec, decode_values, partition_type
from iceexplore.planning.delete_index._codes import Ints, Mask, ranks
from iceexplore.planning.evaluators._manifest_evaluator import ManifestWitnesses

__all__ = ["concerned"]


def concerned(state: TableState, root: Manifest, rows: list[int], files: EntryBatch) -> list[int]:
    """The rows of a root whose deletes may apply to some of these data files; nothing is read.

    The number at which a manifest was added is at least that of each delete in it, so that it is left out if that is
    below every data file's. In versions 1 to 3 a manifest is of one spec, and its partition summaries say of each
    field which values there are: it is left out if no data file of the spec has one of them. An unpartitioned spec
    stays, as its equality deletes are global. A V4 root has statistics of the fields' columns and expressions instead,
    and its manifests need not be of one spec: see `_near_by_statistics`.
    """
    if not len(files) or not rows:
        return []
    at = np.array(rows, dtype=np.int64)
    picked = root.entries.take(pa.array(at))
    oldest = pc.min(pc.fill_null(files.entries["sequence_number"], 0)).as_py()
    keep = ~bool_array(pc.less(picked["sequence_number"], oldest))
    if root.dialect not in ROOT_DIALECTS:
        numbers = np.asarray(pc.fill_null(whole(picked["partition_spec_id"]), -1))
        for number in np.unique(numbers).tolist():
            spec = state.metadata.spec(number)
            if spec is not None and not spec.is_unpartitioned:
                mine = numbers == number
                keep[mine] &= _near(state, picked.filter(pa.array(mine)), spec, files)
    else:
        keep &= _near_by_statistics(state, root, at, files)
    return [int(row) for row in at[keep]]


def _near_by_statistics(state: TableState, root: Manifest, rows: Ints, files: EntryBatch) -> Mask:
    """Judge which manifests of a V4 root may hold a delete for one of the data files, by the root's statistics.

    A V4 manifest may hold entries of any spec, whatever spec its own entry names, and statistics of a partition field's
    column do not bound deletes of a spec without that field. So a manifest is left out only where no such delete could
    apply: all data files are of the spec that the root gives the manifest (deletes of other specs do not apply to
    them), and the table has no unpartitioned spec, whose equality deletes are global. A field of which some data file's
    value is null or NaN is not judged: a null may also be a value that could not be rebuilt from statistics.
    """
    near = np.ones(len(rows), dtype=bool)
    numbers = pc.unique(whole(files.entries["partition_spec_id"])).to_pylist()
    spec = state.metadata.spec(numbers[0]) if len(numbers) == 1 and numbers[0] is not None else None
    if spec is None or files.partition is None or any(s.is_unpartitioned for s in state.metadata.partition_specs):
        return near
    named = whole(root.entries["partition_spec_id"]).take(pa.array(rows))
    mine = bool_array(pc.equal(named, spec.spec_id))
    if not mine.any():
        return near
    witnesses = ManifestWitnesses(state, root, rows, statistics=False)
    for key, evidence in witnesses.fields(spec, mine).items():
        index = files.partition.type.get_field_index(key)
        values = None if index < 0 else pc.unique(pc.struct_field(files.partition, [index]))
        if values is None or values.null_count:
            continue
        if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
            continue
        order = ranks(evidence.lower, evidence.upper, values)
        if order is not None:
            near &= ~mine | _between(*order)
    return near


def _between(lowest: Ints, highest: Ints, values: Ints) -> Mask:
    """Return which ranges of ranks hold one of the values; a bound below 0 is unknown and excludes nothing."""
    highest = np.where(highest < 0, np.iinfo(np.int64).max, highest)
    there = np.sort(values[values >= 0])
    found: Mask = np.searchsorted(there, lowest, "left") < np.searchsorted(there, highest, "right")
    return found


def _near(state: TableState, manifests: pa.Table, spec: PartitionSpec, files: EntryBatch) -> Mask:
    """Which manifests of a spec may have the partition of one of its data files."""
    near = np.ones(len(manifests), dtype=bool)
    same = pc.fill_null(pc.equal(whole(files.entries["partition_spec_id"]), spec.spec_id), False)
    tuples = None if files.partition is None else files.partition.filter(same)
    if not same.true_count:
        return ~near
    summaries = whole(manifests["partition_summaries"])
    there = bool_array(pc.equal(pc.list_value_length(summaries), len(spec.fields)))
    if tuples is None or not there.any():
        return near
    flat = summaries.filter(pa.array(there)).flatten()
    for i, (field, typed) in enumerate(zip(spec.fields, partition_type(spec, state.metadata).fields, strict=True)):
        index = tuples.type.get_field_index(str(field.field_id))
        if index < 0:
            continue
        values = pc.unique(pc.struct_field(tuples, [index]))
        one = flat.take(pa.array(np.arange(i, len(flat), len(spec.fields))))
        near[there] &= _has_one(one, typed.type, values)
    return near


def _has_one(summary: pa.StructArray, kind: Any, values: pa.Array) -> Mask:
    """Which summaries of one field admit one of these values."""
    low, low_damaged = decode_values(kind, pc.struct_field(summary, "lower_bound"))
    high, high_damaged = decode_values(kind, pc.struct_field(summary, "upper_bound"))
    order = ranks(low, high, values)
    if order is None:
        return np.ones(len(summary), dtype=bool)
    lowest, highest, there = order
    turned = (highest >= 0) & (lowest > highest)  # the wrong way round they say nothing, as in delete files
    found = _between(lowest, highest, there)
    found |= bool_array(low_damaged) | bool_array(high_damaged) | turned
    if values.null_count:
        found |= bool_array(pc.fill_null(pc.struct_field(summary, "contains_null"), True))
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        found |= bool_array(pc.fill_null(pc.struct_field(summary, "contains_nan"), True))
    return found
