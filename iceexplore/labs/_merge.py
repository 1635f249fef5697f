"""Merge: match rows of a source with rows of the table by key, and update, delete or insert rows in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyChunkedArray, AnyColumn, AnyExtensionArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import Change, CommitWriter, NothingToDo, planned
from iceexplore.errors import OptionError, nearest, texts_of
from iceexplore.expressions import FilterLike, bind_filter, expression_pyiceberg
from iceexplore.graph import TableState
from iceexplore.labs._local_engine import LOCAL_ENGINE, with_columns
from iceexplore.labs._operations import Write
from iceexplore.labs._rewrite import MovedRows, Rewrite, change_of, mode_of
from iceexplore.labs._spark_rows import OnSpark, is_spark_frame
from iceexplore.labs._write import LINEAGE, source_rows, write_rows
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import ListType, MapType, StructType, type_base
from iceexplore.planning import FileTasks
from iceexplore.reading import TaskReader, outputs_of
from iceexplore.writing import RowsLike

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyspark.sql import DataFrame

__all__ = ["merge_rows"]

Matched = Literal["update", "delete"]
Positions = npt.NDArray[np.int64]
#: Up to this number of keys, each key is compared with the statistics of files; above it, only the range of the keys.
_FEW = 200
_SOURCE = "\x00source"


def merge_rows(
    state: TableState,
    writer: CommitWriter,
    rows: RowsLike,
    on: str | Iterable[str],
    *,
    matched: Matched | None = "update",
    not_matched: Literal["insert"] | None = "insert",
    where: FilterLike | None = None,
    write: Write = write_rows,
) -> Change:
    """Merge rows into the table; see `iceexplore.Lab.merge`.

    Raises
    ------
    NothingToDo
        No row matches, and none is inserted.
    OptionError
        A column is missing, an option is invalid, or several source rows match one row of the table.
    """
    if matched not in ("update", "delete", None) or not_matched not in ("insert", None):
        raise OptionError(
            f"matched={matched!r}, not_matched={not_matched!r}: choose 'update', 'delete' or None, and 'insert' or None"
        )
    if is_spark_frame(rows):
        return _merge_on_spark(state, writer, rows, on, matched, not_matched, where, write)
    merge_on_read, isolation = mode_of(state, "merge")
    source = source_rows(state, rows, complete=False)
    keys = _keys(state, source.column_names, on)
    conflicts, tasks = planned(state, writer, _narrowed(state, keys, where, lambda key: _values(source[key])))
    hits, of = _matches(state, tasks, source, keys)
    rewrite = Rewrite()
    if hits and matched is not None:
        values = [name for name in source.column_names if name not in keys]

        def update(row: int, table: pa.Table, at: Positions) -> pa.Table:
            picked = source.select(values).take(build.array(of[row][np.searchsorted(hits[row], at)]))
            return with_columns(state, table, {name: picked[name] for name in values})

        change = update if matched == "update" and values else None
        if matched == "delete" or change is not None:
            rewrite = LOCAL_ENGINE.rewritten(state, tasks, hits, merge_on_read=merge_on_read, change=change)
    new = source.slice(0, 0)
    if not_matched is not None:
        mask = np.ones(source.num_rows, dtype=bool)
        for found in of.values():
            mask[found] = False
        new = source.filter(pa.array(mask))
    if not new.num_rows and rewrite.rows is None and not rewrite.gone and not rewrite.positions:
        raise NothingToDo("nothing to commit: no row matches")
    added = EntryBatch.empty()
    if rewrite.rows is not None:
        old = rewrite.rows.frame
        rows = pa.concat_tables([old, _inserted(state, new).cast(old.schema)]) if new.num_rows else old
        added = write(state, writer, MovedRows(rows))
    elif new.num_rows:
        added = write(state, writer, new)
    return change_of(state, writer, tasks, rewrite, added, conflicts=conflicts, isolation=isolation)


def _merge_on_spark(
    state: TableState,
    writer: CommitWriter,
    frame: DataFrame,
    on: str | Iterable[str],
    matched: Matched | None,
    not_matched: Literal["insert"] | None,
    where: FilterLike | None,
    write: Write,
) -> Change:
    """Merge a Spark data frame like `merge_rows`; only some key values of its rows are sent to this process."""
    from iceexplore.on_spark import merge_source

    session = frame.sparkSession
    merge_on_read, isolation = mode_of(state, "merge")
    with merge_source(session, state, frame) as source:
        keys = _keys(state, source.names, on)
        narrowed = _narrowed(state, keys, where, lambda key: source.key_values(key, _FEW))
        conflicts, tasks = planned(state, writer, narrowed)
        hits = source.matches(tasks, keys)
        rewrite = Rewrite()
        updates = matched == "update" and len(source.names) > len(keys)
        if hits and (updates or matched == "delete"):
            change = (lambda tasks: source.updates(tasks, keys)) if updates else None
            rewrite = OnSpark(session).rewritten(state, tasks, hits, merge_on_read=merge_on_read, change=change)
        frames = [] if rewrite.rows is None else [rewrite.rows.frame]
        if not_matched is not None:
            frames.append(source.inserts(tasks, keys))
        added = EntryBatch.empty()
        if frames:
            added = write(state, writer, MovedRows(reduce(lambda a, b: a.union(b), frames)))
    if not len(added) and not rewrite.gone and not rewrite.positions:
        raise NothingToDo("nothing to commit: no row matches")
    return change_of(state, writer, tasks, rewrite, added, conflicts=conflicts, isolation=isolation)


def _keys(state: TableState, columns: Sequence[str], on: str | Iterable[str]) -> list[str]:
    keys = list(texts_of("on", on, "'id' or ['region', 'id']"))
    if not keys:
        raise OptionError("on=[]: give at least one column by which rows match")
    names = [f.name for f in state.schema.fields]
    for name in keys:
        if name not in names:
            raise OptionError(f"on: no column {name!r} in the table; {nearest(str(name), names)}")
        if name not in columns:
            raise OptionError(f"on: the rows have no column {name!r}; they have {', '.join(columns)}")
        kind = next(f.type for f in state.schema.fields if f.name == name)
        if isinstance(kind, (StructType, ListType, MapType)):
            raise OptionError(f"on: column {name!r} is a {kind}: rows can match only by primitive columns")
    return keys


def _narrowed(
    state: TableState, keys: list[str], where: FilterLike | None, values_of: Callable[[str], tuple[list[Any], bool]]
) -> BooleanExpression:
    """Return the filter narrowed by the keys, so that files without any of them are not read.

    Parameters
    ----------
    values_of
        A function that returns a key's non-null values (or, for more than `_FEW`, their range), and whether it is a
        range.
    """
    from pyiceberg.expressions import AlwaysTrue, And, GreaterThanOrEqual, In, LessThanOrEqual

    found: Any = AlwaysTrue() if where is None else expression_pyiceberg(bind_filter(state.schema, where))
    types = {f.name: type_base(f.type) for f in state.schema.fields}
    for name in keys:
        if types[name] not in ("int", "long", "string", "date", "decimal"):
            continue  # other types can represent equal values in several ways, so they cannot exclude files
        values, more = values_of(name)
        if more:
            found = And(found, GreaterThanOrEqual(name, values[0]), LessThanOrEqual(name, values[1]))
        else:
            found = And(found, In(name, values))
    return found


def _values(column: AnyChunkedArray) -> tuple[list[Any], bool]:
    """Return the distinct non-null values and False; if there are more than `_FEW`, their minimum, maximum and True."""
    values = pc.unique(column).drop_null()
    if len(values) <= _FEW:
        return values.to_pylist(), False
    ends = pc.min_max(values).as_py()
    return [ends["min"], ends["max"]], True


def _matches(
    state: TableState, tasks: FileTasks, source: pa.Table, keys: list[str]
) -> tuple[dict[int, Positions], dict[int, Positions]]:
    """Return, by task, the ascending positions of matching rows, and the indices of the source rows that they match."""
    plain = [_plain(source[name]) for name in keys]
    numbers = pa.array(range(source.num_rows), pa.int64())
    wanted = pa.table([*plain, numbers], names=[*map(str, range(len(keys))), _SOURCE])
    wanted = wanted.filter(_all_valid(wanted))
    reader = TaskReader(state, tasks, outputs_of(state, [*keys, "_pos"]))
    hits: dict[int, Positions] = {}
    of: dict[int, Positions] = {}
    for row in range(len(tasks)):
        for part in reader.read(row):
            names = [*map(str, range(len(keys))), "_pos"]
            here = pa.table([*(_plain(part.table[name]) for name in keys), part.table["_pos"]], names=names)
            here = here.cast(pa.schema([*(wanted.schema.field(n) for n in names[:-1]), here.schema.field("_pos")]))
            found = here.join(wanted, names[:-1], join_type="inner", use_threads=False).sort_by("_pos")
            at = np.asarray(found["_pos"])
            if not len(at):
                continue
            if (at[1:] == at[:-1]).any():
                twice = found.filter(pc.equal(found["_pos"], at[:-1][at[1:] == at[:-1]][0])).select(names[:-1])
                key = dict(zip(keys, twice.slice(0, 1).to_pylist()[0].values(), strict=True))
                raise OptionError(f"several of the given rows match one row of the table, {key}: at most one may match")
            hits[row] = np.concatenate([hits.get(row, np.zeros(0, np.int64)), at])
            of[row] = np.concatenate([of.get(row, np.zeros(0, np.int64)), np.asarray(found[_SOURCE])])
    return hits, of


def _plain(column: AnyChunkedArray) -> AnyChunkedArray:
    """Return a column in a form that joins support: no extension types or fixed lengths; 0.0 for -0.0, as in SQL."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = build.chunked_array(
            [cast(AnyExtensionArray, chunk).storage for chunk in column.chunks], column.type.storage_type
        )
    if pa.types.is_floating(column.type):
        zero = pa.scalar(0.0, column.type)
        return pc.if_else(pc.equal(column, zero), zero, column)
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column


def _all_valid(table: pa.Table) -> AnyColumn:
    """Return a mask of the rows without a null, because null matches nothing, as in SQL."""
    valid = pc.is_valid(table[0])
    for column in table.columns[1:]:
        valid = pc.and_(valid, pc.is_valid(column))
    return valid


def _inserted(state: TableState, rows: pa.Table) -> pa.Table:
    """Return new rows with all of the table's columns, in the same form as the `MovedRows` of the same commit."""
    table = source_rows(state, rows)
    for i, column in enumerate(table.columns):
        if isinstance(column.type, pa.BaseExtensionType):
            plain = build.chunked_array(
                [cast(AnyExtensionArray, chunk).storage for chunk in column.chunks], column.type.storage_type
            )
            table = table.set_column(i, table.schema.field(i).with_type(plain.type), plain)
    if state.metadata.has_row_lineage:
        for name in LINEAGE:
            table = table.append_column(name, pa.nulls(table.num_rows, pa.int64()))
    return table
