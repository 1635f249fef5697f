"""What a reader fetches of Parquet files: footers and column chunks."""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import pyarrow.parquet as pq

__all__ = ["Fetched", "fetched"]


@dataclass(frozen=True)
class Fetched:
    """Bytes and GETs."""

    size: int = 0
    gets: int = 0

    def __add__(self, other: Fetched) -> Fetched:
        return Fetched(self.size + other.size, self.gets + other.gets)


def fetched(data: bytes, columns: Collection[str] | None = None) -> Fetched:
    """Return what a reader fetches of a Parquet file for some columns of the top level; of all for None.

    The length of the footer, the footer, and each run of neighbouring column chunks is a GET. Nothing is fetched of a
    file for no columns: the number of rows is in its manifest entry.
    """
    file = pq.ParquetFile(io.BytesIO(data)).metadata
    places = []
    for group in range(file.num_row_groups):
        for i in range(file.num_columns):
            chunk = file.row_group(group).column(i)
            if columns is None or chunk.path_in_schema.split(".")[0] in columns:
                start = chunk.data_page_offset
                if (dictionary := chunk.dictionary_page_offset) is not None:
                    start = min(start, dictionary)
                places.append((start, chunk.total_compressed_size))
    if not places:
        return Fetched()
    places.sort()
    runs = 1 + sum(a + size != b for (a, size), (b, _) in pairwise(places))
    footer = int.from_bytes(data[-8:-4], "little") + 8
    return Fetched(footer + sum(size for _, size in places), 2 + runs)
