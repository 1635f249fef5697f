"""compact: rewrite data files into fewer ones without changing the rows (Java: ``RewriteFiles``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyColumn, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._synthetic_merge import merged_files
from iceexplore.commits.live_files._find import (
    LocationsLike,
    applied_deletes,
    find_files,
    find_named,
    live_files,
    locations_of,
    must_be_live,
    position_files,
)
from iceexplore.commits.live_files._selection import select
from iceexplore.commits.metadata_updates._schema_checks import refuse_reserved_columns
from iceexplore.commits.model._change import Change, NothingToDo
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.operations._whole_files import base_id
from iceexplore.deletes import PositionSet
from iceexplore.errors import FormatError, OptionError, UnsupportedError, whole_number_of
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch, bool_array, concat_batches
from iceexplore.metadata import type_base
from iceexplore.planning import FileTasks, Filter, MatchedDeletes, live_places, partition_columns
from iceexplore.reading import (
    LAST_UPDATED,
    ROW_ID,
    EqualityDeletes,
    arrow_fields,
    deleted_positions,
    equality_fields,
    is_synthetic,
    position_index,
    read_data_file,
)
from iceexplore.storage import path_only
from iceexplore.writing import DataFile, columns_at, default_order, file_schema, sorted_rows, write_data_files

__all__ = ["RewriteGroups", "compact", "compacted_files"]

#: A function that rewrites files and returns the entries of the new files. It is called with the tasks of each
#: partition, the number of files to write per partition, and the data sequence number of the new files (None in version
#: 1, which has no sequence numbers).
RewriteGroups: TypeAlias = Callable[[Sequence[FileTasks], int, int | None], EntryBatch]

#: The highest total size, in bytes, of the data files that one compaction may read. There is a limit because all rows
#: that the compaction reads are in memory at the same time.
_MOST_BYTES = 2 << 30


def compact(
    state: TableState,
    writer: CommitWriter,
    paths: LocationsLike | None = None,
    *,
    where: FilterLike | Filter | None = None,
    partition: Mapping[str, Any] | None = None,
    small_than: int | None = None,
    files: int = 1,
    read: bool | None = None,
    rewrite: RewriteGroups | None = None,
) -> Change:
    """Rewrite the data files of each partition into fewer files, which do not contain the deleted rows.

    The new files have the same partition spec as the files that they replace. They get the data sequence number of the
    snapshot that was read (Java: ``useStartingSequenceNumber``), so that equality deletes of concurrent commits still
    apply to them. In version 3 and later their rows keep their ids: ``_row_id`` and ``_last_updated_sequence_number``
    are written as columns. Position delete files of version 2 that apply only to rewritten files are removed.

    Column files of the V4 draft are merged into the new files.

    If the data of a partition is not read (see ``read``), its files are replaced by synthetic files, which are
    entries without data. Their statistics and counts are computed from those of the old files. Rows deleted by position
    are subtracted, equality deletes are assumed to match no rows, and rows get new ids.

    Parameters
    ----------
    paths
        Locations of data files; by default all files.
    where, partition
        Rewrite only files that may contain matching rows (`select`).
    small_than
        Rewrite only files with fewer bytes than this.
    files
        The number of files to write per partition.
    read
        True reads and rewrites the data; False only merges metadata. By default, the data of a partition is read if all
        its files exist and none is synthetic.
    rewrite
        A function that reads the old files and writes the new ones (`RewriteGroups`). By default, `compact` does this
        itself, and reads at most 2 GiB.

    Raises
    ------
    NothingToDo
        No file is chosen; or ``paths`` is not given, and each partition has at most ``files`` files, none of them with
        column files.
    OptionError
        An argument is invalid or contradicts another, such as ``paths`` and ``where``. A file is synthetic, but
        ``read`` is True. More than 2 GiB would be read without ``rewrite``. Data would be read, but a column has a name
        that Iceberg reserves.
    UnsupportedError
        Data would be read, but a column is a variant.
    FormatError, FileMissingError
        A manifest, data file or delete file that must be read is damaged or missing.
    RuleError
        ``files-exist``: a file in ``paths`` is not live.
    """
    files = whole_number_of("files", files, 1)
    small_than = None if small_than is None else whole_number_of("small_than", small_than)
    if rewrite is not None and read is False:
        raise OptionError("read=False only merges metadata and rewrites no data: omit spark= or rewrite=")
    chosen, manifests = _chosen(state, paths, where, partition, small_than)
    if not len(chosen):
        narrowed = paths is not None or where is not None or partition is not None or small_than is not None
        raise NothingToDo(f"nothing to compact: {'no data file is chosen' if narrowed else 'there are no data files'}")
    chosen = _without(chosen, _idle(state, chosen, files, paths is not None))
    if not len(chosen):
        raise NothingToDo("nothing to compact: no partition has more files than the target")
    matched = applied_deletes(state, chosen, manifests=manifests)
    groups = _places(chosen)
    sequence = None if writer.options.format_version < 2 or state.snapshot is None else state.snapshot.sequence_number
    if rewrite is not None:
        _refuse_columns(state)
        added = rewrite([_tasks(chosen.take(rows), matched.take(pa.array(rows))) for rows in groups], files, sequence)
        return _change(state, matched, chosen, added, manifests)
    positions = deleted_positions(state, chosen, matched)
    plan = [(rows, _data_there(state, rows, read)) for rows in map(chosen.take, groups)]
    size = sum(int(pc.sum(rows.entries["file_size_in_bytes"], min_count=0).as_py()) for rows, real in plan if real)
    if size > _MOST_BYTES:
        raise OptionError(
            f"the files have {size:,} bytes, but the limit is {_MOST_BYTES:,}: choose fewer files, or pass read=False"
        )
    lineage = writer.options.format_version >= 3
    # Read all data before writing the first byte: if a file cannot be read, the commit then fails with nothing written.
    read_now = {
        i: _rows(state, rows, matched.take(pa.array(groups[i])), positions, lineage=lineage)
        for i, (rows, real) in enumerate(plan)
        if real
    }
    made = []
    for i, (rows, real) in enumerate(plan):
        if real:
            made.append(_written(state, writer, rows, read_now.pop(i), files, sequence))
        else:
            made.append(merged_files(state, writer, rows, positions, files, sequence))
    return _change(state, matched, chosen, concat_batches(made), manifests)


def _tasks(files: EntryBatch, matched: MatchedDeletes) -> FileTasks:
    """Return tasks that read all rows of the files, except those that the deletes in ``matched`` remove."""
    count = len(files)
    every, first = pa.array([True] * count, pa.bool_()), pa.array([0] * count, pa.int32())
    return FileTasks(EntryBatch(files.entries, {}, files.partition), pa.nulls(count, pa.int64()), every, first,
                     matched=matched)  # fmt: skip


def _change(
    state: TableState,
    matched: MatchedDeletes,
    chosen: EntryBatch,
    added: EntryBatch,
    manifests: frozenset[str] | None,
) -> Change:
    gone = tuple(build.to_pylist(chosen.entries["location"]))
    return Change(
        "replace",
        added,
        remove_data=gone,
        data_manifests=manifests,
        remove_deletes=_orphaned(state, matched, gone),
        base_snapshot_id=base_id(state),
        isolation="snapshot",
        conflict_files=frozenset(gone),
    )


def _chosen(
    state: TableState,
    paths: LocationsLike | None,
    where: FilterLike | Filter | None,
    partition: Mapping[str, Any] | None,
    small_than: int | None,
) -> tuple[EntryBatch, frozenset[str] | None]:
    """Return the entries of the files to rewrite, with statistics, and the locations of the manifests that list them.

    The second value may also contain manifests without such files. It is None if neither ``where`` nor ``partition`` is
    given: only a search with these arguments finds out which manifests list the files. Files of ``small_than`` bytes
    or more are left out.

    Raises
    ------
    OptionError
        ``paths`` is combined with ``where`` or ``partition``, or the filter is invalid.
    RuleError
        ``files-exist``: a file in ``paths`` is not live.
    """
    manifests = None
    if paths is not None and (where is not None or partition is not None):
        raise OptionError("give either paths or where= and partition=, not both")
    if paths is not None:
        chosen = must_be_live(state, locations_of(paths), stats=True)[0]
    elif where is not None or partition is not None:
        found = select(state, where, partition)
        names = [n for b in (found.whole, found.part) for n in build.to_pylist(b.entries["location"])]
        manifests = found.manifests
        chosen = find_files(state, names, stats=True, manifests=manifests)[0] if names else EntryBatch.empty()
    else:
        chosen = live_files(state, stats=True)
    if small_than is not None:
        most = max(0, min(small_than, 2**63 - 1))  # at most the largest int64, because Arrow cannot compare with more
        chosen = chosen.filter(_flat(pc.less(chosen.entries["file_size_in_bytes"], most)))
    return chosen, manifests


def _flat(mask: AnyColumn) -> pa.BooleanArray:
    filled = pc.fill_null(mask, False)
    return cast(pa.BooleanArray, filled.combine_chunks() if isinstance(filled, pa.ChunkedArray) else filled)


def _places(chosen: EntryBatch) -> list[list[int]]:
    """Group the entries by spec and partition: return the row numbers of each group, in order of first occurrence."""
    columns = {"spec": chosen.entries["partition_spec_id"], "row": pa.array(range(len(chosen)), pa.int64())}
    if chosen.partition is not None:
        for i, child in enumerate(chosen.partition.type):
            columns[child.name] = pc.struct_field(chosen.partition, [i])
    table = build.table(columns)
    keys = [n for n in table.column_names if n != "row"]
    return list(build.to_pylist(table.group_by(keys, use_threads=False).aggregate([("row", "list")])["row_list"]))


def _idle(state: TableState, chosen: EntryBatch, files: int, named: bool) -> set[str]:
    """Return the locations of the chosen files that need not be rewritten.

    The chosen files of a partition need not be rewritten if there are not more than ``files`` of them, so that a
    rewrite would not reduce their number, and if none of them has column files, which a rewrite would merge.

    Parameters
    ----------
    chosen
        The entries of the chosen files.
    files
        The number of files to write per partition.
    named
        Whether the user chose the files by location. They are then always rewritten, and the result is empty.
    """
    if named:
        return set()
    names = build.to_pylist(chosen.entries["location"])
    merges = bool_array(pc.greater(pc.fill_null(pc.list_value_length(chosen.entries["column_files"]), 0), 0))
    idle = (rows for rows in _places(chosen) if len(rows) <= files and not merges[rows].any())
    return {names[i] for rows in idle for i in rows}


def _without(chosen: EntryBatch, names: set[str]) -> EntryBatch:
    if not names:
        return chosen
    return chosen.filter(_flat(pc.invert(pc.is_in(chosen.entries["location"], pa.array(sorted(names), pa.string())))))


def _data_there(state: TableState, rows: EntryBatch, read: bool | None) -> bool:
    """Return whether to rewrite the files of a partition by reading their data, instead of merging only metadata.

    Parameters
    ----------
    rows
        The entries of the partition's files.
    read
        The argument ``read`` of `compact`. True or False is returned unchanged. If it is None, the result is True if
        all of the files and their column files exist in the storage and none is synthetic.

    Raises
    ------
    OptionError
        ``read`` is True, but a file is synthetic.
    """
    names = build.to_pylist(rows.entries["location"])
    names += [one["location"] for held in build.to_pylist(rows.entries["column_files"]) for one in held or ()]
    if read is not None:
        if read and any(map(is_synthetic, names)):
            raise OptionError("read=True: some of these files are synthetic and have no data")
        return read
    return not any(is_synthetic(name) for name in names) and all(state.storage.exists(name) for name in names)


def _orphaned(state: TableState, matched: MatchedDeletes, rewritten: Collection[str]) -> tuple[str, ...]:
    """Return the locations of the position delete files that can be removed after a rewrite of data files.

    A position delete file in ``matched`` can be removed if all live data files that it references are rewritten.

    Parameters
    ----------
    matched
        The deletes that apply to the rewritten files.
    rewritten
        Locations of the rewritten files.
    """
    entries, referenced = position_files(matched)
    gone = {path_only(name) for name in rewritten}
    others: dict[str, dict[str, str]] = {}
    for row, one in zip(entries.select(["location", "file_format"]).to_pylist(), referenced, strict=True):
        names = (one,) if one is not None else position_index(state, row["location"], row["file_format"]).paths
        others[row["location"]] = {path_only(n): n for n in names if path_only(n) not in gone}
    candidates = {path: name for paths in others.values() for path, name in paths.items()}
    # Also compare locations without scheme and host: if a table was moved by editing its metadata, its delete files
    # still reference data files with the old scheme and host.
    live = {path_only(place) for place in live_places(state, candidates)} if candidates else set()
    live |= {path_only(n) for n in find_named(state, candidates.values())[1]} if candidates else set()
    return tuple(location for location, paths in others.items() if not paths.keys() & live)


def _rows(
    state: TableState, files: EntryBatch, matched: MatchedDeletes, positions: dict[str, Any], *, lineage: bool
) -> pa.Table:
    """Read data files of one partition, and return their rows without the deleted ones.

    Parameters
    ----------
    matched
        The deletes that apply to each of the files; of these, only equality deletes are used here.
    positions
        Bitmaps of the deleted positions, by data file location.
    lineage
        Whether to return ``_row_id`` and ``_last_updated_sequence_number``, too.

    Raises
    ------
    FormatError
        A file does not have as many rows as its entry records.
    """
    deletes = EqualityDeletes(state, matched)
    tables = []
    for i in range(len(files)):
        one = files.take([i])
        entry = one.entries.select(["location", "sequence_number", "record_count"]).to_pylist()[0]
        table, gone = _read(state, one, deletes, deletes.numbers(i), lineage=lineage)
        if table.num_rows != entry["record_count"]:
            raise FormatError(
                f"the file has {table.num_rows} rows, but its entry has record_count {entry['record_count']}",
                location=entry["location"],
                code="count-mismatch",
            )
        if (bitmap := positions.get(entry["location"])) is not None:
            PositionSet(bitmap).mark(gone)
        tables.append(table.filter(pa.array(~gone)) if gone.any() else table)
    return pa.concat_tables(tables)


def _read(
    state: TableState, one: EntryBatch, deletes: EqualityDeletes, numbers: tuple[int, ...], *, lineage: bool
) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Return all rows of a data file, deleted ones included, and a mask of the rows that equality deletes remove.

    Parameters
    ----------
    one
        The entry of the data file, as a batch of length 1.
    deletes
        The equality deletes that apply to any of the files to rewrite.
    numbers
        Identifies those equality deletes that apply to this data file (see ``deletes.numbers``).
    lineage
        Whether to return ``_row_id`` and ``_last_updated_sequence_number``, too.

    Raises
    ------
    OptionError
        A column of the table has a name that Iceberg reserves.
    UnsupportedError
        A column is a variant.
    """
    _refuse_columns(state)
    fields, to = list(state.schema.fields), list(file_schema(state.schema))
    if lineage:
        fields += [ROW_ID, LAST_UPDATED]
        to += arrow_fields([ROW_ID, LAST_UPDATED])
    wanted = len(fields)
    paths = equality_fields(state, deletes.ids(numbers))
    extra = [path[0] for path in paths.values()]
    fields, to = fields + extra, to + arrow_fields(extra)
    # pa.Schema.empty_table does not support nested extension types.
    empty = pa.Table.from_arrays([pa.nulls(0, f.type) for f in to[:wanted]], schema=pa.schema(to[:wanted]))
    tables, masks = [empty], [np.zeros(0, dtype=bool)]
    for table in read_data_file(state, one, fields, to=to):
        tables.append(table.select(range(wanted)))
        masks.append(deletes.mask(numbers, table.select(range(wanted, table.num_columns)), paths))
    return pa.concat_tables(tables), np.concatenate(masks)


