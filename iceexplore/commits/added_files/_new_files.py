"""Create the entries of new data files, given as a number, dictionaries, paths of Parquet files, or data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.commits.added_files._from_records import files_of_records
from iceexplore.commits.added_files._synthetic import counts_of, synthetic_files
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.writing import foreign_frame

__all__ = ["FilesLike", "new_files"]

#: The forms in which users may give new data files, see `new_files`. The type is Any because the data frames of other
#: libraries have no class in common.
FilesLike: TypeAlias = Any


def new_files(
    state: TableState,
    files: FilesLike,
    *,
    writer: CommitWriter,
    rows: int | Sequence[int] | None = None,
    partitions: Sequence[Mapping[str, Any]] | None = None,
    bytes_per_row: float | None = None,
    materialize: bool = False,
    check_duplicates: bool = True,
) -> EntryBatch:
    """Return the entries of new data files, and write the files if they are given as data.

    Parameters
    ----------
    files
        One of the following. A number: this many synthetic files are added, which exist only as entries without data
        (`is_synthetic`). Dictionaries: each describes the manifest entry of one file (`files_of_records`). Paths of
        existing Parquet files in folders that may be read (``allow=``): only the footers are read. A pandas data
        frame, an Arrow table or another library's frame (``__arrow_c_stream__``, even a LazyFrame): the rows are
        written as Parquet, one file per partition. An `EntryBatch`: the entries of files that are already written.
    rows
        If ``files`` is a number: the rows per file, as one number for all files or a list with one number for each.
    partitions
        If ``files`` is a number: the partitions to which the files are assigned in turn, each as a dictionary from
        names of partition fields to values; by default the newest partitions of the table.
    bytes_per_row
        If ``files`` is a number: the bytes per row, from which each file's size is computed.
    materialize
        If ``files`` is a number: whether to write real files with random data instead of adding synthetic ones.
    check_duplicates
        For dictionaries and paths: whether to refuse files that are already live (this reads every data manifest).

    Raises
    ------
    OptionError
        The arguments are invalid, or do not fit the schema or spec.
    RuleError
        ``duplicate-file``: a file is given twice or is already live.
    UnsupportedError
        With ``materialize``: random values of a required column's type are not supported.
    FormatError, FileMissingError, OutsideRootsError
        A file that is given by its path is not Parquet, or cannot be read.
    """
    if isinstance(files, (int, np.integer)) and not isinstance(files, bool):
        return _counted(state, int(files), rows, partitions, bytes_per_row, materialize, writer)
    if rows is not None or partitions is not None or bytes_per_row is not None or materialize:
        raise OptionError("rows, partitions, bytes_per_row and materialize need a number of files, such as files=3")
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
        raise OptionError("nothing to add: files is empty")
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
        raise OptionError(f"files={files} needs rows=, the number of rows of each file")
    if bytes_per_row is not None and not 0 < bytes_per_row < 2**40:
        raise OptionError(f"bytes_per_row={bytes_per_row!r}: expected a number above 0 and below 2^40")
    rng = np.random.default_rng(writer.names.getrandbits(64))
    counts = counts_of(state, files, rows, partitions, rng, writer.timestamp_ms)
    if not materialize:
        return synthetic_files(state, counts, writer, rng, bytes_per_row)
    from iceexplore.commits.added_files._synthetic_rows import materialized_files

    if bytes_per_row is not None:
        raise OptionError(
            "bytes_per_row is only for synthetic files; with materialize=True the size depends on the data"
        )
    return materialized_files(state, counts, writer, rng)
