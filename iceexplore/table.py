"""Tables: `open`, `sample` and `empty`, and the classes `Table` and `Simulation`. Each method is a line or two.

A simulation is a table, and a table makes simulations: they are one module. What commits is a package below, which is
imported with the first commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import iceexplore as ix  # whose packages are imported when they are first used
from iceexplore import graph
from iceexplore._samples import sample_path
from iceexplore.errors import OptionError, Problems, known_arguments, text_of, texts_of, version_of, whole_numbers_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    import iceexplore.commits
    from iceexplore.commits import Changes, Committer, Cost, LayoutOptions, Replay, Retained, Sandbox, Saved
    from iceexplore.inspect import Inspect
    from iceexplore.metadata import PartitionSpec, Schema, Snapshot, SortOrder, TableMetadata
    from iceexplore.planning import ScanPlan
    from iceexplore.reading import RowCount, RowPlaces
    from iceexplore.storage import ReadLog, WriteLog
    from iceexplore.widgets import Explorer

__all__ = ["CommittedTable", "Simulation", "Table", "empty", "open", "sample", "simulate"]

#: What `commits.set_ref` takes besides a ref's retention.
_NO_RETENTION = ("document", "name", "snapshot_id", "type", "timestamp_ms")
_SCHEMA_PINS = ("schema", "current-schema-id", "last-column-id")
_SPEC_PINS = (*_SCHEMA_PINS, "partition-spec", "default-spec-id", "last-partition-id")


#: Arguments of the operations that are named above, or are not the user's to give.
_OURS = ("state", "writer", "files", "delete", "deletes", "how")


def open(  # noqa: A001  (ix.open is the face; the module never needs the built-in)
    source: Any,
    *,
    catalog: Any = None,
    moved: Mapping[str, str | PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    properties: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Table:
    """Open a table. Reads one JSON file, nothing more.

    Parameters
    ----------
    source
        A table folder, a metadata file, the URI of either (``s3://``, ``gs://``, ``memory://``, … whatever fsspec or
        PyIceberg's FileIO knows), a zip, a PyIceberg ``Table``, or with ``catalog`` a table's identifier.
    catalog
        The name of a PyIceberg catalog, or a catalog object.
    moved
        Where files are now, by the prefix under which the table knows them. Found by itself where it can be.
    version
        Which metadata file: its number, name or location. By default the newest.
    allow
        Further places that may be read, besides the table's own roots: folders, files or whole buckets, such as those
        of files that ``add_files`` put into the table. An `OutsideRootsError` names what to pass.
    properties
        Options of the catalog, or of the storage. ``iceexplore.parallel-reads`` is how many requests to a far store are
        made at once, by default 24; on a local disk, how many threads read manifests.
    strict
        Raise at the first fault instead of showing the rest.

    Raises
    ------
    MetadataNotFoundError
        No table there; the message says what is.
    FormatError
        The metadata file is no table metadata.
    AccessDeniedError, StorageError, CatalogError, OutsideRootsError
        The storage or catalog refused or failed.
    """
    if properties is not None and not isinstance(properties, Mapping):
        raise OptionError(f"properties={type(properties).__name__}: give names and values, as a dictionary")
    state = graph.open_state(
        source, catalog=catalog, moved=moved, version=version, allow=allow, properties=properties, strict=strict
    )
    return Table(state)


def sample(name: str = "trips") -> Table:
    """Open a table that ships with the package, written by Spark with Iceberg's runtime.

    Raises
    ------
    OptionError
        No sample of that name; those that there are, are listed.
    """
    return Table(graph.open_state(sample_path(name)))


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
    state = ix.commits.empty_state(
        schema,
        partition_by=partition_by,
        format_version=format_version,
        location=location,
        properties=properties,
        expressions=layout.get("dialect") != "v4-java",  # Java's reader does not know them
    )
    return simulate(state, format_version, overlay=None, seed=seed, layout=layout)


def simulate(
    state: graph.TableState,
    format_version: int | None,
    *,
    overlay: str | PathLike[str] | None,
    seed: int | str | None,
    layout: Mapping[str, Any],
) -> Simulation:
    """A simulation on top of a state. See `iceexplore.Table.simulate`."""
    return Simulation(ix.commits.start_sandbox(state, format_version, layout, overlay=overlay, seed=seed))


def _metadata_frame(*args: Any, **options: Any) -> Any:
    from iceexplore.on_spark import metadata_frame

    return metadata_frame(*args, **options)


class Table:
    """An Iceberg table as of some state: immutable, and read no further than was asked.

    Made by `iceexplore.open`. In a notebook it shows its card.
    """

    def __init__(self, state: graph.TableState) -> None:
        self._state = state

    def _resolve(self, at: Any) -> graph.TableState:
        return at._state if isinstance(at, Table) else graph.resolve_state(self._state, at)

    # What it is -----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> graph.TableState:
        """The immutable state behind this face, for the packages below."""
        return self._state

    @property
    def name(self) -> str:
        """The catalog's identifier, or the last part of the location."""
        return self._state.name

    @property
    def location(self) -> str:
        """The table's location, as written in its metadata."""
        return self._state.metadata.location

    @property
    def metadata(self) -> TableMetadata:
        """The metadata file as a record; ``.raw`` is the JSON as written."""
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        """The metadata file's location."""
        return self._state.metadata_location

    @property
    def format_version(self) -> int:
        """1 to 4."""
        return self._state.metadata.format_version

    @property
    def schema(self) -> Schema:
        """The schema of the state shown."""
        return self._state.schema

    @property
    def spec(self) -> PartitionSpec | None:
        """The default partition spec."""
        return self._state.metadata.spec()

    @property
    def sort_order(self) -> SortOrder | None:
        """The default sort order."""
        m = self._state.metadata
        return next((o for o in m.sort_orders if o.order_id == m.default_sort_order_id), None)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self._state.metadata.properties

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot shown; None for a table without one."""
        return self._state.snapshot

    @property
    def snapshots(self) -> graph.Records[Snapshot]:
        """Every snapshot in the metadata, oldest first."""
        return graph.snapshot_records(self._state)

    @property
    def refs(self) -> graph.RefRecords:
        """Branches and tags by name."""
        return graph.ref_records(self._state)

    @property
    def problems(self) -> Problems:
        """Every fault met so far; more come to light as more is read."""
        return self._state.problems

    @property
    def reads(self) -> ReadLog:
        """Every read of the storage, with bytes and time."""
        return self._state.storage.reads

    @property
    def moved(self) -> Mapping[str, str]:
        """Where files are now, by the prefix under which the table knows them."""
        return self._state.storage.moved

    # What it is made of ---------------------------------------------------------------------------------------------

    @property
    def inspect(self) -> Inspect:
        """The metadata tables: ``t.inspect.files()`` and its like; ``t.inspect.files(spark=spark)`` on Spark."""
        from iceexplore.inspect import Inspect

        return Inspect(self._state, on_spark=_metadata_frame)

    @overload
    def tree(
        self,
        *,
        snapshots: Literal["current", "all"] | int | Iterable[int] = ...,
        depth: Literal["snapshots", "manifests", "files"] = ...,
        labels: Literal["short", "full", "counts"] = ...,
        max_nodes: int = ...,
        style: Literal["tree"] = ...,
    ) -> graph.Tree: ...

    @overload
    def tree(
        self,
        *,
        snapshots: Literal["current", "all"] | int | Iterable[int] = ...,
        style: Literal["seed"],
        names: Mapping[str, str] | None = ...,
    ) -> graph.SeedTree: ...

    def tree(
        self,
        *,
        snapshots: Literal["current", "all"] | int | Iterable[int] = "current",
        depth: Literal["snapshots", "manifests", "files"] = "manifests",
        labels: Literal["short", "full", "counts"] = "short",
        max_nodes: int = 150,
        style: Literal["tree", "seed"] = "tree",
        names: Mapping[str, str] | None = None,
    ) -> graph.Tree | graph.SeedTree:
        """Metadata files, snapshots and refs, manifest lists, manifests, files. See `iceexplore.graph.build_tree`.

        With ``style="seed"`` as the V4 proposal's figures are drawn (`iceexplore.graph.build_seed_tree`): manifests
        are tables, each layer on one level; ``names`` are short names by location.
        """
        if style == "seed":
            return graph.build_seed_tree(self._state, snapshots=snapshots, names=names)
        if style != "tree":
            raise OptionError(f"style={style!r}: choose 'tree' or 'seed'")
        return graph.build_tree(self._state, snapshots=snapshots, depth=depth, labels=labels, max_nodes=max_nodes)

    def explore(self) -> Explorer:
        """The interactive explorer: tree and details side by side."""
        from iceexplore.widgets import explore

        return explore(self)

    # Travel ---------------------------------------------------------------------------------------------------------

    def at(
        self,
        *,
        snapshot: int | str | None = None,
        timestamp: object = None,
        ref: str | None = None,
        version: int | str | None = None,
    ) -> Table:
        """The table as of then. Exactly one of the arguments.

        Parameters
        ----------
        snapshot
            A snapshot id.
        timestamp
            A datetime, date, ISO text or milliseconds since the epoch; a naive time is UTC. By the snapshot-log.
        ref
            A branch or tag.
        version
            The number of a metadata file.

        Raises
        ------
        SnapshotNotFoundError
            There is none; the nearest are listed.
        OptionError
            None of the arguments, or more than one.
        """
        return Table(graph.travel(self._state, snapshot=snapshot, timestamp=timestamp, ref=ref, version=version))

    def refresh(self) -> Table:
        """The newest state of the table, as a new Table; this one stays what it is.

        Raises
        ------
        TableChangedError
            Another table stands there now.
        """
        return Table(graph.refreshed(self._state))

    def history(self) -> pd.DataFrame:
        """What became current when: a row per change of the current snapshot, with its operation, refs and changes."""
        return graph.history(self._state)

    def diff(self, a: Any, b: Any = None) -> graph.Diff:
        """What changed from ``a`` to ``b``: files, rows, deletes, manifests, schema, spec, properties.

        Each is a snapshot id, a branch or tag, or a Table (also of another table). Without ``b``, from ``a`` to here.
        """
        before = self._resolve(a)
        return graph.diff(before, self._state if b is None else self._resolve(b))

    # Rows -------------------------------------------------------------------------------------------------------------

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

    # On Spark ---------------------------------------------------------------------------------------------------------

    def scan(
        self,
        spark: Any,
        filter: Any = None,  # noqa: A002
        columns: Any = None,
        *,
        snapshot: Any = None,
        partition: Any = None,
        strict: bool = False,
        engine: Literal["auto", "spark", "iceberg"] = "auto",
        plan: ScanPlan | None = None,
    ) -> DataFrame:
        """The rows as a Spark DataFrame, every delete applied, of any state of any table: time-travelled, simulated,
        moved, from a zip, damaged. The files are those of `plan`, and plain Spark reads them; it needs nothing of
        Iceberg's.

        The DataFrame stays right whatever the session's settings become. Columns that are not selected are not read,
        and filters reach the files, also those that come after the scan. What plain Spark cannot read, or not as
        Iceberg means it (Avro files; ORC files with dates, timestamps, rows deleted by position, or rows whose place is
        asked for; INT96, names that differ in case alone, very many deletes), Python workers do: there only ``filter``
        and ``columns`` spare reading, and iceexplore must be installed for the workers.

        Of a zip or a simulation the files are in a temporary folder, which stays until Python ends, as nothing tells
        when the last DataFrame made of this one is gone; a simulation's ``close`` removes it at once.

        Types are Iceberg's as its Spark runtime shows them: ``uuid`` as string, ``fixed`` as binary, ``timestamp`` as
        ``timestamp_ntz``. Those that it refuses come as they are stored: ``time`` as bigint (microseconds),
        ``timestamp_ns`` and ``timestamptz_ns`` as bigint (nanoseconds since 1970), geometry and geography as binary
        (WKB).

        Parameters
        ----------
        spark
            A session of Spark 3.5 or later, Connect too (`iceexplore.spark` makes one).
        filter
            As for `plan`.
        columns
            As for `to_arrow`, metadata columns too: ``_file``, ``_pos``, ``_row_id``,
            ``_last_updated_sequence_number``, ``_spec_id``, ``_partition``, ``_deleted``. With ``_deleted`` the deleted
            rows come too, marked.
        snapshot
            A snapshot, branch, tag or Table; by default what is shown.
        partition
            A dictionary by partition field: only rows of files of these partitions.
        strict
            Raise where a file is missing or damaged. Otherwise its rows are left out, with a problem in ``.problems``
            and a warning that names the files. Damage beyond a file's footer shows when the DataFrame runs, in Spark's
            words: ``t.verify(spark, level="data")`` names the file.
        engine
            ``"spark"``: as above. ``"iceberg"``: let Iceberg's runtime, if the session has it, read the table's own
            metadata file, version 1 to 3, as it is. ``"auto"``: plain Spark, but Iceberg's runtime where Python workers
            would have to read and it can.
        plan
            What `plan` made of this metadata file: snapshot and filter are its own then. One of appends
            (``from_snapshot=``) makes an incremental read.

        Raises
        ------
        OptionError
            The filter, a column or an option makes no sense; the nearest names are listed.
        UnsupportedError
            A file is made up by a simulation; Spark is too old; a simulation or an extracted zip is in a temporary
            folder that workers on other machines do not see; or ``engine="iceberg"`` cannot read this state.
        FormatError, FileMissingError
            With ``strict``: a file is missing or damaged.

        Examples
        --------
        >>> t.scan(spark, "ts >= '2024-01-01'", columns=["id", "_file"]).groupBy("_file").count().show()
        """
        from iceexplore.on_spark import scan

        state = self._state if snapshot is None else self._resolve(snapshot)
        return scan(state, spark, filter, columns, partition=partition, strict=strict, engine=engine, plan=plan)

    @overload
    def verify(self, spark: None = ..., *, level: Literal["footers", "data"] = ...) -> pd.DataFrame: ...

    @overload
    def verify(self, spark: Any, *, level: Literal["footers", "data"] = ...) -> DataFrame: ...

    def verify(self, spark: Any = None, *, level: Literal["footers", "data"] = "footers") -> pd.DataFrame | DataFrame:
        """Open every live data and delete file, and say where metadata is not true of it; nothing found: no rows.

        Parameters
        ----------
        spark
            A Spark session: its workers open the files, when the data frame that comes back is run (and again each
            time). Without one it is done here, in threads.
        level
            ``"footers"``: whether each file is there, can be opened, has the size, format, row count, row groups and
            field ids that the table says; delete files and deletion vectors are read: CRC, counts, positions within
            their data file, the data files that they name, the columns of equality deletes. ``"data"``: besides, every
            row is read, with all of its columns: whether pages fit their checksums, bounds and counts of columns hold,
            each row is in its file's partition, rows are in the sort order that the file claims, and in version 3 and
            later no two live rows have one id, nor any row an id or a time of change that the table has not given out.

        Returns
        -------
        pandas or Spark DataFrame
            A row per finding: ``code`` and ``severity`` (`iceexplore.errors.PROBLEM_KINDS`), ``location``, ``content``
            (0 data, 1 position deletes and vectors, 2 equality deletes, null: a manifest), ``manifest``, ``entry`` (its
            ordinal there), ``snapshot_id`` (of the entry), ``field``, ``found``, ``expected``, ``text``.

        Raises
        ------
        OptionError
            No Spark session, or an unknown level.
        UnsupportedError
            Spark's workers cannot see the files, or the storage cannot go to them.

        Notes
        -----
        Only the state shown is verified: snapshots that are older by ``t.at(...)``. Not compared are bounds of columns
        inside lists and maps, of variants and geometries; the offsets of row groups in ORC and Avro; whether a position
        delete's data file was live once; encrypted files; of the ids that a file's rows have in more than 1,000
        stretches, any but the longest 1,000 with those of other files. Delete files that apply to nothing are no
        finding while the data file that they name is there.
        """
        from iceexplore.on_spark import verify, verify_here

        if spark is None:
            return graph.to_frame(verify_here(self._state, level=level))
        return verify(self._state, spark, level=level)

    # Commits ----------------------------------------------------------------------------------------------------------

    def simulate(
        self,
        format_version: int | None = None,
        *,
        overlay: str | Path | None = None,
        seed: int | str | None = None,
        **layout: Any,
    ) -> Simulation:
        """A simulation: a Table with commits, whose files go to an overlay. This table is never written.

        Of a time-travelled table the first commit makes the snapshot shown current.

        Parameters
        ----------
        format_version
            By default the table's own. A higher one upgrades with the first commit.
        overlay
            An empty local folder for the simulation's files; by default a temporary one that goes with it.
        seed
            Makes ids, names, made-up files and times repeatable.
        layout
            Options of the layout (`iceexplore.commits.LayoutOptions`): ``dialect``, ``dv_encoding``,
            ``flush_data_files``, ...

        Raises
        ------
        OptionError
            A lower format version, an unknown option, or a folder that cannot be used.
        """
        return simulate(self._state, format_version, overlay=overlay, seed=seed, layout=layout)

    def replay(self, format_version: int = 4, **how: Any) -> Replay[Simulation]:
        """The table's own history, committed again in another version and layout: before and after, per snapshot.

        ``how`` has ``last``, ``seed``, ``overlay`` and options of the layout. See `iceexplore.commits.replay`.
        """
        return ix.commits.replay(self._state, format_version, face=Simulation, **how)

    def retained(self, window: int, *, data: bool = False) -> Retained:
        """Metadata that the newest snapshots keep, and what expiring others frees: `iceexplore.commits.retained`."""
        from iceexplore.commits import retained

        return retained(self._state, window, data=data)

    # Sharing --------------------------------------------------------------------------------------------------------

    def bundle(
        self,
        path: str | Path,
        *,
        redact: bool | str | Iterable[str] = ("credentials",),
        deletes: bool = False,
        overwrite: bool = False,
    ) -> graph.Bundle:
        """Write the metadata into a zip to mail; `iceexplore.open` opens it. See `iceexplore.graph.write_bundle`."""
        return graph.write_bundle(self._state, path, redact=redact, deletes=deletes, overwrite=overwrite)

    def close(self) -> None:
        """Remove what was extracted for this table (a zip's temporary folder)."""
        self._state.storage.close()

    # How it looks ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return graph.card_text(graph.table_card(self._state))

    def _repr_html_(self) -> str:
        return graph.card_html(graph.table_card(self._state))


class CommittedTable(Table):
    """A table of its present state, which commits move on; what `table` and `at` return stays what it is."""

    def __init__(self, sandbox: Committer) -> None:
        super().__init__(sandbox.state)
        self._sandbox: Committer = sandbox

    @property
    def table(self) -> Table:
        """The present state as a Table that later commits do not move."""
        return Table(self._state)

    @property
    def options(self) -> LayoutOptions:
        """How new metadata is laid out."""
        return self._sandbox.options

    def relayout(self, **layout: Any) -> LayoutOptions:
        """Change layout options from the next commit on; those not named stay. No commit, and no rewriting.

        Raises
        ------
        OptionError
            An unknown option, or a value that makes no sense.
        """
        self._sandbox.options = self.options.but(**layout)
        return self.options

    @property
    def writes(self) -> WriteLog:
        """Every file written, by this writer and its forks."""
        return self._sandbox.storage.writes

    def refresh(self) -> Table:
        """Go on from the newest commit of any writer; returns this table, moved on."""
        self._state = self._sandbox.refresh()
        return self

    def cost(self) -> Cost:
        """What the commits so far wrote and read, attempt by attempt, and what a planner now reads."""
        return ix.commits.cost_of(self._sandbox)

    def save(
        self,
        path: str | PathLike[str],
        *,
        data: Literal["refer", "copy", "none"] = "copy",
        location: str | None = None,
    ) -> Saved:
        """Write the table as it is now into a new folder, whole or not at all; `iceexplore.open` opens it anywhere.

        See `iceexplore.commits.save`: ``data`` says what becomes of the table's own data files (by default they are
        copied, so that rows can be read wherever the folder goes; ``refer`` leaves them where they are, and to read
        their rows needs ``iceexplore.open(path, allow=...)``), ``location`` where the written table says that it is
        (by default ``path``, so that engines on this machine can read it).
        """
        return ix.commits.save(self._state, path, data=data, location=location)

    # Commits of files that keep the rows ------------------------------------------------------------------------------

    def rewrite_manifests(self, manifests: Any = None, *, ref: str = "main") -> Snapshot | None:
        """Rewrite manifests without changing the data: those named, or what the layout thinks worth it.

        Returns None, without a commit, if the table has no manifests.
        """
        return self._files_if_any(lambda w: ix.commits.rewrite_manifests(w.base, w, manifests), ref)

    def rewrite_position_deletes(self, paths: Any = None, *, ref: str = "main") -> Snapshot | None:
        """Merge position delete files (version 2), or turn them into deletion vectors (from version 3 on).

        Positions in data files that are gone are dropped. Returns None, without a commit, if there is nothing to
        merge, drop or turn.

        Raises
        ------
        RuleError
            ``deletes-need-v2``: the table has version 1.
        """
        return self._files_if_any(lambda w: ix.commits.rewrite_position_deletes(w.base, w, paths), ref)

    def cherry_pick(self, snapshot: Any) -> Snapshot:
        """Apply the changes of a snapshot (id, ref) that is not in ``main``; of the current one's child: go there.

        Raises
        ------
        RuleError
            ``cherry-pick``: it cannot be picked.
        """
        found = self._resolve(snapshot).snapshot
        assert found is not None
        picked = found.snapshot_id
        if ix.commits.cherry_pick_summary(self._state.opened.document, snapshot_id=picked) is not None:
            return self._files(lambda w: ix.commits.cherry_pick(w.base, w, picked), "main")
        self._document(
            lambda d, ms: ix.commits.set_current_snapshot(d, snapshot_id=picked, timestamp_ms=ms), "cherry_pick"
        )
        return found

    # Commits of metadata alone ----------------------------------------------------------------------------------------

    def expire_snapshots(
        self, ids: Iterable[int] | None = None, *, older_than: object = None, retain_last: int | None = None
    ) -> ix.commits.Expired:
        """Expire snapshots; no file is removed (`retained` shows what could be).

        The default age is five days, so that ``retain_last`` alone expires nothing of a young table: it is how many
        stay at least. ``older_than=datetime.now()`` lets all others go.

        Parameters
        ----------
        ids
            Snapshots that go whatever their age.
        older_than
            A datetime, ISO text or milliseconds; by default the table's ``history.expire.max-snapshot-age-ms``.
        retain_last
            So many snapshots of each branch stay, however old.

        Returns
        -------
        Expired
            The ids that went: a tuple that prints which snapshots stayed and by which rule (``.kept``).

        Raises
        ------
        RuleError
            ``expire-referenced``, ``expire-gc``.
        """
        wanted = None if ids is None else whole_numbers_of("ids", ids)
        before = None if older_than is None else graph.to_ms(older_than)
        before = 0 if before is None and wanted is not None else before
        expired = ix.commits.Expired()

        def expire(document: Mapping[str, Any], ms: int) -> dict[str, Any]:
            nonlocal expired  # of the last attempt, which is the one that was committed
            document, expired = ix.commits.expire_snapshots(
                document, ids=wanted, older_than_ms=before, retain_last=retain_last, now_ms=ms
            )
            return document

        self._document(expire, "expire_snapshots")
        return expired

    def rollback(self, snapshot: Any = None, *, timestamp: object = None) -> Snapshot | None:
        """Make an ancestor current again: this snapshot (id, ref), or the newest older than a time.

        ``rollback-ancestor``.
        """
        if (snapshot is None) == (timestamp is None):
            raise OptionError("rollback takes one of snapshot and timestamp: where to go back to")
        before = None if timestamp is None else graph.to_ms(timestamp)
        to = None if snapshot is None else self._snapshot_id(snapshot)
        return self._document(
            lambda d, ms: ix.commits.rollback(d, snapshot_id=to, older_than_ms=before, timestamp_ms=ms), "rollback"
        )

    def branch(self, name: str, at: Any = None, **retention: int) -> Snapshot | None:
        """Make or move a branch to a snapshot (id, ref; by default the present one).

        Parameters
        ----------
        retention
            ``min_snapshots_to_keep``, ``max_snapshot_age_ms``, ``max_ref_age_ms``.
        """
        return self._set_ref(name, "branch", at, retention)

    def tag(self, name: str, at: Any = None, *, max_ref_age_ms: int | None = None) -> Snapshot | None:
        """Make or move a tag to a snapshot (id, ref; by default the present one)."""
        return self._set_ref(name, "tag", at, {} if max_ref_age_ms is None else {"max_ref_age_ms": max_ref_age_ms})

    def remove_ref(self, name: str) -> Snapshot | None:
        """Remove a branch or tag."""
        return self._document(lambda d, ms: ix.commits.remove_ref(d, name=name), "remove_ref")

    def fast_forward(self, name: str, to: str) -> Snapshot | None:
        """Move a branch to where another ref is, of which it must be an ancestor. ``fast-forward-ancestor``."""
        return self._document(
            lambda d, ms: ix.commits.fast_forward(d, name=name, to=to, timestamp_ms=ms), "fast_forward"
        )

    def set_properties(
        self, properties: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()
    ) -> Snapshot | None:
        """Set and remove table properties. ``reserved-property``."""
        gone = texts_of("remove", remove, "['owner']")
        return self._document(lambda d, ms: ix.commits.set_properties(d, set=properties, remove=gone), "set_properties")

    def evolve_schema(self, **changes: Any) -> Snapshot | None:
        """Evolve the schema: ``add``, ``drop``, ``rename``, ``update``, ``move``, ``require``, ``doc``, defaults.

        See `iceexplore.commits.evolve_schema`. What the spec forbids is refused with its rule's name.
        """
        known_arguments("evolve_schema", changes, ix.commits.evolve_schema, ("document",))
        return self._document(lambda d, ms: ix.commits.evolve_schema(d, **changes), "evolve_schema", _SCHEMA_PINS)

    def evolve_spec(self, **changes: Any) -> Snapshot | None:
        """Evolve the partition spec: ``add=["day(ts)"]``, ``remove``, ``rename`` (`iceexplore.commits.evolve_spec`)."""
        known_arguments("evolve_spec", changes, ix.commits.evolve_spec, ("document",))
        return self._document(lambda d, ms: ix.commits.evolve_spec(d, **changes), "evolve_spec", _SPEC_PINS)

    def set_sort_order(self, *fields: str) -> Snapshot | None:
        """Another default sort order: ``"ts desc"``, ``"bucket(16, id)"``; without fields unsorted."""
        return self._document(lambda d, ms: ix.commits.set_sort_order(d, fields=fields), "set_sort_order", _SCHEMA_PINS)

    def upgrade(self, format_version: int, **layout: Any) -> Snapshot | None:
        """Upgrade the table, in a metadata file of its own; from then on commits have the new layout.

        Without this call, the first commit of a simulation with a higher ``format_version`` upgrades in its own
        metadata file.

        Raises
        ------
        RuleError
            ``format-version-rises``: the table has a higher one.
        OptionError
            It is none of 1 to 4, or an option makes no sense.
        """
        format_version = version_of(format_version)
        old = self._sandbox.options
        if format_version < self.format_version:
            ix.commits.upgrade(self._state.opened.document, format_version)
        self._sandbox.options = ix.commits.options_for(self._state, format_version, layout)
        try:
            return self._document(self._upgraded(), "upgrade")
        except BaseException:
            self._sandbox.options = old
            raise

    # ------------------------------------------------------------------------------------------------------------------

    def _upgraded(self) -> ix.commits.DocumentChange | None:
        """What an upgrade changes besides."""
        return None

    def _files(self, make: ix.commits.MakeChange, ref: str, **how: Any) -> Snapshot:
        made = self._sandbox.commit(make, ref=text_of("ref", ref, "the name of a branch"), **how)
        self._state = self._sandbox.state
        assert made is not None
        return made

    def _files_if_any(self, make: ix.commits.MakeChange, ref: str) -> Snapshot | None:
        """Commit a change of files, or return None if there is nothing to change."""
        try:
            return self._files(make, ref)
        except ix.commits.NothingToDo:
            self._state = self._sandbox.state
            return None

    def _document(
        self, change: ix.commits.DocumentChange | None, what: str, pins: tuple[str, ...] = ()
    ) -> Snapshot | None:
        found = self._sandbox.commit(document_change=change, what=what, pins=pins)
        self._state = self._sandbox.state
        return found

    def _snapshot_id(self, of: Any) -> int:
        if isinstance(of, int):
            return of  # perhaps of another writer, and not known here yet
        found = self._resolve(of).snapshot
        if found is None:
            raise OptionError(f"{of!r} has no snapshot")
        return found.snapshot_id

    def _set_ref(
        self, name: str, kind: Literal["branch", "tag"], at: Any, retention: Mapping[str, int]
    ) -> Snapshot | None:
        known_arguments(kind, retention, ix.commits.set_ref, _NO_RETENTION)
        snapshot = self._state.snapshot if at is None else self._resolve(at).snapshot
        if snapshot is None:
            raise OptionError(f"{kind} {name!r}: the table has no snapshot yet, and a ref names one")
        made = snapshot.snapshot_id
        self._document(
            lambda d, ms: ix.commits.set_ref(
                d, name=name, snapshot_id=made, type=kind, timestamp_ms=ms, **retention
            ),
            kind,
        )
        return snapshot


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
        known_arguments("append", how, ix.commits.new_files, _OURS)
        return self._files(lambda w: ix.commits.append(w.base, w, files, **how), ref)

    def delete_files(self, paths: Any, *, ref: str = "main") -> Snapshot:
        """Remove data files by their locations, their deletion vectors with them. ``files-exist``: one is not live."""
        return self._files(lambda w: ix.commits.delete_files(w.base, w, paths), ref)

    def overwrite(self, files: Any = None, *, delete: Any = None, ref: str = "main", **how: Any) -> Snapshot:
        """Replace data files (``delete=`` locations, or ``where=`` and ``partition=``) by others in one commit.

        Parameters
        ----------
        how
            ``isolation``, and what goes with ``files`` as in `append`.
        """
        known_arguments("overwrite", how, ix.commits.overwrite, _OURS, ix.commits.new_files)
        return self._files(lambda w: ix.commits.overwrite(w.base, w, files, delete=delete, **how), ref)

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
        known_arguments("row_delta", how, ix.commits.row_delta, _OURS, ix.commits.new_files)
        return self._files(lambda w: ix.commits.row_delta(w.base, w, files, deletes=deletes, **how), ref)

    def delete_where(
        self, where: Any = None, *, partition: Mapping[str, Any] | None = None, ref: str = "main"
    ) -> Snapshot:
        """Remove the data files all of whose rows match, by metadata alone. ``whole-files``: some match in part."""
        return self._files(lambda w: ix.commits.delete_where(w.base, w, where, partition=partition), ref)

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
        known_arguments("compact", how, ix.commits.compact, ("state", "writer", "paths", "rewrite"))
        return self._files_if_any(lambda w: ix.commits.compact(w.base, w, paths, **how), ref)
