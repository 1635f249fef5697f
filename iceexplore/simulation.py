"""The face of a simulation: a Table with commits. Each method is a line or two into `iceexplore.commits`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from iceexplore import commits, graph
from iceexplore._committed import CommittedTable
from iceexplore.commits import Sandbox
from iceexplore.errors import known_arguments
from iceexplore.metadata import Snapshot

__all__ = ["Simulation", "empty", "simulate"]

#: Arguments of the operations that are named above, or are not the user's to give.
_OURS = ("state", "writer", "files", "delete", "deletes", "how")


def simulate(
    state: graph.TableState,
    format_version: int | None,
    *,
    overlay: str | PathLike[str] | None,
    seed: int | str | None,
    layout: Mapping[str, Any],
) -> Simulation:
    """A simulation on top of a state. See `iceexplore.Table.simulate`."""
    return Simulation(commits.start_sandbox(state, format_version, layout, overlay=overlay, seed=seed))


def empty(
    schema: Any,
    *,
    partition_by: str | Iterable[str] | None = (),
    format_version: int = 4,
    location: str = "/warehouse/db/events",
    properties: Mapping[str, str] | None = None,
    seed: int | str | None = None,
    **layout: Any,
) -> Simulation:
    """A simulation that starts from nothing: a new table without a snapshot.

    Parameters
    ----------
    schema
        Types by column name: ``{"id": "long", "ts": "timestamp", "tags": "list<string>"}``. Or a schema: of a table
        (``t.schema``), of PyIceberg, of PyArrow, or of what has one: a data frame, an Arrow table. Columns get new ids;
        what is required, identifiers, docs and defaults stay.
    partition_by
        Partition fields: ``"day(ts)"``, ``"bucket(16, id)"``, ``"region"``.
    location
        Where the table would be; nothing is written there.
    seed, layout
        As in `iceexplore.Table.simulate`.

    Raises
    ------
    OptionError, RuleError
        The schema, the spec or an option makes no sense.
    """
    state = commits.empty_state(
        schema,
        partition_by=partition_by,
        format_version=format_version,
        location=location,
        properties=properties,
        expressions=layout.get("dialect") != "v4-java",  # Java's reader does not know them
    )
    return simulate(state, format_version, overlay=None, seed=seed, layout=layout)


class Simulation(CommittedTable):
    """A table on an overlay: commits write real files beside it, and the table itself is never written.

    Made by `Table.simulate`. It is a Table of its present state: card, tree, inspect, diff and at show what the table
    would be. Each commit moves it on; what `table` and `at` return stays what it is. Every commit may raise
    `RuleError` (it would break a rule; nothing was written) and, where another writer (`fork`) came first,
    `CommitConflictError`; it returns its snapshot.

    Methods that add or remove files take ``ref=``, the branch to commit to.
    """

    _sandbox: Sandbox

    # What it is -------------------------------------------------------------------------------------------------------

    @property
    def overlay(self) -> str:
        """The folder in which the simulation's files are."""
        return self._sandbox.storage.overlay_folder

    def fork(self) -> Simulation:
        """A second writer to the same simulated table: it knows nothing of what this one commits from now on.

        Whoever commits second rebases on the other's commit and tries again, or fails with `CommitConflictError`.
        """
        return Simulation(self._sandbox.fork())

    def copy(self) -> Simulation:
        """The simulation as it is now, once more: what either commits from now on, the other never meets.

        To try something out, or to go on in two ways. The copy needs this one's files: `close` ends both.
        """
        return Simulation(self._sandbox.copy())

    def __deepcopy__(self, memo: Any) -> Simulation:
        return self.copy()

    def close(self) -> None:
        """Remove the simulation's temporary folder, for all its forks; a folder given as ``overlay=`` stays."""
        self._sandbox.close()

    # Commits of files -------------------------------------------------------------------------------------------------

    def append(self, files: Any, *, ref: str = "main", **how: Any) -> Snapshot:
        """Add data files: a number with ``rows=``, dictionaries, paths of Parquet files, or a data frame.

        Parameters
        ----------
        files, how
            As in `iceexplore.commits.new_files`: ``rows``, ``partitions``, ``bytes_per_row``, ``materialize`` of a
            number. Made-up files have no data, only plausible statistics; ``materialize=True`` writes data.

        Raises
        ------
        OptionError
            What is given does not fit the schema or the spec.
        """
        known_arguments("append", how, commits.new_files, _OURS)
        return self._files(lambda w: commits.append(w.base, w, files, **how), ref)

    def delete_files(self, paths: Any, *, ref: str = "main") -> Snapshot:
        """Remove data files by their locations, their deletion vectors with them. ``files-exist``: one is not live."""
        return self._files(lambda w: commits.delete_files(w.base, w, paths), ref)

    def overwrite(self, files: Any = None, *, delete: Any = None, ref: str = "main", **how: Any) -> Snapshot:
        """Replace data files (``delete=`` locations, or ``where=`` and ``partition=``) by others in one commit.

        Parameters
        ----------
        how
            ``isolation``, and what goes with ``files`` as in `append`.
        """
        known_arguments("overwrite", how, commits.overwrite, _OURS, commits.new_files)
        return self._files(lambda w: commits.overwrite(w.base, w, files, delete=delete, **how), ref)

    def row_delta(
        self, files: Any = None, *, deletes: Mapping[Any, Any] | None = None, ref: str = "main", **how: Any
    ) -> Snapshot:
        """Delete rows by position (``deletes={path: [0, 5]}``) or by value (``equality=``), and add data files.

        Parameters
        ----------
        how
            ``equality``, ``equality_partition``, ``isolation``, and what goes with ``files`` as in `append`.

        Raises
        ------
        RuleError
            ``deletes-need-v2``, ``dv-in-range`` (a position past a file's rows), ``files-exist``.
        """
        known_arguments("row_delta", how, commits.row_delta, _OURS, commits.new_files)
        return self._files(lambda w: commits.row_delta(w.base, w, files, deletes=deletes, **how), ref)

    def delete_where(
        self, where: Any = None, *, partition: Mapping[str, Any] | None = None, ref: str = "main"
    ) -> Snapshot:
        """Remove the data files all of whose rows match, by metadata alone. ``whole-files``: some match in part."""
        return self._files(lambda w: commits.delete_where(w.base, w, where, partition=partition), ref)

    def compact(self, paths: Any = None, *, ref: str = "main", **how: Any) -> Snapshot | None:
        """Replace data files by fewer with the same rows (operation ``replace``).

        Returns None, without a commit, if no partition has more files than it
        would get.

        Parameters
        ----------
        paths, how
            As in `iceexplore.commits.compact`: locations, or ``where``, ``partition``, ``small_than``; ``files`` a
            partition; ``read=False`` puts metadata together without reading data.
        """
        known_arguments("compact", how, commits.compact, ("state", "writer", "paths", "rewrite"))
        return self._files_if_any(lambda w: commits.compact(w.base, w, paths, **how), ref)
