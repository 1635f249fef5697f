"""What a Table knows of its rows: plans, scans, where a row is, changes. Each method is a line or two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from iceexplore import graph
from iceexplore.errors import UnsupportedError

if TYPE_CHECKING:
    from iceexplore.commits import Changes
    from iceexplore.planning import ScanPlan

__all__ = ["Scans"]


class Scans:
    """The part of a `iceexplore.Table` that concerns rows."""

    _state: graph.TableState

    def _resolve(self, at: Any) -> graph.TableState:
        raise NotImplementedError

    def plan(
        self,
        filter: Any = None,  # noqa: A002  (the word that people look for)
        *,
        columns: Iterable[str] | None = None,
        partition: Any = None,
        split_size: int = 128 * 1024 * 1024,
    ) -> ScanPlan:
        """What a scan reads, what it skips, and why. Manifests are read, no data file is opened.

        Parameters
        ----------
        filter
            SQL text (``ts >= '2024-01-01' and id in (7, 9)``), or an expression of ``pyiceberg.expressions``; without
            it every live file is read.
        columns
            Names of the columns that are read, dotted inside structs; all by default.
        partition
            A dictionary by partition field: only files of these partitions.
        split_size
            Bytes a split should have (``read.split.target-size``).

        Raises
        ------
        OptionError
            The filter cannot be parsed or does not fit the schema, or a column is not there; the nearest are listed.
        """
        from iceexplore.planning import plan_scan

        return plan_scan(self._state, filter, columns=columns, partition=partition, split_size=split_size)

    def changes(
        self,
        a: Any = None,
        b: Any = None,
        *,
        rows: bool = False,
        spark: Any = None,
        dv_encoding: Literal["removed", "replace", "delta"] | None = None,
    ) -> Changes:
        """Which files were added and removed, and which metadata files had to be read to know.

        With two arguments what changed from ``a`` to ``b``, by comparing two roots. With one what that snapshot did,
        read from its own root as far as this tells; without any, what the snapshot shown did. (`diff` of one argument
        goes from there to here.)

        Parameters
        ----------
        a, b
            Snapshot ids, branches or tags, or Tables.
        rows, spark
            Changes by rows are not there yet.
        dv_encoding
            How the writer of V4 roots shows that a manifest DV changed; see `iceexplore.commits.changes_of`.

        Raises
        ------
        UnsupportedError
            ``rows=True``.
        SnapshotNotFoundError
            No such snapshot, branch or tag; the nearest are listed.
        """
        from iceexplore.commits import changes_between, changes_of

        if rows or spark is not None:
            raise UnsupportedError("changes(rows=True) is not there yet: leave rows and spark out for changes by files")
        if b is not None:
            return changes_between(self._resolve(a), self._resolve(b))
        state = self._state if a is None else self._resolve(a)
        return changes_of(state, dv_encoding=dv_encoding)
