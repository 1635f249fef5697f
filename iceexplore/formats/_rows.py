"""The rows of a Parquet, ORC or Avro file as an Arrow table with field ids, within a memory limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats._avro_rows import avro_batches
from iceexplore.formats._foreign import foreign
from iceexplore.formats._helper import orc_rows
from iceexplore.formats._parquet_size import KeptChunks, batch_rows, chunk_sizes
from iceexplore.formats._sniff import sniff_file
from iceexplore.storage import DATA_RATIO, Budget

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile, Storage

__all__ = ["FIELD_ID", "MAX_TABLE_BYTES", "field_id", "plain_field", "read_rows"]

#: The key under which Arrow keeps a field's id; ORC's and Avro's ids are put there, too.
FIELD_ID = b"PARQUET:field_id"
_ORC_ID = b"iceberg.id"
#: A file's rows in memory where the memory limit allows as much.
MAX_TABLE_BYTES = 1 << 32
_BATCH_ROWS = 1 << 16
#: A far file up to so many bytes is fetched in as few requests as it takes, ahead of its decoding.
_AHEAD_BYTES = 64 << 20
_WHAT = "the rows"


def field_id(field: pa.Field) -> int | None:
    """The field id that a field carries, if any."""
    metadata = field.metadata or {}
    raw = metadata.get(FIELD_ID, metadata.get(_ORC_ID))
    try:
        return None if raw is None else int(raw)
    except ValueError:
        return None


def plain_field(field: pa.Field) -> pa.Field:
    """The field with its id under `FIELD_ID` and no other metadata, at every depth, without extension types."""
    number = field_id(field)
    metadata = None if number is None else {FIELD_ID: str(number)}
    return pa.field(field.name, _plain(field.type), field.nullable, metadata)


def _plain(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if pa.types.is_struct(kind):
        return pa.struct([plain_field(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(plain_field(kind.key_field), plain_field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(plain_field(kind.value_field))
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return kind


def read_rows(
    storage: Storage,
    location: str,
    *,
    kind: str,
    limit: int | None = None,
    said: str | None = None,
    encoded: Sequence[str] = (),
    size: int | None = None,
    file: RangeFile | None = None,
) -> pa.Table:
    """Every row of a Parquet, ORC or Avro file. The format is told by the content.

    Parameters
    ----------
    kind
        What the read log calls the reads.
    limit
        Bytes that the table may take in memory, less than the memory limit allows. A few bytes of run lengths can
        claim billions of rows.
    said
        The format that the file's manifest names, for the error if the file is neither of the three.
    encoded
        Columns that a Parquet file's dictionaries stay in (``dictionary<int32, ...>``): a path that stands in each of
        a million rows is kept once.
    size
        Bytes of the file as a manifest states them (`Storage.open`).
    file
        The file, where it is open already; it stays open.

    Returns
    -------
    pyarrow.Table
        Columns as the file names them, field ids under `FIELD_ID`.

    Raises
    ------
    FormatError
        Another format, or a damaged file.
    UnsupportedError
        An encrypted file, or an unknown codec or type.
    MemoryLimitError
        More rows than fit ``limit``.
    """
    with (
        storage.open(location, kind=kind, size=size) if file is None else nullcontext(file) as opened,
        _budget(opened, location, limit) as budget,
    ):
        found = sniff_file(opened)
        if found == "":  # an upload that never was
            raise FormatError("the file is empty", location=location, offset=0, code="file-truncated")
        if found == "parquet":
            return _collect(_parquet(opened, location, budget, encoded), "the Parquet file", budget, encoded)
        if found == "orc":
            table = orc_rows(storage, location, kind=kind, budget=budget, file=opened)
            return _collect(iter([table.schema, *table.to_batches()]), "the ORC file", budget)
        if found == "avro":
            data = opened.read()
            return _collect(avro_batches(data, location), "the Avro file", budget)
    if found in ("parquet-encrypted", "encrypted"):
        raise UnsupportedError(f"{location} is encrypted; its key is not here")
    claim = f", though its manifest says {said}" if said else ""
    raise FormatError(f"not Parquet, ORC or Avro, but {found or 'unknown content'}{claim}", location=location, offset=0)


def _budget(file: RangeFile, location: str, limit: int | None) -> Budget:
    budget = Budget(location, file.size, ratio=DATA_RATIO)
    if limit is not None:
        budget.limit = min(budget.limit, limit)
    return budget


def _collect(
    batches: Iterator[pa.RecordBatch | pa.Schema], what: str, budget: Budget, encoded: Sequence[str] = ()
) -> pa.Table:
    """Batches to a table; the first item is their schema."""
    with foreign(what, budget.location):
        schema = next(batches)
        kept: list[pa.RecordBatch] = []
        for batch in batches:
            budget.reserve(batch.nbytes, _WHAT)
            kept.append(batch)
        table = pa.Table.from_batches(kept, schema=schema)
        plain = pa.schema([_kept(f) if f.name in encoded else plain_field(f) for f in schema])
        return pa.Table.from_arrays([_cast(c, f.type) for c, f in zip(table.columns, plain, strict=True)], schema=plain)


def _kept(field: pa.Field) -> pa.Field:
    """As `plain_field`, but encoded if it is."""
    plain = plain_field(field)
    return plain.with_type(field.type) if pa.types.is_dictionary(field.type) else plain


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == kind else column.cast(kind)


def _check_rows(rows: int, columns: int, budget: Budget) -> None:
    # One bit a value is the least that Arrow needs: this stops what no limit on batches would stop in time.
    if rows < 0 or rows * max(1, columns) // 8 > budget.limit:
        raise budget.refusal(f"{rows:,} rows")


def _parquet(file: RangeFile, location: str, budget: Budget, encoded: Sequence[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq

    ahead = file.far and file.size <= _AHEAD_BYTES
    kept = KeptChunks(file)
    reader = pq.ParquetFile(kept, read_dictionary=[*encoded], pre_buffer=ahead)
    kept.opened()
    about = reader.metadata
    _check_rows(about.num_rows, about.num_columns, budget)
    yield reader.schema_arrow
    # Encoded columns come with their dictionary, not with each value in full.
    plain = [i for i in range(about.num_columns) if reader.schema.column(i).path not in encoded]
    nested = any(reader.schema.column(i).max_repetition_level for i in plain)
    for group in range(about.num_row_groups):
        size = int(about.row_group(group).total_byte_size)
        sizes = chunk_sizes(kept, [(group, size)], plain, _BATCH_ROWS, location, nested=nested)
        rows = batch_rows(sizes, _BATCH_ROWS, budget, _WHAT)
        yield from reader.iter_batches(batch_size=rows, row_groups=[group], use_threads=False)
        kept.forget()
