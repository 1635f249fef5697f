"""Row-level changes on Spark: workers read the files that each snapshot adds or removes, and compute the changes.

The workers run the code of `iceexplore.reading.changelog`. To find carry-overs, updates and net changes, equal rows (or
rows with equal identifiers) are compared, so rows are first shuffled by these values.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.expressions import Expression, FilterLike
from iceexplore.graph import TableState
from iceexplore.metadata import ListType, MapType, NestedField, Snapshot, StructType, Type, type_base
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._bundles import map_in_arrow
from iceexplore.on_spark.transport._columns import SparkColumns, spark_type
from iceexplore.on_spark.transport._state import ShippedState, check_reach, ship, taken_deletes
from iceexplore.planning import Filter
from iceexplore.reading import (
    CHANGE_FIELDS,
    ChangeFiles,
    ChangelogOptions,
    ChangeReader,
    Output,
    change_files,
    net_of,
    with_updates,
    without_carryovers,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["changelog"]

#: Maximum number of Spark tasks, which keeps the plan small.
_MOST_SHARES = 256
_LEAST_BYTES = 32 << 20
#: The cost of opening a file, in bytes (Iceberg: ``read.split.open-file-cost``).
_OPEN_COST = 4 << 20
_PLAIN = "c{}"

_Batches = Iterator[pa.RecordBatch]


def changelog(
    state: TableState,
    session: SparkSession,
    before: Snapshot | None,
    after: Snapshot | None,
    *,
    columns: str | Iterable[str] | None = None,
    where: FilterLike | Filter | None = None,
    identifier_columns: Iterable[str] | None = None,
    compute_updates: bool | None = None,
    net_changes: bool = False,
) -> DataFrame:
    """Return `iceexplore.reading.changelog` as an unordered Spark DataFrame, with files read by Spark's workers.

    The driver determines the files from the manifests. A Spark task holds the changed rows of one shuffle partition in
    memory, carried-over rows included; if that is too much, raise ``spark.sql.shuffle.partitions``.

    Parameters
    ----------
    session
        A Spark session, classic or Connect, of Spark 3.5 or later.
    before, after, columns, where, identifier_columns, compute_updates, net_changes
        As in `iceexplore.reading.changelog`. Columns have the types that Iceberg's runtime shows (`SparkColumns`).

    Raises
    ------
    OptionError, UnsupportedError, FormatError, FileMissingError
        As in `iceexplore.reading.changelog`. Faults found only while reading rows (damaged or missing data files,
        updates that cannot be determined) are raised when the DataFrame is executed, as Spark errors that quote ours.
    """
    info = SessionInfo.of(session)
    check_reach(state, info)
    options = ChangelogOptions(state, columns, where, identifier_columns, compute_updates, net_changes)
    changes = [change for each in change_files(state, before, after, options.filter) for change in each]
    rows = SparkColumns([Output(f.name, (f,)) for f in options.fields], info.version)
    frame = _read(session, state, _shares(changes), rows, options.filter.expression)
    if options.net or options.updates or _both_ways(changes):
        keys = [o.path for o in options.identifiers] or [(f,) for f in options.fields if _hashable(f.type)]
        named = [_column(path, options, info.version) for path in keys]
        if named and not options.net:
            named.append(_change_column(options, 1))
        names, schema = frame.columns, frame.schema
        frame = _plain(frame, options)
        frame = frame.repartition(*named) if named else frame.repartition(1)
        frame = map_in_arrow(frame.toDF(*names), _settler(options), schema)
    chosen = [_column(o.path, options, info.version).alias(o.name) for o in options.outputs]
    change = [_change_column(options, i).alias(f.name) for i, f in enumerate(CHANGE_FIELDS)]
    return _plain(frame, options).select(*chosen, *change)


# ----------------------------------------------------------------------------------------------------------------------


def _both_ways(changes: Sequence[ChangeFiles]) -> bool:
    """Return whether one snapshot may both remove and add rows, so that some may be carried over."""
    kinds: dict[int, set[str]] = {}
    for change in changes:
        kinds.setdefault(change.ordinal, set()).add(change.kind)
    return any(len(some) > 1 or "kept" in some for some in kinds.values())


def _hashable(kind: Type) -> bool:
    """Return whether Spark can hash values of a type, so that a column can be a shuffle key.

    Using only such columns is enough to bring equal rows together, as equal rows agree in every column.
    """
    match kind:
        case StructType(fields):
            return all(_hashable(f.type) for f in fields)
        case ListType(element):
            return _hashable(element.type)
        case MapType():
            return False
    return type_base(kind) not in ("variant", "unknown")


def _plain(frame: DataFrame, options: ChangelogOptions) -> DataFrame:
    """Return the frame with generated column names, as Spark by default does not distinguish upper and lower case.

    (The setting is ``spark.sql.caseSensitive``.)
    """
    return frame.toDF(*map(_PLAIN.format, range(len(options.fields) + len(CHANGE_FIELDS))))


def _column(path: Sequence[NestedField], options: ChangelogOptions, version: tuple[int, int]) -> Column:
    """Return the column at a path, found by generated names, as real names at any depth may differ only in case."""
    from pyspark.sql import functions as f

    column = f.col(_PLAIN.format([one.field_id for one in options.fields].index(path[0].field_id)))
    for around, field in pairwise(path):
        assert isinstance(around.type, StructType)
        fields = around.type.fields
        plain = StructType(tuple(replace(one, name=_PLAIN.format(i)) for i, one in enumerate(fields)))
        place = [one.field_id for one in fields].index(field.field_id)
        column = column.cast(spark_type(plain, version)).getField(_PLAIN.format(place))
    return column


def _change_column(options: ChangelogOptions, place: int) -> Column:
    """Return a column of `CHANGE_FIELDS` by its index."""
    from pyspark.sql import functions as f

    return f.col(_PLAIN.format(len(options.fields) + place))


def _shares(changes: Sequence[ChangeFiles]) -> list[bytes]:
    """Return the files divided into parts of about equal size, each packed for one task."""
    weights = [_weights(change) for change in changes]
    limit = max(sum(map(sum, weights)) // _MOST_SHARES, _LEAST_BYTES)
    shares: list[list[tuple[ChangeFiles, list[int]]]] = []
    room = 0
    for change, each in zip(changes, weights, strict=True):
        mine: list[int] | None = None
        for row, weight in enumerate(each):
            if room <= 0 or not shares:
                shares.append([])
                room, mine = limit, None
            if mine is None:
                mine = []
                shares[-1].append((change, mine))
            mine.append(row)
            room -= weight
    return [zlib.compress(pickle.dumps([_some(change, rows) for change, rows in share]), 1) for share in shares]


def _weights(change: ChangeFiles) -> list[int]:
    sizes = pc.fill_null(change.files.entries["file_size_in_bytes"], 0)
    return [max(int(size), _OPEN_COST) for size in build.to_pylist(sizes)]


def _some(change: ChangeFiles, rows: list[int]) -> ChangeFiles:
    numbers = pa.array(rows, pa.int64())
    files = replace(change.files, stats={}).take(numbers)
    sides = tuple(None if side is None else taken_deletes(side, numbers) for side in change.sides)
    return replace(change, files=files, sides=sides)


def _read(
    session: SparkSession, state: TableState, shares: list[bytes], rows: SparkColumns, condition: Expression
) -> DataFrame:
    from pyspark.sql import types as t

    kinds = {"string": t.StringType(), "int32": t.IntegerType(), "int64": t.LongType()}
    change = [t.StructField(f.name, kinds[str(f.type)], True) for f in CHANGE_FIELDS]
    schema = t.StructType([*rows.schema.fields, *change])
    if not shares:
        return session.createDataFrame([], schema)
    given = session.createDataFrame(
        [(bytearray(share),) for share in shares], t.StructType([t.StructField("files", t.BinaryType(), False)])
    )
    if len(shares) > 1:
        given = given.repartition(len(shares))
    return given.mapInArrow(_reader(ship(state), rows, condition), schema)


def _reader(shipped: ShippedState, rows: SparkColumns, condition: Expression) -> Callable[[_Batches], _Batches]:
    outputs, version = rows.outputs, rows.version

    def read(batches: _Batches) -> _Batches:
        state = shipped.open()
        columns = SparkColumns(outputs, version)
        fields = [o.field for o in outputs]
        for batch in batches:
            for share in build.to_pylist(batch.column(0)):
                # The driver packed these bytes.
                for change in pickle.loads(zlib.decompress(share)):  # noqa: S301
                    reader = ChangeReader(state, change, fields, condition)
                    for row in range(len(change)):
                        for table in reader.read(row):
                            yield from _with_change(columns, table).to_batches()

    return read


def _with_change(columns: SparkColumns, table: pa.Table) -> pa.Table:
    """Return rows in Spark's types, with the columns of `CHANGE_FIELDS` appended."""
    made = columns.of(table.select(range(len(columns.outputs))))
    for field in CHANGE_FIELDS:
        made = made.append_column(field, table[field.name])
    return made


def _settler(options: ChangelogOptions) -> Callable[[_Batches], _Batches]:
    net, updates = options.net, options.updates
    identifiers = {o.name: [f.name for f in o.path] for o in options.identifiers}

    def settle(batches: _Batches) -> _Batches:
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held).combine_chunks()
        if net:
            table = net_of(table)
        else:
            table = without_carryovers(table)
            if updates:
                table = with_updates(table, {name: _at(table, path) for name, path in identifiers.items()})
        yield from table.to_batches()

    return settle


def _at(table: pa.Table, path: Sequence[str]) -> AnyArray:
    array = table[path[0]].combine_chunks()
    return pc.struct_field(array, list(path[1:])) if len(path) > 1 else array
