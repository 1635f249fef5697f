"""The public functions `open`, `sample` and `empty`, and the classes `Table` and `Simulation`.

Each method delegates to a package in a line or two. A simulation is a table and a table creates simulations, so both
are in one module. The package `commits` is imported with the first commit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import iceexplore as ix  # its packages are imported on first use
from iceexplore import graph
from iceexplore._catalog import Catalog, catalog_arguments
from iceexplore._samples import sample_path
from iceexplore.errors import (
    IceexploreError,
    OptionError,
    Problems,
    renamed_arguments,
    renamed_method,
    seconds_of,
    text_of,
    version_of,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    import iceexplore.commits
    from iceexplore.commits import (
        Changes,
        Committer,
        Cost,
        FilesLike,
        LayoutOptions,
        LocationsLike,
        Replay,
        Retained,
        RuleReport,
        Sandbox,
        Saved,
    )
    from iceexplore.doctor import CatalogReport, Finding, Maintenance, Report, TableHealth
    from iceexplore.expressions import FilterLike
    from iceexplore.graph import SnapshotLike
    from iceexplore.inspect import Inspect
    from iceexplore.metadata import PartitionSpec, Schema, Snapshot, SortOrder, TableMetadata
    from iceexplore.planning import ScanPlan
    from iceexplore.reading import RowCount, RowPlaces
    from iceexplore.storage import CatalogLike, ReadLog, SourceLike, WriteLog
    from iceexplore.view import View
    from iceexplore.widgets import Explorer
    from iceexplore.writing import SchemaLike

__all__ = [
    "CommittedTable",
    "Simulation",
    "Table",
    "check",
    "check_catalog",
    "empty",
    "open",
    "open_catalog",
    "sample",
    "simulate",
]


def open(  # noqa: A001  (ix.open is the face; the module never needs the built-in)
    source: SourceLike,
    *,
    catalog: CatalogLike | Catalog[Table, View] | None = None,
    moved: Mapping[str, str | PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    properties: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Table:
    """Open a table. Only its metadata file is read.

    Parameters
    ----------
    source
        A table folder, a metadata file, a URI of either (``s3://``, ``gs://``, ``memory://``, or any other that fsspec
        or PyIceberg's FileIO supports), a zip, a PyIceberg ``Table``, or, with ``catalog``, a table identifier.
    catalog
        The name of a PyIceberg catalog, a catalog object, or the result of `open_catalog`.
    moved
        New locations of moved files, by their location prefix in the metadata. Detected where possible.
    version
        A metadata file, by number, name or location. By default the newest.
    allow
        Further places that may be read, besides the table's own folders: folders, files or whole buckets, for example
        those of files registered with ``add_files``. The message of an `OutsideRootsError` says what to pass.
    properties
        Options of the catalog or the storage. ``iceexplore.parallel-reads`` sets how many requests to a remote store
        run at the same time (24 by default), and on a local disk how many threads read manifests.
    strict
        Raise an error at the first problem instead of collecting it in ``.problems``.

    Raises
    ------
    MetadataNotFoundError
        There is no table; the message lists what was found instead.
    FormatError
        The metadata file does not contain valid table metadata.
    UnsupportedError
        It is the metadata of a view: `open_view` opens that.
    AccessDeniedError, StorageError, CatalogError, OutsideRootsError
        The storage or catalog refused access or failed.
    """
    if isinstance(source, Catalog):
        raise OptionError(f"this is a catalog, not a table: catalog['db.table'] opens one. It holds:\n{source!r}")
    if properties is not None and not isinstance(properties, Mapping):
        raise OptionError(f"properties={type(properties).__name__}: give names and values, as a dictionary")
    source, catalog, allow, properties = catalog_arguments(source, catalog, allow, properties)
    state = graph.open_state(
        source, catalog=catalog, moved=moved, version=version, allow=allow, properties=properties, strict=strict
    )
    return Table(state)


def check(
    source: SourceLike,
    level: Literal["metadata", "files", "rows"] = "metadata",
    *,
    catalog: CatalogLike | Catalog[Table, View] | None = None,
    moved: Mapping[str, str | PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    properties: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    snapshots: object = "current",
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    baseline: Report | Iterable[Finding] | None = None,
) -> Report:
    """Open a table and find what is broken in it; a table that cannot be opened is a finding, too.

    Parameters
    ----------
    source, catalog, moved, version, allow, properties
        As for `open`.
    level, spark, snapshots, only, skip, baseline
        As for `iceexplore.Table.check`.

    Returns
    -------
    Report
        The findings, worst first. If the table cannot be opened, the only finding says why, which metadata files
        exist, and what to do; ``report.opened`` is then False, and ``report.exit_code`` 2.

    Raises
    ------
    OptionError, SnapshotNotFoundError, MissingDependencyError, TemporaryFolderError
        An argument is invalid, the table lacks the ``version``, a package is missing, or the disk is full.
    """
    from iceexplore.doctor import unopened

    start = time.perf_counter()
    source, catalog, allow, properties = catalog_arguments(source, catalog, allow, properties)
    options: dict[str, Any] = {"catalog": catalog, "moved": moved, "allow": allow, "properties": properties}
    try:
        table = open(source, version=version, **options)
    except IceexploreError as error:
        seconds = time.perf_counter() - start
        return unopened(error, source, level=level, only=only, skip=skip, seconds=seconds, **options)
    return table.check(level, spark=spark, snapshots=snapshots, only=only, skip=skip, baseline=baseline)


def open_catalog(
    source: CatalogLike | str | PathLike[str],
    *,
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    properties: Mapping[str, str] | None = None,
    time_limit: float | None = 10.0,
) -> Catalog[Table, View]:
    """Open a catalog or warehouse folder: an object that shows its namespaces, tables and views, and opens tables.

    Nothing is listed before the object is shown or its contents are accessed.

    Parameters
    ----------
    source
        A PyIceberg catalog, the name of one, or a folder, which is searched for tables. A string is taken as a folder
        if it contains a slash or names an existing folder.
    allow, properties
        As for `open`: for the catalog or folder, and for each table opened from it.
    time_limit
        Seconds for the first listing; None for no limit. Loading a catalog by its name is not limited.

    Raises
    ------
    CatalogError, MetadataNotFoundError, AccessDeniedError, StorageError, MissingDependencyError
        The catalog or folder does not exist or cannot be reached.
    OptionError
        An argument is invalid.

    Examples
    --------
    >>> catalog = ix.open_catalog("prod")
    >>> catalog  # namespaces, tables and views
    >>> catalog.tables  # as pandas
    >>> catalog["db.trips"].tree()
    """
    from iceexplore.storage import list_tables

    limit = None if time_limit is None else seconds_of("time_limit", time_limit)
    how: dict[str, Any] = {"allow": allow, "properties": properties}
    return Catalog(list_tables(source, **how), open, ix.open_view, check_catalog, how, limit)


def check_catalog(
    catalog: CatalogLike | Catalog[Table, View] | str | PathLike[str],
    level: Literal["metadata", "files", "rows"] = "metadata",
    *,
    snapshots: Literal["current", "all"] = "current",
    only: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    properties: Mapping[str, str] | None = None,
    time_limit: float | None = None,
    listing_limit: float | None = None,
    resume: str | PathLike[str] | None = None,
    workers: int = 8,
    progress: bool = True,
) -> CatalogReport:
    """Check every table of a catalog or warehouse folder, several at the same time.

    Parameters
    ----------
    catalog
        A PyIceberg catalog, the name of one, a folder (which is searched for tables), or the result of `open_catalog`
        (whose listing is used and continued).
    level, snapshots, only, skip
        As for `iceexplore.Table.check`, for each table.
    allow, properties
        As for `open`, for each table.
    time_limit
        Seconds per table. A table that takes longer becomes a row with an error. (A catalog in memory, such as
        PyIceberg's ``InMemoryCatalog``, belongs to this thread: its tables are checked one by one, without this limit.)
    listing_limit
        Seconds for listing the tables. After that, the tables listed so far are checked, and ``.complete`` is False.
    resume
        A JSON file with the reports so far: tables that have a report in it are not checked again. It is written during
        the check, so that an interrupted check can continue.
    workers
        The number of tables that are checked at the same time.
    progress
        False: no progress bar.

    Returns
    -------
    CatalogReport
        A row per table, the worst first; ``.reports["db.trips"]`` is a table's report. A table that cannot be opened
        or whose check fails becomes a row with an error.

    Raises
    ------
    CatalogError, MetadataNotFoundError, AccessDeniedError, StorageError
        The catalog or folder does not exist, or cannot be listed.
    OptionError
        An argument is invalid, or the file to resume from was written with different arguments.

    Examples
    --------
    >>> fleet = ix.check_catalog("prod", time_limit=60, resume="prod.json")
    >>> fleet.to_pandas()
    """
    from iceexplore.doctor import check_options, check_tables
    from iceexplore.storage import list_tables

    wanted, unwanted = check_options(level, only, skip)
    if snapshots not in ("current", "all"):
        raise OptionError(f"snapshots={snapshots!r}: choose 'current' or 'all'")
    how: dict[str, Any] = {"snapshots": snapshots, "only": wanted, "skip": unwanted}
    codes = {"only": None if wanted is None else sorted(wanted), "skip": sorted(unwanted)}
    return check_tables(
        list_tables(catalog, properties=properties, allow=allow),
        lambda table: check(table.source, level, catalog=table.catalog, allow=allow, properties=properties, **how),
        options={"level": level, "snapshots": snapshots, **codes},
        time_limit=time_limit,
        listing_limit=listing_limit,
        resume=resume,
        workers=workers,
        show_progress=progress,
    )


def sample(name: str = "trips") -> Table:
    """Open a table that ships with the package, written by a real engine: ``trips`` or ``delta``.

    ``trips`` was written by Spark with Iceberg's runtime; ``delta``, by Delta Lake, is a Delta table in a V4 tree.

    Raises
    ------
    OptionError
        There is no such sample; the available ones are listed.
    """
    return Table(graph.open_state(sample_path(name)))


def empty(
    schema: SchemaLike,
    *,
    partition_by: str | Iterable[str] | None = (),
    format_version: int = 4,
    location: str = "/warehouse/db/events",
    properties: Mapping[str, str] | None = None,
    virtual_columns: str | Iterable[str | tuple[str, str]] | None = (),
    seed: int | str | None = None,
    **layout: Any,
) -> Simulation:
    """Create a simulation of a new table without a snapshot.

    Parameters
    ----------
    schema
        Types by column name (``{"id": "long", "ts": "timestamp", "tags": "list<string>"}``), or a schema: of a table
        (``t.schema``), of PyIceberg, of PyArrow, of a data frame or an Arrow table. Columns get new field ids; required
        fields, identifier fields, docs and defaults are kept.
    partition_by
        Partition fields: ``"day(ts)"``, ``"bucket(16, id)"``, ``"region"``.
    location
        The table's location in its metadata; nothing is written there.
    virtual_columns
        Functions of columns for which files store statistics, so that filters on them can prune (V4):
        ``"lower(name)"``, ``("char_length(name)", "length")`` (`iceexplore.commits.evolve_virtual_columns`).
    seed, layout
        As in `iceexplore.Table.simulate`.

    Raises
    ------
    OptionError, RuleError
        The schema, the spec or an option is invalid.
    """
    state = ix.commits.empty_state(
        schema,
        partition_by=partition_by,
        format_version=format_version,
        location=location,
        properties=properties,
        virtual_columns=virtual_columns,
        expressions=layout.get("dialect", "v4-proposal") == "v4-proposal",  # only this dialect has virtual columns
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
    """Create a simulation that starts from a state. See `iceexplore.Table.simulate`."""
    return Simulation(ix.commits.start_sandbox(state, format_version, layout, overlay=overlay, seed=seed))


def _metadata_frame(*args: Any, **options: Any) -> DataFrame:
    from iceexplore.on_spark import metadata_frame

    return metadata_frame(*args, **options)


class Table:
    """An Iceberg table in one state. It is immutable, and reads metadata only when a method needs it.

    Use `iceexplore.open` to get one. In a notebook it is displayed as a card.
    """

    def __init__(self, state: graph.TableState) -> None:
        self._state = state

    def _resolve(self, at: SnapshotLike | Table | None, call: str) -> graph.TableState:
        """Return the state that a Snapshot, an id, a ref or a Table names; errors name the call that asked for it."""
        if isinstance(at, Table):
            return at._state
        if at is None:
            raise OptionError(f"{call}: give a Snapshot, its id, a branch or tag, or a Table, not None")
        try:
            return graph.resolve_state(self._state, at)
        except OptionError as error:
            raise OptionError(f"{call}: {error}") from None

    # Metadata --------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> graph.TableState:
        """The immutable state of this table, as the functions of iceexplore's packages take it."""
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
        """The format version, 1 to 4."""
        return self._state.metadata.format_version

    @property
    def schema(self) -> Schema:
        """The schema of the snapshot that is shown."""
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
        """The snapshot that is shown; None for a table without snapshots."""
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
        """The problems found so far; reading more of the table may add to them."""
        return self._state.problems

    @property
    def reads(self) -> ReadLog:
        """A log of every read from storage, with bytes and time."""
        return self._state.storage.reads

    @property
    def moved(self) -> Mapping[str, str]:
        """New locations of moved files, by their location prefix in the metadata."""
        return self._state.storage.moved

    # Inspection ------------------------------------------------------------------------------------------------------

    @property
    def inspect(self) -> Inspect:
        """The metadata tables, such as ``t.inspect.files()``; on Spark, ``t.inspect.files(spark=spark)``."""
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
        style: Literal["proposal"],
        names: Mapping[str, str] | None = ...,
    ) -> graph.ProposalDiagram: ...

    def tree(
        self,
        *,
        snapshots: Literal["current", "all"] | int | Iterable[int] = "current",
        depth: Literal["snapshots", "manifests", "files"] = "manifests",
        labels: Literal["short", "full", "counts"] = "short",
        max_nodes: int = 150,
        style: Literal["tree", "proposal"] = "tree",
        names: Mapping[str, str] | None = None,
    ) -> graph.Tree | graph.ProposalDiagram:
        """Draw the tree of metadata files, snapshots and refs, manifest lists, manifests and files.

        See `iceexplore.graph.build_tree`. ``style="proposal"`` draws it like the figures of the V4 proposal
        (`iceexplore.graph.build_proposal_diagram`): each manifest is a table, each layer has its own level, and
        ``names`` gives short names by location.
        """
        if str(style) == "seed":
            warnings.warn("style='seed' is deprecated: use style='proposal'", DeprecationWarning, stacklevel=2)
            style = "proposal"
        if style == "proposal":
            return graph.build_proposal_diagram(self._state, snapshots=snapshots, names=names)
        if style != "tree":
            raise OptionError(f"style={style!r}: choose 'tree' or 'proposal'")
        return graph.build_tree(self._state, snapshots=snapshots, depth=depth, labels=labels, max_nodes=max_nodes)

    def file_map(self, snapshots: int = 1, *, color: Literal["size", "age", "deletes"] = "size") -> graph.FileMap:
        """Draw the files of the snapshot, a row per partition and a cell per file, and what the snapshot changed.

        See `iceexplore.graph.file_map`. ``snapshots=4`` draws up to three ancestors beside the snapshot, and ``color``
        is the measure that shades the cells. Reads all manifests of the snapshots shown.
        """
        return graph.file_map(self._state, snapshots, color)

    def explore(self, *, height: float | str | None = None, text_size: int | None = None) -> Explorer:
        """Open the interactive explorer: the tree and the details of a node side by side.

        Parameters
        ----------
        height
            The height of the widget: a number of pixels, or a CSS length such as ``"80vh"``. By default, it is as high
            as its content needs. Its lower edge can be dragged.
        text_size
            The size of texts and pictures in percent, from 85 to 200; by default the size last chosen in the browser.

        Raises
        ------
        OptionError
            A value is invalid.
        """
        from iceexplore.widgets import explore

        return explore(self, height=height, text_size=text_size)

    # Time travel -----------------------------------------------------------------------------------------------------

    def at(
        self,
        snapshot_or_ref: SnapshotLike | Table | None = None,
        /,
        *,
        snapshot: int | str | None = None,
        timestamp: object = None,
        ref: str | None = None,
        version: int | str | None = None,
    ) -> Table:
        """Return the table as of a snapshot, a ref, a time or a metadata file. Give exactly one of the arguments.

        Parameters
        ----------
        snapshot_or_ref
            A Snapshot, its id, a branch or tag, or a Table.
        snapshot
            A snapshot id.
        timestamp
            A datetime, a date, ISO text or milliseconds since the epoch; naive times are UTC. Looked up in the
            snapshot log.
        ref
            A branch or tag.
        version
            The number of a metadata file; of a Delta table, a version of the table.

        Raises
        ------
        SnapshotNotFoundError
            It does not exist; the nearest ones are listed.
        OptionError
            None of the arguments is given, or more than one.

        Examples
        --------
        >>> t.at("audit")
        >>> t.at(timestamp="2024-03-01")
        """
        if snapshot_or_ref is not None:
            named = {"snapshot": snapshot, "timestamp": timestamp, "ref": ref, "version": version}
            if more := [f"{name}=" for name, value in named.items() if value is not None]:
                raise OptionError(f"at() takes one argument: give {snapshot_or_ref!r} or {more[0]}, not both")
            return Table(self._resolve(snapshot_or_ref, "at()"))
        return Table(graph.travel(self._state, snapshot=snapshot, timestamp=timestamp, ref=ref, version=version))

    def refresh(self) -> Table:
        """Return the newest state of the table as a new Table; this one does not change.

        Raises
        ------
        TableChangedError
            The location now holds a different table.
        """
        return Table(graph.refreshed(self._state))

    def history(self) -> pd.DataFrame:
        """Return a row per change of the current snapshot: when it became current, its operation, refs and changes."""
        return graph.history(self._state)

    def diff(self, a: SnapshotLike | Table, b: SnapshotLike | Table | None = None) -> graph.Diff:
        """Compare ``a`` with ``b``: files, rows, deletes, manifests, schema, spec, properties.

        Parameters
        ----------
        a, b
            A Snapshot, its id, a branch or tag, or a Table, possibly of a different table. Without ``b``, ``a`` is
            compared with the state that is shown.
        """
        before = self._resolve(a, "diff()")
        return graph.diff(before, self._state if b is None else self._resolve(b, "diff()"))

    # Rows ------------------------------------------------------------------------------------------------------------

    @renamed_arguments(filter="where")
    def plan(
        self,
        where: FilterLike | None = None,
        *,
        columns: Iterable[str] | None = None,
        partition: Mapping[str, Any] | None = None,
        from_snapshot: SnapshotLike | Table | None = None,
        to_snapshot: SnapshotLike | Table | None = None,
        row_groups: bool = False,
        bloom: bool = False,
        split_size: int | None = None,
    ) -> ScanPlan:
        """Plan a scan: which files it reads, which it skips, and why.

        Only manifests are read, unless ``row_groups`` asks for the footers of data files.

        Parameters
        ----------
        where
            SQL text (``ts >= '2024-01-01' and id in (7, 9)``), the JSON of an expression as text or parsed (see
            `iceexplore.expressions.expression_from_json`), or an expression of ``pyiceberg.expressions``. Without
            a filter every live file is read.
        columns
            Names of the columns to read, with dots for fields of structs; all by default.
        partition
            Values by partition field: plan only files of these partitions.
        from_snapshot, to_snapshot
            Plan only files that appends added after the first snapshot, up to and including the second: Snapshots,
            ids, branches, tags or Tables. The first defaults to the beginning of the history, the second to the
            snapshot that is shown. Other operations are ignored and no deletes are applied, as in Iceberg's
            incremental append scan.
        row_groups
            Open the footers of the remaining Parquet files, and prune row groups by their statistics.
        bloom
            Check the row groups' Bloom filters too.
        split_size
            Target size of a split in bytes; by default the table's ``read.split.target-size``, or 128 MiB.

        Raises
        ------
        OptionError
            The filter cannot be parsed or does not fit the schema, a column does not exist (the nearest names are
            listed), or ``from_snapshot`` is not an ancestor of ``to_snapshot``.
        SnapshotNotFoundError
            No such snapshot, branch or tag; the nearest ones are listed.
        """
        from iceexplore.planning import plan_scan

        ends: list[Any] = [getattr(at, "_state", at) for at in (from_snapshot, to_snapshot)]
        return plan_scan(
            self._state,
            where,
            columns=columns,
            partition=partition,
            from_snapshot=ends[0],
            to_snapshot=ends[1],
            row_groups=row_groups,
            bloom=bloom,
            split_size=split_size,
        )

    @renamed_arguments(filter="where")
    def head(
        self,
        n: int = 10,
        where: FilterLike | None = None,
        columns: str | Iterable[str] | None = None,
        *,
        partition: Mapping[str, Any] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> pd.DataFrame:
        """Return the first rows, with deletes applied, as a pandas data frame with Arrow-backed columns.

        Manifests and files are read in the order of the plan, and no further than needed; if the table has deletes,
        all manifests are read. See `to_arrow` for the parameters and errors.

        Examples
        --------
        >>> t.head(3)
        >>> t.head(5, "city = 'Oslo'", columns=["id", "address.street", "_file", "_pos"])
        """
        from iceexplore.reading import head

        return head(self._state, n, where, columns, partition=partition, on_error=on_error)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as an Arrow C stream, for ``polars.DataFrame(t)``, ``pyarrow.table(t)`` or DuckDB's SQL.

        Batches are read on demand, as `to_arrow` reads them.
        """
        from iceexplore.reading import row_stream

        rows: Any = row_stream(self._state)  # pyarrow-stubs leaves the export untyped
        stream: object = rows.__arrow_c_stream__(requested_schema)
        return stream

    @renamed_arguments(filter="where")
    def count(
        self,
        where: FilterLike | None = None,
        *,
        partition: Mapping[str, Any] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> RowCount:
        """Count the rows, or those that match a filter, after deletes.

        Metadata is used where it is exact: for files all of whose rows match and that have no equality deletes. The
        cardinality of their deletion vectors is subtracted; their position delete files are read. For other files,
        the columns of the filter and of the equality deletes are read. For a table without deletes on a remote store,
        the manifest list is enough if its counts agree with the snapshot's summary; no manifest is opened then.

        Returns
        -------
        RowCount
            An int; ``.explain()`` lists how many files were counted from metadata and how many were read.

        Raises
        ------
        OptionError, FormatError, UnsupportedError, FileMissingError
            As for `to_arrow`. Files that need not be read are not checked for existence.
        """
        from iceexplore.reading import count_rows

        return count_rows(self._state, where, partition=partition, on_error=on_error)

    @renamed_arguments(filter="where")
    def to_arrow(
        self,
        where: FilterLike | None = None,
        columns: str | Iterable[str] | None = None,
        limit: int | None = None,
        *,
        partition: Mapping[str, Any] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        max_bytes: int | None = None,
    ) -> pa.Table:
        """Read the rows into an Arrow table, with all deletes applied: files in plan order, positions ascending.

        Columns are resolved by field id, so renames, drops, moves and promotions follow the spec; see
        `iceexplore.reading.read_data_file`. ``uuid`` becomes 16 bytes, ``geometry`` and ``geography`` stay as stored
        (WKB), ``variant`` becomes its bytes ``metadata`` and ``value``. Each field carries its id in its metadata
        (``PARQUET:field_id``).

        Parameters
        ----------
        where
            As for `plan`.
        columns
            None or ``"*"`` for all, or one or more names: columns, struct fields with dots, ``"*"`` for all columns,
            and the metadata columns ``_file``, ``_pos``, ``_row_id``, ``_last_updated_sequence_number``,
            ``_spec_id``, ``_partition`` and ``_deleted``. With ``_deleted``, deleted rows are included and marked.
        limit
            Maximum number of rows.
        partition
            Values by partition field: read only files of these partitions.
        on_error
            ``"raise"``, or ``"skip"`` to leave out data files that are missing, damaged or encrypted, or whose delete
            files are. Each such data file becomes a problem in ``.problems`` with the number of missing rows, and a
            warning is issued. Rows in front of the damage in a file are kept.
        max_bytes
            Memory limit for the rows in bytes; by default `iceexplore.memory_limit`.

        Raises
        ------
        OptionError
            The filter or a column is invalid; the nearest names are listed.
        FormatError, UnsupportedError, FileMissingError
            A file cannot be read: it is damaged, encrypted, missing, or a synthetic file of a simulation.
        MemoryLimitError
            The rows take more than ``max_bytes``, or a small file expands beyond all proportion.
        """
        from iceexplore.reading import to_arrow

        return to_arrow(
            self._state, where, columns, limit=limit, partition=partition, on_error=on_error, max_bytes=max_bytes
        )

    @renamed_arguments(filter="where")
    def to_pandas(
        self,
        where: FilterLike | None = None,
        columns: str | Iterable[str] | None = None,
        limit: int | None = None,
        *,
        partition: Mapping[str, Any] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        max_bytes: int | None = None,
    ) -> pd.DataFrame:
        """Read the rows into a pandas data frame with Arrow-backed columns. See `to_arrow`."""
        return graph.to_frame(
            self.to_arrow(where, columns, limit, partition=partition, on_error=on_error, max_bytes=max_bytes)
        )

    @renamed_arguments(filter="where")
    def rows(
        self,
        where: FilterLike | None = None,
        *,
        columns: Iterable[str] | None = None,
        history: bool | Literal["branches"] = False,
        partition: Mapping[str, Any] | None = None,
        limit: int | None = 1000,
    ) -> RowPlaces:
        """Find where matching rows are or were: file, position, the snapshot that added them, and their fate.

        A row is live, deleted by a delete file or deletion vector (both the delete and its snapshot are named),
        removed with its file, or moved, for example by compaction. Deleted rows of live files are included.
        ``.story()`` shows the history of each row across snapshots as text and as a picture.

        Parameters
        ----------
        where
            As for `plan`; ``t.rows("id = 7")``.
        columns
            Columns to show besides the identifier fields and the columns of the filter; all if there are neither.
        history
            Also search files that were removed since: ``True`` for the ancestors of the snapshot that is shown,
            ``"branches"`` for those of every branch and tag as well. Every root is read. Files that no longer exist
            are listed in ``.unread`` and in ``.problems``.
        partition
            Values by partition field: search only files of this partition.
        limit
            Stop when this number of places is found; ``.complete`` is then False. None: no limit.

        Raises
        ------
        OptionError
            The filter, a column or an option is invalid; the nearest names are listed.
        """
        from iceexplore.reading import find_rows

        return find_rows(self._state, where, columns=columns, history=history, partition=partition, limit=limit)

    @overload
    def changes(
        self,
        a: SnapshotLike | Table | None = ...,
        b: SnapshotLike | Table | None = ...,
        *,
        rows: Literal[False] = ...,
        spark: None = ...,
        dv_encoding: Literal["removed", "replace", "delta"] | None = ...,
    ) -> Changes: ...

    @overload
    def changes(
        self,
        a: SnapshotLike | Table | None = ...,
        b: SnapshotLike | Table | None = ...,
        *,
        rows: Literal[True],
        spark: None = ...,
        columns: str | Iterable[str] | None = ...,
        where: FilterLike | None = ...,
        identifier_columns: Iterable[str] | None = ...,
        compute_updates: bool | None = ...,
        net_changes: bool = ...,
    ) -> pa.Table: ...

    @overload
    def changes(
        self,
        a: SnapshotLike | Table | None = ...,
        b: SnapshotLike | Table | None = ...,
        *,
        rows: Literal[True],
        spark: SparkSession,
        columns: str | Iterable[str] | None = ...,
        where: FilterLike | None = ...,
        identifier_columns: Iterable[str] | None = ...,
        compute_updates: bool | None = ...,
        net_changes: bool = ...,
    ) -> DataFrame: ...

    @renamed_arguments(filter="where")
    def changes(
        self,
        a: Any = None,
        b: Any = None,
        *,
        rows: bool = False,
        spark: Any = None,
        dv_encoding: Literal["removed", "replace", "delta"] | None = None,
        columns: Any = None,
        where: Any = None,
        identifier_columns: Iterable[str] | None = None,
        compute_updates: bool | None = None,
        net_changes: bool = False,
    ) -> Changes | pa.Table | DataFrame:
        """Return which files were added and removed, and which metadata was read to find out; or which rows changed.

        With two arguments, compare the roots of ``a`` and ``b``; ``a=None`` means the empty table at the
        beginning. With one argument, return what that snapshot changed, if possible read from its own root alone;
        without arguments, what the snapshot that is shown changed. (`diff` with one argument compares that state with
        the one that is shown.)

        With ``rows=True``, return a changelog like that of Iceberg's procedure ``create_changelog_view``, but for
        tables with delete files too: the rows that each snapshot after ``a``, up to and including ``b``, inserted and
        deleted. See `iceexplore.reading.changelog`.

        Parameters
        ----------
        a, b
            A Snapshot, its id, a branch or tag, or a Table. With ``rows=True``, ``a`` may be the id of an expired
            snapshot if it is the parent of the oldest snapshot that is kept.
        rows
            Return changed rows: an Arrow table of the columns and ``_change_type`` (INSERT, DELETE, UPDATE_BEFORE,
            UPDATE_AFTER), ``_change_ordinal`` and ``_commit_snapshot_id``.
        spark
            With ``rows=True``: a Spark session whose workers read the files. The result is an unordered Spark
            DataFrame. See `iceexplore.on_spark.changelog`.
        dv_encoding
            How the writer of V4 roots records a changed manifest DV; see `iceexplore.commits.changes_of`.
        columns, where
            With ``rows=True``: which columns, and which rows.
        identifier_columns, compute_updates
            With ``rows=True``: treat a row deleted and a row inserted by the same snapshot as an update if these
            columns are equal; by default the schema's identifier fields, with ``compute_updates=True``.
        net_changes
            With ``rows=True``: leave out changes that later snapshots undo.

        Raises
        ------
        UnsupportedError
            With ``rows=True``: the parent of a snapshot with deletes has expired, or Spark's workers cannot see the
            files.
        SnapshotNotFoundError
            No such snapshot, branch or tag; the nearest ones are listed.
        OptionError
            With ``rows=True``: ``a`` is not an ancestor of ``b``, or another argument is invalid.
        FormatError, FileMissingError
            With ``rows=True``: a required file is damaged or missing. With ``spark=``, damage in data files surfaces
            when the DataFrame runs, as a Spark error that quotes this one.
        """
        if spark is not None and not rows:
            raise OptionError("spark= applies to changed rows: add rows=True; changes of files are read from metadata")
        if rows:
            return self._changed_rows(
                a, b, columns, where, dv_encoding, spark,
                identifier_columns=identifier_columns, compute_updates=compute_updates, net_changes=net_changes,
            )  # fmt: skip
        if any(x is not None for x in (columns, where, identifier_columns, compute_updates)) or net_changes:
            raise OptionError("columns, where, identifier_columns, compute_updates and net_changes need rows=True")
        from iceexplore.commits import changes_between, changes_of

        if b is not None:
            after = self._resolve(b, "changes()")
            nothing = after.showing(None, after.schema, ref=None, travel=None)
            return changes_between(nothing if a is None else self._resolve(a, "changes()"), after)
        state = self._state if a is None else self._resolve(a, "changes()")
        return changes_of(state, dv_encoding=dv_encoding)

    def rules(self, *, relaxed: Collection[str] = ()) -> RuleReport:
        """Return which rules of the format the snapshot keeps and which it breaks, quoting the documents that set them.

        Reads every manifest of the snapshot and of its parent. `check` also reports these violations, together with all
        other damage, and says what they mean for readers.

        Parameters
        ----------
        relaxed
            Ids of rules to leave out, for layouts that break them on purpose.

        Raises
        ------
        OptionError
            ``relaxed`` names an unknown rule.
        IceexploreError
            A manifest or a manifest DV cannot be read, so no rule can be checked.
        """
        from iceexplore.commits import rule_report

        return rule_report(self._state, relaxed=relaxed)

    def _changed_rows(
        self,
        a: SnapshotLike | Table | None,
        b: SnapshotLike | Table | None,
        columns: str | Iterable[str] | None,
        where: FilterLike | None,
        dv_encoding: object,
        spark: SparkSession | None,
        **options: Any,
    ) -> pa.Table | DataFrame:
        if dv_encoding is not None:
            raise OptionError("dv_encoding applies to changes of files: leave out dv_encoding or rows=True")
        if b is None:
            after = (self._state if a is None else self._resolve(a, "changes()")).snapshot
            parent = None if after is None else after.parent_snapshot_id
            before = None if parent is None else self._state.metadata.snapshot(parent)
        else:
            from iceexplore.reading import is_expired_start

            after = self._resolve(b, "changes()").snapshot
            # As in Java, the snapshot at which the last read ended may have expired, as long as all later ones exist.
            begins = a is None or is_expired_start(self._state.metadata, a, after)
            before = None if begins else self._resolve(a, "changes()").snapshot
        if spark is not None:
            from iceexplore import on_spark

            return on_spark.changelog(self._state, spark, before, after, columns=columns, where=where, **options)
        from iceexplore.reading import changelog

        return changelog(self._state, before, after, columns=columns, where=where, **options)

    # On Spark --------------------------------------------------------------------------------------------------------

    @renamed_arguments(filter="where")
    def scan(
        self,
        spark: SparkSession,
        where: FilterLike | None = None,
        columns: str | Iterable[str] | None = None,
        *,
        snapshot: SnapshotLike | Table | None = None,
        partition: Mapping[str, Any] | None = None,
        strict: bool = False,
        engine: Literal["auto", "spark", "iceberg"] = "auto",
        plan: ScanPlan | None = None,
    ) -> DataFrame:
        """Return the rows as a Spark DataFrame, with all deletes applied.

        This works for any state of any table: time-travelled, simulated, moved, from a zip, damaged. The files are
        those of `plan`; plain Spark reads them, without Iceberg's runtime.

        Later changes of the session's settings do not affect the DataFrame. Columns that are not selected are not
        read, and filters are pushed down to the files, including filters applied after the scan. Files that plain
        Spark cannot read, or would read differently from Iceberg (Avro files; ORC files with dates, timestamps, rows
        deleted by position or requested row positions; INT96; names that differ only in case; very many deletes) are
        read by Python workers. For these files, only ``where`` and ``columns`` reduce what is read, not filters applied
        after the scan, and iceexplore must be installed on the workers.

        The files of a zip or a simulation are in a temporary folder. It is kept until Python exits, because nothing
        signals when the last DataFrame derived from this one is gone; a simulation's ``close`` removes it at once.

        Types appear as in Iceberg's Spark runtime: ``uuid`` as string, ``fixed`` as binary, ``timestamp`` as
        ``timestamp_ntz``. Types that the runtime refuses appear as stored: ``time`` as bigint (microseconds),
        ``timestamp_ns`` and ``timestamptz_ns`` as bigint (nanoseconds since 1970), geometry and geography as binary
        (WKB).

        Parameters
        ----------
        spark
            A session of Spark 3.5 or later, classic or Connect; `iceexplore.spark` creates one.
        where
            As for `plan`.
        columns
            As for `to_arrow`, including the metadata columns.
        snapshot
            A Snapshot, its id, a branch or tag, or a Table; by default the state that is shown.
        partition
            Values by partition field: read only files of these partitions.
        strict
            Raise if a file is missing or damaged. Otherwise its rows are left out, with a problem in ``.problems``
            and a warning that names the files. Damage behind a file's footer surfaces when the DataFrame runs, as a
            Spark error: ``t.verify(spark, level="data")`` finds the file.
        engine
            ``"spark"``: plain Spark, as described above. ``"iceberg"``: Iceberg's runtime, if the session has it, for
            the table's own metadata file of version 1 to 3. ``"auto"``: plain Spark, except that Iceberg's runtime is
            used if Python workers would otherwise have to read files and the runtime can read the table.
        plan
            A result of `plan` for this metadata file, which then determines snapshot and filter. A plan of appends
            (``from_snapshot=``) gives an incremental read.

        Raises
        ------
        OptionError
            The filter, a column or an option is invalid; the nearest names are listed.
        UnsupportedError
            A file is a synthetic file of a simulation; Spark is too old; a simulation or an extracted zip is in a
            temporary folder that workers on other machines do not see; or ``engine="iceberg"`` cannot read this state.
        FormatError, FileMissingError
            With ``strict=True``: a file is missing or damaged.

        Examples
        --------
        >>> t.scan(spark, "ts >= '2024-01-01'", columns=["id", "_file"]).groupBy("_file").count().show()
        """
        from iceexplore.on_spark import scan

        state = self._state if snapshot is None else self._resolve(snapshot, "scan()")
        return scan(state, spark, where, columns, partition=partition, strict=strict, engine=engine, plan=plan)

    @overload
    def verify(self, spark: None = ..., *, level: Literal["footers", "data"] = ...) -> pd.DataFrame: ...

    @overload
    def verify(self, spark: SparkSession, *, level: Literal["footers", "data"] = ...) -> DataFrame: ...

    def verify(self, spark: Any = None, *, level: Literal["footers", "data"] = "footers") -> pd.DataFrame | DataFrame:
        """Open every live data and delete file and compare it with its metadata; return one row per difference.

        Parameters
        ----------
        spark
            A Spark session whose workers open the files, each time the returned DataFrame is run. Without one, threads
            of this process open them.
        level
            ``"footers"`` checks that each file exists, can be opened, and has the size, format, row count, row groups
            and field ids that the metadata records. Delete files and deletion vectors are read: CRC, counts, positions
            within their data file, the data files they reference, the columns of equality deletes. ``"data"`` also
            reads every column of every row: page checksums, column bounds and counts, each row's partition, the
            recorded sort order, and, from version 3 on, that no two live rows share a row id and that no row has a row
            id or last updated sequence number that the table has not assigned.

        Returns
        -------
        pandas or Spark DataFrame
            A row per finding: ``code`` and ``severity`` (`iceexplore.errors.PROBLEM_KINDS`), ``location``, ``content``
            (0 data, 1 position deletes and deletion vectors, 2 equality deletes, null for a manifest), ``manifest``,
            ``entry`` (the index of the file's entry in the manifest), ``snapshot_id`` (of the entry), ``field``,
            ``found``, ``expected``, ``text``.

        Raises
        ------
        OptionError
            ``spark`` is not a Spark session, or the level is unknown.
        UnsupportedError
            Spark's workers cannot see the files, or the storage cannot be sent to them.

        Notes
        -----
        Only the state that is shown is verified; use ``t.at(...)`` for older snapshots. Some things are not compared:
        bounds of columns inside lists and maps, of variants and geometries; offsets of row groups in ORC and Avro;
        whether the data file of a position delete was ever live; encrypted files. If the row ids of a file form more
        than 1,000 ranges, only the longest 1,000 are compared with those of other files. A delete file that applies to
        no row is not a finding as long as the data file it references exists.
        """
        from iceexplore.on_spark import verify
        from iceexplore.verification import verify_local

        if spark is None:
            return graph.to_frame(verify_local(self._state, level=level))
        return verify(self._state, spark, level=level)

    def check(
        self,
        level: Literal["metadata", "files", "rows"] = "metadata",
        *,
        spark: SparkSession | None = None,
        snapshots: object = "current",
        only: Iterable[str] | None = None,
        skip: Iterable[str] = (),
        baseline: Report | Iterable[Finding] | None = None,
    ) -> Report:
        """Find what is broken in the table, since when, and what it means for readers.

        Parameters
        ----------
        level
            ``"metadata"`` reads the metadata file, the folder around it, manifest lists and manifests, and checks that
            the files exist. ``"files"`` also opens every data and delete file, as `verify` does. ``"rows"`` also reads
            all rows.
        spark
            A Spark session whose workers open the files; without one, threads of this process do.
        snapshots
            ``"current"`` (the state that is shown), ``"all"``, or a list of snapshots, their ids, refs or tables.
        only, skip
            Problem codes (`iceexplore.errors.PROBLEM_KINDS`) to report alone, or to leave out. ``"health"`` and
            ``"damage"`` are groups of codes: what slows a table down or makes it larger than necessary, and all others.
        baseline
            An earlier report; its findings are left out.

        Returns
        -------
        Report
            The findings, worst first; ``report.ok`` is True if none is worse than untidy.

        Raises
        ------
        OptionError
            The level or a code is unknown.
        SnapshotNotFoundError
            The table lacks one of the ``snapshots``.
        """
        from iceexplore.doctor import examine, verify_here
        from iceexplore.on_spark import verify

        def on_spark(state: graph.TableState, how: Literal["footers", "data"]) -> Generator[float, None, pa.Table]:
            yield 0.0
            found: pa.Table = verify(state, spark, level=how).toArrow()
            return found

        return examine(
            self._state, level=level, verify=verify_here() if spark is None else on_spark, snapshots=snapshots,
            only=only, skip=skip, baseline=baseline, show=Simulation,
        )  # fmt: skip

    def health(self, columns: Iterable[str] | None = None) -> TableHealth:
        """Show the health of the table in figures about its files, deletes, manifests and partitions.

        The figures are the sizes of data files, their deletes, manifests, partitions, and clustering: how many files a
        value of a column lies in. Each figure has a sentence, a chart, and what a procedure of the engines would gain.
        The manifests of the snapshot are read, but no data or delete file; where one cannot be read, the figures say
        so.

        Parameters
        ----------
        columns
            The columns whose clustering is measured, dotted inside structs; by default those of the table's sort order,
            or without one the first 20 that have bounds. For a table with more than 100,000 data files, these default
            columns are measured only on access to ``health["clustering"]``.

        Returns
        -------
        TableHealth
            ``health["sizes"]`` is a figure, with ``verdict``, ``to_pandas()`` and ``to_svg()``.
            ``health.gain("sizes")`` has the files, bytes and requests before and after a rewrite, and the statement
            that runs it. ``health.to_pandas()`` has a row per figure.

        Raises
        ------
        OptionError
            A column is unknown, or has no single value per row.

        Examples
        --------
        >>> health = t.health()
        >>> health["sizes"].verdict
        >>> health.gain("sizes").sql
        """
        from iceexplore.doctor import TableHealth

        return TableHealth.of(self._state, columns)

    def _shown_after(self, sandbox: ix.commits.Sandbox) -> Simulation:
        """Return a simulation's writer as a table, for repairs that widgets of this table plan."""
        return Simulation(sandbox)

    def maintenance(self) -> Maintenance[Simulation]:
        """Plan maintenance: compute what each of the engines' procedures would do now with the table's properties.

        Nothing is read until a plan is requested; displaying the result computes all plans. The table is not changed.

        Returns
        -------
        Maintenance
            A method per procedure returns its plan: ``expire_snapshots()``, ``orphan_files()``,
            ``unused_schemas_and_specs()``, ``metadata_files()``, ``rewrite_data_files()``,
            ``rewrite_position_delete_files()``, ``rewrite_manifests()``. A plan has its thresholds with their sources,
            its cost, the statement that runs it, and ``table``, a simulation of the table afterwards.

        Examples
        --------
        >>> m = t.maintenance()
        >>> plan = m.expire_snapshots(older_than="7d", retain_last=3)
        >>> plan.to_pandas()
        >>> plan.table.tree(snapshots="all")
        """
        from iceexplore.doctor import Maintenance

        self._state.refuse_delta("Iceberg's procedures do not apply to it; OPTIMIZE and VACUUM of Delta maintain it.")
        return Maintenance(self._state, Simulation)

    # Commits ---------------------------------------------------------------------------------------------------------

    def simulate(
        self,
        format_version: int | None = None,
        *,
        overlay: str | Path | None = None,
        seed: int | str | None = None,
        **layout: Any,
    ) -> Simulation:
        """Create a simulation: a Table with commits, which are written to an overlay. This table is never written.

        In a simulation of a time-travelled table, the first commit makes the snapshot that is shown current.

        Parameters
        ----------
        format_version
            By default the table's own. With a higher version, the first commit upgrades the table.
        overlay
            An empty local folder for the simulation's files; by default a temporary folder that is removed with it.
        seed
            Makes ids, names, synthetic files and times reproducible.
        layout
            Layout options (`iceexplore.commits.LayoutOptions`): ``dialect``, ``dv_encoding``,
            ``flush_data_files``, ...

        Raises
        ------
        OptionError
            The format version is lower than the table's, an option is unknown, or the folder cannot be used.
        """
        return simulate(self._state, format_version, overlay=overlay, seed=seed, layout=layout)

    def replay(self, format_version: int = 4, **how: Any) -> Replay[Simulation]:
        """Commit the table's history again in a different version and layout; compare the two, snapshot by snapshot.

        ``how`` takes ``last``, ``seed``, ``overlay`` and layout options. See `iceexplore.commits.replay`.
        """
        return ix.commits.replay(self._state, format_version, wrap=Simulation, **how)

    def retained(self, window: int, *, data: bool = False) -> Retained:
        """List the metadata that the newest snapshots need, and what expiring the others would free.

        See `iceexplore.commits.retained`.
        """
        from iceexplore.commits import retained

        return retained(self._state, window, data=data)

    # Sharing ---------------------------------------------------------------------------------------------------------

    def bundle(
        self,
        path: str | Path,
        *,
        redact: bool | str | Iterable[str] = ("credentials",),
        deletes: bool = False,
        overwrite: bool = False,
    ) -> graph.Bundle:
        """Write the metadata into a zip that can be shared; `iceexplore.open` opens it.

        See `iceexplore.graph.write_bundle`.
        """
        self._state.refuse_delta("its log cannot be redacted, so it cannot be bundled. Send the folder itself.")
        return graph.write_bundle(self._state, path, redact=redact, deletes=deletes, overwrite=overwrite)

    def close(self) -> None:
        """Remove the temporary folder that a zip was extracted into."""
        self._state.storage.close()

    # Display ---------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return graph.card_text(graph.table_card(self._state))

    def _repr_html_(self) -> str:
        return graph.card_html(graph.table_card(self._state))


class CommittedTable(Table):
    """A table that commits change: it always shows its newest state. Tables from `table` and `at` do not change."""

    _kind: ix.commits.TableKind

    def __init__(self, sandbox: Committer) -> None:
        super().__init__(sandbox.state)
        self._sandbox: Committer = sandbox

    @property
    def table(self) -> Table:
        """The current state as a Table that later commits do not change."""
        return Table(self._state)

    @property
    def options(self) -> LayoutOptions:
        """The layout options of new commits."""
        return self._sandbox.options

    def set_layout(self, **layout: Any) -> LayoutOptions:
        """Change layout options for the commits that follow; options not named keep their value.

        This makes no commit and rewrites nothing.

        Raises
        ------
        OptionError
            An option is unknown or has an invalid value.
        """
        self._sandbox.options = self.options.replace(**layout)
        return self.options

    relayout = renamed_method("set_layout", "relayout")

    @property
    def writes(self) -> WriteLog:
        """A log of every file written by this writer and its forks."""
        return self._sandbox.storage.writes

    def refresh(self) -> Table:
        """Continue from the newest commit of any writer; return this table."""
        self._state = self._sandbox.refresh()
        return self

    def cost(self) -> Cost:
        """Return what the commits so far wrote and read, attempt by attempt, and what a planner reads now."""
        return ix.commits.cost_of(self._sandbox)

    def save(
        self,
        path: str | PathLike[str],
        *,
        data: Literal["refer", "copy", "none"] = "copy",
        location: str | None = None,
    ) -> Saved:
        """Write the current state into a new folder, completely or not at all; `iceexplore.open` opens it anywhere.

        Parameters
        ----------
        data
            What to do with the data files of the original table. ``"copy"`` copies them, so that rows can be read
            wherever the folder is moved. ``"refer"`` leaves them in place; reading their rows then needs
            ``iceexplore.open(path, allow=...)``. ``"none"`` writes metadata only. See `iceexplore.commits.save`.
        location
            The location in the written metadata; by default ``path``, so that engines on this machine can read it.
        """
        return ix.commits.save(self._state, path, data=data, location=location)

    # Commits of files, the same in simulations and labs ---------------------------------------------------------------

    def update_columns(
        self,
        columns: str | Iterable[str] | Mapping[str, Any],
        paths: LocationsLike | None = None,
        *,
        where: FilterLike | None = None,
        ref: str = "main",
    ) -> Snapshot | None:
        """Add column files: newer values of some columns, without rewriting the data files (V4 draft).

        Return None, without a commit, if no row matches.

        Parameters
        ----------
        columns
            Values by column: constants, or functions of the rows to update, an Arrow table. In simulations also names
            of columns, for synthetic column files.
        paths
            Locations of data files; by default all.
        where
            Update only the rows that match. A column file has a value for every row of its data file, so the other rows
            of these data files keep their values, and do not count as updated; data files without a matching row stay
            as they are.

        Raises
        ------
        RuleError
            ``column-updates``: the table does not write the V4 draft, a partition field is derived from a column,
            or equality deletes or position delete files apply.
        """
        return self._files_if_any("update_columns", ref, columns, paths, where=where)

    # Commits that rewrite files and keep the rows --------------------------------------------------------------------

    def rewrite_manifests(self, manifests: LocationsLike | None = None, *, ref: str = "main") -> Snapshot | None:
        """Rewrite manifests without changing the data: the given ones, or those that the layout options suggest.

        Return None, without a commit, if the table has no manifests.
        """
        return self._files_if_any("rewrite_manifests", ref, manifests)

    def rewrite_position_deletes(self, paths: LocationsLike | None = None, *, ref: str = "main") -> Snapshot | None:
        """Merge position delete files (version 2), or convert them to deletion vectors (from version 3 on).

        Positions in data files that are no longer live are dropped. Return None, without a commit, if there is
        nothing to merge, drop or convert.

        Raises
        ------
        RuleError
            ``deletes-need-v2``: the table has format version 1.
        """
        return self._files_if_any("rewrite_position_deletes", ref, paths)

    def cherry_pick(self, snapshot: SnapshotLike | Table) -> Snapshot:
        """Apply the changes of a snapshot that is not in ``main``; if it is a child of the current one, fast-forward.

        Raises
        ------
        RuleError
            ``cherry-pick``: it cannot be picked. ``files-exist``: files that it removed are no longer live.
        OptionError
            There is no snapshot to pick, or the argument does not name one.
        SnapshotNotFoundError
            The snapshot does not exist; the message lists the nearest ones.
        """
        found = self._resolve(snapshot, "cherry_pick()").snapshot
        assert found is not None
        picked = found.snapshot_id
        if ix.commits.cherry_pick_summary(self._state.opened.document, snapshot_id=picked) is not None:
            return self._files("cherry_pick", "main", picked)
        self._commit_document(
            ix.commits.operation("cherry_pick"),
            lambda d, ms: ix.commits.set_current_snapshot(d, snapshot_id=picked, timestamp_ms=ms),
        )
        return found

    # Commits of metadata alone ---------------------------------------------------------------------------------------

    def expire_snapshots(
        self, ids: Iterable[int] | None = None, *, older_than: object = None, retain_last: int | None = None
    ) -> ix.commits.Expired:
        """Expire snapshots. No file is deleted; `retained` shows what could be.

        The default age is five days, and ``retain_last`` is a minimum to keep: given alone, it expires nothing in a
        younger table. ``older_than=datetime.now()`` expires all others.

        Parameters
        ----------
        ids
            Snapshots to expire whatever their age.
        older_than
            A datetime, ISO text or milliseconds; by default the table's ``history.expire.max-snapshot-age-ms``.
        retain_last
            Keep at least this number of snapshots of each branch, however old.

        Returns
        -------
        Expired
            A tuple of the expired ids. It prints which snapshots were kept and why (``.kept``).

        Raises
        ------
        RuleError
            ``expire-referenced``, ``expire-gc``.
        """
        operation = ix.commits.operation("expire_snapshots")
        change = ix.commits.Expiration(ids, older_than=older_than, retain_last=retain_last)
        self._commit_document(operation, change)
        return change.expired

    def rollback(self, snapshot: SnapshotLike | Table | None = None, *, timestamp: object = None) -> Snapshot | None:
        """Make an ancestor current again: the given snapshot, or the newest one before a time.

        Raises
        ------
        RuleError
            ``rollback-ancestor``: the snapshot is not an ancestor of the current one.
        """
        to = None if snapshot is None else self._snapshot_id(snapshot, "rollback()")
        return self._document("rollback", to, timestamp=timestamp)

    def branch(self, name: str, at: SnapshotLike | Table | None = None, **retention: int) -> Snapshot | None:
        """Create a branch, or move it to another snapshot.

        Parameters
        ----------
        at
            A Snapshot, its id, a branch or tag, or a Table; by default the current snapshot.
        retention
            ``min_snapshots_to_keep``, ``max_snapshot_age_ms``, ``max_ref_age_ms``.
        """
        return self._set_ref(name, "branch", at, retention)

    def tag(
        self, name: str, at: SnapshotLike | Table | None = None, *, max_ref_age_ms: int | None = None
    ) -> Snapshot | None:
        """Create a tag of a snapshot (by default the current one), or move it. See `branch`."""
        return self._set_ref(name, "tag", at, {} if max_ref_age_ms is None else {"max_ref_age_ms": max_ref_age_ms})

    def remove_ref(self, name: str) -> Snapshot | None:
        """Remove a branch or tag."""
        return self._document("remove_ref", name)

    def fast_forward(self, name: str, to: str) -> Snapshot | None:
        """Move a branch to the snapshot of another ref.

        Raises
        ------
        RuleError
            ``fast-forward-ancestor``: the branch is not an ancestor of the other ref.
        """
        return self._document("fast_forward", name, to)

    def set_properties(
        self, properties: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()
    ) -> Snapshot | None:
        """Set and remove table properties.

        Raises
        ------
        RuleError
            ``reserved-property``: the name is reserved.
        """
        return self._document("set_properties", properties, remove=remove)

    def evolve_schema(self, **changes: Any) -> Snapshot | None:
        """Evolve the schema: ``add``, ``drop``, ``rename``, ``update``, ``move``, ``require``, ``doc``, defaults.

        See `iceexplore.commits.evolve_schema`. Changes that the spec forbids raise a `RuleError` with the rule's name.
        """
        return self._document("evolve_schema", **changes)

    def evolve_spec(self, **changes: Any) -> Snapshot | None:
        """Evolve the partition spec: ``add=["day(ts)"]``, ``remove``, ``rename`` (`iceexplore.commits.evolve_spec`)."""
        return self._document("evolve_spec", **changes)

    def evolve_virtual_columns(self, **changes: Any) -> Snapshot | None:
        """Evolve virtual columns (V4), functions of columns with statistics: ``add=["lower(name)"]``, ``remove``.

        See `iceexplore.commits.evolve_virtual_columns`.
        """
        return self._document("evolve_virtual_columns", **changes)

    def set_sort_order(self, *fields: str) -> Snapshot | None:
        """Set the default sort order: ``"ts desc"``, ``"bucket(16, id)"``; without fields, unsorted."""
        return self._document("set_sort_order", *fields)

    def upgrade(self, format_version: int, **layout: Any) -> Snapshot | None:
        """Upgrade the table's format version in a commit of its own; later commits have the new layout.

        Without this call, the first commit of a simulation with a higher ``format_version`` upgrades the table in the
        same metadata file.

        Raises
        ------
        RuleError
            ``format-version-rises``: the table has a higher version.
        OptionError
            The version is not 1 to 4, or an option is invalid.
        """
        format_version = version_of(format_version)
        old = self._sandbox.options
        if format_version < self.format_version:
            ix.commits.upgrade(self._state.opened.document, format_version)
        self._sandbox.options = ix.commits.options_for(self._state, format_version, layout)
        try:
            return self._commit_document(ix.commits.operation("upgrade"), self._upgraded())
        except BaseException:
            self._sandbox.options = old
            raise

    # ------------------------------------------------------------------------------------------------------------------

    def _upgraded(self) -> ix.commits.DocumentChange | None:
        """Return a further change of the metadata document that an upgrade makes."""
        return None

    def _files(self, name: str, ref: str, /, *given: Any, **arguments: Any) -> Snapshot:
        """Commit a change of files, made by the operation of this name."""
        operation = ix.commits.operation(name)
        operation.check(arguments, self._kind)
        return self._commit_files(operation, self._making(operation, *given, **arguments), ref)

    def _files_if_any(self, name: str, ref: str, /, *given: Any, **arguments: Any) -> Snapshot | None:
        """Commit a change of files, or return None if there is nothing to change."""
        try:
            return self._files(name, ref, *given, **arguments)
        except ix.commits.NothingToDo:
            self._state = self._sandbox.state
            return None

    def _making(self, operation: ix.commits.CommitOperation, /, *given: Any, **arguments: Any) -> ix.commits.MakeChange:
        """Return the function that makes an operation's change in this kind of table."""
        return operation.make(*given, **arguments)

    def _commit_files(self, operation: ix.commits.CommitOperation, make: ix.commits.MakeChange, ref: str) -> Snapshot:
        how = self._commit_options(operation)
        made = self._sandbox.commit(make, ref=text_of("ref", ref, "the name of a branch"), **how)
        self._state = self._sandbox.state
        assert made is not None
        return made

    def _commit_options(self, operation: ix.commits.CommitOperation) -> dict[str, Any]:
        """Return the additional arguments of the committer of this kind of table."""
        return {}

    def _document(self, name: str, /, *given: Any, **arguments: Any) -> Snapshot | None:
        """Commit a change of metadata, made by the operation of this name."""
        operation = ix.commits.operation(name)
        operation.check(arguments, self._kind)
        assert operation.update is not None
        return self._commit_document(operation, operation.update(*given, **arguments))

    def _commit_document(
        self, operation: ix.commits.CommitOperation, change: ix.commits.DocumentChange | None
    ) -> Snapshot | None:
        found = self._sandbox.commit(document_change=change, what=operation.name, pins=operation.pins)
        self._state = self._sandbox.state
        return found

    def _snapshot_id(self, of: SnapshotLike | Table, call: str) -> int:
        if isinstance(of, int):
            return of  # may be a snapshot of another writer, not seen here yet
        found = self._resolve(of, call).snapshot
        if found is None:
            raise OptionError(f"{call}: {of!r} has no snapshot")
        return found.snapshot_id

    def _set_ref(
        self, name: str, kind: Literal["branch", "tag"], at: SnapshotLike | Table | None, retention: Mapping[str, int]
    ) -> Snapshot | None:
        ix.commits.operation(kind).check(retention, self._kind)
        snapshot = self._state.snapshot if at is None else self._resolve(at, f"{kind}()").snapshot
        if snapshot is None:
            raise OptionError(f"{kind} {name!r}: the table has no snapshot yet, and a ref must name one")
        self._document(kind, name, snapshot.snapshot_id, **retention)
        return snapshot


class Simulation(CommittedTable):
    """A table with an overlay: commits write real files into the overlay, and never into the table itself.

    Use `Table.simulate` to create one. Its card, tree, metadata tables and rows show the table as the commits would
    leave it. Each commit changes it and returns its snapshot; tables from `table` and `at` do not change. A commit
    raises `RuleError` if it would break a rule (nothing is written then), and `CommitConflictError` if another writer
    (see `fork`) committed a conflicting change first.

    Methods that add or remove files take ``ref=``, the branch to commit to.
    """

    _sandbox: Sandbox
    _kind = "simulation"

    # Metadata --------------------------------------------------------------------------------------------------------

    @property
    def overlay(self) -> str:
        """The folder that holds the simulation's files."""
        return self._sandbox.storage.overlay_folder

    def fork(self) -> Simulation:
        """Return a second writer to the same simulated table, which does not see this one's later commits.

        The writer that commits second is rebased on the other's commit and retried, or raises `CommitConflictError`.
        """
        return Simulation(self._sandbox.fork())

    def copy(self) -> Simulation:
        """Return an independent copy of the simulation in its current state, to try something out.

        Later commits of either one do not affect the other. The copy reads this one's files, so `close` ends both.
        """
        return Simulation(self._sandbox.copy())

    def __deepcopy__(self, memo: object) -> Simulation:
        return self.copy()

    def close(self) -> None:
        """Remove the temporary folder of this simulation and its forks; a folder given as ``overlay=`` is kept."""
        self._sandbox.close()

    # Commits of files ------------------------------------------------------------------------------------------------

    def append(self, files: FilesLike, *, ref: str = "main", **how: Any) -> Snapshot:
        """Add data files: a number with ``rows=``, dictionaries, paths of Parquet files, or a data frame.

        Parameters
        ----------
        files, how
            As for `iceexplore.commits.new_files`. A number creates synthetic files (``rows``, ``partitions``,
            ``bytes_per_row``): they have plausible statistics and no data, unless ``materialize=True`` writes it.

        Raises
        ------
        OptionError
            The files do not fit the schema or the partition spec.
        """
        return self._files("append", ref, files, **how)

    def delete_files(self, paths: LocationsLike | None, *, ref: str = "main") -> Snapshot:
        """Remove data files by their locations, together with their deletion vectors.

        Raises
        ------
        RuleError
            ``files-exist``: a file is not live.
        """
        return self._files("delete_files", ref, paths)

    def overwrite(
        self, files: FilesLike | None = None, *, delete: LocationsLike | None = None, ref: str = "main", **how: Any
    ) -> Snapshot:
        """Replace data files (``delete=`` locations, or ``where=`` and ``partition=``) with others in one commit.

        Parameters
        ----------
        how
            ``isolation``, and the options of ``files`` as for `append`.
        """
        return self._files("overwrite", ref, files, delete=delete, **how)

    def row_delta(
        self, files: FilesLike | None = None, *, deletes: Mapping[Any, Any] | None = None, ref: str = "main", **how: Any
    ) -> Snapshot:
        """Delete rows by position (``deletes={path: [0, 5]}``) or by value (``equality=``), and add data files.

        Parameters
        ----------
        how
            ``equality``, ``equality_partition``, ``isolation``, and the options of ``files`` as for `append`.

        Raises
        ------
        RuleError
            ``deletes-need-v2``, ``dv-in-range`` (a position beyond the end of a file), ``files-exist``.
        """
        return self._files("row_delta", ref, files, deletes=deletes, **how)

    def delete_where(
        self, where: FilterLike | None = None, *, partition: Mapping[str, Any] | None = None, ref: str = "main"
    ) -> Snapshot:
        """Remove the data files all of whose rows match, using metadata only.

        Raises
        ------
        RuleError
            ``whole-files``: only some rows of a file match.
        """
        return self._files("delete_where", ref, where, partition=partition)

    def compact(self, paths: LocationsLike | None = None, *, ref: str = "main", **how: Any) -> Snapshot | None:
        """Replace data files with fewer that have the same rows (operation ``replace``).

        Return None, without a commit, if no partition would have fewer files.

        Parameters
        ----------
        paths, how
            As for `iceexplore.commits.compact`: locations, or ``where``, ``partition`` and ``small_than`` to choose
            files; ``files`` per partition; ``read=False`` merges metadata without reading data.

        Raises
        ------
        OptionError
            An argument is invalid, more than 2 GiB would be read, or a column has a name that Iceberg reserves.
        RuleError
            ``files-exist``: a chosen file is not live.
        """
        return self._files_if_any("compact", ref, paths, **how)
