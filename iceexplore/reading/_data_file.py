"""Read the rows of one data file in a given schema, in batches (spec, "Column Projection")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import FileMissingError, FormatError, UnsupportedError, problem
from iceexplore.formats import FIELD_ID, ColumnRequest, DataFile, data_file_format, field_id, foreign
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.metadata import NestedField, Schema, StructType
from iceexplore.planning import partition_columns
from iceexplore.reading.columns._convert import Maker, arrow_field, constant, converter
from iceexplore.reading.columns._ids import Naming, has_all, has_ids, identified, is_by_name, naming_of, no_ids_problem
from iceexplore.reading.columns._wanted import DELETED, FILE, LAST_UPDATED, PARTITION, POS, ROW_ID, SPEC_ID

__all__ = ["SYNTHETIC_FOLDER", "is_synthetic", "read_data_file"]

#: Folder for the synthetic files of simulations, below the table's location.
SYNTHETIC_FOLDER = "data/made-up"
_PLACES = frozenset(f.field_id for f in (POS, FILE, SPEC_ID, PARTITION, DELETED))
#: Ids from this one on are reserved for metadata columns (spec, "Reserved Field IDs").
_RESERVED = 2147483447
_INHERITED = frozenset((ROW_ID.field_id, LAST_UPDATED.field_id))


def is_synthetic(location: str) -> bool:
    """Return whether a location belongs to a synthetic file (`append(files=3, ...)`), which has no rows to read."""
    return f"/{SYNTHETIC_FOLDER}/" in location


def read_data_file(
    state: TableState,
    file: EntryBatch,
    fields: Sequence[NestedField],
    *,
    to: Sequence[AnyField] | None = None,
    row_groups: Sequence[int] | None = None,
    batch_rows: int | None = None,
    kind: str = "data-file",
    required: bool = False,
) -> Iterator[pa.Table]:
    """Yield the rows of a data file in batches, in ascending order of positions, without applying deletes.

    Columns are found by field id, at every depth. A column that the file lacks has the value of its identity partition
    field if there is one, otherwise the column's initial default, otherwise null (spec, "Column Projection"). Columns
    of a file without ids are found by the table's name mapping, unless the partition gives their values; without a
    mapping they are found by the schema's names, with a problem of code ``data-no-field-ids`` (Java would use their
    order). Only the needed columns of Parquet files are read, with at most one row group in memory, and checksums of
    pages are verified where present; Avro files are decoded only as far as batches are consumed; ORC files are read
    completely, within the memory limit.

    Parameters
    ----------
    file
        The file's entry and partition tuple, as a batch of one row.
    fields
        Columns of a schema, possibly reduced (`pruned`), and metadata columns except ``_deleted``. A column may occur
        twice.
    to
        The Arrow fields of the result, one for each of ``fields``; by default those of `arrow_fields`.
    row_groups
        Read only these row groups of a Parquet file; ignored for formats without row groups.
    batch_rows
        Maximum number of rows in a batch. If it is small, only the parts of a Parquet file that the consumed batches
        need are fetched.
    kind
        The file's role, under which its reads are logged.
    required
        Whether a missing column is an error: an equality delete file without its equality columns is invalid.

    Returns
    -------
    iterator of pyarrow.Table
        The columns in order, with field ids in their metadata; then ``_pos`` (int64), the row's position in the file.

    Raises
    ------
    FormatError, UnsupportedError, FileMissingError
        The file cannot be read: it is damaged, encrypted, or a synthetic file; or a variant is shredded.
    """
    entry = file.entries.slice(0, 1).to_pylist()[0]
    if entry["column_files"] and not required:
        yield from _with_column_files(state, file, entry, fields, to, row_groups, batch_rows, kind)
        return
    made = _Columns(state, file, entry, fields, to, required=required)
    for start, batch in _batches(state, entry, made, row_groups, batch_rows, kind):
        yield made.of(batch, start)


def _with_column_files(
    state: TableState,
    file: EntryBatch,
    entry: Mapping[str, Any],
    fields: Sequence[NestedField],
    to: Sequence[AnyField] | None,
    row_groups: Sequence[int] | None,
    batch_rows: int | None,
    kind: str,
) -> Iterator[pa.Table]:
    """Yield a data file's rows, with updated columns taken from column files, which have the same number of rows."""
    kinds = [arrow_field(f) for f in fields] if to is None else list(to)
    source = [_column_file_of(entry, f) for f in fields]
    updated: dict[int, pa.Table] = {}
    for number in sorted({n for n in source if n is not None}):
        one = entry["column_files"][number]
        mine = [i for i, n in enumerate(source) if n == number]
        own = {**entry, "location": one["location"], "file_size_in_bytes": one["file_size_in_bytes"]}
        own |= {"file_format": one["file_format"] or entry["file_format"], "column_files": None}
        made = _Columns(state, file, own, [fields[i] for i in mine], [kinds[i] for i in mine], required="column file")
        parts = [made.of(batch, start) for start, batch in _batches(state, own, made, None, None, kind)]
        updated[number] = pa.concat_tables(parts) if parts else made.schema.empty_table()
        rows = updated[number].num_rows
        if entry["record_count"] is not None and rows != entry["record_count"]:
            raise FormatError(
                f"the column file has {rows:,} rows, its data file {entry['record_count']:,}: they must be equal",
                location=one["location"],
                field="record_count",
                code="count-mismatch",
            )
    rest = [i for i, n in enumerate(source) if n is None]
    base = _Columns(state, file, entry, [fields[i] for i in rest], [kinds[i] for i in rest], required=False)
    places = [
        rest.index(i) if n is None else [j for j, m in enumerate(source) if m == n].index(i)
        for i, n in enumerate(source)
    ]
    schema = pa.schema([*kinds, base.schema.field(len(rest))])
    for start, batch in _batches(state, entry, base, row_groups, batch_rows, kind):
        table = base.of(batch, start)
        count = table.num_rows
        newer = {n: t.slice(start, count) for n, t in updated.items()}
        if any(t.num_rows != count for t in newer.values()):
            raise FormatError(
                f"the data file has more rows than its column files: at least {start + count:,}",
                location=entry["location"],
                field="record_count",
                code="count-mismatch",
            )
        columns = [(table if n is None else newer[n]).column(at) for n, at in zip(source, places, strict=True)]
        yield pa.Table.from_arrays([*columns, table.column(len(rest))], schema=schema)


