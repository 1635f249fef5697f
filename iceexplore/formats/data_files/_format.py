"""The base class of the formats of data files: the properties and the required methods of a format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from iceexplore.errors import UnsupportedError
from iceexplore.formats._fields import plain_field
from iceexplore.formats._foreign import foreign
from iceexplore.formats._row_groups import ParquetLeaf, RowGroups
from iceexplore.formats.data_files._described import Described, Details
from iceexplore.formats.data_files._facts import FileFacts
from iceexplore.formats.data_files._paths import PathRewrite, Rewritten
from iceexplore.formats.data_files._reading import (
    ColumnRequest,
    CountedRows,
    DataFile,
    Rows,
    kept_field,
    plain_batch,
)
from iceexplore.storage import DATA_RATIO, Budget

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile, Storage

__all__ = ["DataFileFormat", "FileFormat", "cannot_rewrite"]


def cannot_rewrite(location: str, found: str) -> UnsupportedError:
    """Return the error for position delete files in a format that cannot be rewritten."""
    return UnsupportedError(
        f"{location}: position delete files in {found} contain locations, and rewriting them is not supported; "
        'save the table with location="keep"'
    )


class FileFormat:
    """A format that a manifest entry may name.

    Attributes
    ----------
    name
        ``file_format`` of a manifest entry, in lower case; Iceberg ignores letter case in it.
    title
        The name in messages.
    suffixes
        The suffixes of file names, with the dot.
    magic
        The bytes with which files begin.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    magic: ClassVar[bytes]

    def begins(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes has this format."""
        return head.startswith(self.magic)


class DataFileFormat(FileFormat, ABC):
    """A format of data files, and of position and equality delete files.

    A format that lacks a property or an optional method works everywhere, but less efficiently: its files are read
    whole, without pruning, and in Spark they are read by Python workers.

    Attributes
    ----------
    encrypted_magic
        The bytes with which encrypted files begin; empty if the format has no encryption of its own.
    magic_at_end
        Whether files also end with `magic` and are read from their end, so that a remote file is recognized there.
    id_property
        Where a column's field id is stored (spec, Appendix A).
    splittable
        Whether a scan divides files (Java: ``FileFormat.isSplittable``).
    has_row_groups
        Whether row groups can be read one by one, and the footer has bounds by which to prune them. If so,
        `row_groups`, `row_group_offsets` and `ColumnRequest.row_groups` work.
    spark_source
        The data source with which plain Spark reads files; None if there is none, or if it does not follow Iceberg's
        rules.
    spark_positions
        Whether `spark_source` returns the position of each row in its file.
    """

    encrypted_magic: ClassVar[bytes] = b""
    magic_at_end: ClassVar[bool] = False
    id_property: ClassVar[str]
    splittable: ClassVar[bool] = False
    has_row_groups: ClassVar[bool] = False
    spark_source: ClassVar[str | None] = None
    spark_positions: ClassVar[bool] = False

    @abstractmethod
    def batches(self, source: DataFile, budget: Budget, encoded: Sequence[str] = ()) -> Iterator[Any]:
        """Yield the file's Arrow schema, with field ids under `FIELD_ID`, then all rows in batches.

        Parameters
        ----------
        budget
            Limits the size of a batch. A file that cannot be decoded in batches is refused if its rows exceed it.
        encoded
            Names of columns that stay dictionary-encoded, if the format supports this.
        """

    @abstractmethod
    def facts(self, source: DataFile) -> FileFacts:
        """Return the facts that verification compares, from as little of the file as possible.

        Raises
        ------
        FormatError, UnsupportedError
            The file is damaged or encrypted.
        """

    def rows(self, source: DataFile, budget: Budget, encoded: Sequence[str] = ()) -> Rows:
        """Return all rows in plain types (see `plain_field`). The caller must consume the batches inside `foreign`."""
        batches = self.batches(source, budget, encoded)
        with foreign(self.what, source.location):
            first = next(batches)
            schema = pa.schema([kept_field(f) if f.name in encoded else plain_field(f) for f in first])
        return Rows(schema, (plain_batch(batch, schema) for batch in batches), budget)

    def _table(self, source: DataFile, budget: Budget) -> pa.Table:
        rows = self.rows(source, budget)
        with foreign(self.what, source.location):
            return rows.table()

    @property
    def what(self) -> str:
        """The subject of an error about a file: "the Parquet file"."""
        return f"the {self.title} file"

    def columns(self, source: DataFile, request: ColumnRequest) -> CountedRows:
        """Return the rows with at least the requested columns, in ascending order of positions.

        Raises
        ------
        FormatError, UnsupportedError
            The file is damaged, or has an unknown codec or type. This may also be raised while the batches are read.
        MemoryLimitError
            The rows would take more than the memory limit.
        """
        with Budget(source.location, source.file.size, ratio=DATA_RATIO) as budget:
            table = self._table(source, budget)

        def numbered() -> Iterator[tuple[int, pa.RecordBatch]]:
            start = 0
            for batch in table.to_batches(max_chunksize=request.batch_rows):
                yield start, batch
                start += batch.num_rows

        return CountedRows(table.num_rows, numbered())

    def describe(self, storage: Storage, location: str) -> Described:
        """Describe a file that is opened without its table.

        Raises
        ------
        FormatError, UnsupportedError
            The file cannot be read.
        """
        with storage.open(location, kind="other") as file:
            source = DataFile(storage, location, file, "other")
            facts = self.facts(source)
            file.seek(0)
            with Budget(location, file.size, ratio=DATA_RATIO) as budget:
                schema = self.rows(source, budget).schema

        def records() -> pa.Table:
            with (
                storage.open(location, kind="other") as file,
                Budget(location, file.size, ratio=DATA_RATIO) as budget,
            ):
                return self._table(DataFile(storage, location, file, "other"), budget)

        header = {"rows": facts.rows, "columns": len(schema)}
        return Described(schema, lambda: Details(header, {}, records, tuple(facts.ids)))

    def row_groups(
        self,
        storage: Storage,
        location: str,
        choose: Callable[[tuple[ParquetLeaf, ...]], Sequence[int]],
        *,
        size: int | None = None,
    ) -> RowGroups:
        """Return the row groups with the bounds of some columns, as `read_parquet_row_groups` does.

        Raises
        ------
        UnsupportedError
            The format has no row groups.
        """
        raise UnsupportedError(f"row groups of {self.title} files cannot be pruned: such files are read whole")

    def row_group_offsets(self, file: RangeFile, location: str) -> list[int] | None:
        """Return the byte offset at which each row group begins; None for a format that is read whole.

        Raises
        ------
        FormatError
            The footer is damaged.
        """
        return None

    def with_paths(self, storage: Storage, location: str, data: bytes, rewrite: PathRewrite) -> Rewritten | None:
        """Return a position delete file with new paths, written like the original; None if no path has moved.

        Parameters
        ----------
        data
            The content of the file.

        Raises
        ------
        FormatError
            The file is damaged.
        UnsupportedError
            Files of this format cannot be rewritten.
        """
        raise cannot_rewrite(location, self.name)
