"""Read the Parquet footers of a plan's files, and decide which of their row groups may have a matching row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import IceexploreError
from iceexplore.expressions import Expression, Predicate, predicates
from iceexplore.formats import DEFAULT_FORMAT, ParquetLeaf, RowGroups, format_named
from iceexplore.graph import TableState
from iceexplore.metadata import NestedField, Schema, StructType, name_mapping, parse_transform
from iceexplore.planning.model._tasks import FileTasks
from iceexplore.planning.row_groups._evaluator import Column, Judged, judge_groups, lacking_column, stored_column
from iceexplore.storage import in_order, progress

__all__ = [
    "ROW_GROUP_SCHEMA",
    "row_groups_of",
]

#: Result of `leaf_of` if a Parquet file does not have the column. Usually, the result is the index of the leaf
#: (primitive field) of the file's Parquet schema that stores the column.
MISSING = -1
#: Result of `leaf_of` if readers of Iceberg tables may disagree on which leaf (primitive field) of a Parquet schema
#: stores the column. For example, if one leaf has a field id, but another does not, only some readers apply the name
#: mapping to the latter.
UNCERTAIN = -2


def struct_path(schema: Schema, field_id: int) -> tuple[NestedField, ...]:
    """Return the fields that lead from the top level of the schema to a column.

    For the column ``a.b.c``, where ``a`` and ``b`` are structs, these are the fields ``a``, ``a.b`` and ``a.b.c``. The
    result is empty if the column is inside a list or map, or if the schema has no field with this id.
    """

    def down(fields: Sequence[NestedField]) -> tuple[NestedField, ...]:
        for f in fields:
            if f.field_id == field_id:
                return (f,)
            below = down(f.type.fields) if isinstance(f.type, StructType) else ()
            if below:
                return (f, *below)
        return ()

    return down(schema.fields)


def leaf_of(
    leaves: Sequence[ParquetLeaf], path: Sequence[NestedField], mapping: Sequence[Mapping[str, Any]] | None
) -> int:
    """Find the leaf of a file's Parquet schema that stores a column of the table.

    - If the file has any field ids, the leaf is found by field id. If no leaf has the column's id, but some leaf, or a
      struct that contains it, has no id, the result is `UNCERTAIN`: some readers apply the name mapping to such a leaf,
      others do not.
    - If the file has no field ids, the leaf is found by the names in the table's name mapping.
    - If the file has no field ids and the table has no name mapping, readers differ: Java assigns the ids 1, 2, 3, ...
      to the top-level columns of the file, whereas other readers use the column names. The leaf of a top-level column
      is found only if both rules lead to it: it has the column's name, and its position, counted from 1, is the
      column's field id. Otherwise, and for a column inside a struct, the result is `UNCERTAIN`.

    The result is also `UNCERTAIN` if the id or name belongs to several leaves, or to a struct, list or map.

    Parameters
    ----------
    leaves
        The leaves of the Parquet schema.
    path
        The fields from the top level to the column: the result of `struct_path`.
    mapping
        Result of `iceexplore.metadata.name_mapping`; None if the table has no name mapping.

    Returns
    -------
    int
        The index of the leaf in ``leaves``; `MISSING` if the file lacks the column; `UNCERTAIN` if readers of Iceberg
        tables may disagree about the leaf, so that the column cannot be used to prune row groups.
    """
    wanted = path[-1].field_id
    if any(number is not None for leaf in leaves for number in leaf.ids):
        found = [i for i, leaf in enumerate(leaves) if leaf.ids[-1] == wanted and not leaf.repeated]
        if not found:
            doubtful = any(wanted in leaf.ids or (None in leaf.ids and not leaf.repeated) for leaf in leaves)
            return UNCERTAIN if doubtful else MISSING
        return found[0] if len(found) == 1 else UNCERTAIN
    if mapping is not None:
        names = _mapped(path, mapping)
        found = [i for i, leaf in enumerate(leaves) if _matches(leaf.names[: len(names)], names)]
        if len(found) == 1 and len(leaves[found[0]].names) == len(names):
            return found[0]
        return UNCERTAIN if found else MISSING
    for i, leaf in enumerate(leaves):
        if len(path) == 1 and leaf.names == (path[0].name,) and leaf.at == wanted - 1 and not leaf.repeated:
            return i
    return UNCERTAIN


def _mapped(path: Sequence[NestedField], mapping: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return, for each field from the top level of the schema to a column, its names in the name mapping.

    ``path`` has these fields. The result has one list per field, which is empty if the name mapping lacks the field.
    """
    names: list[list[str]] = []
    level: Sequence[Mapping[str, Any]] = mapping
    for f in path:
        mine = next((m for m in level if m.get("field-id") == f.field_id), None)
        names.append(list(mine.get("names", ())) if mine else [])
        level = mine.get("fields") or () if mine else ()
    return names


