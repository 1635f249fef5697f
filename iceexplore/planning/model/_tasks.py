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
    """The deletes that apply to each of some data files, one row per data file, as indices into `deletes`.

    Attributes
    ----------
    deletes
        Delete files and deletion vectors that apply to at least one of the data files, each once, without column
        metrics.
    vector
        int32: the data file's deletion vector, null where it has none. A data file with a deletion vector has no
        `positions`, except in the result of ``match_deletes(replaced=True)``.
    positions, equality
        list_view<int32>, never null: position and equality delete files. Lists of different files may share elements of
        the underlying array, so access them by row, or flatten the result of `take`.
    referenced
        One per row of `deletes`: the location of the single data file that it references in ``referenced_file`` or by
        equal bounds of ``file_path`` (Java: ``ContentFileUtil.referencedDataFile``); null if it may apply to several.
    """

    deletes: EntryBatch = field(default_factory=EntryBatch.empty)
    vector: AnyArray = field(default_factory=lambda: pa.array([], pa.int32()))
    positions: AnyArray = field(default_factory=lambda: _NO_DELETES)
    equality: AnyArray = field(default_factory=lambda: _NO_DELETES)
    referenced: AnyArray = field(default_factory=lambda: _NO_NAMES)

    def take(self, rows: AnyArray) -> MatchedDeletes:
        """Return the deletes of these data files; `deletes` still has all deletes."""
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
    """The data files of a plan, one row each, in the order of the root and its leaf manifests.

    Attributes
    ----------
    files
        Entries, partition tuples, and the column metrics of the filter's columns.
    root_row
        int64: the row number, in the root, of the manifest that lists the file; null if the root itself lists it.
    whole
        Boolean: metadata proves that every row matches the filter.
    residual
        int32: index into `residuals` of the filter that the file's rows must satisfy.
    residuals
        The filter's distinct residuals, which depend on the partition tuple; the first is the whole filter.
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
        """Return the tasks in these rows, in this order."""
        return FileTasks(
            self.files.take(rows), self.root_row.take(rows), self.whole.take(rows), self.residual.take(rows),
            self.residuals, self.matched.take(rows),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.files)
