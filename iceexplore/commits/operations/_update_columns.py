"""Update columns of data files by column files, which the V4 draft has: the data files themselves stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic import synthetic_column_files
from iceexplore.commits.layouts._draft_column_files import leaf_ids
from iceexplore.commits.live_files._find import LocationsLike, applied_deletes, live_files, locations_of, must_be_live
from iceexplore.commits.model._change import ADDED_COLUMN_FILES, Change
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.operations._whole_files import base_id
from iceexplore.errors import MemoryLimitError, OptionError, RuleError, nearest
from iceexplore.formats import FIELD_ID
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, bool_array, whole
from iceexplore.metadata import NestedField
from iceexplore.reading import LAST_UPDATED, arrow_fields, is_synthetic, read_data_file
from iceexplore.storage import memory_limit
from iceexplore.writing import (
    arrow_frame,
    fit_columns,
    is_array,
    set_values,
    stat_columns,
    stats_arrays,
    write_column_file,
)

__all__ = ["update_columns"]

_RULE = "column-updates"


def update_columns(
    state: TableState,
    writer: CommitWriter,
    columns: str | Iterable[str] | Mapping[str, Any],
    paths: LocationsLike | None = None,
) -> Change:
    """Give data files newer values of some columns, in column files of their own.

    A column file has a row for each row of its data file, deleted ones included. The data file is not rewritten; its
    entry lists the new column file, and older column files lose the columns that the new one has (apache/iceberg
    #16285, #16425).

    Parameters
    ----------
    columns
        Values by column: constants, or functions of the file's rows (an Arrow table) that return a value for each. Or
        names of columns: synthetic column files, with plausible sizes and statistics and no data.
    paths
        Locations of the data files; by default all.

    Raises
    ------
    OptionError
        A column does not exist or cannot be updated, a value does not fit, or there are no data files.
    RuleError
        ``column-updates``: the commit does not write the V4 draft, a partition field is derived from a column, or
        deletes apply to a data file that match it by sequence number. ``files-exist``: a data file is not live.
    """
    if not writer.options.deletion_vectors_on_entries:
        raise RuleError(
            _RULE,
            "column files are part of the V4 draft only: simulate(format_version=4, dialect='v4-draft'). "
            "In other formats, overwrite the data files",
        )
    fields, values = _columns(state, columns)
    files = live_files(state) if paths is None else must_be_live(state, locations_of(paths))[0]
    if not len(files):
        raise OptionError("update_columns: the table has no data files")
    _refuse_partition_sources(state, files, fields)
    _refuse_old_deletes(state, files)
    names = build.to_pylist(files.entries["location"])
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise RuleError("duplicate-file", f"the table lists {twice} more than once: the entry to change is ambiguous")
    made = _synthetic(state, writer, files, fields) if values is None else _written(state, writer, files, values)
    records, stats = made
    rows = [
        {**row, "column_files": [record]}
        for row, record in zip(
            files.entries.select(["content_type", "location", "partition_spec_id"]).to_pylist(), records, strict=True
        )
    ]
    return Change(
        "overwrite",
        column_files=EntryBatch.of_rows(rows, stats=stats),
        base_snapshot_id=base_id(state),
        conflict_files=frozenset(names),
        summary={ADDED_COLUMN_FILES: str(len(rows))},
    )


def _columns(
    state: TableState, columns: str | Iterable[str] | Mapping[str, Any]
) -> tuple[list[NestedField], Mapping[str, Any] | None]:
    """Return the fields to update, and their values; None for synthetic ones."""
    given: Any = columns
    by_name = {f.name: f for f in state.schema.fields}
    if isinstance(given, str):
        given = [given]
    if isinstance(given, bytes) or not hasattr(given, "__iter__"):
        raise OptionError(f"columns={given!r}: give names of columns, or values by column")
    names = list(dict.fromkeys(given))
    if not names:
        raise OptionError("columns: no columns given")
    for name in names:
        if name not in by_name:
            raise OptionError(
                f"columns: no column {name!r} at the top level of the schema; {nearest(str(name), list(by_name))}"
            )
    fields = [by_name[name] for name in names]
    if not isinstance(given, Mapping):
        return fields, None
    for name, value in given.items():
        if is_array(value):
            raise OptionError(f"columns: {name!r} is an array, and files have different rows: give a function of them")
    return fields, given


def _refuse_partition_sources(state: TableState, files: EntryBatch, fields: Sequence[NestedField]) -> None:
    """Refuse columns from which partition values of the files are derived, as these would no longer be true."""
    ids = leaf_ids(state.schema, [f.field_id for f in fields])
    for spec_id in build.to_pylist(files.entries["partition_spec_id"].unique()):
        spec = state.metadata.spec(spec_id)
        for f in () if spec is None else spec.fields:
            if ids & set(f.source_ids):
                raise RuleError(
                    _RULE,
                    f"the partition field {f.name!r} of {_first(files, spec_id)} is derived from a column to update; "
                    "overwrite the data files instead, which puts rows into their partitions",
                )


def _first(files: EntryBatch, spec_id: int) -> str:
    mine = pc.equal(files.entries["partition_spec_id"], spec_id)
    return str(files.entries["location"].filter(mine)[0].as_py())


def _refuse_old_deletes(state: TableState, files: EntryBatch) -> None:
    """Refuse data files with deletes that match by sequence number: the update raises that of the data file."""
    matched = applied_deletes(state, files, replaced=False)
    if not len(matched):
        return
    count = pc.add(pc.list_value_length(matched.positions), pc.list_value_length(matched.equality))
    hit = np.flatnonzero(bool_array(pc.greater(count, 0)))
    if len(hit):
        where = files.entries["location"][int(hit[0])].as_py()
        raise RuleError(
            _RULE,
            f"equality deletes or position delete files apply to {where}, and no longer would after the update, which "
            "raises its data sequence number: rewrite them first, with compact(paths)",
        )


_Made = tuple[Sequence[Mapping[str, Any]], dict[int, Any]]


def _synthetic(state: TableState, writer: CommitWriter, files: EntryBatch, fields: Sequence[NestedField]) -> _Made:
    rows = np.asarray(whole(pc.fill_null(files.entries["record_count"], 0)), np.int64)
    locations, sizes, stats = synthetic_column_files(state, {f.name for f in fields}, rows, writer)
    ids = [*(f.field_id for f in fields), LAST_UPDATED.field_id]
    records = [
        {
            "field_ids": ids,
            "location": location,
            "file_format": "parquet",
            "file_size_in_bytes": size,
            "format_version": state.metadata.format_version,
        }
        for location, size in zip(locations, sizes.tolist(), strict=True)
    ]
    return records, stats


def _written(state: TableState, writer: CommitWriter, files: EntryBatch, values: Mapping[str, Any]) -> _Made:
    """Write the column files; the rows of one data file are in memory at a time."""
    for name in build.to_pylist(files.entries["location"]):
        if is_synthetic(name):
            raise OptionError(
                f"{name} is a synthetic file without rows: give names of columns, for synthetic column files"
            )
    needed = list(state.schema.fields) if any(map(callable, values.values())) else []
    records: list[Mapping[str, Any]] = []
    stats: list[Mapping[int, Mapping[str, Any]]] = []
    for row in range(len(files)):
        file = files.take(pa.array([row]))
        table = _new_columns(state, file, needed, values)
        record, found = write_column_file(state, writer, table)
        records.append(record)
        stats.append(found)
    wanted = [c for c in stat_columns(state.metadata, state.schema) if c.path[0] in values]
    return records, stats_arrays(wanted, stats)


def _new_columns(
    state: TableState, file: EntryBatch, needed: Collection[NestedField], values: Mapping[str, Any]
) -> pa.Table:
    """Return the new columns of a data file, and the one that makes all rows inherit the commit's sequence number."""
    parts, size, limit = [], 0, memory_limit()
    for part in read_data_file(state, file, list(needed)):
        parts.append(part)
        size += part.nbytes
        if size > limit:
            raise MemoryLimitError(
                f"{file.entries['location'][0]} has more than {limit:,} bytes of rows: raise the limit "
                "(iceexplore.memory_limit('8 GiB')), or update it with constants"
            )
    old = pa.concat_tables(parts) if parts else pa.schema(arrow_fields(list(needed))).empty_table()
    rows = old.drop_columns(["_pos"]) if parts and needed else old
    new = set_values(rows, values, what="columns")
    made = fit_columns(arrow_frame(new, state.schema), state.schema, complete=False)
    inherited = pa.field(LAST_UPDATED.name, pa.int64(), metadata={FIELD_ID: str(LAST_UPDATED.field_id)})
    return made.append_column(inherited, pa.nulls(made.num_rows, pa.int64()))
