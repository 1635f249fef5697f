"""Check whether Arrow can describe the column chunks of a Parquet footer without crashing.

If a chunk's metadata is contradictory, pyarrow's ``RowGroupMetaData.column`` does not catch a C++ exception, which ends
the process (seen in pyarrow 26.0 with the histograms of size statistics). Reading runs the same code, but raises the
exception as a Python error. So the check starts to read from a file that returns no bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, cast

from iceexplore.formats._foreign import foreign
from iceexplore.storage import PositionedFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["check_chunks"]


class _NoBytesError(Exception):
    """Raised when Arrow requests the first bytes of data, because it has then accepted the metadata of all chunks."""


class _NoBytes(PositionedFile):
    """A file of a given size that returns no bytes."""

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Raise `_NoBytesError`."""
        raise _NoBytesError


def check_chunks(
    metadata: pq.FileMetaData, size: int, groups: Sequence[int], columns: list[str] | None, location: str
) -> None:
    """Raise an error if ``metadata.row_group(g).column(i)`` may end the process.

    Parameters
    ----------
    metadata
        The file's footer as parsed by pyarrow.
    size
        Size of the file in bytes.
    groups, columns
        Indices of the row groups and paths of the leaf columns to check. If ``columns`` is None, check all.

    Raises
    ------
    FormatError
        A chunk's metadata is contradictory, or the chunk is outside the file.
    """
    import pyarrow.parquet as pq

    with foreign("the Parquet file", location):
        # With pre_buffer Arrow reads the metadata of all chunks before it reads the first byte.
        reader = pq.ParquetFile(cast("IO[bytes]", _NoBytes(size, location)), metadata=metadata, pre_buffer=True)
        try:
            reader.read_row_groups(list(groups), columns=columns, use_threads=False)
        except _NoBytesError:
            return
