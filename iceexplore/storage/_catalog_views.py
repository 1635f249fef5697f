"""Views from PyIceberg catalogs, and PyIceberg's own View objects."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iceexplore.errors import CatalogError, OptionError
from iceexplore.storage._catalog import (
    CatalogTable,
    located,
    refuse_namespace,
    rest_answer,
    sql_location,
    warehouse_of,
)
from iceexplore.storage._catalog_contents import (
    CatalogLike,
    catalog_name,
    error_text,
    load_named,
    view_names,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["from_view", "is_catalog_view", "view_from_catalog"]


def is_catalog_view(source: object) -> bool:
    """Return whether an object is a PyIceberg View (or acts like one)."""
    return all(hasattr(source, name) for name in ("current_version", "metadata", "name")) and not hasattr(source, "io")


def from_view(view: Any) -> CatalogTable:  # noqa: ANN401  (PyIceberg's View, which 0.9 does not have)
    """Return a PyIceberg View as the catalog describes it; PyIceberg keeps no metadata location for it.

    Raises
    ------
    CatalogError
        The view's metadata cannot be written as JSON.
    """
    try:
        name = ".".join(view.name())
        document: dict[str, Any] = json.loads(view.metadata.model_dump_json(by_alias=True, exclude_none=True))
        location = str(document["location"])
    except Exception as e:
        raise CatalogError(f"the metadata of PyIceberg's view cannot be read: {error_text(e)}") from e
    return CatalogTable(
        name, location, None, None, None, sent=document, no_file="PyIceberg does not say where its file is"
    )


def view_from_catalog(identifier: object, catalog: CatalogLike, properties: Mapping[str, str]) -> CatalogTable:
    """Load a view from a catalog, given as an object or by its name in PyIceberg's configuration.

    Raises
    ------
    CatalogError
        The catalog or view does not exist (the message lists the nearest names), the name is that of a table or
        namespace, or PyIceberg failed.
    """
    if not isinstance(identifier, (str, tuple, list)):
        raise OptionError(f"with catalog= the source is a view's name ('db.daily'), not {type(identifier).__name__}")
    loaded = load_named(catalog, properties) if isinstance(catalog, str) else catalog
    if not hasattr(loaded, "load_table"):
        raise OptionError(f"catalog= takes a name or a PyIceberg catalog, not {type(catalog).__name__}")
    key: Any = identifier if isinstance(identifier, str) else tuple(identifier)
    shown = key if isinstance(key, str) else ".".join(key)
    try:
        found = _from_sql(loaded, key, shown) if hasattr(loaded, "engine") else _from_rest(loaded, key, shown)
    except Exception:
        found = None  # PyIceberg's own error, raised below, is more informative
    if found is not None:
        return found
    try:
        return from_view(loaded.load_view(key))
    except Exception as e:
        raise _refusal(loaded, key, shown, e) from e


def _from_sql(catalog: Catalog, key: str | tuple[str, ...], shown: str) -> CatalogTable | None:
    """Return a view of an SQL catalog: other engines put views into the SQL table from which PyIceberg reads tables."""
    if getattr(catalog, "_schema_version", None) != "v1":
        return None
    location = sql_location(catalog, key, "VIEW")
    if not location:
        return None
    return CatalogTable(shown, location, catalog._load_file_io({}, location), warehouse_of(catalog), None)


def _from_rest(catalog: Catalog, key: str | tuple[str, ...], shown: str) -> CatalogTable | None:
    """Return a view of a REST catalog, with the metadata exactly as sent: PyIceberg would drop keys unknown to it."""
    if not (hasattr(catalog, "_session") and hasattr(catalog, "url")):
        return None
    from pyiceberg.catalog.rest import Endpoints, IdentifierKind

    answer = rest_answer(catalog, Endpoints.load_view, catalog._split_identifier_for_path(key, IdentifierKind.VIEW))
    location, config = located(answer)
    sent = answer.get("metadata")
    document = sent if isinstance(sent, dict) else None
    if location:
        file_io = catalog._load_file_io(config, location)
        return CatalogTable(shown, location, file_io, warehouse_of(catalog), None, sent=document)
    folder = None if document is None else document.get("location")
    if not isinstance(folder, str) or not folder:
        return None
    return CatalogTable(shown, folder, None, None, None, sent=document, no_file="it named no metadata file")


def _refusal(catalog: Catalog, key: str | tuple[str, ...], shown: str, cause: Exception) -> CatalogError:
    """Return the error for a view that a catalog does not have or cannot load."""
    parts = tuple(key.split(".")) if isinstance(key, str) else key
    where = f"catalog {catalog_name(catalog)}"
    try:
        is_table = bool(catalog.table_exists(parts)) if hasattr(catalog, "table_exists") else False
    except Exception:
        is_table = False
    if is_table:
        return CatalogError(f"{shown} in {where} is a table, not a view: ix.open(name, catalog=...) opens it")
    refuse_namespace(catalog, key, cause, "view")
    is_missing = type(cause).__name__ in ("NoSuchViewError", "NoSuchNamespaceError")
    try:
        names = [".".join(name) for name in view_names(catalog, parts[:-1])]
    except Exception:
        if isinstance(cause, (NotImplementedError, AttributeError)):
            return CatalogError(
                f"PyIceberg's {type(catalog).__name__} cannot load views; open {shown} by its folder or metadata file"
            )
        names = []
    else:  # PyIceberg lists the views of an SQL catalog, but cannot load them: a view that is not listed is missing
        is_missing = is_missing or (isinstance(cause, NotImplementedError) and shown not in names)
    if not is_missing:
        return CatalogError(
            f"PyIceberg could not load {shown} from {where} ({error_text(cause)}); a view can also be opened by its "
            "folder or metadata file"
        )
    near = difflib.get_close_matches(shown, names, 5, 0.4) or sorted(names)[:10]
    return CatalogError(f"no view {shown} in {where}" + (f"; the nearest: {', '.join(near)}" if near else ""))
