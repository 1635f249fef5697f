"""Parquet: single columns and row groups can be read, and footers have bounds of each column chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa

from iceexplore.arrow import AnyField
from iceexplore.errors import FormatError, IceexploreError
from iceexplore.formats._fields import FIELD_ID, field_id
from iceexplore.formats._footers import read_parquet_footer
from iceexplore.formats._foreign import foreign
from iceexplore.formats._parquet_rows import BATCH_ROWS, ParquetRows
from iceexplore.formats._parquet_size import KeptChunks, batch_rows, chunk_sizes
from iceexplore.formats._rewrite_parquet import read_parquet, rewritten_parquet
from iceexplore.formats._row_groups import ParquetLeaf, RowGroups, read_parquet_row_groups
from iceexplore.formats.data_files._described import Described, Details, Shape
from iceexplore.formats.data_files._facts import FileFacts
from iceexplore.formats.data_files._format import DataFileFormat
from iceexplore.formats.data_files._paths import PathRewrite, Rewritten
from iceexplore.formats.data_files._reading import ColumnRequest, CountedRows, DataFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from iceexplore.storage import Budget, RangeFile, Storage

__all__ = ["Parquet"]

_BATCH_ROWS = 1 << 16
#: Remote files up to this size are fetched whole before decoding.
_AHEAD_BYTES = 64 << 20
_WHAT = "the rows"


class Parquet(DataFileFormat):
    """Parquet files, at present the only data files that iceexplore writes."""

    name = "parquet"
    title = "Parquet"
    suffixes = (".parquet",)
    magic = b"PAR1"
    encrypted_magic = b"PARE"
    magic_at_end = True
    id_property = FIELD_ID.decode()
    splittable = True
    has_row_groups = True
    spark_source = "parquet"
    spark_positions = True

    def batches(self, source: DataFile, budget: Budget, encoded: Sequence[str] = ()) -> Iterator[Any]:
        """Yield the schema, then the rows; columns in ``encoded`` stay dictionary-encoded."""
        import pyarrow.parquet as pq

        file, location = source.file, source.location
        if file.far and file.size <= _AHEAD_BYTES:
            file.prefetch([(0, file.size)])  # every column is read, so one request fetches the whole file
        kept = KeptChunks(file, location)
        reader = pq.ParquetFile(cast("IO[bytes]", kept), read_dictionary=[*encoded], page_checksum_verification=True)
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

    def columns(self, source: DataFile, request: ColumnRequest) -> CountedRows:
        """Return the rows with only the requested columns."""
        rows = ParquetRows(
            source.file,
            source.location,
            nanoseconds=request.nanoseconds,
            sparing=request.batch_rows is not None and request.batch_rows < BATCH_ROWS,
        )

        def batches() -> Iterator[tuple[int, pa.RecordBatch]]:
            leaves = rows.leaves(request.identified(rows.schema), request.fields)
            yield from rows.batches(leaves, request.row_groups, request.batch_rows, request.record_count)

        return CountedRows(rows.rows, batches())

    def facts(self, source: DataFile) -> FileFacts:
        """Return the facts in the footer."""
        found = read_parquet_row_groups(source.storage, source.location, lambda _leaves: (), file=source.file)
        ids = frozenset(i for leaf in found.leaves for i in leaf.ids if i is not None)
        offsets = frozenset(g.offset for g in found.groups if g.offset is not None)
        known = len(offsets) == len(found.groups)
        return FileFacts(self.name, found.rows, offsets if known else None, ids, bool(found.leaves), found.leaves)

    def describe(self, storage: Storage, location: str) -> Described:
        """Describe a file by its footer; the records to show are its column chunks."""
        footer = read_parquet_footer(storage, location)
        header = {
            "rows": footer.rows,
            "row_groups": footer.row_groups,
            "columns": len(footer.columns),
            "created_by": footer.created_by,
            "format_version": footer.format_version,
            "footer_size": footer.footer_size,
        }
        ids = tuple(c.field_id for c in footer.columns)
        shapes = () if footer.schema is None else tuple(map(_shape, footer.schema))
        return Described(footer.schema, lambda: Details(header, footer.key_values, lambda: footer.chunks, ids), shapes)

    def row_groups(
        self,
        storage: Storage,
        location: str,
        choose: Callable[[tuple[ParquetLeaf, ...]], Sequence[int]],
        *,
        size: int | None = None,
    ) -> RowGroups:
        """Return the row groups with the bounds of some columns; see `read_parquet_row_groups`."""
        return read_parquet_row_groups(storage, location, choose, size=size)

    def row_group_offsets(self, file: RangeFile, location: str) -> list[int]:
        """Return the byte offset at which each row group begins: that of the first page of its first column."""
        import pyarrow.parquet as pq

        with foreign(self.what, location):
            about = pq.read_metadata(cast("IO[bytes]", file))
            return [_start(about.row_group(i)) for i in range(about.num_row_groups)]

    def with_paths(self, storage: Storage, location: str, data: bytes, rewrite: PathRewrite) -> Rewritten | None:
        """Return a position delete file with new paths, in the original's codecs and encodings; None if none moved."""
        try:
            file, table = read_parquet(data, location)
            changed = rewrite.rows(table, location)
            return None if changed is None else (rewritten_parquet(file, changed[0]), changed[1])
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, IceexploreError):
                raise
            raise FormatError(f"the position delete file cannot be decoded: {error}", location=location) from None


def _check_rows(rows: int, columns: int, budget: Budget) -> None:
    # Arrow needs at least one bit per value: this refuses false row counts, which the limits of batches catch too late.
    if rows < 0 or rows * max(1, columns) // 8 > budget.limit:
        raise budget.refusal(f"{rows:,} rows")


def _shape(found: AnyField) -> Shape:
    struct = pa.types.is_struct(found.type)
    children = [found.type.field(i) for i in range(found.type.num_fields)] if struct else []
    return Shape(field_id(found), found.name, [(field_id(c), c.name) for c in children])


def _start(group: pq.RowGroupMetaData) -> int:
    """Return the offset of a row group's first column; 0 for one without columns."""
    if not group.num_columns:
        return 0
    column = group.column(0)
    places = [column.dictionary_page_offset, column.data_page_offset]
    return min((int(p) for p in places if p is not None and p > 0), default=0)
