"""The workers' part in writing data files: compute the partition key of each row, and write the rows of each key."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from iceexplore.arrow import AnyArray, AnyColumn, DynamicArray, build
from iceexplore.commits import CommitWriter, LayoutOptions, WritableStorage
from iceexplore.graph import TableState
from iceexplore.manifests import ENTRY_SCHEMA, EntryBatch, concat_batches
from iceexplore.metadata import NestedField, Schema, StructType
from iceexplore.on_spark.transport._state import ShippedState
from iceexplore.planning import PartitionColumn, partition_columns
from iceexplore.reading import LAST_UPDATED, ROW_ID, arrow_fields
from iceexplore.writing import files_of_frame, fit_columns, partition_tuples, target_bytes

__all__ = [
    "FileWriter",
    "Keys",
    "LINEAGE",
    "MOST_HELD",
    "chunks",
    "lineage_of",
    "packed",
    "partition_keys",
    "unpacked",
    "writer_of",
]

#: The lineage columns that rewritten rows keep, after the table's own columns.
LINEAGE = (ROW_ID, LAST_UPDATED)

#: Maximum number of bytes of rows that a worker holds in memory. These rows become one file, so this also limits the
#: size of files, however large the target file size is.
MOST_HELD = 256 << 20
_STATS = "stats."
_PARTITION = "partition tuple"
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Keys:
    """A function that adds a key column to rows, with the same number for all rows of a partition."""

    state: ShippedState
    name: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with the key as an additional column of 64-bit integers."""
        state = self.state.open()
        spec = state.metadata.spec()
        assert spec is not None  # checked by the driver
        columns = partition_columns(state.metadata, spec)
        schema = _sources(state.schema, columns)
        names = [f.name for f in schema.fields]
        for batch in batches:
            given = pa.Table.from_batches([batch])
            table = fit_columns(given.select([n for n in names if n in given.column_names]), schema, complete=True)
            keys = partition_keys(partition_tuples(table, schema, columns), batch.num_rows)
            fields = [*batch.schema, pa.field(self.name, pa.int64())]
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(keys)], schema=pa.schema(fields))


def _sources(schema: Schema, columns: Sequence[PartitionColumn]) -> Schema:
    """Return the schema reduced to the top-level columns that contain partition sources."""
    wanted = {column.source.field_id for column in columns if column.source is not None}

    def within(f: NestedField) -> bool:
        return f.field_id in wanted or (isinstance(f.type, StructType) and any(map(within, f.type.fields)))

    return replace(schema, fields=tuple(f for f in schema.fields if within(f)))


def partition_keys(tuples: Sequence[AnyArray], rows: int) -> npt.NDArray[np.int64]:
    """Return a hash per row, in any process equal for equal partition tuples and almost surely different for others."""
    key = np.zeros(rows, np.uint64)
    for array in tuples:
        encoded = _plain(array).dictionary_encode(null_encoding="encode")
        values = [xxhash.xxh3_64_intdigest(repr(value).encode()) for value in encoded.dictionary.to_pylist()]
        if rows:
            key = key * _ODD + np.array(values, np.uint64)[np.asarray(encoded.indices)]
    return key.view(np.int64)


def _plain(array: AnyArray) -> AnyArray:
    """Return the array in a type whose values convert to Python; nanoseconds, for example, do not."""
    if pa.types.is_temporal(array.type):
        return array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array


@dataclass(frozen=True)
class FileWriter:
    """A function that writes rows as data files and yields the entries for the commit, as one row of bytes per task.

    Attributes
    ----------
    key
        The key column of `Keys`, by which the rows are sorted; None if the table is not partitioned.
    lineage
        Whether the two columns before the key are the rows' lineage columns.
    """

    state: ShippedState
    key: str | None
    lineage: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one batch with one row, column ``files``, in the form of `packed`; nothing if there are no rows."""
        state = self.state.open()
        writer = writer_of(state)
        target = min(target_bytes(state.metadata.properties), MOST_HELD)
        made = [self._files(state, rows, writer) for rows in chunks(batches, self.key, target)]
        if made:
            yield pa.record_batch([pa.array([packed(concat_batches(made))], pa.binary())], names=["files"])

    def _files(self, state: TableState, rows: pa.Table, writer: CommitWriter) -> EntryBatch:
        if not self.lineage:
            return files_of_frame(state, rows, writer)
        given = rows.num_columns - len(LINEAGE)
        return files_of_frame(state, rows.select(range(given)), writer, lineage=lineage_of(rows))


def lineage_of(rows: pa.Table) -> pa.Table | None:
    """Return the lineage columns (the last two), named and typed as in data files; None if all rows are new."""
    columns = rows.columns[-len(LINEAGE) :]
    if all(column.null_count == len(column) for column in columns):
        return None
    return pa.Table.from_arrays(columns, schema=pa.schema(arrow_fields(LINEAGE)))


def writer_of(state: TableState) -> CommitWriter:
    """Return a writer with random file names, so that a repeated attempt at a task does not overwrite the first one's.

    Only the files of the attempt that Spark counts are committed; the others remain as orphan files.
    """
    return CommitWriter(
        storage=cast("WritableStorage", state.storage),
        base=state,
        options=LayoutOptions.of(state.metadata.format_version),
        snapshot_id=0,
        sequence_number=0,
        first_row_id=None,
        timestamp_ms=0,
        attempt=1,
        names=Random(secrets.randbits(128)),  # noqa: S311 (file names, not secrets)
    )


def chunks(batches: Iterator[pa.RecordBatch], key: str | None, target: int) -> Iterator[pa.Table]:
    """Yield tables of neighbouring rows with the same key, up to about ``target`` bytes, without the key column."""
    held: list[pa.RecordBatch] = []
    size, last = 0, None
    for batch in batches:
        for number, rows in _runs(batch, key):
            if held and (number != last or size + rows.nbytes > target):
                yield pa.Table.from_batches(held)
                held, size = [], 0
            held.append(rows)
            size += rows.nbytes
            last = number
    if held:
        yield pa.Table.from_batches(held)


def _runs(batch: pa.RecordBatch, key: str | None) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    if not batch.num_rows:
        return
    if key is None:
        yield None, batch
        return
    numbers = np.asarray(batch.column(batch.num_columns - 1))
    rows = batch.select(list(range(batch.num_columns - 1)))
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])).tolist()
    for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        yield int(numbers[start]), rows.slice(start, end - start)


def packed(batch: EntryBatch) -> bytes:
    """Return entries as the bytes of an Arrow stream, to be sent to the driver."""
    columns: dict[str, AnyColumn] = {f.name: batch.entries[f.name] for f in ENTRY_SCHEMA}
    columns |= {f"{_STATS}{field_id}": stats for field_id, stats in batch.stats.items()}
    if batch.partition is not None:
        columns[_PARTITION] = batch.partition
    table = build.table(columns)
    sink: Any = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def unpacked(data: bytes) -> EntryBatch:
    """Return the entries in the bytes from `packed`."""
    table = pa.ipc.open_stream(data).read_all().combine_chunks()

    def one(name: str) -> DynamicArray:
        column = table[name]
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    stats = {int(n.removeprefix(_STATS)): one(n) for n in table.column_names if n.startswith(_STATS)}
    entries = table.select(ENTRY_SCHEMA.names).cast(ENTRY_SCHEMA)
    return EntryBatch(entries, stats, one(_PARTITION) if _PARTITION in table.column_names else None)