def _column_file_of(entry: Mapping[str, Any], f: NestedField) -> int | None:
    """Return the index of the newest column file with a column; None if the values are in the data file itself."""
    ids = {f.field_id, *_inside(f)}
    for number in reversed(range(len(entry["column_files"]))):
        held = ids & set(entry["column_files"][number]["field_ids"] or ())
        if f.field_id in held:
            return number
        if held:
            raise UnsupportedError(
                f"column file {entry['column_files'][number]['location']} has a part of column {f.name!r} (field ids "
                f"{', '.join(map(str, sorted(held)))}): only updates of whole columns are read"
            )
    return None


def _inside(f: NestedField) -> set[int]:
    return {child.field_id for _, child in Schema(0, (f,)).walk()}


def _batches(
    state: TableState,
    entry: Mapping[str, Any],
    made: _Columns,
    row_groups: Sequence[int] | None,
    batch_rows: int | None,
    kind: str,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    location = entry["location"]
    try:
        with state.storage.open(location, kind=kind, size=entry["file_size_in_bytes"]) as opened:
            known = data_file_format(opened, location, entry["file_format"])
            request = ColumnRequest(
                made.fields,
                made.identified,
                row_groups=row_groups,
                batch_rows=batch_rows,
                record_count=entry["record_count"],
                nanoseconds=made.nanoseconds,
            )
            found = known.columns(DataFile(state.storage, location, opened, kind), request)
            check_count(state, entry, found.rows)
            yield from found.batches
    except FileMissingError:
        if is_synthetic(location):
            raise UnsupportedError(
                f"{location} is a synthetic file of a simulation (append(files=...)) without rows; append a data frame "
                "for data that can be read"
            ) from None
        raise


def check_count(state: TableState, entry: Mapping[str, Any], rows: int) -> None:
    claimed = entry["record_count"]
    if claimed is not None and claimed != rows:
        text = "The number of rows in the file differs from its manifest entry: counts from metadata are wrong."
        state.problems.add(
            problem("count-mismatch", entry["location"], text, field="record_count", found=rows, expected=claimed)
        )


class _Columns:
    """Converts the columns of one file to the requested columns."""

    def __init__(
        self,
        state: TableState,
        file: EntryBatch,
        entry: Mapping[str, Any],
        fields: Sequence[NestedField],
        to: Sequence[AnyField] | None,
        *,
        required: bool | str,
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

    def identified(self, schema: pa.Schema) -> list[AnyField]:
        """Return the file's columns with their field ids."""
        fields = list(schema)
        if self._naming is None:
            self._naming = naming_of(self.state)
        stands_in = len(fields) == 1 and not fields[0].name  # a placeholder column: no column of the file is needed
        if not self._naming.given and fields and not stands_in and not has_ids(fields):
            self.state.problems.add(no_ids_problem(self.entry["location"]))
        return identified(fields, self._naming)

    def of(self, batch: pa.RecordBatch, start: int) -> pa.Table:
        """Convert a batch of the file's rows that begins at position ``start``."""
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
                        f"the {'equality delete file' if self.required is True else self.required} lacks column "
                        f"{f.name!r}",
                        location=self.entry["location"],
                        field=str(f.field_id),
                    )
                if at >= 0 and f.field_id in self.constants and is_by_name(fields[at]):
                    at = -1  # the partition's value comes before a column found by name (spec, "Column Projection")
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
        """Add a problem for a required column without any value: it is read as null, which the schema forbids."""
        given = f.initial_default is not None or f.field_id in self.constants
        if f.required and not given and f.field_id < _RESERVED:
            text = "The file lacks a required column, which has no initial default: it reads as null."
            self.state.problems.add(problem("null-in-required", self.entry["location"], text, field=f.name))

    def _place(self, f: NestedField, target: pa.DataType, positions: AnyArray) -> AnyArray:
        rows = len(positions)
        if f.field_id == POS.field_id:
            return positions
        if f.field_id == FILE.field_id:
            return pa.repeat(pa.scalar(self.entry["location"], pa.string()), rows)
        if f.field_id == SPEC_ID.field_id:
            return pa.repeat(pa.scalar(self.entry["partition_spec_id"], pa.int32()), rows)
        if f.field_id == DELETED.field_id:
            return pa.repeat(pa.scalar(False), rows)
        none, arrays = pa.scalar(None, pa.null()), []
        for i, child in enumerate(f.type.fields if isinstance(f.type, StructType) else ()):
            to = target.field(i).type
            at = -1 if self.tuple is None else self.tuple.type.get_field_index(str(child.field_id))
            value = none if at < 0 or self.tuple is None else pc.struct_field(self.tuple, [at])[0]
            arrays.append(build.repeat(value.cast(to), rows) if value.is_valid else pa.nulls(rows, to))
        if not arrays:
            return build.nulls(rows, target)
        return pa.StructArray.from_arrays(arrays, fields=list(cast(pa.StructType, target)))

    def _inherited(self, f: NestedField, found: AnyArray | None, positions: AnyArray) -> AnyArray:
        """Return a row lineage column: stored or inherited, or null without a first row id (spec, "Row Lineage")."""
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
    """Return the values of identity partition fields, nulls included, by the id of the source column.

    The data files of migrated Hive tables do not contain these columns.
    """
    spec = None if file.partition is None else state.metadata.spec(entry["partition_spec_id"])
    if spec is None or file.partition is None:
        return {}
    out = {}
    for column in partition_columns(state.metadata, spec):
        at = file.partition.type.get_field_index(column.key)
        if column.transform.is_identity and column.source is not None and at >= 0:
            value = pc.struct_field(file.partition, [at])[0]
            if value.is_valid or column.source.field_id not in out:
                out[column.source.field_id] = value
    return out
