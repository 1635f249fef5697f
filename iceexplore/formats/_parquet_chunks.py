"""Look whether Arrow can describe the column chunks of a Parquet footer, before it is asked to.

pyarrow's ``RowGroupMetaData.column`` lets an exception of C++ pass where a chunk's metadata contradict themselves (seen
in 26.0 with the histograms of size statistics), which ends the process. Reading takes the same way and raises it as an
error. So reading is begun here, on a file that gives no bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iceexplore.formats._foreign import foreign
from iceexplore.storage import PositionedFile

__all__ = ["check_chunks"]


class _NoBytesError(Exception):
    """Reading came as far as the data."""


class _NoBytes(PositionedFile):
    """A file of some size that gives no bytes."""

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Raise `_NoBytesError`."""
        raise _NoBytesError


def check_chunks(metadata: Any, size: int, groups: Sequence[int], columns: list[str] | None, location: str) -> None:
    """Raise an error where ``metadata.row_group(g).column(i)`` may end the process.

    Parameters
    ----------
    metadata
        A `pyarrow.parquet.FileMetaData`.
    size
        Bytes of the file.
    groups, columns
        Numbers of row groups, and paths of leaf columns (None: all).

    Raises
    ------
    FormatError
        A chunk's metadata contradict themselves, or it is not within the file.
    """
    import pyarrow.parquet as pq

    with foreign("the Parquet file", location):
        # With pre_buffer Arrow goes through the metadata of all chunks before it reads the first byte.
        reader = pq.ParquetFile(_NoBytes(size, location), metadata=metadata, pre_buffer=True)
        try:
            reader.read_row_groups(list(groups), columns=columns, use_threads=False)
        except _NoBytesError:
            return
