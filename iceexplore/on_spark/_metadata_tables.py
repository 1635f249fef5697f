"""Metadata tables on Spark: workers read the manifests with the same code as without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from iceexplore.errors import FormatError, OptionError, UnsupportedError
from iceexplore.graph import TableState
from iceexplore.inspect import DEFINITIONS, PARTITION_ROWS, ByLeaf, partition_rows_schema
from iceexplore.manifests import ContentType
from iceexplore.metadata import Snapshot
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.transport._arrow_schema import spark_schema
from iceexplore.on_spark.transport._bundles import deal, frame_of, from_table, parallelism
from iceexplore.on_spark.transport._state import ShippedState, check_reach, ship

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = [
    "leaf_frame",
    "metadata_frame",
    "parts_of",
]


def add_up(rows: DataFrame, schema: pa.Schema) -> DataFrame:
    """Aggregate rows into one per partition with a live file (Java: ``PartitionsTable``).

    Parameters
    ----------
    rows
        Rows of `iceexplore.inspect.partition_rows_schema`, with ``leaf`` and ``place`` that define their order.
    schema
        The schema of the table ``partitions``.
    """
    from pyspark.sql import functions as f

    partitioned = "partition" in rows.columns

    def of(kind: ContentType, value: Column | int) -> Column:
        return f.coalesce(f.sum(f.when(f.col("content_type") == int(kind), value)), f.lit(0))

    # The newest known snapshot; if several entries have its timestamp, the first of them in the order of the manifests.
    newest = f.max(
        f.when(
            f.col("micros").isNotNull(),
            f.struct(
                "micros", (-f.col("leaf")).alias("leaf"), (-f.col("place")).alias("place"), "snapshot_id",
                f.coalesce("partition_spec_id", f.lit(0)).alias("spec_id"),
            ),
        )
    )  # fmt: skip
    by = ["width", "partition"] if partitioned else ["width"]
    records, one = f.coalesce("record_count", f.lit(0)), f.lit(1)
    made = rows.groupBy(*by).agg(
        of(ContentType.DATA, records).alias("record_count"),
        of(ContentType.DATA, one).alias("file_count"),
        of(ContentType.DATA, f.coalesce("file_size_in_bytes", f.lit(0))).alias("total_data_file_size_in_bytes"),
        of(ContentType.POSITION_DELETE, records).alias("position_delete_record_count"),
        of(ContentType.POSITION_DELETE, one).alias("position_delete_file_count"),
        of(ContentType.EQUALITY_DELETE, records).alias("equality_delete_record_count"),
        of(ContentType.EQUALITY_DELETE, one).alias("equality_delete_file_count"),
        newest.alias("newest"),
    )
    made = made.withColumn("spec_id", f.coalesce("newest.spec_id", f.lit(0)))
    made = made.withColumn("last_updated_at", f.timestamp_micros("newest.micros"))
    made = made.withColumn("last_updated_snapshot_id", f.col("newest.snapshot_id"))
    return made.select(*(f.col(field.name).cast(field.dataType) for field in spark_schema(schema)))


OnError = Literal["raise", "skip"]
#: The approximate maximum and minimum number of bytes of manifests that one Spark task reads (Iceberg's runtime also
#: uses 32 MiB). Starting a task takes as much processor time, in Python and Java together, as reading 2 MiB.
_BUNDLE_BYTES = 32 << 20
_LEAST_BYTES = 4 << 20
#: Number of tasks per worker, unless tasks would be smaller than `_LEAST_BYTES`. With several tasks per worker, a slow
#: task delays the query less.
_ROUNDS = 3
#: Maximum number of tasks: the list of all tasks is sent to each of them.
_MOST_BUNDLES = 20_000


@dataclass(frozen=True)
class _Bundle:
    """Some manifests, each given by its snapshot's id, its row in the root, and its number among all manifests."""

    snapshots: tuple[int, ...]
    rows: tuple[int, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class _Work:
    """The function by which a worker turns a bundle into rows."""

    state: ShippedState
    table: str
    columns: tuple[str, ...]
    on_error: OnError

    def __call__(self, bundle: _Bundle) -> Iterator[pa.Table]:
        state = self.state.open()
        how, schema = _recipe(state, self.table)
        how, schema = how.narrowed(schema, self.columns)
        make = how.maker(state, schema)
        by_id = {s.snapshot_id: s for s in state.metadata.snapshots}
        for snapshot, row, number in zip(bundle.snapshots, bundle.rows, bundle.numbers, strict=True):
            root, leaf = how.read(state, by_id[snapshot], row)
            wrong = [p for m in (root, leaf) for p in m.problems if p.severity == "error"]
            if wrong and self.on_error == "raise":
                raise FormatError(
                    f"{wrong[0]}. on_error='skip' leaves out unreadable manifests; t.verify(spark) lists all problems",
                    code=wrong[0].code,
                )
            at = 0
            for made in make(root, leaf):
                if self.table == _PARTITION_ROWS:
                    made = made.append_column("place", pa.array(range(at, at + made.num_rows), pa.int64()))
                    made = made.append_column("leaf", pa.repeat(pa.scalar(number, pa.int64()), made.num_rows))
                    at += made.num_rows
                yield made if tuple(made.column_names) == self.columns else made.select(list(self.columns))


_PARTITION_ROWS = "partition rows"


def _recipe(state: TableState, table: str) -> tuple[ByLeaf, pa.Schema]:
    if table == _PARTITION_ROWS:
        return PARTITION_ROWS, partition_rows_schema(state)
    definition = DEFINITIONS[table]
    if definition.by_leaf is None:
        raise OptionError(f"{table} is not built manifest by manifest")
    return definition.by_leaf, definition.schema(state)


def metadata_frame(
    state: TableState,
    session: SparkSession,
    name: str,
    *,
    flat: bool = False,
    columns: Iterable[str] | None = None,
    on_error: OnError = "raise",
) -> DataFrame:
    """Return a metadata table as a Spark DataFrame: ``t.inspect.files(spark=spark)``.

    The driver reads the metadata file and the roots (for the ``all_`` tables those of every snapshot). Workers read
    the manifests, with their manifest DVs, and produce the rows whenever the DataFrame is executed. So ``files``,
    ``data_files``, ``delete_files``, ``entries``, their ``all_`` counterparts, ``content_entries``, ``column_files``,
    ``column_stats``, ``deletion_vectors``, ``position_deletes`` and ``partitions`` keep no manifest content on the
    driver.

    The others are built on the driver and passed to Spark, as their content is in the metadata file or the roots
    (``snapshots``, ``history``, ``refs``, ``metadata_log_entries``, ``manifests``, ``all_manifests``,
    ``manifest_deletion_vectors``, ``schemas``, ``specs``, ``expressions``, ``sort_orders``, ``properties``).
    ``puffin_blobs`` is refused, because the distinct files of all vectors would have to be determined first.

    Columns have the names and types of `MetadataTable.schema`. Types that Spark lacks are replaced: bounds of type
    ``time`` become bigint (microseconds), bounds of nanosecond timestamps also become bigint, and ``fixed`` becomes
    binary. The order of rows is unspecified. Workers must have iceexplore and access to the files; they receive the
    credentials with which the table was opened.

    Parameters
    ----------
    session
        A session of Spark 3.5 or later, classic or Connect.
    flat
        Whether each field of a struct becomes a column of its own, named by its path.
    columns
        Top-level columns of the table; all by default. Spark does not tell Python which columns a query needs, so
        naming only these makes the query many times faster, above all if columns with statistics are left out.
    on_error
        Whether an unreadable manifest makes the query fail (``"raise"``) or is left out (``"skip"``).

    Raises
    ------
    OptionError
        ``session`` is not a Spark session, or an option or column is unknown.
    UnsupportedError
        The table is ``puffin_blobs``, the storage cannot be sent to other processes, or the files are accessible on
        this machine only.
    """
    info = SessionInfo.of(session)
    if on_error not in ("raise", "skip"):
        raise OptionError(f"on_error={on_error!r}: choose 'raise' or 'skip'")
    definition = DEFINITIONS[name]
    if name == "puffin_blobs":
        raise UnsupportedError("puffin_blobs is not available on Spark: omit spark=, or use deletion_vectors")
    schema = definition.schema(state)
    chosen = _chosen(schema, columns, name)
    if name == "partitions":
        rows = partition_rows_schema(state)
        for extra in ("place", "leaf"):
            rows = rows.append(pa.field(extra, pa.int64()))
        frame = add_up(leaf_frame(state, session, _PARTITION_ROWS, rows, info, on_error), schema)
        frame = frame.select(*map(_quoted, chosen.names))
    elif definition.by_leaf is None:
        made = [*definition.build(state, schema)]
        table = pa.concat_tables(made) if made else schema.empty_table()
        frame = from_table(session, table.select(chosen.names))
    else:
        frame = leaf_frame(state, session, name, chosen, info, on_error)
    return _flat(frame) if flat else frame


def _chosen(schema: pa.Schema, columns: Iterable[str] | None, table: str) -> pa.Schema:
    if columns is None:
        return schema
    names = [columns] if isinstance(columns, str) else list(columns)
    strange = [n for n in names if n not in schema.names]
    if strange or not names:
        raise OptionError(f"columns={names!r}: {table} has {', '.join(schema.names)}")
    return pa.schema([f for f in schema if f.name in names])


def leaf_frame(
    state: TableState, session: SparkSession, table: str, schema: pa.Schema, info: SessionInfo, on_error: OnError
) -> DataFrame:
    """Return the rows that workers produce from manifests."""
    how, _ = _recipe(state, table)
    check_reach(state, info)
    places = how.places(state)
    sizes = [p.size for p in places]
    bundles = []
    for hand in deal(sizes, parts_of(sizes, parallelism(session, info))):
        mine = [places[i] for i in hand]
        bundles.append(_Bundle(tuple(p.snapshot.snapshot_id for p in mine), tuple(p.row for p in mine), tuple(hand)))
    snapshots: Iterable[Snapshot] = (p.snapshot for p in places)
    if table == _PARTITION_ROWS:  # computing these rows takes the timestamps of all snapshots
        snapshots = state.metadata.snapshots
    return frame_of(
        session, bundles, _Work(ship(state, snapshots=snapshots), table, tuple(schema.names), on_error), schema
    )


def parts_of(sizes: Sequence[int], workers: int) -> int:
    """Return the number of tasks for manifests of these sizes and this number of workers."""
    total = sum(sizes)
    rounds = min(_ROUNDS * workers, -(-total // _LEAST_BYTES))
    return min(len(sizes), _MOST_BUNDLES, max(workers, rounds, -(-total // _BUNDLE_BYTES)))


def _flat(frame: DataFrame) -> DataFrame:
    """Replace all structs, at every depth, by columns that are named by their paths."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    while any(isinstance(field.dataType, StructType) for field in frame.schema.fields):
        columns = []
        for field in frame.schema.fields:
            own = f.col(_quoted(field.name))
            if not isinstance(field.dataType, StructType):
                columns.append(own)
                continue
            columns += [own.getField(c).alias(f"{field.name}.{c}") for c in field.dataType.names]
        frame = frame.select(*columns)
    return frame


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
