"""The public functions on views and the classes `View` and `ViewSimulation`; each method delegates in a line or two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import iceexplore as ix
from iceexplore import views
from iceexplore._catalog import Catalog, catalog_arguments
from iceexplore.errors import OptionError, Problems
from iceexplore.render import card_html, card_text

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from iceexplore.commits import Keep, NamespaceLike, Saved, SqlLike, ViewCommit, ViewQuery, ViewSandbox
    from iceexplore.doctor import Finding, Report
    from iceexplore.inspect import ViewInspect
    from iceexplore.metadata import Schema
    from iceexplore.queries import ViewPlan
    from iceexplore.render import SceneDrawing
    from iceexplore.storage import CatalogLike, ReadLog, WriteLog
    from iceexplore.widgets import ViewExplorer
    from iceexplore.writing import SchemaLike

__all__ = ["View", "ViewSimulation", "create_view", "open_view", "simulate_view"]


def open_view(
    source: str | PathLike[str] | Sequence[str] | Any,  # noqa: ANN401  (PyIceberg's View, which old versions lack)
    *,
    catalog: CatalogLike | Catalog[Any, View] | None = None,
    moved: Mapping[str, str | PathLike[str]] | None = None,
    version: int | str | None = None,
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    properties: Mapping[str, str] | None = None,
    strict: bool = False,
) -> View:
    """Open a view. Only its metadata file is read, and no query is run.

    Parameters
    ----------
    source
        A view folder, a metadata file, a URI of either, a zip, a PyIceberg ``View``, or, with ``catalog``, a view
        identifier.
    catalog
        The name of a PyIceberg catalog, a catalog object, or the result of `open_catalog`. Views are found in REST
        catalogs, and in SQL catalogs into which other engines have written views.
    moved
        New locations of moved files, by their location prefix in the metadata.
    version
        A metadata file, by number, name or location. By default the newest. (`View.at` chooses a version of the view.)
    allow
        Further locations that may be read.
    properties
        Options of the catalog or the storage.
    strict
        Raise an error at the first problem instead of collecting it in ``.problems``.

    Raises
    ------
    MetadataNotFoundError
        There is no view; the message lists what was found instead.
    FormatError
        The metadata file is not valid JSON (the message has line and column), or is not view metadata.
    UnsupportedError
        It is the metadata of a table, or of a view with a format-version above 1.
    AccessDeniedError, StorageError, CatalogError, OutsideRootsError
        The storage or catalog refused access or failed.

    Examples
    --------
    >>> v = ix.open_view("warehouse/db/daily")
    >>> v  # the card, with the SQL of each dialect
    >>> v.at(timestamp="2024-03-01").sql("spark")
    >>> v.inspect.versions()
    """
    if isinstance(source, Catalog):
        raise OptionError(f"this is a catalog, not a view: catalog.open_view('db.daily') opens one:\n{source!r}")
    if properties is not None and not isinstance(properties, Mapping):
        raise OptionError(f"properties={type(properties).__name__}: give names and values, as a dictionary")
    source, catalog, allow, properties = catalog_arguments(source, catalog, allow, properties)
    return View(
        views.open_view_state(
            source, catalog=catalog, moved=moved, version=version, allow=allow, properties=properties, strict=strict
        )
    )


def create_view(
    path: str | PathLike[str],
    sql: SqlLike | View,
    schema: SchemaLike = None,
    *,
    dialect: str | None = None,
    default_catalog: str | None = None,
    default_namespace: NamespaceLike | None = None,
    properties: Mapping[str, str] | None = None,
    summary: Mapping[str, str] | None = None,
    catalog: CatalogLike | Catalog[Any, View] | None = None,
    location: str | None = None,
) -> View:
    """Create a real view, which engines can query. Nothing that exists is replaced.

    Parameters
    ----------
    path
        An empty local folder, or one to be created; with ``catalog``, the view's name.
    sql
        The query with ``dialect``, or queries by dialect: ``{"spark": "SELECT ...", "trino": "SELECT ..."}``. Only the
        SELECT statement, without CREATE VIEW. Or a View, for example a simulation: its versions are copied, and the
        one that is shown becomes current.
    schema
        The columns: types by name, ``{"day": "date", "trips": ("long", "Number of trips")}``, where a tuple adds a
        comment; or a PyArrow, PyIceberg or iceexplore schema, or a data frame.
    default_catalog
        The catalog for names in the SQL without one; by default the catalog in which the view is.
    default_namespace
        The namespace for names in the SQL without one: ``"db"`` or ``("a", "b")``; by default the view's own, if it is
        created in a catalog.
    properties
        View properties: ``comment``, ``version.history.num-entries``, ``replace.drop-dialect.allowed``, ...
    summary
        The summary of the version; by default iceexplore's name and version as ``engine-name`` and ``engine-version``.
    catalog
        A PyIceberg catalog, its name, or the result of `open_catalog`: a SQL catalog, whose tables Java's JDBC catalog
        shares, or a REST catalog, which writes the metadata itself.
    location
        With ``catalog``, the view's local folder; by default one in the catalog's warehouse.

    Raises
    ------
    OptionError, RuleError
        The folder is not empty, or the SQL, the schema or another argument is invalid.
    UnsupportedError
        The folder is not on the local disk, or the catalog cannot hold views.
    CatalogError
        The catalog already has a table or view of this name, lacks the namespace, or failed.

    Examples
    --------
    >>> ix.create_view(
    ...     "db.daily", "SELECT day, count(*) AS trips FROM journeys GROUP BY day",
    ...     {"day": "date", "trips": "long"}, dialect="spark", catalog="prod",
    ... )
    """
    given: Any = catalog.listing.catalog if isinstance(catalog, Catalog) else catalog
    if isinstance(sql, View):
        others = [schema, dialect, default_catalog, default_namespace, summary]
        if any(one is not None for one in others):
            raise OptionError("a View already has its schema, dialects, defaults and summary: give only properties=")
        source: ViewQuery | views.ViewState = sql.state
    else:
        if default_namespace is None:
            default_namespace = str(path).rpartition(".")[0] if given is not None else ()
        source = ix.commits.view_query(
            None, sql, schema, dialect=dialect, default_catalog=default_catalog,
            default_namespace=default_namespace, summary=_summary(summary),
        )  # fmt: skip
    found, found_in = ix.labs.create_view_files(path, source, properties=properties, catalog=given, location=location)
    return open_view(found, catalog=found_in)


def simulate_view(
    sql: SqlLike,
    schema: SchemaLike,
    *,
    dialect: str | None = None,
    default_catalog: str | None = None,
    default_namespace: NamespaceLike = (),
    properties: Mapping[str, str] | None = None,
    summary: Mapping[str, str] | None = None,
    location: str = "/warehouse/db/view",
    timestamp: object = None,
    early_draft: bool = False,
    overlay: str | PathLike[str] | None = None,
    seed: int | str | None = None,
) -> ViewSimulation:
    """Create a view that exists only in a simulation, to try operations on it.

    Parameters
    ----------
    sql, schema, dialect, default_catalog, default_namespace, properties, summary
        As for `create_view`.
    location
        The location in the metadata; nothing is written there. Its last part is the view's name.
    timestamp
        The time of its creation, as for `View.at`; by default now.
    early_draft
        Write the form of the early draft of the spec, which engines do not read.
    overlay, seed
        As for `View.simulate`.

    Raises
    ------
    OptionError, RuleError
        An argument is invalid.
    """
    query = ix.commits.view_query(
        None, sql, schema, dialect=dialect, default_catalog=default_catalog, default_namespace=default_namespace,
        summary=_summary(summary),
    )  # fmt: skip
    state = ix.commits.new_view_state(
        query, location=location, properties=properties, seed=seed, timestamp=timestamp, early_draft=early_draft
    )
    return _simulation(state, overlay=overlay, seed=seed, early_draft=early_draft)


def _simulation(state: views.ViewState, **how: Any) -> ViewSimulation:
    return ViewSimulation(ix.commits.start_view_sandbox(state, **how))


def _summary(given: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the summary of a version: the given one, or the name and version of this engine."""
    return {"engine-name": "iceexplore", "engine-version": ix.__version__} if given is None else given


