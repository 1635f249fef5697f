"""Operations on whole data files: append, delete_files, overwrite, delete_where.

An operation looks at a state, refuses what breaks a rule before a byte is written, writes the new data files, and says
what changes. It is run once per commit; what it returns is applied again on a retry.
"""

from __future__ import annotations

from typing import Any, get_args

from iceexplore.commits.added_files._new_files import new_files
from iceexplore.commits.live_files._find import locations_of, must_be_live
from iceexplore.commits.live_files._selection import Selection, refuse_straddling, select
from iceexplore.commits.model._change import Change, Isolation, Operation
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import OptionError, RuleError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import partition_keys

__all__ = ["append", "base_id", "checked_isolation", "delete_files", "delete_where", "overwrite", "partitions_of"]


def append(state: TableState, writer: CommitWriter, files: Any, **how: Any) -> Change:
    """Add data files. It reads nothing of the table, and so never conflicts.

    Parameters
    ----------
    files
        A number, dictionaries, paths, or a data frame; ``how`` is what goes with it (`new_files`).
    """
    return Change("append", new_files(state, files, writer=writer, **how), base_snapshot_id=base_id(state))


def delete_files(state: TableState, writer: CommitWriter, paths: Any) -> Change:
    """Remove data files, their DVs with them.

    Parameters
    ----------
    paths
        Locations: one or several, also a column of `inspect.files()` or the frame itself.

    Raises
    ------
    RuleError
        ``files-exist``: one is not live.
    """
    locations = _live(state, paths)
    return Change("delete", remove_data=locations, base_snapshot_id=base_id(state), conflict_files=frozenset(locations))


def overwrite(
    state: TableState,
    writer: CommitWriter,
    files: Any = None,
    *,
    delete: Any = None,
    where: Any = None,
    partition: Any = None,
    isolation: Isolation = "serializable",
    **how: Any,
) -> Change:
    """Replace data files by others in one commit; ``append`` if nothing goes, ``delete`` if nothing comes.

    Parameters
    ----------
    files, how
        What comes, as for `append`.
    delete
        Locations of what goes.
    where, partition
        What goes, as for `delete_where`.
    isolation
        ``serializable``: data that others add in between conflicts, anywhere in the table if ``delete`` names the
        files, or where it may match ``where`` or ``partition`` (Java: ``BaseOverwriteFiles``); ``snapshot``: it does
        not.

    Raises
    ------
    OptionError
        Neither anything to remove nor to add, or both ``delete`` and ``where``.
    RuleError
        ``files-exist``, or ``whole-files`` (see `delete_where`).
    """
    checked_isolation(isolation)
    by_filter = where is not None or partition is not None
    if delete is not None and by_filter:
        raise OptionError("give what goes by delete= or by where= and partition=, not both")
    if delete is None and not by_filter and files is None:
        raise OptionError("overwrite needs files to add, or delete= or where= to say what goes")
    gone: tuple[str, ...] = ()
    selection: Selection | None = None
    if delete is not None:
        gone = _live(state, delete)
    elif by_filter:
        selection = select(state, where, partition)
        refuse_straddling(selection)
        gone = tuple(selection.whole.entries["location"].to_pylist())
    added = EntryBatch.empty()
    if files is not None:
        added = new_files(state, files, writer=writer, **how)
    elif how:
        raise OptionError(f"{sorted(how)[0]} belongs to files=, which is not given")
    operation: Operation = "overwrite" if gone and len(added) else "delete" if gone else "append"
    if not gone and not len(added):
        raise OptionError("nothing matches, and nothing is added: there is nothing to commit")
    reads = delete is not None or by_filter
    return Change(
        operation,
        added,
        remove_data=gone,
        base_snapshot_id=base_id(state),
        isolation=isolation,
        conflict_partitions=None if reads else frozenset(),
        conflict_filter=None if selection is None else selection.filter,
        conflict_files=frozenset(gone),
    )


def delete_where(state: TableState, writer: CommitWriter, where: Any = None, *, partition: Any = None) -> Change:
    """Remove the data files all of whose rows match; metadata alone decides, no data is read.

    Deletes by expression always apply: on a retry the selection is made again on the new base (``renew``).

    Parameters
    ----------
    where
        A filter: text, or a PyIceberg expression.
    partition
        A dictionary by partition field; fields that are left out match anything. Both: both must match.

    Raises
    ------
    OptionError
        Neither is given, an unknown column, or nothing matches.
    RuleError
        ``whole-files``: of some files perhaps some, but not surely all rows match (Java: "Cannot delete file where
        some, but not all, rows match filter").
    """
    if where is None and partition is None:
        raise OptionError("delete_where needs a filter or a partition=; to remove everything say where='true'")

    def change(base: TableState, *, first: bool = False) -> Change:
        selection = select(base, where, partition)
        refuse_straddling(selection)
        gone = tuple(selection.whole.entries["location"].to_pylist())
        if first and not gone:
            raise OptionError(f"no live file matches {selection.text}: there is nothing to delete")
        return Change("delete", remove_data=gone, drop_if_there=True, base_snapshot_id=base_id(base), renew=change)

    return change(state, first=True)


def partitions_of(state: TableState, batch: EntryBatch) -> frozenset[tuple[int, str]]:
    """The partitions of some files, as `Change.conflict_partitions` has them."""
    return partition_keys(batch.entries["partition_spec_id"], batch.partition, state.metadata)


def checked_isolation(isolation: str) -> None:
    """Refuse an unknown isolation level."""
    if isolation not in get_args(Isolation):
        raise OptionError(f"isolation={isolation!r}: serializable or snapshot")


def _live(state: TableState, paths: Any) -> tuple[str, ...]:
    """Locations of live files as the table spells them."""
    found, _ = must_be_live(state, locations_of(paths), tuples=False)
    names = found.entries["location"].to_pylist()
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise RuleError("duplicate-file", f"the table has {twice} more than once: which entry is meant cannot be said")
    return tuple(names)


def base_id(state: TableState) -> int | None:
    """The snapshot that an operation has read."""
    return None if state.snapshot is None else state.snapshot.snapshot_id
