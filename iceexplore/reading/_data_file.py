"""The rows of one data file as a schema sees them (spec, "Column Projection"), in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import FileMissingError, FormatError, UnsupportedError, problem
from iceexplore.formats import (
    FIELD_ID,
    StreamLimit,
    avro_batches,
    field_id,
    foreign,
    index_blocks,
    plain_field,
    read_header,
    read_rows,
    sniff_file,
)
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import NestedField, StructType
from iceexplore.planning import partition_columns
from iceexplore.reading._parquet import BATCH_ROWS, ParquetRows
from iceexplore.reading.columns._convert import Maker, arrow_field, constant, converter
from iceexplore.reading.columns._ids import Naming, has_all, has_ids, identified, is_by_name, naming_of, no_ids_problem
from iceexplore.reading.columns._wanted import DELETED, FILE, LAST_UPDATED, PARTITION, POS, ROW_ID, SPEC_ID
from iceexplore.storage import DATA_RATIO, Budget

__all__ = ["MADE_UP_FOLDER", "is_made_up", "read_data_file"]

#: Where a simulation's made-up files would stand, under the table's location.
MADE_UP_FOLDER = "data/made-up"
_PLACES = frozenset(f.field_id for f in (POS, FILE, SPEC_ID, PARTITION, DELETED))
#: Ids from here on are reserved for metadata columns (spec, "Reserved Field IDs").
_RESERVED = 2147483447
_INHERITED = frozenset((ROW_ID.field_id, LAST_UPDATED.field_id))


def is_made_up(location: str) -> bool:
    """Whether a file is made up (`append(files=3, ...)`): nothing stands there, reading its rows is not possible."""
    return f"/{MADE_UP_FOLDER}/" in location


def read_data_file(
    state: TableState,
    file: EntryBatch,
    fields: Sequence[NestedField],
    *,
    to: Sequence[pa.Field] | None = None,
    row_groups: Sequence[int] | None = None,
    batch_rows: int | None = None,
    kind: str = "data-file",
    required: bool = False,
    checksums: bool = False,
) -> Iterator[pa.Table]:
    """The rows of a data file, in batches, positions ascending; no delete is applied.

    Columns are found by field id, at every depth. What the file lacks is the partition's value where an identity
    field has it, else the column's initial default, else null (spec, "Column Projection"). Columns of a file
    without ids are found by the table's name mapping, unless the partition gives their values; without a mapping by
    the schema's names, with a problem of code ``data-no-field-ids`` (Java would take them by their order). Of
    Parquet only the columns needed are read, and never more than a row group is in memory; of Avro files no more is
    decoded than batches are taken; ORC files are read as a whole, within the memory limit.

    Parameters
    ----------
    file
        The file's entry and tuple, a batch of one.
    fields
        Columns of a schema, perhaps cut down (`pruned`), and metadata columns (but ``_deleted``). A column may be
        given twice.
    to
        The Arrow fields to make of them, one each; by default `arrow_fields`.
    row_groups
        Only these row groups of a Parquet file; every row of ORC and Avro.
    batch_rows
        Rows of a batch at most. Where they are few, no more of a Parquet file is fetched than the batches need that
        are taken.
    kind
        What the read log calls the reads.
    required
        The file must have the columns: an equality delete without its column says nothing.
    checksums
        Hold the pages of a Parquet file against their checksums, where it has any: a page that does not fit is damage.

    Returns
    -------
    iterator of pyarrow.Table
        The columns in order, field ids in their metadata; then ``_pos`` (int64), the row's place in the file.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        It cannot be read: damaged, encrypted, made up by a simulation; a variant that is shredded.
    """
    entry = file.entries.slice(0, 1).to_pylist()[0]
    made = _Columns(state, file, entry, fields, to, required=required)
    for start, batch in _batches(state, entry, made, row_groups, batch_rows, kind, checksums):
        yield made.of(batch, start)


def _batches(
    state: TableState,
    entry: Mapping[str, Any],
    made: _Columns,
    row_groups: Sequence[int] | None,
    batch_rows: int | None,
    kind: str,
    checksums: bool,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    location = entry["location"]
    try:
        with state.storage.open(location, kind=kind, size=entry["file_size_in_bytes"]) as opened:
            found = sniff_file(opened)
            if found == "parquet":
                sparing = batch_rows is not None and batch_rows < BATCH_ROWS
                rows = ParquetRows(opened, location, nanoseconds=made.nanoseconds, sparing=sparing, checksums=checksums)
                check_count(state, entry, rows.rows)
                plain = made.identified(rows.schema)
                leaves = rows.leaves(plain, made.fields)
                yield from rows.batches(leaves, row_groups, batch_rows, entry["record_count"])
                return
            if found == "avro":
                yield from _avro(state, entry, opened, batch_rows)
                return
            table = read_rows(state.storage, location, kind=kind, stated=entry["file_format"], file=opened)
    except FileMissingError:
        if is_made_up(location):
            raise UnsupportedError(
                f"{location} is made up by a simulation (append(files=...)): it has no rows; append a data frame for "
                "data that can be read"
            ) from None
        raise
    check_count(state, entry, table.num_rows)
    start = 0
    for batch in table.to_batches(max_chunksize=batch_rows):
        yield start, batch
        start += batch.num_rows


def _avro(
    state: TableState, entry: Mapping[str, Any], opened: Any, batch_rows: int | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of an Avro file in batches; no more is decoded than is taken."""
    location = entry["location"]
    data = opened.read()
    limit = StreamLimit(Budget(location, len(data), ratio=DATA_RATIO))
    with foreign("the Avro file", location):
        check_count(state, entry, index_blocks(data, read_header(data, location), location).rows)
        found = avro_batches(data, location, batch_rows) if batch_rows else avro_batches(data, location)
        schema = pa.schema([plain_field(f) for f in next(found)])
        start = 0
        for batch in found:
            limit.take(batch.nbytes, "the rows")
            columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
            yield start, pa.RecordBatch.from_arrays(columns, schema=schema)
            start += batch.num_rows