def _refuse_columns(state: TableState) -> None:
    refuse_reserved_columns(state)
    for name, f in state.schema.walk():
        if type_base(f.type) == "variant":
            raise UnsupportedError(
                f"column {name!r} is a variant; rewriting data with variant columns is not supported"
            )


def compacted_files(
    state: TableState, writer: CommitWriter, group: EntryBatch, rows: pa.Table, sequence_number: int | None
) -> EntryBatch:
    """Write the rows of some files of a partition to one file, sorted if the table has a sort order.

    Return the new file's entry; if there are no rows, no file is written.

    Parameters
    ----------
    group
        The entries of the files that the rows come from. The new file gets their spec and partition tuple.
    rows
        The rows as returned by `fit_columns`, with the row lineage columns.
    sequence_number
        The data sequence number of the new file; with None, its entry inherits the commit's sequence number.

    Raises
    ------
    OptionError
        The metadata does not contain the files' partition spec, or the sort order refers to a missing column.
    """
    order = default_order(state.metadata)
    if order is None:
        return _written(state, writer, group, rows, 1, sequence_number)
    rows = sorted_rows(rows, state.schema, order, columns_at)
    return _written(state, writer, group, rows, 1, sequence_number, order.order_id)


def _written(
    state: TableState,
    writer: CommitWriter,
    group: EntryBatch,
    rows: pa.Table,
    files: int,
    sequence: int | None,
    order_id: int = 0,
) -> EntryBatch:
    spec = state.metadata.spec(group.entries["partition_spec_id"][0].as_py())
    if spec is None:
        raise OptionError("the partition spec of the files to compact is missing from the metadata")
    columns = partition_columns(state.metadata, spec)
    partition = None if group.partition is None or not columns else _tuple(group.partition, [c.key for c in columns])
    cuts = np.linspace(0, rows.num_rows, min(files, max(1, rows.num_rows)) + 1).astype(int).tolist()
    parts = [rows.slice(a, b - a) for a, b in pairwise(cuts) if b > a]
    made = [DataFile(spec, part, partition, sequence, order_id) for part in parts]
    return write_data_files(state, writer, made, columns)


def _tuple(partition: pa.StructArray, keys: Sequence[str]) -> pa.StructArray:
    one = partition.slice(0, 1)
    arrays = [pc.struct_field(one, [partition.type.get_field_index(k)]) for k in keys]
    return pa.StructArray.from_arrays(arrays, fields=[pa.field(k, a.type) for k, a in zip(keys, arrays, strict=True)])
