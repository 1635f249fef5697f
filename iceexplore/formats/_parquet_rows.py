"""Read Parquet data files: only the needed columns, row group by row group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa

from iceexplore.arrow import AnyField
from iceexplore.errors import FormatError
from iceexplore.formats._fields import children_of, field_id, plain_field
from iceexplore.formats._foreign import foreign
from iceexplore.formats._parquet_chunks import check_chunks
from iceexplore.formats._parquet_size import KeptChunks, StreamLimit, batch_rows, chunk_sizes
from iceexplore.metadata import ListType, MapType, NestedField, StructType, Type
from iceexplore.storage import DATA_RATIO, Budget, RangeFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["BATCH_ROWS", "ParquetRows"]

#: Number of rows per batch, unless the caller wants fewer.
BATCH_ROWS = 1 << 17
_SPAN_BYTES = 32 << 20
_WHAT = "the rows"
#: If few rows may be wanted, a read of more than this many bytes is split into pieces, so that it can stop early.
_SPARED_BYTES = 8 << 20
_PIECE_BYTES = 1 << 18
#: Decoding in threads pays off from this number of rows.
_THREADS_FROM = 1 << 19


class ParquetRows:
    """An open Parquet file; page checksums are verified if the file has them.

    Parameters
    ----------
    nanoseconds
        Whether INT96 timestamps are read as nanoseconds, and not as microseconds.
    sparing
        True if the caller may consume only the first batches: then large row groups are fetched only as far as needed.

    Attributes
    ----------
    rows
        Number of rows according to the footer.
    schema
        The schema as Arrow reads it, in plain types (see `plain_field`), with field ids under ``PARQUET:field_id``.
    """

    def __init__(
        self,
        file: RangeFile | BinaryIO,
        location: str,
        *,
        nanoseconds: bool,
        sparing: bool = False,
    ) -> None:
        import pyarrow.parquet as pq

        self.location = location
        with foreign("the Parquet file", location):
            # Prefer microseconds: nanoseconds end in the year 2262, but INT96 timestamps have a larger range.
            unit = None if nanoseconds else "us"
            how: dict[str, Any] = {"coerce_int96_timestamp_unit": unit, "page_checksum_verification": True}
            self._file = KeptChunks(file, location)
            self._reader = pq.ParquetFile(cast("IO[bytes]", self._file), **how)
            self._file.opened()
            self._how, self._sparing = how, sparing
            self._far = isinstance(file, RangeFile) and file.far
            self._budget = Budget(location, self._file.size, ratio=DATA_RATIO)
            self._limit = StreamLimit(self._budget)
            self.rows = int(self._reader.metadata.num_rows)
            self._groups = self._reader.metadata.num_row_groups
            self.schema = pa.schema([plain_field(f) for f in self._reader.schema_arrow])
            self._paths = [self._reader.schema.column(i).path for i in range(len(self._reader.schema))]

    def leaves(self, found: Sequence[AnyField], wanted: Sequence[NestedField]) -> list[str] | None:
        """Return the paths of the leaf columns to read; None for all of them.

        Parameters
        ----------
        found
            The file's top-level fields, with field ids.
        wanted
            The table's fields to read.
        """
        counted = sum(map(_leaf_count, found))
        if counted != len(self._paths):
            return None
        out: list[int] = []
        at = 0
        kinds = {f.field_id: f.type for f in wanted}
        counts = Counter(f.field_id for f in wanted)
        for f in found:
            number = field_id(f)
            if number is not None and counts[number] > 1:
                out += range(at, at + _leaf_count(f))
            elif number in kinds:
                out += _leaves(f.type, kinds[number], at)
            at += _leaf_count(f)
        return [self._paths[i] for i in out]

    def batches(
        self, leaves: list[str] | None, groups: Sequence[int] | None, batch_rows: int | None, claimed: int | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of some columns, each with the position of its first row.

        Parameters
        ----------
        groups
            Numbers of the row groups; None for all.
        claimed
            Row count of the manifest entry; if no column is needed and the footer has the same count, nothing is read.
        """
        most = batch_rows or BATCH_ROWS
        if leaves == [] and self._paths and claimed != self.rows:
            leaves = self._paths[:1]
        with foreign("the Parquet file", self.location):
            for start, rows, chosen in self._spans(groups, leaves == []):
                if leaves == []:
                    for at in range(0, rows, most):
                        empty = pa.record_batch([pa.nulls(min(most, rows - at))], names=[""])
                        yield start + at, empty
                    continue
                yield from self._span(start, rows, chosen, leaves, most)

    def _spans(self, groups: Sequence[int] | None, whole: bool) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the first row, the row count and the row groups of each read.

        A read has one row group or several small ones, because Arrow may fetch all row groups of a read at once.
        """
        if whole and groups is None:
            yield 0, self.rows, []
            return
        about = [self._reader.metadata.row_group(g) for g in range(self._groups)]
        counts = [int(g.num_rows) for g in about]
        sizes = [int(g.total_byte_size) for g in about]
        edges = [0, *accumulate(counts)]
        wanted = sorted(set(range(self._groups) if groups is None else groups))
        span: list[int] = []
        for g in wanted:
            if not 0 <= g < self._groups:
                raise FormatError(f"there is no row group {g}: the file has {self._groups}", location=self.location)
            together = [*span, g]
            small = sum(counts[i] for i in together) <= BATCH_ROWS and sum(sizes[i] for i in together) <= _SPAN_BYTES
            if span and not (small and span[-1] == g - 1):
                yield edges[span[0]], sum(counts[i] for i in span), span
                together = [g]
            span = together
        if span:
            yield edges[span[0]], sum(counts[i] for i in span), span
        if groups is None and edges[-1] != self.rows:
            raise FormatError(
                f"the row groups have {edges[-1]:,} rows, but the footer counts {self.rows:,}", location=self.location
            )

    def _span(
        self, start: int, rows: int, groups: list[int], leaves: list[str] | None, most: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        threads = rows >= _THREADS_FROM
        reader, near = self._reader, None
        if self._sparing or self._far:
            check_chunks(reader.metadata, self._file.size, groups, leaves, self.location)
        if self._sparing and self._fetched(groups, leaves) > _SPARED_BYTES:
            reader, threads, near = self._in_pieces, False, _PIECE_BYTES
        elif isinstance(self._file.file, RangeFile) and self._far:
            self._file.file.prefetch(self._ranges(groups, leaves))
        at = start
        numbers = [i for i, path in enumerate(self._paths) if leaves is None or path in leaves]
        nested = any(self._reader.schema.column(i).max_repetition_level for i in numbers)
        for g in groups:
            about = [(g, int(self._reader.metadata.row_group(g).total_byte_size))]
            few = min(most, rows)
            sizes = chunk_sizes(self._file, about, numbers, few, self.location, nested=nested, near=near)
            most = batch_rows(sizes, most, self._budget, _WHAT)
        found: Any = reader.iter_batches(most, row_groups=groups, columns=leaves, use_threads=threads)
        for batch in found:
            schema = pa.schema([plain_field(f) for f in batch.schema])
            columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
            self._limit.take(batch.nbytes, _WHAT)
            yield at, pa.RecordBatch.from_arrays(columns, schema=schema)
            at += batch.num_rows
        self._file.forget()
        if at != start + rows:
            raise FormatError(f"{at - start:,} rows read, but the footer has {rows:,}", location=self.location)

    @cached_property
    def _in_pieces(self) -> pq.ParquetFile:
        """A reader that sends many small requests, in page order."""
        import pyarrow.parquet as pq

        about = self._reader.metadata
        return pq.ParquetFile(
            cast("IO[bytes]", self._file),
            metadata=about,
            **self._how,
            buffer_size=_PIECE_BYTES,
            pre_buffer=False,
        )

    def _ranges(self, groups: list[int], leaves: list[str] | None) -> list[tuple[int, int]]:
        """Return offset and length of each column chunk, to fetch them at once: Arrow would request each separately."""
        ranges = []
        for group in groups:
            about = self._reader.metadata.row_group(group)
            for i in (i for i, path in enumerate(self._paths) if leaves is None or path in leaves):
                chunk = about.column(i)
                places = [chunk.dictionary_page_offset, chunk.data_page_offset]
                begin = min((int(p) for p in places if p is not None and p > 0), default=0)
                ranges.append((begin, int(chunk.total_compressed_size)))
        return ranges

    def _fetched(self, groups: list[int], leaves: list[str] | None) -> int:
        """Return the compressed size in bytes of some columns in some row groups."""
        wanted = [i for i, path in enumerate(self._paths) if leaves is None or path in leaves]
        about = [self._reader.metadata.row_group(g) for g in groups]
        return sum(int(g.column(i).total_compressed_size) for g in about for i in wanted)


def _leaf_count(f: AnyField) -> int:
    children = children_of(f.type)
    return sum(map(_leaf_count, children)) if children else 1


def _leaves(found: pa.DataType, wanted: Type, at: int) -> list[int]:
    """Return the indices of the leaf columns to read for one field, whose first leaf column has the index ``at``."""
    children = children_of(found)
    if not children:
        return [at]
    match wanted:
        case StructType(fields) if pa.types.is_struct(found):
            kinds = {f.field_id: f.type for f in fields}
            out, here = [], at
            for child in children:
                kind = kinds.get(field_id(child) or -1)
                if kind is not None:
                    out += _leaves(child.type, kind, here)
                here += _leaf_count(child)
            # If the file has none of the wanted children, read any leaf: it shows whether the struct is null.
            return out or [at]
        case ListType(element) if pa.types.is_list(found):
            return _leaves(found.value_type, element.type, at)
        case MapType(key, value) if pa.types.is_map(found):
            return [
                *_leaves(found.key_type, key.type, at),
                *_leaves(found.item_type, value.type, at + _leaf_count(found.key_field)),
            ]
    return list(range(at, at + sum(map(_leaf_count, children))))
