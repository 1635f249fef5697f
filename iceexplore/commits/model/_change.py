"""What an operation wants, in terms of files alone: independent of the layout, and applied again on a retry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from iceexplore.errors import OptionError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import Filter

__all__ = ["Applied", "Change", "Isolation", "NothingToDo", "Operation"]

Operation = Literal["append", "replace", "overwrite", "delete"]
Isolation = Literal["serializable", "snapshot"]


class NothingToDo(OptionError):  # noqa: N818 (it ends an operation, and callers return None)
    """An operation found no file and no row to change, so there is nothing to commit.

    Operations that may run on a schedule (`compact`) and operations on rows (`delete`) return None then; the message
    serves whoever asked for one commit, as the commit panel does.
    """


@dataclass(frozen=True)
class Change:
    """One commit's changes of files.

    Files to add are already written; their entries have null status, snapshot and sequence numbers (a file given an
    older data sequence number by a compaction keeps it in ``sequence_number``). Files to remove are named, and looked
    up in whatever base the change is applied to.

    Attributes
    ----------
    operation
        By definition (spec, "Snapshots"): append only adds, replace keeps the rows, overwrite adds and removes,
        delete only removes.
    added
        DATA, POSITION_DELETE (DVs, or position delete files of v2) and EQUALITY_DELETE entries.
    remove_data
        Locations of data files that go. Their DVs go with them.
    remove_deletes
        Locations of delete files (position, equality) that go.
    replace_dvs
        Data files whose DV is superseded by one in ``added`` (or, after a compaction, by none).
    rewrite_manifests
        Leaves to be rewritten without any change of the data: their locations, or ``True`` for what the layout
        thinks worth it.
    drop_if_there
        Of ``remove_data``, locations that need not be there any more on a retry (deletes by expression).
    base_snapshot_id
        The snapshot that the operation read; validations look at what was committed since.
    isolation
        Which validations run against commits in between.
    conflict_partitions, conflict_files
        What the operation read: the data files whose removal, or the partitions in which new files, conflict with it.
        None: the whole table.
    conflict_filter
        Narrows ``conflict_partitions=None``: only new files that may have rows matching it (`Filter.judge`) conflict.
    renew
        Makes the change anew on a newer base: called instead of applying this one again on a retry, where what goes
        depends on what is there (deletes by expression). It writes nothing.
    summary
        Further entries of the snapshot's summary.
    """

    operation: Operation
    added: EntryBatch = field(default_factory=EntryBatch.empty)
    remove_data: tuple[str, ...] = ()
    remove_deletes: tuple[str, ...] = ()
    replace_dvs: tuple[str, ...] = ()
    rewrite_manifests: tuple[str, ...] | bool = ()
    drop_if_there: bool = False
    base_snapshot_id: int | None = None
    isolation: Isolation = "serializable"
    conflict_partitions: frozenset[tuple[int, str]] | None = frozenset()
    conflict_files: frozenset[str] = frozenset()
    conflict_filter: Filter | None = None
    renew: Callable[[TableState], Change] | None = field(default=None, compare=False, repr=False)
    summary: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Applied:
    """What a layout made of a change.

    Attributes
    ----------
    root_location
        The manifest list or root manifest.
    summary
        ``added-data-files`` and so on, and the totals (spec, "Optional Snapshot Summary Fields").
    added_rows
        Rows that were given row ids (v3 and later): ``next-row-id`` grows by as many; None below v3.
    """

    root_location: str
    summary: Mapping[str, str]
    added_rows: int | None = None
