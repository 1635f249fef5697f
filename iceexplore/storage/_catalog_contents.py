"""The namespaces, tables and views of a catalog."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from iceexplore.errors import CatalogError, MissingDependencyError
from iceexplore.storage._search import Search
from iceexplore.storage.stores._faults import short_message

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = [
    "CatalogLike",
    "NamespaceContents",
    "catalog_contents",
    "catalog_name",
    "error_text",
    "inside_text",
    "is_catalog",
    "is_configured",
    "is_thread_bound",
    "is_view",
    "load_named",
    "not_a_table",
    "view_names",
]

#: A PyIceberg catalog, or the name of one in PyIceberg's configuration.
CatalogLike: TypeAlias = "str | Catalog"

#: Maximum number of namespaces that are listed: a catalog may generate them without end.
_MOST_NAMESPACES = 20_000
#: For an error message: maximum seconds to list a catalog's contents, and maximum number of names to show.
_PATIENCE = 5.0
_SHOWN = 12


@dataclass(frozen=True)
class NamespaceContents:
    """The tables and views of a namespace.

    Attributes
    ----------
    namespace
        Its name; ``()`` in the last item if `more` is true.
    tables, views
        Identifiers.
    failed
        Why its tables could not be listed; None if they were.
    no_views
        Why its views could not be listed; None if they were.
    more
        True for a last item without content: there are too many namespaces to list all.
    """

    namespace: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...] = ()
    views: tuple[tuple[str, ...], ...] = ()
    failed: str | None = None
    no_views: str | None = None
    more: bool = False


def catalog_contents(catalog: Catalog, below: tuple[str, ...] = ()) -> Iterator[NamespaceContents]:
    """Yield the contents of a namespace and of those below it, the nearest first.

    Parameters
    ----------
    below
        The namespace; ``()``, the default, is the catalog itself.

    Raises
    ------
    CatalogError
        The catalog cannot list its namespaces.
    """
    seen: set[tuple[str, ...]] = set()
    waiting: deque[tuple[str, ...]] = deque([below])
    no_views: str | None = None
    while waiting:
        namespace = waiting.popleft()
        if namespace in seen:
            continue
        if len(seen) > _MOST_NAMESPACES:
            yield NamespaceContents((), more=True)
            return
        seen.add(namespace)
        try:
            found = [
                _identifier(n) for n in (catalog.list_namespaces(namespace) if namespace else catalog.list_namespaces())
            ]
        except Exception as e:
            if not namespace:
                raise CatalogError(
                    f"catalog {catalog_name(catalog)} cannot list its namespaces ({error_text(e)})"
                ) from e
            found = []  # Hive and Glue have no nested namespaces, and some catalogs refuse to list them
        waiting += [n for n in found if len(n) > len(namespace)]
        if namespace:
            contents = _contents(catalog, namespace, no_views)
            no_views = contents.no_views
            yield contents


def _contents(catalog: Catalog, namespace: tuple[str, ...], no_views: str | None) -> NamespaceContents:
    """List the tables and views of a namespace.

    Parameters
    ----------
    no_views
        Why the catalog could not list the views of an earlier namespace, in which case no more views are requested;
        None if it could.
    """
    failed = None
    tables: tuple[tuple[str, ...], ...] = ()
    views: tuple[tuple[str, ...], ...] = ()
    try:
        tables = tuple(_identifier(t) for t in catalog.list_tables(namespace))
    except Exception as e:
        failed = error_text(e)
    if no_views is None:
        try:
            views = tuple(_identifier(v) for v in view_names(catalog, namespace))
        except NotImplementedError:
            no_views = f"PyIceberg's {type(catalog).__name__} does not list views"
        except Exception as e:
            no_views = error_text(e)
    return NamespaceContents(namespace, tables, views, failed, no_views)


def _identifier(names: object) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(map(str, names))  # type: ignore[call-overload]  # checked


def view_names(catalog: Catalog, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the identifiers of a namespace's views. The catalog's errors are not caught."""
    try:
        return list(catalog.list_views(namespace))
    except NotImplementedError:
        if getattr(catalog, "_schema_version", None) != "v1":
            raise
    # PyIceberg's SQL catalog hides the views that other engines have put into its table.
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import select
    from sqlalchemy.orm import Session

    wanted = select(IcebergTables.table_name).where(
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(namespace),
        IcebergTables.iceberg_type == "VIEW",
    )
    with Session(catalog.engine) as session:  # there is an engine: only SQL catalogs have a schema version
        return [(*namespace, name) for name in session.scalars(wanted)]


