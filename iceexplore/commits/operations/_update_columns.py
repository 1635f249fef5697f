"""Update columns by writing column files (V4 draft) for data files, without rewriting the data files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic import synthetic_column_files
from iceexplore.commits.layouts._draft_column_files import leaf_ids
from iceexplore.commits.live_files._find import LocationsLike, applied_deletes, live_files, locations_of, must_be_live
from iceexplore.commits.model._change import ADDED_COLUMN_FILES, Change, NothingToDo
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.operations._planned import manifests_of, planned
from iceexplore.commits.operations._whole_files import base_id
from iceexplore.errors import MemoryLimitError, OptionError, RuleError, nearest
from iceexplore.expressions import FilterLike
from iceexplore.formats import FIELD_ID
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, bool_array, whole
from iceexplore.metadata import NestedField
from iceexplore.planning import FileTasks
from iceexplore.reading import LAST_UPDATED, POS, TaskReader, arrow_fields, is_synthetic, outputs_of, read_data_file
from iceexplore.storage import memory_limit
from iceexplore.writing import (
    arrow_frame,
    file_schema,
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
    *,
    where: FilterLike | None = None,
) -> Change:
    """Write newer values of some columns of data files to column files.

    A column file has a row for each row of its data file, deleted ones included. The data file is not rewritten: its
    entry lists the new column file, and no longer lists the updated columns for older column files (apache/iceberg
    #16285, #16425).

    In the draft, a column file always covers all rows of its data file. With ``where`` the new column files therefore
    also have the old values of the rows that do not match, with the old ``_last_updated_sequence_number`` of these
    rows, so that only the matching rows count as updated. Data files without a matching row get no column file.

    Parameters
    ----------
    columns
        Values by column: constants, or functions that get the rows to update (an Arrow table) and return a value for
        each row; a function is called once per data file. If only names of columns are given, the column files are
        synthetic: plausible sizes and statistics, but no data.
    paths
        Locations of the data files; by default all.
    where
        Update only the live rows that match, which are found by reading the data files. Data files that a concurrent
        commit adds then conflict if they may have matching rows. If ``columns`` are only names, no rows are read: every
        data file that may have matching rows gets a column file.

    Raises
    ------
    NothingToDo
        No row (with ``paths``, no row of these files) matches ``where``.
    OptionError
        A column does not exist or cannot be updated, a value does not fit, the filter is invalid, or there are no data
        files.
    MemoryLimitError
        The rows of a data file have more bytes than the memory limit.
    RuleError
        ``column-updates``: the table does not have the format of the V4 draft; a partition field is derived from one of
        the columns; or equality deletes or position delete files apply to a data file, and would no longer apply after
        the update, which raises the data file's sequence number.
        ``files-exist``: a data file is not live. ``duplicate-file``: the table lists a data file more than once.
    """
    if not writer.options.deletion_vectors_on_entries:
        raise RuleError(
            _RULE,
            "column files are part of the V4 draft only: simulate(format_version=4, dialect='v4-draft'). "
            "In other formats, overwrite the data files",
        )
    fields, values = _columns(state, columns)
    chosen = None if where is None else planned(state, writer, where)
    files = _files(state, paths, None if chosen is None else chosen[1])
    manifests = None if chosen is None else manifests_of(state, chosen[1])
    names = build.to_pylist(files.entries["location"])
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise RuleError("duplicate-file", f"the table lists {twice} more than once: the entry to change is ambiguous")
    hits = None if chosen is None or values is None else _matching(state, chosen[1], names)
    if hits is not None:
        files = files.filter(pa.array([name in hits for name in names], pa.bool_()))
        names = build.to_pylist(files.entries["location"])
    if not names:
        # With ``paths``, rows of other files may still match, so the message then refers to the given files only.
        among = "" if paths is None else "of the given files "
        raise NothingToDo(f"nothing to commit: no row {among}matches")
    _refuse_partition_sources(state, files, fields)
    _refuse_old_deletes(state, files, manifests)
    made = _synthetic(state, writer, files, fields) if values is None else _written(state, writer, files, values, hits)
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
        data_manifests=manifests,
        base_snapshot_id=base_id(state),
        # Without ``where``, files that a concurrent commit adds do not conflict. With ``where``, they conflict if they
        # may have matching rows: as in an SQL UPDATE, this operation should have updated these rows, too.
        conflict_partitions=frozenset() if chosen is None else None,
        conflict_filter=None if chosen is None else chosen[0],
        conflict_files=frozenset(names),
        summary={ADDED_COLUMN_FILES: str(len(rows))},
    )


def _files(state: TableState, paths: LocationsLike | None, tasks: FileTasks | None) -> EntryBatch:
    """Return the live data files to consider.

    Parameters
    ----------
    paths
        Return only data files at these locations. If None, data files at any location are returned.
    tasks
        The result of planning a scan with a filter: return only data files that the plan contains, because other files
        cannot have matching rows. None if the user has given no filter.

    Raises
    ------
    OptionError
        ``tasks`` is None, and there are no data files to return.
    RuleError
        ``files-exist``: a file in ``paths`` is not live.
    """
    named = None if paths is None else must_be_live(state, locations_of(paths))[0]
    if tasks is None:
        files = live_files(state) if named is None else named
        if not len(files):
            raise OptionError("update_columns: the table has no data files")
        return files
    files = EntryBatch(tasks.files.entries, {}, tasks.files.partition)
    if named is not None:
        files = files.filter(pc.is_in(whole(files.entries["location"]), value_set=whole(named.entries["location"])))
    return files


def _matching(state: TableState, tasks: FileTasks, names: Collection[str]) -> dict[str, npt.NDArray[np.int64]]:
    """Return the positions of the live rows that match the plan's filter, by data file location.

    Data files without a matching row are not in the result.

    Parameters
    ----------
    tasks
        The plan, whose data files are read.
    names
        Locations of the data files to read; other files in the plan are ignored.

    Raises
    ------
    OptionError
        A file is synthetic, so that it has no rows to read.
    """
    reader = TaskReader(state, tasks, outputs_of(state, [POS.name]))
    found = {}
    for row, name in enumerate(build.to_pylist(tasks.files.entries["location"])):
        if name not in names:
            continue
        _refuse_synthetic(name)
        parts = [np.asarray(part.table[POS.name]) for part in reader.read(row)]
        positions = np.concatenate([np.zeros(0, np.int64), *parts])
        if len(positions):
            found[name] = positions
    return found


def _columns(
    state: TableState, columns: str | Iterable[str] | Mapping[str, Any]
) -> tuple[list[NestedField], Mapping[str, Any] | None]:
    """Return the fields to update, and the new values by column name.

    If ``columns`` has only names, the second item is None, and the column files will be synthetic.

    Raises
    ------
    OptionError
        ``columns`` is empty or not of an accepted type, a column is not at the top level of the schema, or a value is
        an array.
    """
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
            raise OptionError(
                f"columns: {name!r} is an array, but each file has its own rows; give a function that takes the "
                "rows of a file and returns the column's values"
            )
    return fields, given


def _refuse_partition_sources(state: TableState, files: EntryBatch, fields: Sequence[NestedField]) -> None:
    """Refuse to update a column from which a partition field is derived.

    A column update leaves each row in its data file, and each data file in its partition. With new values in such a
    column, the partition could be wrong for the row.

    Parameters
    ----------
    files
        The data files to update. Only their partition specs are checked.
    fields
        The columns to update.

    Raises
    ------
    RuleError
        ``column-updates``: a partition field is derived from one of the columns, or from a field nested in it.
    """
    ids = leaf_ids(state.schema, [f.field_id for f in fields])
    for spec_id in build.to_pylist(files.entries["partition_spec_id"].unique()):
        spec = state.metadata.spec(spec_id)
        for f in () if spec is None else spec.fields:
            if ids & set(f.source_ids):
                raise RuleError(
                    _RULE,
                    f"the partition field {f.name!r} of {_first(files, spec_id)} is derived from a column to update; "
                    "overwrite the data files instead, so that each row is written to the partition of its new value",
                )


def _first(files: EntryBatch, spec_id: int) -> str:
    mine = pc.equal(files.entries["partition_spec_id"], spec_id)
    return str(files.entries["location"].filter(mine)[0].as_py())


def _refuse_old_deletes(state: TableState, files: EntryBatch, manifests: frozenset[str] | None) -> None:
    """Refuse data files to which equality deletes or position delete files apply.

    A delete file applies only to data files with a lower sequence number than its own; position deletes also apply if
    the numbers are equal. The update raises a data file's sequence number, so that earlier deletes would no longer
    apply, and deleted rows would reappear.

    Parameters
    ----------
    files
        The data files to update.
    manifests
        Locations of the data manifests that list ``files``; None if they are not known. If they are known, other data
        manifests need not be read in the V4 draft, in which data manifests also list deletion vectors.

    Raises
    ------
    RuleError
        ``column-updates``: such deletes apply to one of the files.
    """
    matched = applied_deletes(state, files, replaced=False, manifests=manifests)
    if not len(matched):
        return
    count = pc.add(pc.list_value_length(matched.positions), pc.list_value_length(matched.equality))
    hit = np.flatnonzero(bool_array(pc.greater(count, 0)))
    if len(hit):
        where = files.entries["location"][int(hit[0])].as_py()
        raise RuleError(
            _RULE,
            f"equality deletes or position delete files apply to {where}, but no longer would after the update, which "
            "raises the data file's sequence number: rewrite the data file first, with compact(paths)",
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


def _refuse_synthetic(name: str) -> None:
    if is_synthetic(name):
        raise OptionError(f"{name} is a synthetic file without rows: give names of columns, for synthetic column files")


def _written(
    state: TableState,
    writer: CommitWriter,
    files: EntryBatch,
    values: Mapping[str, Any],
    hits: Mapping[str, npt.NDArray[np.int64]] | None,
) -> _Made:
    """Write a column file for each data file.

    The data files are processed one after the other, so that only the rows of one file are in memory at a time.

    Two values are returned. The first is a list with one record for each column file, for the field ``column_files`` of
    the data file's manifest entry. The second has the statistics of the updated columns by field id: an Arrow array
    with one item for each column file.

    Parameters
    ----------
    values
        Constants, or functions that compute the new values, by column.
    hits
        The positions of the rows to update, by data file location; None to update all rows.

    Raises
    ------
    OptionError
        A data file is synthetic, so that it has no rows.
    """
    names = build.to_pylist(files.entries["location"])
    for name in names:
        _refuse_synthetic(name)
    needed = list(state.schema.fields) if any(map(callable, values.values())) else []
    records: list[Mapping[str, Any]] = []
    stats: list[Mapping[int, Mapping[str, Any]]] = []
    for row, name in enumerate(names):
        file = files.take(pa.array([row]))
        table = _new_columns(state, file, needed, values, None if hits is None else hits[name])
        record, found = write_column_file(state, writer, table)
        records.append(record)
        stats.append(found)
    wanted = [c for c in stat_columns(state.metadata, state.schema) if c.path[0] in values]
    return records, stats_arrays(wanted, stats)


def _new_columns(
    state: TableState,
    file: EntryBatch,
    needed: Sequence[NestedField],
    values: Mapping[str, Any],
    hit: npt.NDArray[np.int64] | None,
) -> pa.Table:
    """Return the content of a column file: all rows of the updated columns and of ``_last_updated_sequence_number``.

    ``_last_updated_sequence_number`` is null in updated rows, so that readers use the commit's sequence number for
    them. Other rows keep their old number.

    Parameters
    ----------
    file
        The entry of the data file, as a batch of length 1.
    needed
        The columns that functions in ``values`` may read; empty if all values are constants.
    values
        The new values by column: constants, or functions that compute them from the rows to update.
    hit
        The positions of the rows to update; None to update all rows.
    """
    old = _rows(state, file, [*needed, LAST_UPDATED])
    # If ``needed`` is empty, ``old`` has only the column ``_last_updated_sequence_number``. Do not drop it: an Arrow
    # table without columns would lose the number of rows.
    rows = old.drop_columns([LAST_UPDATED.name]) if needed else old
    new = set_values(rows if hit is None else rows.take(build.array(hit)), values, what="columns")
    made = fit_columns(arrow_frame(new, state.schema), state.schema, complete=False)
    numbers: AnyColumn = pa.nulls(old.num_rows, pa.int64())
    if hit is not None:
        stored = file_schema(state.schema)
        by_name = {f.name: f for f in state.schema.fields}
        kept = _rows(state, file, [by_name[name] for name in made.column_names], stored=True)
        made = made.cast(pa.schema([stored.field(name) for name in made.column_names]))
        index = np.arange(old.num_rows, dtype=np.int64)
        index[hit] = old.num_rows + np.arange(len(hit))
        made = pa.concat_tables([kept, made]).take(build.array(index))
        untouched = np.ones(old.num_rows, dtype=np.bool_)
        untouched[hit] = False
        numbers = pc.if_else(build.array(untouched), old[LAST_UPDATED.name], pa.scalar(None, pa.int64()))
    inherited = pa.field(LAST_UPDATED.name, pa.int64(), metadata={FIELD_ID: str(LAST_UPDATED.field_id)})
    return made.append_column(inherited, numbers)


def _rows(state: TableState, file: EntryBatch, fields: Sequence[NestedField], *, stored: bool = False) -> pa.Table:
    """Return some columns of all rows of a data file, deleted rows included.

    Parameters
    ----------
    stored
        Whether to return the columns in the Arrow types in which data files are written (`file_schema`), instead of
        the types that readers get (`arrow_fields`).

    Raises
    ------
    MemoryLimitError
        The rows have more bytes than the memory limit.
    """
    to = arrow_fields(fields)
    if stored:
        kinds = file_schema(state.schema)
        to = [kinds.field(f.name) for f in fields]
    parts, size, limit = [], 0, memory_limit()
    for part in read_data_file(state, file, fields, to=to):
        parts.append(part.drop_columns([POS.name]))
        size += part.nbytes
        if size > limit:
            raise MemoryLimitError(
                f"{file.entries['location'][0]} has more than {limit:,} bytes of rows: raise the limit "
                "(iceexplore.memory_limit('8 GiB')), or set the columns to constants in all rows"
            )
    return pa.concat_tables(parts) if parts else pa.schema(to).empty_table()
