"""List the tables of a catalog or of a warehouse folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iceexplore.errors import FileMissingError, OptionError
from iceexplore.storage._catalog import CatalogLike, SourceLike, tables_of
from iceexplore.storage._location import basename, canonical, is_local, is_uri, relative_to
from iceexplore.storage._roots import allowed_places
from iceexplore.storage._storage import Storage
from iceexplore.storage.finding._find import is_table_folder, missing_path, tables_below
from iceexplore.storage.finding._open import spelled

__all__ = ["ListedTable", "TableListing", "list_tables"]

#: Depth, folders that are listed, and tables: for this machine, and for remote stores, where each costs a request.
_LOCAL = 12, 200_000, 50_000
_REMOTE = 6, 5_000, 10_000


@dataclass(frozen=True)
class ListedTable:
    """A table that was found: its name for people, and the ``source`` and ``catalog`` to open it with."""

    name: str
    source: Any
    catalog: Any = None


@dataclass(frozen=True)
class TableListing:
    """The tables of a catalog or folder.

    Attributes
    ----------
    name
        The catalog's name, or the folder.
    tables
        By name.
    failed
        Namespaces that could not be listed, with the reasons.
    complete
        False if a limit ended the search through a folder.
    """

    name: str
    tables: tuple[ListedTable, ...]
    failed: Mapping[str, str]
    complete: bool


def list_tables(
    source: SourceLike | CatalogLike, *, properties: Mapping[str, str] | None = None, allow: object = ()
) -> TableListing:
    """List the tables of a catalog, given as an object or by its name, or below a folder.

    A text is a folder if it has a slash or names one that exists, else the name of a catalog.

    Raises
    ------
    OptionError
        The source is neither.
    CatalogError, MetadataNotFoundError, AccessDeniedError, StorageError
        The catalog or the folder does not exist or cannot be listed.
    """
    if hasattr(source, "list_tables") and hasattr(source, "list_namespaces"):
        return _of_catalog(source, properties or {})
    if not isinstance(source, (str, os.PathLike)):
        raise OptionError(f"give a catalog, the name of one, or a warehouse folder, not {type(source).__name__}")
    text = os.fspath(source)
    here = isinstance(source, os.PathLike) or "/" in text or is_uri(text) or text.startswith(("~", "."))
    if not here and text.strip() and not os.path.isdir(text):
        return _of_catalog(text, properties or {})
    return _of_folder(canonical(spelled(text)), allowed_places(allow), properties)


def _of_catalog(catalog: CatalogLike, properties: Mapping[str, str]) -> TableListing:
    loaded, identifiers, failed = tables_of(catalog, properties)
    tables = {".".join(one): ListedTable(".".join(one), one, loaded) for one in identifiers}
    name = str(getattr(loaded, "name", catalog))
    return TableListing(name, tuple(tables[n] for n in sorted(tables)), failed, True)


def _of_folder(place: str, allow: tuple[str, ...], properties: Mapping[str, str] | None) -> TableListing:
    storage = Storage(place, allow=allow, properties=properties)
    try:
        entries = storage.entries(place)
    except FileMissingError:
        raise missing_path(storage, place) from None
    if is_table_folder(storage, entries):
        return TableListing(place, (ListedTable(basename(place), place),), {}, True)
    found: list[ListedTable] = []
    search = tables_below(storage, entries, *(_LOCAL if is_local(place) else _REMOTE))
    while True:
        try:
            folder = next(search)
        except StopIteration as end:
            complete = bool(end.value)
            break
        found.append(ListedTable(relative_to(folder, place) or folder, folder))
    return TableListing(place, tuple(sorted(found, key=lambda t: t.name)), {}, complete)