def check_count(state: TableState, entry: Mapping[str, Any], rows: int) -> None:
    said = entry["record_count"]
    if said is not None and said != rows:
        text = "The file has another number of rows than its manifest says: counts from metadata are wrong."
        state.problems.add(
            problem("count-mismatch", entry["location"], text, field="record_count", found=rows, expected=said)
        )


class _Columns:
    """How the columns of one file become those that are asked for."""

    def __init__(
        self,
        state: TableState,
        file: EntryBatch,
        entry: Mapping[str, Any],
        fields: Sequence[NestedField],
        to: Sequence[pa.Field] | None,
        *,
        required: bool,
    ) -> None:
        self.state = state
        self.entry = entry
        self.required = required
        self.fields = list(fields)
        self.to = [arrow_field(f) for f in fields] if to is None else list(to)
        self.constants = _constants(state, file, entry)
        self.tuple = file.partition
        schema = [*self.to, pa.field(POS.name, pa.int64(), metadata={FIELD_ID: str(POS.field_id)})]
        self.schema = pa.schema(schema)
        self.nanoseconds = any(_has_nanoseconds(f.type) for f in self.to)
        self._naming: Naming | None = None
        self._made_for: pa.Schema | None = None
        self._steps: list[tuple[int, Maker | None]] = []

    def identified(self, schema: pa.Schema) -> list[pa.Field]:
        """The file's columns with their ids."""
        fields = list(schema)
        if self._naming is None:
            self._naming = naming_of(self.state)
        stands_in = len(fields) == 1 and not fields[0].name  # rows of which no column is needed
        if not self._naming.given and fields and not stands_in and not has_ids(fields):
            self.state.problems.add(no_ids_problem(self.entry["location"]))
        return identified(fields, self._naming)

    def of(self, batch: pa.RecordBatch, start: int) -> pa.Table:
        """A batch of the file's rows, from position ``start``, as asked for."""
        location = self.entry["location"]
        if self._made_for is None or not self._made_for.equals(batch.schema, check_metadata=True):
            self._prepare(batch.schema)
        rows = batch.num_rows
        positions = pa.array(np.arange(start, start + rows, dtype=np.int64))
        columns = []
        for f, to, (at, make) in zip(self.fields, self.to, self._steps, strict=True):
            with foreign(f"column {f.name}", location):
                found = None if make is None else make(batch.column(at))
                if f.field_id in _PLACES:
                    found = self._place(f, to.type, positions)
                elif f.field_id in _INHERITED:
                    found = self._inherited(f, found, positions)
                elif found is None:
                    found = constant(f, to.type, rows, self.constants)
                columns.append(found)
        return pa.Table.from_arrays([*columns, positions], schema=self.schema)

    def _prepare(self, schema: pa.Schema) -> None:
        with foreign("the schema", self.entry["location"]):
            fields = self.identified(schema)
            ids = [field_id(f) for f in fields]
            self._steps = []
            for f, to in zip(self.fields, self.to, strict=True):
                at = ids.index(f.field_id) if f.field_id in ids and f.field_id not in _PLACES else -1
                if self.required and (at < 0 or not has_all(fields[at], f)):
                    raise FormatError(
                        f"the file lacks column {f.name!r}, which it goes by",
                        location=self.entry["location"],
                        field=str(f.field_id),
                    )
                if at >= 0 and f.field_id in self.constants and is_by_name(fields[at]):
                    at = -1  # the partition's value comes before what a name finds (spec, "Column Projection")
                if at < 0:
                    self._check_absent(f)
                    self._steps.append((-1, None))
                    continue
                try:
                    make = converter(fields[at].type, f.type, to.type, self.constants, f.name)
                except FormatError as error:
                    where = self.entry["location"]
                    raise FormatError(error.reason, location=where, field=error.field, code=error.code) from None
                self._steps.append((at, make))
        self._made_for = schema

    def _check_absent(self, f: NestedField) -> None:
        """A required column that nothing gives a value is null in each row, which no schema allows."""
        given = f.initial_default is not None or f.field_id in self.constants
        if f.required and not given and f.field_id < _RESERVED:
            text = "The file lacks a required column, which has no initial default: it reads as null."
            self.state.problems.add(problem("null-in-required", self.entry["location"], text, field=f.name))

    def _place(self, f: NestedField, target: pa.DataType, positions: pa.Array) -> pa.Array:
        rows = len(positions)
        if f.field_id == POS.field_id:
            return positions
        if f.field_id == FILE.field_id:
            return pa.repeat(pa.scalar(self.entry["location"], pa.string()), rows)
        if f.field_id == SPEC_ID.field_id:
            return pa.repeat(pa.scalar(self.entry["partition_spec_id"], pa.int32()), rows)
        if f.field_id == DELETED.field_id:
            return pa.repeat(pa.scalar(False), rows)
        arrays = []
        for i, child in enumerate(f.type.fields if isinstance(f.type, StructType) else ()):
            to = target.field(i).type
            at = -1 if self.tuple is None else self.tuple.type.get_field_index(str(child.field_id))
            value = pa.scalar(None) if at < 0 else pc.struct_field(self.tuple, [at])[0]
            arrays.append(pa.repeat(value.cast(to), rows) if value.is_valid else pa.nulls(rows, to))
        if not arrays:
            return pa.nulls(rows, target)
        return pa.StructArray.from_arrays(arrays, fields=list(target))

    def _inherited(self, f: NestedField, found: pa.Array | None, positions: pa.Array) -> pa.Array:
        """Row lineage: null without a first row id; else as the file has it, or inherited (spec, "Row Lineage")."""
        first = self.entry["first_row_id"]
        if first is None:
            return pa.nulls(len(positions), pa.int64())
        if f.field_id == ROW_ID.field_id:
            inherited = pc.add(positions, pa.scalar(first, pa.int64()))
        else:
            inherited = pa.repeat(pa.scalar(self.entry["sequence_number"], pa.int64()), len(positions))
        return inherited if found is None else pc.coalesce(found, inherited)


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(kind.field(i).type) for i in range(kind.num_fields))


def _constants(state: TableState, file: EntryBatch, entry: Mapping[str, Any]) -> dict[int, Any]:
    """Values that identity fields of the tuple give (metadata-only migrations of Hive tables), null too."""
    spec = None if file.partition is None else state.metadata.spec(entry["partition_spec_id"])
    if spec is None or file.partition is None:
        return {}
    out = {}
    for column in partition_columns(state.metadata, spec):
        at = file.partition.type.get_field_index(column.key)
        if column.field.transform == "identity" and column.source is not None and at >= 0:
            value = pc.struct_field(file.partition, [at])[0]
            if value.is_valid or column.source.field_id not in out:
                out[column.source.field_id] = value
    return out
