"""The file changes that an operation requests, independent of the layout, so that a retry can apply them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import Filter

__all__ = ["ADDED_COLUMN_FILES", "Applied", "Change", "Isolation", "NothingToDo", "Operation"]

Operation = Literal["append", "replace", "overwrite", "delete"]
Isolation = Literal["serializable", "snapshot"]

#: The summary key under which new column files are counted; the draft defines no key for this.
ADDED_COLUMN_FILES = "added-column-files"


class NothingToDo(OptionError):  # noqa: N818 (it ends an operation, and callers return None)
    """An operation found no file and no row to change, so there is nothing to commit.

    Operations that may run on a schedule (`compact`) and operations on rows (`delete`) then return None. Callers that
    need exactly one commit, such as the commit panel, show the message.
    """


@dataclass(frozen=True)
class Change:
    """The file changes of one commit.

    Files to add are already written; their entries have null status, snapshot and sequence numbers (a file given an
    older data sequence number by a compaction keeps it in ``sequence_number``). Files to remove are given by location
    and looked up in each base that the change is applied to.

    Attributes
    ----------
    operation
        Defined by the spec, "Snapshots": append only adds files, replace keeps the rows, overwrite adds and removes
        files, delete only removes files.
    added
        DATA, POSITION_DELETE (DVs, or position delete files of v2) and EQUALITY_DELETE entries.
    remove_data
        Locations of data files to remove. Their DVs are removed with them.
    remove_deletes
        Locations of delete files (position, equality) to remove.
    data_manifests
        Locations of the data manifests that list the data files to remove or change, if the operation planned which to
        read: a commit reads the others only if it misses a file. None if that is unknown.
    replace_dvs
        Data files whose DV is replaced by one in ``added`` (or, after a compaction, removed without replacement).
    rewrite_manifests
        Leaf manifests to rewrite without changing the data: their locations, or ``True`` to let the layout choose.
    ignore_missing
        Whether locations in ``remove_data`` may be missing on a retry (deletes by expression).
    base_snapshot_id
        The snapshot that the operation read; validations check the commits since then.
    isolation
        The isolation level, which determines the validations against concurrent commits.
    conflict_partitions, conflict_files
        The data files and partitions that the operation read: removing one of these files, or adding a file to one of
        these partitions, conflicts with the operation. ``conflict_partitions=None`` means the whole table.
    conflict_filter
        Narrows ``conflict_partitions=None``: only new files that may contain matching rows conflict
        (`Filter.evaluate`).
    reapply
        Recomputes the change on a newer base. A retry calls it instead of reapplying this change if the files to
        remove depend on the base (deletes by expression). It writes nothing.
    summary
        Additional entries for the snapshot's summary.
    column_files
        V4 draft: data files that get a column file: their location, the new file alone in ``column_files``, and the
        statistics of its columns, which replace those of the data file.
    """

    operation: Operation
    added: EntryBatch = field(default_factory=EntryBatch.empty)
    remove_data: tuple[str, ...] = ()
    remove_deletes: tuple[str, ...] = ()
    replace_dvs: tuple[str, ...] = ()
    data_manifests: frozenset[str] | None = None
    rewrite_manifests: tuple[str, ...] | bool = ()
    ignore_missing: bool = False
    base_snapshot_id: int | None = None
    isolation: Isolation = "serializable"
    conflict_partitions: frozenset[tuple[int, str]] | None = frozenset()
    conflict_files: frozenset[str] = frozenset()
    conflict_filter: Filter | None = None
    reapply: Callable[[TableState], Change] | None = field(default=None, compare=False, repr=False)
    summary: Mapping[str, str] = field(default_factory=dict)
    column_files: EntryBatch = field(default_factory=EntryBatch.empty)


@dataclass(frozen=True)
class Applied:
    """The result of applying a change with a layout.

    Attributes
    ----------
    root_location
        Location of the manifest list or root manifest.
    summary
        ``added-data-files``, the other counts and the totals (spec, "Optional Snapshot Summary Fields").
    added_rows
        Number of rows that were assigned row ids (v3 and later), by which ``next-row-id`` grows; None below v3.
    """

    root_location: str
    summary: Mapping[str, str]
    added_rows: int | None = None
