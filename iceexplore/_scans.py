"""What a Table knows of its rows: plans, scans, where a row is, changes. Each method is a line or two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

from iceexplore import graph
from iceexplore.errors import OptionError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from iceexplore.commits import Changes
    from iceexplore.planning import ScanPlan
    from iceexplore.reading import RowCount, RowPlaces

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
        from_snapshot: Any = None,
        to_snapshot: Any = None,
        row_groups: bool = False,
        bloom: bool = False,
        split_size: int | None = None,
    ) -> ScanPlan:
        """What a scan reads, what it skips, and why.

        Manifests are read; a data file is opened for ``row_groups`` alone.

        Parameters
        ----------
        filter
            SQL text (``ts >= '2024-01-01' and id in (7, 9)``), or an expression of ``pyiceberg.expressions``; without
            it every live file is read.
        columns
            Names of the columns that are read, dotted inside structs; all by default.
        partition
            A dictionary by partition field: only files of these partitions.
        from_snapshot, to_snapshot
            Only the files that appends have added after the one and up to and with the other: ids, branches or tags,
            or Tables. Without the first from the oldest snapshot on, without the second up to the one shown. What
            other operations did is passed over, and no deletes are applied, as in Iceberg's incremental append scan.
        row_groups
            Open the footers of the Parquet files that are left, and judge their row groups by their statistics.
        bloom
            Ask the row groups' Bloom filters, too.
        split_size
            Bytes a split should have; by default the table's ``read.split.target-size``, or 128 MiB.

        Raises
        ------
        OptionError
            The filter cannot be parsed or does not fit the schema, or a column is not there; the nearest are listed.
            Or ``from_snapshot`` is no ancestor of ``to_snapshot``.
        SnapshotNotFoundError
            No such snapshot, branch or tag; the nearest are listed.
        """
        from iceexplore.planning import plan_scan

        ends = [getattr(at, "_state", at) for at in (from_snapshot, to_snapshot)]
        return plan_scan(
            self._state,
            filter,
            columns=columns,
            partition=partition,
            from_snapshot=ends[0],
            to_snapshot=ends[1],
            row_groups=row_groups,
            bloom=bloom,
            split_size=split_size,
        )

    def head(
        self,
        n: int = 10,
        filter: Any = None,  # noqa: A002
        columns: Any = None,
        *,
        partition: Any = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> pd.DataFrame:
        """The first rows, deletes applied: a pandas data frame with Arrow-backed columns.

        Manifests and files are read in the order of the plan, and no further than needed; of a table with deletes all
        manifests. Parameters and errors are those of
        `to_arrow`.

        Examples
        --------
        >>> t.head(3)
        >>> t.head(5, "city = 'Oslo'", columns=["id", "address.street", "_file", "_pos"])
        """
        from iceexplore.reading import head

        return head(self._state, n, filter, columns, partition=partition, on_error=on_error)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for whatever takes Arrow's C stream: ``polars.DataFrame(t)``, ``pyarrow.table(t)``, DuckDB's SQL.

        They are read as they are taken, batch by batch, as `to_arrow` reads them.
        """
        from iceexplore.reading import row_stream

        return row_stream(self._state).__arrow_c_stream__(requested_schema)

    def count(
        self,
        filter: Any = None,  # noqa: A002
        *,
        partition: Any = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> RowCount:
        """How many rows there are, or match a filter, after deletes.

        Manifests tell where they are exact: of files all of whose rows match, without equality deletes. Of these with
        a deletion vector its count is taken off; position delete files are read. Of other files the columns of the
        filter and of equality deletes are read. Of a table on a far store without deletes the manifest list tells
        all of it, if its counts agree with the snapshot's summary; manifests are not opened then.

        Returns
        -------
        RowCount
            An int; ``.explain()`` says how many files it took.

        Raises
        ------
        OptionError, FormatError, UnsupportedError, FileMissingError
            As `to_arrow`. A file that was not read is not looked for.
        """
        from iceexplore.reading import count_rows

        return count_rows(self._state, filter, partition=partition, on_error=on_error)

    def to_arrow(
        self,
        filter: Any = None,  # noqa: A002
        columns: Any = None,
        limit: int | None = None,
        *,
        partition: Any = None,
        on_error: Literal["raise", "skip"] = "raise",
        max_bytes: int | None = None,
    ) -> pa.Table:
        """The rows as an Arrow table, every delete applied: files in the order of the plan, positions ascending.

        Columns are found by field id, so that renames, drops, moves and promotions are as Iceberg has them; see
        `iceexplore.reading.read_data_file`. ``uuid`` comes as 16 bytes, ``geometry`` and ``geography`` as they are
        stored (WKB), ``variant`` as its bytes ``metadata`` and ``value``; a field's id is in its metadata
        (``PARQUET:field_id``).

        Parameters
        ----------
        filter
            As for `plan`.
        columns
            None or ``"*"`` for all; a name or several: columns, fields of structs with dots, ``"*"`` for all columns,
            and metadata columns: ``_file``, ``_pos``, ``_row_id``, ``_last_updated_sequence_number``, ``_spec_id``,
            ``_partition``, ``_deleted``. With ``_deleted`` the deleted rows come too, marked.
        limit
            Rows at most.
        partition
            A dictionary by partition field: only rows of files of these partitions.
        on_error
            ``"raise"``; or ``"skip"`` to leave out what cannot be read (files that are missing, damaged or encrypted,
            or whose deletes are): each is a problem in ``.problems`` that says how many rows are missing, and there is
            a warning. Of a file that is damaged further on, the rows before are there.
        max_bytes
            Memory that the rows may take, in bytes; by default `iceexplore.memory_limit`.

        Raises
        ------
        OptionError
            The filter or a column makes no sense; the nearest names are listed.
        FormatError, UnsupportedError, FileMissingError
            A file cannot be read: damaged, encrypted, a simulation's made-up file, not there.
        MemoryLimitError
            The rows take more than ``max_bytes``, or a small file expands without measure.
        """
        from iceexplore.reading import to_arrow

        return to_arrow(
            self._state, filter, columns, limit=limit, partition=partition, on_error=on_error, max_bytes=max_bytes
        )

    def to_pandas(
        self,
        filter: Any = None,  # noqa: A002
        columns: Any = None,
        limit: int | None = None,
        *,
        partition: Any = None,
        on_error: Literal["raise", "skip"] = "raise",
        max_bytes: int | None = None,
    ) -> pd.DataFrame:
        """The rows as a pandas data frame with Arrow-backed columns; parameters and errors as `to_arrow`."""
        return graph.to_frame(
            self.to_arrow(filter, columns, limit, partition=partition, on_error=on_error, max_bytes=max_bytes)
        )

    def rows(
        self,
        filter: Any = None,  # noqa: A002
        *,
        columns: Iterable[str] | None = None,
        history: bool | Literal["branches"] = False,
        partition: Any = None,
        limit: int | None = 1000,
    ) -> RowPlaces:
        """Where matching rows live or lived: file, position, the snapshot that added them, and what became of them.

        A row is live; or deleted by a delete file or deletion vector, which is named, in a snapshot; or gone with its
        file; or moved, by compaction say. Deleted rows of files that are live are among them. ``.story()`` tells and
        draws the life of each row across snapshots.

        Parameters
        ----------
        filter
            As for `plan`; ``t.rows("id = 7")``.
        columns
            Columns to show besides the identifier fields and those of the filter; without any of these, all.
        history
            Look at files that were removed since, too: ``True`` for the ancestry of the state shown, ``"branches"`` for
            that of every branch and tag besides. Each root is read. Files that are no longer in the storage are named
            in ``.unread`` and in ``.problems``.
        partition
            Only files of this partition, by partition field.
        limit
            The search ends with the file that brings it to so many places (``.complete`` says so); None: no limit.

        Raises
        ------
        OptionError
            The filter, a column or an option makes no sense; the nearest names are listed.
        """
        from iceexplore.reading import find_rows

        return find_rows(self._state, filter, columns=columns, history=history, partition=partition, limit=limit)

    @overload
    def changes(
        self,
        a: Any = ...,
        b: Any = ...,
        *,
        rows: Literal[False] = ...,
        spark: None = ...,
        dv_encoding: Literal["removed", "replace", "delta"] | None = ...,
    ) -> Changes: ...

    @overload
    def changes(
        self,
        a: Any = ...,
        b: Any = ...,
        *,
        rows: Literal[True],
        spark: None = ...,
        columns: Any = ...,
        filter: Any = ...,
        identifier_columns: Iterable[str] | None = ...,
        compute_updates: bool | None = ...,
        net_changes: bool = ...,
    ) -> pa.Table: ...

    @overload
    def changes(
        self,
        a: Any = ...,
        b: Any = ...,
        *,
        rows: Literal[True],
        spark: Any,
        columns: Any = ...,
        filter: Any = ...,
        identifier_columns: Iterable[str] | None = ...,
        compute_updates: bool | None = ...,
        net_changes: bool = ...,
    ) -> DataFrame: ...

    def changes(
        self,
        a: Any = None,
        b: Any = None,
        *,
        rows: bool = False,
        spark: Any = None,
        dv_encoding: Literal["removed", "replace", "delta"] | None = None,
        columns: Any = None,
        filter: Any = None,  # noqa: A002
        identifier_columns: Iterable[str] | None = None,
        compute_updates: bool | None = None,
        net_changes: bool = False,
    ) -> Changes | pa.Table | DataFrame:
        """Which files were added and removed, and which metadata files had to be read to know; or which rows.

        With two arguments what changed from ``a`` to ``b``, by comparing two roots. With one what that snapshot did,
        read from its own root as far as this tells; without any, what the snapshot shown did. (`diff` of one argument
        goes from there to here.)

        With ``rows=True`` a changelog as Iceberg's procedure ``create_changelog_view`` makes it, of tables with delete
        files too: the rows that each snapshot after ``a``, up to and with ``b``, inserted and deleted. ``a=None`` with
        a ``b`` is from the beginning. See `iceexplore.reading.changelog`.

        Parameters
        ----------
        a, b
            Snapshot ids, branches or tags, or Tables. Of rows ``a`` may be the id of a snapshot that has expired, if it
            is the parent of the oldest one that is left.
        rows
            Changes by rows: a table with the columns and ``_change_type`` (INSERT, DELETE, UPDATE_BEFORE,
            UPDATE_AFTER), ``_change_ordinal``, ``_commit_snapshot_id``; ``.to_pandas()`` makes a data frame of it.
        spark
            Of rows: a Spark session, whose workers read the files; the result is a DataFrame of Spark, in no order. See
            `iceexplore.on_spark.changelog`.
        dv_encoding
            How the writer of V4 roots shows that a manifest DV changed; see `iceexplore.commits.changes_of`.
        columns, filter
            Of rows: which columns, and only rows that match.
        identifier_columns, compute_updates
            Of rows: a row deleted and one inserted by the same snapshot are an update if these columns are equal; by
            default the schema's identifier fields, with ``compute_updates=True``.
        net_changes
            Of rows: leave out what later snapshots undo.

        Raises
        ------
        UnsupportedError
            Of rows: the parent of a snapshot with deletes has expired; or Spark's workers cannot see the files.
        SnapshotNotFoundError
            No such snapshot, branch or tag; the nearest are listed.
        OptionError
            Of rows: ``a`` is no ancestor of ``b``, or the other arguments make no sense.
        FormatError, FileMissingError
            Of rows: a file that is needed is damaged or gone. With ``spark=`` damage of data files shows when the
            DataFrame runs, as an error of Spark's own that quotes this one.
        """
        if spark is not None and not rows:
            raise OptionError("spark= is for changes of rows: give rows=True; those of files are told from metadata")
        if rows:
            return self._changed_rows(
                a, b, columns, filter, dv_encoding, spark,
                identifier_columns=identifier_columns, compute_updates=compute_updates, net_changes=net_changes,
            )  # fmt: skip
        if any(x is not None for x in (columns, filter, identifier_columns, compute_updates)) or net_changes:
            raise OptionError("columns, filter, identifier_columns, compute_updates and net_changes need rows=True")
        from iceexplore.commits import changes_between, changes_of

        if b is not None:
            return changes_between(self._resolve(a), self._resolve(b))
        state = self._state if a is None else self._resolve(a)
        return changes_of(state, dv_encoding=dv_encoding)

    def _changed_rows(
        self, a: Any, b: Any, columns: Any, where: Any, dv_encoding: Any, spark: Any, **options: Any
    ) -> pa.Table | DataFrame:
        if dv_encoding is not None:
            raise OptionError("dv_encoding belongs to changes of files: leave it out, or rows=True")
        if b is None:
            after = (self._state if a is None else self._resolve(a)).snapshot
            parent = None if after is None else after.parent_snapshot_id
            before = None if parent is None else self._state.metadata.snapshot(parent)
        else:
            from iceexplore.reading import is_expired_start

            after = self._resolve(b).snapshot
            # As in Java: what was read last may be gone, while all that came after it is there.
            begins = a is None or is_expired_start(self._state.metadata, a, after)
            before = None if begins else self._resolve(a).snapshot
        if spark is not None:
            from iceexplore import on_spark

            return on_spark.changelog(self._state, spark, before, after, columns=columns, where=where, **options)
        from iceexplore.reading import changelog

        return changelog(self._state, before, after, columns=columns, where=where, **options)
