"""List the tables and views of a catalog or of a warehouse folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iceexplore.errors import FileMissingError, OptionError
from iceexplore.storage._catalog import SourceLike
from iceexplore.storage._catalog_contents import (
    CatalogLike,
    NamespaceContents,
    catalog_contents,
    catalog_name,
    is_catalog,
    is_thread_bound,
    load_named,
)
from iceexplore.storage._location import basename, canonical, is_local, is_uri, relative_to
from iceexplore.storage._roots import allowed_places
from iceexplore.storage._search import Search
from iceexplore.storage._storage import Storage
from iceexplore.storage.finding._find import FoundFolder, found_folder, missing_path, tables_below
from iceexplore.storage.finding._open import spelled

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["ListedTable", "Listing", "list_tables"]

#: Maximum numbers of levels, listed folders and tables: on this machine, and in remote stores, where each folder costs
#: a request.
_LOCAL = 12, 200_000, 50_000
_REMOTE = 6, 5_000, 10_000


@dataclass(frozen=True)
class ListedTable:
    """A table or view that was found.

    Attributes
    ----------
    name
        The name to display: the identifier in the catalog, or the path below the folder.
    source, catalog
        What `open_source` takes to open it.
    namespace
        The parts of its namespace; in a warehouse folder, the folders in its path.
    """

    name: str
    source: Any
    catalog: Any = None
    namespace: tuple[str, ...] = ()


class Listing:
    """The namespaces, tables and views of a catalog or folder that have been listed so far.

    Attributes
    ----------
    name
        The catalog's name, or the folder.
    catalog
        PyIceberg's catalog; None for a folder.
    is_thread_bound
        Whether only the thread that made the catalog can load its tables.
    """

    def __init__(self, name: str, search: Search[NamespaceContents], catalog: Catalog | None = None) -> None:
        self.name = name
        self.catalog = catalog
        self.is_thread_bound = is_thread_bound(catalog)
        self._search = search

    def run(self, time_limit: float | None = None) -> bool:
        """Continue listing to the end or for ``time_limit`` seconds; return whether everything is listed.

        Raises
        ------
        CatalogError, AccessDeniedError, StorageError
            The catalog or folder cannot be listed.
        """
        return self._search.run(time_limit)

    @property
    def complete(self) -> bool:
        """True if everything has been listed; False if a limit (on time, folders or namespaces) ended the listing."""
        return self._search.complete and not any(one.more for one in self._found())

    @property
    def tables(self) -> tuple[ListedTable, ...]:
        """The tables, sorted by name."""
        return self._listed(views=False)

    @property
    def views(self) -> tuple[ListedTable, ...]:
        """The views, sorted by name."""
        return self._listed(views=True)

    @property
    def namespaces(self) -> tuple[tuple[str, ...], ...]:
        """The namespaces, sorted; in a folder those that hold a table or view."""
        return tuple(sorted({one.namespace for one in self._found()} - {()}))

    @property
    def failed(self) -> dict[str, str]:
        """Namespaces whose tables could not be listed, with the reasons."""
        return {".".join(one.namespace): one.failed for one in self._found() if one.failed is not None}

    @property
    def no_views(self) -> str | None:
        """Why views could not be listed; None if they were."""
        return next((one.no_views for one in self._found() if one.no_views is not None), None)

    def _found(self) -> list[NamespaceContents]:
        return list(self._search.found)  # a copy, because the search may still add items in its thread

    def _listed(self, *, views: bool) -> tuple[ListedTable, ...]:
        found = [self._named(name) for one in self._found() for name in (one.views if views else one.tables)]
        return tuple(sorted({one.name: one for one in found}.values(), key=lambda one: one.name))

    def _named(self, identifier: tuple[str, ...]) -> ListedTable:
        if self.catalog is not None:
            return ListedTable(".".join(identifier), identifier, self.catalog, identifier[:-1])
        name = "/".join(identifier) or basename(self.name)
        return ListedTable(name, "/".join((self.name, *identifier)), None, identifier[:-1])


def list_tables(
    source: SourceLike | CatalogLike, *, properties: Mapping[str, str] | None = None, allow: object = ()
) -> Listing:
    """Return a listing of a catalog, given as an object or by its name, or of a folder; `Listing.run` fills it.

    A text is a folder if it has a slash, begins with a dot or tilde, or names an existing folder; otherwise it is the
    name of a catalog. If an object has a `Listing` as its attribute ``listing``, that one is returned.

    Raises
    ------
    OptionError
        The source is neither a catalog nor a text nor a path.
    CatalogError, MetadataNotFoundError, AccessDeniedError, StorageError, MissingDependencyError
        The catalog or the folder does not exist or cannot be read.
    """
    known = getattr(source, "listing", None)
    if isinstance(known, Listing):
        return known
    if is_catalog(source):
        return _of_catalog(source)
    if not isinstance(source, (str, os.PathLike)):
        raise OptionError(f"give a catalog, the name of one, or a warehouse folder, not {type(source).__name__}")
    text = os.fspath(source)
    here = isinstance(source, os.PathLike) or "/" in text or is_uri(text) or text.startswith(("~", "."))
    if not here and text.strip() and not os.path.isdir(text):
        return _of_catalog(load_named(text, properties or {}))
    return _of_folder(canonical(spelled(text)), allowed_places(allow), properties)


def _of_catalog(catalog: Catalog) -> Listing:
    search = Search(lambda: catalog_contents(catalog), own_thread=not is_thread_bound(catalog))
    return Listing(catalog_name(catalog), search, catalog)


def _of_folder(place: str, allow: tuple[str, ...], properties: Mapping[str, str] | None) -> Listing:
    storage = Storage(place, allow=allow, properties=properties)
    try:
        entries = storage.entries(place)
    except FileMissingError:
        raise missing_path(storage, place) from None

    def search() -> Iterator[NamespaceContents]:
        itself = found_folder(storage, place, entries)
        if itself is not None:
            yield _contents(itself, place)
            return
        below = tables_below(storage, entries, *(_LOCAL if is_local(place) else _REMOTE))
        while True:
            try:
                yield _contents(next(below), place)
            except StopIteration as end:
                if not end.value:
                    yield NamespaceContents((), more=True)
                return

    return Listing(place, Search(search))


def _contents(found: FoundFolder, place: str) -> NamespaceContents:
    identifier = tuple((relative_to(found.place, place) or "").split("/")) if found.place != place else ()
    one = (identifier,)
    return NamespaceContents(identifier[:-1], views=one) if found.is_view else NamespaceContents(identifier[:-1], one)
