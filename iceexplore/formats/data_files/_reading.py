"""The arguments and results of reading a data file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import AnyField
from iceexplore.formats._fields import plain_field
from iceexplore.metadata import NestedField
from iceexplore.storage import Budget

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile, Storage

__all__ = ["ColumnRequest", "CountedRows", "DataFile", "Rows", "kept_field", "plain_batch"]


@dataclass(frozen=True, eq=False)
class DataFile:
    """An open data or delete file.

    Attributes
    ----------
    file
        The open file, at its start; the caller closes it.
    kind
        The kind of file, for the storage's log of reads.
    """

    storage: Storage
    location: str
    file: RangeFile
    kind: str


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of an open file.

    Attributes
    ----------
    schema
        Columns with the file's names, field ids under `FIELD_ID`.
    batches
        The rows, in this schema. They do not count against the budget: callers that keep them must reserve their bytes.
    budget
        The memory budget for rows that are kept.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    budget: Budget

    def table(self) -> pa.Table:
        """Return all rows as a table, and reserve its memory in the budget.

        Raises
        ------
        MemoryLimitError
            The rows take more than the budget allows.
        """
        kept: list[pa.RecordBatch] = []
        for batch in self.batches:
            self.budget.reserve(batch.nbytes, "the rows")
            kept.append(batch)
        return pa.Table.from_batches(kept, schema=self.schema)


@dataclass(frozen=True, eq=False)
class ColumnRequest:
    """The columns and rows to read from a data file.

    Attributes
    ----------
    fields
        The fields to read. A format that cannot leave columns out yields all of them.
    identified
        Returns the columns of a file's schema with their field ids, taken from the table's name mapping if necessary.
    row_groups
        Numbers of the row groups, for a format with `DataFileFormat.has_row_groups`; None for all.
    batch_rows
        The maximum number of rows per batch; None for the format's own choice.
    record_count
        Row count of the manifest entry.
    nanoseconds
        Whether any field has a resolution of nanoseconds.
    """

    fields: Sequence[NestedField]
    identified: Callable[[pa.Schema], list[AnyField]]
    row_groups: Sequence[int] | None = None
    batch_rows: int | None = None
    record_count: int | None = None
    nanoseconds: bool = False


@dataclass(frozen=True, eq=False)
class CountedRows:
    """The number of rows in a file, and its batches, each with the position of its first row."""

    rows: int
    batches: Iterator[tuple[int, pa.RecordBatch]]


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch in the types of a schema made with `plain_field`."""
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def kept_field(field: AnyField) -> AnyField:
    """Return the field as `plain_field` does, except that a dictionary type is kept."""
    plain = plain_field(field)
    return plain.with_type(field.type) if pa.types.is_dictionary(field.type) else plain
