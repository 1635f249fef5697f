"""Describe the file changes that an operation requests, without the metadata layout, so that retries can reuse them."""

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

#: The key in a snapshot's summary for the number of new column files; the V4 draft defines no key for this.
ADDED_COLUMN_FILES = "added-column-files"


class NothingToDo(OptionError):  # noqa: N818 (it ends an operation, and callers return None)
    """Raised when an operation finds neither a file nor a row to change, so that there is nothing to commit.

    Methods for operations that may run on a schedule (`compact`) and for operations on rows (`delete`) catch this error
    and return None. Callers that need exactly one commit, such as the commit panel, show the error's message.
    """


@dataclass(frozen=True)
class Change:
    """The file changes of one commit.

    Files to add are already written. Their entries have no status, snapshot id or sequence numbers yet, except that
    ``sequence_number`` is set if a compaction gives a file an older data sequence number. Files to remove are given by
    location; each time the change is applied, they are looked up in the state that the commit then builds on.

    Attributes
    ----------
    operation
        The snapshot's operation (spec, "Snapshots"): ``append`` only adds files, ``replace`` keeps the rows,
        ``overwrite`` adds and removes files, ``delete`` only removes files.
    added
        The entries of files to add: DATA, POSITION_DELETE (DVs, or position delete files in v2) and EQUALITY_DELETE.
    remove_data
        Locations of data files to remove. The DVs of these files are removed with them.
    remove_deletes
        Locations of position or equality delete files to remove.
    data_manifests
        Locations of the data manifests that list the data files to remove or change; the commit reads other manifests
        only if it does not find a file in these. None if the operation does not know the manifests.
    replace_dvs
        Locations of data files whose current DV is removed. If ``added`` has a new DV for the data file, the new DV
        replaces the current one.
    rewrite_manifests
        Locations of leaf manifests to rewrite without changing the data, or ``True`` to let the layout choose some.
    ignore_missing
        Whether a file to remove may be missing from the table because another commit already removed it, as can happen
        when a delete by expression is retried.
    base_snapshot_id
        The id of the snapshot that the operation read; validations check the commits since then.
    isolation
        The isolation level, which determines the validations against concurrent commits.
    conflict_partitions, conflict_files
        The partitions and data files that the operation read. A concurrent commit conflicts with the operation if it
        adds a file to one of these partitions or removes one of these files. ``conflict_partitions=None`` means all
        partitions.
    conflict_filter
        A filter that limits conflicts if ``conflict_partitions`` is None. Of the files that concurrent commits add,
        only those that may contain matching rows conflict (`Filter.evaluate`).
    reapply
        A function that computes the change anew for a newer state of the table, without writing files. If it is given,
        a retry calls it instead of applying this change again. Deletes by expression need it, because the files that
        they remove depend on the state.
    summary
        Additional entries for the snapshot's summary.
    column_files
        Used only in the V4 draft: one entry for each data file that gets a new column file. The entry has the data
        file's location, a list ``column_files`` with only the new file, and statistics of the new file's columns, which
        replace the old statistics of these columns.
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
        Location of the new manifest list or root manifest.
    summary
        The snapshot's summary: ``added-data-files`` and other counts, and totals (spec, "Optional Snapshot Summary
        Fields").
    added_rows
        The number of row ids that the change assigned; ``next-row-id`` increases by this number. None below v3.
    """

    root_location: str
    summary: Mapping[str, str]
    added_rows: int | None = None