def is_view(catalog: Catalog, key: str | tuple[str, ...]) -> bool:
    """Return whether a name belongs to a view; False where the catalog cannot tell."""
    parts = tuple(key.split(".")) if isinstance(key, str) else key
    try:
        return bool(catalog.view_exists(parts))
    except Exception:
        try:
            return parts in map(_identifier, view_names(catalog, parts[:-1]))
        except Exception:
            return False


def inside_text(catalog: Catalog, below: tuple[str, ...] = ()) -> str:
    """Return what a catalog or namespace holds, for an error: ``it has 3 tables: db.a, db.b, db.c``.

    The listing stops after a few seconds.
    """
    search = Search(lambda: catalog_contents(catalog, below), own_thread=not is_thread_bound(catalog))
    try:
        complete = search.run(_PATIENCE)
    except CatalogError as e:
        return f"what it holds is unknown: {e}"
    tables = sorted(".".join(t) for one in search.found for t in one.tables)
    views = sorted(".".join(v) for one in search.found for v in one.views)
    parts = [_counted(names, what) for names, what in ((tables, "table"), (views, "view")) if names]
    more = "" if complete else f" (listing ended after {_PATIENCE:g} s)"
    return f"it has {' and '.join(parts) or 'no tables'}{more}"


def _counted(names: list[str], what: str) -> str:
    shown = ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
    return f"{len(names):,} {what}{'' if len(names) == 1 else 's'}: {shown}"


def is_catalog(source: object) -> bool:
    """Return whether an object is a PyIceberg catalog, or acts like one."""
    return all(hasattr(source, name) for name in ("list_tables", "list_namespaces", "load_table"))


def is_thread_bound(catalog: object) -> bool:
    """Return whether a catalog can be used only by the thread that created it.

    SQLAlchemy opens a separate connection per thread. With an SQLite database in memory, each connection has its own
    database: other threads would see an empty one.
    """
    pool = getattr(getattr(catalog, "engine", None), "pool", None)
    return type(pool).__name__ == "SingletonThreadPool"


def load_named(name: str, properties: Mapping[str, str]) -> Catalog:
    """Load a catalog by its name in PyIceberg's configuration.

    Raises
    ------
    CatalogError, MissingDependencyError
        The catalog is not configured or cannot be reached, or PyIceberg is not installed.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as e:
        raise MissingDependencyError(f"catalogs need PyIceberg: {e}") from e
    try:
        return load_catalog(name, **properties)
    except Exception as e:
        raise CatalogError(
            f"catalog {name!r} could not be loaded ({error_text(e)}); configure it in .pyiceberg.yaml, by "
            "PYICEBERG_CATALOG__… variables, or pass properties={'type': …, 'uri': …}"
        ) from e


def is_configured(name: str) -> bool:
    """Return whether PyIceberg's configuration has a catalog of this name; False for a path, which cannot be one."""
    if not re.fullmatch(r"[\w.-]{1,100}", name):
        return False
    try:
        from pyiceberg import catalog

        return catalog._ENV_CONFIG.get_catalog_config(name) is not None  # as `load_catalog` sees it
    except Exception:
        return False


def not_a_table(what: str, catalog: Catalog, call: str, wanted: str = "table", opener: str = "ix.open") -> str:
    """Return the error text for a catalog given in place of a table or view: what it holds, and the calls to use.

    Parameters
    ----------
    what
        How the user named the catalog.
    call
        The catalog, written as an argument in the suggested calls.
    wanted, opener
        What is expected, and the function that opens it.
    """
    return (
        f"{what} is a catalog{'' if what == catalog_name(catalog) else f' ({catalog_name(catalog)})'}, not a "
        f"{wanted}; {inside_text(catalog)}. {opener}(name, catalog={call}) opens one, and "
        f"ix.open_catalog({call}) shows them all"
    )


def catalog_name(catalog: object) -> str:
    """Return a catalog's name or, if it has none, that of its class."""
    return str(getattr(catalog, "name", type(catalog).__name__))


def error_text(error: BaseException) -> str:
    """Return an error's class and its message, on one line."""
    return f"{type(error).__name__}: {short_message(error)}"
