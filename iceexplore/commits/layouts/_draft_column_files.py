"""Add new column files to data files' entries in the V4 draft, with the statistics of the updated columns.

A column file has newer values of some columns, for all rows of one data file. When a data file gets a new column file,
its older column files lose the columns that the new one has, so that each column is read from one file only. Older
column files without remaining columns are dropped. The data file's entry gets the commit's data sequence number, which
the changed rows inherit (apache/iceberg#16425).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.manifests import ENTRY_SCHEMA, EntryBatch, whole
from iceexplore.metadata import Schema

__all__ = ["leaf_ids", "with_column_files"]


def with_column_files(data: EntryBatch, updates: EntryBatch, writer: CommitWriter) -> EntryBatch:
    """Return data file entries with the new column files added; entries without a new column file stay unchanged.

    Parameters
    ----------
    data
        The data file entries.
    updates
        The new column files, as in `Change.column_files`.
    """
    if not len(updates) or not len(data):
        return data
    at = pc.index_in(whole(data.entries["location"]), value_set=whole(updates.entries["location"]))
    hit = at.is_valid()
    held = build.to_pylist(data.entries["column_files"])
    new = build.to_pylist(updates.entries["column_files"])
    places = build.to_pylist(at)
    lists = [before if n is None else merged(before or (), new[n]) for before, n in zip(held, places, strict=True)]
    columns = {
        "column_files": pa.array(lists, ENTRY_SCHEMA.field("column_files").type),
        "column_files_snapshot_id": pc.if_else(
            hit, pa.scalar(writer.snapshot_id, pa.int64()), data.entries["column_files_snapshot_id"]
        ),
        "sequence_number": pc.if_else(
            hit, pa.scalar(writer.sequence_number, pa.int64()), data.entries["sequence_number"]
        ),
    }
    made = data.with_columns(**columns)
    return EntryBatch(made.entries, _stats(data, updates, places, writer.base.schema), made.partition)


def merged(before: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a data file's old and new column files, newest last; an old file loses the columns that a new one has."""
    taken = {i for one in new for i in one["field_ids"]}
    left = [{**one, "field_ids": [i for i in one["field_ids"] or () if i not in taken]} for one in before]
    return [*(one for one in left if one["field_ids"]), *new]


def leaf_ids(schema: Schema, field_ids: Collection[int]) -> set[int]:
    """Return the ids of top-level columns together with the ids of all fields nested in them."""
    found = set(field_ids)
    for f in schema.fields:
        if f.field_id in found:
            found |= {child.field_id for _, child in Schema(0, (f,)).walk()}
    return found


def _stats(
    data: EntryBatch, updates: EntryBatch, places: Sequence[int | None], schema: Schema
) -> dict[int, pa.StructArray]:
    """Return the statistics of the entries in ``data`` after their new column files are added, by field id.

    A column that is in a data file's new column file gets the statistics of that file, or null if ``updates`` has no
    statistics for the column. All other statistics stay unchanged.

    Parameters
    ----------
    data
        The data file entries.
    updates
        The new column files.
    places
        For each entry in ``data``: the row in ``updates`` with its new column file, or None if it does not get one.
    schema
        The table's schema, to find the fields that are nested in the updated columns.
    """
    rows = np.arange(len(data), dtype=np.int64)
    ids = [
        leaf_ids(schema, [i for one in files for i in one["field_ids"]])
        for files in build.to_pylist(updates.entries["column_files"])
    ]
    touched: dict[int, list[int]] = {}
    for row, n in enumerate(places):
        for i in ids[n] if n is not None else ():
            touched.setdefault(i, []).append(row)
    out = dict(data.stats)
    for i, mine in touched.items():
        mine_new = updates.stats.get(i)
        if i not in data.stats and mine_new is None:
            continue
        kind = data.stats[i].type if mine_new is None else mine_new.type
        before = data.stats[i].cast(kind) if i in data.stats else pa.nulls(len(data), kind)
        after = pa.nulls(len(updates), kind) if mine_new is None else mine_new
        both = build.chunked_array([before, after], kind)
        index = rows.copy()
        index[mine] = [len(data) + cast(int, places[row]) for row in mine]
        out[i] = cast(pa.StructArray, whole(both.take(build.array(index))))
    return out
