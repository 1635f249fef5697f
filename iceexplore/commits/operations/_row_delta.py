"""Define row_delta: delete rows by position or by value, and add data files, in one commit (Java: ``BaseRowDelta``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.added_files._new_files import FilesLike, new_files
from iceexplore.commits.added_files._vector_entries import entries_of_vectors
from iceexplore.commits.live_files._find import applied_deletes, files_of_vectors, locations_of, must_be_live, scoped_to
from iceexplore.commits.model._change import Change, Isolation, Operation
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.operations._whole_files import base_id, checked_isolation, partitions_of
from iceexplore.deletes import (
    FILE_PATH_ID,
    POS_ID,
    new_dv_blob,
    write_equality_deletes,
    write_position_deletes,
    write_puffin,
)
from iceexplore.errors import OptionError, RuleError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, stats_type
from iceexplore.metadata import ListType, MapType, PrimitiveType, Schema, StructType, encode_value
from iceexplore.planning import MatchedDeletes, partition_columns, tuples_of
from iceexplore.reading import deleted_positions
from iceexplore.writing import (
    RowsLike,
    StatColumn,
    arrow_frame,
    bounds_of,
    column_values,
    fit_columns,
    split_by_partition,
    stat_columns,
    stats_arrays,
)

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = [
    "delete_groups",
    "position_files",
    "positions_by_file",
    "row_delta",
    "vector_entries",
]


@dataclass(frozen=True)
class EqualityDeletes:
    """Validated equality deletes.

    Attributes
    ----------
    schema
        The table's schema.
    spec_id
        The id of the partition spec with which the delete files are written.
    ids
        The field ids of the equality columns.
    parts
        The delete files to write. Each is a pair: the partition tuple (None if the spec is unpartitioned), and an Arrow
        table with the equality columns. The delete file deletes the rows whose values in these columns equal those of a
        row in the Arrow table.
    columns
        The columns for which the delete files' entries have statistics.
    """

    schema: Schema
    spec_id: int
    ids: tuple[int, ...]
    parts: tuple[tuple[pa.StructArray | None, pa.Table], ...]
    columns: tuple[StatColumn, ...]

    def write(self, writer: CommitWriter) -> EntryBatch:
        """Write the equality delete files, and return their entries."""
        batches = []
        for partition, table in self.parts:
            data = write_equality_deletes(table, self.schema, self.ids)
            location = writer.new_location("eq-deletes", ".parquet", folder="data")
            writer.write(location, data, kind="delete-file")
            row = {
                "content_type": int(ContentType.EQUALITY_DELETE),
                "location": location,
                "file_format": "parquet",
                "partition_spec_id": self.spec_id,
                "record_count": table.num_rows,
                "file_size_in_bytes": len(data),
                "equality_ids": list(self.ids),
            }
            stats = stats_arrays(self.columns, [self._stats(table)])
            batches.append(EntryBatch.of_rows([row], stats=stats, partition=partition))
        return concat_batches(batches)

    def _stats(self, table: pa.Table) -> dict[int, dict[str, Any]]:
        out: dict[int, dict[str, Any]] = {}
        for column in self.columns:
            values = column_values(table, column)
            low, high, nan = bounds_of(column, values)
            out[column.field.field_id] = {
                "lower": low, "upper": high, "nan_count": nan, "value_count": len(values),
                "null_count": values.null_count,
            }  # fmt: skip
        return out


def equality_deletes(state: TableState, given: RowsLike, partition: Mapping[str, Any] | None) -> EqualityDeletes:
    """Validate equality deletes, and determine the partitions in which they apply.

    Parameters
    ----------
    given
        A data frame, or values by column. A row of the table is deleted if it equals one of the given rows in all given
        columns; null equals null.
    partition
        The partition in which the deletes apply, as values by partition field; see `row_delta`.

    Raises
    ------
    OptionError
        There are no rows, a column is unknown or nested, a value does not fit, or the partitions cannot be determined.
    """
    table = fit_columns(arrow_frame(given, state.schema), state.schema, complete=False)
    if not table.num_rows or not table.num_columns:
        raise OptionError("equality: no values given")
    fields = [f for f in state.schema.fields if f.name in table.column_names]
    for f in fields:
        if isinstance(f.type, (StructType, ListType, MapType)):
            raise OptionError(
                f"equality: column {f.name!r} is a {f.type}: equality deletes support only primitive columns"
            )
    ids = tuple(f.field_id for f in fields)
    columns = tuple(c for c in stat_columns(state.metadata, state.schema) if c.field.field_id in ids)
    spec = state.metadata.spec()
    if spec is None:
        raise OptionError("the table's default partition spec is missing: files cannot be added")
    of_spec = partition_columns(state.metadata, spec)
    if partition is not None:
        if not of_spec:
            raise OptionError("equality_partition is given, but the table is not partitioned")
        parts: list[tuple[pa.StructArray | None, pa.Table]] = [
            (tuples_of(of_spec, [partition], "equality_partition"), table)
        ]
    elif all(c.transform.is_void or (c.source is not None and c.source.field_id in ids) for c in of_spec):
        parts = list(split_by_partition(table, state.schema, of_spec))
    else:
        plain = next((s for s in state.metadata.partition_specs if not s.fields), None)
        if plain is None:
            names = ", ".join(c.field.name for c in of_spec)
            raise OptionError(
                "the partitions that the equality deletes apply to are unknown: give equality_partition= "
                f"({names}), or include the source columns of these partition fields in the deletes; deletes that "
                "apply to every partition need an unpartitioned spec, and the table has none"
            )
        spec, parts = plain, [(None, table)]
    return EqualityDeletes(state.schema, spec.spec_id, ids, tuple(parts), columns)


_DVS_FROM = 3


def row_delta(
    state: TableState,
    writer: CommitWriter,
    files: FilesLike | None = None,
    *,
    deletes: Mapping[Any, Any] | None = None,
    equality: RowsLike | None = None,
    equality_partition: Mapping[str, Any] | None = None,
    isolation: Isolation = "serializable",
    **how: Any,
) -> Change:
    """Delete rows of data files, and add data files.

    In version 3 and later, positions are written as deletion vectors in one Puffin file; each deletion vector also has
    the positions that were already deleted in its data file. In version 2, positions are written to position delete
    files.

    Parameters
    ----------
    files, how
        Data files to add, as for `append`.
    deletes
        Positions of rows (from 0) by data file location.
    equality
        Values by column, such as ``{"id": [1, 2]}``, or a data frame. Rows that have these values are deleted from the
        data files of earlier commits.
    equality_partition
        The partition in which equality deletes apply, as values by partition field. By default, the partition of each
        row in ``equality`` is computed from the row's values. If the columns do not suffice for this, the deletes apply
        to all partitions; they are then written with an unpartitioned spec, which the table must have.
    isolation
        With ``serializable``, a concurrent commit conflicts if it adds a data file to the partition of a file in
        ``deletes``. With ``snapshot``, added data files do not conflict.

    Raises
    ------
    OptionError
        Nothing is given, no positions are given for a file, all given positions are already deleted, or values do not
        fit the schema.
    RuleError
        ``deletes-need-v2``: rows are to be deleted, but the format version is 1. ``files-exist``: a data file in
        ``deletes`` is not live. ``duplicate-file``: a data file in ``deletes`` is given, or listed by the table, more
        than once. ``dv-in-range``: a position is beyond the rows of its data file. ``sequence-order``: a data file in
        ``deletes`` has a higher sequence number than this commit gets, because the table's metadata is damaged.
    """
    checked_isolation(isolation)
    if files is None and deletes is None and equality is None:
        raise OptionError("row_delta needs deletes=, equality= or files to add")
    if files is None and how:
        raise OptionError(f"{sorted(how)[0]} is an option of files=, which is not given")
    version = writer.options.format_version
    if version < 2 and (deletes is not None or equality is not None):
        raise RuleError(
            "deletes-need-v2", "format version 1 has no delete files: upgrade the table, or delete whole files"
        )
    if equality_partition is not None and equality is None:
        raise OptionError("equality_partition= is an option of equality=, which is not given")
    by_file: dict[str, Any] = {}
    targets = EntryBatch.empty()
    if deletes is not None:
        by_file, targets = positions_by_file(state, deletes)
        _refuse_newer(targets, writer.sequence_number)
    by_value = None if equality is None else equality_deletes(state, equality, equality_partition)
    before = applied_deletes(state, targets) if by_file and version >= _DVS_FROM else MatchedDeletes()
    old = deleted_positions(state, targets, before)
    had_vectors = files_of_vectors(targets, before) if len(before) else {}
    _only_new(by_file, old, alone=files is None and equality is None)
    # All checks are done; only now are files written.
    added = [] if files is None else [new_files(state, files, writer=writer, **how)]
    merged: tuple[str, ...] = ()
    if by_file and version >= _DVS_FROM:
        vectors = {name: bitmap | old[name] if name in old else bitmap for name, bitmap in by_file.items()}
        added.append(vector_entries(writer, targets, vectors))
        # A new deletion vector replaces the position delete files of its data file. Remove those that reference only
        # this data file; others are still needed for other data files (Java: ContentFileUtil.isFileScoped).
        merged = scoped_to(before, by_file)
    elif by_file:
        added.append(position_files(state, writer, targets, by_file))
    if by_value is not None:
        added.append(by_value.write(writer))
    operation: Operation = "append" if not (by_file or by_value) else "overwrite" if files is not None else "delete"
    return Change(
        operation,
        concat_batches(added),
        remove_deletes=merged,
        replace_dvs=tuple(spelled for name, spelled in had_vectors.items() if name in by_file),
        base_snapshot_id=base_id(state),
        isolation=isolation,
        conflict_partitions=partitions_of(state, targets),
        conflict_files=frozenset(by_file),
    )


def positions_by_file(state: TableState, deletes: Mapping[Any, Any]) -> tuple[dict[str, Any], EntryBatch]:
    """Validate positions to delete; return them as bitmaps by data file location, and the data files' entries.

    The locations are written as in the table's manifests. The entries are in the order of the bitmaps.

    Parameters
    ----------
    deletes
        Positions of rows (from 0) by data file location.

    Raises
    ------
    OptionError
        ``deletes`` is not a mapping, is empty, or has invalid positions.
    RuleError
        ``files-exist``: a data file is not live. ``dv-in-range``: a position is beyond the rows of its file.
        ``duplicate-file``: a data file is given, or listed by the table, more than once.
    """
    from pyroaring import BitMap64

    if not deletes or not hasattr(deletes, "items"):
        raise OptionError("deletes: give positions by data file: {path: [0, 5]}")
    paths = [locations_of(path, "deletes")[0] for path in deletes]
    bitmaps = {path: _bitmap(path, positions) for path, positions in zip(paths, deletes.values(), strict=True)}
    targets, names = must_be_live(state, bitmaps)
    out: dict[str, Any] = {}
    for row, name in zip(targets.entries.select(["location", "record_count"]).to_pylist(), names, strict=True):
        bitmap = bitmaps[name]
        if bitmap.max() >= row["record_count"]:
            raise RuleError(
                "dv-in-range",
                f"position {bitmap.max()} is beyond the {row['record_count']} rows of {name}",
            )
        out.setdefault(row["location"], BitMap64()).update(bitmap)
    if len(out) < len(targets):
        raise RuleError(
            "duplicate-file", "deletes: a data file is given more than once, or the table lists it more than once"
        )
    return out, targets


def _refuse_newer(targets: EntryBatch, sequence_number: int) -> None:
    """Refuse data files with a higher sequence number than the commit, because its deletes would not apply to them.

    Raises
    ------
    RuleError
        ``sequence-order``: there is such a file; the table's ``last-sequence-number`` is too low.
    """
    entries = targets.entries
    newer = entries.filter(pc.greater(entries["sequence_number"], sequence_number))
    if newer.num_rows:
        raise RuleError(
            "sequence-order",
            f"{newer['location'][0]} has sequence number {newer['sequence_number'][0]}, but this commit gets "
            f"{sequence_number}, and deletes do not apply to newer files: the table's last-sequence-number is too low",
        )


def _bitmap(path: str, positions: object) -> BitMap64:
    from pyroaring import BitMap64

    if isinstance(positions, (str, bytes, Mapping)) or not hasattr(positions, "__iter__"):
        raise OptionError(f"deletes: positions in {path} are {positions!r}; give a list of integers")
    if isinstance(positions, BitMap64):
        numbers = positions
    else:
        array = np.asarray(positions if isinstance(positions, (list, tuple, range, np.ndarray)) else list(positions))
        if array.size and (array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any()):
            raise OptionError(f"deletes: positions in {path} must be integers of at least 0")
        numbers = BitMap64(array.tolist())
    if not len(numbers):
        raise OptionError(f"deletes: no positions given for {path}")
    return numbers


def _only_new(by_file: dict[str, Any], old: dict[str, Any], *, alone: bool) -> None:
    """Remove from ``by_file`` each data file of which all given positions are already deleted.

    Parameters
    ----------
    by_file
        Bitmaps of the positions to delete, by data file location; changed by this function.
    old
        Bitmaps of the positions that are already deleted, by data file location.
    alone
        Whether the commit makes no other change, so that it needs at least one file in ``by_file``.

    Raises
    ------
    OptionError
        ``alone`` is True, and no file remains in ``by_file``.
    """
    for name in [n for n, bitmap in by_file.items() if n in old and not len(bitmap - old[n])]:
        del by_file[name]
    if alone and not by_file:
        raise OptionError("nothing to commit: all of these rows are already deleted")


def vector_entries(writer: CommitWriter, targets: EntryBatch, vectors: Mapping[str, Any]) -> EntryBatch:
    """Write deletion vectors to one Puffin file; return their entries, in the partitions of their data files.

    Parameters
    ----------
    targets
        The entries of the data files; entries of files that are not in ``vectors`` are ignored.
    vectors
        The deleted positions as bitmaps, by data file location.
    """
    mine = targets.take([i for i, name in enumerate(build.to_pylist(targets.entries["location"])) if name in vectors])
    names = build.to_pylist(mine.entries["location"])
    data, places = write_puffin([new_dv_blob(vectors[name], name) for name in names])
    location = writer.new_location("deletes", ".puffin", folder="data")
    writer.write(location, data, kind="puffin")
    return entries_of_vectors(mine, location, len(data), places, [len(vectors[name]) for name in names])


def delete_groups(state: TableState, targets: EntryBatch, by_file: Mapping[str, Any]) -> list[list[int]]:
    """Group data files, so that one position delete file can be written for each group.

    A group is a list of indices in ``targets``. If the table property ``write.delete.granularity`` is ``partition``,
    a group has all data files of a partition; otherwise, each data file is a group by itself.

    Parameters
    ----------
    targets
        The entries of the data files.
    by_file
        The positions to delete as bitmaps, by data file location. Data files that are not in it are in no group.
    """
    names = targets.entries["location"].to_pylist()
    specs = targets.entries["partition_spec_id"].to_pylist()
    tuples = [None] * len(names) if targets.partition is None else build.to_pylist(targets.partition)
    whole_partition = state.metadata.properties.get("write.delete.granularity", "file").lower() == "partition"
    groups: dict[Any, list[int]] = {}
    for i, name in enumerate(names):
        if name in by_file:
            groups.setdefault((specs[i], repr(tuples[i])) if whole_partition else i, []).append(i)
    return list(groups.values())


def position_files(
    state: TableState, writer: CommitWriter, targets: EntryBatch, by_file: Mapping[str, Any]
) -> EntryBatch:
    """Write position delete files of version 2, and return their entries.

    A file is written for each data file, or for each partition (`delete_groups`).

    Parameters
    ----------
    targets
        The entries of the data files; entries of files that are not in ``by_file`` are ignored.
    by_file
        The positions to delete as bitmaps, by data file location.
    """
    names = build.to_pylist(targets.entries["location"])
    specs = build.to_pylist(targets.entries["partition_spec_id"])
    groups = delete_groups(state, targets, by_file)
    entries, bounds = [], []
    for members in groups:
        chosen = sorted(names[i] for i in members)
        counts = [len(by_file[n]) for n in chosen]
        paths = build.array(chosen, pa.string()).take(build.array(np.repeat(np.arange(len(chosen)), counts)))
        positions = np.concatenate([np.array(by_file[n].to_array(), dtype=np.int64) for n in chosen])
        data = write_position_deletes(paths, pa.array(positions))
        location = writer.new_location("deletes", ".parquet", folder="data")
        writer.write(location, data, kind="delete-file")
        bounds.append((chosen[0], chosen[-1], int(positions.min()), int(positions.max()), sum(counts)))
        entries.append(
            {
                "content_type": int(ContentType.POSITION_DELETE),
                "location": location,
                "file_format": "parquet",
                "partition_spec_id": specs[members[0]],
                "record_count": sum(counts),
                "file_size_in_bytes": len(data),
                "referenced_file": chosen[0] if len(chosen) == 1 else None,
            }
        )
    partition = None if targets.partition is None else targets.partition.take(pa.array([m[0] for m in groups]))
    return EntryBatch.of_rows(entries, stats=_position_stats(bounds), partition=partition)


def _position_stats(bounds: list[tuple[str, str, int, int, int]]) -> dict[int, Any]:
    """Return statistics of the columns ``file_path`` and ``pos`` of position delete files, by field id.

    Bounds of ``file_path`` are never truncated. If a delete file references only one data file, both bounds must be the
    full location of this data file, because readers recognize such a delete file by its equal bounds. The columns are
    not in the table's schema, so their bounds are in single-value (binary) form.

    Parameters
    ----------
    bounds
        For each delete file: the lowest and highest path, the lowest and highest position, and the number of rows.
    """
    out = {}
    for number, kind, low, high in ((FILE_PATH_ID, "string", 0, 1), (POS_ID, "long", 2, 3)):
        type_ = PrimitiveType(kind)
        rows = [
            {
                "lower": encode_value(type_, b[low]),
                "upper": encode_value(type_, b[high]),
                "value_count": b[4],
                "null_count": 0,
            }
            for b in bounds
        ]
        out[number] = pa.array(rows, stats_type(pa.binary()))
    return out
