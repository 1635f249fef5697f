"""New data files, however they are given: counts, dictionaries, paths of Parquet files, or data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.commits.added_files._from_records import files_of_records
from iceexplore.commits.added_files._synthetic import counts_of, made_up_files
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.writing import foreign_frame

__all__ = ["new_files"]


def new_files(
    state: TableState,
    files: Any,
    *,
    writer: CommitWriter,
    rows: int | Sequence[int] | None = None,
    partitions: Sequence[Mapping[str, Any]] | None = None,
    bytes_per_row: float | None = None,
    materialize: bool = False,
    check_duplicates: bool = True,
) -> EntryBatch:
    """The entries of new data files; what must be written for them is written.

    Parameters
    ----------
    files
        A number: so many made-up files, without data behind them (`is_made_up`), of ``rows`` rows each.
        Dictionaries: what a manifest says of each file (`files_of_records`). Paths: Parquet files that are there
        already, below the roots of the table's storage; their footers are read. A pandas data frame, an Arrow
        table or another library's frame (``__arrow_c_stream__``, LazyFrames too): its rows are written as Parquet, a
        file per partition. Entries of files that are written already.
    rows
        Of a number of files: rows of each, or a list of as many numbers.
    partitions
        Of a number of files: the partitions that they go to in turn, dictionaries by partition field; by default the
        newest of the table.
    bytes_per_row
        Of a number of files: their size.
    materialize
        Of a number of files: write random data instead of making the files up.
    check_duplicates
        Of dictionaries and paths: look whether they are in the table already (every manifest of data is read).

    Raises
    ------
    OptionError
        What is given makes no sense, or does not fit the schema or spec.
    RuleError
        ``duplicate-file``.
    """
    if isinstance(files, (int, np.integer)) and not isinstance(files, bool):
        return _counted(state, int(files), rows, partitions, bytes_per_row, materialize, writer)
    if rows is not None or partitions is not None or bytes_per_row is not None or materialize:
        raise OptionError("rows, partitions, bytes_per_row and materialize belong to a number of files: files=3")
    if isinstance(files, EntryBatch):
        return files
    files = foreign_frame(files)
    if isinstance(files, pa.Table) or hasattr(files, "iloc"):
        from iceexplore.writing import files_of_frame

        return files_of_frame(state, files, writer)
    if isinstance(files, (str, Mapping)) or hasattr(files, "__fspath__"):
        files = [files]
    if not isinstance(files, Sequence) or isinstance(files, (bytes, bytearray)):
        raise OptionError(f"files={files!r}: give a number, dictionaries, paths of Parquet files, or a data frame")
    if not files:
        raise OptionError("files is empty: there is nothing to add")
    if all(isinstance(f, (str, os.PathLike)) for f in files):
        from iceexplore.commits.added_files._from_paths import files_of_paths

        return files_of_paths(state, [os.fspath(f) for f in files], check_duplicates=check_duplicates)
    return files_of_records(state, files, check_duplicates=check_duplicates)


def _counted(
    state: TableState,
    files: int,
    rows: int | Sequence[int] | None,
    partitions: Sequence[Mapping[str, Any]] | None,
    bytes_per_row: float | None,
    materialize: bool,
    writer: CommitWriter,
) -> EntryBatch:
    if rows is None:
        raise OptionError(f"files={files} needs rows=, the rows of each file")
    if bytes_per_row is not None and not 0 < bytes_per_row < 2**40:
        raise OptionError(f"bytes_per_row={bytes_per_row!r}: a number above 0")
    rng = np.random.default_rng(writer.names.getrandbits(64))
    counts = counts_of(state, files, rows, partitions, rng, writer.timestamp_ms)
    if not materialize:
        return made_up_files(state, counts, writer, rng, bytes_per_row)
    from iceexplore.commits.added_files._synthetic_rows import materialized_files

    if bytes_per_row is not None:
        raise OptionError("bytes_per_row is for made-up files; the data that materialize=True writes has its own size")
    return materialized_files(state, counts, writer, rng)
