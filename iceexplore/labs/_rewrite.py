"""Replace or delete rows: by rewriting their files (copy-on-write), or by delete files or vectors (merge-on-read)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from iceexplore.commits import Change, CommitWriter, Isolation, Operation, manifests_of, row_delta, scoped_to
from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import FileTasks, Filter

__all__ = ["Engine", "Hits", "MovedRows", "Positions", "Rewrite", "change_of", "mode_of"]

Positions = npt.NDArray[np.int64]
#: The positions of the matching rows in each file, by the index of the file's task: an array, or on Spark a
#: `pyroaring.BitMap64`.
Hits = Mapping[int, Any]
#: An engine's function that gives matching rows new values. Its signature depends on the engine, which alone calls it.
RowChange: TypeAlias = Any


@dataclass(frozen=True)
class MovedRows:
    """Rows of the table that are rewritten and keep their `LINEAGE` columns.

    Rows that a user passes are never of this class; otherwise, new rows with columns of these names would count as old.

    Attributes
    ----------
    frame
        An Arrow table; on Spark a data frame as returned by `on_spark.moved_rows`, which may be empty.
    """

    frame: Any


@dataclass(frozen=True)
class Rewrite:
    """The changes that a rewrite makes to the affected files.

    Attributes
    ----------
    gone
        Data files to remove.
    positions
        By data file that stays, the positions to delete in it: an array, or a `pyroaring.BitMap64`.
    rows
        Rows to rewrite, with the `LINEAGE` columns in version 3 and later; None if there are none.
    """

    gone: tuple[str, ...] = ()
    positions: Mapping[str, Any] | None = None
    rows: MovedRows | None = None


class Engine(Protocol):
    """The engine that reads the affected files: this process (`LocalEngine`) or Spark (`OnSpark`)."""

    def find(self, state: TableState, tasks: FileTasks, *, skip_whole: bool = False) -> dict[int, Any]:
        """Return the positions of matching live rows, for the tasks that have any.

        Parameters
        ----------
        skip_whole
            Skip files whose rows all match according to metadata.
        """

    def change(self, state: TableState, given: Mapping[str, Any]) -> RowChange:
        """Return the function that gives matching rows new values, for `rewritten`."""

    def rewritten(
        self, state: TableState, tasks: FileTasks, hits: Hits, *, merge_on_read: bool, change: RowChange = None
    ) -> Rewrite:
        """Return the changes that remove matching rows from their files and, with ``change``, replace them.

        Parameters
        ----------
        hits
            The positions of the matching rows, for each task that has any.
        change
            The function that creates the replacement rows: a result of `Engine.change`. None if rows are only removed.
        """


def mode_of(state: TableState, operation: Literal["delete", "update", "merge"]) -> tuple[bool, Isolation]:
    """Return whether an operation is merge-on-read, and its isolation level.

    They come from the table properties ``write.<operation>.mode`` and ``write.<operation>.isolation-level``. Version 1
    has no delete files, so it is always copy-on-write.

    Raises
    ------
    OptionError
        One of the two properties has an invalid value.
    """
    properties = state.metadata.properties
    mode = properties.get(f"write.{operation}.mode", "copy-on-write").lower()
    if mode not in ("copy-on-write", "merge-on-read"):
        raise OptionError(f"the table's write.{operation}.mode is {mode!r}: expected copy-on-write or merge-on-read")
    level = properties.get(f"write.{operation}.isolation-level", "serializable").lower()
    if level not in ("serializable", "snapshot"):
        raise OptionError(
            f"the table's write.{operation}.isolation-level is {level!r}: expected serializable or snapshot"
        )
    merge_on_read = mode == "merge-on-read" and state.metadata.format_version > 1
    return merge_on_read, "serializable" if level == "serializable" else "snapshot"


def change_of(
    state: TableState,
    writer: CommitWriter,
    tasks: FileTasks,
    rewrite: Rewrite,
    added: EntryBatch,
    *,
    conflicts: Filter,
    isolation: Isolation,
) -> Change:
    """Return the change of a commit that removes rows and adds files.

    Parameters
    ----------
    conflicts
        The filter of the rows that were read: with serializable isolation, new rows that may match it are a conflict.
    """
    from pyroaring import BitMap64

    if rewrite.positions:
        deletes = {
            name: BitMap64(at.tolist()) if isinstance(at, np.ndarray) else at for name, at in rewrite.positions.items()
        }
        made = row_delta(state, writer, added if len(added) else None, deletes=deletes, isolation=isolation)
    else:
        base = None if state.snapshot is None else state.snapshot.snapshot_id
        made = Change("append", added, base_snapshot_id=base, isolation=isolation)
    removes = bool(rewrite.gone or rewrite.positions)
    operation: Operation = "overwrite" if removes and len(added) else "delete" if removes else "append"
    return replace(
        made,
        operation=operation,
        remove_data=rewrite.gone,
        data_manifests=manifests_of(state, tasks),
        # Also remove position delete files (v2) that apply only to one removed data file. Deletion vectors are removed
        # together with their data files.
        remove_deletes=tuple(dict.fromkeys((*made.remove_deletes, *scoped_to(tasks.matched, rewrite.gone)))),
        conflict_files=made.conflict_files | set(rewrite.gone),
        conflict_partitions=None,
        conflict_filter=conflicts,
    )