class View:
    """An Iceberg view at one of its versions. Immutable; displays as a card.

    Use `iceexplore.open_view` to get one.
    """

    def __init__(self, state: views.ViewState) -> None:
        self._state = state

    @property
    def state(self) -> views.ViewState:
        """The state that the view shows."""
        return self._state

    @property
    def name(self) -> str:
        """The catalog's identifier, or the folder's name."""
        return self._state.name

    @property
    def location(self) -> str:
        """The view's base location."""
        return self._state.metadata.location

    @property
    def metadata(self) -> views.ViewMetadata:
        """The metadata file as records; ``.raw`` is the JSON."""
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        """The location of the metadata file."""
        return self._state.metadata_location

    @property
    def format_version(self) -> int:
        """The format version: 1."""
        return self._state.metadata.format_version

    @property
    def uuid(self) -> str | None:
        """The view's UUID; None in early drafts of the spec."""
        return self._state.metadata.view_uuid

    @property
    def version(self) -> views.ViewVersion | None:
        """The version that is shown; None if the metadata has none."""
        return self._state.version

    @property
    def versions(self) -> tuple[views.ViewVersion, ...]:
        """Every version in the metadata."""
        return self._state.metadata.versions

    @property
    def schema(self) -> Schema | None:
        """The columns of the version that is shown, with the aliases of an early draft; None if there is no schema."""
        return self._state.schema

    @property
    def properties(self) -> Mapping[str, str]:
        """The view's properties."""
        return self._state.metadata.properties

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects in which the shown version's query is stored."""
        return () if self._state.version is None else self._state.version.dialects

    @property
    def problems(self) -> Problems:
        """The problems found in the metadata."""
        return self._state.problems

    @property
    def reads(self) -> ReadLog:
        """The log of what has been read."""
        return self._state.storage.reads

    @property
    def moved(self) -> Mapping[str, str]:
        """The prefixes of moved files, each with its current location."""
        return self._state.storage.moves.shown

    @property
    def inspect(self) -> ViewInspect:
        """The metadata tables: ``v.inspect.versions()`` is a data frame."""
        from iceexplore.inspect import ViewInspect

        return ViewInspect(self._state)

    def sql(self, dialect: str | None = None, *, translate: bool = True) -> views.ViewSql:
        """Return the query of the version that is shown: the stored text, or a translation that is labelled as such.

        Parameters
        ----------
        dialect
            A dialect, without regard to case. Not needed if the query is stored in one dialect only.
        translate
            False: raise an error if the query is not stored in this dialect, instead of translating it with sqlglot.

        Returns
        -------
        ViewSql
            A string with ``dialect``, ``translated_from`` (None for a stored text) and ``notes`` on what may differ.

        Raises
        ------
        OptionError
            The query can neither be found nor translated, or it is stored in several dialects and none is given.
        """
        return views.sql_in(self._state, dialect, translate=translate)

    def at(self, version: int | str | None = None, *, timestamp: object = None) -> View:
        """Return the view as of a version or a time. Give exactly one of the arguments.

        Parameters
        ----------
        version
            A version id.
        timestamp
            A datetime, a date, ISO text or milliseconds since the epoch; naive times are UTC. Looked up in the version
            log, so that a time after a rollback gives the version that the view was rolled back to.

        Raises
        ------
        SnapshotNotFoundError
            There is no such version, or the view did not exist at this time; the nearest versions are listed.
        OptionError
            None of the arguments is given, or both are.
        """
        return View(views.view_at(self._state, version=version, timestamp=timestamp))

    def diff(
        self, a: View | views.ViewVersion | int | str, b: View | views.ViewVersion | int | str | None = None
    ) -> views.ViewDiff:
        """Compare ``a`` with ``b``: SQL by dialect, columns by field id, defaults, properties.

        Queries are compared as syntax trees, if sqlglot knows the dialect and can parse them, otherwise as texts.

        Parameters
        ----------
        a, b
            A version, its id, or a View, possibly of a different view. Without ``b``, ``a`` is compared with the
            version that is shown.

        Examples
        --------
        >>> d = v.diff(1, 2)
        >>> d.changes  # in words
        >>> d.side_by_side("spark")
        """
        after = self._state if b is None else self._resolve(b)
        return views.view_diff(self._resolve(a), after)

    def _resolve(self, at: View | views.ViewVersion | int | str) -> views.ViewState:
        return views.resolve_view(self._state, at._state if isinstance(at, View) else at)

    def lineage(
        self,
        dialect: str | None = None,
        *,
        open_sources: bool = True,
        catalog: CatalogLike | Catalog[Any, View] | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> views.ViewLineage:
        """Return the tables and columns that the query reads, directly and through other views.

        Unqualified names are resolved by the version's default catalog and namespace. The tables and views that the
        query names are opened where possible (one metadata file each). Their schemas show which table an unqualified
        column belongs to, which columns a star returns, and mismatches: missing tables and columns, different types,
        cycles of views.

        Parameters
        ----------
        dialect
            By default the first stored one that can be parsed.
        open_sources
            False: open nothing.
        catalog
            The catalog for names that do not include one; by default the catalog that the view was opened from.
        tables
            Tables and views by name: paths, Tables or Views. All others are looked up in the catalog, or, for a view in
            a folder, in the folders above it, as ``<namespace>/<name>`` and ``<namespace>.db/<name>``.

        Raises
        ------
        OptionError
            The dialect is not stored, no SQL can be parsed, or an argument is invalid.
        UnsupportedError
            The query has too many columns.
        """
        return views.view_lineage(self._state, dialect, self._opener(open_sources, catalog, tables))

    def compare_dialects(self, a: str | None = None, b: str | None = None) -> views.DialectComparison:
        """Compare two dialects of the version that is shown: whether their queries are the same, and where they differ.

        Both queries are translated into a common form, and their syntax trees are compared.

        Parameters
        ----------
        a, b
            Stored dialects. Not needed if the version stores exactly two.

        Raises
        ------
        OptionError
            A dialect is not stored, or it is not clear which two are meant.

        Examples
        --------
        >>> v.compare_dialects("spark", "trino").same_query
        """
        return views.compare_dialects(self._state, a, b)

    def freshness(
        self,
        *,
        catalog: CatalogLike | Catalog[Any, View] | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> views.Freshness:
        """Judge whether a materialized view's storage table has the result of its query.

        Materialized views are a proposal. The states that the last refresh recorded in the storage table are compared
        with the version that is shown and with the tables and views that its query reads, one metadata file each.

        Parameters
        ----------
        catalog, tables
            Where the storage table and the sources are, as for `lineage`.

        Returns
        -------
        Freshness
            ``status`` is ``fresh``, ``stale`` or ``unknowable``; ``rule`` says why; ``sources`` compares each source.

        Raises
        ------
        OptionError
            It is not a materialized view.
        """
        opener = self._opener(True, catalog, tables)
        assert opener is not None
        return views.view_freshness(self._state, opener)

    # Rows -------------------------------------------------------------------------------------------------------------

    def to_arrow(
        self,
        dialect: str | None = None,
        *,
        limit: int | None = None,
        tables_at: object = None,
        catalog: CatalogLike | Catalog[Any, View] | None = None,
        tables: Mapping[str, Any] | None = None,
        max_bytes: int | None = None,
    ) -> pa.Table:
        """Run the query of the version that is shown, over any state of its tables, and return its rows as Arrow.

        No Java is needed: iceexplore reads the tables, with deletes applied, and DataFusion evaluates the query, which
        sqlglot translates. Of each table only the columns and rows that the query needs are read, and held in memory.
        A warning names the functions and casts whose results may differ from those of the engine that the query was
        written for; `sql` with ``"datafusion"`` shows the translation. The columns have the names and types of the
        view's schema.

        Parameters
        ----------
        dialect
            The stored dialect to run. Needed only if several dialects store different queries.
        limit
            Maximum number of rows.
        tables_at
            A time, for the states that the tables had then; or a mapping of table names to snapshot ids, branches,
            tags, times or Tables. By default the current states. Views inside this one are at their current version.
        catalog, tables
            Where the tables and views of the query are, as for `lineage`.
        max_bytes
            Memory limit in bytes for the rows that are read, for the evaluation, and for the result; by default
            `iceexplore.memory_limit`.

        Raises
        ------
        OptionError
            An argument is invalid, or several dialects store different queries and none is given.
        MetadataNotFoundError, SnapshotNotFoundError
            A table or view that the query names was not found, or not in this state.
        UnsupportedError
            sqlglot or DataFusion cannot handle the query: `scan` runs it on Spark.
        FormatError, FileMissingError
            A table cannot be read, or the query does not return the columns of the view's schema.
        MemoryLimitError
            ``max_bytes`` is exceeded.

        Examples
        --------
        >>> v.at(timestamp="2024-03-01").to_arrow(tables_at="2024-01-31")  # the view of March over the data of January
        """
        from iceexplore.queries import view_to_arrow

        return view_to_arrow(self._plan(dialect, tables_at, catalog, tables), limit=limit, max_bytes=max_bytes)

    def head(
        self,
        n: int = 10,
        dialect: str | None = None,
        *,
        tables_at: object = None,
        catalog: CatalogLike | Catalog[Any, View] | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Run the query and return its first rows as a pandas data frame; see `to_arrow`."""
        from iceexplore.graph import to_frame

        return to_frame(self.to_arrow(dialect, limit=n, tables_at=tables_at, catalog=catalog, tables=tables))

    def scan(
        self,
        spark: SparkSession,
        dialect: str | None = None,
        *,
        tables_at: object = None,
        catalog: CatalogLike | Catalog[Any, View] | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> DataFrame:
        """Return the rows of the version that is shown as a Spark DataFrame, over any state of its tables.

        The tables are read as `iceexplore.Table.scan` reads them, so neither Iceberg's runtime nor a catalog in Spark
        is needed, and nothing is left in the session. A query in Spark's dialect is run as sqlglot writes it with the
        tables' names replaced; one in another dialect is translated.

        Parameters
        ----------
        spark
            A session of Spark 3.5 or later, or of Spark Connect 4.0 or later.
        dialect, tables_at, catalog, tables
            As for `to_arrow`; Spark's dialect is preferred.

        Raises
        ------
        OptionError, MetadataNotFoundError, SnapshotNotFoundError, FormatError
            As for `to_arrow`.
        UnsupportedError
            sqlglot cannot translate the query, or Spark refuses it.
        """
        from iceexplore.queries import view_on_spark

        return view_on_spark(self._plan(dialect, tables_at, catalog, tables, "spark"), spark)

    def _plan(
        self,
        dialect: str | None,
        tables_at: object,
        catalog: CatalogLike | Catalog[Any, View] | None,
        tables: Mapping[str, Any] | None,
        prefer: str | None = None,
    ) -> ViewPlan:
        from iceexplore.queries import plan_view

        opener = self._opener(True, catalog, tables)
        assert opener is not None
        return plan_view(self._state, opener, dialect, tables_at, prefer)

    # ------------------------------------------------------------------------------------------------------------------

    def tree(
        self,
        *,
        versions: object = None,
        open_sources: bool = True,
        catalog: CatalogLike | Catalog[Any, View] | None = None,
        tables: Mapping[str, Any] | None = None,
        max_nodes: int = 120,
    ) -> SceneDrawing:
        """Draw the view: its versions, the SQL of each dialect, and the tables and views that it reads.

        Parameters
        ----------
        versions
            None: the version that is shown; ``"all"``: every version, the most recently current first; or a list of
            versions or ids.
        open_sources, catalog, tables
            As for `lineage`; only what the shown version reads is opened.
        max_nodes
            The approximate number of nodes; the rest is folded.

        Raises
        ------
        OptionError, SnapshotNotFoundError
            An argument is invalid, or there is no such version.
        """
        opener = self._opener(open_sources, catalog, tables)
        return views.view_tree(self._state, versions, opener, max_nodes)

    def _opener(
        self, open_sources: bool, catalog: CatalogLike | Catalog[Any, View] | None, tables: Mapping[str, Any] | None
    ) -> views.OpenSource | None:
        if not open_sources:
            return None
        from iceexplore._view_sources import source_opener

        given = catalog.listing.catalog if isinstance(catalog, Catalog) else catalog
        return source_opener(self._state, given, tables, lambda one: getattr(one, "state", one))

    def check(
        self,
        *,
        only: Iterable[str] | None = None,
        skip: Iterable[str] = (),
        baseline: Report | Iterable[Finding] | None = None,
        open_sources: bool = True,
        catalog: CatalogLike | Catalog[Any, View] | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> Report:
        """Find what is broken in the view, and what it means for engines.

        Besides the view's metadata file, up to 20 other metadata files in its folder are read, to find versions that
        were changed after they were created. The metadata file of each table and view that the queries read is read,
        too, to find columns that are missing, have different types, or have changed since the version was created. No
        query is run.

        Parameters
        ----------
        only, skip
            Problem codes (`iceexplore.errors.PROBLEM_KINDS`) to report alone, or to leave out.
        baseline
            An earlier report; its findings are left out.
        open_sources, catalog, tables
            As for `lineage`.

        Returns
        -------
        Report
            The findings, worst first, as for tables; ``report.ok`` is True if none is worse than untidy.

        Raises
        ------
        OptionError
            A code is unknown.
        """
        from iceexplore.doctor import examine_view

        opener = self._opener(open_sources, catalog, tables)
        return examine_view(self._state, opener, only=only, skip=skip, baseline=baseline)

    def explore(
        self,
        *,
        open_sources: bool = True,
        catalog: CatalogLike | Catalog[Any, View] | None = None,
        tables: Mapping[str, Any] | None = None,
        height: float | str | None = None,
        text_size: int | None = None,
    ) -> ViewExplorer:
        """Open the interactive explorer: versions on a timeline, SQL, differences, lineage, problems and details.

        Parameters
        ----------
        open_sources, catalog, tables
            As for `lineage`. Sources are opened when the lineage or the problems are first shown.
        height, text_size
            As for `iceexplore.Table.explore`.
        """
        from iceexplore.widgets import explore_view

        opener = self._opener(open_sources, catalog, tables)
        return explore_view(self, opener, height=height, text_size=text_size)

    def simulate(
        self,
        *,
        overlay: str | PathLike[str] | None = None,
        seed: int | str | None = None,
        early_draft: bool = False,
    ) -> ViewSimulation:
        """Create a simulation: a View with commits, which are written to an overlay. This view is never written.

        In a simulation of a time-travelled view, the first commit makes the version that is shown current.

        Parameters
        ----------
        overlay
            An empty local folder for the simulation's files; by default a temporary folder that is removed with it.
        seed
            Makes the UUID, file names and times reproducible.
        early_draft
            Keep the form of an early draft of the spec. By default the first commit to such a view writes the form of
            the adopted spec, the one that engines read.

        Raises
        ------
        FormatError
            No commit can be made on the metadata, for example because it has no current version.
        OptionError
            The folder cannot be used.

        Examples
        --------
        >>> s = v.simulate()
        >>> s.replace("SELECT day, count(*) AS trips FROM journeys GROUP BY day", dialect="spark")
        >>> s.rollback(1)
        >>> s.inspect.version_log()
        """
        return _simulation(self._state, overlay=overlay, seed=seed, early_draft=early_draft)

    def save(self, path: str | PathLike[str], *, location: str | None = None) -> Saved:
        """Write the view's metadata into a new folder, completely or not at all; `open_view` opens it anywhere.

        Parameters
        ----------
        path
            A folder that is empty or does not exist.
        location
            The location in the written metadata; by default ``path``.

        Raises
        ------
        OptionError
            The folder is not empty, or not on the local disk.
        StorageError, AccessDeniedError
            The folder cannot be written.
        """
        return ix.commits.save_view(self._state, path, location=location)

    def refresh(self) -> View:
        """Return the newest state of the view as a new View; this one does not change.

        Raises
        ------
        TableChangedError
            The location now holds a different view.
        """
        return View(views.refreshed_view(self._state))

    def close(self) -> None:
        """Remove the temporary folder that a zip was extracted into."""
        self._state.storage.close()

    def __repr__(self) -> str:
        return card_text(views.view_card(self._state))

    def _repr_html_(self) -> str:
        return card_html(views.view_card(self._state))


class ViewSimulation(View):
    """A view with an overlay: commits write real metadata files into the overlay, and never into the view itself.

    Use `View.simulate` or `simulate_view` to create one. It shows the view as the commits would leave it, and follows
    the rules of Iceberg's Java library. Each commit changes it and returns its current version; views from `view` and
    `at` do not change. Commits are optimistic: if another writer (see `fork`) committed first, a commit is applied
    again to the newest state.

    Operations that change the current version take ``timestamp=``, the time of that change as for `View.at`; by default
    it is now. It must not be before the view's last change.
    """

    def __init__(self, sandbox: ViewSandbox) -> None:
        super().__init__(sandbox.state)
        self._sandbox = sandbox

    @property
    def view(self) -> View:
        """The current state as a View that later commits do not change."""
        return View(self._state)

    @property
    def overlay(self) -> str:
        """The folder that holds the simulation's files."""
        return self._sandbox.storage.overlay_folder

    @property
    def commits(self) -> tuple[ViewCommit, ...]:
        """The commits of this writer and its forks, with the number of their attempts."""
        return tuple(self._sandbox.records)

    @property
    def writes(self) -> WriteLog:
        """A log of every file written by this writer and its forks."""
        return self._sandbox.storage.writes

    def replace(
        self,
        sql: SqlLike,
        schema: SchemaLike = None,
        *,
        dialect: str | None = None,
        default_catalog: str | Keep | None = ...,
        default_namespace: NamespaceLike | Keep = ...,
        properties: Mapping[str, str] | None = None,
        summary: Mapping[str, str] | None = None,
        timestamp: object = None,
        retry: bool = True,
    ) -> views.ViewVersion:
        """Replace the query. If the view has an identical version, that one becomes current again; its id is reused.

        Versions are identical if they have the same SQL in the same order, and the same schema, defaults and summary.

        Parameters
        ----------
        sql
            The SQL of each dialect: ``{"spark": "SELECT ...", "trino": "SELECT ..."}``. Or one text, in ``dialect``,
            which is not needed if the view has one dialect. SQL for every dialect of the current version is needed,
            unless the property ``replace.drop-dialect.allowed`` is ``"true"``.
        schema
            The columns, as for `create_view`; columns keep their field ids by name. By default those of a version with
            the same SQL, or else those of the current version, if the query is known to return the same names.
        default_catalog, default_namespace
            For names in the SQL; by default those of the current version. None is the catalog in which the view is.
        properties
            Properties to set in the same commit.
        summary
            The summary of the version; by default iceexplore's name and version.
        retry
            False: raise a conflict if another writer has committed since this one's state, as engines do for ``CREATE
            OR REPLACE VIEW``.

        Raises
        ------
        OptionError
            An argument is invalid or missing.
        RuleError
            ``view-dialects-kept``, ``view-columns``, ``view-one-sql-per-dialect``.
        CommitConflictError
            ``view-unchanged``: another writer has committed first, and ``retry`` is False or the attempts ran out.
        UnsupportedError
            It is a materialized view.
        """

        def change(document: Mapping[str, Any], timestamp_ms: int) -> dict[str, Any]:
            query = ix.commits.view_query(
                document, sql, schema, dialect=dialect, default_catalog=default_catalog,
                default_namespace=default_namespace, summary=_summary(summary),
            )  # fmt: skip
            return ix.commits.replace_view_version(document, query, timestamp_ms=timestamp_ms, properties=properties)

        return self._commit(change, "replace", timestamp, retry=retry)

    def add_dialects(
        self, sql: Mapping[str, str], *, summary: Mapping[str, str] | None = None, timestamp: object = None
    ) -> views.ViewVersion:
        """Add SQL for further dialects, in a new version: a version never changes.

        Parameters
        ----------
        sql
            The SQL of each dialect. ``{"duckdb": v.sql("duckdb")}`` adds a translation.

        Raises
        ------
        RuleError
            ``view-one-sql-per-dialect``: the current version has SQL of the dialect; ``view-columns``.
        CommitConflictError
            ``view-unchanged``: another writer has meanwhile replaced the query, so the new SQL no longer matches it.
        """
        texts = ix.commits.given_sql(sql)
        current = self._sandbox.state.version
        expected = {} if current is None else {r.dialect or "": r.sql or "" for r in current.sql}

        def change(document: Mapping[str, Any], timestamp_ms: int) -> dict[str, Any]:
            return ix.commits.add_view_dialects(
                document, texts, _summary(summary), timestamp_ms=timestamp_ms, expected=expected
            )

        return self._commit(change, "add_dialects", timestamp)

    def rollback(self, version: View | views.ViewVersion | int | str, *, timestamp: object = None) -> views.ViewVersion:
        """Make another version current; the version log gets an entry for it, and its id stays the same.

        Raises
        ------
        SnapshotNotFoundError
            The view has no such version.
        RuleError
            ``view-dialects-kept``: the version has no SQL of a dialect that the current one has.
        """
        if isinstance(version, int):
            to = version  # may be a version of another writer, not seen here yet
        else:
            found = self._resolve(version).version
            if found is None:
                raise OptionError(f"rollback(): {version!r} has no version")
            to = found.version_id
        return self._commit(
            lambda document, ms: ix.commits.rollback_view(document, to, timestamp_ms=ms), "rollback", timestamp
        )

    def set_properties(
        self, properties: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()
    ) -> views.ViewVersion:
        """Set and remove view properties. A lower ``version.history.num-entries`` expires versions at once.

        Raises
        ------
        OptionError
            A name or value is invalid.
        """
        gone = (remove,) if isinstance(remove, str) else tuple(remove)
        return self._commit(
            lambda document, _: ix.commits.set_view_properties(document, properties, gone), "set_properties"
        )

    def remove_properties(self, *names: str) -> views.ViewVersion:
        """Remove view properties; names that the view does not have are ignored."""
        return self.set_properties(remove=names)

    def set_location(self, location: str) -> views.ViewVersion:
        """Change the base location; the next metadata file is written there.

        Raises
        ------
        UnsupportedError
            The view's metadata files are numbered, as in a folder without a catalog, so they must stay together.
        """
        return self._commit(lambda document, _: ix.commits.set_view_location(document, location), "set_location")

    def fork(self) -> ViewSimulation:
        """Return a second writer to the same simulated view, which does not see this one's later commits.

        The writer that commits second is rebased on the other's commit and retried, or raises `CommitConflictError`.
        """
        return ViewSimulation(self._sandbox.fork())

    def copy(self) -> ViewSimulation:
        """Return an independent copy of the simulation in its current state, to try something out."""
        return ViewSimulation(self._sandbox.copy())

    def __deepcopy__(self, memo: object) -> ViewSimulation:
        return self.copy()

    def refresh(self) -> View:
        """Continue from the newest commit of any writer; return this view."""
        self._state = self._sandbox.refresh()
        return self

    def save(self, path: str | PathLike[str], *, location: str | None = None) -> Saved:
        """Write the metadata files of the simulation into a new folder; see `View.save`.

        To make a view of it in a catalog, give the simulation to `create_view`.
        """
        return ix.commits.save_view(self._state, path, location=location, earlier=self._sandbox.published())

    def close(self) -> None:
        """Remove the temporary folder of this simulation and its forks; a folder given as ``overlay=`` is kept."""
        self._sandbox.close()

    def _commit(self, change: Any, what: str, timestamp: object = None, *, retry: bool = True) -> views.ViewVersion:  # noqa: ANN401  (a ViewChange)
        self._state = self._sandbox.commit(change, what, timestamp=timestamp, retry=retry)
        version = self._state.version
        assert version is not None
        return version
