"""Merge synthetic files as a compaction would, using counts and statistics only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic import synthetic_folder, uuid_strings
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch
from iceexplore.planning import comparable
from iceexplore.writing import StatColumn, partition_path, stat_columns, stats_arrays

__all__ = ["merged_files"]


def merged_files(
    state: TableState,
    writer: CommitWriter,
    group: EntryBatch,
    positions: dict[str, Any],
    files: int,
    sequence: int | None,
) -> EntryBatch:
    """Return the synthetic files that replace some files of one partition.

    Rows and bytes are added up, without the rows deleted by position and their share of the bytes, and distributed
    evenly over the new files; each of these gets the bounds of all merged files. Null and NaN counts shrink with the
    rows, as if the deletes were random.

    Parameters
    ----------
    group
        Entries with statistics, all of one spec and partition.
    positions
        Deleted positions by data file.
    """
    names = build.to_pylist(group.entries["location"])
    counts = np.array(build.to_pylist(group.entries["record_count"]), dtype=np.int64)
    sizes = np.array([s or 0 for s in build.to_pylist(group.entries["file_size_in_bytes"])], dtype=np.float64)
    left = np.array([max(0, c - len(positions.get(n, ()))) for c, n in zip(counts.tolist(), names, strict=True)])
    share = np.where(counts > 0, left / np.maximum(counts, 1), 1.0)
    total = int(left.sum())
    if not total:
        return EntryBatch.empty()
    files = min(files, total)
    each = np.full(files, total // files, dtype=np.int64)
    each[: total % files] += 1
    spec_id = group.entries["partition_spec_id"][0].as_py()
    first = None if group.partition is None else group.partition.slice(0, 1)
    one = EntryBatch.of_rows([{"partition_spec_id": spec_id}], partition=first)
    folder = synthetic_folder(state.metadata.location) + partition_path(one, 0, state.metadata)
    rng = np.random.default_rng(writer.names.getrandbits(64))
    bytes_ = float((sizes * share).sum())
    rows = [
        {
            "content_type": int(ContentType.DATA),
            "location": f"{folder.rstrip('/')}/{name}.parquet",
            "file_format": "parquet",
            "partition_spec_id": spec_id,
            "sort_order_id": 0,
            "record_count": int(count),
            "file_size_in_bytes": int(bytes_ * count / total),
            "sequence_number": sequence,
        }
        for name, count in zip(build.to_pylist(uuid_strings(rng, files)), each.tolist(), strict=True)
    ]
    columns = [c for c in stat_columns(state.metadata, state.schema) if c.field.field_id in group.stats]
    stats = [
        {c.field.field_id: _merged(c, group.stats[c.field.field_id], share, counts, int(n), total) for c in columns}
        for n in each.tolist()
    ]
    partition = None if first is None else pa.concat_arrays([first] * files)
    return EntryBatch.of_rows(rows, stats=stats_arrays(columns, stats), partition=partition)


def _merged(
    column: StatColumn, stats: pa.StructArray, share: np.ndarray[Any, Any], counts: np.ndarray[Any, Any], rows: int,
    total: int,
) -> dict[str, Any]:  # fmt: skip
    out: dict[str, Any] = {}
    children = {f.name: pc.struct_field(stats, [i]) for i, f in enumerate(stats.type)}
    part = rows / total
    for name in ("value_count", "null_count", "nan_count", "column_size"):
        array = children[name]
        if array.null_count:
            continue  # unknown for one file, so unknown for all
        numbers = np.asarray(array)
        # Counts of no rows or all rows stay exact, whichever rows were deleted.
        kept = np.where(numbers == counts, numbers * share, np.floor(numbers * share))
        out[name] = round(float(kept.sum()) * part)
    if not column.repeated and "value_count" in out:
        out["value_count"] = rows
        for name in ("null_count", "nan_count"):
            if name in out:
                out[name] = min(rows, out[name])
    null, value = children["null_count"], children["value_count"]
    without = pc.fill_null(pc.equal(null, value), False)  # files without values need no bounds
    for name, pick in (("lower", 0), ("upper", -1)):
        array = children[name]
        if pc.any(pc.and_(array.is_null(), pc.invert(without))).as_py():
            continue
        known = array.drop_null()
        if len(known):
            out[name] = known[pc.sort_indices(comparable(known))[pick].as_py()]
    for name in ("average_length", "max_length"):
        if len(known := children[name].drop_null()):
            out[name] = round(pc.mean(known).as_py()) if name == "average_length" else pc.max(known).as_py()
    return out
