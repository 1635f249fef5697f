"""Read the rows of a Parquet, ORC or Avro file as Arrow data with field ids, within a memory limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.formats._avro_rows import avro_batches
from iceexplore.formats._fields import plain_field
from iceexplore.formats._foreign import foreign
from iceexplore.formats._helper import orc_rows
from iceexplore.formats._parquet_size import KeptChunks, batch_rows, chunk_sizes
from iceexplore.formats._sniff import sniff_file
from iceexplore.storage import DATA_RATIO, Budget

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile, Storage

__all__ = ["Rows", "open_rows", "read_rows"]

_BATCH_ROWS = 1 << 16
#: Remote files up to this size are fetched whole before decoding.
_AHEAD_BYTES = 64 << 20
_WHAT = "the rows"


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of an open file.

    Attributes
    ----------
    schema
        Columns with the file's names, field ids under `FIELD_ID`.
    batches
        The rows, in this schema. They are not counted against the budget: callers that keep them must reserve them.
    budget
        The memory budget for rows that are kept.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    budget: Budget


@contextmanager
def open_rows(
    storage: Storage,
    location: str,
    *,
    kind: str,
    limit: int | None = None,
    stated: str | None = None,
    encoded: Sequence[str] = (),
    size: int | None = None,
    file: RangeFile | None = None,
) -> Iterator[Rows]:
    """Open a Parquet, ORC or Avro file to read its rows in batches. The format is detected by content.

    Parameters
    ----------
    kind
        The kind of the reads in the log.
    limit
        Memory for the rows in bytes, below the general memory limit.
    stated
        The format in the file's manifest, for the error if the file has none of the three formats.
    encoded
        Columns that stay dictionary-encoded (``dictionary<int32, ...>``) in a Parquet file's batches: a path that
        a million rows share is decoded once. Batches may share a dictionary.
    size
        File size as recorded in a manifest (see `Storage.open`).
    file
        The file if it is open already; it stays open.

    Raises
    ------
    FormatError
        The file has another format or is damaged.
    UnsupportedError
        The file is encrypted, or has an unknown codec or type.
    MemoryLimitError
        A batch, or an ORC file, would take more than ``limit``.
    """
    with (
        storage.open(location, kind=kind, size=size) if file is None else nullcontext(file) as opened,
        Budget(location, opened.size, ratio=DATA_RATIO, most=limit) as budget,
    ):
        found = sniff_file(opened)
        if found == "":  # a failed upload
            raise FormatError("the file is empty", location=location, offset=0, code="file-truncated")
        batches: Iterator[Any]
        if found == "parquet":
            what, batches = "the Parquet file", _parquet(opened, location, budget, encoded)
        elif found == "orc":
            table = orc_rows(storage, location, kind=kind, budget=budget, file=opened)
            what, batches = "the ORC file", iter([table.schema, *table.to_batches()])
            del table
        elif found == "avro":
            what, batches = "the Avro file", avro_batches(opened.read(), location)
        elif found in ("parquet-encrypted", "encrypted"):
            raise UnsupportedError(f"{location} is encrypted, and its key is not available")
        else:
            claim = f", although its manifest has the format {stated}" if stated else ""
            raise FormatError(
                f"not Parquet, ORC or Avro, but {found or 'unknown content'}{claim}", location=location, offset=0
            )
        with foreign(what, location):
            first = next(batches)
            schema = pa.schema([_kept(f) if f.name in encoded else plain_field(f) for f in first])
            yield Rows(schema, (_cast(batch, schema) for batch in batches), budget)


def read_rows(
    storage: Storage,
    location: str,
    *,
    kind: str,
    limit: int | None = None,
    stated: str | None = None,
    file: RangeFile | None = None,
) -> pa.Table:
    """Read every row of a Parquet, ORC or Avro file into memory; see `open_rows`.

    Raises
    ------
    FormatError, UnsupportedError
        The file cannot be read.
    MemoryLimitError
        The rows take more than ``limit``, or than the memory limit allows.
    """
    with open_rows(storage, location, kind=kind, limit=limit, stated=stated, file=file) as rows:
        kept: list[pa.RecordBatch] = []
        for batch in rows.batches:
            rows.budget.reserve(batch.nbytes, _WHAT)
            kept.append(batch)
        return pa.Table.from_batches(kept, schema=rows.schema)


def _kept(field: pa.Field) -> pa.Field:
    """Return the field as `plain_field` does, but keep dictionary encoding."""
    plain = plain_field(field)
    return plain.with_type(field.type) if pa.types.is_dictionary(field.type) else plain


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_rows(rows: int, columns: int, budget: Budget) -> None:
    # Arrow needs at least one bit per value: this refuses claims that batch limits would catch too late.
    if rows < 0 or rows * max(1, columns) // 8 > budget.limit:
        raise budget.refusal(f"{rows:,} rows")


def _parquet(file: RangeFile, location: str, budget: Budget, encoded: Sequence[str]) -> Iterator[Any]:
    import pyarrow.parquet as pq

    if file.far and file.size <= _AHEAD_BYTES:
        file.prefetch([(0, file.size)])  # every column is read, so one request fetches the whole file
    kept = KeptChunks(file, location)
    reader = pq.ParquetFile(kept, read_dictionary=[*encoded])
    kept.opened()
    about = reader.metadata
    _check_rows(about.num_rows, about.num_columns, budget)
    yield reader.schema_arrow
    columns = [reader.schema.column(i) for i in range(about.num_columns)]
    once = frozenset(i for i, column in enumerate(columns) if column.path in encoded)
    nested = any(column.max_repetition_level for column in columns)
    for group in range(about.num_row_groups):
        size = int(about.row_group(group).total_byte_size)
        sizes = chunk_sizes(kept, [(group, size)], None, _BATCH_ROWS, location, nested=nested, encoded=once)
        rows = batch_rows(sizes, _BATCH_ROWS, budget, _WHAT)
        yield from reader.iter_batches(batch_size=rows, row_groups=[group], use_threads=False)
        kept.forget()
