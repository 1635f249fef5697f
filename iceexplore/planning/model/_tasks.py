"""What a plan hands to whoever reads: data files, the deletes that apply to each, and what is left to filter."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from iceexplore.expressions import ALWAYS, Expression
from iceexplore.manifests import EntryBatch

__all__ = ["FileTasks", "MatchedDeletes"]

_NO_NAMES = pa.array([], pa.string())
_NO_DELETES = pa.array([], pa.list_view(pa.int32()))


@dataclass(frozen=True)
class MatchedDeletes:
    """The deletes that apply to some data files, one row per data file; numbers are rows of `deletes`.

    Attributes
    ----------
    deletes
        Delete files and deletion vectors that apply to at least one of the data files, each once, without statistics.
    vector
        int32, null where a file has no deletion vector. Where it has one, it has no `positions`.
    positions, equality
        list_view<int32>, never null: position and equality delete files. Lists of different files may be one and the
        same stretch of the array's values: ask by row, or flatten what `take` gives.
    referenced
        One per row of `deletes`: the one data file that it names, by ``referenced_file`` or by equal bounds of
        ``file_path`` (Java: ``ContentFileUtil.referencedDataFile``); null where it may concern several.
    """

    deletes: EntryBatch = field(default_factory=EntryBatch.empty)
    vector: pa.Int32Array = field(default_factory=lambda: pa.array([], pa.int32()))
    positions: pa.ListViewArray = field(default_factory=lambda: _NO_DELETES)
    equality: pa.ListViewArray = field(default_factory=lambda: _NO_DELETES)
    referenced: pa.StringArray = field(default_factory=lambda: _NO_NAMES)

    def take(self, rows: pa.Array) -> MatchedDeletes:
        """Those of these data files; `deletes` stays whole."""
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
    """The data files of a plan, one row each, in the order of the root and its leaves.

    Attributes
    ----------
    files
        Entries and tuples; statistics of the filter's columns.
    root_row
        int64: the row, in the root, of the leaf that has the file; null for the root's own files.
    whole
        bool: metadata proves that every row matches the filter.
    residual
        int32: which of `residuals` is left to ask of the file's rows.
    residuals
        What partition tuples leave of the filter; the first is the whole filter.
    matched
        The deletes that apply.
    """

    files: EntryBatch
    root_row: pa.Int64Array
    whole: pa.BooleanArray
    residual: pa.Int32Array
    residuals: tuple[Expression, ...] = (ALWAYS,)
    matched: MatchedDeletes = field(default_factory=MatchedDeletes)

    def __repr__(self) -> str:
        return f"<FileTasks: {len(self.files)} data files>"

    def take(self, rows: pa.Array) -> FileTasks:
        """Some of the tasks, in this order."""
        return FileTasks(
            self.files.take(rows), self.root_row.take(rows), self.whole.take(rows), self.residual.take(rows),
            self.residuals, self.matched.take(rows),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.files)
