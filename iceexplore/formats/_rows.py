"""Read the rows of a file in any format of data files as Arrow data with field ids, within a memory limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.formats._foreign import foreign
from iceexplore.formats._sniff import data_file_format
from iceexplore.formats.data_files import DataFile, Rows
from iceexplore.storage import DATA_RATIO, Budget

if TYPE_CHECKING:
    from iceexplore.storage import RangeFile, Storage

__all__ = ["open_rows", "read_rows"]


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
    """Open a data or delete file to read its rows in batches. The format is detected by content.

    Parameters
    ----------
    kind
        The kind of file, for the storage's log of reads.
    limit
        A memory limit for the rows in bytes, in addition to the general one.
    stated
        The format according to the manifest, for the error if the file is not in a format of data files.
    encoded
        Names of columns that stay dictionary-encoded (``dictionary<int32, ...>``) in a Parquet file's batches: a path
        that a million rows share is decoded once. Batches may share a dictionary.
    size
        File size as recorded in a manifest (see `Storage.open`).
    file
        The file if it is open already; it stays open.

    Raises
    ------
    FormatError
        The file is not in a format of data files, or is damaged.
    UnsupportedError
        The file is encrypted, or has an unknown codec or type.
    MemoryLimitError
        A batch, or all rows of an ORC file, would take more than a limit allows.
    """
    with (
        storage.open(location, kind=kind, size=size) if file is None else nullcontext(file) as opened,
        Budget(location, opened.size, ratio=DATA_RATIO, most=limit) as budget,
    ):
        known = data_file_format(opened, location, stated)
        rows = known.rows(DataFile(storage, location, opened, kind), budget, encoded)
        with foreign(known.what, location):
            yield rows


def read_rows(
    storage: Storage,
    location: str,
    *,
    kind: str,
    limit: int | None = None,
    stated: str | None = None,
    file: RangeFile | None = None,
) -> pa.Table:
    """Read every row of a data or delete file into memory; see `open_rows`.

    Raises
    ------
    FormatError, UnsupportedError
        The file cannot be read.
    MemoryLimitError
        The rows take more than ``limit`` or the general memory limit allows.
    """
    with open_rows(storage, location, kind=kind, limit=limit, stated=stated, file=file) as rows:
        return rows.table()
