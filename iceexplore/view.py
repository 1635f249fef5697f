"""The public function `open_view` and the class `View`. Each method delegates to a package in a line or two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from iceexplore import views
from iceexplore._catalog import Catalog, catalog_arguments
from iceexplore.errors import OptionError, Problems
from iceexplore.render import card_html, card_text

if TYPE_CHECKING:
    from iceexplore.doctor import Finding, Report
    from iceexplore.inspect import ViewInspect
    from iceexplore.metadata import Schema
    from iceexplore.render import SceneDrawing
    from iceexplore.storage import CatalogLike, ReadLog

__all__ = ["View", "open_view"]


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
        The current location of moved files, by the prefix that the metadata records for them.
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
        The metadata file does not contain valid JSON (the message has line and column), or no view metadata.
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
            It does not exist; the nearest ones are listed.
        OptionError
            None of the arguments, or both.
        """
        return View(views.view_at(self._state, version=version, timestamp=timestamp))

    def diff(
        self, a: View | views.ViewVersion | int | str, b: View | views.ViewVersion | int | str | None = None
    ) -> views.ViewDiff:
        """Compare ``a`` with ``b``: SQL by dialect, columns by field id, defaults, properties.

        Queries are compared as syntax trees, if sqlglot knows the dialect and can parse them, else as texts.

        Parameters
        ----------
        a, b
            A version, its id, or a View, which may be another view. Without ``b``, the version that is shown.

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
    ) -> Report:
        """Find what is broken in the view, and what it means for engines.

        Besides the metadata file, up to 20 other metadata files in its folder are read, to find versions that were
        changed after they were created. No query is run.

        Parameters
        ----------
        only, skip
            Problem codes (`iceexplore.errors.PROBLEM_KINDS`) to report alone, or to leave out.
        baseline
            An earlier report; its findings are left out.

        Returns
        -------
        Report
            The findings, worst first, as for tables; ``report.ok`` is True if none is worse than untidy.

        Raises
        ------
        OptionError
            An unknown code.
        """
        from iceexplore.doctor import examine_view

        return examine_view(self._state, only=only, skip=skip, baseline=baseline)

    def refresh(self) -> View:
        """Return the newest state of the view as a new View; this one does not change.

        Raises
        ------
        TableChangedError
            The location now holds another view.
        """
        return View(views.refreshed_view(self._state))

    def close(self) -> None:
        """Remove the temporary folder that a zip was extracted into."""
        self._state.storage.close()

    def __repr__(self) -> str:
        return card_text(views.view_card(self._state))

    def _repr_html_(self) -> str:
        return card_html(views.view_card(self._state))
