"""Define the operations on whole data files: append, delete_files, overwrite, delete_where.

An operation is a function that returns a `Change`. It first checks its arguments against the table's state, and raises
an error if the change would break a rule. Only after these checks does it write new data files. The function is called
once per commit, even if the commit is retried: a retry applies the same change again, or calls `Change.reapply` if the
change has this function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from iceexplore.arrow import build
from iceexplore.commits.added_files._new_files import FilesLike, new_files
from iceexplore.commits.live_files._find import LocationsLike, locations_of, must_be_live
from iceexplore.commits.live_files._selection import Selection, refuse_straddling, select
from iceexplore.commits.model._change import Change, Isolation, Operation
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.errors import OptionError, RuleError
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import Filter, partition_keys

__all__ = ["append", "base_id", "checked_isolation", "delete_files", "delete_where", "overwrite", "partitions_of"]


def append(state: TableState, writer: CommitWriter, files: FilesLike, **how: Any) -> Change:
    """Add data files. An append does not depend on the files in the table, so it never conflicts with other commits.

    Parameters
    ----------
    files
        The data files to add: the number of synthetic files to create, dictionaries that describe files, paths of
        Parquet files, or a data frame whose rows are written to new files.
    how
        Options for ``files``, such as ``partitions`` (see `new_files`).
    """
    return Change("append", new_files(state, files, writer=writer, **how), base_snapshot_id=base_id(state))


def delete_files(state: TableState, writer: CommitWriter, paths: LocationsLike) -> Change:
    """Remove data files and their DVs.

    Parameters
    ----------
    paths
        One or more locations, or the data frame from `inspect.files()`, or a column of it.

    Raises
    ------
    RuleError
        ``files-exist``: a file is not live. ``duplicate-file``: the table lists a file more than once.
    """
    locations = _live(state, paths)
    return Change("delete", remove_data=locations, base_snapshot_id=base_id(state), conflict_files=frozenset(locations))


def overwrite(
    state: TableState,
    writer: CommitWriter,
    files: FilesLike | None = None,
    *,
    delete: LocationsLike | None = None,
    where: FilterLike | Filter | None = None,
    partition: Mapping[str, Any] | None = None,
    isolation: Isolation = "serializable",
    **how: Any,
) -> Change:
    """Remove data files and add others in one commit.

    The snapshot's operation is ``overwrite``, but ``append`` if no file is removed, and ``delete`` if none is added.

    Parameters
    ----------
    files, how
        The files to add, as for `append`.
    delete
        Locations of the files to remove.
    where, partition
        A filter for the files to remove, as for `delete_where`.
    isolation
        With ``serializable``, data files added by concurrent commits conflict: with ``delete`` all of them, with
        ``where`` or ``partition`` those that may match (Java: ``BaseOverwriteFiles``). With ``snapshot``, such files do
        not conflict.

    Raises
    ------
    OptionError
        There is no file to remove or add, or ``delete`` is combined with ``where`` or ``partition``.
    RuleError
        ``files-exist`` and ``duplicate-file`` (see `delete_files`), or ``whole-files`` (see `delete_where`).
    """
    checked_isolation(isolation)
    by_filter = where is not None or partition is not None
    if delete is not None and by_filter:
        raise OptionError("give the files to remove either as delete= or by where= and partition=, not both")
    if delete is None and not by_filter and files is None:
        raise OptionError("overwrite needs files to add, or files to remove (delete=, where= or partition=)")
    gone: tuple[str, ...] = ()
    selection: Selection | None = None
    if delete is not None:
        gone = _live(state, delete)
    elif by_filter:
        selection = select(state, where, partition)
        refuse_straddling(selection)
        gone = tuple(build.to_pylist(selection.whole.entries["location"]))
    added = EntryBatch.empty()
    if files is not None:
        added = new_files(state, files, writer=writer, **how)
    elif how:
        raise OptionError(f"{sorted(how)[0]} is an option of files=, which is not given")
    operation: Operation = "overwrite" if gone and len(added) else "delete" if gone else "append"
    if not gone and not len(added):
        raise OptionError("nothing to commit: no file matches and none is added")
    reads = delete is not None or by_filter
    return Change(
        operation,
        added,
        remove_data=gone,
        data_manifests=None if selection is None else selection.manifests,
        base_snapshot_id=base_id(state),
        isolation=isolation,
        conflict_partitions=None if reads else frozenset(),
        conflict_filter=None if selection is None else selection.filter,
        conflict_files=frozenset(gone),
    )


def delete_where(
    state: TableState,
    writer: CommitWriter,
    where: FilterLike | Filter | None = None,
    *,
    partition: Mapping[str, Any] | None = None,
) -> Change:
    """Remove a data file if the metadata shows that all its rows match a filter; no data is read.

    Files that concurrent commits add or remove do not conflict: a retry selects the files anew, in the newer state
    (``reapply``).

    Parameters
    ----------
    where
        A filter: a string or a PyIceberg expression.
    partition
        Values by partition field; omitted fields match anything. If ``where`` is also given, both must match.

    Raises
    ------
    OptionError
        Neither ``where`` nor ``partition`` is given, a column is unknown, or no file matches.
    RuleError
        ``whole-files``: a file may have matching rows, but the metadata does not show that all its rows match (Java:
        "Cannot delete file where some, but not all, rows match filter").
    """
    if where is None and partition is None:
        raise OptionError("delete_where needs a filter or partition=; to remove everything pass where='true'")

    def change(base: TableState, *, first: bool = False) -> Change:
        selection = select(base, where, partition)
        refuse_straddling(selection)
        gone = tuple(build.to_pylist(selection.whole.entries["location"]))
        if first and not gone:
            raise OptionError(f"nothing to delete: no live file matches {selection.text}")
        return Change(
            "delete",
            remove_data=gone,
            data_manifests=selection.manifests,
            ignore_missing=True,
            base_snapshot_id=base_id(base),
            reapply=change,
        )

    return change(state, first=True)


def partitions_of(state: TableState, batch: EntryBatch) -> frozenset[tuple[int, str]]:
    """Return the distinct partitions of the files in a batch, for use as `Change.conflict_partitions`.

    A partition is a pair of the spec id and the partition tuple as JSON.
    """
    return partition_keys(batch.entries["partition_spec_id"], batch.partition, state.metadata)


def checked_isolation(isolation: str) -> None:
    """Refuse an isolation level other than ``serializable`` and ``snapshot``.

    Raises
    ------
    OptionError
        The isolation level is neither of these.
    """
    if isolation not in get_args(Isolation):
        raise OptionError(f"isolation={isolation!r}: choose 'serializable' or 'snapshot'")


def _live(state: TableState, paths: LocationsLike) -> tuple[str, ...]:
    """Return the locations of the given data files exactly as the table's manifests write them.

    Raises
    ------
    RuleError
        ``files-exist``: a file is not live. ``duplicate-file``: the table lists a file more than once.
    """
    found, _ = must_be_live(state, locations_of(paths), tuples=False)
    names = build.to_pylist(found.entries["location"])
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise RuleError("duplicate-file", f"the table lists {twice} more than once: the entry to remove is ambiguous")
    return tuple(names)


def base_id(state: TableState) -> int | None:
    """Return the id of the snapshot that an operation on a state is based on; None if the table has no snapshot."""
    return None if state.snapshot is None else state.snapshot.snapshot_id