def _matches(given: Sequence[str], names: Sequence[Sequence[str]]) -> bool:
    return len(given) == len(names) and all(g in n for g, n in zip(given, names, strict=True))


ROW_GROUP_SCHEMA = build.schema(
    [
        pa.field("file", pa.int64()),
        pa.field("row_group", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("may", pa.bool_()),
        pa.field("term", pa.string()),
        pa.field("by", pa.string()),
        pa.field("column", pa.string()),
        pa.field("lower", pa.string()),
        pa.field("upper", pa.string()),
        pa.field("null_count", pa.int64()),
        pa.field("why", pa.string()),
    ]
)
#: Minimum number of threads that read Parquet footers: used if the storage has fewer ``readers``.
_LEAST = 8


class _File(NamedTuple):
    """A data file of the plan, with what is needed to evaluate its row groups.

    Attributes
    ----------
    at
        The row number of the file in the plan's `FileTasks`.
    location, format
        The location of the file, and the name of its format.
    rows, size
        The file's record count and its size in bytes; None if its manifest entry does not have them.
    residual
        The filter to evaluate: the part of the plan's filter that the file's partition values do not decide.
    constants
        The file's partition values of fields with the identity transform, by the field id of the source column.
    updated
        Whether the data file has column files (V4 draft), which contain newer values of some of its columns.
    """

    at: int
    location: str
    format: str
    rows: int | None
    size: int | None
    residual: Expression
    constants: dict[int, Any]
    updated: bool


def row_groups_of(state: TableState, tasks: FileTasks, *, bloom: bool = False) -> pa.Table:
    """Return the row groups of a plan's data files: where they are, and whether they may have a matching row.

    Only the footer of each file is read (and Bloom filters with ``bloom``), no pages, dictionaries or page indexes. The
    residual filter of the file is evaluated on the bounds and null counts of each row group. Footers have no NaN
    counts, and their bounds may be truncated, so a row group is never reported as matching completely. Bounds of types
    for which Parquet defines no order are not used.

    Row groups cannot be evaluated in three cases: the file's format has none, its footer cannot be read, or the file
    has column files (V4 draft), which contain newer values of some of its columns. Such a file has to be read as a
    whole. It has one row in the result, with an explanation in ``why``. Errors of footers are also added to
    ``state.problems``.

    Parameters
    ----------
    state
        The planned state of the table.
    tasks
        The data files, each with its residual filter. Each file whose footer is read costs at least one request.
    bloom
        True to also use Bloom filters for ``=`` and ``in``, in row groups that the bounds do not exclude. Each Bloom
        filter that is read costs at least one more request.

    Returns
    -------
    pyarrow.Table
        One row per row group, with the columns of `ROW_GROUP_SCHEMA`, in the order of the files:

        - ``file`` is the row number of the file in ``tasks``, and ``row_group`` the number of the row group in the
          file, from 0.
        - ``offset`` is the position of the row group in the file, ``rows`` its number of rows, and ``bytes`` the
          uncompressed size of its columns.
        - ``may`` is false if certainly no row of the row group matches the filter.
        - ``term``, ``by``, ``column``, ``lower``, ``upper``, ``null_count`` and ``why`` explain why no row matches; see
          `Reason`. They are null if ``may`` is true.

        In a row that describes a whole file, ``may`` is true, ``row_group`` and ``offset`` are null, ``bytes`` is the
        file's size, and ``why`` explains why its row groups were not evaluated.
    """
    files = list(_files(state, tasks))
    found: list[pa.Table] = []

    def one(file: _File) -> pa.Table:
        return _table(file, *_judged(state, file, bloom))

    made = in_order(one, files, width=max(_LEAST, state.storage.readers), name="iceexplore-footers")
    try:
        with progress(len(files), "footers") as step:
            for table in made:
                found.append(table)
                step()
    finally:
        made.close()
    return pa.concat_tables([ROW_GROUP_SCHEMA.empty_table(), *found]).combine_chunks()


def _files(state: TableState, tasks: FileTasks) -> Iterator[_File]:
    entries = tasks.files.entries
    names = ("location", "file_format", "record_count", "file_size_in_bytes", "partition_spec_id", "column_files")
    columns = [entries[name].to_pylist() for name in names]
    for at, (location, kind, rows, size, spec_id, newer) in enumerate(zip(*columns, strict=True)):
        residual = tasks.residuals[tasks.residual[at].as_py()]
        constants = _constants(state, tasks, at, spec_id)
        yield _File(at, location, kind or DEFAULT_FORMAT.name, rows, size, residual, constants, bool(newer))


def _constants(state: TableState, tasks: FileTasks, at: int, spec_id: int | None) -> dict[int, Any]:
    """Return the partition values of a data file for the partition fields with the identity transform.

    If the data file lacks the source column of such a field, readers use the partition value for all rows.

    Parameters
    ----------
    tasks
        The files of the plan, with their partition values.
    at
        The row of the file in ``tasks``.
    spec_id
        The id of the file's partition spec; None if unknown.

    Returns
    -------
    dict
        The keys are the field ids of the source columns. The values are the partition values as Arrow scalars, which
        may be null. Empty if the spec is unknown.
    """
    spec = None if spec_id is None else state.metadata.spec(spec_id)
    partition = tasks.files.partition
    if spec is None or partition is None:
        return {}
    out = {}
    for f in spec.fields:
        child = partition.type.get_field_index(str(f.field_id))
        if parse_transform(f.transform).is_identity and child >= 0 and f.source_id is not None:
            out[f.source_id] = partition.field(child)[at]
    return out


def _judged(state: TableState, file: _File, bloom: bool) -> tuple[RowGroups | None, Judged | str]:
    """Return the row groups of a file, and which of them may have a matching row.

    If the row groups cannot be evaluated, return None and the reason as text. ``bloom`` is True to use Bloom filters.
    """
    known = format_named(file.format)
    if known is None or not known.has_row_groups:
        return None, f"{file.format.upper()} files are read whole: only row groups of Parquet files can be pruned"
    if file.updated:
        return None, (
            "column files (V4 draft: files with newer values of some columns) replace some of the data file's values, "
            "so the metrics of its row groups are outdated and not used for pruning"
        )
    wanted = {p.field_id: p for p in predicates(file.residual)}
    mapping = name_mapping(state.metadata)
    places: dict[int, int] = {}

    def choose(leaves: Sequence[ParquetLeaf]) -> list[int]:
        for number in wanted:
            path = struct_path(state.schema, number)
            places[number] = leaf_of(leaves, path, mapping) if path else -2
        return sorted({at for at in places.values() if at >= 0})

    try:
        groups = known.row_groups(state.storage, file.location, choose, size=file.size)
    except IceexploreError as error:
        state.problems.add_error(error, file.location)
        return None, f"the footer cannot be read: {error}"
    columns = {number: _column(state, file, groups, number, p, places[number]) for number, p in wanted.items()}
    filters = (state, file.location) if bloom else None
    return groups, judge_groups(file.residual, groups, columns, filters)


def _column(
    state: TableState, file: _File, groups: RowGroups, number: int, predicate: Predicate, at: int
) -> Column | None:
    path = struct_path(state.schema, number)
    if not path:
        return None
    if at >= 0:
        return stored_column(groups, at, path[-1])
    return lacking_column(groups, path, file.constants) if at == -1 else None


def _table(file: _File, groups: RowGroups | None, judged: Judged | str) -> pa.Table:
    if groups is None or isinstance(judged, str):
        row = {"file": file.at, "rows": file.rows, "bytes": file.size, "may": True, "why": judged}
        return pa.Table.from_pylist([row], schema=ROW_GROUP_SCHEMA)
    n = len(groups.groups)
    columns: dict[str, Any] = {
        "file": np.full(n, file.at),
        "row_group": np.arange(n, dtype=np.int32),
        "offset": [g.offset for g in groups.groups],
        "rows": [g.rows for g in groups.groups],
        "bytes": [g.bytes for g in groups.groups],
        "may": judged.may,
    }
    for name in ROW_GROUP_SCHEMA.names[len(columns) :]:
        columns[name] = [None if r is None else getattr(r, name) for r in judged.reasons]
    return pa.table(columns, schema=ROW_GROUP_SCHEMA)
