"""Data that a plan passes to a reader: data files, the deletes that apply to each, and residual filters."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from iceexplore.arrow import AnyArray, Int32s, Int64s
from iceexplore.expressions import ALWAYS, Expression
from iceexplore.manifests import EntryBatch

__all__ = ["FileTasks", "MatchedDeletes"]

_NO_NAMES = pa.array([], pa.string())
_NO_DELETES = pa.array([], pa.list_view(pa.int32()))


@dataclass(frozen=True)
class MatchedDeletes:
    """The deletes that apply to each data file of a batch.

    `vector`, `positions` and `equality` have one element per data file. They refer to deletes by row number in
    `deletes`.

    Attributes
    ----------
    deletes
        The delete files and deletion vectors that apply to at least one of the data files, each in one row, without
        column metrics.
    vector
        int32: the row number of the data file's deletion vector; null if it has none.
    positions, equality
        list_view<int32>: for each data file, the row numbers of its position delete files, or of its equality delete
        files; an empty list, not null, if it has none. If a data file has a deletion vector, its list in `positions` is
        empty, because the vector replaces its position delete files. (``match_deletes`` with ``replaced=True`` lists
        them nevertheless.) The lists of several data files may share memory, so do not use the attribute ``values`` of
        these arrays: access the lists by row, or with ``flatten()``.
    referenced
        The location of the single data file that a delete references: one element per row of `deletes`, null if the
        delete may apply to several data files. A delete references a single file in ``referenced_file`` (spec:
        ``referenced_data_file``), or by equal lower and upper bounds of ``file_path``. (Java:
        ``ContentFileUtil.referencedDataFile``.)
    """

    deletes: EntryBatch = field(default_factory=EntryBatch.empty)
    vector: AnyArray = field(default_factory=lambda: pa.array([], pa.int32()))
    positions: AnyArray = field(default_factory=lambda: _NO_DELETES)
    equality: AnyArray = field(default_factory=lambda: _NO_DELETES)
    referenced: AnyArray = field(default_factory=lambda: _NO_NAMES)

    def take(self, rows: AnyArray) -> MatchedDeletes:
        """Return the deletes of some data files: those with the row numbers ``rows``, in the order of ``rows``.

        The result has the same `deletes`, so some of them may apply to none of the selected data files.
        """
        return MatchedDeletes(
            self.deletes,
            self.vector.take(rows),
            self.positions.take(rows),
            self.equality.take(rows),
            self.referenced,
        )

    def __len__(self) -> int:
        return len(self.vector)


@dataclass(frozen=True)
class FileTasks:
    """The data files that a plan reads, one row each.

    They are in the order of their manifests in the root (the manifest list or V4 root manifest), and within each
    manifest, in the order of their entries. Data files that a V4 root lists itself come first.

    Attributes
    ----------
    files
        The manifest entries of the data files, with their partition tuples and the metrics of the filter's columns.
    root_row
        int64: the row number, in the root, of the manifest that lists the file; null if the root itself lists it. In an
        incremental plan, this is the root of the snapshot that added the file.
    whole
        Boolean, one per file: True if metadata proves that every row of the file matches the filter.
    residual
        int32, one per file: the index, in `residuals`, of the file's residual.
    residuals
        The distinct residuals of the files. A file's residual is what remains of the filter when the predicates that
        the file's partition tuple proves true or false are replaced by ``true`` or ``false``. The first element is
        always the unchanged filter, even if it is the residual of no file.
    matched
        The deletes that apply to each file.
    """

    files: EntryBatch
    root_row: Int64s
    whole: pa.BooleanArray
    residual: Int32s
    residuals: tuple[Expression, ...] = (ALWAYS,)
    matched: MatchedDeletes = field(default_factory=MatchedDeletes)

    def __repr__(self) -> str:
        return f"<FileTasks: {len(self.files)} data files>"

    def take(self, rows: AnyArray) -> FileTasks:
        """Return the tasks with the row numbers in ``rows``, in the order of ``rows``."""
        return FileTasks(
            self.files.take(rows), self.root_row.take(rows), self.whole.take(rows), self.residual.take(rows),
            self.residuals, self.matched.take(rows),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.files)
