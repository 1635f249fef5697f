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
from iceexplore.formats._sniff import sniff_file

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile, Storage

__all__ = ["FIELD_ID", "MAX_TABLE_BYTES", "field_id", "plain_field", "read_rows"]

#: The key under which Arrow keeps a field's id; ORC's and Avro's ids are put there, too.
FIELD_ID = b"PARQUET:field_id"
_ORC_ID = b"iceberg.id"
#: A file's rows in memory: some 40 million position deletes.
MAX_TABLE_BYTES = 1 << 32
_BATCH_ROWS = 1 << 16
#: A far file up to so many bytes is fetched in as few requests as it takes, ahead of its decoding.
_AHEAD_BYTES = 64 << 20


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
    limit: int = MAX_TABLE_BYTES,
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
        Bytes that the table may take in memory. A few bytes of run lengths can claim billions of rows.
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
        An encrypted file, an unknown codec or type, or more rows than fit ``limit``.
    """
    with storage.open(location, kind=kind, size=size) if file is None else nullcontext(file) as opened:
        found = sniff_file(opened)
        if found == "":  # an upload that never was
            raise FormatError("the file is empty", location=location, offset=0, code="file-truncated")
        if found == "parquet":
            return _collect(_parquet(opened, location, limit, encoded), "the Parquet file", location, limit, encoded)
        if found == "orc":
            table = orc_rows(storage, location, kind=kind, limit=limit, file=opened)
            return _collect(iter([table.schema, *table.to_batches()]), "the ORC file", location, limit)
        if found == "avro":
            data = opened.read()
            return _collect(avro_batches(data, location), "the Avro file", location, limit)
    if found in ("parquet-encrypted", "encrypted"):
        raise UnsupportedError(f"{location} is encrypted; its key is not here")
    claim = f", though its manifest says {said}" if said else ""
    raise FormatError(f"not Parquet, ORC or Avro, but {found or 'unknown content'}{claim}", location=location, offset=0)


def _collect(
    batches: Iterator[pa.RecordBatch | pa.Schema], what: str, location: str, limit: int, encoded: Sequence[str] = ()
) -> pa.Table:
    """Batches to a table; the first item is their schema."""
    with foreign(what, location):
        schema = next(batches)
        kept: list[pa.RecordBatch] = []
        total = 0
        for batch in batches:
            total += batch.nbytes
            if total > limit:
                raise UnsupportedError(f"the rows of {location} take more than {limit:,} bytes of memory")
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


def _check_rows(rows: int, columns: int, location: str, limit: int) -> None:
    # One bit a value is the least that Arrow needs: this stops what no limit on batches would stop in time.
    if rows < 0 or rows * max(1, columns) // 8 > limit:
        raise UnsupportedError(f"{location} claims {rows:,} rows: more than fit {limit:,} bytes of memory")


def _parquet(file: RangeFile, location: str, limit: int, encoded: Sequence[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq

    ahead = file.far and file.size <= _AHEAD_BYTES
    reader = pq.ParquetFile(file, read_dictionary=[*encoded], pre_buffer=ahead)
    _check_rows(reader.metadata.num_rows, reader.metadata.num_columns, location, limit)
    yield reader.schema_arrow
    yield from reader.iter_batches(batch_size=_BATCH_ROWS, use_threads=False)
